"""Fields of the filter language that only the whole messages of an exchange give: records, offsets,
lag, bytes.

Each function returns the values of one field; nothing is kept between two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.values import Uuid
from kafkascope.times import MS

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import RecordField
    from kafkascope.analyzer.logdir.model import LogBatch
    from kafkascope.analyzer.model import Exchange
    from kafkascope.dissectors.records.records import Batch, Record

Values: TypeAlias = tuple[Any, ...]
Reader: TypeAlias = "Callable[[Exchange], Iterable[Any]]"
"""What it returns may be iterated more than once, and is true where there is a value."""

OFFSETS: Final = frozenset(
    {"offset", "fetch_offset", "base_offset", "committed_offset", "end_offset", "start_offset"}
)
"""Names of fields that hold the offset of a record."""


class One(NamedTuple):
    """One record, with its batch."""

    batch: Batch | LogBatch
    record: Record
    offset: int | None
    """That of the log; None for a Produce whose response does not tell."""


def _fields(exchange: Exchange) -> Iterator[tuple[RecordField, bytes]]:
    """Yield the records fields of an exchange, with their bytes without secrets."""
    from kafkascope.analyzer.exchanges.records import fields_of, shareable
    from kafkascope.analyzer.topics import TopicNames

    for field in fields_of(exchange, TopicNames()):
        data = shareable(field)
        if data is not None:
            yield field, data


def _batches(exchange: Exchange) -> Iterator[Batch]:
    """Yield the batches of an exchange; those before damage count."""
    from kafkascope.dissectors.records.records import Partial

    for field, _ in _fields(exchange):
        try:
            for batch in field.batches():
                if not isinstance(batch, Partial):
                    yield batch
        except DissectError:
            continue  # Nothing can be found after the damage.


def _opened(exchange: Exchange) -> Iterator[tuple[Batch, Sequence[Record], int | None]]:
    """Yield the batches with their records, as far as these can be read, and the offset of the
    first record; for Produce the broker's offset, because a client counts from 0."""
    for field, data in _fields(exchange):
        place = 0
        for batch, opened in field.opened(data):
            if field.source == "produce":
                first = None if field.base_offset is None else field.base_offset + place
            else:
                first = batch.base_offset
            yield batch, opened.records, first
            place += len(opened.records)


def _ones(exchange: Exchange) -> Iterator[One]:
    for batch, records, first in _opened(exchange):
        if first is None:
            yield from (One(batch, record, None) for record in records)
            continue
        step = first - batch.base_offset if exchange.api_key == 0 else 0
        yield from (One(batch, record, record.offset + step) for record in records)


def of_records(name: str) -> Reader:
    """Return the reader of a field that single records have, over all records of an exchange."""
    return partial(RecordValues, OF_RECORD[name])


class RecordValues:
    """The values of a field that records have, read while they are iterated: those of all batches
    of an exchange could take gigabytes."""

    def __init__(self, get: Callable[[One], Values], exchange: Exchange) -> None:
        self._get = get
        self._exchange = exchange

    def __iter__(self) -> Iterator[Any]:
        return (value for one in _ones(self._exchange) for value in self._get(one))

    def __bool__(self) -> bool:
        return any(True for _ in self)


def pair_of(name: str, value: bytes | None) -> bytes:
    """Return a header in the form that filters compare."""
    return name.encode("utf-8", "surrogateescape") + b"=" + (value or b"")


def of_producer(batch: Batch | LogBatch, name: str) -> Values:
    """Return an attribute of a batch whose producer has an id."""
    return (getattr(batch, name),) if batch.producer_id >= 0 else ()


def first_sequence(batch: Batch | LogBatch) -> Values:
    """Return the sequence number of a batch that has one."""
    return (batch.base_sequence,) if min(batch.producer_id, batch.base_sequence) >= 0 else ()


def topic_id_text(topic_id: bytes | None) -> Values:
    """Return the id of a topic as Kafka prints it."""
    return () if topic_id is None else (str(Uuid(topic_id)),)


def sequences(exchange: Exchange) -> Values:
    """Return the first sequence numbers of batches."""
    return tuple(first for batch in _batches(exchange) for first in first_sequence(batch))


def size_of(record: Record) -> int:
    """Return the bytes of key, value and headers."""
    total = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        total += len(name.encode("utf-8", "surrogateescape")) + len(value or b"")
    return total


def _if(value: Any) -> Values:
    return () if value is None else (value,)


