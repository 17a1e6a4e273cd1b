"""Tables in place of captures: statistics are merged from the stored states, and the captures are
not read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pyarrow.parquet as pq

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.column import columns_of
from kafkascope.analyzer.exchanges.rows import (
    TLS_COLUMNS,
    ZOOKEEPER_COLUMNS,
    Row,
    RowError,
    is_flexible,
)
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.model import Exchange, Note, Undecoded, ZooKeeperFacts
from kafkascope.analyzer.pipeline.store import Store
from kafkascope.analyzer.pipeline.tables.facts import WHOLE
from kafkascope.analyzer.pipeline.tables.schemas import TEXTS
from kafkascope.analyzer.statistics.accumulators import OF_ROWS
from kafkascope.captures.errors import CaptureError, CutShort
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.model import Connection, Endpoint, TlsSummary
from kafkascope.dissectors.codec.jsonform import loads
from kafkascope.dissectors.values import Uuid

if TYPE_CHECKING:
    from kafkascope.captures.model import Closed, Opened, Resolved


# Rows per read.
ROWS: Final = 4096


class OnlyTables(CaptureError):
    """Tables lack what only captures hold."""


class Stored:
    """Stand-in for `analyzer.exchanges.offline.OpenInput` in commands that count."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._store = Store(path)
        self._manifests = self._store.manifests()
        if not self._manifests:
            raise CaptureError(f"{path} contains no complete batch")
        self.context = Context()
        self.source = Source([])
        self.watch: Callable[[Opened | Closed], None] | None = None
        self.named: Callable[[Resolved], None] | None = None
        self.damage: CutShort | None = None
        self.logs = None
        self.first_ns = min((m["first_ns"] for m in self._manifests if m["first_ns"]), default=0)
        self.exchanges_read = 0
        self.filter = next((f for m in self._manifests if (f := m["options"].get("filter"))), "")
        """The filter that selected the exchanges in the tables; empty when all are there."""
        self._states: dict[str, list[Any]] | None = None
        context, statistics = self.context, self.source.statistics
        for manifest in self._manifests:
            context.exchanges += manifest["exchanges"]
            context.skipped_bytes += manifest["skipped_bytes"]
            context.opaque.update(manifest["opaque"])
            context.truncations.update(manifest.get("left_out", ()))
            statistics.packets += manifest["packets"]
            statistics.segments += manifest["packets"]
            statistics.dropped += manifest["dropped"]
            statistics.connections += manifest["connections"]
            statistics.damage += [
                CutShort(file["damage"]) for file in manifest["files"] if file["damage"]
            ]
            for path in self._files("topic_names", manifest):
                for row in pq.read_table(path, columns=["topic_id", "topic"]).to_pylist():
                    context.names.learn(Uuid.parse(row["topic_id"]), row["topic"])
        self.exchanges_read = context.exchanges

    def _files(self, table: str, manifest: dict[str, Any]) -> list[str]:
        return [str(path) for path in self._store.files(table, manifest["batch_id"])]

    def merge_into(self, statistic: Any, name: str = "") -> None:
        """Merge the stored states of a statistic into it. `name`: of the states, where it is not
        the statistic's; such states include those of the statistics below."""
        if self._states is None:
            self._states = {}
            for manifest in self._manifests:
                for path in self._files("statistics", manifest):
                    columns = ["statistic", "state"]
                    for row in pq.read_table(path, columns=columns).to_pylist():
                        self._states.setdefault(row["statistic"], []).append(row["state"])
        states = self._states.get(name or statistic.NAME)
        if not states:
            missing = name or statistic.NAME
            raise OnlyTables(f"{self.path} has no state of {missing}: read the captures")
        for state in states:
            try:
                loaded = type(statistic)().load(loads(state))
            except (ValueError, KeyError):  # other members than now, also without a new number
                raise OnlyTables(
                    f"{self.path} was written by another version of kafkascope (state of "
                    f"{name or statistic.NAME}): convert the captures again with `kafkascope spark "
                    "--replace`"
                ) from None
            try:
                statistic.merge(loaded)
            except ValueError as error:
                raise OnlyTables(f"{self.path}: {error}; read the captures") from None
        if isinstance(statistic, Findings) and not name:
            # The statistics that findings read have states of their own.
            for base in statistic.base:
                self.merge_into(base)

    def merge_whole(self, findings: Findings) -> None:
        """Merge the findings about all exchanges into `findings`, where tables have a selection."""
        self.merge_into(findings, WHOLE)

    def demand_rows(self, statistic: Any) -> None:
        """Raise `OnlyTables` for a statistic that cannot be counted from rows."""
        if not isinstance(statistic, OF_ROWS):
            raise OnlyTables(
                f"{self.path} holds no messages, of which {statistic.NAME} of a selection are "
                "counted: name the captures, or make tables of it (kafkascope spark -Y ...)"
            )

    def rows(self) -> Iterator[tuple[Row, Exchange]]:
        """Yield the stored rows in the order of the table, each with an exchange that has a
        connection and no messages."""
        round_trips: dict[str, int] = {}
        for manifest in self._manifests:
            for path in self._files("connections", manifest):
                names = pq.read_schema(path).names
                name = "round_trip_ns" if "round_trip_ns" in names else "handshake_ns"  # older
                table = pq.read_table(path, columns=["connection_id", name]).drop_null()
                columns = (column.to_pylist() for column in table.columns)
                round_trips.update(zip(*columns, strict=True))
        for manifest in self._manifests:
            for path in self._files("exchanges", manifest):
                with pq.ParquetFile(path) as file:
                    names = [name for name in file.schema_arrow.names if name not in TEXTS]
                    for batch in file.iter_batches(ROWS, columns=names):
                        for values in batch.to_pylist():
                            row = row_of_table(values)
                            yield row, _exchange(row, round_trips.get(values["connection_id"]))

    def no_exchanges(self) -> OnlyTables:
        """Return the error for callers that need messages."""
        return OnlyTables(
            f"{self.path} holds tables: query them (docs/spark.md), or name the captures"
        )

    @property
    def plaintext(self) -> NoReturn:
        """Refuse commands that need the bytes of messages."""
        raise self.no_exchanges()

    def in_flight(self) -> list[Exchange]:
        """Return nothing: tables hold no exchanges."""
        return []

    def close(self) -> None:
        """Do nothing: no file is open."""


