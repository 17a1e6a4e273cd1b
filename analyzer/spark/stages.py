"""The stages as DataFrames. Functions that run in workers are closures made here, so that they
carry values but not the session."""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa

from kafkascope.analyzer.pipeline.flows import Flows, Setting, carried
from kafkascope.analyzer.pipeline.heads import Handshakes, heads
from kafkascope.analyzer.pipeline.job import sketch_all
from kafkascope.analyzer.pipeline.moments import ASKED, Questions
from kafkascope.analyzer.pipeline.places import open_anywhere, size_of
from kafkascope.analyzer.pipeline.plain import QUICK, Parts, Writers
from kafkascope.analyzer.pipeline.segments import SCHEMA, segment_rows, segments, sized
from kafkascope.analyzer.pipeline.spread import Pairs, dissected
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.schemas import FACTS, PAIRS, SEGMENTS, Table
from kafkascope.captures.formats.gaps import FileGap
from kafkascope.captures.formats.remarks import Remark
from kafkascope.captures.merge.sketches import Sketch
from kafkascope.captures.parts.split import Index, Split, index
from kafkascope.captures.parts.stretches import Stretch, bounds, head_of, joined, walked

if TYPE_CHECKING:
    from kafkascope.analyzer.pipeline.job import Job
    from kafkascope.analyzer.pipeline.tables.collect import Told

ROWS: Final = 4096
BYTES: Final = 16 << 20
"""Bytes of a batch between the JVM and Python."""
GC_THRESHOLD: Final = 50_000
"""New objects after which workers collect garbage; 700 is the default."""
WRITTEN: Final = "table string, path string"
STRETCHES: Final = 4
"""Number of parts from which on several tasks index a file."""

Batches = Iterator[pa.RecordBatch]
Line = tuple[int, str, str, int, int]
"""A file or stretch to index: file number, name, head in hexadecimal when the file is indexed in
stretches, start and end of the stretch."""