def _sequence(one: One) -> Values:
    step = one.record.offset - one.batch.base_offset
    return tuple((first + step) & 0x7FFFFFFF for first in first_sequence(one.batch))


OF_RECORD: Final[dict[str, Callable[[One], Values]]] = {
    "record.key": lambda one: _if(one.record.key),
    "record.value": lambda one: _if(one.record.value),
    "record.header": lambda one: tuple(pair_of(*header) for header in one.record.headers),
    "record.header.key": lambda one: tuple(name for name, _ in one.record.headers),
    "record.header.value": lambda one: tuple(
        value for _, value in one.record.headers if value is not None
    ),
    "record.offset": lambda one: _if(one.offset),
    "record.time": lambda one: tuple(stamp * MS for stamp in _if(one.record.timestamp)),
    "record.sequence": _sequence,
    "record.size": lambda one: (size_of(one.record),),
}
"""The values of fields in one record; of an exchange or a batch, those of all its records."""


def _bodies(exchange: Exchange) -> Iterator[dict[str, Any]]:
    for side in (exchange.request, exchange.response):
        if side is not None and side.decoded is not None:
            yield side.decoded.body


def _named(value: Any, names: frozenset[str]) -> Iterator[Any]:
    """Yield the values of all fields of these names, at any depth."""
    if isinstance(value, list):
        for each in value:
            if not isinstance(each, dict | list):
                return
            yield from _named(each, names)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, dict | list):
                yield from _named(inner, names)
            if name in names and inner is not None:
                yield inner


def _integers(names: frozenset[str]) -> Reader:
    def values(exchange: Exchange) -> Values:
        found = (value for body in _bodies(exchange) for value in _named(body, names))
        return tuple(dict.fromkeys(value for value in found if type(value) is int and value >= 0))

    return values


def lag(exchange: Exchange) -> Values:
    """Return the lag of each partition in a Fetch: the records after the position of the client.

    The position follows the last record of the response; without records it is the requested
    offset. Without either (a fetch session implies the offset) there is no lag.
    """
    from kafkascope.dissectors.records.records import Partial, batches

    if exchange.api_key != 1 or exchange.request is None or exchange.response is None:
        return ()
    request, response = exchange.request.body, exchange.response.body
    if request is None or response is None:
        return ()
    wanted = {
        (topic.get("topic"), topic.get("topic_id"), partition["partition"]): partition[
            "fetch_offset"
        ]
        for topic in request["topics"] or ()
        for partition in topic["partitions"]
    }
    found = []
    for topic in response["responses"]:
        for partition in topic["partitions"]:
            end = partition["high_watermark"]
            if partition["error_code"] or end < 0:
                continue
            key = (topic.get("topic"), topic.get("topic_id"), partition["partition_index"])
            position = wanted.get(key)
            try:
                for batch in batches(partition["records"] or b""):
                    if not isinstance(batch, Partial):
                        position = batch.last_offset + 1
            except DissectError:
                pass  # The batches before the damage count.
            if position is not None:
                found.append(max(0, end - position))
    return tuple(found)


def wire(exchange: Exchange) -> Values:
    """Return both frames, sizes included."""
    return tuple(
        side.frame.size.to_bytes(4, "big", signed=True) + side.frame.payload
        for side in (exchange.request, exchange.response)
        if side is not None
    )


def raw(exchange: Exchange) -> Values:
    """Return both frames, and the contents of their compressed batches."""
    return (
        *wire(exchange),
        *(
            part
            for batch, records, _ in _opened(exchange)
            if batch.codec
            for record in records
            for part in _parts(record)
        ),
    )


def _parts(record: Record) -> Iterator[bytes]:
    for part in (record.key, record.value):
        if part:
            yield part
    for name, value in record.headers:
        yield pair_of(name, value)


offsets: Final = _integers(OFFSETS)

high_watermarks: Final = _integers(frozenset({"high_watermark"}))


def anywhere(exchange: Exchange, name: str) -> Values:
    """Return the values of all fields of a name in either body, without secrets."""
    from kafkascope.dissectors.records.redaction import masked_body

    found: list[Any] = []
    for side in (exchange.request, exchange.response):
        if side is not None and side.decoded is not None:
            body = masked_body(side.decoded.layout, side.decoded.body)
            for value in _named(body, frozenset({name})):
                if isinstance(value, list):
                    found += (each for each in value if not isinstance(each, dict))
                elif not isinstance(value, dict):
                    found.append(value)
    return tuple(found)
