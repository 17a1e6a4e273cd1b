"""The stages as DataFrames. Functions that run in workers are made by functions here, so that they
carry values and nothing of the session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analyzer.pipeline.arrow import padded
from analyzer.pipeline.flows import Flows, Setting, carried
from analyzer.pipeline.places import open_anywhere
from analyzer.pipeline.schemas import Table, superset
from analyzer.pipeline.segments import SCHEMA, segments, sized
from captures.split import Index, Split, index

if TYPE_CHECKING:
    from pathlib import Path

    from analyzer.pipeline.job import Job

ROWS: Final = 4096
BYTES: Final = 16 << 20
"""Of a batch between the JVM and Python."""

Batches = Iterator[pa.RecordBatch]


def spark_schema(schema: pa.Schema) -> Any:
    """The same schema as Spark has it."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def parallelism(session: Any) -> int:
    """Tasks that run at once."""
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:
        # Spark Connect has no context.
        return int(session.conf.get("spark.default.parallelism", "8"))


# --- index --------------------------------------------------------------------------------------


def index_files(session: Any, names: list[str], split_bytes: int) -> list[Index]:
    """Index files, one task each; the indexes in the order of the names."""
    from pyspark.sql import functions as F

    lines = [(number, name) for number, name in enumerate(names)]
    frame = session.createDataFrame(lines, "number int, name string")
    count = min(len(names), 10_000)
    spread = frame.repartitionByRange(count, F.col("number")) if count > 1 else frame
    found = spread.mapInArrow(_indexer(split_bytes), "number int, json string")
    told = {row["number"]: json.loads(row["json"]) for row in found.collect()}
    return [_index_of(told[number]) for number in range(len(names))]


def _indexer(split_bytes: int) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        for batch in batches:
            for number, name in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                found = index(name, open_anywhere, split_bytes=split_bytes)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([number], pa.int32()), pa.array([_index_text(found)])],
                    names=["number", "json"],
                )

    return work


def _index_text(found: Index) -> str:
    values = {name: getattr(found, name) for name in Index.__slots__}
    values["splits"] = [each.to_json() for each in found.splits]
    whole = Split(0, 0, 0, None, 0, 1, b"", "<", 0, tuple(found.interfaces), 0)
    values["interfaces"] = whole.to_json()
    return json.dumps(values)


def _index_of(values: dict[str, Any]) -> Index:
    values["splits"] = [Split.from_json(each) for each in values["splits"]]
    values["interfaces"] = list(Split.from_json(values["interfaces"]).interfaces)
    return Index(**values)


# --- rows ---------------------------------------------------------------------------------------


def rows(session: Any, job: Job, setting: Setting, tasks: int) -> Any:
    """The rows of all tables, with the name of each one's table."""
    from pyspark.sql import functions as F

    parts = [
        (number, file.name, json.dumps(split.to_json()))
        for number, (file, split) in enumerate(
            (file, split) for file in job.files for split in file.splits
        )
    ]
    frame = session.createDataFrame(parts, "number int, name string, split string")
    frame = one_each(frame, len(parts))
    found = frame.mapInArrow(_reader(), spark_schema(SCHEMA))
    if job.before.carried:
        left = pa.Table.from_batches([carried(job)])
        found = found.union(session.createDataFrame(left, spark_schema(SCHEMA)))
    grouped = found.repartition(tasks, F.col("flow_id")).sortWithinPartitions("flow_id", "packet")
    return grouped.mapInArrow(_worker(setting), spark_schema(superset()))


def one_each(frame: Any, count: int) -> Any:
    """One task for each row of a small frame with a `number` from 0."""
    from pyspark.sql import functions as F

    if count < 2:
        return frame
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(count, F.col("number"))
    return frame.repartitionByRange(count, F.col("number"))


def _reader() -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        for batch in batches:
            _, names, texts = (column.to_pylist() for column in batch.columns)
            for name, text in zip(names, texts, strict=True):
                found = segments(name, Split.from_json(json.loads(text)))
                yield from sized(found, ROWS, BYTES)

    return work


def _worker(setting: Setting) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        schema = superset()
        for table, batch in Flows(setting).run(batches):
            yield padded(batch, table, schema)

    return work


# --- reading back -------------------------------------------------------------------------------


def read(session: Any, raw: Path, table: Table) -> Any:
    """The rows of one table, with its own columns only."""
    folder = raw / f"table={table.name}"
    if not folder.is_dir():
        return session.createDataFrame([], spark_schema(table.schema))
    return session.read.schema(spark_schema(table.schema)).parquet(str(folder))
