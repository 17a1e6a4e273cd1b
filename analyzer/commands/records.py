"""`kafkascope records`: the records that were produced and fetched, one a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.help import command, flags
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import FixedTable, LineLimit, Output
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.reading.log_files import RecordsAtRest, kafka_files
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.render.listing import FixedColumn
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.jsonform import dumps, loads
from kafkascope.errors import INTERRUPTED
from kafkascope.schemas.paths import cell

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import Problem
    from kafkascope.analyzer.reading.reading import Reading


COLUMNS: Final = (
    FixedColumn("exchange", 8, True),
    FixedColumn("source", 7),
    FixedColumn("topic", 16),
    FixedColumn("partition", 9, True),
    FixedColumn("offset", 8, True),
    FixedColumn("time", 24),
    FixedColumn("key", 12),
    FixedColumn("value", 0),
    FixedColumn("headers", 24),
)
PRIORITY: Final = (
    *("value", "key", "headers", "topic", "partition", "offset"),
    *("exchange", "time", "source"),
)
PARTS: Final = ("key", "value", "headers")
SIDES: Final = ("key", "value")


@command()
@input_options
@flags("parts", {name: f"Show {name.removesuffix('s')}s" for name in PARTS}, multiple=True)
def records(options: ReadOptions, parts: tuple[str, ...]) -> int:
    """List records with their keys and values.

    Reads Produce requests, Fetch responses, and log segments. Shows keys and values unless --key,
    --value or --headers select; --json has everything. -Y selects records by their own fields
    (record.*, schema.*, topic, partition, offset) and by those of their exchange.

    \b
      kafkascope records capture.pcapng -Y 'topic == orders' --json
      kafkascope records capture.pcapng -Y 'value.amount > 100' --schemas schemas/
    """
    if files := kafka_files(options.inputs, whole=True):
        with Output(options) as output:
            printer, finish = _printer(options, parts or ("key", "value"), output)
            read, limit = RecordsAtRest(options, files), LineLimit(options.top)
            for lines in read.lines():
                printer(limit.of(lines))
                if limit.full:
                    break
            code = 0 if limit.full else read.finish()
            finish()
            return code
    from kafkascope.analyzer.reading.reading import Reading, report_problems

    problems: list[Problem] = []
    limit = LineLimit(options.top)
    with Reading(options, records=True) as reading, Output(options, live=reading.live) as output:
        printer, finish = _printer(options, parts or ("key", "value"), output)
        empty = True
        try:
            for pieces in _read(reading, problems, whole=options.top is None):
                for piece in pieces:
                    empty = False
                    printer(limit.of(piece))
                if limit.full:
                    break
        except KeyboardInterrupt:
            reading.code = INTERRUPTED
        finish()
        report_problems(problems, options)
        if empty:
            reading.lacks("records")
        return reading.finish()


def _read(reading: Reading, problems: list[Problem], *, whole: bool) -> Iterator[Iterable[bytes]]:
    """Yield the records as lines of JSON, those of one exchange or of many. `whole`: no number of
    them ends the reading, so that several processes may read."""
    from kafkascope.analyzer.exchanges.records import record_lines

    payloads = reading.payloads

    def lines(exchange: Exchange, names: TopicNames, found: list[Problem]) -> Iterator[bytes]:
        return record_lines(exchange, names, found, payloads, reading.chosen)

    if whole and reading.takes_all:
        from kafkascope.analyzer.exchanges.batch_json import RecordLines

        writer = RecordLines(reading.capture.context.names, payloads)
        for rows, items in reading.batches():
            yield chain.from_iterable([writer.of(rows, item, problems) for item in items])
        return
    if whole:
        from kafkascope.analyzer.pool.messages import joined

        blocks = reading.divided(lambda _, *how: joined(lines(*how)))
        for block in blocks:
            problems += block.problems
            yield [block.data] if block.data else []
    for _, exchange in reading.rest():
        yield lines(exchange, reading.capture.context.names, problems)


def _printer(
    options: ReadOptions, parts: tuple[str, ...], output: Output
) -> tuple[Callable[[bytes], None], Callable[[], None]]:
    """Return what prints lines of record/1, and what ends the output."""
    if options.form == "jsonl" and not options.columns:
        return output.json_lines, output.end
    if options.form == "json" and not options.columns:

        def print_elements(lines: bytes) -> None:
            for record in lines.splitlines():
                output.element(record)

        return print_elements, output.end
    from kafkascope.analyzer.exchanges.record_columns import checked, json_value

    wanted = options.columns or [
        column.name for column in COLUMNS if column.name not in PARTS or column.name in parts
    ]
    try:
        checked(wanted)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if options.form in ("json", "jsonl"):

        def print_columns(lines: bytes) -> None:
            for record in map(loads, lines.splitlines()):
                output.element({name: json_value(record, name) for name in wanted})

        return print_columns, output.end
    nothing, usual = "" if options.form == "csv" else "-", {each.name: each for each in COLUMNS}
    columns = [usual.get(name) or FixedColumn(name, 12) for name in wanted]
    if "value" not in wanted:
        columns[-1] = replace(columns[-1], width=0)
    table = FixedTable(columns, () if options.columns else PRIORITY, output, options)

    def print_rows(lines: bytes) -> None:
        for record in map(loads, lines.splitlines()):
            table.row([_cell(record, name, nothing) for name in wanted])

    return print_rows, table.end


def _cell(record: dict[str, Any], name: str, nothing: str) -> str:
    """Return the cell of a column. Keys and values are shown decoded where they can be."""
    from kafkascope.analyzer.exchanges.record_columns import decoded_text

    if name in record:
        decoded = f"{name}_decoded"
        if name in SIDES and decoded in record:
            return cell(record[decoded])
        if "_" in name and name.partition("_")[0] in SIDES and isinstance(record[name], dict):
            return dumps(record[name]).decode()
        return _text(record[name], nothing)
    return decoded_text(record, name, nothing) if "." in name else nothing


def _text(value: Any, nothing: str = "-") -> str:
    if value is None:
        return nothing
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        if text := value.get("left_out"):
            return f"(left out: {text})"
        return f"base64:{value.get('base64', '')}"
    if isinstance(value, list):
        return ", ".join(f"{name}={_text(each)}" for name, each in value)
    return str(value)
