"""The steps of a run, whichever engine makes the rows; and the plain engine, which makes them in
this process, in the order of the packets.

    rows      raw rows of all tables and facts, by tasks: with places in place of numbers
    _facts    what crosses connections, of all tasks; a fact that tasks lacked means another round
    finish    numbers are the ranks of places, names come from the facts, sums are added up
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafkascope.analyzer.pipeline.finish import CELL_KEYS, fixed_tables, statistics_rows, summed
from kafkascope.analyzer.pipeline.job import Before, Engine, Job, Parts
from kafkascope.analyzer.pipeline.places import is_remote, open_anywhere
from kafkascope.analyzer.pipeline.segments import SCHEMA as SEGMENTS
from kafkascope.analyzer.pipeline.segments import segment_rows, segments, sized
from kafkascope.analyzer.pipeline.tables import schemas
from kafkascope.analyzer.pipeline.tables.facts import TableFacts, learned, names_of, sent
from kafkascope.analyzer.pipeline.tables.naming import named
from kafkascope.analyzer.pipeline.tables.numbers import (
    CONNECTION,
    Ranks,
    in_order,
    numbered,
    ranks_of,
)
from kafkascope.analyzer.pipeline.tables.schemas import SEGMENTS as SEGMENTS_TABLE
from kafkascope.analyzer.pipeline.tasks import Task, carried, task_config
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.inflate import ByteStream

if TYPE_CHECKING:
    from kafkascope.analyzer.pipeline.tables.schemas import Table
    from kafkascope.analyzer.pipeline.tasks import TaskConfig
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.captures.parts.split import Split

# In each round tasks have the topic names and schemas that they lacked in the round before; two
# rounds suffice except for contrived input.
MOST_ROUNDS: Final = 4
# Limits of a row group: the unit that readers skip by its statistics, and that a writer has in
# memory.
GROUP_ROWS: Final = 65_536
GROUP_BYTES: Final = 4 << 20
# Count of connections from which on garbage is collected after reading.
MANY: Final = 5_000
# Cells that are summed at a time: Arrow takes twenty times their memory.
SUM_ROWS: Final = 16_384
QUICK: Final = "lz4"
"""Compression of files that are read once more and deleted."""


STATES: Final = (schemas.STATISTICS.name, schemas.FACTS.name)
"""Tables with the states of statistics."""


def _file(number: int) -> str:
    return f"part-{number}.parquet"


FILE: Final = _file(0)


class _Lazily(dict[int, ByteStream]):
    """Streams that are opened on first use."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = names

    def get(self, key: int, default: Any = None) -> Any:
        """Open a remote file; local files are opened by the reader."""
        if key not in self and is_remote(self._names[key]):
            self[key] = open_anywhere(self._names[key], 0)
        return super().get(key, default)


class Writers:
    """One Parquet file for each table that has rows."""

    def __init__(self, folder: Path, file: str = FILE, compression: str = "zstd") -> None:
        self._folder = folder
        self._file = file
        self._compression = compression
        self._open: dict[str, Any] = {}
        self._tables: list[str] = []

    def write(self, table: str, batch: pa.RecordBatch | pa.Table) -> None:
        writer = self._open.get(table)
        if writer is None:
            path = self._folder / table
            path.mkdir(parents=True, exist_ok=True)
            schema = batch.schema.with_metadata(
                {schemas.VERSION_KEY: str(schemas.VERSION).encode()}
            )
            writer = pq.ParquetWriter(
                path / self._file,
                schema,
                compression=self._compression,
                # A state is one large value: a dictionary, and the minimum and maximum of the
                # column, would each contain it once more.
                write_statistics=table not in STATES and schemas.measured(schema),
                use_dictionary=table not in STATES,
            )
            self._open[table] = writer
            self._tables.append(table)
        try:
            if isinstance(batch, pa.Table):
                writer.write_table(batch)
            else:
                writer.write_batch(batch)
        except OSError:
            self._abandon()
            raise

    def close(self) -> dict[str, Path]:
        """Close all files, and return them by table."""
        try:
            for writer in self._open.values():
                writer.close()
        except OSError:
            self._abandon()
            raise
        self._open.clear()
        return {table: self._folder / table / self._file for table in self._tables}

    def __del__(self) -> None:
        self._abandon()

    def _abandon(self) -> None:
        """Close unfinished files. Otherwise writers would write their footers when they are
        garbage collected, and print errors on a full disk."""
        for writer in self._open.values():
            with suppress(OSError):
                writer.close()
            writer.is_open = False
        self._open.clear()


