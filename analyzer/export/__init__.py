"""Exchanges and records into files. `FORMATS` lists what there is; a new one is a file here and a
line in it."""

from __future__ import annotations

import importlib
from typing import BinaryIO, Final, Literal, NamedTuple, Protocol, TypeAlias

from kafkascope.analyzer.exchanges.records import Problem
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.topics import TopicNames

__all__ = ["FORMATS", "ExportOptions", "Table", "Writer", "format_of", "open_writer"]

Table: TypeAlias = Literal["exchanges", "records"]


class ExportOptions(NamedTuple):
    """What is written, and how."""

    table: Table = "exchanges"
    full: bool = False
    """With bodies."""
    raw: bool = False
    """Cells as they are, even where a spreadsheet takes them for formulas."""


class Writer(Protocol):
    """Takes exchanges one after the other and writes to a binary file."""

    problems: list[Problem]
    """Records that could not be read, or that are damaged."""

    def add(self, exchange: Exchange, row: Row) -> None:
        """Write what there is to write about an exchange."""

    def finish(self) -> None:
        """No more will come: give late names to topics that were written by id. That needs a file
        that can be read and written at any place; elsewhere the ids stay. Does not close it."""


FORMATS: Final = {
    "jsonl": "kafkascope.analyzer.export.jsonl.JsonLinesExport",
    "csv": "kafkascope.analyzer.export.csv.CsvExport",
    "parquet": "kafkascope.analyzer.export.parquet.ParquetExport",
}
"""Name, which is the file's suffix too -> class that writes it."""


def format_of(path: str) -> str | None:
    """The format that a file's name asks for."""
    suffix = path.rpartition(".")[2].lower()
    return suffix if suffix in FORMATS else None


def open_writer(
    form: str,
    out: BinaryIO,
    names: TopicNames,
    *,
    table: Table = "exchanges",
    full: bool = False,
    raw: bool = False,
) -> Writer:
    """A writer of that format; `full` adds the bodies where the format can hold them. `raw`: CSV
    without the sign that keeps a text from being a formula."""
    chosen = ExportOptions(table, full, raw)
    module, _, name = FORMATS[form].rpartition(".")
    writer: Writer = getattr(importlib.import_module(module), name)(out, names, chosen)
    return writer