def spark_schema(schema: pa.Schema) -> Any:
    """Return Spark's form of a schema."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def parallelism(session: Any) -> int:
    """Return the number of tasks that run at once."""
    try:
        return int(session.sparkContext.defaultParallelism)
    except Exception:
        # Spark Connect has no context.
        return int(session.conf.get("spark.default.parallelism", "8"))


# --- index --------------------------------------------------------------------------------------


def index_files(session: Any, names: list[str], split_bytes: int) -> list[Index]:
    """Return the indexes of files, in the order of the names: one task for each file, many for a
    large uncompressed pcap."""
    heads: dict[int, bytes] = {}
    lines: list[Line] = []
    for number, name in enumerate(names):
        size = size_of(name)
        head = head_of(name, open_anywhere) if size >= STRETCHES * split_bytes else None
        if head is None:
            lines.append((number, name, "", 0, 0))
            continue
        heads[number] = head
        lines += (
            (number, name, head.hex(), start, end) for start, end in bounds(size, split_bytes)
        )
    numbers = session.range(0, len(lines), 1, min(len(lines), 10_000))
    found = numbers.mapInArrow(_indexer(lines, split_bytes), "number int, file int, json string")
    told: dict[int, list[Any]] = {number: [] for number in range(len(names))}
    for row in sorted(found.collect(), key=lambda row: row["number"]):
        told[row["file"]].append(json.loads(row["json"]))
    return [
        joined(name, open_anywhere, heads[number], map(Stretch.from_json, told[number]))
        if number in heads
        else _index_of(told[number][0])
        for number, name in enumerate(names)
    ]


def _indexer(lines: list[Line], split_bytes: int) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                file, name, head, start, end = lines[number]
                if head:
                    walk = walked(name, open_anywhere, bytes.fromhex(head), start, end)
                    text = json.dumps(walk.to_json())
                else:
                    text = _index_text(index(name, open_anywhere, split_bytes=split_bytes))
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array([number], pa.int32()),
                        pa.array([file], pa.int32()),
                        pa.array([text]),
                    ],
                    names=["number", "file", "json"],
                )

    return work


def _index_text(found: Index) -> str:
    values = {name: getattr(found, name) for name in Index.__slots__}
    values["splits"] = [each.to_json() for each in found.splits]
    whole = Split(0, 0, 0, None, 0, 1, b"", "<", 0, tuple(found.interfaces), 0)
    values["interfaces"] = whole.to_json()
    values["secrets"] = [(packet, data.hex()) for packet, data in found.secrets]
    return json.dumps(values)


def _index_of(values: dict[str, Any]) -> Index:
    values["splits"] = [Split.from_json(each) for each in values["splits"]]
    values["interfaces"] = list(Split.from_json(values["interfaces"]).interfaces)
    values["gaps"] = [FileGap(*each) for each in values["gaps"]]
    values["secrets"] = [(packet, bytes.fromhex(data)) for packet, data in values["secrets"]]
    values["remarks"] = [Remark(*each) for each in values["remarks"]]
    return Index(**values)


def sketch_files(session: Any, names: list[str], count: int) -> list[Sketch]:
    """Return samples of files, in the order of the names: one task for each file."""

    def work(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                (found,) = sketch_all([names[number]], count)
                data = pickle.dumps(found._replace(secrets=[]))
                yield pa.RecordBatch.from_arrays(
                    [pa.array([number], pa.int32()), pa.array([data], pa.binary())],
                    names=["number", "sketch"],
                )

    numbers = session.range(0, len(names), 1, min(len(names), 10_000))
    found = numbers.mapInArrow(work, "number int, sketch binary").collect()
    return [pickle.loads(row["sketch"]) for row in sorted(found, key=lambda row: row["number"])]


# --- rows ---------------------------------------------------------------------------------------


def read_by(
    session: Any,
    job: Job,
    schema: pa.Schema,
    made: Callable[[Batches], Batches] | None = None,
) -> Any:
    """Return the segments of all files, read by one task for each part. The function carries the
    parts: as rows they would have to be shuffled to be apart."""
    parts = [
        (file.name, json.dumps(split.to_json())) for file in job.files for split in file.splits
    ]
    # Empty files have no parts.
    numbers = session.range(0, len(parts), 1, max(1, len(parts)))
    return numbers.mapInArrow(_reader(parts, made), spark_schema(schema))


def segment_table(session: Any, job: Job) -> Any:
    """Return the rows of `segments`."""
    return read_by(session, job, SEGMENTS.schema, _segment_rows)


def _segment_rows(batches: Batches) -> Batches:
    return map(segment_rows, batches)


def _grouped(
    session: Any, job: Job, tasks: int, made: Callable[[Batches], Batches] | None = None
) -> Any:
    """Return the segments by connection, behind what the previous batch left of it."""
    from pyspark.sql import functions as F

    found = read_by(session, job, SCHEMA, made)
    if job.before.carried:
        left = pa.Table.from_batches([carried(job)])
        found = found.union(session.createDataFrame(left, spark_schema(SCHEMA)))
    return found.repartition(tasks, F.col("flow_id")).sortWithinPartitions("flow_id", "packet")


def handshakes(session: Any, job: Job, setting: Setting, tasks: int) -> list[str]:
    """Return what is noted of the beginnings of all connections."""
    found = _grouped(session, job, tasks, heads)
    noted = found.mapInArrow(_handshakes(setting), spark_schema(FACTS.schema))
    return [row["json"] for row in noted.collect()]


def _handshakes(setting: Setting) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        return Handshakes(setting).run(batches)

    return work


def answers(session: Any, job: Job, asked: Questions) -> list[pa.RecordBatch]:
    """Return what the packets of all files answer."""
    found = read_by(session, job, ASKED, asked.answers).collect()
    columns = [[row[name] for row in found] for name in ASKED.names]
    return [record_batch(list(zip(*columns, strict=True)), ASKED)]


def rows(session: Any, job: Job, setting: Setting, tasks: int, raw: Path) -> Parts:
    """Make the rows of all tables: files below `raw`, one for each table and task. The files of a
    task count only after it has succeeded, when its list of files is read."""
    from pyspark.sql import functions as F

    grouped = _grouped(session, job, tasks)
    folder = str(raw.resolve())
    if setting.spread:
        pairs = grouped.mapInArrow(_pairer(setting), spark_schema(PAIRS.schema))
        spread = pairs.repartition(tasks, F.col("place"))
        written = spread.mapInArrow(_writer(_dissector(setting), folder), WRITTEN)
    else:
        written = grouped.mapInArrow(_writer(_worker(setting), folder), WRITTEN)
    out: dict[str, list[Path]] = {}
    for row in sorted(written.collect(), key=lambda row: str(row["path"])):
        out.setdefault(row["table"], []).append(Path(row["path"]))
    return out


def _reader(
    parts: list[tuple[str, str]], made: Callable[[Batches], Batches] | None
) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                name, text = parts[number]
                found = sized(segments(name, Split.from_json(json.loads(text))), ROWS, BYTES)
                yield from found if made is None else made(found)

    return work


def _worker(setting: Setting) -> Callable[[Batches], Iterator[Told]]:
    def work(batches: Batches) -> Iterator[Told]:
        return Flows(setting).run(batches)

    return work


def _pairer(setting: Setting) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        pack = Pairs(setting.options).packed
        for table, batch in Flows(setting).run(batches):
            yield batch if table == PAIRS.name else pack(table, batch)

    return work


def _dissector(setting: Setting) -> Callable[[Batches], Iterator[Told]]:
    options, schemas, topics = setting.options, setting.schemas, setting.topics

    def work(batches: Batches) -> Iterator[Told]:
        return dissected(batches, options, schemas, topics)

    return work


def _writer(work: Callable[[Batches], Iterator[Told]], folder: str) -> Callable[[Batches], Batches]:
    """Return a function that writes rows to files in the worker, not through the JVM."""

    def write(batches: Batches) -> Batches:
        # Messages make hardly any cycles; looking for them took a sixth of the time.
        gc.set_threshold(GC_THRESHOLD, 8, 20)
        writers = Writers(Path(folder), f"{uuid4().hex}.parquet", QUICK)
        for table, batch in work(batches):
            if batch.num_rows:
                writers.write(table, batch)
        writers.close()
        found = [(table, str(path)) for table, paths in writers.parts().items() for path in paths]
        columns = list(zip(*found, strict=True)) or [(), ()]
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, pa.string()) for column in columns], names=["table", "path"]
        )

    return write


# --- reading back -------------------------------------------------------------------------------


def read(session: Any, raw: Parts, table: Table) -> Any:
    """Return the rows of one table."""
    paths = [path.as_uri() for path in raw.get(table.name, ())]
    if not paths:
        return session.createDataFrame([], spark_schema(table.schema))
    return session.read.schema(spark_schema(table.schema)).parquet(*paths)
