"""Lines of statistics as rows of a table: cells for people and for programs, order, widths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafkascope.analyzer.render import cells as render_cells
from kafkascope.analyzer.render.layout import GAP, laid_out, widths_of
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.text import cut, safe, wrapped
from kafkascope.analyzer.times import iso_ns

RIGHT: Final = frozenset({"count", "size", "duration", "share", "rate"})
DOWNWARDS: Final = frozenset({"count", "size", "duration", "share", "rate"})
MS: Final = 1_000_000
INDENT: Final = "    "
LEAST_LAST: Final = 24
"""Columns that a sentence at the end of a row needs at least to stay there."""
LIST_WIDTH: Final = 40
"""Of a list on a terminal; the last column takes what is left."""


def sorted_by(lines: list[Line], column: Column, *, down: bool) -> list[Line]:
    """Return the lines by the values of a column, equal ones in the order given; those without one
    are last."""
    having = [line for line in lines if _value(column, line) is not None]
    having.sort(key=lambda line: _order(_value(column, line)), reverse=down)
    return having + [line for line in lines if _value(column, line) is None]


def _value(column: Column, line: Line) -> Any:
    value = line.get(column.by or column.name)
    return None if value in ("", []) else value


def _order(value: Any) -> tuple[int, Any]:
    if isinstance(value, int | float):
        return 0, value
    return 1, " ".join(map(str, value)) if isinstance(value, list) else str(value)


def fitted(
    titles: list[str], cells: list[list[str]], columns: list[Column], width: int
) -> Iterator[tuple[str, str]]:
    """Yield the lines of a table in so many columns of a terminal as (line, style): without the
    columns that are empty, and with sentences below their rows where no room is left beside
    them."""
    kept = [
        index
        for index in range(len(columns))
        if not index or any(row[index] not in ("", "-") for row in cells)
    ]
    columns = [columns[index] for index in kept]
    table = [[row[index] for index in kept] for row in (titles, *cells)]
    widths, rights = widths_of(table), [column.kind in RIGHT for column in columns]
    last = len(columns) - 1
    for index, column in enumerate(columns):
        if index < last and column.kind in ("list", "text"):
            widths[index] = min(widths[index], LIST_WIDTH)
    room = width - sum(widths[:last]) - len(GAP) * last
    below = columns[last].kind in ("list", "text") and widths[last] > max(room, LEAST_LAST)
    for number, row in enumerate(table):
        shown = row[:last] if below else row
        style = "" if number else "header"
        yield cut(laid_out(shown, widths, rights), width), style
        if below and number and row[last]:
            for part in wrapped(row[last], width, indent=INDENT):
                yield cut(part, width), style


def cell(column: Column, line: Line, times: Times) -> str:
    """Return a value as text for people."""
    value = line.get(column.name)
    if value is None:
        return "-" if column.kind in RIGHT else ""
    if isinstance(value, str):
        return safe(value)
    match column.kind:
        case "size":
            return render_cells.size(value)
        case "duration":
            return render_cells.duration(value)
        case "time":
            return times.text(value)
        case "share":
            return f"{100 * value:.0f} %"
        case "rate":
            return f"{value:.1f}" if value < 100 else f"{value:.0f}"
        case "flag":
            return "yes" if value else "no"
        case "list":
            return safe(", ".join(map(str, value)))
        case _:
            return safe(str(value))


def told_name(column: Column) -> str:
    """Return what programs call a column: durations say their unit."""
    return f"{column.name}_ms" if column.kind == "duration" else column.name


def raw(column: Column, line: Line) -> str:
    """Return a value as text for programs: durations in milliseconds, times as ISO-8601."""
    value = line.get(column.name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    match column.kind:
        case "duration":
            return render_cells.milliseconds(value)
        case "time":
            return iso_ns(value)
        case "flag":
            return "true" if value else "false"
        case "list":
            return ",".join(map(str, value))
        case "share" | "rate":
            return f"{value:.6g}"
        case _:
            return str(value)


def json_line(columns: Sequence[Column], line: Line, schema: str) -> Line:
    """Return a line as a JSON object; durations are `NAME_ms`."""
    out: Line = {"schema": schema}
    for column in columns:
        value = line.get(column.name)
        if column.kind == "duration":
            value = value / MS if isinstance(value, int) else value
        elif column.kind == "time" and isinstance(value, int):
            value = iso_ns(value)
        elif column.kind == "flag" and value is not None:
            value = bool(value)
        out[told_name(column)] = value
    return out