def task_rows(
    config: TaskConfig, folder: Path, file: str, read: Callable[[Task], object]
) -> dict[str, Path]:
    """Run a task that `read` feeds; return its files by table. Runs in this process, and in Spark's
    workers."""
    writers = Writers(folder, file, QUICK)
    task = Task(config, writers.write)
    read(task)
    task.finish()
    return writers.close()


def together(tasks: Iterable[Mapping[str, Path]]) -> Parts:
    """Return the files of all tasks by table."""
    out: dict[str, list[Path]] = {}
    for files in tasks:
        for table, path in files.items():
            out.setdefault(table, []).append(path)
    return out


class Plain(Engine):
    """The engine in this process: one task."""

    def rows(self, job: Job, earlier: TableFacts | None, folder: Path) -> Parts:
        """Read the input as it is; by shards where connections continue in other batches."""
        names = [file.name for file in job.files]
        # Lines do not tell when connections end: each batch of logs begins without state.
        if not job.of_logs and (job.keep is not None or job.before.batch):
            return shard_rows(job, earlier, folder)

        def read(task: Task) -> None:
            with Source(names, None, _Lazily(names), job.order) as source:
                source.reads_once = False  # what comes with other addresses is another task's
                (task.logs if job.of_logs else task.read)(source)
                if source.statistics.connections > MANY:
                    # The two directions of a connection refer to each other, so that only a
                    # garbage collection frees their memory, and `finish` needs it.
                    gc.collect()

        return together([task_rows(task_config(job, earlier), folder, FILE, read)])


def shard_rows(
    job: Job, earlier: TableFacts | None, folder: Path, tasks: int = 1, rows: int = 4096
) -> Parts:
    """Make the rows by shards, for batches that continue connections of earlier ones. Segments are
    sorted in memory, as a shuffle sorts them for `tasks` of Spark."""
    parts = [carried(job)]
    for file in job.files:
        for split in file.splits:
            parts += segments(file.name, split, by_hosts=job.by_hosts)
    table = pa.Table.from_batches(parts, SEGMENTS)
    flows = table.column("flow_id").to_numpy() % tasks
    files = []
    for number in range(tasks):
        shards = table.filter(pa.array(flows == number))
        shards = shards.sort_by([("flow_id", "ascending"), ("packet", "ascending")])
        batches = sized(iter(shards.to_batches()), rows, 16 << 20)
        read = methodcaller("run", batches)
        files.append(task_rows(task_config(job, earlier), folder, f"{number}.parquet", read))
    return together(files)


def run(job: Job, staging: Path, engine: Engine) -> tuple[Path, TableFacts]:
    """Make all tables; return their folder and the facts across connections. Rows are made again
    with the facts of the round before, until a round has no new facts that change rows."""
    earlier: TableFacts | None = None
    for number in range(1, MOST_ROUNDS + 1):
        rows = Plain().rows if job.of_logs else engine.rows
        parts = rows(job, earlier, staging / "raw" / str(number))
        facts = _facts(job, parts)
        new_schemas = job.schemas is not None and learned(job.schemas, facts.missing)
        if not facts.unsettled() and not new_schemas:
            break
        earlier = facts
    made = staging / "made"
    finish(job, facts, parts, made, engine)
    return made, facts


