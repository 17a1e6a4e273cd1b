"""Settings of the process for a program that waits for keys: garbage collection and memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

GC_THRESHOLD: Final = 50_000
"""New objects after which garbage is collected; 700, the default, is several times for each key."""
GC_OLD_THRESHOLD: Final = 50
"""Collections of younger objects before one of all, which takes as long as many keys."""
M_MMAP_THRESHOLD: Final = -3
APART: Final = 1 << 17
"""Bytes from which memory is taken outside of the heap."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely, and never what was made before: modules, classes, styles."""
    before = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD, 20, GC_OLD_THRESHOLD)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def grow_in_place() -> None:
    """Let columns grow without holes in the heap. The C library of most Linux systems moves that
    limit up with each large batch that it frees, until columns are on the heap and copied there."""
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, APART)
    except (OSError, AttributeError, TypeError):
        pass  # another C library
