"""A group's story as lanes of text: one per member, time from left to right."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Final

from analyzer.render_cells import duration
from analyzer.statistics.group_model import Member, Story

MAX_LABEL: Final = 24
MAX_LANES: Final = 60
TICK: Final = 13
"""Columns between two times of the scale."""

RANK: Final = {" ": 0, "=": 1, ".": 2, "S": 3, "J": 4, "l": 5, "x": 6}
"""Which sign wins where two fall on one column."""

LEGEND: Final = "J join   . waits   S sync   = stable   l left   x gone silent"


def timeline(story: Story, width: int, clock: Callable[[int], str]) -> list[str]:
    """Lines of text; `clock` writes a time, `width` is that of the lanes."""
    shown = story.members[-MAX_LANES:]
    labels = [_label(index, member) for index, member in enumerate(story.members, 1)]
    labels = labels[-len(shown) :] if shown else []
    margin = max((len(label) for label in labels), default=0) + 1
    scale = _Scale(story.first_ns, story.last_ns, width)
    lines = [_title(story), (" " * (margin + 1) + scale.ticks(clock)).rstrip()]
    for label, member in zip(labels, shown, strict=True):
        lane = scale.lane(member)
        lines.append(f" {label:<{margin}}{lane}  {member.text}".rstrip())
    if len(story.members) > len(shown):
        lines.append(f" {len(story.members) - len(shown)} earlier members are left out")
    lines.append(f" {LEGEND}")
    return lines


def _title(story: Story) -> str:
    words = [f"group {story.group}", f"{story.protocol or 'unknown'} protocol"]
    if story.generations:
        noun = "epoch" if "classic" not in story.protocol else "generation"
        words.append(f"{noun} {story.generations}")
    count = len(story.rebalances)
    noun = "rebalance" if count == 1 else "rebalances"
    words.append(f"{count} {noun} in {duration(story.last_ns - story.first_ns)}")
    spent = [each.duration_ns for each in story.rebalances if each.duration_ns is not None]
    if spent:
        words.append(f"median {duration(int(median(spent)))}")
    return "   ".join(words)


def _label(index: int, member: Member) -> str:
    name = member.label
    if member.host and member.host != name:
        name = f"{name} {member.host}"
    text = f"c{index} {name}"
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


class _Scale:
    """Times to columns."""

    def __init__(self, first_ns: int, last_ns: int, width: int) -> None:
        self.first_ns = first_ns
        self.width = max(10, width)
        self.step_ns = max(1, -(-(last_ns - first_ns + 1) // self.width))

    def column(self, time_ns: int) -> int:
        return min(self.width - 1, max(0, (time_ns - self.first_ns) // self.step_ns))

    def ticks(self, clock: Callable[[int], str]) -> str:
        text = ""
        for column in range(0, self.width, TICK):
            mark = clock(self.first_ns + column * self.step_ns)
            text = f"{text:<{column}}"[:column] + mark[: TICK - 1]
        return text

    def lane(self, member: Member) -> str:
        cells = [" "] * self.width
        for begin_ns, end_ns, sign in member.marks:
            begin, end = self.column(begin_ns), self.column(end_ns)
            for column in range(begin, end + 1):
                # A join that takes long is a J, and then dots.
                drawn = sign if sign == "=" or column == begin else "."
                if RANK[drawn] > RANK[cells[column]]:
                    cells[column] = drawn
        return "".join(cells)
