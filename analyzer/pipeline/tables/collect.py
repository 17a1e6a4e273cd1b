"""Collection of rows: takes exchanges and yields batches of rows of all tables. State of one task,
without I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.exchanges.records import fields_of
from kafkascope.analyzer.exchanges.rows import Row, nameless_topics, renamed, row_of
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.pipeline.tables import values
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.buffers import RowBuffer, is_much
from kafkascope.analyzer.pipeline.tables.facts import Facts
from kafkascope.analyzer.pipeline.tables.numbers import exchange_place
from kafkascope.analyzer.pipeline.tables.schemas import (
    COLLECTED,
    FACTS,
    ON_REQUEST,
    UNWANTED,
)
from kafkascope.analyzer.ranks import bounded
from kafkascope.analyzer.statistics.connections import silent_phase, state_of
from kafkascope.analyzer.statistics.feed import Feed
from kafkascope.analyzer.statistics.histogram import bounds_of, bucket_of
from kafkascope.captures.model import Closed, Opened, Resolved
from kafkascope.captures.streams.reassembly import MAX_CONNECTIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.exchanges.records import Chosen
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.filter.backends.records import RecordFilter
    from kafkascope.analyzer.filter.language import Filter
    from kafkascope.analyzer.pipeline.schemas import SentSchemas
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.captures.model import Connection, Tls

ROWS: Final = 4096
"""Rows per batch."""
CELLS: Final = 16_384
"""Cells of histograms that are kept before they are yielded."""
HOUR_NS: Final = 3_600_000_000_000
ENDED: Final = MAX_CONNECTIONS + MAX_CONNECTIONS // 4
"""Connections that ended, before rows are made for the oldest: packets can only follow for as many
as reassembly tracks."""
CLIENT_IDS: Final = 16
"""Client ids kept per connection; more indicate a gateway, not clients."""

Told: TypeAlias = "tuple[str, pa.RecordBatch]"
"""A table's name and some of its rows."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options that change the rows."""

    decode_as: tuple[int, ...] = ()
    both_legs: bool = False
    full: bool = False
    """Whether rows include the bodies as JSON."""
    records: bool = False
    frames: bool = False
    segments: bool = False
    filter: str = ""
    """Only exchanges that match are counted and make rows, of their records those that match; see
    `filter.places.IN_TASKS`."""

    def makes(self, table: str) -> bool:
        """Return whether a table is made."""
        return table not in ON_REQUEST or bool(getattr(self, table))

    def to_json(self) -> dict[str, Any]:
        """Return the options for manifests and for the name of a batch; without a filter they are
        the same as before filters existed."""
        found = asdict(self)
        return found if self.filter else {k: v for k, v in found.items() if k != "filter"}


@dataclass(slots=True)
class ConnectionTotals:
    """Totals of a connection, besides those of reassembly."""

    exchanges: int = 0
    unanswered: int = 0
    client: int = 0
    client_ids: tuple[str, ...] = ()
    software: str = ""
    user: str = ""
    mechanism: str = ""
    closed: tuple[int, int, str] | None = None


