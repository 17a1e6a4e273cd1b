"""Commands with and without worker processes, and workers in this process, a round at a time."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.offline import OpenInput
from kafkascope.analyzer.exchanges.row_json import json_of_row
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.pool.merging import WorkerMerge, sum_of
from kafkascope.analyzer.pool.messages import Placeholders, Work, WorkerBatch, WorkerSummary
from kafkascope.analyzer.pool.worker import Worker
from kafkascope.captures.streams.shares import Share
from tests.kit.run import run as in_process
from tests.kit.samples import ROOT

RUN = [sys.executable, "-m", "kafkascope"]
needs_fork = pytest.mark.skipif(
    not hasattr(os, "fork") or sys.platform == "darwin", reason="no workers are forked here"
)


def run(*words: str | Path) -> tuple[int, bytes, bytes]:
    done = subprocess.run([*RUN, *map(str, words)], capture_output=True, cwd=ROOT)
    return done.returncode, done.stdout, done.stderr


def here(*words: object) -> tuple[int, bytes, bytes]:
    """Run a command in this process, which takes a tenth of the time."""
    done = in_process(*words)
    return done.exit_code, done.stdout_bytes, done.stderr_bytes


PLACEHOLDERS = Placeholders(12_345_678_901_234_567, 22_345_678_901_234_567)


def line_of(row: Row, *_: object) -> bytes:
    return json_of_row(row) + b"\n"


def lines_of(capture: OpenInput) -> list[bytes]:
    """The lines of one process."""
    names = capture.context.names
    return [line_of(row_of(exchange, names)) for exchange in capture.exchanges()]


WORK = Work(shape=line_of)


def rounds(
    captures: Iterable[OpenInput], merge: WorkerMerge, works: list[Work]
) -> Iterator[list[WorkerBatch] | list[WorkerSummary]]:
    """Yield what workers send, each block's together; all of them learn the names of all."""
    count = len(works)
    workers = [
        Worker(capture, Share(number, count), PLACEHOLDERS, work)
        for number, (capture, work) in enumerate(zip(captures, works, strict=True))
    ]
    for each in workers:
        each.learn = lambda _: merge.names.all()
    yield from map(list, zip(*(each.run() for each in workers), strict=True))  # type: ignore[misc]


def together(
    captures: list[OpenInput], works: list[Work]
) -> tuple[list[bytes], WorkerSummary, WorkerMerge]:
    merge = WorkerMerge(len(works), PLACEHOLDERS, prints=works[0].shape is not None)
    lines: list[bytes] = []
    try:
        for found in rounds(captures, merge, works):
            if isinstance(found[0], WorkerSummary):
                lines += merge.finish().data.splitlines(keepends=True)
                return lines, sum_of(found), merge  # type: ignore[arg-type]
            lines += merge.take(found).data.splitlines(keepends=True)  # type: ignore[arg-type]
    finally:
        for capture in captures:
            capture.close()
    raise AssertionError("no summary")
