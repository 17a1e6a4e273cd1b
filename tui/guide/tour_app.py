"""The terminal UI with a guide at its foot. All keys work as ever; the guide has three more."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kafkascope.tui.app import ScopeApp
from kafkascope.tui.guide.tour import STEPS


class TourApp(ScopeApp):
    """Shows the steps of the tour."""

    CSS = "ToastRack { margin-bottom: 7; }"
    """Notifications are shown above the guide."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,ctrl+n", "tour(1)", "tour: next", show=False, priority=True),
        Binding("f3,ctrl+b", "tour(-1)", "tour: back", show=False, priority=True),
        Binding("f4", "tour(0)", "tour: end", show=False, priority=True),
    ]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.stop_number = 0
        self._began_at = 1
        """The screen that was shown when this step began."""
        self.guide = Static(id="tour", markup=False)

    def compose(self) -> ComposeResult:
        """Yield the guide between the screens and the footer."""
        for widget in super().compose():
            if widget.id == "footer":
                yield self.guide
            yield widget

    def on_mount(self) -> None:
        """Show the first step."""
        super().on_mount()
        self.guide.styles.height = "auto"
        self.guide.styles.max_height = 6
        self.guide.styles.padding = (0, 1)
        self.guide.styles.background = "#26262e" if self.current_theme.dark else "#e8e8f0"
        self._tell()

    def action_tour(self, by: int) -> None:
        """Show the next step or the one before; 0 ends the tour."""
        if not by or not 0 <= self.stop_number + by < len(STEPS):
            self.guide.display = by < 0
            return
        self.guide.display = True
        self.stop_number += by
        self._began_at = self.host.number
        self._tell()

    async def show_screen(self, number: int) -> None:
        """Show a screen, and whether it is that of the step."""
        await super().show_screen(number)
        self._tell()

    def tick(self) -> None:
        """Update the guide, too."""
        super().tick()
        self._tell()

    def _tell(self) -> None:
        step = STEPS[self.stop_number]
        there = step.screen == self.host.number != self._began_at
        last = self.stop_number == len(STEPS) - 1
        text = Text()
        text.append(f"{self.stop_number + 1}/{len(STEPS)}  {step.question}", "bold")
        text.append("\npress ")
        text.append(step.press, "reverse")
        text.append("   (this screen)" if there else "")
        text.append(f"\n{step.see}\n")
        text.append("F4 ends the tour" if last else "F2 next   F3 back   F4 end", "dim")
        if getattr(self, "_told", None) != text.plain:
            self._told = text.plain
            self.guide.update(text)
