"""Formats exchanges as lines of `ls`, in each of its output formats. These functions return bytes
and print nothing, because worker processes also call them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import click

from kafkascope.analyzer.commands.help import refusing
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.render.cells import plain as cell_text
from kafkascope.analyzer.render.layout import hidden_line
from kafkascope.analyzer.render.listing import (
    PRIORITY,
    ListColumn,
    fitted,
    json_value,
    line,
    raw_cell,
    raw_values,
)
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.text import between_tabs, safe

if TYPE_CHECKING:
    from kafkascope.analyzer.commands.output import Output
    from kafkascope.analyzer.exchanges.pairs import Item, Rows
    from kafkascope.analyzer.reading.options import ReadOptions
    from kafkascope.analyzer.reading.reading import Reading


LineOf: TypeAlias = "Callable[[Row, Exchange | None], bytes]"
BatchLines: TypeAlias = "Callable[[Rows, list[Item]], bytes]"


class LineFormat(NamedTuple):
    """How exchanges become lines."""

    line_of: LineOf
    fields: Iterable[str] | None = ()
    """Fields of the lines besides the default columns; None: a line depends on earlier lines, so
    one process has to format all."""
    head: bytes = b""
    """The first line."""
    head_alone: bool = False
    """Whether the first line is written even without exchanges."""
    tail: bytes = b""
    """The last line."""
    batch: BatchLines | None = None
    """Returns the lines of exchanges in batches as read, without an `Exchange` for each."""


def objects(output: Output) -> LineFormat:
    """Format exchange/1, and connect/1 for failed connection attempts."""
    from kafkascope.analyzer.exchanges.row_json import json_of_row

    def line_of(row: Row, _: Exchange | None) -> bytes:
        if row.number:
            return output.element_bytes(json_of_row(row))
        from kafkascope.analyzer.reading.connects import to_json

        return output.element_bytes(to_json(row))

    return LineFormat(line_of, batch=lambda rows, items: output.elements_bytes(rows.json(items)))


def table(
    columns: Sequence[ListColumn],
    times: Times,
    output: Output,
    reading: Reading,
    options: ReadOptions,
) -> LineFormat:
    """Format cells for people: fitted to a terminal, in full with `--wide`; separated by tabs in a
    pipe."""
    width, tail = output.width, b""
    if width is not None and not options.wide:
        every, columns = columns, fitted(columns, width, _priority(options))
        if hidden := [column.title for column in every if column not in columns]:
            tail = output.line_bytes(hidden_line(hidden, width), "~")
    titles = [column.title for column in columns]
    cells = [column.cell for column in columns]

    def joined(texts: Sequence[str]) -> str:
        if width is None:
            return between_tabs(texts)
        return line(columns, texts, None if options.wide else width)

    started = False

    def line_of(row: Row, exchange: Exchange | None) -> bytes:
        nonlocal started
        if not started:
            started = True
            times.saw(reading.first_ns)
        text = joined([cell(row, exchange) for cell in cells])
        return output.line_bytes(text, _style(row), safe=True)

    # Worker processes number exchanges provisionally, and their parent replaces the numbers. It
    # cannot do that in cells that were padded or cut to a terminal's width.
    independent = width is None and not times.relative
    fields = [column.name for column in columns]
    head = output.line_bytes(joined(titles), "header")
    batch = _batch(line_of, [column.of_row for column in columns])
    return LineFormat(line_of, fields if independent else None, head, tail=tail, batch=batch)


def _batch(line_of: LineOf, of_row: Iterable[bool]) -> BatchLines | None:
    """Return a function that formats batches of exchanges; None if a column needs messages.
    `of_row`: for each column, whether rows have its value."""
    if not all(of_row):
        return None

    def batch(rows: Rows, items: list[Item]) -> bytes:
        return b"".join([line_of(rows.row_in_passing(item), None) for item in items])

    return batch


def _priority(options: ReadOptions) -> Sequence[str]:
    """Return names of columns, the most important first. Columns in the filter or `--sort` precede
    the other default columns."""
    if options.columns:
        return ()
    words = set(re.findall(r"[\w.]+", f"{options.filter_text} {options.sort or ''}"))
    return (*PRIORITY[:3], *filter(words.__contains__, PRIORITY), *PRIORITY)


_STYLES: Final = {"answered": "", "no-reply": "", "opaque": "~"}


def _style(row: Row) -> str:
    if row.errors:
        return "~" if row.expected else "!"  # ~ is dim
    return _STYLES.get(row.state, "?")


def plain(columns: Sequence[ListColumn], form: str, output: Output) -> LineFormat:
    """Format values without units: tsv, csv, and JSON of chosen columns."""
    names = [column.name for column in columns]
    of_row = [column.of_row for column in columns]
    if form in ("csv", "tsv"):

        def cells(row: Row, exchange: Exchange | None) -> bytes:
            return output.cell_bytes([raw_cell(column, row, exchange) for column in columns])

        head = output.cell_bytes(names)
        return LineFormat(cells, names, head, head_alone=True, batch=_batch(cells, of_row))

    def element(row: Row, exchange: Exchange | None) -> bytes:
        shown = [json_value(column, row, exchange) for column in columns]
        return output.element_bytes(dict(zip(names, shown, strict=True)))

    return LineFormat(element, names, batch=_batch(element, of_row))


_SEPARATORS: Final = {"/t": "\t", "/s": " "}
_OCCURRENCES: Final = {"f": slice(1), "l": slice(-1, None), "a": slice(None)}
_QUOTES: Final = {"n": "", "d": '"', "s": "'"}


def tshark_fields(names: Sequence[str], settings: Iterable[str]) -> Callable[[Output], LineFormat]:
    """Return the format of tshark's `-T fields -e ... -E ...`: one line per exchange, fields
    between separators. Raises `BadParameter` for unknown fields and settings."""
    with refusing(FilterError, option="-e"):
        getters = [raw_values(name) for name in names]
    chosen = {"header": "n", "separator": "/t", "occurrence": "a", "aggregator": ",", "quote": "n"}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in chosen:
            known = ", ".join(chosen)
            raise click.BadParameter(f'"{setting}": write NAME=VALUE with {known}', param_hint="-E")
        chosen[name] = value
    separator, aggregator = (
        _SEPARATORS.get(chosen[name], chosen[name]) for name in ("separator", "aggregator")
    )
    quote, wanted = _QUOTES.get(chosen["quote"]), _OCCURRENCES.get(chosen["occurrence"])
    if quote is None or wanted is None:
        raise click.BadParameter(
            "write quote=d, s, or n, and occurrence=f, l, or a", param_hint="-E"
        )

    def cells(row: Row, exchange: Exchange | None) -> Iterator[str]:
        for kind, values, _ in getters:
            occurrences = list(values(row, exchange))[wanted]
            # tshark prints the number of an API or error, not its name.
            number = kind in ("api", "error")
            texts = (str(value) if number else cell_text(kind, value) for value in occurrences)
            yield f"{quote}{safe(aggregator.join(texts))}{quote}" if occurrences else ""

    def line_format(output: Output) -> LineFormat:
        def line_of(row: Row, exchange: Exchange | None) -> bytes:
            return output.line_bytes(separator.join(cells(row, exchange)))

        header = chosen["header"] == "y"
        head = output.line_bytes(separator.join(names)) if header else b""
        batch = _batch(line_of, [of_row for *_, of_row in getters])
        return LineFormat(line_of, names, head, head_alone=header, batch=batch)

    return line_format
