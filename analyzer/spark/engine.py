"""The Spark engine: the order of the stages and where each runs. The stages call functions of
`analyzer.pipeline`.

    files ─► index ─► parts ─► segments ─► by connection ─► rows of all tables ─► numbers, names

Workers write the rows of all tables; the driver merges small facts, and also runs the last step
when there are few rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from kafkascope.analyzer.pipeline import plain
from kafkascope.analyzer.pipeline.flows import setting_of
from kafkascope.analyzer.pipeline.job import Job, index_all, sketch_all
from kafkascope.analyzer.pipeline.keys import agreement_of
from kafkascope.analyzer.pipeline.places import is_remote, size_of
from kafkascope.analyzer.pipeline.schemas import sent
from kafkascope.analyzer.pipeline.tables.facts import Facts
from kafkascope.analyzer.pipeline.tables.schemas import FACTS
from kafkascope.analyzer.spark import stages
from kafkascope.analyzer.spark.finish import finish
from kafkascope.captures.merge.sketches import Sketch
from kafkascope.captures.parts.split import Index

PARTITION_BYTES: Final = 64 << 20
DRIVER_BYTES: Final = 256 << 20
FEW_ROWS: Final = 2_000_000


@dataclass(slots=True)
class Spark:
    """An engine on a Spark session."""

    session: Any
    tasks: int | None = None
    """Number of shuffle partitions; None chooses by size."""
    spread: bool = False
    """Whether all tasks decode bodies, not only those that reassemble the connections."""
    few: int = FEW_ROWS
    """Rows up to which the driver numbers and names them: starting other tasks would take
    longer."""
    name: str = field(default="spark", init=False)

    def index(self, names: list[str], split_bytes: int) -> list[Index]:
        """Index files, one task each; small inputs are indexed in the driver without Spark."""
        if not any(map(is_remote, names)) and sum(map(size_of, names)) < DRIVER_BYTES:
            return index_all(names, split_bytes)
        return stages.index_files(self.session, names, split_bytes)

    def sketch(self, names: list[str], count: int) -> list[Sketch]:
        """Sample files, one task each; small inputs in the driver."""
        if not any(map(is_remote, names)) and sum(map(size_of, names)) < DRIVER_BYTES:
            return sketch_all(names, count)
        return stages.sketch_files(self.session, names, count)

    def run(self, job: Job, staging: Path) -> tuple[Path, Facts]:
        """Make all tables."""
        agreement = agreement_of(job)
        if agreement is not None:
            setting = setting_of(job, keys=agreement.told)
            agreement.begin(stages.handshakes(self.session, job, setting, self._tasks(job)))

        def rows(earlier: Facts | None, raw: Path) -> tuple[plain.Parts, Facts]:
            keys = None if agreement is None else agreement.told
            setting = setting_of(job, earlier, spread=self.spread, keys=keys)
            parts = stages.rows(self.session, job, setting, self._tasks(job), raw)
            return parts, _facts(job, parts)

        parts, facts = plain.in_rounds(rows, staging / "raw", agreement, job.schemas)
        facts.put_in_order(lambda asked: stages.answers(self.session, job, asked))
        made = staging / "made"
        if sum(facts.rows.values()) <= self.few and not job.options.segments:
            plain.finish(job, facts, parts, made)
        else:
            finish(self.session, job, facts, parts, made, self._tasks(job))
        plain.write_left(job, agreement, made)
        return made, facts

    def _tasks(self, job: Job) -> int:
        if self.tasks:
            return self.tasks
        return max(2 * stages.parallelism(self.session), job.size // PARTITION_BYTES)


def _facts(job: Job, parts: plain.Parts) -> Facts:
    facts = Facts(job.before.topics, None if job.schemas is None else sent(job.schemas))
    for path in parts.get(FACTS.name, ()):
        for batch in pq.ParquetFile(path).iter_batches(1):
            facts.merge_all(batch)
    return facts
