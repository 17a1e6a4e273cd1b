"""What is over everything else: a list to choose from, the keys of a screen, lines of text, an
editor."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from kafkascope.analyzer.text import columns_taken, json_safe, padded, wrapped
from kafkascope.dissectors.codec.jsonform import dumps_indented
from kafkascope.tui.settings.palette import STYLES, Glyphs
from kafkascope.tui.views.lines import LineList, Piece
from kafkascope.tui.views.safe import SafeInput, SafeTextArea


class Picker(ModalScreen[str | None]):
    """Asks for one of several things; the result is the key of the choice, None without one. Typing
    narrows the list. A box for free text lists suggestions instead: Enter takes what is typed,
    unless the cursor was moved onto one of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "back", show=False),
        Binding("down", "step(1)", "next", show=False),
        Binding("up", "step(-1)", "before", show=False),
        Binding("tab", "complete", "into the box", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Picker { align: center middle; }
    Picker > Vertical { width: 60; max-width: 100%; height: auto; max-height: 80%;
        background: $panel; padding: 0 1; }
    Picker Static { height: 1; text-style: bold; }
    Picker Input { height: 1; border: none; padding: 0; background: $boost; }
    Picker OptionList { height: auto; max-height: 20; border: none; padding: 0;
        background: $panel; scrollbar-size-vertical: 1; }
    """

    def __init__(
        self,
        title: str,
        choices: Sequence[tuple[str, str]],
        glyphs: Glyphs,
        here: str | None = None,
        *,
        free: bool = False,
        empty: str | None = None,
    ) -> None:
        """`free`: what is typed is the answer, choices are suggestions; `empty`: what Enter in the
        empty box means then, None that nothing is wanted."""
        super().__init__()
        self.heading, self.choices, self.glyphs = title, list(choices), glyphs
        self.here, self.free, self.empty = here, free, empty
        self._typed = ""

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self.glyphs.rich(self.heading), markup=False)
            hint = "Type, or Down to choose" if self.free else "Type to search"
            yield SafeInput(compact=True, placeholder=hint)
            yield OptionList()

    def on_mount(self) -> None:
        """Show all choices, with the cursor on the one that is in use."""
        self._fill("")
        keys = [key for key, _ in self._shown]
        if not self.free and self.here in keys:
            self.query_one(OptionList).highlighted = keys.index(self.here)
        self.query_one(Input).focus()

    def _fill(self, text: str) -> None:
        self._typed = text
        self._shown = [each for each in self.choices if text.lower() in each[1].lower()]
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(
            [
                Option(self.glyphs.rich(label, STYLES["label" if key == self.here else ""]))
                for key, label in self._shown
            ]
        )
        # Nobody moved onto a suggestion yet: Enter does not take it.
        options.highlighted = 0 if self._shown and not self.free else None

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self._typed:
            self._fill(event.value)

    @on(Input.Submitted)
    def entered(self, event: Input.Submitted) -> None:
        """Take the choice under the cursor, else what is typed."""
        event.stop()
        at = self.query_one(OptionList).highlighted
        if at is not None and at < len(self._shown):
            self.dismiss(self._shown[at][0])
        elif self.free:
            self.dismiss(event.value.strip() or self.empty)

    @on(OptionList.OptionSelected)
    def picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._shown[event.option_index][0])

    def action_step(self, by: int) -> None:
        options = self.query_one(OptionList)
        if self._shown:
            before = -1 if by > 0 else 0
            at = before if options.highlighted is None else options.highlighted
            options.highlighted = (at + by) % len(self._shown)

    def action_complete(self) -> None:
        """Put the suggestion under the cursor, else the first one, into the box."""
        if self.free and self._shown:
            box = self.query_one(Input)
            box.value = self._shown[self.query_one(OptionList).highlighted or 0][0]
            box.cursor_position = len(box.value)


# --- help -----------------------------------------------------------------------------------------

# Columns of text where there is room: those of the box without its edges and its scroll bar.
WIDTH: Final = 73
EDGES: Final = 5
# Columns for the names of keys, with the blank after them.
MARGIN: Final = 16
LEAVE: Final = frozenset({"q", "question_mark"})

Row = tuple[str, str]
"""Keys as people read them, and what they do."""
Section = tuple[str, Sequence[Row]]

COMMAND: Final = "kafkascope ls FILE -Y FILTER"
ABOUT_LIST: Final = (
    "Each row is one exchange: a request with its response, or the reason why it has none. "
    "Latency runs from the first byte of the request to the last byte of the response; w marks a "
    "wait that the client requested (long poll). ! error, ? no response, ~ bytes that are not "
    "Kafka."
)


class HelpSearch(SafeInput):
    """Takes the search among keys; while it is empty, keys that leave the help do so."""

    def on_key(self, event: events.Key) -> None:
        """Leave the help, or type."""
        if event.key in LEAVE and not self.value:
            event.stop()
            event.prevent_default()
            self.screen.dismiss()


class HelpScreen(ModalScreen[None]):
    """Shows keys and what a screen is for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,enter", "dismiss", "back", show=False),
        Binding("down", "scroll(1)", "down", show=False),
        Binding("up", "scroll(-1)", "up", show=False),
        Binding("pagedown", "scroll(10)", "down", show=False),
        Binding("pageup", "scroll(-10)", "up", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > Vertical { width: 78; max-width: 100%; height: 100%; background: $panel;
        padding: 0 2; }
    HelpScreen Input { height: 1; border: none; padding: 0; background: $boost; }
    HelpScreen #help-title, HelpScreen #help-foot { height: 1; }
    HelpScreen VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    """

    def __init__(
        self,
        glyphs: Glyphs,
        title: str,
        sections: Sequence[Section],
        *,
        about: str = ABOUT_LIST,
        command: str = COMMAND,
        others: Sequence[Section] = (),
    ) -> None:
        """`about`: what the screen is for; `command`: which command prints the same; `others`: keys
        of other screens, which only a search shows."""
        super().__init__()
        self.glyphs, self.heading, self.sections = glyphs, title, sections
        self.about, self.command, self.others = about, command, others

    def compose(self) -> ComposeResult:
        with Vertical():
            title = self.glyphs.rich(f"{self.heading}: keys", STYLES["header"])
            yield Static(title, id="help-title", markup=False)
            yield HelpSearch(
                compact=True, placeholder="Type to search the keys of all screens", id="help-search"
            )
            with VerticalScroll(can_focus=False):
                yield Static(id="help-keys", markup=False)
            foot = self.glyphs.rich("Esc back   F1 about the pane   : commands", STYLES["dim"])
            yield Static(foot, id="help-foot", markup=False)

    def on_mount(self) -> None:
        self._show("")
        self.query_one(HelpSearch).focus()

    def _show(self, wanted: str) -> None:
        width = min(WIDTH, max(MARGIN + 8, self.size.width - EDGES))
        text = Text("\n").join(self.glyphs.rich(line) for line in self.lines(wanted, width))
        text.no_wrap = True
        self.query_one("#help-keys", Static).update(text)

    def on_resize(self, event: events.Resize) -> None:
        self._show(self.query_one(HelpSearch).value)

    def lines(self, wanted: str = "", width: int = WIDTH) -> list[str]:
        """Return the lines that are shown for a search, of `width` columns at most."""
        words = wanted.lower().split()
        out: list[str] = []
        if self.about and not words:
            out += [*wrapped(self.about, width, breaks=True), ""]
        sections = (*self.sections, *(self.others if words else ()))
        for heading, rows in sections:
            found = [row for row in rows if all(word in " ".join(row).lower() for word in words)]
            if not found:
                continue
            if len(sections) > 1:
                out.append(heading)
            for keys, text in found:
                if columns_taken(keys) >= MARGIN:
                    out += wrapped(keys, width, breaks=True)
                    keys = ""
                first, *rest = wrapped(text, width - MARGIN, breaks=True) or [""]
                out += [padded(keys, MARGIN) + first, *(" " * MARGIN + line for line in rest)]
            out.append("")
        if words and not out:
            out = [f'No key matches "{wanted.strip()}".', ""]
        if self.command and not words:
            out.append("As text:")
            out += wrapped(self.command, width, indent="  ", hanging="    ", breaks=True)
        return out

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        event.stop()
        self._show(event.value)

    @on(Input.Submitted)
    def entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss()

    def action_scroll(self, by: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)


# --- texts ----------------------------------------------------------------------------------------


class PageLines(LineList):
    """Draws the lines of a page."""

    def __init__(self, lines: Sequence[Sequence[Piece]], glyphs: Glyphs) -> None:
        super().__init__(glyphs, id="page-lines")
        self.lines_ = lines

    def count(self) -> int:
        return len(self.lines_)

    def pieces(self, line: int, width: int) -> list[Piece]:
        return list(self.lines_[line])

    @property
    def text(self) -> str:
        return "\n".join("".join(text for text, _ in line) for line in self.lines_)


class Page(ModalScreen[None]):
    """Shows lines that can be scrolled and copied."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "back", show=False),
        Binding("y", "copy", "copy", show=False),
    ]
    DEFAULT_CSS = """
    Page { align: center middle; }
    Page > Vertical { width: 90%; height: 90%; background: $panel; padding: 0 1; }
    Page Static { height: 1; }
    Page LineList { height: 1fr; background: $panel; scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0; overflow-x: hidden; }
    """

    def __init__(self, title: str, lines: Sequence[Sequence[Piece]], glyphs: Glyphs) -> None:
        super().__init__()
        self.heading, self.glyphs = title, glyphs
        self.page = PageLines(lines, glyphs)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self.glyphs.rich(self.heading, STYLES["header"]), markup=False)
            yield self.page
            foot = self.glyphs.rich("Esc back   y copy", STYLES["dim"])
            yield Static(foot, markup=False)

    def on_mount(self) -> None:
        self.page.focus()

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.page.text.encode("utf-8", "replace").decode())
        self.notify("Copied.")


