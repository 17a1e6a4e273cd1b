"""The help of a screen or a pane, with a search among its keys, over everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from kafkascope.analyzer.text import columns_taken, padded, wrapped
from kafkascope.tui.settings.palette import STYLES, Glyphs
from kafkascope.tui.views.safe import SafeInput

WIDTH: Final = 73
"""Columns of text where there is room: those of the box without its edges and its scroll bar."""
EDGES: Final = 5
MARGIN: Final = 16
"""Columns for the names of keys, with the blank behind them."""
LEAVE: Final = frozenset({"q", "question_mark"})

Row = tuple[str, str]
"""Keys as people read them, and what they do."""
Section = tuple[str, Sequence[Row]]

COMMAND: Final = "kafkascope ls FILE -Y FILTER"
EXCHANGES: Final = (
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
        about: str = EXCHANGES,
        command: str = COMMAND,
        others: Sequence[Section] = (),
    ) -> None:
        """`about`: what the screen is for; `command`: which command prints the same; `others`: keys
        of other screens, which only a search shows."""
        super().__init__()
        self.glyphs = glyphs
        self.heading = title
        self.sections = sections
        self.about = about
        self.command = command
        self.others = others

    def compose(self) -> ComposeResult:
        """Yield the title, the search and the keys."""
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
        """Show all keys."""
        self._show("")
        self.query_one(HelpSearch).focus()

    def _show(self, wanted: str) -> None:
        width = min(WIDTH, max(MARGIN + 8, self.size.width - EDGES))
        text = Text("\n").join(self.glyphs.rich(line) for line in self.lines(wanted, width))
        text.no_wrap = True
        self.query_one("#help-keys", Static).update(text)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the lines again where the box ends."""
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
            for shown, text in found:
                told = wrapped(text, width - MARGIN, breaks=True) or [""]
                if columns_taken(shown) < MARGIN:
                    told[0] = padded(shown, MARGIN) + told[0]
                else:
                    out += wrapped(shown, width, breaks=True)
                    told[0] = " " * MARGIN + told[0]
                out += [told[0], *(" " * MARGIN + line for line in told[1:])]
            out.append("")
        if words and not out:
            out = [f'No key matches "{wanted.strip()}".', ""]
        if self.command and not words:
            out.append("As text:")
            out += wrapped(self.command, width, indent="  ", hanging="    ", breaks=True)
        return out

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        """Show the keys that the search finds."""
        event.stop()
        self._show(event.value)

    @on(Input.Submitted)
    def entered(self, event: Input.Submitted) -> None:
        """Leave the help."""
        event.stop()
        self.dismiss()

    def action_scroll(self, by: int) -> None:
        """Scroll by lines."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)
