"""The nouns of this package: from the bytes of one direction to a request with its answer.

    Chunk | Gap  ->  Frame  ->  Request / Response  ->  Exchange  ->  Row (rows.py)

Values only: nothing here reads, decides or formats. Time is integer nanoseconds since 1970 UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, Self, TypeAlias, cast

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.facts import BodyFacts
    from kafkascope.analyzer.bodies.fetch_sessions import FetchSession
    from kafkascope.analyzer.requestlog.model import BrokerTimes
    from kafkascope.captures.model import Connection, Endpoint, TlsSummary
    from kafkascope.dissectors.codec.reader import Body
    from kafkascope.dissectors.layout import Layout
    from kafkascope.dissectors.registry import Decoded, RequestHeader
    from kafkascope.schemas.http_head import HttpHead

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
"""States of exchanges; sessions store the places."""
Side = Literal["request", "response"]
Severity = Literal["error", "warning", "note", "chat"]
Cut = Literal["", "gap", "end", "too-large"]


class Part(NamedTuple):
    """Where consecutive bytes of a frame are in the input: one packet's share."""

    file: int
    at: int
    """Offset of the first byte in the (uncompressed) file."""
    size: int
    packet: int
    """Packet number."""


class Frame(NamedTuple):
    """One length-prefixed unit of a direction."""

    payload: bytes
    """Bytes after the size; shorter than `size` if the frame is cut."""
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


class Unmade(NamedTuple):
    """A frame that is made on first use."""

    make: Callable[[], Frame]
    offset: int
    """As that of the frame."""


class Spot(NamedTuple):
    """First packet, times and size of a frame, for rows."""

    packet: int
    """Number of the packet with its first byte."""
    first_ns: int
    last_ns: int
    wire_bytes: int


spot = partial(tuple.__new__, Spot)


def spot_of(frame: Frame) -> Spot:
    """Return the first packet, times and size of a frame."""
    return spot((frame.parts[0].packet, frame.first_ns, frame.last_ns, frame.size + 4))


class Origin(NamedTuple):
    """Where an exchange begins. A packet belongs to one direction of one connection, so an origin
    is unique in an input, and origins sort as exchanges begin."""

    packet: int
    """Number of the packet with the first byte of the request; of the response where no request was
    seen."""
    offset: int
    """Offset of that byte in its stream; in the plaintext, inside TLS."""


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
    """Decodes a message on first use; it is known before that it can be decoded."""

    layout: Layout
    """Layout of its body."""
    decode: Callable[[Frame, RequestHeader], Decoded | None]
    """Makes it of its frame and the request's header; None where it cannot be made after all."""
    body: Callable[[], Body | None] | None = None
    """Returns the body alone, where no frame is needed for it."""


class _Message:
    """A frame with, when it could be decoded, its body."""

    __slots__ = ("_decoded", "_frame", "header", "spot")

    def __init__(
        self,
        frame: Frame | Unmade,
        header: RequestHeader | None,
        decoded: Decoded | Later | None,
        spot: Spot | None = None,
    ) -> None:
        self._frame = frame
        self.spot = spot or spot_of(cast("Frame", frame))
        """The part of its frame that a row needs."""
        self.header = header
        """Header of the request; None for raw SASL tokens and opaque bytes, and with a response
        that is not decoded later."""
        self._decoded = decoded

    @property
    def frame(self) -> Frame:
        found = self._frame
        if type(found) is Unmade:
            self._frame = found = found.make()
        return cast("Frame", found)

    @property
    def offset(self) -> int:
        """Stream offset of its frame."""
        return self._frame.offset

    @property
    def decoded(self) -> Decoded | None:
        found = self._decoded
        if type(found) is Later:
            assert self.header is not None
            self._decoded = found = found.decode(self.frame, self.header)
        return cast("Decoded | None", found)

    @property
    def layout(self) -> Layout | None:
        """The layout of the body; None for one that cannot be decoded."""
        found = self._decoded
        return None if found is None else found.layout

    @property
    def body(self) -> Body | None:
        found = self._decoded
        if type(found) is Later and found.body is not None:
            return found.body()
        return None if self.decoded is None else self.decoded.body

    def _parts(self) -> tuple[Frame, RequestHeader | int | None, Decoded | None]:
        return self.frame, self.header, self.decoded

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._parts() == cast("Self", other)._parts()

    def __hash__(self) -> int:
        return hash(self.frame)

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._parts()!r}"


class Request(_Message):
    """A frame of the client with its header."""

    __slots__ = ()


class Response(_Message):
    """A frame of the broker."""

    __slots__ = ("correlation_id",)

    def __init__(
        self,
        frame: Frame | Unmade,
        correlation_id: int | None,
        decoded: Decoded | Later | None,
        spot: Spot | None = None,
        request_header: RequestHeader | None = None,
    ) -> None:
        """`request_header`: the header of its request, where it is decoded later."""
        super().__init__(frame, request_header, decoded, spot)
        self.correlation_id = correlation_id
        """None for raw SASL tokens and opaque bytes."""

    def _parts(self) -> tuple[Frame, RequestHeader | int | None, Decoded | None]:
        return self.frame, self.correlation_id, self.decoded


class ZooKeeperFacts(NamedTuple):
    """Subject of a ZooKeeper message."""

    session: int | None
    """Id of the session; None before the handshake was seen."""
    path: str | None
    """The node in request or response; None if there is none, or several."""
    event: str
    """Type of a watch event; else empty."""
    zxid: int | None
    """Zxid of the answer or event."""

    @property
    def session_id(self) -> str | None:
        """The session's id as ZooKeeper prints it."""
        return None if self.session is None else f"{self.session & (1 << 64) - 1:#x}"


