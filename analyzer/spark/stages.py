"""The stages as DataFrames. Functions that run in workers are closures made here, so that they
carry values but not the session."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

import pyarrow as pa

from kafkascope.analyzer.pipeline.places import open_anywhere, size_of
from kafkascope.analyzer.pipeline.plain import task_rows, together
from kafkascope.analyzer.pipeline.segments import SCHEMA, segments, sized
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tasks import TaskConfig, carried
from kafkascope.captures.parts.split import Index, index
from kafkascope.captures.parts.stretches import bounds, head_of, joined, walked

if TYPE_CHECKING:
    from kafkascope.analyzer.pipeline.job import Job, Parts

ROWS: Final = 4096
# Bytes of a batch between the JVM and Python.
BYTES: Final = 16 << 20
# New objects after which workers collect garbage; 700 is the default.
GC_THRESHOLD: Final = 50_000
# Number of parts from which on several tasks index a file.
STRETCHES: Final = 4

Batches = Iterator[pa.RecordBatch]
T = TypeVar("T")
R = TypeVar("R")
RESULT: Final = pa.schema([("number", pa.int64()), ("result", pa.binary())])


def spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def parallelism(session: Any) -> int:
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:
        # Spark Connect has no context.
        return int(session.conf.get("spark.default.parallelism", "8"))


# --- index --------------------------------------------------------------------------------------


def index_files(session: Any, names: list[str], split_bytes: int) -> list[Index]:
    """Return the indexes of files, in the order of the names: one task for each file, many for a
    large uncompressed pcap."""
    heads: dict[str, bytes] = {}
    parts: list[tuple[str, int, int]] = []
    for name in names:
        size = size_of(name)
        head = head_of(name, open_anywhere) if size >= STRETCHES * split_bytes else None
        if head is None:
            parts.append((name, 0, size))
            continue
        heads[name] = head
        parts += ((name, start, end) for start, end in bounds(size, split_bytes))

    def work(part: tuple[str, int, int]) -> Any:
        name, start, end = part
        if name in heads:
            return walked(name, open_anywhere, heads[name], start, end)
        return index(name, open_anywhere, split_bytes=split_bytes)

    found: dict[str, list[Any]] = {name: [] for name in names}
    for (name, *_), result in zip(parts, results(session, parts, work), strict=True):
        found[name].append(result)
    return [
        joined(name, open_anywhere, heads[name], found[name]) if name in heads else found[name][0]
        for name in names
    ]


def results(session: Any, items: Sequence[T], work: Callable[[T], R]) -> list[R]:
    """Return what `work` makes of each item, one task for each."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                data = pickle.dumps(work(items[number]))
                yield record_batch([(number, data)], RESULT)

    numbers = session.range(0, len(items), 1, max(1, min(len(items), 10_000)))
    found = numbers.mapInArrow(run, spark_schema(RESULT)).collect()
    return [pickle.loads(row["result"]) for row in sorted(found, key=lambda row: row["number"])]


# --- rows ---------------------------------------------------------------------------------------


def rows(session: Any, job: Job, tasks: int, config: TaskConfig, raw: Path) -> Parts:
    """Make the rows of all tables: files below `raw`, one for each table and task. The files of a
    task count only after it has succeeded, when its list of files is read."""
    from pyspark.sql import functions as F

    by_hosts, folder = job.by_hosts, raw.resolve()
    # The function carries the parts: as rows they would have to be shuffled to be apart.
    parts = [(file.name, split) for file in job.files for split in file.splits]

    def read(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from sized(segments(*parts[number], by_hosts=by_hosts), ROWS, BYTES)

    def write(batches: Batches) -> Batches:
        """Write rows to files in the worker, not through the JVM."""
        # Messages make hardly any cycles; looking for them took a sixth of the time.
        gc.set_threshold(GC_THRESHOLD, 8, 20)
        file = f"{uuid4().hex}.parquet"
        found = task_rows(config, folder, file, lambda task: task.run(batches))
        yield pa.RecordBatch.from_arrays(
            [pa.array(found, pa.string()), pa.array(map(str, found.values()), pa.string())],
            names=["table", "path"],
        )

    # Empty files have no parts.
    numbers = session.range(0, len(parts), 1, max(1, len(parts)))
    found = numbers.mapInArrow(read, spark_schema(SCHEMA))
    if job.before.carried:
        left = pa.Table.from_batches([carried(job)])
        found = found.union(session.createDataFrame(left, spark_schema(SCHEMA)))
    shards = found.repartition(tasks, F.col("flow_id")).sortWithinPartitions("flow_id", "packet")
    written = shards.mapInArrow(write, "table string, path string").collect()
    paths = sorted((str(row["path"]), row["table"]) for row in written)
    return together({table: Path(path)} for path, table in paths)
