"""Which connections without an exchange belong to a cut. Stateless.

A filter judges exchanges; of a connection without one only addresses and times are known. Where
these decide the filter they do; where they leave it open, the connections of those clients belong
to the cut whose exchanges do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.filter.bind import And, Not, Or, Search, Test
from kafkascope.analyzer.filter.fields import fields_from
from kafkascope.analyzer.filter.language import Bound, Filter
from kafkascope.analyzer.model import STATES, Exchange
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import Connection

OF_CONNECTIONS: Final = frozenset(
    {
        *("time", "conn", "ip", "port"),
        *("client.ip", "client.port", "via", "broker", "broker.ip", "broker.port"),
        *fields_from("tls"),
    }
)
"""Fields that a connection has without any exchange."""
OF_OPAQUE: Final = OF_CONNECTIONS.union(STATES, ("state",))
"""The same of one with a row of bytes that are not Kafka's."""

Judge = Callable[[Row], bool | None]
"""None: the fields of a connection leave it open."""


class Choice:
    """A filter and a time range, held against connections."""

    def __init__(
        self,
        bound: Bound | None,
        clients: Collection[str],
        begin_ns: int | None = None,
        end_ns: int | None = None,
    ) -> None:
        """`clients`: addresses of the clients of what the filter chose."""
        self._clients = clients
        self._begin_ns, self._end_ns = begin_ns, end_ns
        self._judges = [
            (lambda row: True) if bound is None else _judge(bound, known)
            for known in (OF_CONNECTIONS, OF_OPAQUE)
        ]

    def __call__(self, connection: Connection, opaque: bool) -> bool:
        """Whether the connection belongs to the cut. `opaque`: it has a row of that state, so that
        filters can ask for it."""
        last_ns = max(connection.first_ns, connection.last_ns)
        if self._begin_ns is not None and last_ns < self._begin_ns:
            return False
        if self._end_ns is not None and connection.first_ns >= self._end_ns:
            return False
        judged = self._judges[opaque](_row_of(connection))
        return connection.ends()[0].host in self._clients if judged is None else judged


def _judge(bound: Bound, known: Collection[str]) -> Judge:
    match bound:
        case And(terms):
            return _all([_judge(term, known) for term in terms], False)
        case Or(terms):
            return _all([_judge(term, known) for term in terms], True)
        case Not(term):
            judge = _judge(term, known)
            return lambda row: None if (found := judge(row)) is None else not found
        case Test() if bound.field.name in known:
            return Filter(bound)
        case Search() | Test():
            return lambda row: None


def _all(judges: list[Judge], decisive: bool) -> Judge:
    """One decisive judgement is enough; the other one has to be unanimous."""

    def judge(row: Row) -> bool | None:
        found = [each(row) for each in judges]
        if decisive in found:
            return decisive
        return None if None in found else not decisive

    return judge


def _row_of(connection: Connection) -> Row:
    bare = Exchange(
        number=0,
        id="",
        state="opaque",
        connection=connection,
        client=connection.ends()[0],
        broker=connection.b,
        api_key=None,
        api="",
        api_version=None,
        correlation_id=None,
        client_id=None,
        request=None,
        response=None,
        tls=None if connection.tls is None else connection.tls.summary,
    )
    return row_of(bare, TopicNames())
