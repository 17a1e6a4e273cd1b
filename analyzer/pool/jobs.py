"""How many processes may read an input together, and are worth their start."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Final

from kafkascope.captures.inputs.opening import is_regular

if TYPE_CHECKING:
    from kafkascope.captures.inputs.files import Source

# Bytes of input from which on several processes are worth their start, and the merging of what they
# counted. Seconds of one and of two, small messages: 10 MB `check` 0.50, 0.60, `ls` 0.28, 0.26,
# `export --full` 0.43, 0.43; 20 MB `check` 0.75, 0.76, `ls` 0.40, 0.38; 40 MB `check` 1.28, 1.08.
LARGE: Final = 24 << 20
# Processes that are started unasked: each walks all packets.
MOST_JOBS: Final = 8


def jobs_for(source: Source, wanted: int = 0) -> int:
    """Return how many processes may read an input; 0 for one alone. `wanted`: as many as the user
    says; else as many as are worth it."""
    if not all(map(is_regular, source.names)):
        return 0
    if not wanted and source.size < LARGE:
        return 0
    jobs = wanted or min(cores(), MOST_JOBS)
    if jobs < 2 or not can_fork():
        return 0
    if wanted:
        return jobs
    from kafkascope.captures.streams.shares import is_busy, is_divisible

    few = is_busy(source.names) or not is_divisible(source.names, source.size)
    return 0 if few else jobs


def can_fork() -> bool:
    """Return whether workers can be forked here: on macOS the system's libraries do not like it,
    and only the main thread hears ctrl+c."""
    main = threading.current_thread() is threading.main_thread()
    return hasattr(os, "fork") and sys.platform != "darwin" and main


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
