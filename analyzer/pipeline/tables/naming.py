"""Late names: replaces topic ids in whole batches of rows by names that any part of the input
gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafkascope.analyzer.pipeline.tables.arrow import array
from kafkascope.schemas.decoding import OPEN_SUBJECT, with_subject

if TYPE_CHECKING:
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.schemas.framing import Side

SIDES: Final[tuple[Side, ...]] = ("key", "value")
COLUMNS: Final = ("topic", "topics", "implied_topics", "errors")
"""Columns that may hold the start of an id in place of a name."""


def named(batch: pa.RecordBatch, names: TopicNames) -> pa.RecordBatch:
    """Return the batch with all names that are known; the same batch when that changes nothing."""
    for name in COLUMNS:
        index = batch.schema.get_field_index(name)
        if index < 0 or not _has_ids(batch.column(index)):
            continue
        field = batch.schema.field(index)
        values = [_named(value, names) for value in batch.column(index).to_pylist()]
        batch = batch.set_column(index, field, array(values, field.type))
    return _with_subjects(batch)


def _with_subjects(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Choose the subjects of schemas that the names of topics decide."""
    for side in SIDES:
        index = batch.schema.get_field_index(f"{side}_schema")
        if index < 0 or not pc.any(pc.match_substring(batch.column(index), OPEN_SUBJECT)).as_py():
            continue
        place = batch.schema.get_field_index("topic")
        topics = [None] * len(batch) if place < 0 else batch.column(place).to_pylist()
        texts = batch.column(index).to_pylist()
        values = [
            text if text is None or OPEN_SUBJECT not in text else with_subject(text, topic, side)
            for text, topic in zip(texts, topics, strict=True)
        ]
        field = batch.schema.field(index)
        batch = batch.set_column(index, field, array(values, field.type))
    return batch


def unnamed(batch: pa.RecordBatch) -> bool:
    """Return whether a batch has ids in place of names."""
    found = (batch.schema.get_field_index(name) for name in COLUMNS)
    return any(index >= 0 and _has_ids(batch.column(index)) for index in found)


def _has_ids(column: pa.Array) -> bool:
    if pa.types.is_list(column.type):
        column = column.flatten()
    topics = column.field("topic") if pa.types.is_struct(column.type) else column
    return bool(pc.any(pc.ends_with(topics, "?")).as_py())


def _named(value: Any, names: TopicNames) -> Any:
    if isinstance(value, str):
        return names.late(value)
    if not value:
        return value
    if isinstance(value[0], dict):
        return [
            each if each["topic"] is None else each | {"topic": names.late(each["topic"])}
            for each in value
        ]
    return list(names.late_all(tuple(value)))
