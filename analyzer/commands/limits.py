"""Limits of the input and the lists of commands."""

from __future__ import annotations

from typing import Final, NamedTuple


class CommandLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # --- inputs

    # Hexadecimal text of a message as large as Kafka's are by default, several times.
    message_bytes: int = 150_000_000
    # A hosts file. Larger ones are something else.
    hosts_bytes: int = 16 << 20
    # Numbers of exchanges in a range.
    numbers: int = 1_000_000

    # --- outputs

    # Keys of a baseline that no longer occur and are named.
    gone_keys: int = 5
    # The slowest requests, where everything is shown.
    slow_requests: int = 10
    # Records of a key or a filter whose journeys are shown, without -n; the same of `--otlp`: some
    # 2 MB of spans; producers without a traceparent that are named.
    journeys: int = 10
    traced_journeys: int = 1_000
    untraced_producers: int = 10
    # Columns of what differs.
    difference_columns: int = 48


LIMITS: Final = CommandLimits()
