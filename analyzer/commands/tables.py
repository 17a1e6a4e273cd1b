"""Tables on stdout: fitted to a terminal, complete when piped; tsv, csv and JSON by option."""

from __future__ import annotations

import csv
import functools
import io
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import click

from analyzer.text import columns_taken, cut, padded, safe

Format = Literal["table", "tsv", "csv", "json", "jsonl"]
FORMATS: Final = ("table", "tsv", "csv", "json", "jsonl")

MIN_WIDTH: Final = 20


@dataclass(frozen=True, slots=True)
class TableFormat:
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
        from dissectors.jsonform import dumps

        names = [name.replace(" ", "_") for name in header]
        objects = [dict(zip(names, row, strict=True)) for row in rows]
        if how.name == "json":
            click.echo(dumps(objects))
        else:
            for each in objects:
                click.echo(dumps(each))
    elif how.name == "csv":
        click.echo(csv_line(header), nl=False)
        for row in rows:
            click.echo(csv_line(row), nl=False)
    elif how.name == "table" and how.fit is not None:
        texts = [[_text(cell) for cell in row] for row in rows]
        widths = [max(map(columns_taken, column)) for column in zip(header, *texts, strict=True)]
        for cells in (list(header), *texts):
            whole = "  ".join(map(padded, cells, widths))
            click.echo(cut(whole.rstrip(), how.fit))
    else:
        for line in (header, *rows):
            click.echo("\t".join(_text(cell) for cell in line))


def _text(cell: Any) -> str:
    return "" if cell is None else safe(str(cell))


def csv_line(cells: Iterable[Any]) -> str:
    """One line of CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()
