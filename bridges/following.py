"""Follows connections whose bytes a tool of others hands over: which messages they hold, and what
belongs together. Sans-I/O; time arrives with the data.

All framing, pairing and decoding is that of captures; here messages come out one by one, a request
before its response is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.exchanges.pairs import exchange_of
from kafkascope.analyzer.model import Exchange, Frame, Side
from kafkascope.captures.model import (
    Chunk,
    Closed,
    Connection,
    Endpoint,
    Gap,
    Opened,
    Piece,
    StreamEvent,
)
from kafkascope.dissectors.registry import RequestHeader

NOT_SEEN: Final = "its request was not seen"
TOKEN: Final = "a SASL token"


class FollowedMessage(NamedTuple):
    """A frame with what is known of it."""

    side: Side
    frame: Frame
    header: RequestHeader | None
    """Header of the request, for a response that of its own; None where there is none, or none was
    seen."""
    reason: str
    """Why there is no header, else empty."""


Told: TypeAlias = tuple[list[FollowedMessage], list[Exchange]]
"""The messages that an event completes, and the exchanges."""


class Follower:
    """Follows connections: events of streams in, messages out."""

    def __init__(self, *, ports: Iterable[int] = ()) -> None:
        """`ports`: those that the user says are Kafka's."""
        self.context = Context(ports)
        self.context.frame_listener = self._hear
        self._conversations = Conversations(self.context)
        self._heard: list[tuple[Side, Frame, RequestHeader | None]] = []

    def take(self, event: StreamEvent) -> Told:
        """Take the next event of a connection."""
        exchanges = [exchange_of(each) for each in self._conversations.feed(event)]
        heard = self._heard
        if not heard:
            return [], exchanges
        self._heard = []
        # Of one connection: an offset names a frame.
        answered = {
            each.response.frame.offset: each for each in exchanges if each.response is not None
        }
        return [self._message(each, answered) for each in heard], exchanges

    def _hear(self, side: Side, frame: Frame, header: RequestHeader | None) -> None:
        self._heard.append((side, frame, header))

    def _message(
        self, heard: tuple[Side, Frame, RequestHeader | None], answered: dict[int, Exchange]
    ) -> FollowedMessage:
        side, frame, header = heard
        if side == "request":
            return FollowedMessage(side, frame, header, "" if header is not None else TOKEN)
        exchange = answered.get(frame.offset)
        if exchange is None or exchange.request is None:
            return FollowedMessage(side, frame, None, NOT_SEEN)
        header = exchange.request.header
        return FollowedMessage(side, frame, header, "" if header is not None else TOKEN)


class ByteFollower:
    """Follows one connection of which a tool has the bytes, each once and in order."""

    def __init__(
        self, a: Endpoint, b: Endpoint, *, ports: Iterable[int] = (), begins: bool = True
    ) -> None:
        """`a` sends in direction 0. `begins`: what comes first is the connection's first byte."""
        self._follower = Follower(ports=ports)
        self._connection = Connection(0, a, b, 0, handshake=begins)
        self._follower.take(Opened(self._connection))
        self._offsets = [0, 0]
        self._packets = 0

    @property
    def context(self) -> Context:
        """Facts about the connection besides its messages."""
        return self._follower.context

    def feed(self, direction: int, data: bytes, time_ns: int) -> Told:
        """Take the next bytes of a direction."""
        connection, offset = self._connection, self._offsets[direction]
        self._packets += 1
        self._offsets[direction] += len(data)
        connection.first_ns = connection.first_ns or time_ns
        connection.last_ns = time_ns
        connection.packets[direction] += 1
        connection.bytes[direction] += len(data)
        piece = Piece(0, time_ns, self._packets, -1, offset)
        return self._follower.take(Chunk(connection, direction, offset, data, [piece]))

    def lost(self, direction: int, size: int, time_ns: int) -> Told:
        """Take note that so many bytes are missing."""
        offset = self._offsets[direction]
        self._offsets[direction] += size
        return self._follower.take(Gap(self._connection, direction, offset, size, time_ns, "lost"))

    def close(self, time_ns: int) -> Told:
        """End the connection; return what is still pending."""
        return self._follower.take(Closed(self._connection, None, "end", time_ns))
