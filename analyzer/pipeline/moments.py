"""When exchanges get their numbers: one process gives them as it reads, and a task has only some of
the connections.

Most get theirs with a packet of their own connection, and its number tells the order. Where bytes
are missing, a deadline in capture time ends the wait, and the next packet of that time, whosever
it is, delivers what comes behind them. A task does not see that packet; so it reports the deadline
(`Awaited`), the packets' times are asked for it (`Questions`), and `Order` tells the turns then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafkascope.analyzer.pipeline.segments import PACKET
from kafkascope.analyzer.pipeline.tables.numbers import (
    LAST_PACKET,
    LATE,
    turn,
)
from kafkascope.captures.streams.connection import Comment
from kafkascope.captures.streams.deadlines import NEVER
from kafkascope.captures.streams.delivery import Out
from kafkascope.captures.streams.reassembly import (
    REORDER_WINDOW_NS,
    REORDER_WINDOW_PACKETS,
    Reassembler,
)

END: Final = NEVER - 2
"""In place of a deadline: when reading ends, connection by connection."""
LEFT: Final = NEVER - 1
"""Behind that: what no end of a connection completed."""
UNTIL: Final = END - 1
"""The last deadline in time."""
ASKED: Final = pa.schema([("question", pa.int64()), ("packet", pa.int64())])


class Awaited(NamedTuple):
    """What a deadline delivered."""

    deadline_ns: int
    after: int
    """The first packet that could have delivered it."""
    own: int
    """The last packet of its own connection before; what ends with the input: its first one."""


class Watchful(Reassembler):
    """Reassembly that tells which events came with a deadline."""

    def __init__(self, comment_of: Comment) -> None:
        super().__init__(comment_of)
        self.late: dict[int, Awaited] = {}
        """By the identity of an event."""
        self._after: dict[int, int] = {}
        """By connection: a later deadline is not earlier."""

    def check(self, time_ns: int, out: Out) -> None:
        """Look at the gaps whose deadline has come, one deadline after the other."""
        while (now_ns := self.deadlines.wake_ns) <= time_ns and now_ns < NEVER:
            due = self._due(now_ns)
            begin = len(out)
            super().check(now_ns, out)
            for event in out[begin:]:
                if id(event.connection) in due:
                    self.late[id(event)] = due[id(event.connection)]
            if self.deadlines.wake_ns <= now_ns:
                # Too early: few packets came since.
                super().check(time_ns, out)
                return

    def _due(self, now_ns: int) -> dict[int, Awaited]:
        """Return what a deadline means for connections, by their identity."""
        due: dict[int, Awaited] = {}
        for each in self.flows.values():
            if each.queued_ns is None or each.deadline_ns > now_ns:
                continue
            own = each.state.packet
            after = own + 1
            for side in (each, each.other):
                # Where one direction waits for packets, the other one waits with it.
                since = side.gap_since_ns
                if since is not None and since + REORDER_WINDOW_NS <= now_ns:
                    after = max(after, side.gap_since_packet + REORDER_WINDOW_PACKETS)
            number = each.connection.number
            after = self._after[number] = max(after, self._after.get(number, 0))
            due[id(each.connection)] = Awaited(min(now_ns, UNTIL), after, own)
        return due


class GivenTurns:
    """Gives the turns of exchanges; stands in for the counter of `Context`."""

    def __init__(self) -> None:
        self.packet = 0
        """Packet that the current event came with; frames in it may begin with later ones."""
        self.late: Awaited | None = None
        """In its place, where there is none."""
        self.told: list[tuple[int, Awaited]] = []
        """Awaited turns, with what they came with."""
        self._counted = self._late_counted = (0, 0)
        """(packet, number of turns)"""

    def next(self, packet: int) -> int:
        """Return the turn of an exchange whose first byte came with a packet."""
        if self.late is None:
            packet = max(packet, self.packet)
            last, count = self._counted
            count = count + 1 if packet == last else 0
            self._counted = (packet, count)
            return turn(packet, count)
        packet = self.late.own
        last, count = self._late_counted
        count = count + 1 if packet == last else 0
        self._late_counted = (packet, count)
        late = turn(packet, LATE + count)
        self.told.append((late, self.late))
        return late

    def back(self, number: int) -> int | None:
        """Take a turn back: nobody counts them."""
        return None


class Questions:
    """Deadlines, and the first packets that came behind them."""

    def __init__(self, late: Iterable[Awaited]) -> None:
        self.questions = sorted(
            {(each.deadline_ns, each.after) for each in late if each.deadline_ns < END}
        )
        self._deadlines = np.array([each[0] for each in self.questions], np.int64)
        self._after = np.array([each[1] for each in self.questions], np.int64)

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the answers that rows of segments give; a later part may give earlier ones to the
        same questions."""
        found = np.full(len(self.questions), LAST_PACKET, np.int64)
        for batch in batches:
            self._look(batch, found)
        known = np.flatnonzero(found < LAST_PACKET)
        yield pa.RecordBatch.from_arrays([pa.array(known), pa.array(found[known])], schema=ASKED)

    def _look(self, batch: pa.RecordBatch, found: Any) -> None:
        """Answer the questions that the packets of a batch answer before those already found."""
        data = batch.column(batch.schema.get_field_index("packets"))
        packets = np.concatenate(
            [np.zeros(0, PACKET), *(np.frombuffer(each.as_buffer(), PACKET) for each in data)]
        )
        if not len(packets):
            return
        packets = packets[np.argsort(packets["packet"])]
        numbers, times = packets["packet"], packets["time_ns"]
        most = np.maximum.accumulate(times)
        open_ = np.flatnonzero(
            (self._after <= numbers[-1]) & (found > numbers[0]) & (self._deadlines <= most[-1])
        )
        begins = np.searchsorted(numbers, self._after[open_])
        for question, begin in zip(open_.tolist(), begins.tolist(), strict=True):
            deadline = self._deadlines[question]
            at = int(np.searchsorted(most, deadline))
            if at < begin:
                later = np.flatnonzero(times[begin:] >= deadline)
                if not len(later):
                    continue
                at = begin + int(later[0])
            found[question] = min(found[question], numbers[at])


class Order:
    """Turns in the order in which one process would have given numbers."""

    def __init__(self, late: Iterable[tuple[int, Awaited]] = (), answers: Any = ()) -> None:
        """`answers`: (question, packet), of the questions that `Questions` makes of them."""
        late = list(late)
        found: dict[int, int] = {}
        for question, packet in answers:
            found[question] = min(packet, found.get(question, packet))
        known = {
            asked: found.get(number, LAST_PACKET)
            for number, asked in enumerate(Questions(each for _, each in late).questions)
        }
        ordered = sorted(
            (known.get(each[:2], LAST_PACKET), each.deadline_ns, each.own, at) for at, each in late
        )
        self._turns: dict[int, int] = {}
        last = count = 0
        for packet, *_, at in ordered:
            count = count + 1 if packet == last else 0
            last = packet
            # Behind all that came with the packet before it.
            self._turns[at] = turn(packet - 1, LATE + count)

    def __bool__(self) -> bool:
        return bool(self._turns)

    def of(self, late: int) -> int:
        """Return where a turn belongs."""
        return self._turns.get(late, late)

    def of_all(self, turns: Any) -> Any:
        """Return the same of an array."""
        late = np.flatnonzero(turns & LATE)
        if not self._turns or not len(late):
            return turns
        turns = turns.copy()
        turns[late] = [self.of(late) for late in turns[late].tolist()]
        return turns
