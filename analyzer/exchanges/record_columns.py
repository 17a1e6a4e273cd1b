"""Columns of records: members of record/1, and fields of decoded keys and values by their path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kafkascope.analyzer.exchanges.records import BY_SCHEMA
from kafkascope.schemas.paths import Path, field_at, field_text, split

RECORD_COLUMNS: Final = (
    "exchange",
    "source",
    "topic",
    "topic_id",
    "partition",
    "offset",
    "time",
    "key",
    "value",
    "headers",
    "codec",
    "magic",
    "producer_id",
    "producer_epoch",
    "sequence",
    "transactional",
    "control",
    *BY_SCHEMA,
)


def checked(names: Iterable[str]) -> None:
    """Raise `ValueError` at the first name that is no column of records."""
    for name in names:
        if name not in RECORD_COLUMNS and decoded_path(name) is None:
            known = ", ".join((*RECORD_COLUMNS, "value.FIELD", "key.FIELD"))
            raise ValueError(f'records have no column "{name}": {known}')


def decoded_path(name: str) -> tuple[str, Path] | None:
    """Return side and path of a column such as `value.amount`, which filters call
    `record.value.amount`; None for other names. `ValueError` where the path is none."""
    side, dot, rest = name.removeprefix("record.").partition(".")
    return (side, split(rest)) if dot and side in ("key", "value") else None


def decoded_text(record: dict[str, Any], name: str, nothing: str) -> str:
    """Return the cell of such a column: several values with semicolons between them."""
    found = decoded_path(name)
    if found is None:
        return nothing
    side, path = found
    return field_text(record.get(f"{side}_decoded"), path) or nothing


def json_value(record: dict[str, Any], name: str) -> Any:
    """Return what a column has in JSON: null where a record lacks it, an array where the path of a
    field leads through one."""
    found = None if name in record else decoded_path(name)
    if found is None:
        return record.get(name)
    side, path = found
    return field_at(record.get(f"{side}_decoded"), path)