_LOADED: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("strings", "int64s", "int32s"), tuple),
    "errors": lambda values: tuple([RowError(**each) for each in values]),
    "undecoded": lambda values: tuple([Undecoded(**each) for each in values]),
    "notes": lambda values: tuple([Note(**each) for each in values]),
}
"""Conversion of values of tables to values of rows, by type; others are equal."""


def row_of_table(values: dict[str, Any]) -> Row:
    """Return the row for the values of the table of exchanges, by column name; tables that were
    written before a column was declared lack it."""
    attributes: dict[str, Any] = {}
    for name, column in columns_of(Row):
        value, load = values.get(column.table or name), _LOADED.get(column.kind.arrow)
        if value is None:
            value = column.kind.empty
        elif load is not None:
            value = load(value)
        attributes[name] = value
    attributes["topic_ids"] = tuple(map(Uuid.parse, attributes["topic_ids"]))
    attributes["flexible"] = is_flexible(attributes["api_key"], attributes["api_version"])
    if attributes["tls"] is not None:
        attributes["tls"] = _summary_of_table(values)
    attributes["zookeeper"] = _zookeeper_of_table(values)
    return Row(**attributes)


def _summary_of_table(values: dict[str, Any]) -> TlsSummary:
    name, resumed, *texts = map(values.get, TLS_COLUMNS)
    server_name, protocol, client = (text or "" for text in texts)
    return TlsSummary.named(name or "", bool(resumed), server_name, protocol, client)


def _zookeeper_of_table(values: dict[str, Any]) -> ZooKeeperFacts | None:
    if values.get("protocol") != "zookeeper":
        return None
    path, event, session, zxid = map(values.get, ZOOKEEPER_COLUMNS)
    number = None if session is None else int(session, 16)
    if number is not None and number >> 63:
        number -= 1 << 64
    return ZooKeeperFacts(number, path, event or "", zxid)


def _exchange(row: Row, round_trip_ns: int | None) -> Exchange:
    client, broker = _endpoint(row.client_address), _endpoint(row.broker_address)
    return Exchange(
        row.number,
        row.id,
        row.state,
        Connection(
            row.connection, client, broker, row.time_ns, handshake_ns=round_trip_ns, via=row.via
        ),
        client,
        broker,
        row.api_key,
        row.api,
        row.api_version,
        row.correlation_id,
        row.client_id,
        None,
        None,
        row.software,
        row.user,
        reason=row.reason,
        undecoded=row.undecoded,
        notes=row.notes,
        wait_ns=row.wait_ns,
        tls=row.tls,
        zookeeper=row.zookeeper,
    )


@lru_cache(4096)
def _endpoint(address: str) -> Endpoint:
    return Endpoint(host_of(address), int(address.rpartition(":")[2]))
