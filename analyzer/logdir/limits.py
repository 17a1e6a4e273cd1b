"""Limits for reading Kafka's own files."""

from __future__ import annotations

from typing import Final, NamedTuple


class LogDirLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # Offsets of a segment, which have to fit its index: base offset plus an int32.
    relative_offset: int = 2**31 - 1
    # Old compressed entries of a segment that are opened for their first offset, and records of
    # one: beyond it an offset is taken for a damaged one.
    opened_entries: int = 20_000
    entry_records: int = 1 << 20
    # Other indexes of the partition that are compared; an index, which brokers limit to 10 MB
    # (log.index.size.max.bytes).
    indexes: int = 16
    index_bytes: int = 10 << 20
    # Notes of one kind.
    notes: int = 10


LIMITS: Final = LogDirLimits()
