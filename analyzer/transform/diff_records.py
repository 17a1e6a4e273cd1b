"""What two fields of records hold differently: by content, whatever the batches and codecs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import CONTROL, Partial, Record, batches, open_batch

SHOWN: Final = 64
"""Bytes of a key or value that a difference shows."""
LIMIT: Final = 100_000
"""Records of a side that are compared."""


class RecordDifference(NamedTuple):
    """A place within two fields of records."""

    where: str
    left: Any
    right: Any
    volatile: bool
    """Offsets and times: two logs of the same records differ in them."""


def record_differences(left: bytes, right: bytes) -> Iterator[RecordDifference]:
    """Record by record; when one side cannot be read, that and nothing more."""
    one, bad = _records(left)
    two, worse = _records(right)
    if bad or worse:
        texts = bad or f"{len(one)} records", worse or f"{len(two)} records"
        yield RecordDifference("", *texts, False)
        return
    if len(one) != len(two):
        yield RecordDifference(".count", len(one), len(two), False)
    for index, (a, b) in enumerate(zip(one, two, strict=False)):
        if a == b:
            continue
        here = f"[{index}]"
        for name in ("key", "value", "headers"):
            was, now = getattr(a, name), getattr(b, name)
            if was != now:
                yield RecordDifference(f"{here}.{name}", _short(was), _short(now), False)
        for name in ("offset", "timestamp"):
            if (was := getattr(a, name)) != (now := getattr(b, name)):
                yield RecordDifference(f"{here}.{name}", was, now, True)


def _records(data: bytes) -> tuple[list[Record], str]:
    """The records and, when not all could be read, why."""
    found: list[Record] = []
    try:
        for batch in batches(data):
            if isinstance(batch, Partial):
                continue  # the cut batch at the end of a fetch: brokers send it, clients drop it
            if batch.attributes & CONTROL and batch.magic == 2:
                continue
            opened = open_batch(data, batch)
            found += opened.records
            if opened.error is not None:
                return found, str(opened.error)
            if len(found) > LIMIT:
                return found, f"more than {LIMIT} records"
    except DissectError as error:
        return found, str(error)
    return found, ""


def _short(value: Any) -> Any:
    if isinstance(value, bytes) and len(value) > SHOWN:
        return value[:SHOWN] + b"..."
    return value
