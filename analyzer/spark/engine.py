"""The Spark engine: where each step of a job runs. The steps are those of `analyzer.pipeline`.

    files ─► index ─► parts ─► segments ─► by shard ─► rows of all tables ─► numbers, names

Workers write the rows of all tables; the driver merges small facts, and also runs the last step
when there are few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from kafkascope.analyzer.pipeline.job import Engine, Job, Parts
from kafkascope.analyzer.pipeline.places import is_remote, open_anywhere, size_of
from kafkascope.analyzer.pipeline.tables.facts import TableFacts
from kafkascope.analyzer.pipeline.tasks import task_config
from kafkascope.analyzer.spark import stages
from kafkascope.captures.merge.groups import Sketch, sketch_of
from kafkascope.captures.parts.split import Index

PARTITION_BYTES: Final = 64 << 20
DRIVER_BYTES: Final = 256 << 20
FEW_ROWS: Final = 2_000_000
T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Spark(Engine):
    """An engine on a Spark session."""

    session: Any
    tasks: int | None = None
    """Number of shuffle partitions; None chooses by size."""
    few: int | None = FEW_ROWS
    name = "spark"

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return what `work` makes of each item, in order: one task for each."""
        return stages.results(self.session, items, work)

    def index(self, names: list[str], split_bytes: int) -> list[Index]:
        """Index files, one task each; small inputs are indexed in the driver without Spark."""
        if _is_small(names):
            return Engine.index(self, names, split_bytes)
        return stages.index_files(self.session, names, split_bytes)

    def sketch(self, names: list[str], count: int) -> list[Sketch]:
        """Sample files, one task each; small inputs in the driver."""
        if _is_small(names):
            return Engine.sketch(self, names, count)
        return self.map(partial(_sketch, count), names)

    def rows(self, job: Job, earlier: TableFacts | None, folder: Path) -> Parts:
        """Shuffle the segments to their shards, and make the rows of these in workers."""
        tasks = self.tasks or max(2 * stages.parallelism(self.session), job.size // PARTITION_BYTES)
        return stages.rows(self.session, job, tasks, task_config(job, earlier), folder)


def _sketch(count: int, name: str) -> Sketch:
    return sketch_of(name, count, open_anywhere(name, 0))._replace(secrets=[])


def _is_small(names: list[str]) -> bool:
    return not any(map(is_remote, names)) and sum(map(size_of, names)) < DRIVER_BYTES
