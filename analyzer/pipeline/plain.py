"""The plain engine: runs a job in one process, in the order of the packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafkascope.analyzer.exchanges.offline import Capture, Legs
from kafkascope.analyzer.pipeline.finish import fixed_tables, statistics_rows, summed
from kafkascope.analyzer.pipeline.flows import Flows, Setting, carried, setting_of
from kafkascope.analyzer.pipeline.job import Before, Job
from kafkascope.analyzer.pipeline.places import is_remote, open_anywhere
from kafkascope.analyzer.pipeline.segments import SCHEMA as SEGMENTS
from kafkascope.analyzer.pipeline.segments import segment_rows, segments, sized
from kafkascope.analyzer.pipeline.spread import dissected
from kafkascope.analyzer.pipeline.tables.collect import TableCollector, Told
from kafkascope.analyzer.pipeline.tables.facts import Facts
from kafkascope.analyzer.pipeline.tables.naming import named
from kafkascope.analyzer.pipeline.tables.numbers import CONNECTION
from kafkascope.analyzer.pipeline.tables.schemas import (
    CARRY,
    COLLECTED,
    CONNECTIONS,
    EXCHANGES,
    PAIRS,
    TABLES,
    UNWANTED,
    VERSION,
    VERSION_KEY,
    measured,
)
from kafkascope.analyzer.pipeline.tables.schemas import SEGMENTS as SEGMENTS_TABLE
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.inflate import Stream

if TYPE_CHECKING:
    from kafkascope.analyzer.pipeline.tables.schemas import Table

MOST_ROUNDS: Final = 3
"""In each round connections know what others learned before; two rounds suffice except for
contrived input."""
GROUP_ROWS: Final = 65_536
T = TypeVar("T")
FILE: Final = "part-0.parquet"
QUICK: Final = "lz4"
"""Compression of files that are read once more and deleted."""


class _Lazily(dict[int, Stream]):
    """Streams that are opened on first use."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = names

    def get(self, key: int, default: Any = None) -> Any:
        """Open a remote file; local files are opened by the reader."""
        if key not in self and is_remote(self._names[key]):
            self[key] = open_anywhere(self._names[key], 0)
        return super().get(key, default)


Parts: TypeAlias = Mapping[str, Sequence[Path]]
"""Files with rows, by table."""


