"""How Python spends time and memory beside a keyboard: settings of the process, made once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

YOUNG: Final = 50_000
"""Objects after which Python looks for cycles; 700, as usual, is some for each key."""
OLD: Final = 50
"""Looks at the young ones before one at all: that takes as long as many keys."""
M_MMAP_THRESHOLD: Final = -3
APART: Final = 1 << 17
"""Bytes from which memory is taken apart from the heap."""


@contextmanager
def calm() -> Iterator[None]:
    """Few looks for cycles, and none at what was made before: modules, classes, styles."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG, 20, OLD)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def grow_in_place() -> None:
    """Let columns grow without leaving holes. The C library of most Linux systems moves that limit
    up with each large batch that it frees, until columns lie on the heap and are copied there."""
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, APART)
    except (OSError, AttributeError, TypeError):
        pass  # another C library
