"""Limits for parsing request logs."""

from __future__ import annotations

from typing import Final, NamedTuple


class RequestLogLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # A line, and all parts of lines that wait. Metadata of a cluster with 100,000 partitions is
    # about 15 MB of JSON; shippers cut lines at 1 MiB at the latest.
    line_bytes: int = 16 << 20
    # What stands before the message, in which time stamps and levels are searched for.
    prefix_bytes: int = 1_024
    # Streams of a container's log whose lines may be incomplete at a time: there are two.
    streams: int = 16
    # Objects and arrays of one document: each is at least 56 bytes in memory and two characters in
    # the line, so 16 MiB of `[[],[],...` would take half a GB. A Metadata response with 150,000
    # partitions has 600,000.
    containers: int = 1 << 21
    # A time in milliseconds. No request takes ten years; sums of times must fit int64.
    request_ms: int = 10 * 366 * 86_400_000


LIMITS: Final = RequestLogLimits()
