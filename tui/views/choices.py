"""Completions of the filter in lines below it, or where it is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text
from textual.widgets import Static

from kafkascope.analyzer.text import columns_taken, padded
from kafkascope.tui.limits import LIMITS
from kafkascope.tui.settings.palette import NORMAL, STYLES, Glyphs

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.completion import Completion, Item

# The column where the text of the filter begins.
INDENT: Final = 3


class Choices(Static):
    """Draws completions over the list, in as many lines as they take."""

    DEFAULT_CSS = """
    Choices { display: none; overlay: screen; height: auto; width: auto; max-width: 100%;
        min-width: 30; background: $panel; offset-y: 0; }
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="choices", markup=False)
        self.glyphs = glyphs
        self.found: Completion | None = None
        self.at = 0
        self.moved = False
        """Whether the user moved to an item: Enter takes it then."""

    @property
    def item(self) -> Item | None:
        if not self.display or self.found is None or not self.found.items:
            return None
        return self.found.items[self.at]

    def show(self, found: Completion | None) -> None:
        """Show the completions that were found; None hides the widget."""
        self.found, self.at, self.moved = found, 0, False
        self._draw()

    def step(self, by: int) -> None:
        if self.found is not None and self.found.items:
            self.at = (self.at + by) % len(self.found.items) if self.moved or by < 0 else 0
            self.moved = True
            self._draw()

    def _draw(self) -> None:
        lines = self._lines()
        self.display = bool(lines)
        if lines:
            self.update(Text("\n").join(lines))

    def _lines(self) -> list[Text]:
        found, glyphs = self.found, self.glyphs
        if found is None:
            return []
        lines: list[Text] = []
        error = found.error
        if error is not None and not found.unfinished:
            before = glyphs.text(error.text[: error.at])
            sign = " " * (INDENT + columns_taken(before)) + "^" * max(1, error.width)
            hint = f"   {error.hint}" if error.hint else ""
            reason = f"   {error.reason}{hint} "
            lines += [glyphs.rich(sign, STYLES["!"]), glyphs.rich(reason, STYLES["!"])]
        most = LIMITS.completions
        first = max(0, min(self.at - most + 2, len(found.items) - most))
        items = found.items[first : first + most]
        texts = [glyphs.text(item.text) for item in items]
        width = max(map(columns_taken, texts), default=0)
        for place, (item, text) in enumerate(zip(items, texts, strict=True), first):
            here = self.moved and place == self.at
            line = glyphs.rich(f" {padded(text, width)}", STYLES["cursor" if here else "label"])
            lines.append(line.append_text(glyphs.rich(f"  {item.hint} ", STYLES["dim"])))
        more = len(found.items) - first - len(items)
        if more > 0:
            lines.append(glyphs.rich(f" … {more} more", STYLES["dim"]))
        return lines if any(line.plain.strip() for line in lines) else [Text(" ", style=NORMAL)]
