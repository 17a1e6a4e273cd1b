"""Tables on stdout: fitted to a terminal, complete when piped; tsv, csv and JSON by option."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import click

from kafkascope.analyzer.commands.help import Function, setting
from kafkascope.analyzer.reading.options import FORMATS, Format
from kafkascope.analyzer.render.cells import csv_line
from kafkascope.analyzer.statistics.model import Column
from kafkascope.analyzer.statistics.table import NO_PRIORITY, fitted
from kafkascope.analyzer.terminal import json_out, out, row
from kafkascope.analyzer.text import safe

MIN_WIDTH: Final = 20


class TableFormat(NamedTuple):
    """How rows are printed."""

    name: Format
    fit: int | None
    """Columns of the terminal; None: never cut, never pad."""
    wide: bool = False
    """Whether a terminal gets all columns, too."""


def format_option(formats: Sequence[str], **settings: Any) -> Callable[[Function], Function]:
    """Declare `--format`; `settings` are those of `Option`."""
    text = f"Output format: {', '.join(formats)} (default: table)"
    kind = click.Choice(formats)
    return setting("--format form", "FORMAT", text, type=kind, show_default=False, **settings)


def json_option(**settings: Any) -> Callable[[Function], Function]:
    return setting("--json as_json", "", "Short for --format jsonl", **settings)


def wide_option(**settings: Any) -> Callable[[Function], Function]:
    return setting("--wide", "", "Show all columns, even beyond the terminal", **settings)


def table_options(function: Callable[..., int]) -> Callable[..., int]:
    """`--format` and `--json`, given to the command as `how`."""

    @format_option(FORMATS, default="table")
    @json_option()
    @wide_option()
    @functools.wraps(function)
    def command(*args: Any, form: Format, as_json: bool, wide: bool, **options: Any) -> int:
        how = TableFormat("jsonl" if as_json else form, terminal_width(), wide)
        return function(*args, how=how, **options)

    return command


def terminal_width() -> int | None:
    """Columns of the terminal that stdout is; None when it is none."""
    if not sys.stdout.isatty():
        return None
    return max(MIN_WIDTH, shutil.get_terminal_size().columns)


def print_table(header: Sequence[str], rows: Iterable[Sequence[Any]], how: TableFormat) -> None:
    """Print rows; a `table` fits a terminal, in a pipe tabs separate its cells."""
    if how.name in ("json", "jsonl"):
        from kafkascope.dissectors.codec.jsonform import dumps

        names = [name.replace(" ", "_") for name in header]
        objects = [dict(zip(names, each, strict=True)) for each in rows]
        if how.name == "json":
            json_out(dumps(objects))
        else:
            for value in objects:
                json_out(dumps(value))
    elif how.name == "csv":
        out(csv_line(header)[:-1])
        for each in rows:
            out(csv_line(each)[:-1])
    elif how.name == "table" and how.fit is not None:
        columns = [Column(name) for name in header]
        texts = [list(map(_text, each)) for each in rows]
        for line, _ in fitted(texts, columns, None if how.wide else how.fit, NO_PRIORITY):
            out(line)
    else:
        row(header if how.name == "tsv" else [Column(name).title for name in header])
        for each in rows:
            row(map(_text, each))


def _text(cell: Any) -> str:
    return "" if cell is None else safe(str(cell))
