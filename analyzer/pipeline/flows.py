"""Segments that come connection by connection -> rows of the tables. One task of the shuffled way;
the functions that do the work are those of the plain one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analyzer.context import Context
from analyzer.internal import learn_from_log
from analyzer.offline import BROKER_LEG
from analyzer.pipeline import state
from analyzer.pipeline.arrow import record_batch
from analyzer.pipeline.brokers import ENDLESS, Brokers, Watched, sensitive
from analyzer.pipeline.collect import Collector, Options, Told
from analyzer.pipeline.facts import dumped
from analyzer.pipeline.job import Job, Keep
from analyzer.pipeline.numbers import connection_place
from analyzer.pipeline.runs import Runs
from analyzer.pipeline.schemas import CARRY, FACTS
from analyzer.pipeline.segments import SCHEMA as SEGMENTS
from analyzer.pipeline.segments import segments_in
from analyzer.pipeline.spread import NEEDED, Pairs
from captures.model import Chunk, Closed, Endpoint, Opened, StreamEvent
from captures.reassembly import Reassembler
from captures.tcp import Segment

if TYPE_CHECKING:
    from analyzer.model import Exchange


MOST_PER_PACKET: Final = 1 << 16
"""Requests that begin in one packet: more do not fit."""
LEFT_AT_ONCE: Final = 64
"""Carried connections in a batch of rows."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all tasks of a run know."""

    options: Options
    fingerprints: list[bytes]
    """By file."""
    comments: Mapping[tuple[int, int], str]
    """Of (file, interface), where there is one."""
    known: Mapping[Endpoint, int] = field(default_factory=dict)
    """Brokers, with the packets that told."""
    keep: Keep | None = None
    last_ns: int = 0
    """The latest packet of all."""
    first_packet: int = 1
    spread: bool = False
    """Bodies are decoded by other tasks: see `spread`."""


def setting_of(
    job: Job, known: Mapping[Endpoint, int] | None = None, *, spread: bool = False
) -> Setting:
    """The setting of a job."""
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
        {**job.before.brokers, **(known or {})},
        job.keep,
        job.last_ns,
        job.first_packet,
        spread,
    )


STATE: Final = -1
"""In the place of flags: the payload is the state that the batch before left."""


def carried(job: Job) -> pa.RecordBatch:
    """What was carried, as rows that come in front of the connections' segments."""
    rows = [
        (row["flow_id"], -1, 0, 0, 0, b"", 0, 0, STATE, row["carried"], 0, 0, 0)
        for row in job.before.carried
    ]
    return record_batch(rows, SEGMENTS)


class Flows:
    """One task: rows of segments, sorted by connection and packet, in; rows of tables out."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._context = Context(setting.options.decode_as, bodies=not setting.spread)
        self._context.stateful = NEEDED
        self._context.fingerprints = setting.fingerprints
        self._brokers = Brokers(setting.known)
        self._context.brokers = self._brokers
        self._collector = Collector(self._context, setting.options)
        # Numbers order requests within a connection: those of later batches are higher.
        self._context.numbers = setting.first_packet * MOST_PER_PACKET
        self._sensitive: dict[Endpoint, int] = {}
        self._left: list[tuple[Any, ...]] = []
        self._both = setting.options.both_legs
        self._pairs = Pairs(setting.options) if setting.spread else None
        self._runs = Runs()

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Told]:
        """The rows of all tables, and facts at the end."""
        current: int | None = None
        reassembler, conversations = self._begin()
        for batch in batches:
            keys, found = segments_in(batch)
            for key, segment in zip(keys, found, strict=True):
                if key != current:
                    if current is not None:
                        self._end(current, reassembler, conversations)
                        reassembler, conversations = self._begin()
                    current = key
                if segment.flags == STATE:
                    reassembler, conversations = self._resume(bytes(segment.payload))
                    continue
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

    def _resume(self, data: bytes) -> tuple[Reassembler, Watched]:
        reassembler, conversations, seen = state.load(data, self._context, (self._comment,))
        self._collector.resume(seen)
        return reassembler, conversations

    def _leave(self) -> Told:
        batch = record_batch(self._left, CARRY.schema)
        self._left.clear()
        return CARRY.name, batch

    def _keeps(self, reassembler: Reassembler) -> bool:
        """Whether any of these connections may go on in the next batch."""
        keep, last_ns = self._setting.keep, self._setting.last_ns
        if keep is None:
            return False
        for half in reassembler.flows.values():
            silent = last_ns - half.connection.last_ns
            if silent <= (keep.linger_ns if half.track.over else keep.idle_ns):
                return True
        return False

    def _carry(self, key: int, reassembler: Reassembler, conversations: Watched) -> None:
        conversations.decisions.clear()
        reassembler.copies.forget()
        seen = self._collector.suspend()
        places = sorted({half.connection.number for half in reassembler.flows.values()})
        places = sorted({*places, *(each.number for each in seen)})
        roots = [reassembler, conversations, list(seen.items())]
        left = state.dump(roots, self._context, (self._comment,))
        self._left.append((key, places, [], left))

    def _comment(self, file: int, interface: int) -> str:
        return self._setting.comments.get((file, interface), "")

    def _begin(self) -> tuple[Reassembler, Watched]:
        self._brokers.begin()
        return Reassembler(self._comment), Watched(self._context)

    def _feed(self, segment: Segment, reassembler: Reassembler, conversations: Watched) -> None:
        self._brokers.now = segment.packet
        reassembler.connections = connection_place(segment.packet)
        runs = self._runs
        for event in reassembler.feed(segment):
            if type(event) is Chunk:
                if runs.takes(event):
                    continue
                self._flush(conversations)
                if conversations.steady(event.connection):
                    runs.begin(event)
                    continue
            else:
                self._flush(conversations)
            self._take(event, conversations)

    def _flush(self, conversations: Watched) -> None:
        """The chunks that were held back."""
        event = self._runs.end()
        if event is not None:
            self._take(event, conversations)

    def _take(self, event: StreamEvent, conversations: Watched) -> None:
        if not self._both and event.connection.interface_comment == BROKER_LEG:
            return
        if isinstance(event, Opened | Closed):
            self._collector.saw(event)
        for exchange in conversations.feed(event):
            self._add(exchange)

    def _add(self, exchange: Exchange) -> None:
        if not self._sent(exchange):
            learn_from_log(exchange, self._context.names)
            self._collector.add(exchange)

    def _sent(self, exchange: Exchange) -> bool:
        """Whether other tasks make the rows of it."""
        if self._pairs is None or not self._pairs.take(exchange):
            return False
        self._collector.count(exchange)
        return True

    def _end(self, key: int, reassembler: Reassembler, conversations: Watched) -> None:
        """All segments of these connections were seen."""
        self._flush(conversations)
        if self._keeps(reassembler):
            self._sense(conversations)
            self._carry(key, reassembler, conversations)
            return
        self._brokers.now = ENDLESS
        for event in reassembler.finish():
            self._take(event, conversations)
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
