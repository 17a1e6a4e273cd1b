"""Export of exchanges and records to files. `FORMATS` lists the formats; a new one is a file here
and a line in it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, NamedTuple, Protocol, TypeAlias

from kafkascope.analyzer.exchanges.records import Chosen, Problem
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.topics import TopicNames

if TYPE_CHECKING:
    from kafkascope.schemas.decoding import Payloads

__all__ = ["FORMATS", "ExportOptions", "TableName", "Writer", "format_of", "open_writer"]

TableName: TypeAlias = Literal["exchanges", "records"]


class ExportOptions(NamedTuple):
    """Content and format of an export."""

    table: TableName = "exchanges"
    full: bool = False
    raw: bool = False
    """Whether cells are written as they are, even where a spreadsheet takes them for formulas."""
    columns: tuple[str, ...] = ()
    """Columns of records, in place of all; `value.PATH` is a field of a decoded value."""
    payloads: Payloads | None = None
    """Decodes keys and values."""


class Writer(Protocol):
    """Writes exchanges, one after the other, to a binary file."""

    problems: list[Problem]
    """Records that could not be read or are damaged."""

    def add(self, exchange: Exchange, row: Row, chosen: Chosen | None = None) -> None:
        """Write an exchange, or its records: the chosen ones, or all."""

    def add_records(self, lines: bytes) -> None:
        """Write records of Kafka's own files: lines of record/1."""

    def finish(self) -> None:
        """Finish the output: replace ids of topics whose names came late. That needs a file that
        can be read and written at any position; elsewhere the ids stay. Does not close the file."""


FORMATS: Final = {
    "jsonl": "kafkascope.analyzer.export.jsonl.JsonLinesExport",
    "csv": "kafkascope.analyzer.export.csv.CsvExport",
    "parquet": "kafkascope.analyzer.export.parquet.ParquetExport",
}
"""By name, which is also the file's suffix: the class that writes the format."""


def format_of(path: str) -> str | None:
    """Return the format for the suffix of a file's name."""
    suffix = path.rpartition(".")[2].lower()
    return suffix if suffix in FORMATS else None


def open_writer(
    form: str,
    out: BinaryIO,
    names: TopicNames,
    chosen: ExportOptions = ExportOptions(),  # noqa: B008 - it cannot change
) -> Writer:
    module, _, name = FORMATS[form].rpartition(".")
    writer: Writer = getattr(importlib.import_module(module), name)(out, names, chosen)
    return writer
