"""Packing of exchanges and their rows into the columns of a `Session`, many at once: values from
headers, and values from bodies.

Column by column, so that each is one list comprehension: three times as fast as row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.exchanges.column import NONE, Named, columns_of
from kafkascope.analyzer.exchanges.columns import grown
from kafkascope.analyzer.exchanges.rows import NO_ID, Row
from kafkascope.analyzer.model import STATES
from kafkascope.dissectors.codec.source import compile_function

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.column import Part
    from kafkascope.analyzer.model import Exchange, Frame
    from kafkascope.analyzer.session.session import Session

STATE_NUMBERS: Final = {state: number for number, state in enumerate(STATES)}


def stored(part: Part) -> tuple[Named, ...]:
    """Return the columns of rows that sessions store, for one source."""
    return tuple(each for each in columns_of(Row) if each.column.told_by == part)


def _tabled(part: Part) -> tuple[str, ...]:
    names = (each for each in stored(part) if each.name != "state")
    return tuple(each.name for each in names if not each.column.kind.numbered)


HEAD_TABLES: Final = (*_tabled("head"), "mechanism")
BODY_TABLES: Final = (*_tabled("body"), "error_tops")
TABLES: Final = (*HEAD_TABLES, *BODY_TABLES)
"""Columns whose numbers are indexes into a table of the same name. `error_tops`: the codes of the
response itself."""
HEAD_COLUMNS: Final = (
    *(each.name for each in stored("head")),
    *("connection", "client_side", "mechanism", "request_packet", "response_packet", "place"),
)
"""Columns filled from headers and times: one number per row. `connection` is an index in
`connections`, `client_side` says which of its ends is the client, `place` is an address in the
frames."""
BODY_COLUMNS: Final = (*(each.name for each in stored("body")), "error_tops")
"""Columns filled from bodies: one number for each row whose bodies were read, from the first on."""
COLUMNS: Final = (*HEAD_COLUMNS, *BODY_COLUMNS)
"""All columns with one number per row."""


def _append(session: Session, name: str, values: Iterable[int]) -> None:
    columns = session.columns
    columns[name] = grown(columns[name], list(values))


def _or_none(values: Iterable[int | None]) -> list[int]:
    return [NONE if value is None else value for value in values]


def pack_heads(session: Session, told: Sequence[Exchange], rows: Sequence[Row] = ()) -> None:
    """Append the values that need no bodies; taken from `rows` where these exist already."""
    s, tables = session, session.tables
    asked = [None if (side := e.request) is None else side.frame for e in told]
    answers = [None if (back := e.response) is None else back.frame for e in told]
    _append(s, "number", [e.number for e in told])
    if rows:
        _append(s, "time_ns", [row.time_ns for row in rows])
        _append(s, "request_bytes", _or_none([row.request_bytes for row in rows]))
        _append(s, "response_bytes", _or_none([row.response_bytes for row in rows]))
        _append(s, "latency_ns", _or_none([row.latency_ns for row in rows]))
    else:
        pairs = list(zip(told, asked, answers, strict=True))
        _append(s, "time_ns", [e.time_ns if f is None else f.first_ns for e, f, _ in pairs])
        _append(s, "request_bytes", [NONE if f is None else f.size + 4 for f in asked])
        _append(s, "response_bytes", [NONE if f is None else f.size + 4 for f in answers])
        _append(
            s,
            "latency_ns",
            [NONE if a is None or b is None else b.last_ns - a.first_ns for _, a, b in pairs],
        )
    _append(s, "state", [STATE_NUMBERS[e.state] for e in told])
    _append(s, "connection", map(session.connection_number, [e.connection for e in told]))
    _append(s, "client_side", [e.client != e.connection.a for e in told])
    _append(s, "api_key", _or_none([e.api_key for e in told]))
    _append(s, "api_version", _or_none([e.api_version for e in told]))
    ids = [e.correlation_id for e in told]
    _append(s, "correlation_id", [NO_ID if each is None else each for each in ids])
    for name in HEAD_TABLES:
        _append(s, name, tables[name].numbers([getattr(e, name) for e in told]))
    _append(s, "request_packet", [NONE if f is None else f.parts[0].packet for f in asked])
    _append(s, "response_packet", [NONE if f is None else f.parts[0].packet for f in answers])
    frames = zip(asked, answers, strict=True)
    if any(e.connection.tls is not None for e in told):
        frames = zip(*(_readable_again(s, told, side) for side in (asked, answers)), strict=True)
    _append(s, "place", s.stored_frames.extend(frames))
    s.id_bytes += bytes.fromhex("".join([e.id for e in told]))


def _readable_again(
    session: Session, told: Sequence[Exchange], frames: Sequence[Frame | None]
) -> list[Frame | None]:
    """Keep the bytes of those frames that came out of TLS; return all with their places."""
    return [
        session.stored_frames.decrypted(frame)
        if frame is not None and exchange.connection.decrypted
        else frame
        for exchange, frame in zip(told, frames, strict=True)
    ]


def pack_bodies(session: Session, rows: Sequence[Row]) -> None:
    """Append the values from bodies."""
    for name, values in _body_packer()(rows).items():
        table = session.tables.get(name)
        _append(session, name, values if table is None else table.numbers(values))


@cache
def _body_packer() -> Callable[[Sequence[Row]], dict[str, list[Any]]]:
    """Return the function from rows to the values of each body column, as straight-line code."""
    lines = []
    for name, column in stored("body"):
        value = column.kind.pack.format(*[f"row.{name}"] * 2)
        if column.kind.numbered and column.kind.empty is None:
            value = f"{column.absent} if row.{name} is None else {value}"
        lines.append(f"        {name!r}: [{value} for row in rows],\n")
    tops = "tuple([e.code for e in row.errors if e.top]) if row.errors else ()"
    lines.append(f"        'error_tops': [{tops} for row in rows],\n")
    source = "def pack(rows):\n    return {\n" + "".join(lines) + "    }\n"
    made: Callable[[Sequence[Row]], dict[str, list[Any]]] = compile_function(
        "pack", source, {}, "columns of bodies"
    )
    return made
