"""Exchanges and connections to rows of the tables: tuples in the order of the schemas' columns.
Stateless."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from hashlib import blake2b
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.model import Part
from kafkascope.analyzer.pipeline.tables.schemas import EXCHANGE_VALUES
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.model import topic_id_in, topic_label
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.jsonform import dumps, loads
from kafkascope.dissectors.records.records import crc_ok
from kafkascope.dissectors.values import Uuid
from kafkascope.source import compile_function

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import Chosen, Problem
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.captures.model import Connection, Endpoint
    from kafkascope.schemas.decoding import Payloads

UNNAMED: Final = TopicNames()
"""Rows are made without names, so that they do not depend on what was learned before; names are
filled in at the end, when all are known."""

NOWHERE: Final = Part(-1, -1, 0, 0)

OF_BATCH: Final = attrgetter(
    *("producer_id", "producer_epoch", "base_sequence", "transactional", "control", "leader_epoch")
)
"""Columns of `record_batches` that batches in messages and in files have by the same names."""


def connection_id(connection: Connection) -> str:
    """Return the key of a connection: 16 hexadecimal digits, equal for equal input."""
    return _connection_id(connection.a, connection.b, connection.first_ns)


@lru_cache(maxsize=4096)
def _connection_id(a: Endpoint, b: Endpoint, first_ns: int) -> str:
    return blake2b(f"{a} {b} {first_ns}".encode(), digest_size=8).hexdigest()


def place_of(exchange: Exchange) -> Part:
    side = exchange.request or exchange.response
    if side is None:
        return NOWHERE
    part = side.frame.parts[0]
    # Lines are numbered in each file, and are in the order of their ends.
    return part._replace(packet=exchange.origin.offset) if exchange.sizeless else part


def exchange_values(
    row: Row, exchange: Exchange, bodies: tuple[bytes | None, bytes | None] = (None, None)
) -> tuple[Any, ...]:
    return _exchange_values()(row, exchange, place_of(exchange), bodies)


@cache
def _exchange_values() -> Callable[..., tuple[Any, ...]]:
    """Return the function for the values that `schemas` declares, as straight-line code."""
    lines = "".join(f"        {value},\n" for value in EXCHANGE_VALUES)
    source = f"def values(row, exchange, place, bodies):\n    return (\n{lines}    )\n"
    made: Callable[..., tuple[Any, ...]] = compile_function(
        "values", source, {"connection_id": connection_id}, "values of exchanges"
    )
    return made


def bodies_of(
    exchange: Exchange, payloads: Payloads | None = None
) -> tuple[bytes | None, bytes | None]:
    """Return the bodies as JSON, without secrets; as bytes, which Arrow accepts, because they may
    be large."""
    from kafkascope.analyzer.exchanges.full import COLUMN_LIMIT, full_bodies, json_of

    both = full_bodies(exchange, UNNAMED, [], COLUMN_LIMIT, payloads)
    one, two = (
        None if (body := both.pop(side)) is None else json_of(body)
        for side in ("request", "response")
    )
    return one, two


def batch_values(row: Row, exchange: Exchange) -> Iterator[tuple[Any, ...]]:
    carried = ExchangeBatch.of(row, exchange)
    outcomes = [
        (key, blob, base, batches)
        for key, parts in carried.parts.items()
        for _, base, blob, batches, _ in parts.by_records()
    ]
    for (key, partition, error), blob, base_offset, batches in outcomes:
        topic = topic_label(key, None)
        found = topic_id_in(key)
        topic_id = None if found is None else str(Uuid(found))
        for index, batch in enumerate(batches):
            yield (
                row.id,
                connection_id(exchange.connection),
                row.time_ns // 1000,
                row.time_ns,
                carried.way,
                topic,
                topic_id,
                partition,
                index,
                error,
                base_offset if carried.way == "produce" else batch.base_offset,
                batch.last_offset,
                batch.magic,
                batch.codec_name,
                batch.size,
                batch.record_count,
                *OF_BATCH(batch),
                batch.base_timestamp,
                batch.max_timestamp,
                crc_ok(blob, batch),
            )


def frame_values(exchange: Exchange) -> Iterator[tuple[Any, ...]]:
    key = connection_id(exchange.connection)
    for kind, side in (("request", exchange.request), ("response", exchange.response)):
        if side is None:
            continue
        frame = side.frame
        first, last = frame.parts[0], frame.parts[-1]
        special = {"SaslToken": "token"}.get(exchange.api) or (
            "opaque" if exchange.state == "opaque" else kind
        )
        yield (
            key,
            exchange.id,
            special,
            frame.first_ns // 1000,
            frame.first_ns,
            frame.last_ns,
            frame.offset,
            frame.wire_bytes,
            frame.size - len(frame.payload),
            frame.cut or None,
            len(frame.parts),
            first.packet,
            last.packet,
            first.file,
            first.at,
            exchange.api_key,
            exchange.api_version,
            exchange.correlation_id,
            [each.reason for each in exchange.undecoded if each.side == kind],
        )


def record_values(
    row: Row,
    exchange: Exchange,
    names: TopicNames,
    problems: list[Problem],
    payloads: Payloads | None = None,
    chosen: Chosen | None = None,
) -> Iterator[tuple[Any, ...]]:
    """Yield rows of `records`, for the chosen ones or all."""
    from kafkascope.analyzer.exchanges.records import record_lines

    made = partial(record_rows, exchange_id=row.id)
    # Neither a loop nor a list: each would hold lines of megabytes while rows of them are written.
    yield from chain.from_iterable(
        map(made, record_lines(exchange, names, problems, payloads, chosen))
    )


def record_rows(lines: bytes, exchange_id: str | None) -> Iterator[tuple[Any, ...]]:
    """Yield rows of `records` for lines of record/1. `exchange_id`: None for records of Kafka's own
    files."""
    left = lines.splitlines() if lines.count(b"\n") > 1 else [lines]
    del lines
    left.reverse()
    while left:
        yield _record_row(loads(left.pop()), exchange_id)


_HEAD: Final = itemgetter("source", "topic", "topic_id", "partition", "offset", "time")
_TAIL: Final = itemgetter(
    *("codec", "magic", "producer_id", "producer_epoch", "sequence", "transactional", "control")
)


def _record_row(value: dict[str, Any], exchange_id: str | None) -> tuple[Any, ...]:
    from kafkascope.analyzer.exchanges.records import BY_SCHEMA

    key = value["key"]
    return (
        exchange_id,
        *_HEAD(value),
        key if isinstance(key, str) else _text(key),
        _text(value["value"]),
        _text(value["headers"]),
        *_TAIL(value),
        *(_text(value.get(name)) for name in BY_SCHEMA),
    )


def _text(value: Any) -> str | None:
    return None if value is None else dumps(value).decode()


def finding_values(row: Row, exchange: Exchange) -> Iterator[tuple[Any, ...]]:
    """Yield rows of `diagnostics` about an exchange."""
    part, time = place_of(exchange), (row.time_ns // 1000, row.time_ns, "dissect")
    where = part.file, part.at, connection_id(exchange.connection), row.id
    for left in row.undecoded:
        text = left.text or left.reason
        yield *time, "warning", left.reason, text, *where, left.side, left.bytes
    for note in row.notes:
        yield *time, note.severity, "note", note.text, *where, note.side, None
