"""Requests on their way: what a connection has to remember until the answer is through."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkascope.dissectors.registry import Decoded

MAX_PENDING: Final = 65_536
"""Clients keep 5 to 1000 in flight. More means that no answers come (a Produce of an unknown
version with acks=0): the oldest are forgotten."""


SIZE: Final = struct.Struct(">i")
"""Of a frame: bytes that follow the field."""


class PendingRequest:
    """A request whose answer is not through yet."""

    client_id: str | None = None
    quiet = 0
    """The edition of the rules none of which cares for it."""
    token = False
    """A raw SASL token, whose answer has no correlation id."""
    response: bytes | None = None
    """A whole frame that we answer with; the broker was not asked."""
    comment = ""
    """Of that answer, for the recording."""
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


class Pairing:
    """The requests of one connection, oldest first. Brokers answer in that order."""

    __slots__ = ("_requests", "forgotten")

    def __init__(self) -> None:
        self._requests: deque[PendingRequest] = deque()
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[PendingRequest]:
        return iter(self._requests)

    def add(self, request: PendingRequest) -> None:
        """Wait for its answer."""
        self._requests.append(request)
        if len(self._requests) > MAX_PENDING:
            self._requests.popleft()
            self.forgotten += 1

    def front(self) -> PendingRequest | None:
        """The request that is answered next."""
        return self._requests[0] if self._requests else None

    def pop(self) -> None:
        """The front is through."""
        if self._requests:
            self._requests.popleft()

    @property
    def kept(self) -> int:
        """Bytes of requests and answers that are kept for those who look at the answer."""
        return sum(
            len(each.payload or b"") + len(each.raw or b"") + len(each.response or b"")
            for each in self._requests
        )

    def knows(self, correlation_id: int) -> bool:
        """Whether an answer with that id may come."""
        requests = self._requests
        if requests and requests[0].correlation_id == correlation_id and not requests[0].token:
            return True
        return any(e.correlation_id == correlation_id and not e.token for e in requests)
