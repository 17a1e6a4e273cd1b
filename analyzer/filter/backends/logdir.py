"""The filter language over Kafka's own files: over batches (`ls`) and over records (`records`).

Fields that only exchanges have are refused with a sentence: a segment has no client, no latency and
no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.filter.backends.exchange import cheapest_first, scoped
from kafkascope.analyzer.filter.bind import Bound, Every, Find, Some, Test, Unless, bind, fields_of
from kafkascope.analyzer.filter.decoded.reading import read
from kafkascope.analyzer.filter.fields import DECODED
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.filter.message import OF_RECORD, One
from kafkascope.analyzer.filter.places import decodes, demand
from kafkascope.analyzer.logdir.model import LogBatch
from kafkascope.analyzer.logdir.records import Place, opened
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.values import Uuid

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.decoded.reading import Decoding, Found

Values: TypeAlias = tuple[Any, ...]


class Unit(NamedTuple):
    """The object of a filter: a whole batch, or one record of it."""

    batch: LogBatch
    data: bytes
    """The batch's bytes."""
    place: Place
    record: Record | None = None

    @property
    def records(self) -> Sequence[Record]:
        """Return the record, or all of the batch as far as they can be read."""
        return opened(self.data, self.place) if self.record is None else [self.record]


Predicate: TypeAlias = Callable[[Unit], bool]


def _if(wanted: bool, *values: Any) -> Values:
    return values if wanted else ()


def _each(name: str) -> Callable[[Unit], Values]:
    get = OF_RECORD[name]

    def values(unit: Unit) -> Values:
        ones = (One(unit.batch, record, record.offset) for record in unit.records)
        return tuple(value for one in ones for value in get(one))

    return values


def _topic_id(unit: Unit) -> Values:
    found = unit.place.topic_id
    return () if found is None else (str(Uuid(found)),)


GETTERS: Final[dict[str, Callable[[Unit], Values]]] = {
    "number": lambda unit: (unit.batch.number,),
    "time": _each("record.time"),
    "bytes": lambda unit: (unit.batch.size,),
    "topic": lambda unit: _if(unit.place.topic is not None, unit.place.topic),
    "topic.id": _topic_id,
    "partition": lambda unit: _if(unit.place.partition >= 0, unit.place.partition),
    "producer.id": lambda unit: _if(unit.batch.producer_id >= 0, unit.batch.producer_id),
    "producer.epoch": lambda unit: _if(unit.batch.producer_id >= 0, unit.batch.producer_epoch),
    "codec": lambda unit: (unit.batch.codec,),
    "records": lambda unit: _if(unit.batch.records is not None, unit.batch.records),
    "offset": _each("record.offset"),
    "sequence": lambda unit: _if(unit.batch.base_sequence >= 0, unit.batch.base_sequence),
    **{name: _each(name) for name in OF_RECORD},
}
"""Getters of the values in a batch or record, by field."""


def compile_at_rest(text: str, known: Known = NOTHING) -> Predicate | None:
    """Return the predicate of a filter, None for a blank one; `FilterError`, also for fields that
    these files lack."""
    bound = bind(text)
    if bound is None:
        return None
    decodes(bound, text, known)
    here = GETTERS.keys() | DECODED
    text_alone = fields_of(bound) - here == {"summary"}
    hint = 'write record.value contains "..."' if text_alone else f"available: {', '.join(GETTERS)}"
    demand(bound, text, here, "{} is a field of exchanges; Kafka's own files have none", hint)
    return _part(bound, known.decoding)


def _said(unit: Unit, decoding: Decoding) -> Iterator[Found]:
    """Yield what keys and values say by their schemas. Internal topics have formats of their
    own."""
    place = unit.place
    if not unit.batch.control and not is_internal(place.topic, place.topic_id):
        for record in unit.records:
            yield from decoding.of_record(place.topic, record)


def _part(bound: Bound, decoding: Decoding | None) -> Predicate:
    match bound:
        case Every(terms):
            every = [_part(term, decoding) for term in cheapest_first(terms)]
            return lambda unit: all(part(unit) for part in every)
        case Some(terms):
            some = [_part(term, decoding) for term in cheapest_first(terms)]
            return lambda unit: any(part(unit) for part in some)
        case Unless(term):
            part = _part(term, decoding)
            return lambda unit: not part(unit)
        case Test() if bound.field.told_by == "schemas":
            assert decoding is not None  # Refused before.
            name, path, decoded_holds = bound.field.name, bound.path, scoped(bound)
            return lambda unit: decoded_holds(read(_said(unit, decoding), name, path))
        case Test():
            get, holds = GETTERS[bound.field.name], scoped(bound)
            return lambda unit: holds(get(unit))
        case Find():
            raise AssertionError(bound)  # Refused before.
