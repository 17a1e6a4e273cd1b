"""How the C library keeps the memory of large pieces."""

from __future__ import annotations

from typing import Final

M_MMAP_THRESHOLD: Final = -3
# Bytes of a message, its JSON, a column, or what a batch unfolds to.
LARGE: Final = 1 << 20


def large_apart(least: int = LARGE) -> None:
    """Take pieces from so many bytes on outside of the heap: they grow in place, and leave no hole
    when they go. The C library of most Linux systems moves that limit up with each large piece that
    is freed, up to 32 MB."""
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, least)
    except (OSError, AttributeError, TypeError):
        pass  # another C library
