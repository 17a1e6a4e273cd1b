"""Collection of rows: takes exchanges and yields batches of rows of all tables. State of one task,
without I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.exchanges.records import fields_of
from kafkascope.analyzer.exchanges.rows import Row, nameless_topics, renamed, row_of
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.merging.histogram import bounds_of, bucket_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.pipeline.tables import values
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.buffers import RowBuffer, is_much
from kafkascope.analyzer.pipeline.tables.facts import SentSchemas, TableFacts
from kafkascope.analyzer.pipeline.tables.numbers import exchange_place
from kafkascope.analyzer.pipeline.tables.schemas import (
    COLLECTED,
    FACTS,
    LATENCY,
    ON_REQUEST,
    UNWANTED,
)
from kafkascope.analyzer.ranks import bounded
from kafkascope.analyzer.statistics.connections import silent_phase, state_of
from kafkascope.analyzer.statistics.feed import Feed
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.limits import CaptureLimits
from kafkascope.captures.model import Closed, Opened, Resolved

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.exchanges.records import Chosen
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.filter.backends.records import RecordFilter
    from kafkascope.analyzer.filter.language import Filter
    from kafkascope.captures.model import Connection

# Rows per batch.
ROWS: Final = 4096
# Exchanges between looks for full batches, where rows are small.
LOOKS: Final = 256
# Cells of histograms that are kept before they are yielded.
CELLS: Final = 16_384
HOUR_NS: Final = 3_600_000_000_000
# Client ids kept per connection; more indicate a gateway, not clients.
CLIENT_IDS: Final = 16


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
    `filter.bind.IN_TASKS`."""
    zone: str = ""
    """Time zone of request logs whose times name none."""

    def makes(self, table: str) -> bool:
        return table not in ON_REQUEST or bool(getattr(self, table))

    def to_json(self) -> dict[str, Any]:
        """Return the options for manifests and for the name of a batch; without a filter they are
        the same as before filters existed."""
        found = asdict(self)
        return {k: v for k, v in found.items() if v or k not in ("filter", "zone")}


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
    """Takes exchanges by `add` and connections by `saw`; puts full batches of rows as they come,
    and the others with the facts at `finish`."""

    def __init__(
        self,
        context: Context,
        options: TableOptions,
        put: Callable[[str, pa.RecordBatch], None],
        last_ns: int = 0,
        schemas: SentSchemas | None = None,
        limits: CaptureLimits = CAPTURE_LIMITS,
    ) -> None:
        """`put` takes the name of a table and rows of it. `last_ns`: time of the latest packet of
        all. `schemas`: what keys and values are decoded with."""
        self._context = context
        self._options = options
        self._last_ns = last_ns
        self.facts = TableFacts(schemas=schemas)
        # Schemas that the user gave to topics are found by the names of these.
        self._names = context.names if schemas and schemas.assigned else values.UNNAMED
        self._feed = Feed(self.facts.statistics.values())
        self._saws = [each.saw for each in self.facts.statistics.values() if hasattr(each, "saw")]
        self._nameds = [
            each.named for each in self.facts.statistics.values() if hasattr(each, "named")
        ]
        self._wanted, self._choice, self._by_name = _filters_of(options, context)
        self._whole = Feed(())
        """For what counts all exchanges, whether they are wanted or not."""
        if self._wanted is not None:
            # A filter chooses exchanges, so beginnings and ends of connections do not count.
            whole = self.facts.whole()
            self._whole, self._saws = Feed((whole,)), [whole.saw]
            self._nameds.append(whole.named)
        self._buffers = {
            each.name: RowBuffer(each.schema) for each in (*COLLECTED.values(), UNWANTED)
        }
        self._put = put
        self._added = 0
        """Exchanges since somebody looked for full batches."""
        self._seen: defaultdict[Connection, ConnectionTotals] = defaultdict(ConnectionTotals)
        self._most_open: Final = limits.connections
        self._ended: list[Connection] = []
        """Connections that ended; packets may follow."""
        self._forgotten: list[Connection] = []
        """Connections that reassembly has ended: no packet follows."""
        self._cells: dict[tuple[Any, ...], list[int]] = {}
        self._cell_bytes = 0
        """Bytes of the names in them."""

    @property
    def crowded(self) -> bool:
        """Whether to `settle_ended`, before the next event is taken: what that ends may still have
        exchanges that wait."""
        # Packets can only follow for as many connections as reassembly tracks.
        return 4 * len(self._ended) >= 5 * self._most_open or len(self._forgotten) >= ROWS

    def saw(self, event: Opened | Closed) -> None:
        seen = self._seen[event.connection]
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
        for named in self._nameds:
            named(event)

    def add(self, exchange: Exchange) -> None:
        """Add an exchange, and put the batches that are full."""
        self._count(exchange)
        self._add_rows(exchange)
        self._added += 1
        if not (large := self._is_large()) and self._added < LOOKS:
            return
        self._added = 0
        if len(self._cells) >= CELLS or (large and self._cells):
            self._take_cells()
        for name, buffer in self._buffers.items():
            if len(buffer) >= ROWS or (large and len(buffer)):
                self._put_batch(name)

    def _add_rows(self, exchange: Exchange) -> None:
        """Make the rows of an exchange. Its number is its place until all of them are known."""
        part = values.place_of(exchange)
        exchange.number = exchange_place(part.packet, part.at)
        row = row_of(exchange, values.UNNAMED)
        self.facts.exchanges += 1
        buffers, options = self._buffers, self._options
        self._whole.add(row, exchange)
        if self._wanted is not None and not self._wants(row, exchange):
            buffers[UNWANTED.name].add((row.number, part.at))
            return
        self._feed.add(row, exchange)
        bodies = values.bodies_of(exchange, self.facts.payloads) if options.full else (None, None)
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
                self._put_batch("records")

    def _count(self, exchange: Exchange) -> None:
        seen = self._seen[exchange.connection]
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
        key = row.broker_address, row.api_key, row.api, row.client_id, host_of(row.client_address)
        measures = (
            ("latency", row.latency_ns),
            ("excess", row.latency_beyond_wait_ns),
            ("wait", row.wait_ns or None),
            ("request_transfer", row.request_transfer_ns),
            ("server", row.serving_beyond_wait_ns),
            ("response_transfer", row.response_transfer_ns),
            ("rtt", row.rtt_ns),
        )
        for measure, value in measures:
            if value is None:
                continue
            value = max(0, value)
            place = (hour, measure, *key, topic, bucket_of(value))
            cell = self._cells.get(place)
            if cell is None:
                cell = self._cells[place] = [0, 0, 0, 0]
                self._cell_bytes += len(row.client_id or "") + len(topic or "")
            cell[0] += 1
            cell[1] += value
            cell[2] = max(cell[2], value)
            cell[3] += bool(row.errors)

    def _is_large(self) -> bool:
        return is_much(sum([each.bytes for each in self._buffers.values()], self._cell_bytes))

    def _take_cells(self) -> None:
        self._buffers[LATENCY.name].extend(
            (*key, *bounds_of(key[-1]), *cell) for key, cell in self._cells.items()
        )
        self._cells.clear()
        self._cell_bytes = 0

    def _put_batch(self, name: str) -> None:
        batch = self._buffers[name].batch()
        self.facts.rows[name] += batch.num_rows
        self._put(name, batch)

    def settle(self) -> None:
        """Make the rows of the connections seen so far, which have ended, or the input has."""
        for connection, seen in self._seen.items():
            self._take_connection(connection, seen)
        self._seen.clear()
        self._ended.clear()
        self._forgotten.clear()

    def settle_ended(self) -> None:
        """Make the rows of the connections that no packet can follow. There may be endlessly many,
        and no exchange in between."""
        ended = sorted(set(self._ended), key=attrgetter("last_ns", "number"))
        self._ended = ended[-self._most_open :]
        for connection in (*self._forgotten, *ended[: -self._most_open]):
            self._take_connection(connection, self._seen.pop(connection))
        self._forgotten.clear()

    def _take_connection(self, connection: Connection, seen: ConnectionTotals) -> None:
        buffer = self._buffers["connections"]
        buffer.add(_connection_values(connection, seen, self._last_ns))
        if buffer.full(ROWS):
            self._put_batch("connections")

    def suspend(self, open_: set[Connection]) -> dict[Connection, ConnectionTotals]:
        """Return the totals of the connections that continue in another batch, and make the rows of
        the others."""
        seen = {each: self._seen.pop(each) for each in open_ if each in self._seen}
        self.settle()
        return seen

    def resume(self, seen: dict[Connection, ConnectionTotals]) -> None:
        """Continue with connections of the previous batch."""
        self._seen.update(seen)

    def finish(self) -> None:
        """Put the remaining batches, and the facts of all connections; nothing is added after
        that."""
        self.settle()
        self._take_cells()
        for name, buffer in self._buffers.items():
            if len(buffer):
                self._put_batch(name)
        self.facts.take(self._context)
        self._feed.settle()
        self._whole.settle()
        # Who takes a statistic's state has it for themselves: nobody here holds it any longer.
        self._feed = self._whole = Feed(())
        self._saws, self._nameds = [], []
        for fact in self.facts.serialized():
            self._put(FACTS.name, record_batch([fact], FACTS.schema))


