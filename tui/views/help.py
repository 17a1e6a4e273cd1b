"""The keys, over everything else."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tui import keys
from tui.palette import Glyphs


class HelpScreen(ModalScreen[None]):
    """Any of these keys leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter,f1", "dismiss", "back", show=False)
    ]

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        """One column of text."""
        text = "\n".join(
            [
                "Exchanges: keys",
                "",
                *keys.lines(),
                "",
                "The list as text: kafkascope ls FILE -Y FILTER",
            ]
        )
        with VerticalScroll(id="help"):
            yield Static(text, markup=False)
