"""Tables on stdout: fitted to a terminal, complete when piped; tsv, csv and JSON by option."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import click

from kafkascope.analyzer.reading.options import FORMATS, Format
from kafkascope.analyzer.render.layout import aligned
from kafkascope.analyzer.render.spreadsheet import csv_line
from kafkascope.analyzer.terminal import json_out, out, row
from kafkascope.analyzer.text import safe

MIN_WIDTH: Final = 20


class TableFormat(NamedTuple):
    """How rows are printed."""

    name: Format
    fit: int | None
    """Columns of the terminal; None: never cut, never pad."""


def table_options(function: Callable[..., int]) -> Callable[..., int]:
    """`--format` and `--json`, given to the command as `how`."""

    @click.option("--format", "form", type=click.Choice(FORMATS), default="table", help="Output.")
    @click.option("--json", "as_json", is_flag=True, help="Short for --format jsonl.")
    @functools.wraps(function)
    def command(*args: Any, form: Format, as_json: bool, **options: Any) -> int:
        how = TableFormat("jsonl" if as_json else form, terminal_width())
        return function(*args, how=how, **options)

    return command


def terminal_width() -> int | None:
    """Columns of the terminal that stdout is; None when it is none."""
    if not sys.stdout.isatty():
        return None
    return max(MIN_WIDTH, shutil.get_terminal_size().columns)


def print_table(header: Sequence[str], rows: Iterable[Sequence[Any]], how: TableFormat) -> None:
    """Print rows; `table` on a terminal is cut to its width, in a pipe it is separated by tabs."""
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
        for line in aligned([header, *(list(map(_text, each)) for each in rows)], how.fit):
            out(line)
    else:
        row(header)
        for each in rows:
            row(map(_text, each))


def _text(cell: Any) -> str:
    return "" if cell is None else safe(str(cell))
