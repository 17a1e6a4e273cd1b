"""What `ls` prints of an exchange, in each of its forms: bytes that several processes may make."""

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


Of: TypeAlias = "Callable[[Row, Exchange | None], bytes]"


class Printing(NamedTuple):
    """How exchanges are printed."""

    of: Of
    asked: Iterable[str] | None = ()
    """The fields that it takes, other than usual columns; None: one process has to print, as lines
    depend on others."""
    head: bytes = b""
    """The line before all others."""
    always: bool = False
    """Whether that is there without other lines, too."""
    tail: bytes = b""
    """The line behind all others."""
    batch: Callable[[Rows, list[Item]], bytes] | None = None
    """Returns the lines of exchanges as they were read, where that is faster."""


def objects(output: Output) -> Printing:
    """Print exchange/1, and objects of connects without a connection."""
    from kafkascope.analyzer.exchanges.row_json import json_of_row

    def of(row: Row, _: Exchange | None) -> bytes:
        if row.number:
            return output.element_of(json_of_row(row))
        from kafkascope.analyzer.reading.connects import to_json

        return output.element_of(to_json(row))

    return Printing(of, batch=lambda rows, items: output.elements_of(rows.json(items)))


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
        return output.lined(text, _style(row), safe=True)

    # On a terminal a number is padded, or cut.
    apart = width is None and not times.relative
    asked = [column.name for column in columns]
    head = output.lined(joined(titles), "header")
    batch = _batch(of, [column.of_row for column in columns])
    return Printing(of, asked if apart else None, head, tail=tail, batch=batch)


def _batch(of: Of, of_row: Iterable[bool]) -> Callable[[Rows, list[Item]], bytes] | None:
    """Return what prints exchanges as they were read, where rows have all that is shown. `of_row`:
    whether they have the value of each column."""
    if not all(of_row):
        return None
    return lambda rows, items: b"".join([of(rows.row_in_passing(item), None) for item in items])


def _priority(options: ReadOptions) -> Sequence[str]:
    """Return names of columns, the most important first: those that the filter or the order is
    about come before other usual ones."""
    if options.columns:
        return ()
    words = set(re.findall(r"[\w.]+", f"{options.filter_text} {options.sort or ''}"))
    return (*PRIORITY[:3], *filter(words.__contains__, PRIORITY), *PRIORITY)


_STYLES: Final = {"answered": "", "no-reply": "", "opaque": "~"}


def _style(row: Row) -> str:
    if row.errors:
        return "~" if row.expected else "!"  # ~ is dim
    return _STYLES.get(row.state, "?")


def plain(columns: Sequence[ListColumn], form: str, output: Output) -> Printing:
    """Print tsv, csv, and JSON of chosen columns: values without units."""
    names = [column.name for column in columns]
    of_row = [column.of_row for column in columns]
    if form in ("csv", "tsv"):

        def cells(row: Row, exchange: Exchange | None) -> bytes:
            return output.celled([raw_cell(column, row, exchange) for column in columns])

        head = output.celled(names)
        return Printing(cells, names, head, always=True, batch=_batch(cells, of_row))

    def element(row: Row, exchange: Exchange | None) -> bytes:
        shown = [json_value(column, row, exchange) for column in columns]
        return output.element_of(dict(zip(names, shown, strict=True)))

    return Printing(element, names, batch=_batch(element, of_row))


_NAMED: Final = {"/t": "\t", "/s": " "}
_OCCURRENCES: Final = {"f": slice(1), "l": slice(-1, None), "a": slice(None)}
_QUOTES: Final = {"n": "", "d": '"', "s": "'"}


def field_printer(names: Sequence[str], settings: Iterable[str]) -> Callable[[Output], Printing]:
    """Return what prints chosen fields as `-T fields -e ... -E ...` of tshark has them: one line
    for each exchange, fields between separators; `BadParameter` for a name that is no field."""
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
        _NAMED.get(chosen[name], chosen[name]) for name in ("separator", "aggregator")
    )
    quote, wanted = _QUOTES.get(chosen["quote"]), _OCCURRENCES.get(chosen["occurrence"])
    if quote is None or wanted is None:
        raise click.BadParameter(
            "write quote=d, s, or n, and occurrence=f, l, or a", param_hint="-E"
        )

    def cells(row: Row, exchange: Exchange | None) -> Iterator[str]:
        for kind, values, _ in getters:
            found = list(values(row, exchange))[wanted]
            # tshark prints the number of an API or error, not its name.
            number = kind in ("api", "error")
            texts = (str(value) if number else cell_text(kind, value) for value in found)
            yield f"{quote}{safe(aggregator.join(texts))}{quote}" if found else ""

    def printing(output: Output) -> Printing:
        def of(row: Row, exchange: Exchange | None) -> bytes:
            return output.lined(separator.join(cells(row, exchange)))

        header = chosen["header"] == "y"
        head = output.lined(separator.join(names)) if header else b""
        batch = _batch(of, [of_row for *_, of_row in getters])
        return Printing(of, names, head, always=header, batch=batch)

    return printing
