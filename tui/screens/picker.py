"""A small list to choose from, over everything else; typing narrows it. A box for free text lists
suggestions instead: Enter takes what is typed, unless the cursor was moved onto one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from kafkascope.tui.settings.palette import STYLES, Glyphs
from kafkascope.tui.views.safe import SafeInput


class Screens(Protocol):
    """The part of an app that shows screens."""

    def push_screen(
        self, screen: Screen[Any], callback: Callable[[Any], None] | None = None
    ) -> Any:
        """Show a screen over everything else; `callback` gets its result."""


def pick(
    app: Screens,
    title: str,
    choices: Sequence[tuple[str, str]],
    glyphs: Glyphs,
    chosen: Callable[[str], object],
    here: str | None = None,
    **options: Any,
) -> None:
    """Let the user choose one of (key, text); `chosen` gets its key, unless there was no choice.
    `here` is the key of what is in use; `options` are those of `Picker`."""

    def done(key: str | None) -> None:
        if key is not None:
            chosen(key)

    app.push_screen(Picker(title, choices, glyphs, here, **options), done)


class Picker(ModalScreen[str | None]):
    """Asks for one of several things; the result is the key of the choice, None without one."""

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
        self.heading = title
        self.choices = list(choices)
        self.glyphs = glyphs
        self.here = here
        self.free = free
        self.empty = empty
        self._typed = ""

    def compose(self) -> ComposeResult:
        """Yield the title, the box and the choices."""
        with Vertical():
            yield Static(self.glyphs.rich(self.heading), markup=False)
            hint = "Type, or Down to choose" if self.free else "Type to search"
            yield SafeInput(compact=True, placeholder=hint)
            yield OptionList()

    def on_mount(self) -> None:
        """Show all choices, with the cursor on the one that is in use."""
        self._fill("")
        keys = [key for key, _ in self._shown]
        if not self.free:
            at = keys.index(self.here) if self.here in keys else 0
            self.query_one(OptionList).highlighted = at
        self.query_one(Input).focus()

    def _fill(self, text: str) -> None:
        self._typed = text
        wanted = text.lower()
        self._shown = [each for each in self.choices if wanted in each[1].lower()]
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
        """Show the choices that contain what is typed."""
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
        """Take the choice that was clicked."""
        event.stop()
        self.dismiss(self._shown[event.option_index][0])

    def action_step(self, by: int) -> None:
        """Put the cursor on the next choice."""
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
