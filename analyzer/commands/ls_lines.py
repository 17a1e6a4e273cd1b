"""What `ls` prints of an exchange, in each of its forms: bytes that several processes may make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kafkascope.analyzer.render.listing import ListColumn, fitted, json_value, line, raw_cell
from kafkascope.analyzer.text import between_tabs

if TYPE_CHECKING:
    from kafkascope.analyzer.commands.output import Output
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
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


def objects(output: Output, connect: Callable[[Row], object]) -> Printing:
    """Print exchange/1. `connect` returns the object of a connect without a connection."""
    from kafkascope.analyzer.exchanges.row_json import json_of_row

    def of(row: Row, _: Exchange | None) -> bytes:
        return output.element_of(json_of_row(row) if row.number else connect(row))

    return Printing(of)


def table(
    columns: Sequence[ListColumn], times: Times, output: Output, reading: Reading
) -> Printing:
    """Print cells for people: as wide as the terminal, or between tabs."""
    width = output.width
    if width is not None:
        columns = fitted(columns, width)
    titles = [column.title for column in columns]
    makers = [column.cell for column in columns]
    head = line(columns, titles, width) if width else "\t".join(titles)
    started = False

    def of(row: Row, exchange: Exchange | None) -> bytes:
        nonlocal started
        if not started:
            started = True
            times.saw(reading.first_ns)
        cells = [cell(row, exchange) for cell in makers]
        text = line(columns, cells, width) if width else between_tabs(cells)
        return output.lined(text, _style(row.state, bool(row.errors)))

    # On a terminal a number is padded, or cut.
    apart = width is None and not times.relative
    asked = [column.name for column in columns]
    return Printing(of, asked if apart else None, output.lined(head, "header"))


def _style(state: str, failed: bool) -> str:
    if failed:
        return "!"
    return {"answered": "", "no-reply": "", "opaque": "~"}.get(state, "?")


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
