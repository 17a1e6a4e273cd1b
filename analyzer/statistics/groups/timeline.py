"""A group's story as lanes of text: one per member, time from left to right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.render.layout import GAP
from kafkascope.analyzer.render.times import shortened
from kafkascope.analyzer.statistics.groups.model import Member, Story
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import middle
from kafkascope.analyzer.text import columns_taken, cut, packed, padded, safe, wrapped

# Columns of a lane that has a text beside it.
MIN_LANE: Final = 48
INDENT: Final = "    "
# Columns of the lanes in a pipe.
LANE_WIDTH: Final = 72
# Columns between two times of the scale.
TICK: Final = 13
# Time between these two below which milliseconds matter.
SHORT_NS: Final = 1_500_000_000

RANK: Final = {" ": 0, "=": 1, ".": 2, "S": 3, "J": 4, "l": 5, "x": 6}
"""Which sign wins where two fall on one column."""

LEGEND: Final = "J join   . waits   S sync   = stable   l left   x evicted"


class Lane(NamedTuple):
    """The life of a member: its name, a sign for each column of time, how it ended."""

    label: str
    cells: str
    text: str


def timeline(
    story: Story, width: int, clock: Callable[[int], str], terminal: int | None = None
) -> list[str]:
    """Return the timeline of a group as lines of text; `clock` writes a time, `width` is that of
    the lanes. How a member ended is below its lane where a `terminal` has no room beside it."""
    scale = Scale(story.first_ns, story.last_ns, width)
    shown = lanes_of(story, scale)
    margin = _margin(story)
    below = terminal is not None and margin + 1 + width + len(GAP) + _notes(story) > terminal
    lines = [title_of(story), (" " * (margin + 1) + scale.ticks(clock)).rstrip()]
    for lane in shown:
        text = "" if below else lane.text
        lines.append(f" {padded(lane.label, margin)}{lane.cells}{GAP}{text}".rstrip())
        if terminal is not None and below:
            lines += wrapped(lane.text, terminal, indent=INDENT)
    if len(story.members) > len(shown):
        lines.append(f" {len(story.members) - len(shown)} earlier members omitted")
    lines.append(f" {LEGEND}")
    return lines


def printed_timeline(story: Story, clock: Callable[[int], str], terminal: int | None) -> list[str]:
    """Return the timeline of a group as lines that a `terminal` does not break; None: in a pipe."""
    width = LANE_WIDTH if terminal is None else lane_width(story, terminal)
    clock = scale_clock(clock, story.last_ns - story.first_ns, width)
    title, *lanes = timeline(story, width, clock, terminal)
    if terminal is None:
        return [title, *lanes]
    parts = [f"{part}  " for part in title.split("   ")]  # `packed` puts a third blank between
    head = [line.rstrip() for line in packed(parts, terminal + 2, hanging="  ")]
    return [cut(line, terminal) for line in (*head, *lanes)]


def scale_clock(clock: Callable[[int], str], span_ns: int, width: int) -> Callable[[int], str]:
    """Return a clock for a scale of `width` columns, without milliseconds where these do not
    matter."""
    return shortened(clock, short=span_ns * TICK < SHORT_NS * width)


def lane_width(story: Story, terminal: int) -> int:
    """Return the width of lanes on a terminal: beside them is how members ended, unless they were
    too short then."""
    room = terminal - _margin(story) - 1
    beside = room - len(GAP) - _notes(story)
    return beside if beside >= MIN_LANE else room


def _margin(story: Story) -> int:
    labels = (_label(*numbered) for numbered in _shown(story))
    return max(map(columns_taken, labels), default=0) + 1


def _notes(story: Story) -> int:
    return max((columns_taken(safe(member.text)) for _, member in _shown(story)), default=0)


def _shown(story: Story) -> list[tuple[int, Member]]:
    """Return the members that have a lane, with their numbers: of too many the latest ones."""
    return list(enumerate(story.members, 1))[-LIMITS.lanes :]


def lanes_of(story: Story, scale: Scale) -> list[Lane]:
    return [
        Lane(_label(index, member), scale.lane(member), safe(member.text))
        for index, member in _shown(story)
    ]


def title_of(story: Story) -> str:
    """Return the group in a line: protocol, generations, how often it rebalanced."""
    words = [f"group {safe(story.group)}", f"{story.protocol or 'unknown'} protocol"]
    if story.generations:
        noun = "epoch" if "classic" not in story.protocol else "generation"
        words.append(f"{noun} {story.generations}")
    count = len(story.rebalances)
    noun = "rebalance" if count == 1 else "rebalances"
    words.append(f"{count} {noun} in {duration(story.last_ns - story.first_ns)}")
    spent = [each.duration_ns for each in story.rebalances if each.duration_ns is not None]
    if spent:
        words.append(f"median {duration(middle(spent))}")
    return "   ".join(words)


def _label(index: int, member: Member) -> str:
    name = member.label
    if member.host and member.host != name:
        name = f"{name} {member.host}"
    return cut(safe(f"c{index} {name}"), LIMITS.lane_columns)


class Scale:
    """Times to columns."""

    def __init__(self, first_ns: int, last_ns: int, width: int) -> None:
        self.first_ns = first_ns
        self.last_ns = last_ns
        self.width = max(10, width)
        self.step_ns = max(1, -(-(last_ns - first_ns + 1) // self.width))

    def column(self, time_ns: int) -> int:
        """Return the column of a time; those outside are at the ends."""
        return min(self.width - 1, max(0, (time_ns - self.first_ns) // self.step_ns))

    def ticks(self, clock: Callable[[int], str]) -> str:
        text = ""
        for column in range(0, self.width, TICK):
            mark = clock(self.first_ns + column * self.step_ns)[: TICK - 1]
            if not column or column + len(mark) <= self.width:
                text = f"{text:<{column}}"[:column] + mark
        return text

    def lane(self, member: Member) -> str:
        cells = [" "] * self.width
        for begin_ns, end_ns, sign in member.marks:
            if end_ns < self.first_ns or begin_ns > self.last_ns:
                continue  # the scale may be of a part
            begin, end = self.column(begin_ns), self.column(end_ns)
            for column in range(begin, end + 1):
                # A join that takes long is a J, and then dots.
                drawn = sign if sign == "=" or column == begin else "."
                if RANK[drawn] > RANK[cells[column]]:
                    cells[column] = drawn
        return "".join(cells)
