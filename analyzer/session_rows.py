"""Rows of a session for filters: from its columns, with the message read again only for what these
do not hold."""

# ruff: noqa: D102  the properties are those of `Row`, where they are told
from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from analyzer.filter_bind import Bound, Every, Find, Some, Test, Unless
from analyzer.model import State
from analyzer.rows import RowError
from analyzer.session import NO_ID, NONE, STATES
from dissectors.codes import error_name

if TYPE_CHECKING:
    from analyzer.rows import Row
    from analyzer.session import Session

IN_COLUMNS: Final = frozenset(
    {
        *("number", "time", "time.delta", "conn", "client.ip", "client.port", "broker"),
        *("broker.ip", "broker.port", "ip", "port", "api", "version", "correlation_id", "client"),
        *("software", "software.version", "user", "request.bytes", "response.bytes", "bytes"),
        *("latency", "wait", "excess", "state", "answered", "open", "lost", "no-reply", "orphan"),
        *("opaque", "error", "failed", "retriable", "topic", "group", "throttle", "records"),
    }
)
"""Fields of the filter language that a `ColumnRow` answers by itself."""


def in_columns(bound: Bound | None) -> bool:
    """Whether a filter needs nothing but columns."""
    match bound:
        case None:
            return True
        case Every(terms) | Some(terms):
            return all(in_columns(term) for term in terms)
        case Unless(term):
            return in_columns(term)
        case Find():
            return False
        case Test():
            return not bound.path and bound.field.name in IN_COLUMNS


class ColumnRow:
    """Stands for the `Row` of an exchange; any attribute that no column has reads the message."""

    def __init__(self, session: Session, index: int) -> None:
        self._session = session
        self._index = index

    @cached_property
    def _row(self) -> Row:
        return self._session.row(self._index)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._row, name)

    def _number(self, name: str) -> int | None:
        value: int = getattr(self._session, name)[self._index]
        return None if value == NONE else value

    @property
    def number(self) -> int:
        return self._session.numbers[self._index]

    @property
    def time_ns(self) -> int:
        return self._session.times[self._index]

    @property
    def state(self) -> State:
        return STATES[self._session.states[self._index]]

    @property
    def connection(self) -> int:
        number: int = self._connection.number
        return number

    @cached_property
    def _connection(self) -> Any:
        return self._session.connections[self._session.connection[self._index]]

    @property
    def client_address(self) -> str:
        connection = self._connection
        return str(connection.b if self._session.client_side[self._index] else connection.a)

    @property
    def broker_address(self) -> str:
        connection = self._connection
        return str(connection.a if self._session.client_side[self._index] else connection.b)

    @property
    def api_key(self) -> int | None:
        return self._number("api_keys")

    @property
    def api(self) -> str:
        return self._session.apis.values[self._session.api[self._index]]

    @property
    def api_version(self) -> int | None:
        return self._number("versions")

    @property
    def correlation_id(self) -> int | None:
        value = self._session.correlation_ids[self._index]
        return None if value == NO_ID else value

    @property
    def client_id(self) -> str | None:
        return self._session.client_ids.values[self._session.client_id[self._index]]

    @property
    def software(self) -> str:
        return self._session.softwares.values[self._session.software[self._index]]

    @property
    def user(self) -> str:
        return self._session.users.values[self._session.user[self._index]]

    @property
    def topics(self) -> tuple[str, ...]:
        known = self._session.topic_lists.values[self._session.topics[self._index]]
        # An id without a name then; by now it may have one.
        return self._row.topics if any(name[-1:] == "?" for name in known) else known

    @property
    def groups(self) -> tuple[str, ...]:
        return self._session.group_lists.values[self._session.groups[self._index]]

    @property
    def errors(self) -> tuple[RowError, ...]:
        """Codes and names; what they are about is in the message."""
        codes = self._session.error_lists.values[self._session.errors[self._index]]
        return tuple(RowError(code, error_name(code)) for code in codes)

    @property
    def request_bytes(self) -> int | None:
        return self._number("request_bytes")

    @property
    def response_bytes(self) -> int | None:
        return self._number("response_bytes")

    @property
    def latency_ns(self) -> int | None:
        return self._number("latencies")

    @property
    def wait_ns(self) -> int:
        return self._session.waits[self._index]

    @property
    def excess_ns(self) -> int | None:
        latency = self.latency_ns
        return None if latency is None else max(0, latency - self.wait_ns)

    @property
    def throttle_ms(self) -> int:
        return self._session.throttles[self._index]

    @property
    def records(self) -> int | None:
        return self._number("records")
