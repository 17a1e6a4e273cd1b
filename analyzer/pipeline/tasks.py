"""A task: the packets of some connections to rows of all tables. One process takes a whole input as
it reads it, `--follow` and Spark take segments that were brought together by shard (`segments`).

Tasks do not communicate (decision 0036). Numbers, topic names and statistics cross connections:
tasks put them into rows and facts, which are merged when all tasks are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafkascope.analyzer.conversation.context import Context, Endpoints
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.exchanges.internal import FETCH, learn_from_log
from kafkascope.analyzer.exchanges.offline import BROKER_LEG, OpenInput
from kafkascope.analyzer.exchanges.pairs import Item, exchange_of, response_of
from kafkascope.analyzer.pipeline import state
from kafkascope.analyzer.pipeline.job import Job, Keep
from kafkascope.analyzer.pipeline.segments import NAMES, STATE, events_of, name_of, rows_in
from kafkascope.analyzer.pipeline.segments import SCHEMA as SEGMENTS
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.collect import TableCollector, TableOptions
from kafkascope.analyzer.pipeline.tables.facts import SentSchemas, TableFacts, sent
from kafkascope.analyzer.pipeline.tables.numbers import CONNECTION, connection_place
from kafkascope.analyzer.pipeline.tables.schemas import CARRY
from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.remarks import Remark, Remarks
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.limits import CaptureLimits
from kafkascope.captures.model import Chunk, Closed, Opened
from kafkascope.captures.packets.resolved import in_chunk
from kafkascope.captures.streams.reassembly import Reassembler
from kafkascope.captures.streams.streams import Assembly
from kafkascope.captures.tls.sources import KeySources
from kafkascope.extras import installed, require
from kafkascope.kernel.unacknowledged import Unacknowledged

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Exchange
    from kafkascope.captures.inputs.files import Source
    from kafkascope.captures.model import StreamEvent
    from kafkascope.captures.streams.connection import ConnectionState
    from kafkascope.captures.tls.keys.keylog import KeyLog

# States of carried shards in a batch of rows.
CARRIED_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """Values that all tasks of a run share."""

    options: TableOptions
    fingerprints: list[bytes]
    """By file."""
    comments: Mapping[tuple[int, int], str]
    """By (file, interface), where there is a comment."""
    remarks: list[tuple[int, list[Remark]]] = field(default_factory=list)
    """Comments of packets, by file."""
    keep: Keep | None = None
    last_ns: int = 0
    """Time of the latest packet of all."""
    topics: Mapping[bytes, str] = field(default_factory=dict)
    """Names that are known in advance, for filters and for schemas of topics."""
    keys: bytes | None = field(default=None, repr=False)
    """Lines of the key log that TLS is decrypted with."""
    schemas: SentSchemas | None = None
    """Schemas of keys and values."""
    limits: CaptureLimits = CAPTURE_LIMITS

    def comment(self, file: int, interface: int) -> str:
        return self.comments.get((file, interface), "")


def task_config(job: Job, earlier: TableFacts | None = None) -> TaskConfig:
    """Return the configuration of the tasks of a job, with the facts of an earlier round."""
    topics = job.before.topics if earlier is None else earlier.topics
    schemas = None if job.schemas is None else sent(job.schemas)
    comments = {
        (file.id, interface.number): interface.comment
        for file in job.files
        for interface in file.index.interfaces
        if interface.comment
    }
    return TaskConfig(
        job.options,
        [*job.before.fingerprints, *(file.fingerprint for file in job.files)],
        comments,
        [(file.id, file.index.remarks) for file in job.files if file.index.remarks],
        job.keep,
        job.last_ns,
        topics if job.options.filter or (schemas and schemas.assigned) else {},
        _keys_of(job),
        schemas,
        job.limits,
    )


def _keys_of(job: Job) -> bytes | None:
    """Return the lines of a job's key log, with those inside its files; None where there is none,
    or TLS support is not installed."""
    inside = [data for file in job.files for _, data in file.index.secrets]
    if not installed("tls") or (job.keys is None and not inside):
        return None
    from kafkascope.captures.tls.keys.keylog import KeyLog

    log = KeyLog() if job.keys is None else job.keys.copy()
    for data in inside:
        log.add(data)
        log.finish()
    return log.all_lines()


def carried(job: Job) -> pa.RecordBatch:
    """Return the carried states as rows that come before the shards' segments."""
    rows = [(row["flow_id"], STATE, b"", b"", row["carried"]) for row in job.before.carried]
    return record_batch(rows, SEGMENTS)


