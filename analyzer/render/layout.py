"""How the text of a table is laid out: the one place that measures, pads and joins its cells, and
chooses the columns that a terminal has room for.

Sizes are columns of a terminal, of which a wide character takes two and a combining one none (see
`analyzer.text`). Tables that are known as a whole are as wide as their cells (`widths_of`); those
that are printed while they grow have widths of their own (`analyzer.render.listing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final, NamedTuple

from kafkascope.analyzer.text import columns_taken, filled, padded, plural

GAP: Final = "  "
"""Between two cells."""


class Priority(NamedTuple):
    """Which columns of a table answer the question of a command. The subject of a row, in the first
    column, always stays."""

    columns: tuple[str, ...] = ()
    """Names of columns, the most important first. A narrow terminal shrinks these, and only where
    all others are hidden. The others follow in the order of the table."""
    sentences: tuple[str, ...] = ()
    """Names of columns that hold a sentence about the row, the most telling first. The first one
    that is not empty ends the row, or stands below it."""


def ranked(names: Sequence[str], first: Sequence[str]) -> list[int]:
    """Return the indexes of columns by importance: the subject, those that come first, the rest."""
    leading = [names.index(name) for name in first if name in names]
    return list(dict.fromkeys([0, *leading, *range(len(names))]))


def fitting(widths: Sequence[int], width: int, kept: int = 1) -> list[int]:
    """Return the indexes of columns that fit into a width, given the most important first: the
    first `kept` always, of the others all that still have room."""
    shown = list(range(len(widths)))[:kept]
    room = width - taken(widths[:kept])
    for index in range(kept, len(widths)):
        if widths[index] + len(GAP) <= room:
            room -= widths[index] + len(GAP)
            shown.append(index)
    return shown


def taken(widths: Iterable[int]) -> int:
    """Return the width of a line of cells with these widths."""
    return sum(width + len(GAP) for width in widths) - len(GAP)


def hidden_line(titles: Sequence[str], width: int) -> str:
    """Return the line with the hidden columns and how to show them."""
    count = plural(len(titles), "column")
    named = f"{count} hidden: {', '.join(titles)} (--wide, or --json)"
    return named if columns_taken(named) <= width else f"{count} hidden: --wide, or --json"


def widths_of(rows: Iterable[Sequence[str]]) -> list[int]:
    """The width of each column: that of its widest cell."""
    return [max(map(columns_taken, column)) for column in zip(*rows, strict=True)]


def laid_out(
    cells: Iterable[str],
    widths: Iterable[int],
    rights: Iterable[bool] = repeat(False),
    *,
    whole: bool = False,
) -> str:
    """Cells as a line. `rights`: whether they stand at the right. A cell that is longer than its
    column is cut, or pushes what follows where cells stay `whole`."""
    fit = filled if whole else padded
    parts = zip(cells, widths, rights, strict=False)
    return GAP.join(fit(cell, width, right=right) for cell, width, right in parts).rstrip()