class TableCollector:
    """Takes exchanges by `add` and connections by `saw`; yields full batches by `ready` and the
    others by `finish`. `add` is `count` and `tell`, which may run in different tasks."""

    def __init__(
        self,
        context: Context,
        options: TableOptions,
        last_ns: int = 0,
        put: Callable[[Told], None] | None = None,
        schemas: SentSchemas | None = None,
    ) -> None:
        """`last_ns`: time of the latest packet of all. `put` takes batches that are full before an
        exchange is complete; without it they wait for `ready`. `schemas`: what keys and values are
        decoded with."""
        self._context = context
        self._options = options
        self._last_ns = last_ns
        self.facts = Facts(schemas=schemas)
        # Schemas that the user gave to topics are found by the names of these.
        self._names = context.names if schemas and schemas.assigned else values.UNNAMED
        self._feed = Feed(self.facts.statistics.values())
        self._saws = [each.saw for each in self.facts.statistics.values() if hasattr(each, "saw")]
        self._nameds = [
            each.named for each in self.facts.statistics.values() if hasattr(each, "named")
        ]
        self._wanted, self._by_name = _filter_of(options.filter)
        self._choice = _choice_of(options, lambda: context.names)
        self._whole: list[Callable[[Row, Exchange], None]] = []
        """What takes all exchanges, whether they are wanted or not."""
        if self._wanted is not None:
            # A filter chooses exchanges, so beginnings and ends of connections do not count.
            whole = self.facts.whole()
            self._whole, self._saws = [whole.add], [whole.saw]
            self._nameds.append(whole.named)
        self._buffers = {
            each.name: RowBuffer(each.schema) for each in (*COLLECTED.values(), UNWANTED)
        }
        self._done: list[Told] = []
        self._put = put or self._done.append
        self._seen: dict[Connection, ConnectionTotals] = {}
        self._ended: list[Connection] = []
        """Those that ended; packets may follow."""
        self._forgotten: list[Connection] = []
        """Those that reassembly has ended: no packet follows."""
        self._cells: dict[tuple[Any, ...], list[int]] = {}
        self._cell_bytes = 0
        """Of the names in them."""

    def saw(self, event: Opened | Closed) -> None:
        """Record that a connection begins or ends."""
        if len(self._ended) >= ENDED or len(self._forgotten) >= ROWS:
            # Before this event is taken: what it ends may still have exchanges that wait.
            self._settle_ended()
        seen = self._connection(event.connection)
        if isinstance(event, Closed) and event.how != "end":
            side = -1 if event.direction is None else event.direction
            here = (event.time_ns, side, event.how)
            over = event.how != "fin" or seen.closed is not None
            seen.closed = here if seen.closed is None else min(seen.closed, here)
            if event.direction is None:
                self._forgotten.append(event.connection)
            elif over:
                self._ended.append(event.connection)
        for saw in self._saws:
            saw(event)

    def named(self, event: Resolved) -> None:
        """Record that a host name was resolved."""
        for named in self._nameds:
            named(event)

    def _connection(self, connection: Connection) -> ConnectionTotals:
        seen = self._seen.get(connection)
        if seen is None:
            seen = self._seen[connection] = ConnectionTotals()
        return seen

    def add(self, exchange: Exchange) -> None:
        """Add an exchange."""
        self.count(exchange)
        self.tell(exchange)

    def tell(self, exchange: Exchange) -> None:
        """Make the rows of an exchange. What is counted of it knows its place, for that does not
        depend on what others delivered."""
        row = row_of(exchange, values.UNNAMED)
        place = values.place_of(exchange)
        row.number = exchange_place(*place)
        self.facts.exchanges += 1
        buffers, options = self._buffers, self._options
        for add in self._whole:
            add(row, exchange)
        if self._wanted is not None and not self._wants(row, exchange):
            buffers[UNWANTED.name].add((exchange.number, *place))
            return
        self._feed.add(row, exchange)
        bodies: tuple[bytes | None, bytes | None] = (None, None)
        if options.full:
            bodies = values.bodies_of(exchange, self.facts.payloads)
        buffers["exchanges"].add(values.exchange_values(row, exchange, bodies))
        if row.batches:
            buffers["record_batches"].extend(values.batch_values(row, exchange))
            if options.records:
                payloads = self.facts.payloads
                if self._names is not values.UNNAMED:
                    self.facts.awaited.update(nameless_topics(renamed(row, self._names)))
                chosen = self._chosen(row, exchange)
                records = values.record_values(row, exchange, self._names, [], payloads, chosen)
                self._take_records(records)
        if options.frames:
            buffers["frames"].extend(values.frame_values(exchange))
        if row.undecoded or row.notes:
            buffers["diagnostics"].extend(values.finding_values(row, exchange))
        if row.latency_ns is not None:
            self._measure(row)

    def _wants(self, row: Row, exchange: Exchange) -> bool:
        """Return whether the filter matches an exchange, with the topic names known here."""
        assert self._wanted is not None
        if self._by_name and nameless_topics(row):
            row = renamed(row, self._context.names)
            self.facts.awaited.update(nameless_topics(row))
        return self._wanted(row, exchange)

    def _chosen(self, row: Row, exchange: Exchange) -> Chosen | None:
        """Return the records of a wanted exchange that the filter chooses."""
        if self._choice is None:
            return None
        if self._by_name:
            row = renamed(row, self._context.names)
        if not self._choice(row, exchange):
            return [False for _ in fields_of(exchange, self._names)]
        return self._choice.chosen

    def _take_records(self, records: Iterable[tuple[Any, ...]]) -> None:
        """Add the records of one exchange, which may be millions: they take less memory as
        columns."""
        buffer = self._buffers["records"]
        for record in records:
            buffer.add(record)
            if buffer.full(ROWS):
                self._put(self._batch("records"))

    def count(self, exchange: Exchange) -> None:
        """Count an exchange for its connection."""
        seen = self._connection(exchange.connection)
        seen.exchanges += 1
        seen.unanswered += exchange.state in ("open", "lost")
        seen.client = exchange.client_end
        name, known = bounded(exchange.client_id), seen.client_ids
        if name and name not in known and len(known) < CLIENT_IDS:
            seen.client_ids = (*known, name)
        seen.software = exchange.software or seen.software
        seen.user = exchange.user or seen.user
        seen.mechanism = exchange.mechanism or seen.mechanism

    def _measure(self, row: Row) -> None:
        assert row.latency_ns is not None
        topic = row.topics[0] if len(row.topics) == 1 else None
        hour = row.time_ns // HOUR_NS * HOUR_NS // 1000
        about = (
            row.broker_address,
            row.api_key,
            row.api,
            row.client_id,
            host_of(row.client_address),
            topic,
        )
        measures = (
            ("latency", row.latency_ns),
            ("excess", row.latency_beyond_wait_ns),
            ("wait", row.wait_ns or None),
            ("server", row.server_ns),
        )
        for measure, value in measures:
            if value is None:
                continue
            value = max(0, value)
            key = (hour, measure, *about, bucket_of(value))
            cell = self._cells.get(key)
            if cell is None:
                cell = self._cells[key] = [0, 0, 0, 0]
                self._cell_bytes += len(row.client_id or "") + len(topic or "")
            cell[0] += 1
            cell[1] += value
            cell[2] = max(cell[2], value)
            cell[3] += bool(row.errors)

    @property
    def large(self) -> bool:
        """Whether the rows held take much memory, even if they come from few exchanges."""
        held = sum([each.bytes for each in self._buffers.values()], self._cell_bytes)
        return is_much(held) or bool(self._done)

    def ready(self) -> Iterator[Told]:
        """Yield the batches that are full."""
        yield from self._done
        self._done.clear()
        large = self.large
        for name, buffer in self._buffers.items():
            if len(buffer) >= ROWS or (large and len(buffer)):
                yield self._batch(name)
        if len(self._cells) >= CELLS or (large and self._cells):
            yield self._measured()

    def _measured(self) -> Told:
        name = "latency_histogram"
        self._buffers[name].extend(
            (*key, *bounds_of(key[-1]), *cell) for key, cell in self._cells.items()
        )
        self._cells.clear()
        self._cell_bytes = 0
        return self._batch(name)

    def _batch(self, name: str) -> Told:
        batch = self._buffers[name].batch()
        self.facts.rows[name] += batch.num_rows
        return name, batch

    def settle(self) -> None:
        """Make the rows of the connections seen so far, which have ended, or the input has."""
        for connection, seen in self._seen.items():
            self._take_connection(connection, seen)
        self._seen.clear()
        self._ended.clear()
        self._forgotten.clear()

    def _settle_ended(self) -> None:
        """Make the rows of the connections that no packet can follow. There may be endlessly many,
        and no exchange in between."""
        ended = sorted(set(self._ended), key=attrgetter("last_ns", "number"))
        self._ended = ended[-MAX_CONNECTIONS:]
        for connection in (*self._forgotten, *ended[:-MAX_CONNECTIONS]):
            self._take_connection(connection, self._seen.pop(connection))
        self._forgotten.clear()

    def _take_connection(self, connection: Connection, seen: ConnectionTotals) -> None:
        buffer = self._buffers["connections"]
        buffer.add(_connection_values(connection, seen, self._last_ns))
        if buffer.full(ROWS):
            self._put(self._batch("connections"))

    def suspend(self) -> dict[Connection, ConnectionTotals]:
        """Return the totals of the connections since the last `settle`, which continue in another
        batch."""
        seen, self._seen = self._seen, {}
        self._ended.clear()
        self._forgotten.clear()
        return seen

    def resume(self, seen: dict[Connection, ConnectionTotals]) -> None:
        """Continue with connections of the previous batch."""
        self._seen.update(seen)

    def finish(self) -> Iterator[Told]:
        """Yield the remaining batches, and the facts of all connections; nothing is added after
        that."""
        self.settle()
        yield from self._done
        self._done.clear()
        for name, buffer in self._buffers.items():
            if len(buffer):
                yield self._batch(name)
        if self._cells:
            yield self._measured()
        self.facts.take(self._context)
        self._feed.settle()
        # Who takes a statistic's state has it for themselves: nobody here holds it any longer.
        self._feed = Feed(())
        self._saws, self._nameds, self._whole = [], [], []
        for fact in self.facts.told():
            yield "facts", record_batch([fact], FACTS.schema)


