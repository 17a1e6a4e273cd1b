"""The values of this package: from a captured record to the bytes of a TCP stream.

Knows nothing of Kafka.

A connection has two directions. Direction 0 runs from `Connection.a` to `Connection.b`, direction 1
back; `a` is the side that opened the connection where the SYN was seen, else the sender of the
first packet seen (see `Connection.handshake`). Time is integer nanoseconds since 1970 UTC,
everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from kafkascope.captures.errors import CutShort
from kafkascope.kernel.path import Path

if TYPE_CHECKING:
    from kafkascope.kernel.pairs import Reader


class Packet(NamedTuple):
    """One captured record. A NamedTuple is cheap to make: each record outside of the bulk path gets
    one."""

    number: int
    """Wireshark's frame number: 1 for the first record of the whole input."""
    time_ns: int
    link_type: int
    """LINKTYPE_ value of its interface."""
    data: bytes
    """Captured bytes, from the link layer on."""
    length: int
    """Bytes on the wire; more than `len(data)` when the snaplen cut it."""
    file: int
    """Index of the input file."""
    at: int
    """Bytes from the start of that file (of the uncompressed content) to `data`."""
    interface: int
    """Number of the interface within its file; 0 in pcap."""


class Endpoint(NamedTuple):
    """An address and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


NAMELESS: Final = Endpoint("unknown", 0)
"""The broker of lines of a request log that do not name theirs (0.8)."""

Outcome = Literal["established", "alert", "rejected", "closed"]
"""How a TLS handshake ended. `alert`: with an alert that can be read; `rejected`: with an encrypted
one, by its size; `closed`: a side closed the connection before it was done."""


TlsError = Literal[
    "", "no-key-log", "no-secret", "no-handshake", "bad-secret", "unsupported", "damaged"
]
"""Why TLS cannot be read, or not all of it: no key log was given; it has no line for this
connection; the capture starts after the handshake; nothing authenticates with the log's secret;
a version or suite that cannot be decrypted; bytes are missing or were modified."""


class HandshakeResult(NamedTuple):
    """Result of a TLS handshake."""

    outcome: Outcome
    side: int | None = None
    """Direction of the side that ended a handshake that failed."""
    alert: int | None = None
    """Number of the alert, where it can be read."""


class Certificate(NamedTuple):
    """Facts of a certificate for people who look into failed TLS."""

    owner: str
    issuer: str
    names: tuple[str, ...]
    """Host names and addresses that it is for."""
    begin_ns: int
    end_ns: int
    """When it is good, both included."""


UNKNOWN_SERVER: Final = "unknown"
"""What a server speaks whose first bytes have no signature, and are no response either."""
UNKNOWN_TLS = "TLS"
"""Name of a version and a suite that nobody knows yet."""


class TlsSummary(NamedTuple):
    """Facts about the TLS around a message; the same for most messages of a connection."""

    version: str = ""
    suite: str = ""
    resumed: bool = False
    server_name: str = ""
    protocol: str = ""
    client: str = ""
    """Subject of the client's certificate."""

    @property
    def name(self) -> str:
        """Version and suite; `TLS` as long as neither is known."""
        return f"{self.version} {self.suite}".strip() or UNKNOWN_TLS

    @classmethod
    def named(
        cls, name: str, resumed: bool, server_name: str, protocol: str, client: str
    ) -> TlsSummary:
        """Return the one that has this `name`."""
        version, _, suite = name.rpartition(" ")
        if not suite.startswith(("TLS_", "0x")):
            version, suite = "" if name == UNKNOWN_TLS else name, ""
        return cls(version, suite, resumed, server_name, protocol, client)


_summary = lru_cache(4096)(TlsSummary)
"""Makes equal ones once: each message has one."""


