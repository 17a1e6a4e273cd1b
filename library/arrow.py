"""Tables as Arrow: the only module of the library that imports pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

if TYPE_CHECKING:
    from kafkascope.analyzer.statistics.model import Column
    from kafkascope.library.capture import ArrowName, Capture
    from kafkascope.library.tables import Table, TableName

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


def table_of(capture: Capture, name: ArrowName) -> pa.Table:
    """Return a table of a capture."""
    if name in ("exchanges", "records"):
        batches = list(batches_of(capture, name, 1 << 16))
        from kafkascope.analyzer.pipeline.tables import schemas

        schema = (schemas.EXCHANGES if name == "exchanges" else schemas.RECORDS).schema
        return pa.Table.from_batches(batches, schema)
    return _statistic(capture.table(cast("TableName", name)))


def batches_of(capture: Capture, name: ArrowName, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield a table in pieces."""
    if name in ("exchanges", "records"):
        yield from _read(capture, name, rows)
    else:
        yield from _statistic(capture.table(cast("TableName", name))).to_batches(rows)


def _read(capture: Capture, name: str, rows: int) -> Iterator[pa.RecordBatch]:
    from kafkascope.analyzer.pipeline.tables.arrow import record_batch
    from kafkascope.analyzer.pipeline.tables.naming import named
    from kafkascope.analyzer.pipeline.tables.schemas import EXCHANGES, RECORDS
    from kafkascope.analyzer.pipeline.tables.values import exchange_values, record_values

    schema = (EXCHANGES if name == "exchanges" else RECORDS).schema
    waiting: list[tuple[Any, ...]] = []
    names = None
    for row, exchange, origin in capture.passes.rows():
        names = origin.names
        if name == "exchanges":
            waiting.append(exchange_values(row, exchange))
        else:
            waiting += record_values(row, exchange, names, [], origin.payloads)
        while len(waiting) >= rows:
            yield named(record_batch(waiting[:rows], schema), names)
            waiting = waiting[rows:]
    if waiting and names is not None:
        yield named(record_batch(waiting, schema), names)


def _statistic(table: Table) -> pa.Table:
    columns, lines = table.raw
    return pa.table(
        {each.name: _array(each, [line.get(each.name) for line in lines]) for each in columns}
    )


def _array(column: Column, values: list[Any]) -> pa.Array:
    from kafkascope.analyzer.pipeline.tables.arrow import array

    if column.kind == "list":
        values = [None if each is None else list(map(str, each)) for each in values]
    elif column.kind == "text":
        values = [None if each is None else str(each) for each in values]
    return array(values, KINDS[column.kind])
