"""`kafkascope export`: everything into a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.options import reading_options, spare_pandas
from kafkascope.analyzer.commands.output import LineLimit, refuse_inputs
from kafkascope.analyzer.export import (
    FORMATS,
    ExportOptions,
    TableName,
    Writer,
    format_of,
    open_writer,
)
from kafkascope.analyzer.export.late import LinesExport
from kafkascope.analyzer.heap import large_apart
from kafkascope.analyzer.reading.log_files import RecordsAtRest, kafka_files
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading, report_problems
from kafkascope.analyzer.terminal import say, stdout_blocks, stdout_bytes, stdout_lines
from kafkascope.analyzer.text import plural
from kafkascope.analyzer.topics import TopicNames
from kafkascope.errors import INTERRUPTED
from kafkascope.extras import require
from kafkascope.private import PrivateFile

if TYPE_CHECKING:
    from kafkascope.analyzer.logdir.opening import AtRest


@command()
@reading_options(
    *("output", "form", "as_json", "raw", "columns", "jobs"),
    helps={
        "output": "File to write; - for stdout",
        "form": "Output format: jsonl, csv, parquet (default: by the suffix of -o)",
        "columns": "Columns of --table records",
    },
    formats=tuple(FORMATS),
)
@setting("--full", "", "Include request and response bodies (jsonl, parquet)")
@setting(
    "--table",
    "TABLE",
    "Export exchanges or records (default: exchanges; records of log segments)",
    type=click.Choice(["exchanges", "records"]),
)
def export(options: ReadOptions, full: bool, table: TableName | None) -> int:
    """Write exchanges or records to JSONL, CSV, or Parquet.

    The suffix of -o FILE (.jsonl, .csv, .parquet) or --format chooses the format.

    \b
      kafkascope export capture.pcapng -o exchanges.jsonl --full
      kafkascope export capture.pcapng -o records.csv --table records
      kafkascope export capture.pcapng -o - --format jsonl | jq .
    """
    form = _form(options)
    if form == "parquet":
        require("kafkascope export to Parquet")
        spare_pandas()
        large_apart()
    if files := kafka_files(options.inputs, whole=True):
        if full or table == "exchanges":
            raise click.UsageError(
                "log segments hold records, not exchanges: leave out --full and --table exchanges"
            )
        return _export_files(files, options, form)
    table = table or "exchanges"
    if full and (form not in ("jsonl", "parquet") or table == "records"):
        what = "records" if table == "records" else form
        raise click.UsageError(f"{what} cannot hold bodies: --full needs --format jsonl or parquet")
    _columns_of(options, table)
    with Reading(options, records=table == "records") as reading:
        payloads = reading.payloads if full or table == "records" else None
        how = ExportOptions(table, full, options.raw, options.columns, payloads)
        shown = write_all(reading, options, form, how)
        if options.output not in (None, "-") and not options.quiet:
            what = "records of " if table == "records" else ""
            say(f"{what}{plural(shown, 'exchange')} written to {options.output}")
        return reading.finish()


def _export_files(files: list[AtRest], options: ReadOptions, form: str) -> int:
    _columns_of(options, "records")
    read = RecordsAtRest(options, files)
    how = ExportOptions("records", False, options.raw, options.columns, None)

    limit = LineLimit(options.count)
    with _target(options, form) as out:
        writer = open_writer(form, out, TopicNames(), how)
        for lines in read.lines():
            writer.add_records(limit.of(lines))
            if limit.full:
                break
        writer.finish()
    if options.output not in (None, "-") and not options.quiet:
        say(f"{plural(limit.passed, 'record')} written to {options.output}")
    return 0 if limit.full else read.finish()


@contextmanager
def _target(options: ReadOptions, form: str, *, live: bool = False) -> Iterator[BinaryIO]:
    if options.output in (None, "-"):
        out = stdout_lines(stdout_bytes() if live else stdout_blocks(), form)
        yield out
        out.flush()
        return
    assert options.output is not None
    refuse_inputs(options.output, options.inputs)
    file = PrivateFile(Path(options.output))
    # Whoever follows a live capture reads the file while it grows.
    with file.published() if live else file as opened:
        yield opened


def _form(options: ReadOptions) -> str:
    if options.form in FORMATS:
        return options.form
    known = ", ".join(FORMATS)
    if options.output in (None, "-"):
        raise click.UsageError(f"-o FILE is missing (or -o - with --format: {known})")
    assert options.output is not None
    form = format_of(options.output)
    if form is None:
        raise click.UsageError(
            f'the suffix of "{options.output}" is no export format: choose from {known}'
        )
    return form


def _columns_of(options: ReadOptions, table: TableName) -> None:
    if not options.columns:
        return
    if table != "records":
        raise click.UsageError("--columns needs --table records")
    from kafkascope.analyzer.exchanges.record_columns import checked

    try:
        checked(options.columns)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if len(set(options.columns)) < len(options.columns):
        raise click.UsageError("--columns names a column twice: leave one out")


def write_all(
    reading: Reading,
    options: ReadOptions,
    form: str,
    how: ExportOptions = ExportOptions(),  # noqa: B008 - it cannot change
) -> int:
    """Write all wanted exchanges to `options.output` or stdout; the number of them."""
    shown = 0
    with _target(options, form, live=reading.live) as out:
        writer = open_writer(form, out, reading.capture.context.names, how)
        try:
            for written in _written(reading, writer, out):
                shown += written
        except KeyboardInterrupt:
            reading.code = INTERRUPTED
        writer.finish()
        report_problems(writer.problems, options)
    return shown


def _written(reading: Reading, writer: Writer, out: BinaryIO) -> Iterator[int]:
    """Write the wanted exchanges; yield how many, some at a time."""
    from kafkascope.analyzer.pool.messages import joined

    if isinstance(writer, LinesExport):
        if reading.takes_all:
            for rows, items in reading.batches():
                writer.add_batch(rows, items)
                yield len(items)
            return
        if out.seekable():
            for each in reading.divided(
                lambda row, exchange, names, problems: joined(
                    writer.shaped(row, exchange, names, problems, reading.chosen)
                )
            ):
                writer.put(each.data, each.nameless, each.problems)
                yield each.exchanges
    for row, exchange in reading.rest():
        writer.add(exchange, row, reading.chosen)
        yield 1
