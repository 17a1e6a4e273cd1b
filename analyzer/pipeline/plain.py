"""The plain engine: runs a job in one process, in the order of the packets."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafkascope.analyzer.exchanges.offline import Capture, Legs
from kafkascope.analyzer.pipeline.finish import CELL_KEYS, fixed_tables, statistics_rows, summed
from kafkascope.analyzer.pipeline.flows import Flows, Setting, carried, setting_of
from kafkascope.analyzer.pipeline.heads import Handshakes, heads, notes_in
from kafkascope.analyzer.pipeline.job import Before, Job
from kafkascope.analyzer.pipeline.keys import agreement_of, blocks_of
from kafkascope.analyzer.pipeline.places import is_remote, open_anywhere
from kafkascope.analyzer.pipeline.schemas import learned, sent
from kafkascope.analyzer.pipeline.segments import SCHEMA as SEGMENTS
from kafkascope.analyzer.pipeline.segments import segment_rows, segments, sized
from kafkascope.analyzer.pipeline.spread import dissected
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.collect import TableCollector, Told
from kafkascope.analyzer.pipeline.tables.facts import Facts
from kafkascope.analyzer.pipeline.tables.naming import named
from kafkascope.analyzer.pipeline.tables.numbers import (
    CONNECTION,
    COUNT_BITS,
    EXCHANGE,
    OFFSET_BITS,
    numbered,
)
from kafkascope.analyzer.pipeline.tables.schemas import (
    CARRY,
    COLLECTED,
    CONNECTIONS,
    EXCHANGES,
    LATENCY,
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
    from kafkascope.analyzer.payloads.known import KnownSchemas
    from kafkascope.analyzer.pipeline.keys import Agreement
    from kafkascope.analyzer.pipeline.moments import Order
    from kafkascope.analyzer.pipeline.tables.schemas import Table
    from kafkascope.analyzer.topics import TopicNames

MOST_ROUNDS: Final = 4
"""In each round connections know what others learned before, and tasks have the schemas that others
lacked; two rounds suffice except for contrived input."""
GROUP_ROWS: Final = 65_536
GROUP_BYTES: Final = 4 << 20
"""Limits of a row group: a reader skips some, and a writer holds one."""
MANY: Final = 5_000
"""Connections whose memory is worth a look at everything there is."""
SUM_ROWS: Final = 16_384
"""Cells that are summed at a time, which takes Arrow twenty times their memory."""
T = TypeVar("T")
FILE: Final = "part-0.parquet"
LEFT: Final = "tls.parquet"
"""File of a row that carries no connection."""
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
                # A state is large and there once: a dictionary, and the least and most of a column,
                # would each hold it once more.
                write_statistics=table != "statistics" and measured(schema),
                use_dictionary=table != "statistics",
            )
            self._open[table] = writer
        self.rows[table] += batch.num_rows
        try:
            if isinstance(batch, pa.Table):
                writer.write_table(batch)
            else:
                writer.write_batch(batch)
        except OSError:
            self._abandon()
            raise

    def parts(self) -> dict[str, list[Path]]:
        """Return the files that were written."""
        return {table: [self._folder / table / self._file] for table in self.rows}

    def close(self) -> None:
        """Close all files."""
        try:
            for writer in self._open.values():
                writer.close()
        except OSError:
            self._abandon()
            raise
        self._open.clear()

    def __del__(self) -> None:
        self._abandon()

    def _abandon(self) -> None:
        """Close files that nobody will read. Left alone, writers try to write their ends when they
        are collected, and print what comes of that on a full disk."""
        for writer in self._open.values():
            with suppress(OSError):
                writer.close()
            writer.is_open = False
        self._open.clear()


def run(job: Job, staging: Path) -> tuple[Path, Facts]:
    """Make all tables; return their folder and the facts across connections."""
    if job.keep is not None or job.before.batch:
        return regrouped(job, staging)
    names = [file.name for file in job.files]
    legs: Legs = "both" if job.options.both_legs else "client"

    def made(earlier: Facts | None, folder: Path) -> tuple[Path, Facts]:
        source = Source(names, None, _Lazily(names), job.order)
        source.reads_once = False  # each connection is a task's, and tasks do not see each other's
        if job.order is not None:
            source.secrets += blocks_of(job)
        # Each round learns the key logs inside the files anew, when it comes to them.
        log = job.keys and job.keys.copy()
        with Capture(source, decode_as=job.options.decode_as, legs=legs, log=log) as capture:
            capture.context.fingerprints = [file.fingerprint for file in job.files]
            if earlier is not None:
                capture.context.names.learn_all(earlier.topics)
            raw = _Raw(job, folder)
            _read(capture, raw)
            return raw.finish()

    return in_rounds(made, staging, None, job.schemas)


def run_rows(job: Job, rows: Iterable[Told], staging: Path) -> tuple[Path, Facts]:
    """Make all tables of rows that come from elsewhere; see `run`."""
    raw = _Raw(job, staging / "1")
    raw.put_all(rows)
    return raw.finish()


def in_rounds(
    made: Callable[[Facts | None, Path], tuple[T, Facts]],
    staging: Path,
    agreement: Agreement | None = None,
    schemas: KnownSchemas | None = None,
) -> tuple[T, Facts]:
    """Call `made` with the facts of the round before, in a folder of its own, until a round learns
    nothing that would change the result."""
    earlier: Facts | None = None
    for number in range(1, MOST_ROUNDS + 1):
        found, facts = made(earlier, staging / str(number))
        news = agreement is not None and agreement.learn(facts.tls)
        if schemas is not None:
            news |= learned(schemas, facts.missing)
        if not facts.unsettled() and not news:
            break
        earlier = facts
    return found, facts


def regrouped(
    job: Job, staging: Path, tasks: int = 1, rows: int = 4096, spread: int = 0
) -> tuple[Path, Facts]:
    """Do the same by connection, in memory: connections that continue in other batches are kept by
    connection. `spread`: number of tasks that decode what the others have reassembled."""
    agreement = agreement_of(job)
    parts, begin = [carried(job)], [carried(job)]
    for file in job.files:
        for split in file.splits:
            part = list(segments(file.name, split))
            parts += part
            if agreement is not None:
                begin += heads(part)
    table = pa.Table.from_batches(parts, SEGMENTS)
    flows = table.column("flow_id").to_numpy() % tasks
    if agreement is not None:
        found = _sorted(pa.Table.from_batches(begin, SEGMENTS)).to_batches()
        setting = setting_of(job, keys=agreement.told)
        agreement.begin(notes_in(Handshakes(setting).run(found)))

    def made(earlier: Facts | None, folder: Path) -> tuple[Path, Facts]:
        keys = None if agreement is None else agreement.told
        setting = setting_of(job, earlier, spread=bool(spread), keys=keys)
        told: Iterable[Told] = (
            each
            for task in range(tasks)
            for each in Flows(setting).run(
                sized(iter(_sorted(table, flows == task).to_batches()), rows, 16 << 20)
            )
        )
        if spread:
            told = _spread(told, setting, spread)
        raw = _Raw(job, folder)
        raw.put_all(told)
        raw.facts.put_in_order(lambda asked: asked.answers(table.to_batches()))
        return raw.finish()

    out, facts = in_rounds(made, staging, agreement, job.schemas)
    write_left(job, agreement, out)
    return out, facts


def _spread(told: Iterable[Told], setting: Setting, count: int) -> Iterator[Told]:
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(count)]
    for table, batch in told:
        if table != PAIRS.name:
            yield table, batch
            continue
        keys = (batch.column("place").to_numpy() >> COUNT_BITS) % count
        for number, part in enumerate(parts):
            part.append(batch.filter(pa.array(keys == number)))
    for part in parts:
        yield from dissected(part, setting.options, setting.schemas, setting.topics)


def _sorted(table: pa.Table, chosen: Any = None) -> pa.Table:
    order = [("flow_id", "ascending"), ("packet", "ascending")]
    return (table if chosen is None else table.filter(pa.array(chosen))).sort_by(order)


class _Raw:
    """Rows in files, and facts, until all are there."""

    def __init__(self, job: Job, staging: Path) -> None:
        self.job = job
        self._staging = staging
        self._writers = Writers(staging / "raw", compression=QUICK)
        schemas = None if job.schemas is None else sent(job.schemas)
        self.facts = Facts(job.before.topics, schemas)

    def put(self, told: Told) -> None:
        """Write some rows."""
        table, batch = told
        if table == "facts":
            self.facts.merge_all(batch)
        else:
            self._writers.write(table, batch)

    def put_all(self, told: Iterable[Told]) -> None:
        """Write more rows."""
        for each in told:
            self.put(each)

    def finish(self) -> tuple[Path, Facts]:
        """Fill in what is known only at the end; return the folder of the tables."""
        made = self._staging / "made"
        self._writers.close()
        finish(self.job, self.facts, self._writers.parts(), made)
        return made, self.facts


def _read(capture: Capture, raw: _Raw) -> None:
    """Make the rows of a capture."""
    job = raw.job
    schemas = None if job.schemas is None else sent(job.schemas)
    collector = TableCollector(capture.context, job.options, job.last_ns, raw.put, schemas)
    capture.watch = collector.saw
    capture.named = collector.named
    for number, exchange in enumerate(capture.exchanges()):
        collector.add(exchange)
        if collector.large or not number % 256:
            raw.put_all(collector.ready())
    if capture.source.statistics.connections > MANY:
        # The two directions of a connection know each other. What they took is needed again soon.
        gc.collect()
    raw.put_all(collector.finish())


def _segments(job: Job, writers: Writers) -> None:
    """Write the table of all segments, which are read again because they are not kept."""
    if job.options.segments:
        writers.write(SEGMENTS_TABLE.name, SEGMENTS_TABLE.schema.empty_table())
        for file in job.files:
            for split in file.splits:
                for batch in segments(file.name, split):
                    writers.write(SEGMENTS_TABLE.name, segment_rows(batch))


def finish(job: Job, facts: Facts, raw: Parts, made: Path) -> None:
    """Fill in numbers and names, now that all are known."""
    writers = Writers(made)
    names = facts.names()
    ranks = _Ranks(raw, job.before, facts.order)
    for table in COLLECTED.values():
        if not job.options.makes(table.name):
            continue
        if table.name not in raw:
            writers.write(table.name, table.schema.empty_table())
        elif table is LATENCY:
            for cells in _cells_apart(raw, names, made.parent / "cells"):
                writers.write(table.name, summed(cells))
        else:
            for group in _groups(_numbered(raw, table, ranks, names)):
                writers.write(table.name, group)
    _segments(job, writers)
    for name, small in fixed_tables(job, facts, ranks.one):
        writers.write(name, small)
    for state in statistics_rows(facts, ranks.one):
        writers.write("statistics", state)
    for batch in _batches(raw, CARRY):
        writers.write(CARRY.name, with_ranks(batch, ranks.one))
    writers.close()
    wanted = set(filter(job.options.makes, TABLES))
    assert {each.name for each in made.iterdir()} - {CARRY.name} == wanted


def _batches(raw: Parts, table: Table) -> Iterator[pa.RecordBatch]:
    """Yield rows as they were written: a batch over several row groups may take much memory."""
    for path in raw.get(table.name, ()):
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                yield from file.read_row_group(number, use_threads=False).to_batches()


def _numbered(
    raw: Parts, table: Table, ranks: _Ranks, names: TopicNames
) -> Iterator[pa.RecordBatch]:
    for batch in _batches(raw, table):
        index = batch.schema.get_field_index("number")
        if index >= 0:
            batch = numbered(batch, ranks.of_exchanges(batch.column(index)))
        index = batch.schema.get_field_index("connection")
        if index >= 0:
            numbers = ranks.of_connections(batch.column(index))
            batch = batch.set_column(index, batch.schema.field(index), numbers)
        yield named(batch, names)


def _cells_apart(raw: Parts, names: TopicNames, folder: Path) -> Iterator[pa.Table]:
    """Yield the cells of histograms, those of one key together: as many keys at a time as sums take
    little memory of."""
    about = [pq.read_metadata(path) for path in raw[LATENCY.name]]
    groups = [each.row_group(number) for each in about for number in range(each.num_row_groups)]
    rows = sum(each.num_rows for each in groups)
    size = sum(each.total_byte_size for each in groups)
    parts = 1 + max(rows // SUM_ROWS, size // GROUP_BYTES)
    writers = Writers(folder, compression=QUICK)
    for batch in _batches(raw, LATENCY):
        batch = named(batch, names)
        keys = zip(*(batch.column(name).to_pylist() for name in CELL_KEYS), strict=True)
        part = np.array([crc32(repr(key).encode()) % parts for key in keys])
        for number in range(parts):
            writers.write(str(number), batch.filter(pa.array(part == number)))
    writers.close()
    for paths in writers.parts().values():
        for path in paths:
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


def write_left(job: Job, agreement: Agreement | None, made: Path) -> None:
    """Write what the next batch has to know of the TLS of this one and those before."""
    left = job.before.tls if agreement is None else agreement.left()
    if job.keep is not None and left:
        writers = Writers(made, LEFT)
        writers.write(CARRY.name, record_batch([(0, [], [], left)], CARRY.schema))
        writers.close()


def with_ranks(batch: pa.RecordBatch, rank: Callable[[int], int]) -> pa.RecordBatch:
    """Return carried connections with their numbers."""
    found = [[rank(place) for place in places] for places in batch.column("places").to_pylist()]
    index = batch.schema.get_field_index("ranks")
    field = batch.schema.field(index)
    return batch.set_column(index, field, pa.array(found, field.type))


class _Ranks:
    """Numbers of exchanges and connections, which continue those of the batches before. Rows that
    were read in order have theirs already."""

    def __init__(self, raw: Parts, before: Before, order: Order) -> None:
        self._order = order
        exchanges = (EXCHANGES, UNWANTED)
        turns = order.of_all(_column(raw, exchanges, "number"))
        self._turns = np.sort(turns[turns >= EXCHANGE])
        self._before = before.exchanges
        files = np.maximum(_column(raw, exchanges, "file_id").astype(np.int64), 0)
        offsets = _column(raw, exchanges, "record_offset")
        offsets = np.clip(offsets, 0, (1 << OFFSET_BITS) - 1)
        places = EXCHANGE + (files << OFFSET_BITS) + offsets
        ranks = self._of_turns(turns)
        connections = _column(raw, (CONNECTIONS,), "connection")
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
        ascending = np.argsort(places, kind="stable")
        self._places, self._ranks = places[ascending], ranks[ascending]

    def _of_turns(self, turns: Any) -> Any:
        """Return the numbers of turns; other numbers stay."""
        found = np.searchsorted(self._turns, turns) + 1 + self._before
        return np.where(turns >= EXCHANGE, found, turns)

    def of_exchanges(self, turns: pa.Array) -> pa.Array:
        """Return the numbers of turns; other numbers stay."""
        return pa.array(self._of_turns(self._order.of_all(turns.to_numpy())), pa.int64())

    def of_connections(self, places: pa.Array) -> pa.Array:
        """Return the numbers of places; other numbers stay."""
        if not len(self._places):
            return places
        values = places.to_numpy()
        found = np.minimum(np.searchsorted(self._places, values), len(self._places) - 1)
        known = self._places[found] == values
        return pa.array(np.where(known, self._ranks[found], values), pa.int64())

    def one(self, place: int) -> int:
        """Return the number of one place; another number stays."""
        at = int(np.searchsorted(self._places, place))
        if at < len(self._places) and self._places[at] == place:
            return int(self._ranks[at])
        return place


def _column(raw: Parts, tables: Iterable[Table], name: str) -> Any:
    paths = [path for table in tables for path in raw.get(table.name, ())]
    found = [pq.read_table(path, columns=[name]).column(0).to_numpy() for path in paths]
    return np.concatenate([np.zeros(0, np.int64), *found])
