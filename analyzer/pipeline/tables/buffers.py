"""Rows of one table until they fill a batch. State without I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from kafkascope.analyzer.pipeline.tables.arrow import record_batch

# Bytes of texts, lists and bodies in the rows of a batch.
MOST_BYTES: Final = 16 << 20
# Memory of an item of a list, besides its text.
ITEM_BYTES: Final = 16


class RowBuffer:
    """Holds rows, tuples in the order of a schema's columns, and knows how much they take."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.bytes = 0
        """What their values of no fixed width take: texts are up to 32 KB on the wire, lists of
        errors or topics as long as their messages, and bodies are whole messages."""
        self._rows: list[tuple[Any, ...]] = []
        self._texts = _getter(schema, _is_text)
        self._lists = _getter(schema, pa.types.is_nested)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        self.bytes += sum(map(len, filter(None, self._texts(row))))
        for values in filter(None, self._lists(row)):
            self.bytes += _size(values)

    def extend(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            self.add(row)

    def full(self, most: int) -> bool:
        """Return whether there are so many rows, or they take as much as a batch may."""
        return len(self._rows) >= most or is_much(self.bytes)

    def batch(self) -> pa.RecordBatch:
        """Return the rows as a batch, and begin anew."""
        made = record_batch(self._rows, self.schema)
        self._rows.clear()
        self.bytes = 0
        return made


def is_much(size: int) -> bool:
    """Return whether rows take as much as a batch may."""
    return size > MOST_BYTES


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _getter(
    schema: pa.Schema, of: Callable[[pa.DataType], bool]
) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return what gets the values of the columns of such a type."""
    places = [place for place, field in enumerate(schema) if of(field.type)]
    if len(places) < 2:  # `itemgetter` would return a lone value as it is
        return lambda row: tuple([row[place] for place in places])
    return itemgetter(*places)


def _size(values: Any) -> int:
    if values.__class__ is dict:
        values = values.values()
    size = ITEM_BYTES * len(values)
    for value in values:
        kind = value.__class__
        if kind is str or kind is bytes:
            size += len(value)
        elif kind is tuple or kind is list or kind is dict:
            size += _size(value)
    return size