def _filters_of(
    options: TableOptions, context: Context
) -> tuple[Filter | None, RecordFilter | None, bool]:
    """Return the filters of exchanges and of their records, where there are any, and whether they
    use topic names. Without a filter the language is not imported."""
    if not options.filter:
        return None, None, False
    from kafkascope.analyzer.filter.backends.records import compile_records
    from kafkascope.analyzer.filter.bind import LATE, fields_of
    from kafkascope.analyzer.filter.language import compile_filter

    chosen = compile_records(options.filter, lambda: context.names) if options.records else None
    made = compile_filter(options.filter)
    return made, chosen, bool(fields_of(made.bound) & LATE)


def _connection_values(
    connection: Connection, seen: ConnectionTotals, last_ns: int
) -> tuple[Any, ...]:
    client, broker = seen.client, 1 - seen.client
    ends = connection.ends(client)
    closed_ns, side, how = seen.closed or (None, -1, None)
    tls = connection.tls
    silent = not seen.exchanges and not sum(connection.bytes)
    secured = tls and (
        *(tls.name, tls.error or None, tls.note or None, tls.resumed),
        *(tls.server_name or None, tls.protocol or None, tls.client or None, tls.inside or None),
    )
    phase = ""
    if silent:
        phase = silent_phase(
            handshake=connection.handshake,
            handshake_ns=connection.handshake_ns,
            closed=how,
            waited_ns=last_ns - connection.first_ns,
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
        connection.round_trip_ns,
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
        *(secured or (None,) * 8),
    )
