"""Segments, sorted by connection, to rows of the tables: one task of the shuffled way. The work is
done by the same functions as in the plain engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.internal import learn_from_log
from kafkascope.analyzer.exchanges.offline import BROKER_LEG
from kafkascope.analyzer.pipeline import state
from kafkascope.analyzer.pipeline.brokers import ENDLESS, Brokers, Watched, sensitive
from kafkascope.analyzer.pipeline.job import Job, Keep
from kafkascope.analyzer.pipeline.keys import Agreed, TaskKeys
from kafkascope.analyzer.pipeline.moments import END, LEFT, Awaited, GivenTurns, Watchful
from kafkascope.analyzer.pipeline.runs import Runs
from kafkascope.analyzer.pipeline.schemas import SentSchemas, sent
from kafkascope.analyzer.pipeline.segments import (
    NAMES,
    STATE,
    SegmentRow,
    name_of,
    packets_of,
    rows_in,
    segments_of,
)
from kafkascope.analyzer.pipeline.segments import SCHEMA as SEGMENTS
from kafkascope.analyzer.pipeline.spread import NEEDED, Pairs
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.collect import TableCollector, TableOptions, Told
from kafkascope.analyzer.pipeline.tables.facts import Facts, dumped
from kafkascope.analyzer.pipeline.tables.numbers import CONNECTION, connection_place
from kafkascope.analyzer.pipeline.tables.schemas import CARRY, FACTS
from kafkascope.captures.formats.remarks import Remark, Remarks
from kafkascope.captures.model import Chunk, Closed, Endpoint, Opened, StreamEvent
from kafkascope.captures.packets.resolved import in_chunk
from kafkascope.captures.packets.tcp import ACK, QUIET_MASK, Segment
from kafkascope.captures.streams.scan import MAX_ODD, run

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Exchange


LEFT_AT_ONCE: Final = 64
"""Carried connections in a batch of rows."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Values that all tasks of a run share."""

    options: TableOptions
    fingerprints: list[bytes]
    """By file."""
    comments: Mapping[tuple[int, int], str]
    """By (file, interface), where there is a comment."""
    remarks: list[tuple[int, list[Remark]]] = field(default_factory=list)
    """Comments of packets, by file."""
    known: Mapping[Endpoint, int] = field(default_factory=dict)
    """Brokers, with the packets that showed it."""
    keep: Keep | None = None
    last_ns: int = 0
    """Time of the latest packet of all."""
    first_packet: int = 1
    spread: bool = False
    """Whether bodies are decoded by other tasks: see `spread`."""
    topics: Mapping[bytes, str] = field(default_factory=dict)
    """Names that are known in advance, for filters and for schemas of topics."""
    keys: Agreed | None = None
    """What TLS is decrypted with."""
    schemas: SentSchemas | None = None
    """What keys and values are decoded with."""

    def comment(self, file: int, interface: int) -> str:
        """Return the comment of an interface; empty without one."""
        return self.comments.get((file, interface), "")


def setting_of(
    job: Job, earlier: Facts | None = None, *, spread: bool = False, keys: Agreed | None = None
) -> Setting:
    """Return the setting of a job, with the facts of an earlier round."""
    earlier = earlier or Facts(job.before.topics)
    schemas = None if job.schemas is None else sent(job.schemas)
    comments = {
        (file.id, each.number): each.comment
        for file in job.files
        for each in file.index.interfaces
        if each.comment
    }
    return Setting(
        job.options,
        job.fingerprints,
        comments,
        [(file.id, file.index.remarks) for file in job.files if file.index.remarks],
        {**job.before.brokers, **earlier.brokers},
        job.keep,
        job.last_ns,
        job.first_packet,
        spread,
        earlier.topics if job.options.filter or (schemas and schemas.assigned) else {},
        keys,
        schemas,
    )


FEW: Final = 16
"""Fewer packets are faster one by one."""


def carried(job: Job) -> pa.RecordBatch:
    """Return the carried states as rows that come before the connections' segments."""
    rows = [(row["flow_id"], STATE, b"", b"", row["carried"]) for row in job.before.carried]
    return record_batch(rows, SEGMENTS)


