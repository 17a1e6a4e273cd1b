"""One connection that speaks HTTP/1.x: its exchanges go to who asked for them. State without I/O.

Pairs by order, as HTTP does. What is not certain after holes is left out: an answer for another
request would be a wrong schema.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.conversation.http import messages
from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.analyzer.model import HttpExchange
from kafkascope.captures.model import Chunk, Closed, Gap
from kafkascope.schemas.http_head import HttpHead

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Exchange, HttpConsumer
    from kafkascope.captures.model import Connection, StreamEvent

_METHODS: Final = (b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ")


@dataclass(slots=True)
class _Unanswered:
    """A request, as far as it is there, and its response if that is whole before it."""

    head: HttpHead
    wanted: bool
    request: messages.Message | None = None
    response: messages.Message | None = None
    began_ns: int = 0
    """Start of the response."""


class HttpConversation:
    """Takes the events of one connection."""

    synchronized: Final = False
    """Whether chunks may be joined, as those of a `Conversation`."""

    def __init__(
        self, connection: Connection, consumer: HttpConsumer, client: int, *, midstream: bool
    ) -> None:
        """`client`: direction of the requests. `midstream`: the first bytes may be missing."""
        self.connection: Final = connection
        self._consumer: Final = consumer
        self._client: Final = client
        self._requests = messages.Messages(
            requests=True,
            began=self._request,
            done=self._requested,
            lost=self._lose,
            hunting=midstream,
        )
        self._responses = messages.Messages(
            requests=False,
            began=self._response,
            done=self._answered,
            lost=self._lose,
            hunting=midstream,
        )
        self._asking: _Unanswered | None = None
        """Its request is being read."""
        self._waiting: deque[_Unanswered] = deque()
        """Their responses are to come."""
        self._answering: _Unanswered | None = None
        """Its response is being read."""
        self._sure = not midstream
        """No request can have been missed."""
        self._early = 0
        """Responses that came before their requests: the capture has these late."""
        self._pipelined = False
        self._closed = [False, False]
        self._now_ns = 0
        self._began_ns = 0
        """When the last response began."""

    @property
    def over(self) -> bool:
        return all(self._closed)

    @property
    def held(self) -> int:
        """Memory of messages that are not whole, and of requests without an answer."""
        waiting = sum(len(each.request.body) for each in self._waiting if each.request)
        answered = self._answering
        if answered is not None and answered.request is not None:
            waiting += len(answered.request.body)
        return waiting + self._requests.held + self._responses.held

    def evict(self) -> list[Exchange]:
        """Give up what waits: other connections need the memory."""
        self._requests.evict()
        self._responses.evict()
        for each in (*self._waiting, self._answering):
            if each is not None and each.request is not None and each.request.body:
                each.request = each.request._replace(body=b"", dropped=messages.RELIEVED)
        return []

    def feed(self, event: StreamEvent) -> list[Exchange]:
        """Take an event; exchanges of Kafka there are none."""
        if isinstance(event, Chunk):
            # One by one: how many packets come at once is a matter of reading.
            for packet in event.by_piece() if len(event.pieces) > 1 else (event,):
                self._now_ns = packet.pieces[0].time_ns
                self._side(packet.direction).feed(packet.data)
        elif isinstance(event, Gap):
            self._side(event.direction).gap(event.size)
        elif isinstance(event, Closed):
            for direction in (0, 1):
                ended = event.direction in (None, direction) or event.how == "rst"
                if ended and not self._closed[direction]:
                    self._closed[direction] = True
                    self._side(direction).close()
        return []

    def _side(self, direction: int) -> messages.Messages:
        return self._requests if direction == self._client else self._responses

    def _end(self) -> None:
        """The connection speaks HTTP no more, or its responses cannot be paired any more."""
        self._requests.end()
        self._responses.end()
        self._forget()

    def _forget(self) -> None:
        self._waiting.clear()
        self._asking = self._answering = None

    def _lose(self) -> None:
        """Bytes of unknown contents are missing: forget which answers are to come."""
        if self._pipelined:
            self._end()
        self._forget()
        self._sure = False
        self._early = 0

    # --- requests

    def _request(self, head: HttpHead) -> bool:
        """A request begins; return whether its body is worth keeping."""
        self._asking = None
        if self._early:
            self._early -= 1
            return False
        if not self._sure and self._now_ns <= self._began_ns:
            return False  # the answer may have passed by already
        pending = self._asking = _Unanswered(head, self._consumer.wants(head))
        self._waiting.append(pending)
        if len(self._waiting) > LIMITS.http_requests:
            self._end()
        return pending.wanted

    def _requested(self, message: messages.Message) -> None:
        pending, self._asking = self._asking, None
        if pending is None or not pending.wanted:
            return
        if message.body and self.held + len(message.body) > 2 * LIMITS.http_body_bytes:
            message = message._replace(body=b"", dropped=messages.TOO_LARGE)
        pending.request = message
        self._complete(pending)

    # --- responses

    def _response(self, head: HttpHead) -> bool | None:
        """A response begins; return whether its body is worth keeping, None if it has none."""
        self._began_ns = self._now_ns
        pending = self._answering = self._waiting.popleft() if self._waiting else None
        if pending is None:
            self._early += self._sure
            return False
        if head.status == 101 or (pending.head.method == "CONNECT" and 200 <= head.status < 300):
            self._end()
            return None
        self._pipelined = self._pipelined or bool(self._waiting)
        pending.began_ns = self._now_ns
        return None if pending.head.method == "HEAD" else pending.wanted

    def _answered(self, message: messages.Message) -> None:
        pending, self._answering = self._answering, None
        if pending is not None and pending.wanted:
            pending.response = message
            self._complete(pending)

    def _complete(self, pending: _Unanswered) -> None:
        request, response = pending.request, pending.response
        if request is None or response is None:
            return
        ends = (self.connection.a, self.connection.b)
        self._consumer.take(
            HttpExchange(
                ends[self._client],
                ends[1 - self._client],
                pending.began_ns,
                request.head,
                request.body,
                response.head,
                response.body,
                request.dropped or response.dropped,
            )
        )


def client_in(events: Iterable[StreamEvent]) -> int | None:
    """Return the direction of the requests in events that were not recognized as Kafka; None
    where there is no HTTP in them."""
    sides = (bytearray(), bytearray())
    first = None
    for event in events:
        if isinstance(event, Chunk):
            first = event.direction if first is None else first
            sides[event.direction].extend(event.data)
    for direction, data in enumerate(sides):
        # That this is not Kafka may be known by the first byte.
        if direction == first and any(
            m.startswith(bytes(data[: len(m)])) for m in _METHODS if data
        ):
            return direction
        if messages.REQUEST_LINE.search(data):
            return direction
        if messages.RESPONSE_LINE.search(data):
            return 1 - direction
    return None
