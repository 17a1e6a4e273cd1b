"""A table of statistics on a screen: which columns fit, how wide they are, in which order the lines
stand, and the text of each cell. Knows no terminal: cells are texts with roles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.table import DOWNWARDS, RIGHT, cell, sorted_by
from kafkascope.analyzer.text import columns_taken, padded

Span: TypeAlias = tuple[str, str]
"""Text and its role, a key of `palette.STYLES`; empty: the usual one."""
Spans: TypeAlias = list[Span]


class TextLine(NamedTuple):
    """A line of text, and the exchange that it is about."""

    spans: Spans
    number: int | None = None


ELSE: Final = "(else)"
"""Stands for the values of a column that have no role of their own."""
GAP: Final = "  "
# Lines that are looked at for the width of columns.
MEASURED: Final = 400
# Largest width of a column of text that is not the last one.
WIDEST: Final = 40
# Widths to which columns of text shrink before others go, and when no other can go any more.
NARROW: Final = 16
NARROWEST: Final = 9
# Least width of a last column of text.
LEAST_LAST: Final = 16


class Slot(NamedTuple):
    """A column with its place on the screen."""

    column: Column
    left: int
    width: int


def narrow(columns: Iterable[Column], *without: str) -> list[Column]:
    """Return the columns that are not wide, but for some."""
    return [column for column in columns if not column.wide and column.name not in without]


@dataclass(eq=False)
class Sheet:
    """Sorts the lines of a statistic and lays out their cells."""

    columns: Sequence[Column]
    alarms: Mapping[str, str] = field(default_factory=dict)
    """Columns whose numbers are bad news above 0, with the role these get."""
    tones: Mapping[str, Mapping[Any, str] | Callable[[Any], str]] = field(default_factory=dict)
    """Columns whose role depends on the value; that of `ELSE` is for all other values."""
    keep: Sequence[str] = ()
    """Columns that go last when a terminal is narrow, besides the first one."""
    roomy: Mapping[str, int] = field(default_factory=dict)
    """How many columns of the terminal a text has before others may stay."""
    below: str = ""
    """What is true of lines that stay after the line before them."""
    faded: str = ""
    """What is true of lines that are dim."""
    lines: list[Line] = field(default_factory=list, init=False)
    times: Times = field(default_factory=lambda: Times("u"), init=False)
    sort: Column | None = field(default=None, init=False)
    down: bool = field(default=False, init=False)
    _given: list[Line] = field(default_factory=list, init=False)
    _natural: dict[str, int] = field(default_factory=dict, init=False)

    def fill(self, lines: Sequence[Line], times: Times | None = None) -> Sheet:
        """Take lines in their usual order, in the place of those that there are."""
        if times is not None:
            self.times = times
        self._given = list(lines)
        self._order()
        self._measure()
        return self

    def sort_by(self, name: str) -> None:
        """Sort by a column; by the same one again, the other way round."""
        column = self._column(name)
        self.sort_as(name, not self.down if column == self.sort else column.kind in DOWNWARDS)

    def sort_as(self, name: str, down: bool) -> None:
        self.sort, self.down = self._column(name), down
        self._order()
        self._measure()

    def _column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def unsort(self) -> None:
        """Restore the usual order."""
        self.sort = None
        self._order()

    def reverse(self) -> None:
        self.down = not self.down
        self._order()

    def _order(self) -> None:
        if self.sort is None or not self.below:
            lines = list(self._given)
            self.lines = sorted_by(lines, self.sort, down=self.down) if self.sort else lines
            return
        behind: dict[int, list[Line]] = {}
        heads: list[Line] = []
        for line in self._given:
            if not (heads and line.get(self.below)):
                heads.append(line)
            behind.setdefault(id(heads[-1]), []).append(line)
        ordered = sorted_by(heads, self.sort, down=self.down)
        self.lines = [line for head in ordered for line in behind[id(head)]]

    def _measure(self) -> None:
        self._natural = {}
        for column in self.columns:
            cells = [columns_taken(self.text(column, line)) for line in self._given[:MEASURED]]
            # The arrow of an order has a place.
            title = columns_taken(column.title) + (2 if column == self.sort else 0)
            self._natural[column.name] = max([title, *cells])

    def text(self, column: Column, line: Line) -> str:
        return cell(column, line, self.times)

    # --- places ---------------------------------------------------------------------------------

    def slots(self, width: int) -> list[Slot]:
        """Return the columns that fit into `width` columns of the terminal, without empty ones."""
        shown = [
            column
            for index, column in enumerate(self.columns)
            if not index or not self._given or self._filled(column)
        ]
        widths: list[int] | None = None
        while shown:
            spare = any(column.name not in self.keep for column in shown[1:])
            least = NARROW if spare else NARROWEST
            widths = self._shared(shown, width, least, self.roomy if spare else {})
            if widths is not None or len(shown) == 1:
                break
            shown.remove(self._least(shown))
        sizes = widths or [max(1, width)][: len(shown)]
        lefts = accumulate((size + len(GAP) for size in sizes), initial=0)
        return list(map(Slot, shown, lefts, sizes))

    def _filled(self, column: Column) -> bool:
        return any(self.text(column, line) not in ("", "-") for line in self._given[:MEASURED]) or (
            column == self.sort
        )

    def _least(self, shown: list[Column]) -> Column:
        """Return the column that goes first when there is no room."""
        rest = [column for column in shown[1:] if column.name not in self.keep]
        if rest:
            # A sentence at the end says more than the numbers before it.
            sentence = rest[-1].kind in ("list", "text") and len(rest) > 1
            return rest[-2] if sentence else rest[-1]
        return max(shown[1:], key=lambda column: self.keep.index(column.name))

    def _shared(
        self, shown: list[Column], width: int, least: int, roomy: Mapping[str, int]
    ) -> list[int] | None:
        """Return the widths of columns; None when there is no room for all."""
        widths, floors = [], []
        for column in shown:
            natural = self._natural.get(column.name, len(column.title))
            floor, last = natural, column is shown[-1]
            if column.kind in ("list", "text"):
                natural = natural if last else min(natural, WIDEST)
                floor = max(roomy.get(column.name, least), LEAST_LAST if last else least)
            widths.append(natural)
            floors.append(min(natural, floor))
        over = sum(widths) - (width - len(GAP) * (len(shown) - 1))
        # The last text gives first, then whichever is the widest.
        if over > 0 and shown[-1].kind in ("list", "text"):
            give = min(over, widths[-1] - floors[-1])
            widths[-1] -= give
            over -= give
        while over > 0:
            at = max(range(len(widths)), key=lambda each: widths[each] - floors[each])
            if widths[at] == floors[at]:
                return None
            widths[at] -= 1
            over -= 1
        return widths

    def column_at(self, x: int, width: int) -> Column | None:
        """Return the column whose title is at a column of the terminal."""
        slots = self.slots(width)
        return next((c for c, left, size in slots if left <= x < left + size + len(GAP)), None)

    # --- texts ----------------------------------------------------------------------------------

    def heading(self, width: int) -> str:
        """Return the titles, with an arrow beside that of the column that sorts."""
        parts = []
        for column, _, size in self.slots(width):
            title = column.title
            if column == self.sort:
                title = f"{title} {'▼' if self.down else '▲'}"
            parts.append(padded(title, size, right=column.kind in RIGHT))
        return GAP.join(parts)

    def row(self, index: int, width: int) -> Spans:
        line = self.lines[index]
        out: Spans = []
        for column, _, size in self.slots(width):
            text = padded(self.text(column, line), size, right=column.kind in RIGHT)
            out += [(GAP, ""), (text, self.role(column, line))]
        return out[1:]

    def role(self, column: Column, line: Line) -> str:
        value, tone = line.get(column.name), self.tones.get(column.name)
        if self.faded and line.get(self.faded):
            return "dim"
        if tone is not None:
            return tone(value) if callable(tone) else tone.get(value, tone.get(ELSE, ""))
        if column.kind not in RIGHT:
            return ""
        return self.alarms.get(column.name, "") if value else "dim"