@dataclass(slots=True, eq=False)
class Tls:
    """Facts about the TLS of a connection. Holds no secret."""

    result: HandshakeResult | None = None
    """How its first handshake ended; None: that is not known."""
    version: str = ""
    """The chosen one, as `TLS 1.3`."""
    suite: str = ""
    """The chosen one, as IANA names it."""
    resumed: bool = False
    random: bytes = b""
    """Client random of the first handshake, by which key logs name a connection."""
    server_name: str = ""
    """Server name that the client requested (SNI)."""
    protocol: str = ""
    """The chosen one (ALPN)."""
    offered: tuple[str, ...] = ()
    """Versions that the client offered, its favourite first."""
    suites: int = 0
    """How many suites the client offered."""
    client: str = ""
    """Subject of the client's certificate."""
    certificate: Certificate | None = None
    """The server's, of a handshake that failed."""
    client_certificate: Certificate | None = None
    """The client's, of a handshake that failed."""
    requested: bool = False
    """The server requested a client certificate (CertificateRequest)."""
    unauthenticated: bool = False
    """The client's Certificate message was empty."""
    presented: bool = False
    """The client sent something of the size of a certificate, in a handshake that failed."""
    cipher_suites: tuple[int, ...] = ()
    """Cipher suites that the client offered, of a handshake that failed."""
    answer: str = ""
    """Protocol of a server that answered the ClientHello without TLS: `HTTP`, say."""
    early_data: bool = False
    """The client sent data with its ClientHello."""
    updates: int = 0
    """KeyUpdates that could be read."""
    alerts: tuple[tuple[int, int], ...] = ()
    """(direction, number) of the first alerts that could be read, but for close_notify."""
    decrypted: tuple[int, int] = (0, 0)
    """Bytes of application data that could be read, per direction."""
    inside: str = ""
    """Protocol that it carries, if not Kafka, such as `HTTP`."""
    error: TlsError = ""
    note: str = ""
    """A sentence about `error`."""

    @property
    def name(self) -> str:
        """Version and suite."""
        return f"{self.version} {self.suite}".strip()

    @property
    def summary(self) -> TlsSummary:
        """What is known by now, for a message."""
        return _summary(
            self.version, self.suite, self.resumed, self.server_name, self.protocol, self.client
        )


Pair: TypeAlias = tuple[int, int]
"""A counter per direction, of what is rare: hundreds of thousands of connections share one."""
NONE: Final[Pair] = (0, 0)


def more(pair: Pair, direction: int, count: int = 1) -> Pair:
    """Return the counters with `count` more in a direction."""
    return (pair[0], pair[1] + count) if direction else (pair[0] + count, pair[1])


