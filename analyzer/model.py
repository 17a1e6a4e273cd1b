"""The nouns of this package: from the bytes of one direction to a request with its answer.

    Chunk | Gap  ->  Frame  ->  Request / Response  ->  Exchange  ->  Row (rows.py)

Values only: nothing here reads, decides or formats. Time is integer nanoseconds since 1970 UTC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, cast

from kafkascope.captures.model import Chunk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkascope.analyzer.bodies.facts import BodyFacts
    from kafkascope.analyzer.bodies.fetch_sessions import FetchSession
    from kafkascope.captures.model import Connection, Endpoint, TlsSummary
    from kafkascope.dissectors.codec.reader import Body
    from kafkascope.dissectors.layout import Layout
    from kafkascope.dissectors.registry import Decoded, RequestHeader

State = Literal[
    "answered", "open", "lost", "no-reply", "orphan", "opaque", "event", "refused", "unreachable"
]
"""The last two are of connects without a connection: see `connects`."""
STATES: Final[tuple[State, ...]] = (
    "answered",
    "open",
    "lost",
    "no-reply",
    "orphan",
    "opaque",
    "event",
)
"""Of exchanges; sessions store the places."""
Side = Literal["request", "response"]
Severity = Literal["error", "warning", "note", "chat"]
Cut = Literal["", "gap", "end", "too-large"]


class Part(NamedTuple):
    """Where consecutive bytes of a frame stand in the input: one packet's share."""

    file: int
    at: int
    """Offset of the first byte in the (uncompressed) file."""
    size: int
    packet: int
    """Packet number."""


class Frame(NamedTuple):
    """One length-prefixed unit of a direction."""

    payload: bytes
    """What follows the size; shorter than `size` when the frame is cut."""
    offset: int
    """Stream offset of the size field."""
    size: int
    """As the size field says."""
    first_ns: int
    """Time of the first byte of the size field."""
    last_ns: int
    """Time of the last byte that is there."""
    parts: tuple[Part, ...]
    """In stream order, from the size field on."""
    cut: Cut = ""
    """Why bytes are missing: a gap, the end of the connection or capture, our own size limit."""

    @property
    def wire_bytes(self) -> int:
        """Bytes on the wire, the size field included."""
        return self.size + 4

    @classmethod
    def of(cls, chunk: Chunk) -> Frame:
        """Return the frame that the bytes of one packet are."""
        data = chunk.data
        _, now, packet, file, at = chunk.pieces[0]
        parts = (_part((file, at, len(data), packet)),)
        return _frame((data[4:], chunk.offset, len(data) - 4, now, now, parts, ""))


_part = partial(tuple.__new__, Part)
"""Makes a `Part` of a tuple without a Python frame; so `_frame`, `spot`."""
_frame = partial(tuple.__new__, Frame)

Whole: TypeAlias = Frame | Chunk
"""A frame, or the bytes of the one packet that it is: made a `Frame` of when somebody asks."""


class Spot(NamedTuple):
    """What a row tells of a frame."""

    packet: int
    """Number of the packet with its first byte."""
    first_ns: int
    last_ns: int
    wire_bytes: int


spot = partial(tuple.__new__, Spot)


def spot_of(whole: Whole) -> Spot:
    """Return what a row tells of a frame."""
    if type(whole) is Chunk:
        _, now, packet, _, _ = whole.pieces[0]
        return spot((packet, now, now, len(whole.data)))
    frame = cast("Frame", whole)
    return spot((frame.parts[0].packet, frame.first_ns, frame.last_ns, frame.size + 4))


def first_of(whole: Whole) -> int:
    """Return the number of the packet with the first byte of a frame."""
    if type(whole) is Chunk:
        return whole.pieces[0].packet
    return cast("Frame", whole).parts[0].packet


def last_of(whole: Whole) -> int:
    """Return the number of the packet with the last byte of a frame that was seen."""
    if type(whole) is Chunk:
        return whole.pieces[-1].packet
    return cast("Frame", whole).parts[-1].packet


class Undecoded(NamedTuple):
    """Bytes that should have been (part of) a message, with the reason why they are not."""

    side: Side
    reason: str
    """One word: surplus, malformed, header, other-layout, unknown-api, unknown-version, gap, end,
    too-large, opaque..."""
    offset: int
    """In the frame's payload."""
    bytes: int
    text: str = ""
    """One line for people."""
    path: str = ""
    """Dotted path of the value that could not be read."""