class Flows:
    """One task: takes rows of segments, sorted by connection and packet; yields rows of tables."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._context = Context(setting.options.decode_as, bodies=not setting.spread)
        self._context.stateful = NEEDED
        self._context.fingerprints = setting.fingerprints
        self._context.names.learn_all(setting.topics)
        self._context.remarks = Remarks(setting.remarks)
        self._brokers = Brokers(setting.known)
        self._context.brokers = self._brokers
        self._keys: TaskKeys | None = None
        if setting.keys is not None:
            self._keys = TaskKeys(setting.keys, lambda: self._brokers.now)
            self._context.keys = self._keys
        self._collector = TableCollector(
            self._context, setting.options, setting.last_ns, schemas=setting.schemas
        )
        self._turns = GivenTurns()
        self._context.turns = self._turns
        self._sensitive: dict[Endpoint, int] = {}
        self._left: list[tuple[Any, ...]] = []
        self._both = setting.options.both_legs
        self._pairs = Pairs(setting.options) if setting.spread else None
        self._runs = Runs()

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Told]:
        """Yield the rows of all tables, and facts at the end."""
        current: int | None = None
        reassembler, conversations = self._begin()
        for batch in batches:
            for row in rows_in(batch):
                if row.first == NAMES:
                    self._collector.named(name_of(row))
                    continue
                if row.flow_id != current:
                    if current is not None:
                        self._end(current, reassembler, conversations)
                        reassembler, conversations = self._begin()
                    current = row.flow_id
                if row.first == STATE:
                    reassembler, conversations = self._resume(bytes(row.payload))
                elif not self._scanned(row, reassembler, conversations):
                    for segment in segments_of(row):
                        self._feed(segment, reassembler, conversations)
            yield from self._collector.ready()
            if self._pairs is not None:
                yield from self._pairs.ready()
            if len(self._left) >= LEFT_AT_ONCE:
                yield self._leave()
        if current is not None:
            self._end(current, reassembler, conversations)
        if self._pairs is not None:
            yield from self._pairs.ready(last=True)
        yield from self._collector.finish()
        yield self._leave()
        yield "facts", record_batch(list(self._told()), FACTS.schema)

    def _resume(self, data: bytes) -> tuple[Watchful, Watched]:
        reassembler, conversations, seen = state.load(data, self._context, self._setting.comment)
        self._collector.resume(seen)
        return reassembler, conversations

    def _leave(self) -> Told:
        batch = record_batch(self._left, CARRY.schema)
        self._left.clear()
        return CARRY.name, batch

    def _keeps(self, reassembler: Watchful) -> bool:
        """Return whether any of these connections may continue in the next batch."""
        keep, last_ns = self._setting.keep, self._setting.last_ns
        if keep is None:
            return False
        for direction in reassembler.flows.values():
            silent = last_ns - direction.connection.last_ns
            if silent <= (keep.linger_ns if direction.state.over else keep.idle_ns):
                return True
        return False

    def _carry(self, key: int, reassembler: Watchful, conversations: Watched) -> None:
        seen = self._collector.suspend()
        places = sorted({direction.connection.number for direction in reassembler.flows.values()})
        places = sorted({*places, *(each.number for each in seen)})
        self._left.append((key, places, [], state.dump(reassembler, conversations, seen)))

    def _begin(self) -> tuple[Watchful, Watched]:
        self._brokers.begin()
        return Watchful(self._setting.comment), Watched(self._context)

    def _feed(self, segment: Segment, reassembler: Watchful, conversations: Watched) -> None:
        self._brokers.now = segment.packet
        reassembler.connections = connection_place(segment.packet)
        for event in reassembler.feed(segment):
            self._brokers.now = segment.packet
            self._happened(event, segment.packet, reassembler, conversations)
        reassembler.late.clear()

    def _scanned(self, row: SegmentRow, reassembler: Watchful, conversations: Watched) -> bool:
        """Process a whole row at once, as `streams.scan` processes blocks; return False (and do
        nothing) when it has to go packet by packet."""
        found = row.packets
        if len(found) < FEW:
            return False
        for flow in row.flows:
            direction = reassembler.flows.get(flow)
            if direction is None or not conversations.settled(direction.connection):
                return False
        plain = (found["flags"] & QUIET_MASK == ACK) & (found["captured"] == found["length"])
        if len(found) - int(plain.sum()) > MAX_ODD * len(found):
            return False
        packets = packets_of(row)
        copies = reassembler.copies.seen_all(
            found["copy"].tolist(), packets.times, found["interface"].tolist(), packets.numbers
        )
        copied = set() if copies is None else {at for at, copy in enumerate(copies) if copy}
        plain[list(copied)] = False

        def closely(index: int) -> Segment:
            segment = packets.segment(index)
            reassembler.connections = connection_place(segment.packet)
            return segment

        marks: list[tuple[int, int]] = []
        own = packets._replace(segment=closely)
        events = run(own, reassembler, plain.tolist(), copied, marks)
        reassembler.packets = packets.numbers[-1]
        later = iter((*marks, (len(events), 0)))
        begin, number = next(later)
        now = row.first
        for count, event in enumerate(events):
            while begin <= count:
                now = number
                begin, number = next(later)
            since = now
            if type(event) is Chunk:
                since = max(now, event.pieces[0].packet)
                now = max(now, event.pieces[-1].packet)
            self._brokers.now = now
            self._happened(event, since, reassembler, conversations)
        self._brokers.now = packets.numbers[-1]
        reassembler.late.clear()
        return True

    def _happened(
        self, event: StreamEvent, packet: int, reassembler: Watchful, conversations: Watched
    ) -> None:
        """Take an event that came with a packet, or with a deadline before it."""
        runs = self._runs
        late = reassembler.late.get(id(event)) if reassembler.late else None
        # In a run each frame belongs to the packet that it begins with.
        if type(event) is Chunk and late is None and event.pieces[0].packet == packet:
            if runs.takes(event):
                return
            self._flush(conversations)
            if conversations.synchronized(event.connection):
                runs.begin(event)
                return
        else:
            self._flush(conversations)
        self._turns.packet, self._turns.late = packet, late
        if late is not None:
            # What others showed before that packet was known.
            self._brokers.now = late.after
        self._take(event, conversations)

    def _flush(self, conversations: Watched) -> None:
        """Process the chunks that were held back."""
        event = self._runs.end()
        if event is not None:
            self._turns.packet, self._turns.late = event.pieces[0].packet, None
            self._take(event, conversations)

    def _take(self, event: StreamEvent, conversations: Watched) -> None:
        if not self._both and event.connection.interface_comment == BROKER_LEG:
            return
        if isinstance(event, Opened | Closed):
            self._collector.saw(event)
        if type(event) is Chunk and not event.offset:
            for each in in_chunk(event):
                self._collector.named(each)
        for exchange in conversations.feed(event):
            self._add(exchange)

    def _add(self, exchange: Exchange) -> None:
        if not self._sent(exchange):
            learn_from_log(exchange, self._context.names)
            self._collector.add(exchange)

    def _sent(self, exchange: Exchange) -> bool:
        """Return whether other tasks make the rows of an exchange."""
        if self._pairs is None or not self._pairs.take(exchange):
            return False
        self._collector.count(exchange)
        return True

    def _end(self, key: int, reassembler: Watchful, conversations: Watched) -> None:
        """Finish connections: all their segments were read."""
        self._flush(conversations)
        if self._keeps(reassembler):
            self._sense(conversations)
            self._carry(key, reassembler, conversations)
            return
        self._brokers.now = ENDLESS
        for event in reassembler.finish(self._setting.last_ns):
            first = event.connection.number - CONNECTION
            self._turns.late = reassembler.late.get(id(event)) or Awaited(END, 0, first)
            self._take(event, conversations)
        self._turns.late = Awaited(LEFT, 0, self._turns.packet)
        for exchange in conversations.finish():
            if not self._sent(exchange):
                self._collector.add(exchange)
        self._collector.settle()
        self._sense(conversations)

    def _sense(self, conversations: Watched) -> None:
        for endpoint, asked in sensitive(conversations, self._brokers, self._context).items():
            self._sensitive[endpoint] = max(asked, self._sensitive.get(endpoint, asked))

    def _told(self) -> Iterator[tuple[str, str]]:
        for endpoint, since in self._brokers.learned.items():
            yield "broker", dumped([*endpoint, since])
        for endpoint, asked in self._sensitive.items():
            yield "sensitive", dumped([*endpoint, asked])
        if self._turns.told:
            yield "late", dumped([[late, *about] for late, about in self._turns.told])
        if self._keys is not None:
            for note in self._keys.notes():
                yield "tls", note
