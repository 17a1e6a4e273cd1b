"""Lines of statistics on stdout: as a table for people, as tsv, csv or JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.table import (
    DOWNWARDS,
    NO_PRIORITY,
    cell,
    fitted,
    json_line,
    raw,
    sorted_by,
    told_name,
)


def print_lines(
    lines: Iterable[Line],
    columns: Sequence[Column],
    schema: str,
    options: ReadOptions,
    output: Output,
    times: Times | None = None,
    priority: Priority = NO_PRIORITY,
) -> int:
    """Print lines as `options` says, sorted, the first ones; the number of those printed. JSON has
    all columns and the word `schema`. `priority`: what a narrow terminal shows."""
    chosen = chosen_columns(columns, options)
    found = ordered(list(lines), columns, options)[: options.top]
    if options.form in ("json", "jsonl"):
        for line in found:
            output.element(json_line(chosen if options.columns else columns, line, schema))
        output.end()
    elif options.form in ("csv", "tsv"):
        output.cells([told_name(column) for column in chosen])
        for line in found:
            output.cells([raw(column, line) for column in chosen])
    elif found:
        missing = {*priority.columns, *priority.sentences} - {column.name for column in columns}
        assert not missing, f"no columns {missing}"
        if options.columns:
            priority = Priority(options.columns, priority.sentences)
        width = None if options.wide else output.width
        _print_table(found, chosen, times or Times(options.time_format), output, width, priority)
    return len(found)


def chosen_columns(columns: Sequence[Column], options: ReadOptions) -> list[Column]:
    """The columns of `--columns`, or the usual ones; wide ones only in csv, tsv and JSON, and
    with `--wide`."""
    if not options.columns:
        people = options.form == "table" and not options.wide
        return [column for column in columns if not (people and column.wide)]
    return [_named(columns, name, "--columns") for name in options.columns]


def _named(columns: Sequence[Column], name: str, option: str) -> Column:
    for column in columns:
        if name.lower() in (column.name, told_name(column), column.title.lower()):
            return column
    from difflib import get_close_matches

    names = [column.name for column in columns]
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise click.BadParameter(f'no column "{name}"; {hint}', param_hint=option)


def ordered(lines: list[Line], columns: Sequence[Column], options: ReadOptions) -> list[Line]:
    """The lines as `--sort` wants them; those without a value are last."""
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
