"""The columns of `ls`: their names, their cells, and how they share the width of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.fields import Field, Type, field_of, printed
from kafkascope.analyzer.filter.paths import Path
from kafkascope.analyzer.headings import heading
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.render import cells as render_cells
from kafkascope.analyzer.render.layout import fitting, laid_out, ranked, taken
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.text import safe
from kafkascope.times import MS

Cell: TypeAlias = "Callable[[Row, Exchange | None], str]"
CellValues: TypeAlias = "Callable[[Row, Exchange | None], tuple[Any, ...]]"

# Columns of a terminal on which the longest usual name, ConsumerGroupHeartbeat v1, leaves the
# result as much as it has on one of 140.
ROOMY: Final = 150
# Width that the column of what is left over gets before others are hidden.
MAX_REST: Final = 24

LARGEST_FIRST: Final = frozenset({"duration", "size"})
SORTED_DOWN: Final = frozenset({"records", "batches"})


class ListColumn(NamedTuple):
    """One column of a table of exchanges."""

    name: str
    title: str
    width: int
    """On a terminal; 0: what is left over."""
    right: bool
    cell: Cell
    values: CellValues
    """What it sorts by, and what programs get."""
    downwards: bool
    """Sorts the largest first by default."""
    of_row: bool = True
    """Whether the row has all that it shows."""


def columns_of(names: Sequence[str], times: Times, terminal: int | None = None) -> list[ListColumn]:
    """Return the columns of these names, or the usual ones; `FilterError` for a name that is no
    field. `terminal`: its width."""
    wide = {"a": 12, "u": 12, "ad": 23, "ud": 23, "e": 17}.get(times.how, 11)

    def api(row: Row, _: Exchange | None) -> str:
        return row.api if row.api_version is None else f"{row.api} v{row.api_version}"

    def latency(row: Row, _: Exchange | None) -> str:
        return render_cells.duration(row.latency_ns) + (" w" if row.wait_ns else "")

    usual = {
        "number": _default("number", "number", -5, lambda r, _: str(r.number or "-"), _numbers),
        "time": _default("time", "time", wide, lambda r, _: times.text(r.time_ns)),
        "client": _default("client", "client_id", 14, lambda r, _: r.client_id or r.client_address),
        "broker": _default("broker", "broker_address", 20, lambda r, _: r.broker_address),
        "api": _default(
            "api",
            "api",
            25 if (terminal or 0) >= ROOMY else 17,
            api,
            lambda r, _: (r.api, r.api_version),
        ),
        "request.bytes": _sized("request.bytes", "Req", lambda row: row.request_bytes),
        "response.bytes": _sized("response.bytes", "Resp", lambda row: row.response_bytes),
        "latency": _default("latency", "latency", -8, latency)._replace(downwards=True),
        "result": _default(
            "result", "result", 0, lambda r, _: result(r), lambda r, _: (result(r),)
        ),
    }
    short = {"no": "number", "no.": "number", "req": "request.bytes", "resp": "response.bytes"}
    if not names:
        return list(usual.values())
    chosen = (short.get(name.lower(), name.lower()) for name in names)
    found = [usual.get(key) or _field(name) for key, name in zip(chosen, names, strict=True)]
    if not found[-1].right:
        # The last one takes what is left of the width.
        found[-1] = found[-1]._replace(width=0)
    return found


@cache
def _resolve(name: str) -> tuple[Field, Path] | None:
    """As `bind.resolve`; the usual columns do without the language."""
    from kafkascope.analyzer.filter.bind import resolve

    return resolve(name)


def _unknown(name: str) -> FilterError:
    from kafkascope.analyzer.filter.bind import unknown_field

    return unknown_field(name, name, 0)


def _default(
    name: str, title: str, width: int, cell: Cell, values: CellValues | None = None
) -> ListColumn:
    """Return a column; one of a `width` below 0 has its cells at the right."""
    return ListColumn(
        name, heading(title), abs(width), width < 0, cell, values or _get(name), downwards=False
    )


def _numbers(row: Row, _: Exchange | None) -> tuple[Any, ...]:
    """Connects without a connection have no number."""
    return (row.number,) if row.number else ()


def _get(name: str) -> CellValues:
    field = field_of(name)
    values = printed(field, ())
    assert values is not None
    return values


def _sized(name: str, title: str, get: Callable[[Row], int | None]) -> ListColumn:
    def cell(row: Row, _: Exchange | None) -> str:
        return render_cells.size(get(row))

    return ListColumn(name, title, 7, True, cell, _get(name), True)


def _field(name: str) -> ListColumn:
    """A column of any field of the filter language."""
    found = _resolve(name)
    if found is None or found[0].name == "time.delta":
        raise _unknown(name)
    field = found[0]
    kind, values, of_row = raw_values(name)

    def cell(row: Row, exchange: Exchange | None) -> str:
        given = values(row, exchange)
        if kind == "duration" and given:
            return render_cells.duration(given[0])
        return render_cells.joined(kind, given)

    downwards = kind in LARGEST_FIRST or field.name in SORTED_DOWN
    right = kind in ("int", "size", "duration")
    return ListColumn(name, name, max(len(name), 12), right, cell, values, downwards, of_row)


def raw_values(name: str) -> tuple[Type, CellValues, bool]:
    """(type, values, whether the row has them) of a field for `-T fields`; `FilterError`."""
    found = _resolve(name)
    if found is None:
        raise _unknown(name)
    field, path = found
    if field.name == "time.delta":
        return field.type, lambda _, __: (), True
    values = printed(field, path)
    if values is None:
        reason = f'"{name}" is a filter field, not a column'
        if path and field.told_by == "schemas":
            column = name[name.lower().index("record.") + len("record.") :]
            reason += f": it is a column of records (kafkascope records --columns {column})"
        raise FilterError(reason, name, 0, len(name))
    return field.type, values, not path and field.read is None


def sort_key(column: ListColumn) -> Callable[[tuple[Row, Exchange | None]], tuple[Any, ...]]:
    """Rows without a value come last, whichever way the others go."""

    def key(pair: tuple[Row, Exchange | None]) -> tuple[Any, ...]:
        values = column.values(*pair)
        if not values or values[0] is None:
            return (1,)
        # Of many values the largest counts when the largest come first.
        given = max(values) if column.downwards else values[0]
        if isinstance(given, int | float):
            return (0, 0, -given if column.downwards else given)
        return (0, 1, str(given))

    return key


@dataclass(frozen=True, slots=True)
class FixedColumn:
    """A column of texts in rows that are printed while they are read."""

    name: str
    width: int
    right: bool = False

    @property
    def title(self) -> str:
        return heading(self.name)


S = TypeVar("S", ListColumn, FixedColumn)

PRIORITY: Final = (
    *("number", "api", "result", "client", "time", "latency"),
    *("request.bytes", "response.bytes", "broker"),
)
"""The usual columns, the most important first: which client sent it matters more than how long it
took."""


def fitted(columns: Sequence[S], width: int, priority: Sequence[str] = ()) -> list[S]:
    """Return the columns that a terminal has room for. `priority`: their names, the most important
    first; the others follow."""
    order = ranked([column.name for column in columns], priority)
    rest = min(MAX_REST, width // 4)
    shown = fitting([columns[index].width or rest for index in order], width)
    return [columns[index] for index in sorted(order[index] for index in shown)]


def line(columns: Sequence[S], cells: Sequence[str], width: int | None) -> str:
    """Return one line of a table that is as wide as a terminal, or of whole cells without a
    `width`."""
    rest = 0 if width is None else max(8, width - taken(column.width for column in columns))
    widths = [column.width or rest for column in columns]
    rights = [column.right for column in columns]
    return laid_out(map(safe, cells), widths, rights, whole=width is None)


def raw_cell(column: ListColumn, row: Row, exchange: Exchange | None) -> str:
    """The cell for programs: names instead of shortened ones, numbers without units."""
    if column.name in ("api", "result"):
        return column.cell(row, exchange)
    return render_cells.joined(*_typed(column, row, exchange), ";")


def _typed(column: ListColumn, row: Row, exchange: Exchange | None) -> tuple[Type, Sequence[Any]]:
    found, values = _resolve(column.name), column.values(row, exchange)
    return found[0].type if found else "string", values[:1] if column.name == "broker" else values


def json_value(column: ListColumn, row: Row, exchange: Exchange | None) -> Any:
    """The value of a column in JSON: numbers, durations in milliseconds, names, ISO times; several
    as a list."""
    if column.name in ("api", "result"):
        return column.cell(row, exchange)
    kind, values = _typed(column, row, exchange)
    if kind == "duration":
        out: list[Any] = [value / MS for value in values]
    elif kind in ("time", "api", "error"):
        out = [render_cells.plain(kind, value) for value in values]
    else:
        out = list(values)
    return out[0] if len(out) == 1 else out or None
