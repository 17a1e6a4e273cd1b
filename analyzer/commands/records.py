"""`kafkascope records`: the records that were produced and fetched, one a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.atrest import kafka_files, print_records
from kafkascope.analyzer.commands.help import command, option
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.render.layout import hidden_line
from kafkascope.analyzer.render.listing import FixedColumn, fitted, line
from kafkascope.dissectors.codec.jsonform import dumps

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import Problem
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.reading.reading import Reading
    from kafkascope.analyzer.topics import TopicNames


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
"""The columns, the most important first."""
PARTS: Final = ("key", "value", "headers")
SIDES: Final = ("key", "value")


@command()
@input_options
@option("--key", "parts", flag_value="key", multiple=True, help="Show keys")
@option("--value", "parts", flag_value="value", multiple=True, help="Show values")
@option("--headers", "parts", flag_value="headers", multiple=True, help="Show headers")
def records(options: ReadOptions, parts: tuple[str, ...]) -> int:
    """List records with their keys and values.

    Reads Produce requests, Fetch responses, and log segments. Without --key, --value and --headers
    keys and values are shown; --json has everything. -Y selects records by their own fields
    (record.*, schema.*, topic, partition, offset) and by those of their exchange.

    \b
      kafkascope records capture.pcapng -Y 'topic == orders' --json
      kafkascope records capture.pcapng -Y 'value.amount > 100' --schemas schemas/
    """
    if files := kafka_files(options.inputs, whole=True):
        with Output(options) as output:
            printer = _printer(options, parts or ("key", "value"), output)
            code = print_records(files, options, printer)
            output.end()
            _finish(printer)
            return code
    from kafkascope.analyzer.reading.reading import INTERRUPTED, Reading, problems_said

    problems: list[Problem] = []
    shown = 0
    with Reading(options, records=True) as reading, Output(options, live=reading.live) as output:
        printer, empty = _printer(options, parts or ("key", "value"), output), True
        try:
            for pieces in _read(reading, problems, whole=options.top is None):
                for piece in pieces:
                    empty = False
                    if options.top is None:
                        printer(piece)
                        continue
                    lines = piece.splitlines(keepends=True)[: options.top - shown]
                    shown += len(lines)
                    printer(b"".join(lines))
                if options.top is not None and shown >= options.top:
                    break
        except KeyboardInterrupt:
            reading.code = INTERRUPTED
        output.end()
        _finish(printer)
        problems_said(problems, options)
        if empty:
            reading.lacks("records")
        return reading.finish()


def _read(reading: Reading, problems: list[Problem], *, whole: bool) -> Iterator[Iterable[bytes]]:
    """Yield the records as lines of JSON, those of one exchange or of many. `whole`: all of them
    are wanted, which several processes may read."""
    from kafkascope.analyzer.exchanges.records import record_lines

    payloads = reading.payloads

    def lines(exchange: Exchange, names: TopicNames, found: list[Problem]) -> Iterator[bytes]:
        return record_lines(exchange, names, found, payloads, reading.chosen)

    if whole:
        from kafkascope.analyzer.pool.messages import joined

        blocks = reading.divided(lambda _, *how: joined(lines(*how)), None)
        for block in blocks:
            problems += block.problems
            yield [block.data] if block.data else []
    for _, exchange in reading.rest():
        yield lines(exchange, reading.capture.context.names, problems)


def _print_elements(output: Output, lines: bytes) -> None:
    for each in lines.splitlines():
        output.element(each)


def _print_columns(output: Output, names: Sequence[str], lines: bytes) -> None:
    from kafkascope.analyzer.exchanges.record_columns import json_value
    from kafkascope.dissectors.codec.jsonform import loads

    for each in map(loads, lines.splitlines()):
        output.element({name: json_value(each, name) for name in names})


def _printer(options: ReadOptions, parts: tuple[str, ...], output: Output) -> Any:
    if options.form == "jsonl" and not options.columns:
        return output.json_lines
    if options.form == "json" and not options.columns:
        return partial(_print_elements, output)
    from kafkascope.analyzer.exchanges.record_columns import checked

    wanted = options.columns or [
        column.name for column in COLUMNS if column.name not in PARTS or column.name in parts
    ]
    try:
        checked(wanted)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if options.form in ("json", "jsonl"):
        return partial(_print_columns, output, wanted)
    return _Lines(options, list(wanted), output)


def _finish(printer: Any) -> None:
    """Print what ends a table."""
    if isinstance(printer, _Lines):
        printer.finish()


class _Lines:
    """Tables, tsv and csv."""

    def __init__(self, options: ReadOptions, names: list[str], output: Output) -> None:
        self._names = names
        self._output = output
        self._form = options.form
        self._started = False
        usual = {column.name: column for column in COLUMNS}
        columns = [usual.get(name) or FixedColumn(name, 12) for name in names]
        if not any(column.name == "value" for column in columns):
            columns[-1] = replace(columns[-1], width=0)
        self._whole, self._hidden = options.wide, list[str]()
        if options.form == "table" and output.width is not None and not options.wide:
            fit = fitted(columns, output.width, () if options.columns else PRIORITY)
            self._hidden = [column.title for column in columns if column not in fit]
            self._names, columns = [column.name for column in fit], fit
        self._columns = columns

    def __call__(self, lines: bytes) -> None:
        from kafkascope.dissectors.codec.jsonform import loads

        if not self._started:
            self._started = True
            self._line([column.title for column in self._columns], header=True)
        nothing = "" if self._form == "csv" else "-"
        for each in lines.splitlines():
            record = loads(each)
            self._line([_cell(record, name, nothing) for name in self._names])

    def _line(self, cells: list[str], *, header: bool = False) -> None:
        if self._form in ("csv", "tsv") or self._output.width is None:
            self._output.cells(self._names if header and self._form in ("csv", "tsv") else cells)
        else:
            text = line(self._columns, cells, None if self._whole else self._output.width)
            self._output.line(text, "header" if header else "")

    def finish(self) -> None:
        """Say which columns are hidden."""
        if self._started and self._hidden and self._output.width is not None:
            self._output.line(hidden_line(self._hidden, self._output.width), "~")


def _cell(record: dict[str, Any], name: str, nothing: str) -> str:
    """Return the cell of a column. Keys and values are shown decoded where they can be."""
    from kafkascope.analyzer.exchanges.record_columns import decoded_text
    from kafkascope.analyzer.payloads.paths import cell

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
