"""The bar of tabs: the screens by number and name, the one that is shown in brackets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from rich.text import Text
from textual import events
from textual.events import Click
from textual.widgets import Static

from kafkascope.tui.screens import TABS
from kafkascope.tui.settings.palette import STYLES, Glyphs


class Splitter(Static):
    """Calls `dragged` with the cell of the screen to which the mouse drags its upper left corner; a
    click without a move is left to others."""

    def __init__(self, dragged: Callable[[int, int], None], **options: str) -> None:
        super().__init__(markup=False, id=options.get("id"), classes=options.get("classes"))
        self._dragged = dragged
        self._grabbed = (0, 0)
        """The cell of the widget by which the mouse holds it."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self.capture_mouse()
        self._grabbed = event.x, event.y

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self.release_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.app.mouse_captured is self:
            x, y = self._grabbed
            self._dragged(event.screen_x - x, event.screen_y - y)


class Bar(Splitter):
    """A line between two panes side by side."""

    def __init__(self, sign: str, dragged: Callable[[int, int], None], *, id: str) -> None:
        super().__init__(dragged, id=id)
        self._sign = sign

    def on_resize(self, event: events.Resize) -> None:
        """Draw the line as high as the panes."""
        self.update("\n".join(self._sign * max(1, event.size.height)))


def tab_titles(tabs: Sequence[str], chosen: str) -> str:
    """Return the titles of tabs in a line, the chosen one in brackets."""
    return "  ".join(f"[{tab}]" if tab == chosen else f" {tab} " for tab in tabs)


def tab_at(tabs: Sequence[str], x: int) -> str | None:
    """Return the tab whose title is at a column of `tab_titles`."""
    left = 0
    for tab in tabs:
        if left <= x < left + len(tab) + 2:
            return tab
        left += len(tab) + 4
    return None


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
    lefts = accumulate((len(text) + gap for text in texts.values()), initial=1)
    return list(map(Cell, texts, lefts, texts.values())), gap


def _width(texts: Mapping[int, str], gap: int) -> int:
    return sum(map(len, texts.values())) + gap * (len(texts) - 1) + 2


class ScreenTabs(Static):
    """Draws the bar; a click shows the screen."""

    def __init__(self, glyphs: Glyphs, picked: Callable[[int], object]) -> None:
        super().__init__(id="screens", markup=False)
        self._glyphs, self._picked = glyphs, picked
        self._cells: list[Cell] = []

    def show(self, numbers: Sequence[int], shown: int, width: int) -> None:
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
        for cell in self._cells:
            if 0 <= event.x - cell.left <= len(cell.text):
                self._picked(cell.number)
                return
