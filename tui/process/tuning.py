"""When a program that waits for keys collects garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

GC_THRESHOLD: Final = 50_000
"""New objects after which garbage is collected; 700, the default, is several times for each key."""
GC_OLD_THRESHOLD: Final = 50
"""Collections of younger objects before one of all, which takes as long as many keys."""


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
