"""Reads the first bytes of requests, as far as forwarding needs them, and pairs responses with
requests: brokers respond in the order of the requests of a connection. Bodies are not decoded."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import takewhile
from typing import Final, NamedTuple, TypeAlias

from kafkascope.captures.proxy_protocol import V2
from kafkascope.dissectors.registry import APIS, Decoded, layout_of, request_header_version
from kafkascope.proxy.limits import LIMITS

Bytes: TypeAlias = bytes | bytearray | memoryview

# Size, key, version, correlation id and the client id's length.
FIXED_BYTES: Final = 14
PRODUCE: Final = 0

_FIXED = struct.Struct(">ihhih")
_SHORT = struct.Struct(">h")


class Head(NamedTuple):
    """The header of a request, and whether it has a response."""

    size: int
    """As its size field says: bytes that follow the field."""
    key: int
    version: int
    correlation_id: int
    client_id: str | None
    answered: bool
    """False for a Produce with acks=0."""


class _Short(Exception):
    """More bytes are needed."""


def read_head(data: Bytes, at: int, end: int) -> Head | int:
    """Read the head of the request whose size field is at `at`, or say how many of its bytes are
    needed.

    `ValueError` when the bytes are no request.
    """
    have = end - at
    if have < FIXED_BYTES:
        if have >= 4:
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            if size < FIXED_BYTES - 4:
                return _short_request(data, at, end, size)
        return FIXED_BYTES
    size, key, version, correlation_id, length = _FIXED.unpack_from(data, at)
    if size < FIXED_BYTES - 4:
        return _short_request(data, at, end, size)
    if length < -1 or length > size - 10:
        raise ValueError(f"a client id of {length} bytes")
    body = at + FIXED_BYTES + max(length, 0)
    if body > end:
        return int(body - at)
    client_id = str(data[at + FIXED_BYTES : body], "utf-8", "replace") if length >= 0 else None
    answered = True
    if key == PRODUCE:
        try:
            answered = _acks(data, body, end, version) != 0
        except _Short:
            most = min(size + 4, LIMITS.produce_head_bytes)
            if have < most:
                return int(min(most, max(2 * have, 64)))
    return Head(size, key, version, correlation_id, client_id, answered)


def _short_request(data: Bytes, at: int, end: int, size: int) -> Head | int:
    """Read a ControlledShutdown v0, which has no client id; no other request is so short."""
    if size < 8:
        raise ValueError(f"a size of {size}")
    if end - at < 12:
        return 12
    _, key, version, correlation_id = struct.unpack_from(">ihhi", data, at)
    if request_header_version(key, version) != 0:
        raise ValueError("no room for a client id")
    return Head(size, key, version, correlation_id, None, True)


@lru_cache(256)
def _produce_form(version: int) -> tuple[bool, bool]:
    """Whether a Produce is flexible, and whether a transactional id stands before its acks; for
    versions that are not known as in the nearest one that is."""
    known = APIS[PRODUCE].versions
    layout = layout_of("ProduceRequest", min(max(version, known.low), known.high))
    return layout.flexible, layout.has("transactional_id")


def _acks(data: Bytes, at: int, end: int, version: int) -> int:
    """The acks of a Produce whose body, or whose header's tags, are at `at`."""
    flexible, transactional = _produce_form(version)
    if flexible:
        count, at = _uvarint(data, at, end)
        for _ in range(count):
            _, at = _uvarint(data, at, end)
            size, at = _uvarint(data, at, end)
            at += size
        length, at = _uvarint(data, at, end)
        at += max(length - 1, 0)
    elif transactional:
        length = _int16(data, at, end)
        at += 2 + max(length, 0)
    return _int16(data, at, end)


def _int16(data: Bytes, at: int, end: int) -> int:
    if at + 2 > end:
        raise _Short
    value: int = _SHORT.unpack_from(data, at)[0]
    return value


def _uvarint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= end or shift > 28:
            raise _Short
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def sane(view: memoryview, at: int) -> bool:
    """Whether a size at the start of a connection is plausible; those of TLS, HTTP and garbage are
    not."""
    # As sizes, records of TLS are 336 to 386 MB: their type, then version 3.x. Letters, with which
    # HTTP begins, are more than 512 MB.
    first = view[at]
    if first in (0x14, 0x15, 0x16, 0x17) and view[at + 1] == 3:
        return False
    if first == V2[0] and view[at : at + 4] == V2[:4]:
        return False  # 218 MB, or a header of the PROXY protocol
    return first < 0x20


# Of a frame: bytes that follow the field.
SIZE: Final = struct.Struct(">i")


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
    """Comment of that response, for the recording."""
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

    def __init__(self, limit: int = LIMITS.pending_requests) -> None:
        self.requests: deque[PendingRequest] = deque(maxlen=limit)
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
        self.requests.append(request)

    def respond(self, request: PendingRequest, payload: bytes) -> None:
        """Respond to a request in the broker's place, when its turn comes (`own_response`)."""
        request.response = SIZE.pack(len(payload)) + payload
        self.add(request)
        self.own += 1

    def front(self) -> PendingRequest | None:
        return self.requests[0] if self.requests else None

    def pop(self) -> None:
        """Remove the first request: its response was forwarded, or will not come."""
        if self.requests:
            self.requests.popleft()

    def own_response(self) -> PendingRequest | None:
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
        """Number the requests that came since, each once: a broker may send any number of unmatched
        responses. Requests leave from the front, so the last numbers are pending."""
        requests, last = self.requests, self._last
        new = list(takewhile(lambda each: each is not last, reversed(requests)))
        if len(self._places) + len(new) > 2 * (requests.maxlen or 0):
            self._places.clear()
            self._numbered, new = 0, list(reversed(requests))
        for number, each in enumerate(reversed(new), self._numbered):
            if not each.token:
                self._places[each.correlation_id] = number
        self._numbered += len(new)
        self._last = requests[-1] if requests else None