Cause: TypeAlias = Literal["client", "broker", "network"]
Point: TypeAlias = Literal["client", "broker", "between"]


class Stages(NamedTuple):
    """Where the time of an exchange went (`exchanges.stages`), in nanoseconds; None: not known."""

    request_ns: int | None = None
    server_ns: int | None = None
    response_ns: int | None = None
    trip_ns: int | None = None
    retransmissions: int | None = None
    closed_ns: int | None = None
    """How long a receive window of 0 was announced."""
    stalled_by: Cause | None = None
    point: Point | None = None


@dataclass(slots=True)
class Logged:
    """What a broker's request log says of an exchange beyond its messages. The bytes of its frames
    were written anew, so they tell no size."""

    rank: int
    """Position of its line in the order of reading."""
    total_ns: int
    """From the request's last byte, read by the broker, to the response, sent."""
    times: BrokerTimes
    listener: str
    forwarded: bool
    """Another broker sent it on to the controller, inside an Envelope."""
    deprecated: bool
    """Kafka 4.0 removes this version, as the line says."""
    record_sizes: Mapping[tuple[Any, int], int]
    """Bytes of records by topic (name or id) and partition."""
    unknown: tuple[str, ...] = ()
    """Fields of the bodies that the line does not hold, dotted, after `request` or `response`."""
    begins: bool = False
    """The first request of its connection was logged, and no login came before."""
    reads: dict[tuple[str | bytes, int], tuple[int, int | None]] = field(default_factory=dict)
    """Reads of a Fetch by topic and partition: the offset that records were read from, and that of
    the reader's next Fetch; None where no next one was logged."""
    late_ns: int = 0
    """How far the time of its line may be from the end of the request."""
    counterpart: str = ""
    """Id of the other exchange of a request that was forwarded."""
    packets: bool = False
    """Its messages come from a capture of the same minutes."""


UNNUMBERED: Final = 0


# Not frozen, though nobody changes it: a frozen one takes three times as long to make, and there
# are millions.
@dataclass(slots=True, unsafe_hash=True)
class Exchange:
    """A request with its response, or with the reason there is none. Only its number is set after
    it is emitted."""

    number: int
    """Rank by origin over all connections, from 1; `UNNUMBERED` while it is not known
    (`kernel.numbering`)."""
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
    """Name and version of the client library, from ApiVersions on this connection."""
    user: str = ""
    """The authenticated user of this connection, if the mechanism shows it."""
    mechanism: str = ""
    """Mechanism of SASL, as this connection's handshake named it."""
    reason: str = ""
    """A sentence: why there is no response, or what opaque bytes look like."""
    undecoded: tuple[Undecoded, ...] = ()
    notes: tuple[Note, ...] = ()
    fetch_session: FetchSession | None = None
    """Session of a Fetch, ShareFetch or ShareAcknowledge within a session: what it implies."""
    ended_ns: int | None = None
    """When the connection of a lost request ended, where `reason` says so: the time of the FIN or
    RST, not of packets after it."""
    wait_ns: int = 0
    """The part of the latency that the client asked for (`analyzer.waits`)."""
    tls: TlsSummary | None = None
    """The TLS around it, decrypted or not; None for plaintext."""
    facts: BodyFacts | None = field(default=None, compare=False, repr=False)
    """Facts of its bodies, if they were read without decoding the bodies; None: see the bodies."""
    zookeeper: ZooKeeperFacts | None = None
    """Facts of a message of ZooKeeper's protocol; None for Kafka's."""
    stages: Stages | None = field(default=None, compare=False, repr=False)
    """Where its time went, where that was found before; None: see the path of its connection."""
    logged: Logged | None = field(default=None, compare=False, repr=False)
    """Its line in a broker's request log; None: no log was read, or it has no line."""

    @property
    def sizeless(self) -> bool:
        """Whether its bytes on the wire are not known: it comes from a request log alone."""
        return self.logged is not None and not self.logged.packets

    @property
    def origin(self) -> Origin:
        """Where it begins: its identity, also when parts of an input are read separately."""
        side = self.request or self.response
        assert side is not None
        if self.logged is not None and not self.logged.packets:
            return Origin(side.spot.first_ns, self.logged.rank)
        return Origin(side.spot.packet, side.offset)

    @property
    def request_body(self) -> dict[str, Any] | None:
        return None if self.request is None else self.request.body

    @property
    def response_body(self) -> dict[str, Any] | None:
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
        """First byte of the request to last byte of the response; in a request log the broker's
        total, also of a request that gets no response."""
        if self.request is None or self.response is None:
            return self.logged.total_ns if self.logged is not None and self.sizeless else None
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
        return None if self.request is None or self.sizeless else self.request.spot.wire_bytes

    @property
    def response_bytes(self) -> int | None:
        """Bytes on the wire, size field included."""
        return None if self.response is None or self.sizeless else self.response.spot.wire_bytes


class HttpExchange(NamedTuple):
    """A request of HTTP with its response, as schema registries are spoken to."""

    client: Endpoint
    server: Endpoint
    time_ns: int
    """Time of the response's first byte."""
    request: HttpHead
    request_body: bytes
    response: HttpHead
    response_body: bytes
    dropped: str = ""
    """Why one of the bodies is empty though it was not."""


class HttpConsumer(Protocol):
    """Consumer of the HTTP exchanges of a capture."""

    def wants(self, request: HttpHead) -> bool:
        """Return whether an exchange is worth its memory; decided before its bodies come."""

    def take(self, exchange: HttpExchange) -> None:
        """Take an exchange that was wanted."""