class Note(NamedTuple):
    """A finding about an exchange (Wireshark's expert info)."""

    severity: Severity
    text: str
    side: Side | None = None


class Later(NamedTuple):
    """What decodes a message when somebody asks for it; by then it is known that it can be
    decoded."""

    layout: Layout
    """Of its body."""
    decode: Callable[[Frame, RequestHeader, Body | None], Decoded]
    """Makes it of its frame, the request's header and the body, if that was read."""


class Request:
    """A frame of the client with its header and, when it could be decoded, its body."""

    __slots__ = ("_body", "_decoded", "_frame", "header", "spot")

    def __init__(
        self,
        frame: Whole,
        header: RequestHeader | None,
        decoded: Decoded | Later | None,
        body: Body | None = None,
        spot: Spot | None = None,
    ) -> None:
        self._frame = frame
        self.spot = spot or spot_of(frame)
        """What a row tells of its frame."""
        self.header = header
        """None for raw SASL tokens and opaque bytes."""
        self._decoded = decoded
        self._body = body

    @property
    def frame(self) -> Frame:
        """Where it came in."""
        found = self._frame
        if type(found) is Chunk:
            self._frame = found = Frame.of(found)
        return cast("Frame", found)

    @property
    def decoded(self) -> Decoded | None:
        """The decoded message."""
        found = self._decoded
        if type(found) is Later:
            assert self.header is not None
            self._decoded = found = found.decode(self.frame, self.header, self._body)
        return cast("Decoded | None", found)

    @property
    def layout(self) -> Layout | None:
        """The layout of the body; None for one that cannot be decoded."""
        found = self._decoded
        return None if found is None else found.layout

    def __eq__(self, other: object) -> bool:
        return type(other) is Request and (self.frame, self.header, self.decoded) == (
            other.frame,
            other.header,
            other.decoded,
        )

    def __hash__(self) -> int:
        return hash((self.frame, self.header))

    def __repr__(self) -> str:
        return f"Request({self.frame!r}, {self.header!r}, {self.decoded!r})"

    @property
    def body(self) -> Body | None:
        """The decoded body."""
        if self._body is not None:
            return self._body
        return None if self.decoded is None else self.decoded.body


class Response:
    """A frame of the broker with, when it could be decoded, its body."""

    __slots__ = ("_asked", "_body", "_decoded", "_frame", "correlation_id", "spot")

    def __init__(
        self,
        frame: Whole,
        correlation_id: int | None,
        decoded: Decoded | Later | None,
        body: Body | None = None,
        spot: Spot | None = None,
        asked: RequestHeader | None = None,
    ) -> None:
        """`asked`: the header of its request, where it is decoded later."""
        self._frame = frame
        self.spot = spot or spot_of(frame)
        """What a row tells of its frame."""
        self.correlation_id = correlation_id
        """None for raw SASL tokens and opaque bytes."""
        self._decoded = decoded
        self._body = body
        self._asked = asked

    @property
    def frame(self) -> Frame:
        """Where it came in."""
        found = self._frame
        if type(found) is Chunk:
            self._frame = found = Frame.of(found)
        return cast("Frame", found)

    @property
    def decoded(self) -> Decoded | None:
        """The decoded message."""
        found = self._decoded
        if type(found) is Later:
            assert self._asked is not None
            self._decoded = found = found.decode(self.frame, self._asked, self._body)
        return cast("Decoded | None", found)

    @property
    def layout(self) -> Layout | None:
        """The layout of the body; None for one that cannot be decoded."""
        found = self._decoded
        return None if found is None else found.layout

    def __eq__(self, other: object) -> bool:
        return type(other) is Response and (self.frame, self.correlation_id, self.decoded) == (
            other.frame,
            other.correlation_id,
            other.decoded,
        )

    def __hash__(self) -> int:
        return hash((self.frame, self.correlation_id))

    def __repr__(self) -> str:
        return f"Response({self.frame!r}, {self.correlation_id!r}, {self.decoded!r})"

    @property
    def body(self) -> Body | None:
        """The decoded body."""
        if self._body is not None:
            return self._body
        return None if self.decoded is None else self.decoded.body


class ZooKeeperFacts(NamedTuple):
    """What a message of ZooKeeper is about."""

    session: int | None
    """Id of the session; None before the handshake was seen."""
    path: str | None
    """The node that is asked for or told of; None where there is none, or many."""
    event: str
    """Type of a watch event; else empty."""
    zxid: int | None
    """Of the answer or event."""

    @property
    def session_id(self) -> str | None:
        """The session's id as ZooKeeper prints it."""
        return None if self.session is None else f"{self.session & (1 << 64) - 1:#x}"


