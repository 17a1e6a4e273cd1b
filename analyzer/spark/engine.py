"""The Spark engine: which stages there are and what runs where. The stages themselves are functions
of `analyzer.pipeline`.

    files ─► index ─► parts ─► segments ─► by connection ─► rows of all tables ─► numbers, names

One write holds the rows of all tables; small facts come back to the driver, are put together there
and go out again with the last step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analyzer.pipeline.facts import Facts
from analyzer.pipeline.flows import setting_of
from analyzer.pipeline.job import Job, index_all
from analyzer.pipeline.places import is_remote, size_of
from analyzer.pipeline.schemas import FACTS
from analyzer.spark import stages
from analyzer.spark.finish import finish
from captures.split import Index

if TYPE_CHECKING:
    from captures.model import Endpoint

MOST_ROUNDS: Final = 3
"""Each teaches connections what others have learned; two are enough but for contrived input."""
PARTITION_BYTES: Final = 64 << 20
DRIVER_BYTES: Final = 256 << 20


@dataclass(slots=True)
class Spark:
    """An engine on a session."""

    session: Any
    tasks: int | None = None
    """Shuffle partitions; None: by size."""
    spread: bool = False
    """Bodies are decoded by all tasks, wherever their connections are put together."""
    name: str = field(default="spark", init=False)

    def index(self, names: list[str], split_bytes: int) -> list[Index]:
        """Index files, one task each; few bytes are walked here before Spark has begun to."""
        if not any(map(is_remote, names)) and sum(map(size_of, names)) < DRIVER_BYTES:
            return index_all(names, split_bytes)
        return stages.index_files(self.session, names, split_bytes)

    def run(self, job: Job, staging: Path) -> tuple[Path, Facts]:
        """Make all tables."""
        known: dict[Endpoint, int] = {}
        rounds = 0
        while True:
            rounds += 1
            raw = staging / f"raw-{rounds}"
            self._rows(job, known, raw)
            facts = self._facts(job, raw)
            if not facts.unknown() or rounds == MOST_ROUNDS:
                break
            known = dict(facts.brokers)
        made = staging / "made"
        finish(self.session, job, facts, raw, made, self._tasks(job))
        return made, facts

    def _tasks(self, job: Job) -> int:
        if self.tasks:
            return self.tasks
        return max(2 * stages.parallelism(self.session), job.size // PARTITION_BYTES)

    def _rows(self, job: Job, known: dict[Endpoint, int], raw: Path) -> None:
        setting = setting_of(job, known, spread=self.spread)
        frame = stages.rows(self.session, job, setting, self._tasks(job))
        frame.write.mode("overwrite").partitionBy("table").parquet(str(raw))

    def _facts(self, job: Job, raw: Path) -> Facts:
        facts = Facts(job.before.topics)
        for row in stages.read(self.session, raw, FACTS).toLocalIterator():
            facts.merge(row["kind"], row["json"])
        return facts
