"""The timeline of a group as coloured lanes above the list of its rebalances."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Final

from kafkascope.analyzer.statistics.groups.model import Rebalance, Story
from kafkascope.analyzer.statistics.groups.timeline import Scale, lanes_of, title_of
from kafkascope.analyzer.text import columns_taken, cut, padded
from kafkascope.tui.screens.sheet import Spans

ROLES: Final = {"=": "bar", ".": "dim", "J": "?", "S": "label", "x": "!", "l": "dim"}
SIGNS: Final = str.maketrans({"=": "━", ".": "·"})
"""Signs of the printed timeline -> signs for screens with more than ASCII."""
NOTE: Final = 34
"""Columns for how a member ended, beside the lanes."""
LEAST: Final = 24
WORDS: Final = (
    ("J", "join"),
    (".", "waiting"),
    ("S", "sync"),
    ("=", "stable"),
    ("l", "left"),
    ("x", "evicted"),
)


def lanes(
    story: Story,
    width: int,
    clock: Callable[[int], str],
    *,
    shown: Rebalance | None = None,
    zoomed: bool = False,
    so_far: bool = False,
) -> list[Spans]:
    """Draw title, scale, a lane per member and legend, with a pointer at the rebalance `shown`.
    `zoomed`: only what is around that; `so_far`: more may come."""
    first, last = story.first_ns, story.last_ns
    if zoomed and shown is not None:
        first, last = around(shown, first, last)
    labels = [lane.label for lane in lanes_of(story, Scale(first, last, 10))]
    margin = min(max(map(columns_taken, labels), default=0) + 1, max(10, width // 4))
    noted = width - margin - NOTE >= 2 * LEAST
    size = max(10, width - margin - 3 - (NOTE if noted else 0))
    scale = Scale(first, last, size)
    more = "   so far" if so_far else ""
    out: list[Spans] = [[(f" {title_of(story)}{more}", "header")]]
    out.append([(f" {'':{margin}}{scale.ticks(clock)}".rstrip(), "dim")])
    if shown is not None:
        out.append(_pointer(shown, scale, margin))
    for lane in lanes_of(story, scale):
        line: Spans = [(f" {padded(cut(lane.label, margin - 1), margin)}", "")]
        for sign, run in groupby(lane.cells):
            line.append((sign.translate(SIGNS) * len(list(run)), ROLES.get(sign, "")))
        if noted:
            # A member that fell silent gets a colour.
            line.append((f"  {lane.text}", "!" if "x" in lane.cells else "dim"))
        out.append(line)
    hidden = len(story.members) - len(labels)
    if hidden:
        out.append([(f" {hidden} earlier members omitted", "dim")])
    legend: Spans = [(" ", "")]
    for sign, text in WORDS:
        legend += [(sign.translate(SIGNS), ROLES[sign]), (f" {text}   ", "dim")]
    return [*out, legend]


def around(shown: Rebalance, first: int, last: int) -> tuple[int, int]:
    """Return a stretch of time that shows a rebalance and what came before and after."""
    end = shown.end_ns or shown.begin_ns
    room = max(1_000_000_000, 2 * (end - shown.begin_ns))
    return max(first, shown.begin_ns - room), min(last, end + room)


def _pointer(shown: Rebalance, scale: Scale, margin: int) -> Spans:
    begin = scale.column(shown.begin_ns)
    end = scale.column(shown.end_ns or shown.begin_ns)
    text = "▼" if begin == end else f"▼{'─' * (end - begin - 1)}▼"
    return [(f" {'':{margin}}{'':{begin}}", ""), (text, "mark")]
