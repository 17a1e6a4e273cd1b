"""Parquet export: the `exchanges` or `records` table of the pipeline as one file."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from functools import partial
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from kafkascope.analyzer.exchanges.record_columns import RECORD_COLUMNS, decoded_text
from kafkascope.analyzer.pipeline.tables.buffers import RowBuffer
from kafkascope.analyzer.pipeline.tables.naming import named, unnamed
from kafkascope.analyzer.pipeline.tables.schemas import (
    EXCHANGES,
    RECORDS,
    VERSION,
    VERSION_KEY,
    measured,
)
from kafkascope.analyzer.pipeline.tables.values import (
    bodies_of,
    exchange_values,
    record_rows,
    record_values,
)
from kafkascope.dissectors.codec.jsonform import loads

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import Chosen, Problem
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.export import ExportOptions
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.topics import TopicNames

# Rows of a row group: enough to compress well, few enough to hold in memory.
ROWS: Final = 16_384


class ParquetExport:
    """See `analyzer.export.Writer`."""

    def __init__(self, out: BinaryIO, names: TopicNames, options: ExportOptions) -> None:
        self._out = out
        self._names = names
        self._table = RECORDS if options.table == "records" else EXCHANGES
        self._full = options.full
        self._payloads = options.payloads
        self._unnamed = False
        """Whether ids were written in place of names."""
        self._columns = options.columns if self._table is RECORDS else ()
        self._fields = [each for each in self._columns if each not in RECORD_COLUMNS]
        self._whole = self._table.schema
        """What rows are made of; of these columns only the chosen ones are written."""
        if self._columns:
            kinds = [("exchange", pa.int64()), *((name, pa.string()) for name in self._fields)]
            self._whole = pa.schema([*self._table.schema, *itertools.starmap(pa.field, kinds)])
        self._buffer = RowBuffer(self._whole)
        self._writer = self._open(out)
        self.problems: list[Problem] = []

    def _open(self, out: BinaryIO) -> Any:
        schema = self._whole.with_metadata({VERSION_KEY: str(VERSION).encode()})
        if self._columns:
            schema = pa.schema([self._whole.field(name) for name in self._columns])
        return pq.ParquetWriter(out, schema, compression="zstd", write_statistics=measured(schema))

    def add(self, exchange: Exchange, row: Row, chosen: Chosen | None = None) -> None:
        if self._table is RECORDS:
            how = (self._names, self.problems, self._payloads, chosen)
            self._take(record_values(row, exchange, *how), row)
        elif self._full:
            bodies = bodies_of(exchange, self._payloads)
            self._take(iter([exchange_values(row, exchange, bodies)]))
        else:
            self._take(iter([exchange_values(row, exchange)]))

    def add_records(self, lines: bytes) -> None:
        self._take(record_rows(lines, None), None)

    def _with_fields(self, row: Row | None, record: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a record with the values of all columns that can be selected."""
        decoded = {}
        for side in ("key", "value") if self._fields else ():
            text = record[RECORDS.schema.get_field_index(f"{side}_decoded")]
            if text is not None:
                decoded[f"{side}_decoded"] = loads(text)
        fields = (decoded_text(decoded, name, "") or None for name in self._fields)
        return (*record, None if row is None else row.number, *fields)

    def _take(self, rows: Iterator[tuple[Any, ...]], row: Row | None = None) -> None:
        if self._columns:
            rows = map(partial(self._with_fields, row), rows)
        # Not a loop over rows: it would hold one of megabytes while that is written.
        for _ in map(self._buffer.add, rows):
            if self._buffer.full(ROWS):
                self._flush()

    def _flush(self) -> None:
        batch = named(self._buffer.batch(), self._names)
        if self._columns:
            batch = batch.select(self._columns)
        self._unnamed = self._unnamed or unnamed(batch)
        self._writer.write_batch(batch)

    def finish(self) -> None:
        """Write the remaining rows and the footer; the whole file again when names came late."""
        if len(self._buffer):
            self._flush()
        self._writer.close()
        out = self._out
        if not self._unnamed or not (out.seekable() and out.readable()):
            return
        with TemporaryFile() as again:
            out.seek(0)
            writer = self._open(again)
            for batch in pq.ParquetFile(out).iter_batches(ROWS):
                writer.write_batch(named(batch, self._names))
            writer.close()
            again.seek(0)
            out.seek(0)
            shutil.copyfileobj(again, out, 1 << 20)
            out.truncate()
