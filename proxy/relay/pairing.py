"""Pairs responses with requests: brokers respond in the order of the requests of a connection."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkascope.dissectors.registry import Decoded

MAX_PENDING: Final = 65_536
"""Clients keep 5 to 1000 in flight. More means that no responses come (a Produce of an unknown
version with acks=0): the oldest are forgotten."""


SIZE: Final = struct.Struct(">i")
"""Of a frame: bytes that follow the field."""


class PendingRequest:
    """A request whose response has not been forwarded yet."""

    client_id: str | None = None
    quiet = 0
    """The edition of the rules none of which cares for it."""
    token = False
    """A raw SASL token, whose response has no correlation id."""
    response: bytes | None = None
    """A whole frame of ours; the broker was not asked."""
    comment = ""
    """Of that response, for the recording."""
    payload: bytes | None = None
    """The request, where a rule looks at its response."""
    decoded: Decoded | None = None
    raw: bytes | None = None
    """The request as the broker got it, where the recording wants both legs."""

    # Most requests pass with nothing but this; what is rare is a default of the class.
    def __init__(
        self, key: int, version: int, correlation_id: int, time_ns: int, size: int = 0
    ) -> None:
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.time_ns = time_ns
        self.size = size


def token_request(time_ns: int, *, token: bool = True) -> PendingRequest:
    """A placeholder for a frame of which only is known whether it is a SASL token."""
    request = PendingRequest(-1, 0, 0, time_ns)
    request.token = token
    return request


class Pairing:
    """The pending requests of one connection, oldest first."""

    __slots__ = ("_last", "_numbered", "_places", "own", "requests")

    def __init__(self) -> None:
        self.requests: deque[PendingRequest] = deque(maxlen=MAX_PENDING)
        """The oldest one first."""
        self.own = 0
        """Responses of our own that wait for their turn."""
        self._places: dict[int, int] = {}
        """Correlation id -> number of the last request that has it, of those numbered so far."""
        self._numbered = 0
        self._last: PendingRequest | None = None
        """The last one that was numbered."""

    def __len__(self) -> int:
        return len(self.requests)

    def __iter__(self) -> Iterator[PendingRequest]:
        return iter(self.requests)

    def add(self, request: PendingRequest) -> None:
        """Expect a response to this request."""
        self.requests.append(request)

    def respond(self, request: PendingRequest, payload: bytes) -> None:
        """Respond to a request in the broker's place, when its turn comes (`own_response`)."""
        request.response = SIZE.pack(len(payload)) + payload
        self.add(request)
        self.own += 1

    def front(self) -> PendingRequest | None:
        """The request whose response comes next."""
        return self.requests[0] if self.requests else None

    def pop(self) -> None:
        """Remove the first request: its response was forwarded, or will not come."""
        if self.requests:
            self.requests.popleft()

    def own_response(self) -> PendingRequest | None:
        """Remove the first request if it has a response of ours."""
        front = self.front()
        if front is None or front.response is None:
            return None
        self.pop()
        self.own -= 1
        return front

    def skip_to(self, correlation_id: int) -> Iterator[PendingRequest]:
        """Remove all requests before the one with that id, to which the broker does not respond any
        more. Yields those with a response of ours: their turn has come."""
        while (front := self.front()) is not None:
            if front.response is not None:
                self.own_response()
                yield front
            elif front.correlation_id == correlation_id:
                return
            else:
                self.pop()

    @property
    def kept(self) -> int:
        """Bytes of requests and responses that are kept."""
        return sum(
            len(each.payload or b"") + len(each.raw or b"") + len(each.response or b"")
            for each in self.requests
        )

    def knows(self, correlation_id: int) -> bool:
        """Whether a response with that id may come."""
        requests = self.requests
        if requests and requests[0].correlation_id == correlation_id and not requests[0].token:
            return True
        self._number()
        return self._places.get(correlation_id, -1) >= self._numbered - len(requests)

    def _number(self) -> None:
        """Number the requests that came since, each once: a broker may send any number of responses
        to nothing. Whoever has left, left from the front, so the last numbers are pending."""
        requests, last = self.requests, self._last
        new = list(takewhile(lambda each: each is not last, reversed(requests)))
        if len(self._places) + len(new) > 2 * MAX_PENDING:
            self._places.clear()
            self._numbered, new = 0, list(reversed(requests))
        for number, each in enumerate(reversed(new), self._numbered):
            if not each.token:
                self._places[each.correlation_id] = number
        self._numbered += len(new)
        self._last = requests[-1] if requests else None
