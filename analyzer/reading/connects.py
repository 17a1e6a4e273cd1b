"""Connects that never became a connection, as rows beside those of exchanges. They have neither a
number nor a request.

    connects = Connects(bound)        # capture.watch = connects.saw
    connects.merged(pairs)            # exchanges, and each connect as soon as its end is known
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

from kafkascope.analyzer.exchanges.rows import Row, blank
from kafkascope.analyzer.filter.backends.exchange import Filter, is_about_connections
from kafkascope.analyzer.filter.bind import Bound
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.reading.limits import LIMITS
from kafkascope.captures.model import Closed, Connection, Opened
from kafkascope.times import iso_ns

Pair: TypeAlias = tuple[Row, Exchange | None]


API: Final = "(connect)"
REASONS: Final[dict[str, str]] = {
    "refused": "connect refused",
    "unreachable": "connection attempt without a response",
}


class Connects:
    """The failed connects that match a filter; none when it uses fields that connections lack."""

    def __init__(self, bound: Bound | None) -> None:
        self.most = LIMITS.connection_attempts
        """Connects between two exchanges that are listed."""
        self._wanted = Filter(bound) if is_about_connections(bound) else None
        self._ready: deque[Pair] = deque()
        self.left = 0
        """Number of connects that the filter cannot be applied to."""
        self.beyond = 0
        """Number of connects that are not listed, because too many came without an exchange among
        them."""

    def saw(self, event: Opened | Closed) -> None:
        connection = event.connection
        if not isinstance(event, Closed) or event.used or not connection.handshake:
            return
        if event.how != "rst" and event.direction is not None:
            return
        if self._wanted is None:
            self.left += 1
            return
        if len(self._ready) >= self.most:
            self.beyond += 1
            return
        row = row_of(connection, "refused" if event.how == "rst" else "unreachable")
        if self._wanted(row):
            self._ready.append((row, None))

    def merged(self, pairs: Iterable[tuple[Row, Exchange]]) -> Iterator[Pair]:
        """Yield exchanges, and each connect before the first exchange that is complete after it."""
        for pair in pairs:
            while self._ready:
                yield self._ready.popleft()
            yield pair
        yield from self._ready
        self._ready.clear()


def row_of(connection: Connection, state: Literal["refused", "unreachable"]) -> Row:
    return blank(
        number=0,
        id="",
        time_ns=connection.first_ns,
        connection=connection.number,
        client_address=str(connection.a),
        broker_address=str(connection.b),
        api=API,
        state=state,
        reason=REASONS[state],
        frames=(connection.first_packet,) if connection.first_packet else (),
    )


def to_json(row: Row) -> dict[str, Any]:
    return {
        "schema": "connect/1",
        "number": None,
        "time": iso_ns(row.time_ns),
        "connection": row.connection,
        "client_address": row.client_address,
        "broker_address": row.broker_address,
        "state": row.state,
        "reason": row.reason,
        "frames": row.frames,
    }