@dataclass(slots=True, eq=False)
class Connection:
    """One TCP conversation; all its events share the object.

    Its counters run ahead: whole blocks are counted before their events are delivered, so a value
    that is read at an event depends on how the input was cut into blocks. Ends, comment and
    `handshake` do not change after `Opened`.
    """

    number: int
    """From 0, in the order of first packets, as Wireshark's `tcp.stream`."""
    a: Endpoint
    b: Endpoint
    first_ns: int
    handshake: bool = False
    """The SYN or SYN-ACK was seen before any event, so `a` is certainly the side that connected and
    streams start at their first byte."""
    last_ns: int = 0
    handshake_ns: int | None = None
    """Time from SYN to the ACK that completes the handshake, where that came before any bytes."""
    packets: list[int] = field(default_factory=lambda: [0, 0])
    bytes: list[int] = field(default_factory=lambda: [0, 0])
    """Payload bytes that were captured, per direction, retransmissions included, but no
    copies with `translated` addresses."""
    retransmissions: Pair = NONE
    duplicates: Pair = NONE
    """Exact copies of a segment that the capture holds twice (not retransmissions)."""
    out_of_order: Pair = NONE
    keep_alives: Pair = NONE
    gap_bytes: Pair = NONE
    interface_comment: str = ""
    """Comment of the pcapng interface that the first packet came from; marks the proxy's broker
    leg."""

    translated: tuple[Endpoint, Endpoint] | None = None
    """`a` and `b` before or after address translation, or of a proxy's leg with the same bytes,
    where the capture holds both."""
    first_packet: int = 0
    """Number of its first packet; 0 where there are no packets."""
    tls: Tls | None = None
    """None: it has no TLS, or none was seen yet."""
    other: str = ""
    """What was found to be spoken in place of what a reader looks for, in words."""
    origin: Endpoint | None = None
    """The client that a load balancer connected for, by a header of the PROXY protocol."""
    via: str = ""
    """Address of that load balancer."""
    proxy_header: tuple[int, int] = NONE
    """Version and bytes of such headers before the client's first byte; 0 where there is none."""
    server: str = ""
    """What the side that was connected to speaks by its first bytes, where that is no more what a
    reader looks for: `SSH: SSH-2.0-OpenSSH_9.6` (`signatures.words_of`), or `UNKNOWN_SERVER`."""

    path: Path = field(default_factory=Path)
    """What its packets tell of the way between its ends."""
    forwarded: bool = False
    """Whether it is the leg of a proxy that carries the bytes of another connection."""
    leg_ns: int = 0
    """`handshake_ns` of a proxy's leg that carries its bytes on: a request pays for both."""
    compared: bool = False
    """Whether its bytes are compared with those of another connection, so that no `reader` may have
    them at once."""
    reader: Reader | None = None
    """What takes the bytes at once while all is ordinary, in place of events; None: nobody."""

    def __getstate__(self) -> list[object]:
        """Return the values for another process, which has no such `reader`."""
        state = [None if each == "reader" else getattr(self, each) for each in self.__slots__]
        return [each.dump() if isinstance(each, Path) else each for each in state]

    def __setstate__(self, state: list[Any]) -> None:
        for name, value in zip(self.__slots__, state, strict=True):
            setattr(self, name, Path().load(value) if name == "path" else value)

    def ends(self, client: int = 0) -> tuple[Endpoint, Endpoint]:
        """Return the client, where it is at the end of `client`, and its broker."""
        a, b = (self.b, self.a) if client else (self.a, self.b)
        return self.origin or a, b

    @property
    def round_trip_ns(self) -> int | None:
        """Round trip between both ends, by the handshake, and that of a proxy's leg: without the
        seconds after which a SYN or its answer was sent again, where both parts were captured."""
        path = self.path
        if path.trip0 < 0 or path.trip1 < 0 or self.translated is not None:
            return None if self.handshake_ns is None else self.handshake_ns + self.leg_ns
        return path.trip0 + path.trip1

    @property
    def decrypted(self) -> bool:
        """Whether its bytes, as far as they were delivered, came out of TLS."""
        return self.tls is not None and any(self.tls.decrypted)

    @property
    def used(self) -> bool:
        """Whether bytes have come, or the ACK that completes the handshake."""
        return sum(self.bytes) > 0 or self.handshake_ns is not None


# In place of the number of a packet: after all of them.
BEHIND_ALL: Final = 1 << 62


class Piece(NamedTuple):
    """The part of a chunk that came from one packet."""

    start: int
    """Offset in `Chunk.data` of the piece's first byte; it ends where the next one starts."""
    time_ns: int
    packet: int
    file: int
    at: int
    """Offset in the file of the piece's first byte."""


@dataclass(slots=True)
class Chunk:
    """Consecutive bytes of one direction, each exactly once, in order."""

    connection: Connection
    direction: int
    offset: int
    """Stream offset of the first byte: 0 is the first byte of the direction that was (or could
    have been) seen."""
    data: bytes
    pieces: list[Piece]
    """At least one, by `start`; the first has `start` 0."""

    def by_piece(self) -> Iterator[Chunk]:
        """Yield the same bytes as one chunk for each packet."""
        ends = [piece.start for piece in self.pieces[1:]]
        for piece, end in zip(self.pieces, [*ends, len(self.data)], strict=True):
            start, own = piece.start, [piece._replace(start=0)]
            data = self.data[start:end]
            yield Chunk(self.connection, self.direction, self.offset + start, data, own)

    def behind(self, count: int) -> Chunk:
        """Return the chunk without its first bytes, of which there are more than `count`."""
        pieces = self.pieces
        first = next(
            (n for n, piece in enumerate(pieces[1:]) if piece.start > count), len(pieces) - 1
        )
        left = []
        for piece in pieces[first:]:
            cut = max(0, count - piece.start)
            left.append(piece._replace(start=piece.start + cut - count, at=piece.at + cut))
        data = self.data[count:]
        return Chunk(self.connection, self.direction, self.offset + count, data, left)