class Editor(ModalScreen[Any]):
    """Edits a body; the result is the body to send on, None to hold it further."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s,f2", "send", "send it on", id="editor.send", show=False, priority=True),
        Binding("escape", "dismiss(None)", "leave it held", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Editor { align: center middle; }
    Editor > Vertical { width: 90%; height: 90%; background: $panel; padding: 0 1; }
    Editor Static { height: 1; }
    Editor TextArea, Editor TextArea:focus { height: 1fr; border: none; padding: 0; }
    """

    def __init__(self, title: str, body: Any, glyphs: Glyphs) -> None:
        super().__init__()
        self.heading, self.body, self.glyphs = title, body, glyphs

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self.glyphs.rich(self.heading, STYLES["header"]), markup=False)
            yield SafeTextArea(json_safe(dumps_indented(self.body)).decode(), self.glyphs)
            yield Static(id="editor-state", markup=False)

    def on_mount(self) -> None:
        self._say("ctrl+s forwards the frame   Esc keeps it held", "dim")
        self.query_one(TextArea).focus()

    def _say(self, text: str, role: str) -> None:
        self.query_one("#editor-state", Static).update(self.glyphs.rich(text, STYLES[role]))

    def action_send(self) -> None:
        """Send the body on, if it is a JSON object."""
        area = self.query_one(TextArea)
        try:
            body = json.loads(area.text)
        except json.JSONDecodeError as error:
            self._say(f"line {error.lineno}, column {error.colno}: {error.msg}", "!")
            area.move_cursor((error.lineno - 1, error.colno - 1))
        except RecursionError:
            self._say("Nested too deeply", "!")
        else:
            if isinstance(body, dict):
                self.dismiss(body)
            else:
                self._say("The body must be an object: { ... }", "!")
