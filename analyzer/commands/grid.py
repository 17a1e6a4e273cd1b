"""Lines of statistics on stdout: as a table for people, as tsv, csv or JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import click

from kafkascope.analyzer.commands.help import Function, setting
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.table import (
    DOWNWARDS,
    NO_PRIORITY,
    cell,
    fitted,
    json_line,
    json_name,
    raw,
    sorted_by,
)
from kafkascope.analyzer.text import wrapped

NO_LINES: Final = {
    "apis/1": "requests",
    "latency/1": "requests with responses",
    "topics/1": "topics",
    "partitions/1": "partitions",
    "stored-topics/1": "topics",
    "stored-partitions/1": "partitions",
    "connections/1": "connections",
    "client-connections/1": "connections",
    "sizes/1": "messages",
    "rates/1": "requests",
    "client/1": "clients",
    "client-api/1": "clients",
    "group/1": "consumer groups",
    "rebalance/1": "rebalances",
    "group-member/1": "group members",
    "delivery-partition/1": "commits or fetches of consumer groups",
    "delivery-event/1": "skipped records, redelivered records, or pauses",
    "delivery-plan/1": "partition assignments",
    "delivery-lag/1": "offsets to compute lag from",
    "node/1": "brokers",
    "coordinator/1": "coordinators",
    "leader/1": "partition leaders",
    "producer/1": "producers with IDs",
    "producer-partition/1": "producers with IDs",
    "transaction/1": "transactions",
    "journeys/1": "records that were produced and fetched",
    "known-schema/1": "record schemas",
    "map/1": "producers or consumers",
    "zk-session/1": "ZooKeeper sessions",
    "zk-election/1": "controller elections in ZooKeeper",
    "zk-node/1": "ZooKeeper nodes",
    "zk-change/1": "changes of ZooKeeper nodes",
    "zk-slow/1": "ZooKeeper requests",
    "zk-topic/1": "topics created or deleted in ZooKeeper",
}
"""Kind of a line -> what a capture without one lacks. `check` and `errors` say it
themselves."""


class CommandTable(NamedTuple):
    """A table of a command."""

    name: str
    schema: str
    """Names the kind of a line, in JSON."""
    columns: Sequence[Column]
    priority: Priority = NO_PRIORITY
    """Columns of a narrow terminal."""
    lines: Sequence[Line] = ()
    of: str = ""
    """What the lines belong to, where there are none: ` of group "billing"`."""
    legend: str = ""
    """Meaning of its headings, printed on a terminal if there are several tables."""
    as_json: Callable[[Line], Line] | None = None
    """Makes the object of a line with all columns, where that is not flat."""


def print_lines(table: CommandTable, output: Output, reading: Reading | None = None) -> None:
    """Print the first lines of a table, sorted, as the options of `output` say. JSON has all
    columns and the word `schema`. `reading`: reports an empty table at its end."""
    options, columns, priority = output.options, table.columns, table.priority
    chosen = chosen_columns(columns, options)
    found = ordered(list(table.lines), columns, options)[: options.top]
    if options.form in ("json", "jsonl"):
        as_json = None if options.columns else table.as_json
        whole = chosen if options.columns else columns
        for line in found:
            output.element(as_json(line) if as_json else json_line(whole, line, table.schema))
        output.end()
    elif options.form in ("csv", "tsv"):
        output.cells([json_name(column) for column in chosen])
        for line in found:
            output.cells([raw(column, line) for column in chosen])
    elif found:
        missing = {*priority.columns, *priority.sentences} - {column.name for column in columns}
        assert not missing, f"no columns {missing}"
        if options.columns:
            priority = Priority(options.columns, priority.sentences)
        width = None if options.wide else output.width
        times = reading.times() if reading is not None else Times(options.time_format)
        _print_table(found, chosen, times, output, width, priority)
    if not found and reading is not None and table.schema in NO_LINES:
        reading.lacks(NO_LINES[table.schema] + table.of)


def only_option(tables: Iterable[CommandTable]) -> Callable[[Function], Function]:
    """Declare `--only`, which names one of the tables."""
    names = [table.name for table in tables]
    text = f"Print one table: {', '.join(names)}"
    return setting("--only", "TABLE", text, type=click.Choice(names))


def one_table(only: str | None, usual: str, options: ReadOptions) -> str | None:
    """Return the table to print; None for all: not where a program reads one of one shape, or
    columns or an order of one are wanted."""
    alone = options.form in ("csv", "tsv", "json") or options.columns or options.sort
    return only or (usual if alone else None)


def print_tables(
    tables: Iterable[CommandTable],
    only: str | None,
    output: Output,
    reading: Reading,
    *,
    begun: bool,
) -> None:
    """Print the table that is called `only`, or all that have lines, with blank lines between them
    for people. `begun`: something stands before the first one."""
    people = output.options.form == "table"
    for table in tables:
        if only != table.name and (only is not None or not table.lines):
            continue
        if begun and only is None and people:
            output.line("")
        begun = True
        print_lines(table, output, reading)
        if table.legend and table.lines and people and output.width is not None:
            for part in wrapped(table.legend, output.width):
                output.line(part, "~")


def chosen_columns(columns: Sequence[Column], options: ReadOptions) -> list[Column]:
    """The columns of `--columns`, or the usual ones; wide ones only in csv, tsv and JSON, and
    with `--wide`."""
    if not options.columns:
        people = options.form == "table" and not options.wide
        return [column for column in columns if not (people and column.wide)]
    return [_named(columns, name, "--columns") for name in options.columns]


def _named(columns: Sequence[Column], name: str, option: str) -> Column:
    for column in columns:
        if name.lower() in (column.name, json_name(column), column.title.lower()):
            return column
    from difflib import get_close_matches

    names = [column.name for column in columns]
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise click.BadParameter(f'no column "{name}"; {hint}', param_hint=option)


def ordered(lines: list[Line], columns: Sequence[Column], options: ReadOptions) -> list[Line]:
    """Sort the lines by `--sort`; those without a value are last."""
    if options.sort is None:
        return lines
    down = {"-": True, "+": False}.get(options.sort[:1])
    column = _named(columns, options.sort if down is None else options.sort[1:], "--sort")
    if down is None:
        down = column.kind in DOWNWARDS
    return sorted_by(lines, column, down=down)


def _print_table(
    lines: list[Line],
    columns: list[Column],
    times: Times,
    output: Output,
    width: int | None,
    priority: Priority,
) -> None:
    rows = [[cell(column, line, times) for column in columns] for line in lines]
    if output.width is None:
        output.cells([column.title for column in columns], "header")
        for row in rows:
            output.cells(row)
        return
    for text, style in fitted(rows, columns, width, priority):
        output.line(text, style)
