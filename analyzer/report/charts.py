"""Charts as SVG, drawn here: bars, columns over time, lanes, flows. No script, no font, no address.

Colours are classes of the page's style sheet. Every chart has a title and tooltips; lanes also
differ by letters and pattern, for those who see no colours and for paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from math import log2
from typing import Final, NamedTuple

from kafkascope.analyzer.statistics.journeys.drawing import Graph, GraphEdge, GraphNode
from kafkascope.analyzer.text import cut_within, safe

WIDTH: Final = 900
# Of a label.
LETTERS: Final = 30
# Of a capital.
WIDE: Final = 9
# Of a time below an axis; one that has no room is left out.
CLOCK: Final = 60
LABEL: Final = 200
VALUE: Final = 90
BAR: Final = 20
HEIGHT: Final = 150
LANE: Final = 24
# Width of one, on average.
LETTER: Final = 7
BOX: Final = 240
BOX_HEIGHT: Final = 36
BOX_STEP: Final = 44
BOX_APART: Final = (WIDTH - 2 - BOX) // 2
"""From one column of boxes to the next."""
# Of a line of a flow: bytes of topics differ by millions, so lines grow with their logarithm.
THICKEST: Final = 9.0


class Bar(NamedTuple):
    """A line of a bar chart: parts from left to right, as (class, amount)."""

    label: str
    parts: tuple[tuple[str, float], ...]
    value: str
    """After the bar."""
    title: str
    """When pointed at."""


class ChartColumn(NamedTuple):
    """A column of a chart over time."""

    label: str
    parts: tuple[tuple[str, float], ...]
    """As (class, amount), from the axis up."""
    title: str


class Track(NamedTuple):
    """A lane: one sign for each column of time, as the timeline of groups has them."""

    label: str
    cells: str
    text: str


SIGNS: Final = {
    "J": ("join", "joins"),
    ".": ("wait", "waits for other members"),
    "S": ("sync", "receives its assignment"),
    "=": ("stable", "stable"),
    "l": ("left", "leaves"),
    "x": ("gone", "evicted"),
}
"""Sign of a lane -> its class, and what the member does."""
MARKS: Final = "Jlx"
"""Signs that are written into the lanes."""


def escaped(text: str) -> str:
    """Text as HTML and SVG may have it."""
    return escape(safe(text))


def _svg(width: float, height: float, title: str, inner: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" class="chart">'
        f"<title>{escaped(title)}</title>{''.join(inner)}</svg>"
    )


def _text(x: float, y: float, text: str, kind: str = "", most: int = 0) -> str:
    if most and len(text) > most:
        text = text[: most - 1] + "…"
    return f'<text x="{x:g}" y="{y:g}" class="t {kind}">{escaped(text)}</text>'


def bars(title: str, lines: Sequence[Bar]) -> str:
    """Horizontal bars; the longest one takes all the room."""
    most = max((sum(amount for _, amount in line.parts) for line in lines), default=0) or 1
    # Capitals are wide: names of errors have nothing else.
    wanted = max((WIDE * len(line.label) + 16 for line in lines if line.label.isupper()), default=0)
    label = max(LABEL, min(wanted, WIDE * LETTERS + 16))
    room = WIDTH - label - VALUE
    inner = []
    for index, line in enumerate(lines):
        y, x = index * BAR, float(label)
        inner.append(f"<g><title>{escaped(line.title)}</title>")
        inner.append(_text(label - 8, y + 14, line.label, "end", LETTERS))
        for kind, amount in line.parts:
            width = room * amount / most
            if width > 0:
                inner.append(
                    f'<rect x="{x:.1f}" y="{y + 3}" width="{max(width, 1):.1f}" '
                    f'height="{BAR - 6}" class="{kind}"/>'
                )
            x += width
        inner.append(_text(x + 6, y + 14, line.value, "dim") + "</g>")
    return _svg(WIDTH, len(lines) * BAR + 2, title, inner)


def columns(
    title: str, steps: Sequence[ChartColumn], unit: str = "", legend: Sequence[tuple[str, str]] = ()
) -> str:
    """Amounts over time. `legend`: classes of parts, and what they are."""
    if not steps:
        return ""
    most = max(sum(amount for _, amount in step.parts) for step in steps) or 1
    top, left = 16, 46 + 6 * len(unit)
    room = WIDTH - left
    width = room / len(steps)
    inner = [
        _text(left - 6, top + 4, f"{most:.4g}{unit}", "end dim"),
        _text(left - 6, top + HEIGHT, "0", "end dim"),
        f'<line x1="{left}" y1="{top + HEIGHT}" x2="{WIDTH}" y2="{top + HEIGHT}" class="axis"/>',
        f'<line x1="{left}" y1="{top}" x2="{WIDTH}" y2="{top}" class="grid"/>',
    ]
    for index, step in enumerate(steps):
        x = left + index * width
        y = float(top + HEIGHT)
        inner.append(f"<g><title>{escaped(step.title)}</title>")
        for kind, amount in step.parts:
            height = HEIGHT * amount / most
            y -= height
            if height > 0:
                inner.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" '
                    f'width="{max(width * 0.86, 0.6):.1f}" height="{height:.1f}" class="{kind}"/>'
                )
        inner.append("</g>")
    ticks = max(1, -(-len(steps) // 8))
    for index in range(0, len(steps), ticks):
        x = left + index * width
        if x <= WIDTH - CLOCK:
            inner.append(_text(x, top + HEIGHT + 16, steps[index].label, "dim"))
    bottom = top + HEIGHT + 22
    for index, (kind, text) in enumerate(legend):
        x = left + index * LABEL
        inner.append(f'<rect x="{x}" y="{bottom}" width="12" height="12" class="{kind}"/>')
        inner.append(_text(x + 18, bottom + 11, text, "dim"))
    return _svg(WIDTH, bottom + 18 * bool(legend), title, inner)


def lanes(title: str, tracks: Sequence[Track], ticks: Sequence[tuple[float, str]]) -> str:
    """A lane for each track; `ticks` are (place from 0 to 1, text) of the scale."""
    room = WIDTH - LABEL
    inner = [_text(LABEL + place * room, 12, text, "dim") for place, text in ticks]
    for index, track in enumerate(tracks):
        y = 20 + index * LANE
        inner.append(_text(LABEL - 8, y + 15, track.label, "end", 30))
        each, begin = room / max(1, len(track.cells)), 0
        for sign, run in groupby(track.cells):
            length = len(list(run))
            x, width = LABEL + begin * each, max(length * each, 2.0)
            begin += length
            if sign not in SIGNS:
                continue
            kind, does = SIGNS[sign]
            what = f"{track.label}: {does}" + (f" ({track.text})" if track.text else "")
            inner.append(
                f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{LANE - 8}" '
                f'class="{kind}"><title>{escaped(what)}</title></rect>'
            )
            if sign in MARKS:
                inner.append(_text(x, y + 15, sign, "mark"))
    return _svg(WIDTH, 24 + len(tracks) * LANE, title, inner)


def flow(title: str, graph: Graph) -> str:
    """Applications that write, topics, applications that read, from left to right. An application
    that does both stands on both sides: a chain of any length, and a circle, fit three columns."""
    nodes = {node.id: node for node in graph.nodes}
    topics = [node for node in graph.nodes if node.shape == "topic"]
    row = {node.id: float(index) for index, node in enumerate(topics)}
    sides: list[list[GraphNode]] = []
    for writes in (True, False):
        # An application stands as high as its topics do on average, so that few lines cross.
        rows: dict[str, list[float]] = {}
        for edge in graph.edges:
            if (edge.target in row) == writes:
                ends = (edge.source, edge.target) if writes else (edge.target, edge.source)
                rows.setdefault(ends[0], []).append(row[ends[1]])
        ordered = sorted(rows, key=lambda each: sum(rows[each]) / len(rows[each]))
        sides.append([nodes[each] for each in ordered])
    shown = (sides[0], topics, sides[1])
    height = BOX_STEP * max(map(len, shown), default=0)
    places: list[dict[str, float]] = []
    boxes: list[str] = []
    for index, column in enumerate(shown):
        x, places_of = 1 + index * BOX_APART, {}
        top = 1 + (height - BOX_STEP * len(column)) / 2
        for number, node in enumerate(column):
            places_of[node.id] = y = top + number * BOX_STEP
            boxes.append(_box(node, x, y))
        places.append(places_of)
    most = max((edge.size_bytes for edge in graph.edges), default=0)
    lines = [_line(edge, places, most) for edge in graph.edges]
    return _svg(WIDTH, height, title, [*lines, *boxes])


def _box(node: GraphNode, x: float, y: float) -> str:
    name, *more = node.lines
    room = BOX - 20
    return (
        f"<g><title>{escaped(', '.join(node.lines))}</title>"
        f'<rect x="{x:g}" y="{y:g}" width="{BOX}" height="{BOX_HEIGHT}" class="{node.shape}" '
        f'rx="{0 if node.shape == "application" else BOX_HEIGHT / 2:g}"/>'
        f"{_text(x + 12, y + 15, cut_within(name, room // LETTER))}"
        f"{_text(x + 12, y + 30, ', '.join(more), 'dim', room // LETTER)}</g>"
    )


def _line(edge: GraphEdge, places: Sequence[dict[str, float]], most: int) -> str:
    """Return the line of an edge. `places`: where the boxes of each column are."""
    begin = 0 if edge.target in places[1] else 1
    left, right = (begin + side for side in (0, 1))
    x, end = 1 + left * BOX_APART + BOX, 1 + right * BOX_APART
    y, below = (
        places[column][node] + BOX_HEIGHT / 2
        for column, node in ((left, edge.source), (right, edge.target))
    )
    middle = (x + end) / 2
    width = 1 + (THICKEST - 1) * log2(1 + edge.size_bytes) / log2(2 + most)
    return (
        f'<path d="M{x:g} {y:g}C{middle:g} {y:g} {middle:g} {below:g} {end:g} {below:g}" '
        f'class="{"writes" if begin == 0 else "reads"}" stroke-width="{width:.1f}">'
        f"<title>{escaped(edge.title or edge.label)}</title></path>"
    )
