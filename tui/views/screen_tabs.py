"""The bar of tabs: the screens by number and name, the one that is shown in brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rich.text import Text
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from kafkascope.tui.screens import TABS
from kafkascope.tui.settings.palette import STYLES, Glyphs

SHORTENED: Final = (9, 2, 1, 6, 7)
"""Tabs whose titles are shortened where the terminal is narrow, the first one first."""


class Cell(NamedTuple):
    """A tab with its place in the bar."""

    number: int
    left: int
    text: str


def cells(numbers: Sequence[int], shown: int, width: int) -> tuple[list[Cell], int]:
    """Return the tabs and the blanks between two of them: titles are shortened, then left out,
    until all fit; the shown one's last."""
    texts = {number: f"{number} {TABS[number].title}" for number in numbers}
    shorter = [(number, f"{number} {TABS[number].short}") for number in SHORTENED]
    shorter.sort(key=lambda each: each[0] == shown)
    digits = [(number, f"{number}") for number in reversed(numbers) if number != shown]
    for number, text in (*shorter, *digits):
        if _width(texts, 1) <= width:
            break
        if number in texts:
            texts[number] = text
    gap = 2 if _width(texts, 2) <= width else 1
    out: list[Cell] = []
    left = 1
    for number, text in texts.items():
        out.append(Cell(number, left, text))
        left += len(text) + gap
    return out, gap


def _width(texts: Mapping[int, str], gap: int) -> int:
    return sum(map(len, texts.values())) + gap * (len(texts) - 1) + 2


class ScreenTabs(Static):
    """Draws the bar; a click shows the screen."""

    @dataclass
    class Picked(Message):
        """A tab was clicked."""

        number: int

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="screens", markup=False)
        self._glyphs = glyphs
        self._cells: list[Cell] = []

    def show(self, numbers: Sequence[int], shown: int, width: int) -> None:
        """Draw the tabs of some screens."""
        self._cells, gap = cells(numbers, shown, width)
        text = Text(no_wrap=True, end="")
        before = 0
        for cell in self._cells:
            here = cell.number == shown
            between = ("]" if before == shown else " ") + " " * (gap - 1) if before else " "
            text.append(f"{between[:-1]}[" if here else between)
            text.append(self._glyphs.text(cell.text), STYLES["here" if here else "label"])
            before = cell.number
        text.append("]" if before == shown else " ")
        if not isinstance(self.content, Text) or self.content.markup != text.markup:
            self.update(text)

    def on_click(self, event: Click) -> None:
        """Tell which tab is under the mouse."""
        for cell in self._cells:
            if cell.left <= event.x <= cell.left + len(cell.text):
                self.post_message(self.Picked(cell.number))
                return