# Not frozen, though nobody changes it: a frozen one takes three times as long to make, and there
# are millions.
@dataclass(slots=True, unsafe_hash=True)
class Exchange:
    """A request with its response, or with the reason there is none. Never changes once told."""

    number: int
    """Rank by first request byte over all connections, from 1."""
    id: str
    """Stable name: a hash of the input's fingerprint and the place of the first byte."""
    state: State
    connection: Connection
    client: Endpoint
    broker: Endpoint
    api_key: int | None
    """None for raw SASL tokens, orphans and opaque bytes."""
    api: str
    """Kafka's name; `Api 123` for an unknown key; SaslToken for raw tokens; else empty."""
    api_version: int | None
    correlation_id: int | None
    client_id: str | None
    request: Request | None
    response: Response | None
    software: str = ""
    """Name and version of the client library, once ApiVersions told it on this connection."""
    user: str = ""
    """Who authenticated on this connection, as far as the mechanism tells."""
    mechanism: str = ""
    """Of SASL, as this connection's handshake named it."""
    reason: str = ""
    """A sentence: why there is no response, or what opaque bytes look like."""
    undecoded: tuple[Undecoded, ...] = ()
    notes: tuple[Note, ...] = ()
    fetch_session: FetchSession | None = None
    """Of a Fetch, ShareFetch or ShareAcknowledge within a session: what it implies."""
    ended_ns: int | None = None
    """When the connection of a lost request ended, where `reason` says so: the time of the FIN or
    RST, not of packets behind it."""
    wait_ns: int = 0
    """The part of the latency that the client asked for (`analyzer.waits`)."""
    tls: TlsSummary | None = None
    """What it came out of, or could not be read in; None for what was sent in plain."""
    facts: BodyFacts | None = field(default=None, compare=False, repr=False)
    """What its bodies say, where that was read without all of them; None: see the bodies."""
    zookeeper: ZooKeeperFacts | None = None
    """Of a message of ZooKeeper's protocol; None for Kafka's."""

    @property
    def request_body(self) -> dict[str, Any] | None:
        """The decoded body of the request."""
        return None if self.request is None else self.request.body

    @property
    def response_body(self) -> dict[str, Any] | None:
        """The decoded body of the response."""
        return None if self.response is None else self.response.body

    @property
    def time_ns(self) -> int:
        """First byte of the request; of the response when there is no request."""
        side = self.request or self.response
        return side.spot.first_ns if side is not None else self.connection.first_ns

    @property
    def client_end(self) -> int:
        """0 where the client is the connection's `a`, which opened it; 1 where it is `b`. As
        `Connection.ends` takes it."""
        return int(self.broker != self.connection.b)

    @property
    def latency_ns(self) -> int | None:
        """First byte of the request to last byte of the response."""
        if self.request is None or self.response is None:
            return None
        return self.response.spot.last_ns - self.request.spot.first_ns

    @property
    def server_ns(self) -> int | None:
        """Last byte of the request to first byte of the response."""
        if self.request is None or self.response is None:
            return None
        return self.response.spot.first_ns - self.request.spot.last_ns

    @property
    def request_bytes(self) -> int | None:
        """Bytes on the wire, size field included."""
        return None if self.request is None else self.request.spot.wire_bytes

    @property
    def response_bytes(self) -> int | None:
        """Bytes on the wire, size field included."""
        return None if self.response is None else self.response.spot.wire_bytes


class HttpHead(NamedTuple):
    """The start line and headers of an HTTP message."""

    method: str
    """Of a request; empty for a response."""
    target: str
    """Path and query of a request, as sent."""
    status: int
    """Of a response; 0 for a request."""
    headers: Mapping[str, str]
    """By names in lower case; of equal names the values with commas between."""


class HttpExchange(NamedTuple):
    """A request of HTTP with its response, as schema registries are spoken to."""

    client: Endpoint
    server: Endpoint
    time_ns: int
    """Of the response's first byte."""
    request: HttpHead
    request_body: bytes
    response: HttpHead
    response_body: bytes
    dropped: str = ""
    """Why one of the bodies is empty though it was not."""


class HttpConsumer(Protocol):
    """What takes the HTTP exchanges of a capture."""

    def wants(self, request: HttpHead) -> bool:
        """Return whether an exchange is worth its memory; decided before its bodies come."""

    def take(self, exchange: HttpExchange) -> None:
        """Take an exchange that was wanted."""
