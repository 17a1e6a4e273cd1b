"""Limits of keys, names and events in statistics."""

from __future__ import annotations

from typing import Final, NamedTuple


class MergingLimits(NamedTuple):
    """Names are counts. A field of a statistic may declare a smaller one."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # Keys of one table. Those with the smallest hashes stay, and all others are summed up as one:
    # the same keys then stay whatever the order of exchanges, and however a capture is divided.
    keys: int = 10_000
    # One set of names beside a key; a larger one, and different values that are only counted.
    names: int = 64
    many_names: int = 1_024
    # Events of one statistic, and of one key of a finding; the latest stay. One takes 400 bytes.
    events: int = 4_000
    few_events: int = 1_000
    # Rows of integers of a table: 80 MB in ten columns, where as many events would take 400 MB.
    rows: int = 1 << 20
    # Events of all keys of a table together, some 200 MB: where there are more than 128 keys each
    # keeps fewer. The number of keys decides, in whatever order they came.
    table_events: int = 1 << 19
    # The same of each set of names: where there are more than 4,096 keys each keeps fewer.
    table_names: int = 1 << 18
    # Keys of a table from which on they may have to share the above.
    shared_from: int = 64


LIMITS: Final = MergingLimits()
