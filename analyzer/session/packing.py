"""Packing of exchanges into the columns of a `Session`, many at once.

What most rows have in common is numbered once (`Rows.template`); what each has of its own goes in
column by column: 9 us for a small exchange, beside 10 us of reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.exchanges.column import NONE, columns_of
from kafkascope.analyzer.exchanges.columns import grown, packed_frames, packed_pair
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.exchanges.pairs import Rows, exchange_of, refilled
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.model import STATES
from kafkascope.kernel.pairs import OWN, Pair

if TYPE_CHECKING:
    from array import array

    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.exchanges.columns import Frames, ValueList
    from kafkascope.analyzer.exchanges.pairs import Item
    from kafkascope.analyzer.model import Exchange
    from kafkascope.captures.model import Connection

STORED: Final = tuple(each for each in columns_of(Row) if each.column.told_by is not None)
"""Columns of rows that sessions store."""
TABLES: Final = (
    *(name for name, column in STORED if name != "state" and not column.kind.numbered),
    *("mechanism", "error_tops"),
)
"""Columns whose numbers are indexes into a table of the same name. `error_tops`: the codes of the
response itself."""
COMMON: Final = tuple(each for each in STORED if not each.column.own)
COMMON_NAMES: Final = (
    *(each.name for each in COMMON),
    *("error_tops", "connection", "client_side", "mechanism"),
)
"""`connection` is an index in `connections`, `client_side` says which of its ends is the client."""
COLUMNS: Final = (
    *(each.name for each in STORED),
    *("connection", "client_side", "mechanism", "request_packet", "response_packet", "place"),
    "error_tops",
)
"""Columns with one number per row. `place` is an address in the frames."""
_OWN: Final = attrgetter(*OWN)
_ABSENT: Final = {
    name: None if column.kind.empty is not None else column.absent
    for name, column in STORED
    if column.own
}
"""The number for "none" in columns of `OWN`; None where there always is a number."""
# Rows that exchanges have in common, whose numbers are kept: of more than there are clients, or
# topics that one requests in turn.
MOST_KNOWN: Final = 4096


class Packer:
    """Appends exchanges to the columns of a session, which makes another packer when the numbers
    in its tables change."""

    def __init__(
        self,
        context: Context,
        columns: dict[str, array[int]],
        tables: dict[str, ValueList[Any]],
        frames: Frames,
        connection_number: Callable[[Connection], int],
    ) -> None:
        self._columns, self._tables, self._frames = columns, tables, frames
        self._connection_number = connection_number
        self._rows = Rows(context)
        self._known: dict[int, tuple[Row, list[int]]] = {}
        """By the identity of a template: the template, and the numbers of `COMMON_NAMES`."""

    def add(self, items: Sequence[Item]) -> tuple[list[str], list[str]]:
        """Append exchanges; return their ids, and the last column of the list (`result`)."""
        rows = self._rows
        identify = rows.lines.id
        own: list[tuple[Any, ...]] = []
        common: list[list[int]] = []
        ids, frames, texts = [], [], []
        packets: list[tuple[int, int]] = []
        for item in items:
            if (
                type(item) is Pair
                and item.is_ordinary()
                and not item.reader.host.connection.decrypted
            ):
                row = rows.template(item)
                known = self._known.get(id(row))
                if known is None:
                    known = row, self._numbers(row, exchange_of(item))
                    if len(self._known) >= MOST_KNOWN:
                        self._known.clear()
                    self._known[id(row)] = known
                own.append(values := item.own())
                common.append(known[1])
                id_ = identify(item)
                texts.append(result(refilled(row, id_, values)))
                packets.append((item.packet, item.response_packet if item.answered else NONE))
                frames.append(packed_pair(item))
            else:
                exchange = exchange_of(item)
                row = rows.row(exchange)
                own.append(_OWN(row))
                common.append(self._numbers(row, exchange))
                id_ = row.id
                texts.append(result(row))
                packets.append(_packets(exchange))
                frames.append(self._places(exchange))
            ids.append(id_)
        self._extend(OWN, own)
        self._extend(COMMON_NAMES, common)
        self._extend(("request_packet", "response_packet"), packets)
        columns = self._columns
        columns["place"] = grown(columns["place"], self._frames.extend(frames))
        return ids, texts

    def _extend(self, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        columns = self._columns
        for name, values in zip(names, zip(*rows, strict=True), strict=True):
            if name not in columns:
                continue
            absent = _ABSENT.get(name)
            if absent is not None and None in values:
                values = tuple([absent if each is None else each for each in values])
            columns[name] = grown(columns[name], values)

    def _numbers(self, row: Row, exchange: Exchange) -> list[int]:
        """Return the numbers of `COMMON_NAMES`."""
        tables, connection = self._tables, exchange.connection
        numbers: list[int] = []
        for name, about in COMMON:
            value = getattr(row, name)
            if name == "state":
                numbers.append(STATES.index(value))
            elif name == "errors":
                numbers.append(tables[name].number(tuple([each.code for each in value])))
            elif name in tables:
                numbers.append(tables[name].number(value))
            else:
                numbers.append(about.absent if value is None else value)
        tops = tuple([each.code for each in row.errors if each.top])
        numbers.append(tables["error_tops"].number(tops))
        numbers.append(self._connection_number(connection))
        numbers.append(exchange.broker != connection.b)
        numbers.append(tables["mechanism"].number(exchange.mechanism))
        return numbers

    def _places(self, exchange: Exchange) -> bytes:
        """Return where the bytes of both frames are; those that came out of TLS, or were
        written anew from a line of a log, are kept."""
        found = [side.frame for side in (exchange.request, exchange.response) if side is not None]
        if exchange.connection.decrypted or exchange.sizeless:
            found = [self._frames.decrypted(frame) for frame in found]
        return packed_frames(found)


def _packets(exchange: Exchange) -> tuple[int, int]:
    request, response = exchange.request, exchange.response
    return (
        NONE if request is None else request.spot.packet,
        NONE if response is None else response.spot.packet,
    )
