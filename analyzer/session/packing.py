"""Packing of exchanges and their rows into the columns of a `Session`, many at once.

Column by column, so that each is one list comprehension: three times as fast as row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.exchanges.column import NONE, columns_of
from kafkascope.analyzer.exchanges.columns import grown
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import STATES
from kafkascope.dissectors.codec.source import compile_function

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Exchange, Frame
    from kafkascope.analyzer.session.session import Session

STATE_NUMBERS: Final = {state: number for number, state in enumerate(STATES)}


STORED: Final = tuple(each for each in columns_of(Row) if each.column.told_by is not None)
"""Columns of rows that sessions store."""
TABLES: Final = (
    *(name for name, column in STORED if name != "state" and not column.kind.numbered),
    *("mechanism", "error_tops"),
)
"""Columns whose numbers are indexes into a table of the same name. `error_tops`: the codes of the
response itself."""
COLUMNS: Final = (
    *(each.name for each in STORED),
    *("connection", "client_side", "mechanism", "request_packet", "response_packet", "place"),
    "error_tops",
)
"""Columns with one number per row. `connection` is an index in `connections`, `client_side` says
which of its ends is the client, `place` is an address in the frames."""


def _append(session: Session, name: str, values: Iterable[int]) -> None:
    columns = session.columns
    columns[name] = grown(columns[name], list(values))


def pack(session: Session, told: Sequence[Exchange], rows: Sequence[Row]) -> None:
    """Append exchanges and their rows."""
    s, tables = session, session.tables
    for name, values in _packer()(rows).items():
        table = tables.get(name)
        _append(s, name, values if table is None else table.numbers(values))
    asked = [None if (side := e.request) is None else side.frame for e in told]
    answers = [None if (back := e.response) is None else back.frame for e in told]
    _append(s, "connection", map(session.connection_number, [e.connection for e in told]))
    _append(s, "client_side", [e.broker != e.connection.b for e in told])
    _append(s, "mechanism", tables["mechanism"].numbers([e.mechanism for e in told]))
    _append(s, "request_packet", [NONE if f is None else f.parts[0].packet for f in asked])
    _append(s, "response_packet", [NONE if f is None else f.parts[0].packet for f in answers])
    frames = zip(asked, answers, strict=True)
    if any(e.connection.tls is not None for e in told):
        frames = zip(*(_readable_again(s, told, side) for side in (asked, answers)), strict=True)
    _append(s, "place", s.stored_frames.extend(frames))
    s.id_bytes += bytes.fromhex("".join([row.id for row in rows]))


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


@cache
def _packer() -> Callable[[Sequence[Row]], dict[str, list[Any]]]:
    """Return the function from rows to the values of each column, as straight-line code."""
    lines = []
    for name, column in STORED:
        value = column.kind.pack.format(*[f"row.{name}"] * 2)
        if column.kind.numbered and column.kind.empty is None:
            value = f"{column.absent} if row.{name} is None else {value}"
        lines.append(f"        {name!r}: [{value} for row in rows],\n")
    tops = "tuple([e.code for e in row.errors if e.top]) if row.errors else ()"
    lines.append(f"        'error_tops': [{tops} for row in rows],\n")
    source = "def pack(rows):\n    return {\n" + "".join(lines) + "    }\n"
    made: Callable[[Sequence[Row]], dict[str, list[Any]]] = compile_function(
        "pack", source, {"STATE_NUMBERS": STATE_NUMBERS}, "columns of rows"
    )
    return made
