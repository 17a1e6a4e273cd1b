"""Tables of Kafka's own files: records and batches of log segments, without exchanges. Segments are
read one batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.filter.backends.logdir import Unit, compile_at_rest
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.logdir.model import LogBatch, RecoveryVerdict
from kafkascope.analyzer.logdir.opening import AtRest, open_all_at_rest
from kafkascope.analyzer.logdir.records import lines_of
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.schemas import RECORD_BATCHES, RECORDS
from kafkascope.analyzer.pipeline.tables.values import OF_BATCH, record_rows
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.values import Uuid

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkascope.schemas.decoding import Payloads

Wanted: TypeAlias = Callable[[LogBatch, bytes, AtRest], Callable[[Record], bool] | None]
"""The choice among the records of a batch; None: all."""

LOG_TABLES: Final = {each.name: each for each in (RECORDS, RECORD_BATCHES)}
"""The tables that can be made of Kafka's own files."""
ROWS: Final = 4096
# The latest time that nanoseconds can tell.
LATEST_MS: Final = (2**63 - 1) // 1_000_000
# Text of the records in an Arrow batch.
BYTES: Final = 16 << 20


def logs_in(inputs: Iterable[str]) -> list[AtRest]:
    """Return the partitions and segments that inputs name: segments, folders of partitions, log
    directories; nothing where one of them is something else."""
    found: list[AtRest] = []
    for name in inputs:
        if "://" in name:
            return []
        try:
            some = open_all_at_rest(Path(name))
        except (OSError, ValueError):
            return []
        if not some or not all(each.holds_batches for each in some):
            return []
        found += some
    return found


def log_rows(
    file: AtRest,
    tables: Collection[str],
    wanted: Wanted,
    payloads: Payloads | None = None,
    judged: Callable[[RecoveryVerdict], None] = lambda verdict: None,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the name of a table and rows of it. `wanted`: the choice among a batch's records, None
    for all; of batches those count in which one is chosen. `judged`: called with verdicts."""
    rows: list[tuple[Any, ...]] = []
    batches: list[tuple[Any, ...]] = []
    size = index = 0
    for each in file.walk():
        if isinstance(each, RecoveryVerdict):
            judged(each)
            index = 0
            continue
        batch, data = each
        choice = wanted(batch, data, file)
        chosen = choice is None
        for lines in lines_of(batch, data, file.place, [], choice, payloads):
            chosen = True
            if RECORDS.name in tables:
                rows += record_rows(lines, None)
                size += len(lines)
            if len(rows) >= ROWS or size > BYTES:
                yield RECORDS.name, record_batch(rows, RECORDS.schema)
                rows, size = [], 0
        if chosen and RECORD_BATCHES.name in tables:
            batches.append(_batch_row(batch, file, index))
        index += 1
        if len(batches) >= ROWS:
            yield RECORD_BATCHES.name, record_batch(batches, RECORD_BATCHES.schema)
            batches = []
    if rows:
        yield RECORDS.name, record_batch(rows, RECORDS.schema)
    if batches:
        yield RECORD_BATCHES.name, record_batch(batches, RECORD_BATCHES.schema)


def chosen_by(text: str, known: Known = NOTHING) -> Wanted:
    """Return the choice of a filter; `FilterError`, also for fields that these files lack."""
    predicate = compile_at_rest(text, known)

    def selected(batch: LogBatch, data: bytes, file: AtRest) -> Callable[[Record], bool] | None:
        if predicate is None:
            return None
        return lambda record: predicate(Unit(batch, data, file.place, record))

    return selected


def segments_of(files: Sequence[AtRest]) -> list[str]:
    return [str(path) for file in files for path in file.files]


def _batch_row(batch: LogBatch, file: AtRest, index: int) -> tuple[Any, ...]:
    topic_id = file.place.topic_id
    stamp = batch.max_timestamp
    known = 0 <= stamp <= LATEST_MS
    return (
        None,
        None,
        stamp * 1000 if known else None,
        stamp * 1_000_000 if known else None,
        "log",
        file.topic,
        None if topic_id is None else str(Uuid(topic_id)),
        file.place.partition,
        index,
        0,
        batch.base_offset,
        batch.last_offset,
        batch.magic,
        batch.codec,
        batch.size,
        batch.records,
        *OF_BATCH(batch),
        batch.base_timestamp,
        batch.max_timestamp,
        batch.crc_ok,
    )