def _filter_of(text: str) -> tuple[Filter | None, bool]:
    """Return the filter of a text, and whether it uses topic names. Without a filter the language
    is not imported."""
    if not text:
        return None, False
    from kafkascope.analyzer.filter.bind import fields_of
    from kafkascope.analyzer.filter.language import compile_filter
    from kafkascope.analyzer.filter.places import LATE

    made = compile_filter(text)
    return made, bool(fields_of(made.bound) & LATE)


def _choice_of(options: TableOptions, names: Callable[[], TopicNames]) -> RecordFilter | None:
    """Return the filter that chooses among the records of an exchange, if there is one."""
    if not options.filter or not options.records:
        return None
    from kafkascope.analyzer.filter.backends.records import compile_records

    return compile_records(options.filter, names)


def _connection_values(
    connection: Connection, seen: ConnectionTotals, last_ns: int
) -> tuple[Any, ...]:
    client, broker = seen.client, 1 - seen.client
    ends = connection.ends(client)
    closed_ns, side, how = seen.closed or (None, -1, None)
    tls = connection.tls
    silent = not seen.exchanges and not sum(connection.bytes)
    phase = (
        ""
        if not silent
        else silent_phase(
            handshake=connection.handshake,
            handshake_ns=connection.handshake_ns,
            closed=how,
            waited_ns=last_ns - connection.first_ns,
        )
    )
    return (
        values.connection_id(connection),
        connection.number,
        connection.first_ns // 1000,
        connection.first_ns,
        connection.last_ns or None,
        str(ends[0]),
        str(ends[1]),
        connection.handshake,
        connection.handshake_ns,
        connection.packets[client],
        connection.packets[broker],
        connection.bytes[client],
        connection.bytes[broker],
        sum(connection.retransmissions),
        sum(connection.duplicates),
        sum(connection.out_of_order),
        sum(connection.keep_alives),
        connection.gap_bytes[client],
        connection.gap_bytes[broker],
        seen.exchanges,
        seen.unanswered,
        sorted(seen.client_ids),
        seen.software or None,
        seen.user or None,
        seen.mechanism or None,
        how,
        None if side < 0 else "client" if side == client else "broker",
        closed_ns,
        state_of(phase, how),
        connection.first_packet or None,
        *((None,) * 8 if tls is None else _tls_values(tls)),
    )


def _tls_values(tls: Tls) -> tuple[Any, ...]:
    return (
        *(tls.name, tls.error or None, tls.note or None, tls.resumed),
        *(tls.server_name or None, tls.protocol or None, tls.client or None, tls.inside or None),
    )
