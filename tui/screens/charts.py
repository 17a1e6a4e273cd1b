"""Charts of characters: counts as bars, durations on a logarithmic axis, and both over time. They
are texts with roles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, zip_longest
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.merging.histogram import Histogram, bounds_of
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.text import columns_taken
from kafkascope.tui.screens.sheet import Span, Spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    IntArray: TypeAlias = NDArray[np.signedinteger[Any]]

EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
SHADES: Final = " ·░▒▓█"
# Columns for numbers to the left of a chart.
MARGIN: Final = 8


def spark(counts: Sequence[int]) -> str:
    """Draw a line of bars; a count above 0 is never invisible."""
    return columns_chart(counts, 1)[0][0][0]


def bar(part: float, width: int) -> str:
    """Draw a share as a bar of at most `width` columns."""
    eighths = max(int(part > 0), min(8 * width, round(8 * width * part)))
    whole, rest = divmod(eighths, 8)
    # Of the eighths from left to right, fonts have the half at most.
    return "█" * whole + ("▌" if rest >= 4 or (rest and not whole) else "")


def columns_chart(counts: Sequence[int], height: int) -> list[Spans]:
    """Draw bars from the bottom to the top, one column for each count."""
    top = max(counts, default=0)
    eighths = [max(1, round(8 * height * n / top)) if n > 0 else 0 for n in counts]
    return [
        [("".join(EIGHTHS[max(0, min(8, high - 8 * row))] for high in eighths), "bar")]
        for row in reversed(range(height))
    ]


def edge(label: str, sign: str) -> Span:
    """Return the edge of a line of a chart, with a number."""
    return f"{label:>{MARGIN - 2}} {sign}", "dim"


# --- logarithmic axes ---------------------------------------------------------------------------


class LogAxis:
    """Maps nanoseconds to columns or rows, with whole powers of ten at both ends."""

    def __init__(self, least: int, most: int, length: int) -> None:
        least = max(1_000, least)
        self.low = floor(log10(least))
        self.high = max(self.low + 1, ceil(log10(max(least + 1, most))))
        self.length = max(1, length)

    def place(self, value: int) -> int:
        """Return the place of a value, from 0."""
        share = (log10(max(1, value)) - self.low) / (self.high - self.low)
        return max(0, min(self.length - 1, int(share * self.length)))

    def ticks(self) -> list[tuple[int, str]]:
        """Return (place, label) of each power of ten."""
        span = self.high - self.low
        return [
            (min(self.length - 1, round(power * self.length / span)), power_label(self.low + power))
            for power in range(span + 1)
        ]

    def scale(self) -> str:
        """Write the labels in a line, as many as there is room for."""
        text = ""
        for place, label in self.ticks():
            at = min(place, max(0, self.length - len(label)))
            if at >= len(text) + (1 if text else 0):
                text = f"{text:<{at}}{label}"
        return f"{text:<{self.length}}"


def power_label(power: int) -> str:
    """Return 10 to a power, in nanoseconds: `1 µs`, `100 ms`, `10 s`."""
    third = min(3, power // 3)
    return f"{10 ** (power - 3 * third)} {('ns', 'µs', 'ms', 's')[third]}"


MARKS: Final = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))


def histogram(found: Histogram, width: int, height: int) -> list[Spans]:
    """Draw counts over durations, with the percentiles below the axis."""
    if not found.count or found.least is None or found.most is None:
        return [[("nothing was answered", "dim")]]
    inner = max(10, width - MARGIN)
    axis = LogAxis(found.least, found.most, inner)
    counts = [0] * inner
    for bucket, count in found.buckets.items():
        low, high = bounds_of(bucket)
        counts[axis.place((low + high) // 2)] += count
    top = max(counts)
    out = columns_chart(counts, height)
    for index, line in enumerate(out):
        label = f"{top:,}" if not index else "0" if index == height - 1 else ""
        line.insert(0, edge(label, "┤" if label else "│"))
    ruler = ["─"] * inner
    for place, _ in axis.ticks():
        ruler[place] = "┴"
    out.append([(" " * (MARGIN - 1) + "└" + "".join(ruler), "dim")])
    out.append([(" " * MARGIN + axis.scale(), "dim")])
    out.append([(" " * MARGIN, ""), *_percentiles(found, axis)])
    return out


def _percentiles(found: Histogram, axis: LogAxis) -> Spans:
    """Write `^ p50 1.2 ms` below their places on the axis, beside each other where they collide."""
    values = [found.percentile(share) for share, _ in MARKS]
    texts = [
        f"▲ {name} {duration(value)}  " for (_, name), value in zip(MARKS, values, strict=True)
    ]
    places = [axis.place(value or 0) for value in values]
    # Those at the right end push the others to the left.
    end = axis.length + 2
    for index in reversed(range(len(texts))):
        places[index] = max(0, min(places[index], end - len(texts[index])))
        end = places[index]
    out: list[Span] = []
    at = 0
    for text, place in zip(texts, places, strict=True):
        start = max(at, place)
        out += [(" " * (start - at), ""), (text, "label")]
        at = start + len(text)
    return out


# --- over time ----------------------------------------------------------------------------------

USUAL, WAITED, WRONG = 0, 1, 2
MARKED: Final = {USUAL: "", WAITED: "wait", WRONG: "!"}
"""Mark of a point -> its role; of several at one place the highest is drawn."""

SIGNS: Final = {WAITED: "w", WRONG: "!"}
"""Mark of a point -> its sign, as in the list of exchanges; the others are shades."""


def heat(
    times: IntArray, values: IntArray, marks: IntArray, span: tuple[int, int], size: tuple[int, int]
) -> list[Spans]:
    """Draw durations (upwards, logarithmic) over time; the denser, the darker. `size` is width and
    height."""
    import numpy as np

    if not len(times):
        return [[("nothing was answered", "dim")]]
    inner, height = max(10, size[0] - MARGIN), max(1, size[1])
    axis = LogAxis(int(values.min()), int(values.max()), height)
    across = _across(times, span, inner)
    shares = (np.log10(np.maximum(values, 1)) - axis.low) / (axis.high - axis.low)
    upwards = np.clip((shares * height).astype(np.int64), 0, height - 1)
    places = upwards * inner + across
    cells = np.bincount(places, minlength=inner * height)
    worst = np.zeros(inner * height, np.int64)
    np.maximum.at(worst, places, marks)
    top = int(cells.max())
    labels = dict(reversed(axis.ticks()))
    out: list[Spans] = []
    for row in range(height - 1, -1, -1):
        label, part = labels.get(row, ""), slice(row * inner, (row + 1) * inner)
        line: Spans = [edge(label, "┤" if label else "│")]
        counts, roles = cells[part].tolist(), worst[part].tolist()
        for role, run in groupby(range(inner), key=roles.__getitem__):
            signs = "".join(_shade(counts[at], top) for at in run)
            if role in SIGNS:
                signs = "".join(" " if sign == " " else SIGNS[role] for sign in signs)
            line.append((signs, MARKED[role]))
        out.append(line)
    return out


def slices(times: IntArray, span: tuple[int, int], width: int) -> list[int]:
    """Count the times in each of `width` slices of a stretch of time."""
    import numpy as np

    counts: list[int] = np.bincount(_across(times, span, width), minlength=width).tolist()
    return counts


def _across(times: IntArray, span: tuple[int, int], width: int) -> IntArray:
    """Return in which of `width` slices of a stretch of time each time is."""
    first, last = span
    step = max(1, -(-(last - first + 1) // max(1, width)))
    return ((times - first) // step).clip(0, width - 1)


def _shade(count: int, top: int) -> str:
    if not count or top == 1:
        return "▒" if count else " "
    return SHADES[1 + min(4, int(5 * log10(count + 1) / log10(top + 1) - 1e-9))]


def beside(left: Sequence[Spans], right: Sequence[Spans], margin: int) -> list[Spans]:
    """Put two blocks of lines next to each other; the right one begins at `margin`."""
    out: list[Spans] = []
    for begin, end in zip_longest(left, right, fillvalue=()):
        taken = sum(columns_taken(text) for text, _ in begin)
        out.append([*begin, (" " * max(1, margin - taken), ""), *end])
    return out
