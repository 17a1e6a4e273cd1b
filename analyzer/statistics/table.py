"""Lines of statistics as rows of a table: cells for people and for programs, order, widths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafkascope.analyzer.render import cells as render_cells
from kafkascope.analyzer.render import layout
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import Column, Kind, Line
from kafkascope.analyzer.text import columns_taken, cut, safe, wrapped
from kafkascope.times import MS, iso_ns

RIGHT: Final = frozenset({"count", "size", "duration", "share", "rate"})
DOWNWARDS: Final = frozenset({"count", "size", "duration", "share", "rate"})
INDENT: Final = "    "
# Width below which no text is cut.
MIN_TEXT: Final = 12
NO_PRIORITY: Final = layout.Priority()


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


@dataclass(slots=True, eq=False)
class _FilledColumn:
    name: str
    title: str
    kind: Kind
    cells: Sequence[str]
    whole: int = 0
    width: int = 0

    def __post_init__(self) -> None:
        self.whole = max(map(columns_taken, (self.title, *self.cells)))
        self.width = min(self.whole, LIMITS.cell_columns) if self.shrinks else self.whole

    @property
    def shrinks(self) -> bool:
        """Whether its cells may be cut: a number that is cut is another one."""
        return self.kind in ("text", "list")

    @property
    def least(self) -> int:
        """The width below which it is of no use."""
        return min(self.whole, MIN_TEXT) if self.shrinks else self.whole

    @property
    def empty(self) -> bool:
        return all(cell in ("", "-") for cell in self.cells)

    @property
    def uniform(self) -> bool:
        return len(self.cells) > 1 and len(set(self.cells)) == 1


def fitted(
    rows: Sequence[Sequence[str]],
    columns: Sequence[Column],
    width: int | None,
    priority: layout.Priority = NO_PRIORITY,
) -> Iterator[tuple[str, str]]:
    """Yield the lines of a table on a terminal as (line, style), without empty columns.

    Columns that do not fit are hidden, and named in a line at the end; a long sentence is below its
    row. Without a `width` all columns are shown, as wide as their cells.
    """
    subject, *others = (
        _FilledColumn(column.name, column.title, column.kind, [row[index] for row in rows])
        for index, column in enumerate(columns)
    )
    table = [subject, *(column for column in others if not column.empty)]
    if width is not None:
        yield from _narrowed(table, width, priority)
        return
    for column in table:
        column.width = column.whole
    yield from _lines(table)
    if empty := [column.title for column in others if column.empty]:
        yield f"empty columns: {', '.join(empty)}", "~"


def _narrowed(
    table: list[_FilledColumn], width: int, priority: layout.Priority
) -> Iterator[tuple[str, str]]:
    """Yield the lines of a table that is no wider than a terminal."""
    table, sentence = _with_sentence(table, priority.sentences)
    below: Sequence[str] = ()
    remarks: list[str] = []
    if sentence is not None and sentence.uniform:
        remarks, sentence = list(sentence.cells[:1]), None
    order = [
        table[index] for index in layout.ranked([column.name for column in table], priority.columns)
    ]
    leading = 1 + sum(column.name in priority.columns for column in table[1:])
    room = width
    if sentence is not None:
        sentence.width = sentence.whole
        if layout.taken(column.width for column in (*order[:leading], sentence)) <= width:
            room -= sentence.width + len(layout.GAP)
        else:
            below, sentence = sentence.cells, None
    if layout.taken(column.width for column in table) > room:
        uniform = [column for column in order[leading:] if column.uniform]
        remarks += [f"{column.title} {column.cells[0]}" for column in uniform]
        order = [column for column in order if column not in uniform]
    while leading > 1 and layout.taken(column.least for column in order[:leading]) > room:
        leading -= 1
    fit = [
        order[index] for index in layout.fitting([column.width for column in order], room, leading)
    ]
    _share_room(fit, room)
    hidden = [column.title for column in table if column in order and column not in fit]
    shown = [column for column in table if column in fit]
    for number, (line, style) in enumerate(_lines([*shown, sentence] if sentence else shown)):
        yield cut(line, width), style
        if number and below:
            for part in wrapped(below[number - 1], width, indent=INDENT):
                yield cut(part, width), ""
    if remarks:
        for part in wrapped(f"all rows: {', '.join(remarks)}", width, hanging=INDENT):
            yield cut(part, width), "~"
    if hidden:
        yield cut(layout.hidden_line(hidden, width), width), "~"


def _with_sentence(
    table: list[_FilledColumn], names: Sequence[str]
) -> tuple[list[_FilledColumn], _FilledColumn | None]:
    """Return a table without its sentences, and a column with the most useful one of each row."""
    by_name = {column.name: column for column in table[1:]}
    telling = [by_name[name] for name in names if name in by_name]
    if not telling:
        return table, None
    choices = zip(*(column.cells for column in telling), strict=True)
    cells = [next(filter(None, texts), "") for texts in choices]
    sentence = _FilledColumn(telling[0].name, telling[0].title, "text", cells)
    return [column for column in table if column not in telling], sentence


def _share_room(fit: Sequence[_FilledColumn], room: int) -> None:
    """Shrink the widest texts until all fit, the subject last, or widen those that are cut, the
    most important first."""
    subject, *others = fit
    while (spare := room - layout.taken(column.width for column in fit)) < 0:
        shrinking = [column for column in others if column.width > column.least]
        if not shrinking and subject.width <= subject.least:
            return
        max(shrinking or [subject], key=lambda column: column.width).width -= 1
    for column in fit:
        more = min(spare, column.whole - column.width)
        column.width += more
        spare -= more


def _lines(table: Sequence[_FilledColumn]) -> Iterator[tuple[str, str]]:
    widths = [column.width for column in table]
    rights = [column.kind in RIGHT for column in table]
    yield layout.laid_out([column.title for column in table], widths, rights), "header"
    for row in zip(*(column.cells for column in table), strict=True):
        yield layout.laid_out(row, widths, rights), ""


def cell(column: Column, line: Line, times: Times) -> str:
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
            items = list(map(str, value))
            return safe(("; " if any("," in item for item in items) else ", ").join(items))
        case _:
            return safe(str(value))


def json_name(column: Column) -> str:
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
        out[json_name(column)] = value
    return out
