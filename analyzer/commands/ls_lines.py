"""What `ls` prints of an exchange, in each of its forms: bytes that several processes may make."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kafkascope.analyzer.render.layout import hidden_line
from kafkascope.analyzer.render.listing import (
    PRIORITY,
    ListColumn,
    fitted,
    json_value,
    line,
    raw_cell,
)
from kafkascope.analyzer.text import between_tabs

if TYPE_CHECKING:
    from kafkascope.analyzer.commands.output import Output
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.reading.options import ReadOptions
    from kafkascope.analyzer.reading.reading import Reading
    from kafkascope.analyzer.render.times import Times

Of: TypeAlias = "Callable[[Row, Exchange | None], bytes]"


class Printing(NamedTuple):
    """How exchanges are printed."""

    of: Of
    """Returns the line of an exchange."""
    asked: Iterable[str] | None = ()
    """The fields that it takes, other than usual columns; None: one process has to print, as lines
    depend on others."""
    head: bytes = b""
    """The line before all others."""
    always: bool = False
    """Whether that is there without other lines, too."""
    tail: bytes = b""
    """The line behind all others."""


def objects(output: Output, connect: Callable[[Row], object]) -> Printing:
    """Print exchange/1. `connect` returns the object of a connect without a connection."""
    from kafkascope.analyzer.exchanges.row_json import json_of_row

    def of(row: Row, _: Exchange | None) -> bytes:
        return output.element_of(json_of_row(row) if row.number else connect(row))

    return Printing(of)


def table(
    columns: Sequence[ListColumn],
    times: Times,
    output: Output,
    reading: Reading,
    options: ReadOptions,
) -> Printing:
    """Print cells for people: as wide as the terminal, with `--wide` as wide as they are, or
    between tabs."""
    width, tail = output.width, b""
    if width is not None and not options.wide:
        usual, columns = columns, fitted(columns, width, _priority(options))
        if hidden := [column.title for column in usual if column not in columns]:
            tail = output.lined(hidden_line(hidden, width), "~")
    titles = [column.title for column in columns]
    makers = [column.cell for column in columns]

    def joined(cells: Sequence[str]) -> str:
        if width is None:
            return between_tabs(cells)
        return line(columns, cells, None if options.wide else width)

    started = False

    def of(row: Row, exchange: Exchange | None) -> bytes:
        nonlocal started
        if not started:
            started = True
            times.saw(reading.first_ns)
        text = joined([cell(row, exchange) for cell in makers])
        return output.lined(text, _style(row))

    # On a terminal a number is padded, or cut.
    apart = width is None and not times.relative
    asked = [column.name for column in columns]
    head = output.lined(joined(titles), "header")
    return Printing(of, asked if apart else None, head, tail=tail)


def _priority(options: ReadOptions) -> Sequence[str]:
    """Return names of columns, the most important first: those that the filter or the order is
    about come before other usual ones."""
    if options.columns:
        return ()
    words = set(re.findall(r"[\w.]+", f"{options.filter_text} {options.sort or ''}"))
    return (*PRIORITY[:3], *filter(words.__contains__, PRIORITY), *PRIORITY)


def _style(row: Row) -> str:
    if row.errors:
        return "~" if row.expected else "!"  # ~ is dim
    return {"answered": "", "no-reply": "", "opaque": "~"}.get(row.state, "?")


def plain(columns: Sequence[ListColumn], form: str, output: Output) -> Printing:
    """Print tsv, csv, and JSON of chosen columns: values without units."""
    names = [column.name for column in columns]
    if form in ("csv", "tsv"):

        def cells(row: Row, exchange: Exchange | None) -> bytes:
            return output.celled([raw_cell(column, row, exchange) for column in columns])

        return Printing(cells, names, output.celled(names), always=True)

    def element(row: Row, exchange: Exchange | None) -> bytes:
        shown = [json_value(column, row, exchange) for column in columns]
        return output.element_of(dict(zip(names, shown, strict=True)))

    return Printing(element, names)
