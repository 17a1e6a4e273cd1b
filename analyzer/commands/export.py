"""`kafkascope export`: everything into a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from kafkascope.analyzer.commands.atrest import RecordsAtRest, kafka_files
from kafkascope.analyzer.commands.help import command, option
from kafkascope.analyzer.commands.options import reading_options, spare_pandas
from kafkascope.analyzer.commands.targets import refuse_inputs
from kafkascope.analyzer.export import (
    FORMATS,
    ExportOptions,
    Shaping,
    TableName,
    Writer,
    format_of,
    open_writer,
)
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import INTERRUPTED, Reading, problems_said
from kafkascope.analyzer.terminal import say, stdout_blocks, stdout_bytes, stdout_lines
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.inputs.private import PrivateFile
from kafkascope.extras import require

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import Problem
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.logdir.opening import AtRest
    from kafkascope.analyzer.model import Exchange


@command()
@reading_options(
    *("output", "form", "as_json", "raw", "columns", "jobs"),
    helps={
        "output": "File to write; - for stdout",
        "form": "Output format: jsonl, csv (default: by the suffix of -o)",
        "columns": "Columns of --table records",
    },
)
@option("--full", is_flag=True, help="Include request and response bodies (jsonl, parquet)")
@option(
    "--table",
    type=click.Choice(["exchanges", "records"]),
    metavar="TABLE",
    help="Export exchanges or records (default: exchanges; records of log segments)",
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
            said = f"{what}{shown} exchanges written to {options.output}"
            say(said)
        return reading.finish()


def _export_files(files: list[AtRest], options: ReadOptions, form: str) -> int:
    """Write the records of Kafka's own files."""
    _columns_of(options, "records")
    read = RecordsAtRest(options, files)
    how = ExportOptions("records", False, options.raw, options.columns, None)

    def write(out: BinaryIO) -> tuple[int, bool]:
        writer = open_writer(form, out, TopicNames(), how)
        shown, whole = 0, True
        for lines in read.lines():
            if options.count is None:
                shown += lines.count(b"\n")
                writer.add_records(lines)
                continue
            kept = lines.splitlines(keepends=True)[: options.count - shown]
            shown += len(kept)
            writer.add_records(b"".join(kept))
            if shown >= options.count:
                whole = False
                break
        writer.finish()
        return shown, whole

    if options.output in (None, "-"):
        out = stdout_lines(stdout_blocks(), form)
        _, whole = write(out)
        out.flush()
        return read.finish() if whole else 0
    assert options.output is not None
    refuse_inputs(options.output, options.inputs)
    with PrivateFile(Path(options.output)) as out:
        shown, whole = write(out)
    if not options.quiet:
        say(f"{shown} records written to {options.output}")
    return read.finish() if whole else 0


def _form(options: ReadOptions) -> str:
    """The format that --format or the suffix asks for."""
    if options.form in FORMATS:
        return options.form
    known = ", ".join(FORMATS)
    if options.output in (None, "-"):
        raise click.UsageError(f"-o FILE is missing (or -o - with --format: {known})")
    assert options.output is not None
    form = format_of(options.output) if options.form == "table" else None
    if form is None:
        wanted = options.form if options.form != "table" else f'the suffix of "{options.output}"'
        raise click.UsageError(f"{wanted} is no export format: choose from {known}")
    return form


def _columns_of(options: ReadOptions, table: TableName) -> None:
    """Refuse columns that records do not have."""
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
    names = reading.capture.context.names
    if options.output in (None, "-"):
        out = stdout_lines(stdout_bytes() if reading.live else stdout_blocks(), form)
        shown = _write(reading, options, open_writer(form, out, names, how), out)
        out.flush()
        return shown
    assert options.output is not None
    path = Path(options.output)
    refuse_inputs(options.output, options.inputs)
    file = PrivateFile(path)
    # Whoever follows a live capture reads the file while it grows.
    with file.published() if reading.live else file as out:
        return _write(reading, options, open_writer(form, out, names, how), out)


def _write(reading: Reading, options: ReadOptions, writer: Writer, out: BinaryIO) -> int:
    shown = 0
    try:
        if isinstance(writer, Shaping) and out.seekable():
            for each in reading.divided(partial(_shaped, reading, writer), writer.again):
                writer.put(each.data, each.nameless, each.problems)
                shown += each.exchanges
        for row, exchange in reading.rest():
            writer.add(exchange, row, reading.chosen)
            shown += 1
    except KeyboardInterrupt:
        reading.code = INTERRUPTED
    writer.finish()
    problems_said(writer.problems, options)
    return shown


def _shaped(
    reading: Reading,
    writer: Shaping,
    row: Row,
    exchange: Exchange,
    names: TopicNames,
    problems: list[Problem],
) -> bytes:
    from kafkascope.analyzer.pool.messages import joined

    return joined(writer.shaped(row, exchange, names, problems, reading.chosen))
