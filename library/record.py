"""Records as Python programs see them: bytes, and what their schemas say of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from kafkascope.library.values import moment
from kafkascope.times import MS

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import RecordField
    from kafkascope.analyzer.model import Exchange as Model
    from kafkascope.dissectors.records.records import Batch
    from kafkascope.dissectors.records.records import Record as Bare
    from kafkascope.library.passes import ReadingPass

Side = Literal["key", "value"]


@dataclass(slots=True)
class Record:
    """A record that was produced or fetched: the names of record/1, see docs/json.md."""

    exchange: int
    """Number of the exchange that carried it."""
    source: Literal["produce", "fetch", "log"]
    topic: str | None
    """None where only an id is known."""
    topic_id: bytes | None
    partition: int
    offset: int | None
    """For a produced one: as the broker answered, None without such an answer."""
    time_ms: int | None
    """Milliseconds since 1970."""
    key: bytes | None
    value: bytes | None
    """Secrets in records of Kafka's internal topics are asterisks."""
    headers: tuple[tuple[str, bytes | None], ...]
    codec: str
    magic: int
    producer_id: int | None
    producer_epoch: int | None
    sequence: int | None
    transactional: bool
    control: bool
    internal: dict[str, Any] | None = None
    """What a record of Kafka's internal topics or of a control batch says."""
    _origin: ReadingPass | None = field(default=None, repr=False, compare=False)

    @property
    def time(self) -> datetime | None:
        """When it was made, or appended."""
        return None if self.time_ms is None else moment(self.time_ms * MS)

    @property
    def decoded_key(self) -> Any:
        """The key by its schema, as JSON has it; None where it names none that is known."""
        return self._decoded("key", self.key)

    @property
    def decoded_value(self) -> Any:
        """The value by its schema, as JSON has it: `record.decoded_value["amount"]`. None where it
        names none that is known. Raises `PayloadError` where the value does not fit."""
        return self._decoded("value", self.value)

    def _decoded(self, side: Side, data: bytes | None) -> Any:
        payloads = None if self._origin is None else self._origin.payloads
        if payloads is None or data is None or self.internal is not None:
            return None
        from kafkascope.dissectors.codec.jsonform import dumps, loads

        found = payloads.decode(self.topic, side, data, self.headers)
        if found is None:
            return None
        if found.error is not None:
            raise found.error
        return loads(dumps(found.value))


def records_of(exchange: Model, origin: ReadingPass) -> Iterator[Record]:
    """Yield the records of an exchange, as far as they can be read."""
    from kafkascope.analyzer.exchanges.records import fields_of

    for each in fields_of(exchange, origin.names):
        place = 0
        for batch, opened in each.opened():
            made = partial(_record, exchange.number, each, batch, origin)
            # Not a loop: an iterator that waits would hold its last record.
            yield from map(made, opened.records, count(place))
            place += len(opened.records)


def _record(
    number: int, around: RecordField, batch: Batch, origin: ReadingPass, bare: Bare, place: int
) -> Record:
    from kafkascope.analyzer.exchanges.records import internal_of
    from kafkascope.dissectors.embedded.internal import is_internal

    offset: int | None = bare.offset
    if around.source == "produce":
        offset = None if around.base_offset is None else around.base_offset + place
    value, internal = bare.value, None
    if batch.control or is_internal(around.topic, around.topic_id):
        hidden, internal = internal_of(around, bare.key, bare.value, control=batch.control)
        value = value if origin.secrets else hidden
    known, second = batch.producer_id >= 0, batch.magic == 2
    sequence = None
    if known and batch.base_sequence >= 0:
        sequence = (batch.base_sequence + bare.offset - batch.base_offset) & 0x7FFFFFFF
    return Record(
        number,
        around.source,
        around.topic,
        around.topic_id,
        around.partition,
        offset,
        bare.timestamp,
        bare.key,
        value,
        tuple(map(tuple, bare.headers)),  # type: ignore[arg-type]
        batch.codec_name,
        batch.magic,
        batch.producer_id if known else None,
        batch.producer_epoch if known else None,
        sequence,
        second and batch.transactional,
        second and batch.control,
        internal,
        origin,
    )