def _facts(job: Job, parts: Parts) -> TableFacts:
    """Return the facts of all tasks, which are read one at a time."""
    facts = TableFacts(job.before.topics, None if job.schemas is None else sent(job.schemas))
    for path in parts.get(schemas.FACTS.name, ()):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(1):
                for kind, text in zip(*(each.to_pylist() for each in batch.columns), strict=True):
                    facts.merge(kind, text)
    return facts


# --- numbers and names, when all are known


@dataclass(frozen=True, slots=True)
class _Finisher:
    """Finishes rows, here or in other processes: fills in numbers and names."""

    made: Path
    attempts: Path
    """Folder of files that are not complete."""
    ranks: Path
    topics: dict[bytes, str]

    def rows(self, part: tuple[str, str, Sequence[Path]]) -> None:
        """Make a file of a table from files with raw rows."""
        table, file, paths = part
        ranks, names = Ranks(np.load(self.ranks, "r")), names_of(self.topics)
        self._write(table, file, _groups(_numbered(batches_of(paths), ranks, names)))

    def segments(self, part: tuple[str, Sequence[tuple[str, Split]]]) -> None:
        """Make a file of the table of all segments from parts of the input. They are read again:
        tasks do not store them."""
        file, splits = part
        rows = (segment_rows(batch) for split in splits for batch in segments(*split))
        self._write(SEGMENTS_TABLE.name, file, chain([SEGMENTS_TABLE.schema.empty_table()], rows))

    def _write(self, table: str, file: str, rows: Iterable[pa.RecordBatch | pa.Table]) -> None:
        """Write a file in a folder of its own, and move it when it is complete: Spark may start a
        task twice, and a failed attempt must leave nothing."""
        writers = Writers(self.attempts / uuid4().hex)
        for batch in rows:
            writers.write(table, batch)
        folder = self.made / table
        folder.mkdir(parents=True, exist_ok=True)
        for path in writers.close().values():
            path.rename(folder / file)


def finish(job: Job, facts: TableFacts, raw: Parts, made: Path, engine: Engine) -> None:
    """Make the tables from raw rows: one file for each where there are few rows, otherwise as many
    as there are files with raw rows or parts of the input. Numbering takes 24 bytes of memory for
    each exchange, and then a file with 16."""
    made = made.resolve()
    staging, writers = made.parent, Writers(made)
    ranks = _ranks(raw, job.before)
    made.mkdir(parents=True, exist_ok=True)
    np.save(staging / "ranks.npy", ranks.table)
    finisher = _Finisher(made, staging / "attempts", staging / "ranks.npy", facts.topics)
    splits = [(file.name, split) for file in job.files for split in file.splits]
    spread = engine.few is not None and (
        sum(facts.rows.values()) > engine.few or job.options.segments
    )
    parts: list[tuple[str, str, Sequence[Path]]] = []
    for table in schemas.COLLECTED.values():
        if not job.options.makes(table.name):
            continue
        if not (paths := raw.get(table.name, ())):
            writers.write(table.name, table.schema.empty_table())
        elif table is schemas.LATENCY:
            for cells in _cells_apart(paths, facts.names(), staging / "cells"):
                writers.write(table.name, summed(cells))
        else:
            groups = [[path] for path in paths] if spread else [paths]
            parts += [(table.name, _file(index), group) for index, group in enumerate(groups)]
    run_each = engine.map if spread else Engine().map
    run_each(finisher.rows, parts)
    if job.options.segments:
        # At least one file, which may have no rows.
        split_groups = [[split] for split in splits] if spread and splits else [splits]
        files = [(_file(index), group) for index, group in enumerate(split_groups)]
        run_each(finisher.segments, files)
    damage = Writers(made, "damage.parquet")
    for name, small in fixed_tables(job, facts, ranks.one):
        if name not in raw:
            writers.write(name, small)
        elif small.num_rows:
            damage.write(name, small)
    damage.close()
    for state in statistics_rows(facts, ranks.one):
        writers.write(schemas.STATISTICS.name, state)
    for batch in batches_of(raw.get(schemas.CARRY.name, ())):
        places = batch.column("places").to_pylist()
        index = batch.schema.get_field_index("ranks")
        field = batch.schema.field(index)
        numbers = [list(map(ranks.one, of_row)) for of_row in places]
        writers.write(
            schemas.CARRY.name, batch.set_column(index, field, pa.array(numbers, field.type))
        )
    writers.close()
    expected = set(filter(job.options.makes, schemas.TABLES))
    assert {path.name for path in made.iterdir()} - {schemas.CARRY.name} == expected


