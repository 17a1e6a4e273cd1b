"""Rows of a session from its columns alone: no message is read again for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.exchanges.rows import Row, RowError, address, is_flexible
from kafkascope.analyzer.model import STATES
from kafkascope.analyzer.session.packing import STORED, TABLES
from kafkascope.dissectors.keyed import error_name

if TYPE_CHECKING:
    from kafkascope.analyzer.session.session import Session


NUMBERED: Final = tuple(name for name, about in STORED if about.kind.numbered)
ABSENT: Final = tuple(
    (name, about.absent)
    for name, about in STORED
    if about.kind.numbered and about.kind.empty is None
)
"""Columns of numbers that may have none, and what stands for it."""
TABLED: Final = tuple(name for name, about in STORED if name in TABLES)


def row_of_columns(session: Session, index: int) -> Row:
    """Return the row of an exchange, with the topic names known by now. Of its errors it has codes
    and names: what they are about is in the message (`Session.row`)."""
    columns, tables = session.columns, session.tables
    known: dict[str, Any] = {name: columns[name][index] for name in NUMBERED}
    for name, absent in ABSENT:
        if known[name] == absent:
            known[name] = None
    for name in TABLED:
        known[name] = tables[name].values[columns[name][index]]
    names = session.context.names
    for name in ("topics", "implied_topics"):
        if known[name]:
            known[name] = names.late_all(known[name])
    if known["errors"]:
        key, top = known["api_key"], session.value("error_tops", index)
        known["errors"] = tuple(
            [RowError(code, error_name(code, key), top=code in top) for code in known["errors"]]
        )
    connection = session.connections[columns["connection"][index]]
    client, broker = connection.ends(columns["client_side"][index])
    undecoded, notes = session.remarks(index)
    return Row(
        id=session.ids(index, index + 1).hex(),
        connection=connection.number,
        client_address=address(client),
        broker_address=address(broker),
        state=STATES[columns["state"][index]],
        flexible=is_flexible(known["api_key"], known["api_version"]),
        frames=session.frames(index),
        undecoded=undecoded,
        notes=notes,
        via=connection.via,
        **known,
    )