class Task:
    """Reads connections by `read` or `run`, and puts rows of all tables, at `finish` the last ones
    and the facts."""

    def __init__(self, config: TaskConfig, put: Callable[[str, pa.RecordBatch], None]) -> None:
        self._config, self._put = config, put
        context = self._context = Context(config.options.decode_as)
        context.fingerprints = config.fingerprints
        context.names.learn_all(config.topics)
        context.remarks = Remarks(config.remarks)
        self._log: KeyLog | None = None
        if config.keys is not None:
            require("TLS decryption in a Spark worker")
            from kafkascope.captures.tls.keys.keylog import KeyLog

            self._log = KeyLog()
            self._log.add(config.keys)
            self._log.finish()
        self._collector = TableCollector(
            context, config.options, put, config.last_ns, config.schemas, config.limits
        )
        self._keys = KeySources(self._log)
        self._last_ns = 0
        """Time of the shard's latest packet."""
        self._carried: list[tuple[Any, ...]] = []
        """Rows of shards whose connections continue in the next batch."""
        self._both = config.options.both_legs
        self._begin()

    def read(self, source: Source) -> None:
        """Read all connections of an input, in the order of its packets."""
        take, assembly = self._take, Assembly(source, self._config.limits)
        with suppress(CutShort):  # the index has reported it
            for block in assembly.batches(self._collector.named):
                for events in block:
                    for event in events:
                        take(event)
                    self._settle(assembly.reassembler.time_ns)
        self._end()

    def logs(self, source: Source) -> None:
        """Read request logs of brokers, in the order of time."""
        capture = OpenInput(source, zone=self._config.options.zone)
        capture.context = self._context
        capture.first_file = len(self._context.fingerprints) - len(source.names)
        opened: set[int] = set()
        for exchange in capture.exchanges():
            assert exchange.logged is not None
            connection = exchange.connection
            # The rank within one file is not unique among files; the number is.
            exchange.logged.rank = exchange.number
            if connection.number < CONNECTION:
                connection.number = connection_place(connection.number)
            if connection.number not in opened:
                opened.add(connection.number)
                self._collector.saw(Opened(connection))
            self._add(exchange)
        self._collector.settle()

    def run(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Read shards: rows of segments, sorted by shard and packet."""
        current: int | None = None
        for batch in batches:
            for row in rows_in(batch):
                if row.first == NAMES:
                    self._collector.named(name_of(row))
                    continue
                if row.flow_id != current:
                    if current is not None:
                        self._leave(current)
                        self._begin()
                    current = row.flow_id
                if row.first == STATE:
                    self._resume(bytes(row.payload))
                    continue
                self._last_ns = max(self._last_ns, int(row.packets["time_ns"].max()))
                for event in events_of(row, self._reassembler):
                    self._take(event)
                self._settle(self._last_ns)
        if current is not None:
            self._leave(current)

    def finish(self) -> None:
        if self._carried:
            self._put_carried()
        self._collector.finish()

    def _begin(self) -> None:
        """Begin another shard, without state of those before: which shards share a task depends on
        the number of tasks, and rows must not."""
        context = self._context
        context.brokers, context.zookeepers = Endpoints(), Endpoints()
        context.keys = self._keys = self._keys.next_shard()
        self._conversations = Conversations(context)
        self._reassembler = Reassembler(self._config.comment, limits=self._config.limits)
        self._last_ns = 0
        self._unacknowledged = Unacknowledged(response_of)
        self._complete: list[Item] = []
        """Exchanges whose responses may still be sent again: see `Unacknowledged`."""
        self._reassembler.number_of = connection_place

    def _take(self, event: StreamEvent) -> None:
        connection = event.connection
        if connection.interface_comment == BROKER_LEG and not self._both:
            return
        if type(event) is Chunk:
            if not event.offset:
                for resolved in in_chunk(event):
                    self._collector.named(resolved)
        elif isinstance(event, Opened | Closed) and not connection.forwarded:
            if self._collector.crowded:
                self._settle()
                self._collector.settle_ended()
            self._collector.saw(event)
        self._complete += self._conversations.feed(event)

    def _settle(self, now_ns: int = 0) -> None:
        """Add the exchanges whose responses are acknowledged, or have waited for it long enough at
        a time."""
        complete, self._complete = self._complete, []
        for exchange in self._unacknowledged.passed(complete, now_ns):
            self._add(exchange_of(exchange))

    def _add(self, exchange: Exchange) -> None:
        if exchange.api_key == FETCH:
            learn_from_log(exchange, self._context.names)
        self._collector.add(exchange)

    def _end(self) -> None:
        """End what is still open: no packet follows."""
        self._complete += self._conversations.finish()
        self._add_rest()
        self._collector.settle()

    def _add_rest(self) -> None:
        complete, self._complete = self._complete, []
        for exchange in self._unacknowledged.rest() + complete:
            self._add(exchange_of(exchange))

    def _leave(self, key: int) -> None:
        """Leave a shard: all its segments were read."""
        keep, last_ns = self._config.keep, self._config.last_ns
        if keep is None:
            events = self._reassembler.finish(last_ns)
        else:
            events = self._reassembler.end(partial(_is_over, keep=keep, last_ns=last_ns), last_ns)
        for event in events:
            self._take(event)
        # A shard with a key log is carried on even when all of its connections are over: later ones
        # may resume their TLS sessions.
        idle_ns = -1 if keep is None or self._log is None else keep.idle_ns
        if self._reassembler.flows or last_ns - self._last_ns <= idle_ns:
            self._carry(key)
        else:
            self._end()

    # --- state between batches

    def _carry(self, key: int) -> None:
        self._add_rest()
        open_ = {flow.connection for flow in self._reassembler.flows.values()}
        totals = self._collector.suspend(open_)
        places = sorted({connection.number for connection in open_})
        self._conversations.forget_ended(frozenset(places))
        parts = self._reassembler, self._conversations, self._keys
        data = state.write([*(part.dump() for part in parts), totals, self._last_ns])
        self._carried.append((key, places, [], data))
        if len(self._carried) >= CARRIED_AT_ONCE:
            self._put_carried()

    def _put_carried(self) -> None:
        self._put(CARRY.name, record_batch(self._carried, CARRY.schema))
        self._carried.clear()

    def _resume(self, data: bytes) -> None:
        packets, conversations, keys, totals, self._last_ns = state.read(data)
        self._reassembler.load(packets)
        self._keys.load(keys)
        self._conversations.load(conversations)
        self._collector.resume(totals)


def _is_over(connection: ConnectionState, *, keep: Keep, last_ns: int) -> bool:
    """Return whether no packet of a connection is expected in the next batch."""
    silent_ns = last_ns - connection.connection.last_ns
    return silent_ns > (keep.linger_ns if connection.over else keep.idle_ns)
