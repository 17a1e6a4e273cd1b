"""The progress line on a terminal: the running stage, its progress and the time left."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.terminal import status

EVERY_S: Final = 0.5


@contextlib.contextmanager
def shown(session: Any, size: int, *, quiet: bool) -> Iterator[None]:
    """Show progress on stderr while the body runs, when that is a terminal. `size`: bytes of the
    captures."""
    # Spark Connect has no context, which has the status tracker.
    context = None if quiet or not sys.stderr.isatty() else getattr(session, "_sc", None)
    if context is None:
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(context.statusTracker(), size, done))
    thread.daemon = True
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        status()


def _watch(tracker: Any, size: int, done: threading.Event) -> None:
    begun: dict[int, float] = {}
    while not done.wait(EVERY_S):
        stages = tracker.getActiveStageIds()
        found = [info for info in map(tracker.getStageInfo, stages) if info is not None]
        if not found:
            continue
        stage = max(found, key=lambda info: info.numTasks)
        now = time.monotonic()
        took = now - begun.setdefault(stage.stageId, now)
        status(line_of(stage, took, size))


def line_of(stage: Any, took: float, size: int) -> str:
    """Return the line for a stage: tasks, and rate and time left once the first tasks are done."""
    part = stage.numCompletedTasks / stage.numTasks if stage.numTasks else 0
    text = f"stage {stage.stageId}: {stage.numCompletedTasks} of {stage.numTasks} tasks"
    if part and took > 1:
        rate = part * size / took / 1e6
        text += f", {rate:.0f} MB/s, {took * (1 / part - 1):.0f} s left"
    return text
