"""Tables as Arrow: the only module of the library that imports pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafkascope.analyzer.pipeline.tables.arrow import array
from kafkascope.analyzer.pipeline.tables.buffers import RowBuffer
from kafkascope.analyzer.pipeline.tables.naming import named
from kafkascope.analyzer.pipeline.tables.schemas import EXCHANGES, RECORDS
from kafkascope.analyzer.pipeline.tables.values import exchange_values, record_values

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.model import Column
    from kafkascope.library.passes import Passes
    from kafkascope.library.tables import OwnName, Table

KINDS: Final = {
    "text": pa.string(),
    "count": pa.int64(),
    "size": pa.int64(),
    "duration": pa.duration("ns"),
    "time": pa.timestamp("ns", "UTC"),
    "share": pa.float64(),
    "rate": pa.float64(),
    "flag": pa.bool_(),
    "list": pa.list_(pa.string()),
}
"""Kinds of columns of statistics."""

BATCH_BYTES: Final = 8 << 20
"""Bytes of texts from which on a batch has fewer rows: the program that reads holds the one before,
and memory that the C library of that program does not give back."""
_OWN: Final = {each.name: each.schema for each in (EXCHANGES, RECORDS)}
"""Schemas of the tables that are made while a capture is read."""


def whole(passes: Passes, name: OwnName) -> pa.Table:
    """Return a table that is made while a capture is read."""
    return pa.Table.from_batches(list(batches_of(passes, name, 1 << 16)), _OWN[name])


def batches_of(passes: Passes, name: OwnName, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield such a table in pieces."""
    buffer = RowBuffer(_OWN[name])
    names = None
    made: Iterator[tuple[Any, ...]]
    for row, exchange, origin in passes.rows():
        names = origin.names
        if name == "exchanges":
            made = iter([exchange_values(row, exchange)])
        else:
            made = record_values(row, exchange, names, [], origin.payloads)
        for _ in map(buffer.add, made):
            if buffer.full(rows) or buffer.bytes > BATCH_BYTES:
                yield named(buffer.batch(), names)
    if len(buffer) and names is not None:
        yield named(buffer.batch(), names)


def statistic(table: Table) -> pa.Table:
    """Return a table of statistics."""
    columns, lines = table.raw
    return pa.table(
        {each.name: _array(each, [line.get(each.name) for line in lines]) for each in columns}
    )


def _array(column: Column, values: list[Any]) -> pa.Array:
    if column.kind == "list":
        values = [None if each is None else list(map(str, each)) for each in values]
    elif column.kind == "text":
        values = [None if each is None else str(each) for each in values]
    return array(values, KINDS[column.kind])
