"""Follows connections whose bytes a tool of others hands over: which messages they hold, and what
belongs together. Sans-I/O; time arrives with the data.

All framing, pairing and decoding is that of captures; here it is told message by message, a request
before its response is there.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.model import Exchange, Frame, Side
from kafkascope.captures.model import Chunk, Closed, Connection, Endpoint, Gap, Opened, Piece
from kafkascope.dissectors.registry import RequestHeader

NOT_SEEN: Final = "its request was not seen"
TOKEN: Final = "a SASL token"
NO_REQUEST: Final = "no request"


class Message(NamedTuple):
    """A frame with what is known of it."""

    side: Side
    frame: Frame
    header: RequestHeader | None
    """Of the request, for a response that of its own; None where there is none, or none was
    seen."""
    reason: str
    """Why there is no header, else empty."""


class Follower:
    """Follows one connection: bytes of either direction in, messages out."""

    def __init__(
        self, a: Endpoint, b: Endpoint, *, kafka: bool = False, begins: bool = True
    ) -> None:
        """`a` sends in direction 0. `kafka`: the user says so, whatever the port. `begins`: what
        comes first is the connection's first byte."""
        context = Context((a.port, b.port) if kafka else ())
        context.facts = False
        context.heard = self._hear
        self._connection = Connection(0, a, b, 0, handshake=begins)
        self._conversations = Conversations(context)
        self._conversations.feed(Opened(self._connection))
        self._offsets = [0, 0]
        self._packets = 0
        self._heard: list[tuple[Side, Frame, RequestHeader | None]] = []
        self.context = context

    def feed(
        self, direction: int, data: bytes, time_ns: int
    ) -> tuple[list[Message], list[Exchange]]:
        """Return the messages that these bytes complete, and the exchanges."""
        connection, offset = self._connection, self._offsets[direction]
        self._packets += 1
        self._offsets[direction] += len(data)
        connection.last_ns = time_ns
        connection.packets[direction] += 1
        connection.bytes[direction] += len(data)
        piece = Piece(0, time_ns, self._packets, -1, offset)
        return self._told(
            self._conversations.feed(Chunk(connection, direction, offset, data, [piece]))
        )

    def lost(self, direction: int, size: int, time_ns: int) -> tuple[list[Message], list[Exchange]]:
        """Take note that so many bytes are missing."""
        offset = self._offsets[direction]
        self._offsets[direction] += size
        gap = Gap(self._connection, direction, offset, size, time_ns, "lost")
        return self._told(self._conversations.feed(gap))

    def close(self, time_ns: int) -> tuple[list[Message], list[Exchange]]:
        """End the connection: what waits is told."""
        return self._told(self._conversations.feed(Closed(self._connection, None, "end", time_ns)))

    def _hear(self, side: Side, frame: Frame, header: RequestHeader | None) -> None:
        self._heard.append((side, frame, header))

    def _told(self, exchanges: list[Exchange]) -> tuple[list[Message], list[Exchange]]:
        heard = self._heard
        if not heard:
            return [], exchanges
        self._heard = []
        answered = {
            id(each.response.frame): each for each in exchanges if each.response is not None
        }
        return [self._message(each, answered) for each in heard], exchanges

    def _message(
        self, heard: tuple[Side, Frame, RequestHeader | None], answered: dict[int, Exchange]
    ) -> Message:
        side, frame, header = heard
        if side == "request":
            return Message(side, frame, header, "" if header is not None else TOKEN)
        exchange = answered.get(id(frame))
        if exchange is None or exchange.request is None:
            return Message(side, frame, None, NOT_SEEN)
        header = exchange.request.header
        return Message(side, frame, header, "" if header is not None else TOKEN)
