"""How the text of a table is laid out: the one place that measures, pads and joins its cells.

Sizes are columns of a terminal, of which a wide character takes two and a combining one none (see
`analyzer.text`). Tables that are known as a whole are as wide as their cells (`widths_of`); those
that are printed while they grow have widths of their own (`analyzer.render.listing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Final

from kafkascope.analyzer.text import columns_taken, cut, filled, padded

GAP: Final = "  "
"""Between two cells."""


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


def aligned(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """The lines of a whole table, cut to the width of a terminal."""
    widths = widths_of(rows)
    return (cut(laid_out(cells, widths), width) for cells in rows)
