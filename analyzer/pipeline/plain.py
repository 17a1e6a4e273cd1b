"""The plain engine: all of it in one process, in the order of the packets."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analyzer.offline import Capture
from analyzer.pipeline.collect import Collector, Told
from analyzer.pipeline.facts import Facts
from analyzer.pipeline.finish import fixed_tables, statistics_rows, summed
from analyzer.pipeline.job import Job
from analyzer.pipeline.naming import named
from analyzer.pipeline.places import is_remote, open_anywhere
from analyzer.pipeline.schemas import COLLECTED, TABLES, VERSION, VERSION_KEY
from captures.files import Source
from captures.inflate import Stream

GROUP_ROWS: Final = 65_536
FILE: Final = "part-0.parquet"


class _Lazily(dict[int, Stream]):
    """Streams that are opened when they are asked for."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self._names = names

    def get(self, key: int, default: Any = None) -> Any:
        """Open a remote file; the others open themselves."""
        if key not in self and is_remote(self._names[key]):
            self[key] = open_anywhere(self._names[key], 0)
        return super().get(key, default)


class Writers:
    """One Parquet file for each table that gets rows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, Any] = {}

    def write(self, table: str, batch: pa.RecordBatch | pa.Table) -> None:
        """Write rows behind those that are there."""
        writer = self._open.get(table)
        if writer is None:
            path = self._folder / table
            path.mkdir(parents=True, exist_ok=True)
            schema = batch.schema.with_metadata({VERSION_KEY: str(VERSION).encode()})
            writer = pq.ParquetWriter(path / FILE, schema, compression="zstd")
            self._open[table] = writer
        if isinstance(batch, pa.Table):
            writer.write_table(batch)
        else:
            writer.write_batch(batch)

    def close(self) -> None:
        """Finish all files."""
        for writer in self._open.values():
            writer.close()
        self._open.clear()


def run(job: Job, staging: Path) -> tuple[Path, Facts]:
    """Make all tables; the folder that holds them, and what crosses connections."""
    raw, made = staging / "raw", staging / "made"
    writers = Writers(raw)
    facts = Facts()

    def take(told: Told) -> None:
        table, batch = told
        if table == "facts":
            for kind, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                facts.merge(kind, text)
        else:
            writers.write(table, batch)

    names = [file.name for file in job.files]
    source = Source(names, None, _Lazily(names))
    legs = "both" if job.options.both_legs else "client"
    with Capture(source, decode_as=job.options.decode_as, legs=legs) as capture:  # type: ignore[arg-type]
        capture.context.fingerprints = [file.fingerprint for file in job.files]
        collector = Collector(capture.context, job.options)
        capture.watch = collector.saw
        for number, exchange in enumerate(capture.exchanges()):
            collector.add(exchange)
            if not number % 256:
                for told in collector.ready():
                    take(told)
        for told in collector.finish():
            take(told)
    writers.close()
    _finish(job, facts, raw, made)
    return made, facts


def _finish(job: Job, facts: Facts, raw: Path, made: Path) -> None:
    """Numbers and names, now that all are known."""
    writers = Writers(made)
    names = facts.names()
    ranks = _Ranks(raw / "exchanges" / FILE)
    for table in COLLECTED.values():
        path = raw / table.name / FILE
        if not path.exists():
            writers.write(table.name, table.schema.empty_table())
        elif table.name == "latency_histogram":
            rows = pa.Table.from_batches(
                [named(batch, names) for batch in pq.ParquetFile(path).iter_batches(GROUP_ROWS)]
            )
            writers.write(table.name, summed(rows))
        else:
            for batch in pq.ParquetFile(path).iter_batches(GROUP_ROWS):
                if table.name == "exchanges":
                    batch = batch.set_column(0, "number", ranks.of(batch.column(0)))
                writers.write(table.name, named(batch, names))
    for name, rows in fixed_tables(job, facts).items():
        writers.write(name, rows)
    writers.write("statistics", statistics_rows(facts, ranks.one))
    writers.close()
    assert {each.name for each in made.iterdir()} == set(TABLES)


class _Ranks:
    """Ranks of exchanges by time and place of their first byte."""

    def __init__(self, path: Path) -> None:
        places = np.zeros(0, np.int64)
        ranks = np.zeros(0, np.int64)
        if path.exists():
            found = pq.read_table(path, columns=["number", "time_ns"])
            numbers = found.column("number").to_numpy()
            # A place is file and offset in one.
            order = np.lexsort((numbers, found.column("time_ns").to_numpy()))
            places = numbers[order]
            ranks = np.argsort(places, kind="stable")
            places = places[ranks]
        self._places, self._ranks = places, ranks

    def of(self, places: pa.Array) -> pa.Array:
        """The ranks of places, from 1."""
        found = np.searchsorted(self._places, places.to_numpy())
        return pa.array(self._ranks[found] + 1, pa.int64())

    def one(self, place: int) -> int:
        """The rank of a place; a number that is none stays."""
        found = int(np.searchsorted(self._places, place))
        if found < len(self._places) and self._places[found] == place:
            return int(self._ranks[found]) + 1
        return place


__all__ = ["Writers", "run"]
