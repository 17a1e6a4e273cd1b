"""The back end "one record": a bound filter as a choice among the records of an exchange.

A record is selected when the whole filter holds for it: fields of records are read from this record
alone, all others from its exchange. The filter is reduced step by step, with the fields of the
exchange, the partition, the batch and the record, so that a batch is read only where needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.exchanges.records import RecordField, fields_of, shareable, topic_text
from kafkascope.analyzer.filter.backends.exchange import Filter, cheapest_first, scoped
from kafkascope.analyzer.filter.bind import And, Bound, Not, Or, Search, Test, bound_of
from kafkascope.analyzer.filter.decoded.reading import Decoding, read
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.filter.message import (
    OF_RECORD,
    One,
    Values,
    first_sequence,
    of_producer,
    topic_id_text,
)
from kafkascope.analyzer.filter.syntax import mapped
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.dissectors.records.records import Batch, Record

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import Chosen
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.topics import TopicNames


class Level(IntEnum):
    """Data that a comparison needs before it can be decided."""

    EXCHANGE = 0
    PARTITION = 1
    BATCH = 2
    RECORD = 3


class RecordAt:
    """One record in the place where it was seen; the parts of levels that come later are unset."""

    __slots__ = ("_decoded_fields", "batch", "exchange", "field", "one", "row")

    batch: Batch
    field: RecordField
    one: One

    def __init__(self, row: Row, exchange: Exchange) -> None:
        self.row = row
        self.exchange = exchange
        self._decoded_fields: list[Any] | None = None

    def record(self, one: One) -> None:
        """Go on to a record of the batch."""
        self.one = one
        self._decoded_fields = None

    def decoded_fields(self, decoding: Decoding) -> list[Any]:
        """Return the fields of key and value, decoded once for all comparisons."""
        if self._decoded_fields is None:
            self._decoded_fields = []
            if not self.batch.control and not is_internal(self.field.topic, self.field.topic_id):
                self._decoded_fields += decoding.of_record(self.field.topic, self.one.record)
        return self._decoded_fields


class Leaf(NamedTuple):
    """One comparison."""

    level: Level
    holds: Callable[[RecordAt], bool]


Part: TypeAlias = "Leaf | And[Part] | Or[Part] | Not[Part]"


def reduced(part: Part, level: Level, unit: RecordAt) -> Part | bool:
    """Return what is left of a filter, once everything up to a level is decided."""
    match part:
        case Leaf(needs, holds):
            return holds(unit) if needs <= level else part
        case Not(inner):
            left = reduced(inner, level, unit)
            return not left if isinstance(left, bool) else Not(left)
        case And(parts) | Or(parts):
            decisive = isinstance(part, Or)
            open_: list[Part] = []
            for each in parts:
                left = reduced(each, level, unit)
                if not isinstance(left, bool):
                    open_.append(left)
                elif left is decisive:
                    return decisive
            return type(part)(tuple(open_)) if open_ else not decisive


def _of_one(name: str) -> Callable[[RecordAt], Values]:
    get = OF_RECORD[name]
    return lambda unit: get(unit.one)


GETTERS: Final[dict[str, tuple[Level, Callable[[RecordAt], Values]]]] = {
    "topic": (Level.PARTITION, lambda unit: (topic_text(unit.field),)),
    "topic.id": (Level.PARTITION, lambda unit: topic_id_text(unit.field.topic_id)),
    "partition": (Level.PARTITION, lambda unit: (unit.field.partition,)),
    "codec": (Level.BATCH, lambda unit: (unit.batch.codec_name,)),
    "producer.id": (Level.BATCH, lambda unit: of_producer(unit.batch, "producer_id")),
    "producer.epoch": (Level.BATCH, lambda unit: of_producer(unit.batch, "producer_epoch")),
    "sequence": (Level.BATCH, lambda unit: first_sequence(unit.batch)),
    "offset": (Level.RECORD, _of_one("record.offset")),
    **{name: (Level.RECORD, _of_one(name)) for name in OF_RECORD},
}
"""Fields of records, with their sources; all other fields are those of the exchange."""


class RecordFilter:
    """A filter for records, applied to one exchange after the other."""

    def __init__(
        self, bound: Bound | None, names: Callable[[], TopicNames], known: Known = NOTHING
    ) -> None:
        self.bound = bound
        self._exchanges = Filter(None, known)
        self._known = known
        self._names = names
        self._part = None if bound is None else mapped(bound, self._leaf, cheapest_first)
        self.chosen: Chosen | None = None
        """The chosen records of the last exchange; None: all."""

    def __call__(self, row: Row, exchange: Exchange | None = None) -> bool:
        """Return whether records of the exchange are chosen, or all that there may be."""
        self.chosen = None
        if self._part is None or exchange is None:
            return self._part is None
        unit = RecordAt(row, exchange)
        left = reduced(self._part, Level.EXCHANGE, unit)
        self._exchanges.before_ns = row.time_ns
        if isinstance(left, bool):
            return left
        fields = fields_of(exchange, self._names())
        self.chosen = [self._of_field(left, unit, each) for each in fields]
        return any(each is True or (each and 1 in each) for each in self.chosen)

    def _of_field(self, part: Part, unit: RecordAt, field: RecordField) -> bool | bytes:
        unit.field = field
        left = reduced(part, Level.PARTITION, unit)
        if isinstance(left, bool):
            return left
        clean = shareable(field)
        step = 0 if field.source != "produce" else field.base_offset
        chosen = bytearray()
        for batch, (records, _) in field.opened(clean):
            # Nothing is compared where secrets cannot be masked: it may be one of them.
            if clean is None:
                records = [each._replace(key=None, value=None, headers=()) for each in records]
            first = None if step is None else step + len(chosen)
            chosen += self._of_batch(left, unit, batch, records, first)
        return bytes(chosen)

    def _of_batch(
        self, part: Part, unit: RecordAt, batch: Batch, records: Sequence[Record], first: int | None
    ) -> bytes:
        unit.batch = batch
        left = reduced(part, Level.BATCH, unit)
        if isinstance(left, bool):
            return bytes((left,)) * len(records)
        chosen = bytearray()
        produced = unit.field.source == "produce"
        for place, record in enumerate(records):
            given = None if first is None else first + place
            unit.record(One(batch, record, given if produced else record.offset))
            chosen.append(reduced(left, Level.RECORD, unit) is True)
        return bytes(chosen)

    def _leaf(self, test: Test | Search) -> Leaf:
        if isinstance(test, Search):
            return self._of_exchange(test)
        name, path = test.field.name, test.path
        if test.field.told_by == "schemas":
            decoding = self._known.decoding
            holds = scoped(test)
            if decoding is None:
                return Leaf(Level.EXCHANGE, lambda unit: holds(()))
            return Leaf(
                Level.RECORD, lambda unit: holds(read(unit.decoded_fields(decoding), name, path))
            )
        if path or name not in GETTERS:
            return self._of_exchange(test)
        level, get = GETTERS[name]
        holds = scoped(test)
        return Leaf(level, lambda unit: holds(get(unit)))

    def _of_exchange(self, bound: Bound) -> Leaf:
        part = self._exchanges.part(bound)
        return Leaf(Level.EXCHANGE, lambda unit: part(unit.row, unit.exchange))


def compile_records(
    text: str, names: Callable[[], TopicNames], known: Known = NOTHING
) -> RecordFilter:
    """Return the filter of a text for records; `FilterError` when it is invalid."""
    return RecordFilter(bound_of(text, known), names, known)
