"""Rows as tuples to Arrow, column by column."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any

import pyarrow as pa


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ImportError


def spare_pandas() -> None:
    """Let pyarrow convert lists without pandas, which it imports once (0.3 s) to check for its
    types. For a process that makes no DataFrame, before the first list."""
    if "pandas" in sys.modules:
        return
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)


def record_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of rows whose values are in the order of the schema's columns."""
    if not rows:
        return pa.RecordBatch.from_pylist([], schema)
    columns = zip(*rows, strict=True)
    arrays = [array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column. Invalid bytes of texts that are not UTF-8 (client ids may hold any bytes)
    become escapes; numbers that do not fit become null."""
    try:
        return pa.array(values, kind)
    except (UnicodeEncodeError, pa.ArrowInvalid, OverflowError):
        return pa.array([_fitting(value, kind) for value in values], kind)


def _fitting(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int) and pa.types.is_integer(kind):
        limit = 1 << kind.bit_width - 1
        return value if -limit <= value < limit else None
    if pa.types.is_struct(kind):
        parts = value if isinstance(value, tuple) else tuple(value.values())
        return tuple(_fitting(part, field.type) for part, field in zip(parts, kind, strict=True))
    if pa.types.is_list(kind):
        return [_fitting(each, kind.value_type) for each in value]
    return value