def batches_of(paths: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    """Yield rows by row groups, as they were written: a batch over several of them may take much
    memory."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                yield from file.read_row_group(number, use_threads=False).to_batches()


def _numbered(
    batches: Iterable[pa.RecordBatch], ranks: Ranks, names: TopicNames
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        index = batch.schema.get_field_index("number")
        if index >= 0:
            batch = numbered(batch, pa.array(ranks.of(batch.column(index).to_numpy())))
        index = batch.schema.get_field_index("connection")
        if index >= 0:
            numbers = pa.array(ranks.of(batch.column(index).to_numpy()))
            batch = batch.set_column(index, batch.schema.field(index), numbers)
        yield named(batch, names)


def _cells_apart(paths: Sequence[Path], names: TopicNames, folder: Path) -> Iterator[pa.Table]:
    """Yield the cells of histograms in parts, all of one key in the same part, so that a part can
    be summed in bounded memory."""
    metadata = [pq.read_metadata(path) for path in paths]
    groups = [file.row_group(number) for file in metadata for number in range(file.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    size = sum(group.total_byte_size for group in groups)
    parts = 1 + max(rows // SUM_ROWS, size // GROUP_BYTES)
    writers = Writers(folder, compression=QUICK)
    for batch in batches_of(paths):
        batch = named(batch, names)
        keys = zip(*(batch.column(name).to_pylist() for name in CELL_KEYS), strict=True)
        part = np.array([crc32(repr(key).encode()) % parts for key in keys])
        for number in range(parts):
            writers.write(str(number), batch.filter(pa.array(part == number)))
    for path in writers.close().values():
        yield pq.read_table(path, use_threads=False)


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield row groups of several batches: many small ones would be slow to read."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if held and (rows + batch.num_rows > GROUP_ROWS or size + batch.nbytes > GROUP_BYTES):
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if held:
        yield pa.Table.from_batches(held)


def _ranks(raw: Parts, before: Before) -> Ranks:
    """Return the numbers of exchanges and connections, which continue those of the batches before.
    Connections that were read in order have theirs already."""
    tables = (schemas.EXCHANGES, schemas.UNWANTED)
    exchanges = in_order(_column(raw, tables, "number"), _column(raw, tables, "record_offset"))
    connections = _column(raw, (schemas.CONNECTIONS,), "connection")
    carried_rows = [
        pq.read_table(path, columns=["places"]) for path in raw.get(schemas.CARRY.name, ())
    ]
    places = [rows.column("places").combine_chunks().flatten().to_numpy() for rows in carried_rows]
    carried_ranks = before.ranks
    old = np.array(list(carried_ranks), np.int64)
    new = np.concatenate([connections[connections >= CONNECTION], *places])
    new = np.setdiff1d(new, old)
    numbers = (
        np.arange(len(exchanges)) + before.exchanges + 1,
        np.arange(len(new)) + before.connections,
        np.array(list(carried_ranks.values()), np.int64),
    )
    return ranks_of(np.concatenate([exchanges, new, old]), np.concatenate(numbers))


def _column(raw: Parts, tables: Iterable[Table], name: str) -> Any:
    paths = [path for table in tables for path in raw.get(table.name, ())]
    columns = [pq.read_table(path, columns=[name]).column(0).to_numpy() for path in paths]
    return np.concatenate([np.zeros(0, np.int64), *columns])
