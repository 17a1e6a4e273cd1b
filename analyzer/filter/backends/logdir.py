"""The filter language over Kafka's own files: over batches (`ls`) and over records (`records`).

Fields that only exchanges have are refused with a sentence: a segment has no client, no latency and
no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.analyzer.filter.backends.exchange import Part, predicate, scoped
from kafkascope.analyzer.filter.bind import bound_of, demand, fields_of
from kafkascope.analyzer.filter.decoded.reading import read
from kafkascope.analyzer.filter.fields import DECODED
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.filter.message import OF_RECORD, One, Values, of_producer, topic_id_text
from kafkascope.analyzer.logdir.model import LogBatch
from kafkascope.analyzer.logdir.records import Place, opened
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.dissectors.records.records import Record

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.decoded.reading import Decoding, Found


class Unit(NamedTuple):
    """The object of a filter: a whole batch, or one record of it."""

    batch: LogBatch
    data: bytes
    place: Place
    record: Record | None = None

    @property
    def records(self) -> Sequence[Record]:
        """Return the record, or all of the batch as far as they can be read."""
        return opened(self.data, self.place) if self.record is None else [self.record]


def _if(wanted: bool, *values: Any) -> Values:
    return values if wanted else ()


def _each(name: str) -> Callable[[Unit], Values]:
    get = OF_RECORD[name]

    def values(unit: Unit) -> Values:
        ones = (One(unit.batch, record, record.offset) for record in unit.records)
        return tuple(value for one in ones for value in get(one))

    return values


GETTERS: Final[dict[str, Callable[[Unit], Values]]] = {
    "number": lambda unit: (unit.batch.number,),
    "time": _each("record.time"),
    "bytes": lambda unit: (unit.batch.size,),
    "topic": lambda unit: _if(unit.place.topic is not None, unit.place.topic),
    "topic.id": lambda unit: topic_id_text(unit.place.topic_id),
    "partition": lambda unit: _if(unit.place.partition >= 0, unit.place.partition),
    "producer.id": lambda unit: of_producer(unit.batch, "producer_id"),
    "producer.epoch": lambda unit: of_producer(unit.batch, "producer_epoch"),
    "codec": lambda unit: (unit.batch.codec,),
    "records": lambda unit: _if(unit.batch.records is not None, unit.batch.records),
    "offset": _each("record.offset"),
    "sequence": lambda unit: _if(unit.batch.base_sequence >= 0, unit.batch.base_sequence),
    **{name: _each(name) for name in OF_RECORD},
}
"""Getters of the values in a batch or record, by field."""


def compile_at_rest(text: str, known: Known = NOTHING) -> Part | None:
    """Return the predicate of a filter, None for a blank one; `FilterError`, also for fields that
    these files lack."""
    bound = bound_of(text, known)
    if bound is None:
        return None
    here = GETTERS.keys() | DECODED
    text_alone = fields_of(bound) - here == {"summary"}
    hint = 'write record.value contains "..."' if text_alone else f"available: {', '.join(GETTERS)}"
    demand(bound, text, here, "{} is a field of exchanges; Kafka's own files have none", hint)
    return predicate(bound, lambda test: _leaf(test, known.decoding))


def _decoded_fields(unit: Unit, decoding: Decoding) -> Iterator[Found]:
    """Yield the decoded fields of keys and values. Internal topics have formats of their own."""
    place = unit.place
    if not unit.batch.control and not is_internal(place.topic, place.topic_id):
        for record in unit.records:
            yield from decoding.of_record(place.topic, record)


def _leaf(test: Any, decoding: Decoding | None) -> Part:
    name, path, holds = test.field.name, test.path, scoped(test)
    if test.field.told_by == "schemas":
        assert decoding is not None  # Refused before.
        return lambda unit, _=None: holds(read(_decoded_fields(unit, decoding), name, path))
    get = GETTERS[name]
    return lambda unit, _=None: holds(get(unit))