@dataclass(slots=True)
class Gap:
    """Bytes that the capture does not hold: lost, cut by the snaplen, or before its start."""

    connection: Connection
    direction: int
    offset: int
    size: int | None
    """None: not known, because the capture starts in the middle; then `offset` is 0."""
    time_ns: int
    reason: Literal["lost", "cut", "midstream", "limit"]
    """`limit`: we dropped bytes ourselves, to stay within the memory limit."""


@dataclass(slots=True)
class Opened:
    """The first packet of a connection."""

    connection: Connection


@dataclass(slots=True)
class Closed:
    """The end of a connection or of one direction."""

    connection: Connection
    direction: int | None
    """The side that ended its direction with FIN, or that sent the RST; None when both are over
    for another reason."""
    how: Literal["fin", "rst", "reuse", "idle", "end"]
    """`reuse`: a new connection with the same ports; `idle`: nothing for a long time; `end`: of
    the capture, at the time of its last packet."""
    time_ns: int
    used: bool = False
    """`Connection.used` by then: packets that come later, as on a connection whose RST was forged,
    are counted before a reader of whole blocks hears of this."""


class Resolved(NamedTuple):
    """A host name with its addresses, according to a capture or to a person."""

    name: str
    """In lower case, without the dot at its end."""
    hosts: tuple[str, ...]
    """As in `Endpoint`, sorted."""
    source: str
    """dns, block (of a pcapng file), hosts (a file), sni (of a TLS hello)."""


StreamEvent = Opened | Chunk | Gap | Closed
"""An event of reassembly; they come in the order of the packets that caused them."""


@dataclass(slots=True)
class Statistics:
    """Counters of a source. Readers of it count; anybody may look at any time."""

    packets: int = 0
    captured_bytes: int = 0
    """Bytes of all packets, as captured."""
    segments: int = 0
    connections: int = 0
    duplicates: int = 0
    """Exact copies of a segment."""
    cut_packets: int = 0
    """TCP segments whose payload is not all there."""
    mirrored: int = 0
    """Those of them in frames that are whole: what sent these to the capturing host had cut the
    packets inside, as switches and clouds do that mirror traffic."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Packets without a usable TCP segment, by reason: "not ip", "not tcp", "fragment", "cut",
    "malformed", "unknown link type"."""
    unknown_links: dict[int, int] = field(default_factory=dict)
    """Packets by LINKTYPE_ number that we do not know."""
    translated: int = 0
    """Connections that were captured before and after address translation."""
    relayed: int = 0
    """Connections from a proxy that carry the bytes of the client's connection."""
    parted: int = 0
    """Those of them that went on with other bytes."""
    moved: int = 0
    """Packets that came after later ones in their file, and were put in order."""
    dropped: int = 0
    """Packets that the capturing program says it lost."""
    first_ns: int | None = None
    last_ns: int | None = None
    damage: list[CutShort] = field(default_factory=list)

    def saw(self, packet: Packet) -> None:
        self.captured_bytes += len(packet.data)
        if self.first_ns is None:
            self.first_ns = self.last_ns = packet.time_ns
        else:
            self.last_ns = max(self.last_ns or 0, packet.time_ns)

    def skip(self, reason: str, link_type: int) -> None:
        """Count a packet without a usable TCP segment."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        if reason == "unknown link type":
            self.unknown_links[link_type] = self.unknown_links.get(link_type, 0) + 1
