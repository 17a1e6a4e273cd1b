"""A request log and a capture of the same minutes: one exchange with both clocks. State without
I/O.

A line is an exchange of the connection with the same ends and correlation id; API and version agree
then. A forwarded request is an Envelope on the wire, with a number of its own: there the end
decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeAlias

from kafkascope.analyzer.exchanges.limits import LIMITS
from kafkascope.analyzer.exchanges.pairs import exchange_of
from kafkascope.captures.model import NAMELESS

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.pairs import Item
    from kafkascope.analyzer.model import Exchange
    from kafkascope.captures.model import Connection, Endpoint

# Exchanges of logs that are handed on at once.
TOGETHER: Final = 256
ENVELOPE: Final = 58
# How far the end of a forwarded request may be from that of its Envelope: both clocks may differ,
# and the network thread notes a response late.
ENVELOPE_NS: Final = 1_000_000_000
# Added to the numbers of connections that only the log has.
APART: Final = 1_000_000

Key: TypeAlias = "tuple[Endpoint, Endpoint, int | None]"


class Joining:
    """Lines by connection and correlation id, each taken by the exchange that it is about."""

    def __init__(self, lines: Iterable[Sequence[Item]], most: int = LIMITS.waiting_lines) -> None:
        self._lines: dict[Key, list[Exchange]] = defaultdict(list)
        self._connections: dict[tuple[Endpoint, Endpoint], Connection] = {}
        self.ahead_ns: int | None = None
        """How far the line of the first exchange that has one is ahead of it; None before."""
        self._beyond = map(exchange_of, chain.from_iterable(lines))
        for each in islice(self._beyond, most):
            forwarded = each.logged is not None and each.logged.forwarded
            number = None if forwarded else each.correlation_id
            self._lines[each.broker, each.client, number].append(each)

    def join(self, exchange: Exchange) -> Exchange:
        """Return an exchange of the capture, with what its line says."""
        self._connections.setdefault((exchange.broker, exchange.client), exchange.connection)
        envelope = exchange.api_key == ENVELOPE
        number = None if envelope else exchange.correlation_id
        ends = exchange.broker, exchange.client
        lines = self._lines.get((*ends, number)) or self._lines.get((NAMELESS, ends[1], number))
        if not lines or exchange.request is None:
            return exchange
        about = (exchange.api_key, exchange.api_version)
        found = min(
            (each for each in lines if envelope or (each.api_key, each.api_version) == about),
            key=lambda each: abs(_end_of(each) - _end_of(exchange)),
            default=None,
        )
        if found is None or found.logged is None:
            return exchange
        if envelope and abs(_end_of(found) - _end_of(exchange)) > ENVELOPE_NS:
            return exchange
        lines.remove(found)
        if self.ahead_ns is None:
            self.ahead_ns = _end_of(found) - _end_of(exchange)
        exchange.logged = found.logged
        exchange.logged.packets = True
        # On the wire it is the Envelope, which is no other request's line.
        exchange.logged.forwarded = False
        exchange.user = exchange.user or found.user
        exchange.software = exchange.software or found.software
        return exchange

    def rest(self) -> Iterator[Exchange]:
        """Yield the lines that no exchange of the capture is about, by the time of their begin as
        far as they waited."""
        waiting = chain.from_iterable(self._lines.values())
        for each in chain(sorted(waiting, key=lambda one: one.origin), self._beyond):
            known = self._connections.get((each.broker, each.client))
            if known is not None:
                each.connection = known
            elif each.connection.number < APART:
                each.connection.number += APART
            yield each


def _end_of(exchange: Exchange) -> int:
    return exchange.time_ns + (exchange.latency_ns or 0)