class Writers:
    """One Parquet file for each table that has rows."""

    def __init__(self, folder: Path, file: str = FILE, compression: str = "zstd") -> None:
        self._folder = folder
        self._file = file
        self._compression = compression
        self._open: dict[str, Any] = {}
        self.rows: Counter[str] = Counter()
        """Counts by table."""

    def write(self, table: str, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows to a table."""
        writer = self._open.get(table)
        if writer is None:
            path = self._folder / table
            path.mkdir(parents=True, exist_ok=True)
            schema = batch.schema.with_metadata({VERSION_KEY: str(VERSION).encode()})
            writer = pq.ParquetWriter(
                path / self._file,
                schema,
                compression=self._compression,
                write_statistics=measured(schema),
            )
            self._open[table] = writer
        self.rows[table] += batch.num_rows
        if isinstance(batch, pa.Table):
            writer.write_table(batch)
        else:
            writer.write_batch(batch)

    def parts(self) -> dict[str, list[Path]]:
        """Return the files that were written."""
        return {table: [self._folder / table / self._file] for table in self.rows}

    def close(self) -> None:
        """Close all files."""
        for writer in self._open.values():
            writer.close()
        self._open.clear()


def run(job: Job, staging: Path) -> tuple[Path, Facts]:
    """Make all tables; return their folder and the facts across connections."""
    if job.keep is not None or job.before.batch:
        return regrouped(job, staging)
    names = [file.name for file in job.files]
    legs: Legs = "both" if job.options.both_legs else "client"

    def made(earlier: Facts | None, folder: Path) -> tuple[Path, Facts]:
        source = Source(names, None, _Lazily(names))
        with Capture(source, decode_as=job.options.decode_as, legs=legs) as capture:
            capture.context.fingerprints = [file.fingerprint for file in job.files]
            if earlier is not None:
                capture.context.names.learn_all(earlier.topics)
            return write(_told(capture, job), job, folder)

    return in_rounds(made, staging)


def in_rounds(
    made: Callable[[Facts | None, Path], tuple[T, Facts]], staging: Path
) -> tuple[T, Facts]:
    """Call `made` with the facts of the round before, in a folder of its own, until a round learns
    nothing that would change the result."""
    earlier: Facts | None = None
    for number in range(1, MOST_ROUNDS + 1):
        found, facts = made(earlier, staging / str(number))
        if not facts.unsettled():
            break
        earlier = facts
    return found, facts


def regrouped(
    job: Job, staging: Path, tasks: int = 1, rows: int = 4096, spread: int = 0
) -> tuple[Path, Facts]:
    """Do the same by connection, in memory: connections that continue in other batches are kept by
    connection. `spread`: number of tasks that decode what the others have reassembled."""
    parts = [carried(job)]
    for file in job.files:
        for split in file.splits:
            parts += segments(file.name, split)
    table = pa.Table.from_batches(parts, SEGMENTS)
    keys = table.column("flow_id").to_numpy() % tasks

    def made(earlier: Facts | None, folder: Path) -> tuple[Path, Facts]:
        setting = setting_of(job, earlier, spread=bool(spread))
        told: Iterable[Told] = (
            each
            for task in range(tasks)
            for each in Flows(setting).run(
                sized(iter(_sorted(table, keys == task).to_batches()), rows, 16 << 20)
            )
        )
        if spread:
            told = _spread(told, setting, spread)
        return write(told, job, folder)

    return in_rounds(made, staging)


def _spread(told: Iterable[Told], setting: Setting, count: int) -> Iterator[Told]:
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(count)]
    for table, batch in told:
        if table != PAIRS.name:
            yield table, batch
            continue
        keys = batch.column("place").to_numpy() % count
        for number, part in enumerate(parts):
            part.append(batch.filter(pa.array(keys == number)))
    for part in parts:
        yield from dissected(part, setting.options)


def _sorted(table: pa.Table, chosen: Any) -> pa.Table:
    order = [("flow_id", "ascending"), ("packet", "ascending")]
    return table.filter(pa.array(chosen)).sort_by(order)


def _told(capture: Capture, job: Job) -> Iterator[Told]:
    collector = TableCollector(capture.context, job.options, job.last_ns)
    capture.watch = collector.saw
    capture.named = collector.named
    for number, exchange in enumerate(capture.exchanges()):
        collector.add(exchange)
        if collector.large or not number % 256:
            yield from collector.ready()
    yield from collector.finish()


def write(rows: Iterable[Told], job: Job, staging: Path) -> tuple[Path, Facts]:
    """Write all rows, then fill in what is known only at the end."""
    raw, made = staging / "raw", staging / "made"
    writers = Writers(raw, compression=QUICK)
    facts = Facts(job.before.topics)
    for table, batch in rows:
        if table == "facts":
            facts.merge_all(batch)
        else:
            writers.write(table, batch)
    writers.close()
    finish(job, facts, writers.parts(), made)
    return made, facts


def _segments(job: Job, writers: Writers) -> None:
    """Write the table of all segments, which are read again because they are not kept."""
    writers.write(SEGMENTS_TABLE.name, SEGMENTS_TABLE.schema.empty_table())
    if job.options.segments:
        for file in job.files:
            for split in file.splits:
                for batch in segments(file.name, split):
                    writers.write(SEGMENTS_TABLE.name, segment_rows(batch))


def finish(job: Job, facts: Facts, raw: Parts, made: Path) -> None:
    """Fill in numbers and names, now that all are known."""
    writers = Writers(made)
    names = facts.names()
    ranks = _Ranks(raw, job.before)
    for table in COLLECTED.values():
        if table.name not in raw:
            writers.write(table.name, table.schema.empty_table())
        elif table.name == "latency_histogram":
            rows = pa.Table.from_batches([named(batch, names) for batch in _batches(raw, table)])
            writers.write(table.name, summed(rows))
        else:
            for batch in _batches(raw, table):
                for column in ("number", "connection"):
                    index = batch.schema.get_field_index(column)
                    if index >= 0:
                        numbers = ranks.of(batch.column(index))
                        batch = batch.set_column(index, batch.schema.field(index), numbers)
                writers.write(table.name, named(batch, names))
    _segments(job, writers)
    for name, small in fixed_tables(job, facts).items():
        writers.write(name, small)
    writers.write("statistics", statistics_rows(facts, ranks.one))
    for batch in _batches(raw, CARRY):
        writers.write(CARRY.name, with_ranks(batch, ranks.one))
    writers.close()
    assert {each.name for each in made.iterdir()} - {CARRY.name} == set(TABLES)


def _batches(raw: Parts, table: Table) -> Iterator[pa.RecordBatch]:
    for path in raw.get(table.name, ()):
        yield from pq.ParquetFile(path).iter_batches(GROUP_ROWS)


def with_ranks(batch: pa.RecordBatch, rank: Callable[[int], int]) -> pa.RecordBatch:
    """Return carried connections with their numbers."""
    found = [[rank(place) for place in places] for places in batch.column("places").to_pylist()]
    index = batch.schema.get_field_index("ranks")
    field = batch.schema.field(index)
    return batch.set_column(index, field, pa.array(found, field.type))


class _Ranks:
    """Ranks of exchanges by time and place of their first byte, and of connections by their first
    packet; they continue those of the batches before."""

    def __init__(self, raw: Parts, before: Before) -> None:
        exchanges = _columns(raw, (EXCHANGES, UNWANTED), "number", "time_ns")
        # A place combines file and offset.
        places = exchanges[0][np.lexsort(exchanges)]
        ranks = np.arange(1, len(places) + 1) + before.exchanges
        (connections,) = _columns(raw, (CONNECTIONS,), "connection")
        left: list[int] = []
        for path in raw.get(CARRY.name, ()):
            column = pq.read_table(path, columns=["places"]).column("places")
            left += [place for each in column.to_pylist() for place in each]
        known = before.ranks
        new = np.unique(
            np.concatenate([connections[connections >= CONNECTION], np.array(left, np.int64)])
        )
        new = np.setdiff1d(new, np.array(list(known), np.int64))
        self.connections = len(new)
        places = np.concatenate([places, new, np.array(list(known), np.int64)])
        old = np.array(list(known.values()), np.int64)
        ranks = np.concatenate([ranks, np.arange(len(new)) + before.connections, old])
        order = np.argsort(places, kind="stable")
        self._places, self._ranks = places[order], ranks[order]

    def of(self, numbers: pa.Array) -> pa.Array:
        """Return ranks for places; other numbers stay."""
        if not len(self._places):
            return numbers
        values = numbers.to_numpy()
        found = np.minimum(np.searchsorted(self._places, values), len(self._places) - 1)
        known = self._places[found] == values
        return pa.array(np.where(known, self._ranks[found], values), pa.int64())

    def one(self, place: int) -> int:
        """Return the rank of one place; another number stays."""
        at = int(np.searchsorted(self._places, place))
        if at < len(self._places) and self._places[at] == place:
            return int(self._ranks[at])
        return place


def _columns(raw: Parts, tables: Iterable[Table], *names: str) -> list[Any]:
    paths = [path for table in tables for path in raw.get(table.name, ())]
    found = [pq.read_table(path, columns=list(names)) for path in paths]
    return [
        np.concatenate([np.zeros(0, np.int64), *(each.column(name).to_numpy() for each in found)])
        for name in names
    ]
