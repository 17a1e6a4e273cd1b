"""A small list to choose from, over everything else; typing narrows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui.palette import STYLES, Glyphs


class Picker(ModalScreen[str | None]):
    """Ends with the key of a choice; None when there was none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "back", show=False),
        Binding("down", "step(1)", "next", show=False),
        Binding("up", "step(-1)", "before", show=False),
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
    ) -> None:
        """`free`: what is typed is a choice, too."""
        super().__init__()
        self.heading = title
        self.choices = list(choices)
        self.glyphs = glyphs
        self.here = here
        self.free = free
        self._typed = ""

    def compose(self) -> ComposeResult:
        """Title, what is typed, choices."""
        with Vertical():
            yield Static(self.glyphs.rich(self.heading), markup=False)
            yield Input(compact=True, placeholder="type to narrow")
            yield OptionList()

    def on_mount(self) -> None:
        """All choices, the one that is in use under the cursor."""
        self._fill("")
        options = self.query_one(OptionList)
        keys = [key for key, _ in self._shown]
        options.highlighted = keys.index(self.here) if self.here in keys else 0
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
        options.highlighted = 0 if self._shown else None

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        """Narrow the choices."""
        event.stop()
        if event.value != self._typed:
            self._fill(event.value)

    @on(Input.Submitted)
    def entered(self, event: Input.Submitted) -> None:
        """Take the one under the cursor."""
        event.stop()
        at = self.query_one(OptionList).highlighted
        if at is not None and at < len(self._shown):
            self.dismiss(self._shown[at][0])
        elif self.free and event.value.strip():
            self.dismiss(event.value.strip())

    @on(OptionList.OptionSelected)
    def picked(self, event: OptionList.OptionSelected) -> None:
        """Take the one that was clicked."""
        event.stop()
        self.dismiss(self._shown[event.option_index][0])

    def action_step(self, by: int) -> None:
        """The next choice."""
        options = self.query_one(OptionList)
        if self._shown:
            at = (options.highlighted or 0) + by
            options.highlighted = at % len(self._shown)
