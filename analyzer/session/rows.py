"""Rows of a session for filters: from its columns, with the message read again only for values that
columns lack."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from kafkascope.analyzer.exchanges.column import Named
from kafkascope.analyzer.exchanges.rows import RowError, is_flexible, row_of
from kafkascope.analyzer.model import STATES, State, Undecoded
from kafkascope.analyzer.session.packing import STORED
from kafkascope.dissectors.keyed import error_name

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.session.session import Session


class ColumnRow:
    """Stand-in for the `Row` of an exchange; an attribute without a column reads the message."""

    def __init__(self, session: Session, index: int) -> None:
        self._session = session
        self._index = index

    @cached_property
    def exchange(self) -> Exchange:
        """The whole exchange, read again; `captures.NotKept` when its bytes are gone."""
        return self._session.exchange(self._index)

    @cached_property
    def _row(self) -> Row:
        return row_of(self.exchange, self._session.context.names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._row, name)

    @property
    def state(self) -> State:
        """State in which the exchange ended."""
        return STATES[self._session.columns["state"][self._index]]

    @cached_property
    def _connection(self) -> Any:
        return self._session.connections[self._session.columns["connection"][self._index]]

    @property
    def connection(self) -> int:
        """Number of the connection."""
        number: int = self._connection.number
        return number

    @property
    def client_address(self) -> str:
        """host:port of the client."""
        side = self._session.columns["client_side"][self._index]
        return str(self._connection.ends(side)[0])

    @property
    def broker_address(self) -> str:
        """host:port of the broker."""
        side = self._session.columns["client_side"][self._index]
        return str(self._connection.ends(side)[1])

    @property
    def via(self) -> str:
        """host:port of the load balancer in between."""
        found: str = self._connection.via
        return found

    @property
    def flexible(self) -> bool:
        """Whether the version has compact types and tags."""
        return is_flexible(self.api_key, self.api_version)

    @property
    def frames(self) -> tuple[int, ...]:
        """Packets with the first byte of request and response."""
        return self._session.frames(self._index)

    @property
    def undecoded(self) -> tuple[Undecoded, ...]:
        """Bytes that could not be decoded."""
        return self._session.undecoded(self._index)

    @property
    def errors(self) -> tuple[RowError, ...]:
        """Codes and names; the rest of an error is in the message."""
        codes = self._session.value("errors", self._index)
        top = self._session.value("error_tops", self._index)
        key = self.api_key
        if not top:
            return tuple(RowError(code, error_name(code, key)) for code in codes)
        return tuple(RowError(code, error_name(code, key), top=code in top) for code in codes)

    @property
    def topics(self) -> tuple[str, ...]:
        """Topic names, including names that were learned after the exchange."""
        return self._late_names("topics")

    @property
    def implied_topics(self) -> tuple[str, ...]:
        """Topics that a fetch session implies, named in the same way."""
        return self._late_names("implied_topics")

    def _late_names(self, name: str) -> tuple[str, ...]:
        return self._session.context.names.late_all(self._session.value(name, self._index))

    @property
    def latency_beyond_wait_ns(self) -> int | None:
        """Latency without the wait."""
        latency: int | None = self.latency_ns
        return None if latency is None else max(0, latency - self.wait_ns)


def _column(named: Named) -> property:
    """Return the property of a stored column."""
    name, column = named
    numbered = column.kind.numbered

    def read(self: ColumnRow) -> Any:
        if not numbered:
            return self._session.value(name, self._index)
        value = self._session.columns[name][self._index]
        return None if value == column.absent and column.kind.empty is None else value

    return property(read, doc=column.text)


for _each in STORED:
    if _each.name not in vars(ColumnRow):
        setattr(ColumnRow, _each.name, _column(_each))
