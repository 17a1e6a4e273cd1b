"""Connections that carry no answered Kafka exchange, as far as a cut needs them: failed connects,
TLS, HTTP, a TLS alert in answer to a Kafka request.

Kept of each are the first bytes of both directions, in the packets they came in. Hostile captures
have many connections: all limits are named. State without I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkascope.analyzer.conversation.detect import is_other
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.transform.limits import LIMITS, TransformLimits
from kafkascope.captures.model import Chunk, Connection, Gap, Opened, StreamEvent
from kafkascope.captures.signatures import sign_of

# Kept of a direction: a TLS handshake with its certificates.
HEAD_BYTES: Final = 16 * 1024
# The same of a broker that a Kafka request was sent to, and of everybody once there is much.
SMALL_BYTES: Final = 64
TOTAL_BYTES: Final = 64 * 1024 * 1024

Wanted = Callable[["Connection", bool], bool]
"""(connection, whether it has a row of bytes that are not Kafka's) -> whether it is to be kept."""


class Head(NamedTuple):
    """Bytes of one packet."""

    time_ns: int
    direction: int
    data: bytes


@dataclass(slots=True)
class Beginning:
    """A connection and the first bytes of its directions."""

    connection: Connection
    heads: list[Head] = field(default_factory=list)
    client: int | None = None
    """Direction of Kafka requests, once there is one."""
    opaque: bool = False
    """It has a row: bytes that are not Kafka's where Kafka was expected."""
    chosen: bool = False
    """That row was."""
    sizes: list[int] = field(default_factory=lambda: [0, 0])
    full: list[bool] = field(default_factory=lambda: [False, False])

    def bytes_of(self, direction: int) -> bytes:
        """The first bytes of a direction."""
        return b"".join(head.data for head in self.heads if head.direction == direction)

    def only(self, direction: int) -> None:
        """Forget the other direction."""
        self.heads = [head for head in self.heads if head.direction == direction]
        self.full[1 - direction] = True


def handshake_failed(connection: Connection) -> bool:
    """Return whether a connection's TLS handshake failed, which is a finding on any port."""
    result = connection.tls.result if connection.tls is not None else None
    return result is not None and result.outcome != "established"


def is_row_of_other(exchange: Exchange) -> bool:
    """Return whether a row describes bytes that are not Kafka's."""
    return exchange.state == "opaque" and is_other(exchange.reason)


def is_closed(connection: Connection) -> bool:
    """Return whether nothing can be read of the TLS on a connection, though its handshake did not
    fail."""
    tls = connection.tls
    if tls is None or not tls.error or connection.decrypted:
        return False
    return not handshake_failed(connection)


class OtherTraffic:
    """Feed it every event and every exchange of a capture; then `kept`."""

    def __init__(self, limits: TransformLimits = LIMITS) -> None:
        self._limits = limits
        self._seen: dict[int, Beginning] = {}
        self._held = 0
        self.beyond = 0
        """Connections that were not looked at, for there were too many."""
        self.elsewhere = 0
        """Connections without Kafka to ports that nobody said are Kafka's."""
        self.closed = 0
        """The same, with TLS that cannot be read."""

    def knows(self, connection: Connection) -> bool:
        """Whether a connection was seen to open, had no answer of Kafka's yet, and is kept."""
        return connection.number in self._seen

    def event(self, event: StreamEvent) -> None:
        """Take in what happened on a connection."""
        number = event.connection.number
        if isinstance(event, Opened):
            if len(self._seen) < self._limits.other_connections:
                self._seen[number] = Beginning(event.connection)
            else:
                self.beyond += 1
            return
        beginning = self._seen.get(number)
        if beginning is None:
            return
        if isinstance(event, Chunk):
            if not beginning.full[event.direction]:
                for packet in event.by_piece():
                    self._take(beginning, packet)
        elif isinstance(event, Gap) and beginning.sizes[event.direction]:
            # What follows a hole stands nowhere near the beginning.
            beginning.full[event.direction] = True

    def _take(self, beginning: Beginning, packet: Chunk) -> None:
        way = packet.direction
        most = HEAD_BYTES if self._held < TOTAL_BYTES and beginning.client is None else SMALL_BYTES
        data = packet.data[: max(0, most - beginning.sizes[way])]
        if not data:
            beginning.full[way] = True
            return
        beginning.heads.append(Head(packet.pieces[0].time_ns, way, data))
        beginning.sizes[way] += len(data)
        self._held += len(data)

    def exchange(self, exchange: Exchange) -> None:
        """Take in an exchange, wanted or not."""
        number = exchange.connection.number
        beginning = self._seen.get(number)
        if beginning is None:
            return
        if is_row_of_other(exchange):
            beginning.opaque = True
        elif exchange.response is not None:
            self._forget(number)
        elif beginning.client is None:
            beginning.client = exchange.client_end
            self._held -= sum(len(head.data) for head in beginning.heads)
            beginning.only(1 - beginning.client)
            self._held += sum(len(head.data) for head in beginning.heads)

    def _forget(self, number: int) -> None:
        beginning = self._seen.pop(number)
        self._held -= sum(len(head.data) for head in beginning.heads)

    def choose(self, exchange: Exchange) -> bool:
        """Choose the connection of a row of bytes that are not Kafka's; False for other rows."""
        if not is_row_of_other(exchange):
            return False
        connection, request = exchange.connection, exchange.request
        beginning = self._seen.get(connection.number)
        if beginning is None:
            # No events were reported: the row has the first bytes of the first packet.
            beginning = self._seen[connection.number] = Beginning(connection, opaque=True)
            if request is not None:
                way = exchange.client_end
                frame = request.frame
                beginning.heads.append(Head(frame.first_ns, way, frame.payload))
        beginning.chosen = True
        return True

    def kept(self, expected: Callable[[Connection], bool], wanted: Wanted) -> Iterator[Beginning]:
        """The connections to keep, in the order of the capture: those whose rows were chosen, and
        those without an exchange that are `wanted` where Kafka is `expected`. Those with Kafka
        requests that were answered in another protocol come along as well: whether these requests
        were chosen is for the caller to know."""
        for _, beginning in sorted(self._seen.items()):
            if beginning.client is not None:
                own = not beginning.connection.decrypted
                if own and sign_of(beginning.bytes_of(1 - beginning.client)):
                    yield beginning
            elif beginning.chosen:
                yield beginning
            elif not wanted(beginning.connection, beginning.opaque):
                continue
            elif (
                beginning.opaque
                or handshake_failed(beginning.connection)
                or expected(beginning.connection)
            ):
                yield beginning
            elif is_closed(beginning.connection):
                self.closed += 1
            else:
                self.elsewhere += 1
