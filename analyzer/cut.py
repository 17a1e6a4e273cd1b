"""Part of a capture as a capture of its own: chosen exchanges, composed anew as TCP conversations.

Composed and not copied, because packets do not end where messages do: so the streams are complete,
with handshakes and no holes, and secrets are hidden. Times of first and last bytes stay.

Two steps, for endless inputs do not fit into memory: `Cutting.add` notes where the bytes of an
exchange stand, `Cutting.write` reads them again in the order of time. Sans-I/O, apart from the
`Read` and `Sink` that it is given.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from analyzer import secrets
from analyzer.columns import Frames, Read
from analyzer.model import Exchange, Frame
from analyzer.offline import BROKER_LEG
from analyzer.redaction import Redaction
from captures.build import MAX_MSS, MSS, Composer
from captures.model import Closed, Connection, Endpoint, Opened
from captures.tcp import ACK, FIN, MASK, RST, SYN
from captures.write import PcapngWriter, Sink

TOKEN: Final = -2
OPAQUE: Final = -1
"""In the column of api keys: a raw SASL token, and bytes without a readable header."""

ISN_STEP: Final = 0x2545F49
"""Connections begin at different sequence numbers, so that one on reused ports is a new one."""


class Rewrite(Protocol):
    """What becomes of frames and addresses on their way out."""

    def frame(self, payload: bytes, side: int, key: int, version: int) -> bytes | None:
        """The payload to write; None to leave the frame out."""

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        """The address to write."""

    def comment(self, text: str) -> str:
        """The comment of an interface to write."""


class Masked:
    """Everything as it is, but for secrets."""

    def frame(self, payload: bytes, side: int, key: int, version: int) -> bytes | None:
        """The same payload with asterisks in place of secrets; None when nobody knows what it
        is."""
        if key == TOKEN:
            return secrets.HIDDEN * len(payload)
        if key < 0:
            return None
        hide = secrets.masked_response if side else secrets.masked_request
        return hide(bytes(4) + payload, key, version)[4:]

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        """The same."""
        return endpoint

    def comment(self, text: str) -> str:
        """The same."""
        return text


class Anonymous:
    """Names and addresses become pseudonyms, contents asterisks; what cannot be read is left
    out."""

    def __init__(self) -> None:
        self.redaction = Redaction("all")

    def frame(self, payload: bytes, side: int, key: int, version: int) -> bytes | None:
        """The redacted payload; None when it cannot be decoded."""
        if key == TOKEN:
            return secrets.HIDDEN * len(payload)
        if key < 0:
            return None
        if side:
            return self.redaction.response(payload, key, version)
        return self.redaction.request(payload)

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Another address, the same port."""
        return Endpoint(self.redaction.names.host(endpoint.host), endpoint.port)

    def comment(self, text: str) -> str:
        """Our proxy's own mark; whatever else people wrote goes."""
        return text if text == BROKER_LEG else ""


class _End(NamedTuple):
    """How a connection ended."""

    direction: int | None
    how: str
    time_ns: int


class Cutting:
    """Chosen exchanges of a capture on their way to another one."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._places = array("q")
        """Their addresses."""
        self._times = array("q")
        self._sides = array("B")
        self._keys = array("h")
        self._versions = array("h")
        self._numbers = array("Q")
        """Of exchanges."""
        self._of = array("L")
        """Index of the connection."""
        self._connections: list[Connection] = []
        self._clients: list[int] = []
        """Direction of the requests, by connection."""
        self._index: dict[int, int] = {}
        self._ends: dict[int, list[_End]] = {}
        self.exchanges = 0
        self.left_out = 0
        """Exchanges of which a frame could not be written (see `Rewrite.frame`)."""

    def watch(self, event: Opened | Closed) -> None:
        """Take note of how connections end; for `Capture.watch`."""
        if isinstance(event, Closed):
            self.ended(event.connection.number, event.direction, event.how, event.time_ns)

    def ended(self, number: int, direction: int | None, how: str, time_ns: int) -> None:
        """The same of one that is known by its number."""
        if how in ("fin", "rst"):
            self._ends.setdefault(number, []).append(_End(direction, how, time_ns))

    def add(self, exchange: Exchange) -> None:
        """Choose an exchange."""
        self.exchanges += 1
        key = exchange.api_key
        if key is None:
            key = TOKEN if exchange.api else OPAQUE
        version = exchange.api_version or 0
        connection = self._connection(exchange)
        for side, message in enumerate((exchange.request, exchange.response)):
            if message is not None:
                self._note(message.frame, side, key, version, exchange.number, connection)

    def _note(
        self, frame: Frame, side: int, key: int, version: int, number: int, connection: int
    ) -> None:
        self._places.extend(self._frames.extend([(frame, None)]))
        self._times.append(frame.first_ns)
        self._sides.append(side)
        self._keys.append(key)
        self._versions.append(version)
        self._numbers.append(number)
        self._of.append(connection)

    def _connection(self, exchange: Exchange) -> int:
        connection = exchange.connection
        found = self._index.get(connection.number)
        if found is None:
            found = self._index[connection.number] = len(self._connections)
            self._connections.append(connection)
            self._clients.append(0 if exchange.client == connection.a else 1)
        return found

    def write(
        self,
        sink: Sink,
        read: Read,
        *,
        rewrite: Rewrite | None = None,
        comments: Mapping[int, str] | None = None,
        mss: int = MSS,
    ) -> None:
        """Write a pcapng. `comments`, by exchange number, stand at the first packet of a request
        (of a response without one). `NotKept` when bytes cannot be read again."""
        _Writing(self, sink, read, rewrite or Masked(), dict(comments or {}), mss).run()


class _Segment(NamedTuple):
    """A packet that waits for its time."""

    time_ns: int
    order: int
    """Ties keep the order in which they were made."""
    connection: int
    direction: int
    flags: int
    payload: bytes
    lost: int
    """Bytes behind the payload that the capture never had."""
    comment: str


class _Writing:
    """One pass over what was chosen."""

    def __init__(
        self,
        cutting: Cutting,
        sink: Sink,
        read: Read,
        rewrite: Rewrite,
        comments: dict[int, str],
        mss: int,
    ) -> None:
        self._cut = cutting
        self._writer = PcapngWriter(sink)
        self._read = read
        self._rewrite = rewrite
        self._comments = comments
        self._mss = min(mss, MAX_MSS)
        self._interfaces: dict[str, int] = {}
        self._composers: dict[int, Composer] = {}
        self._heap: list[_Segment] = []
        self._order = 0
        self._last: dict[tuple[int, int], int] = {}
        """Time of the last byte, by connection and direction: streams do not go back."""
        self._dropped: set[int] = set()
        """Exchanges whose request was left out."""

    def run(self) -> None:
        cut = self._cut
        self._handshakes_and_ends()
        for number in sorted(range(len(cut._times)), key=self._place):
            self._flush(cut._times[number])
            self._put(number)
        self._flush(None)
        cut.left_out = len(self._dropped)

    def _place(self, number: int) -> tuple[int, int, int, int]:
        cut = self._cut
        return (cut._times[number], cut._of[number], cut._sides[number], number)

    def _handshakes_and_ends(self) -> None:
        for index, connection in enumerate(self._cut._connections):
            if connection.handshake:
                rtt = connection.handshake_ns or 0
                start = connection.first_ns
                self._push(start, index, 0, SYN)
                self._push(start + rtt // 2, index, 1, SYN | ACK)
                self._push(start + rtt, index, 0, ACK)
            for end in self._cut._ends.get(connection.number, []):
                flags = (FIN if end.how == "fin" else RST) | ACK
                if end.direction is not None:
                    self._push(end.time_ns, index, end.direction, flags)

    def _put(self, number: int) -> None:
        """Cut a frame into segments: the first at its first time, the others at its last."""
        cut = self._cut
        exchange, index = cut._numbers[number], cut._of[number]
        side = cut._sides[number]
        if exchange in self._dropped:
            return
        (frame,) = cut._frames.get(cut._places, number, 1, self._read)
        payload = self._rewrite.frame(frame.payload, side, cut._keys[number], cut._versions[number])
        if payload is None:
            self._dropped.add(exchange)
            return
        lost = frame.size - len(frame.payload)
        data = (len(payload) + lost).to_bytes(4, "big") + payload
        direction = cut._clients[index] ^ side
        place = (index, direction)
        first = max(frame.first_ns, self._last.get(place, 0))
        last = max(frame.last_ns, first)
        self._last[place] = last
        comment = self._comments.pop(exchange, "")
        at = 0
        while at < len(data):
            size = self._mss
            if not at and last > first and frame.parts:
                # Two times take two packets.
                size = min(size, frame.parts[0].size, len(data) - 1)
            part = data[at : at + max(size, 1)]
            missing = lost if at + len(part) == len(data) else 0
            self._push(
                last if at else first, index, direction, ACK, part, missing, "" if at else comment
            )
            at += len(part)

    def _push(
        self,
        time_ns: int,
        connection: int,
        direction: int,
        flags: int,
        payload: bytes = b"",
        lost: int = 0,
        comment: str = "",
    ) -> None:
        self._order += 1
        segment = _Segment(
            time_ns, self._order, connection, direction, flags, payload, lost, comment
        )
        heapq.heappush(self._heap, segment)

    def _flush(self, until_ns: int | None) -> None:
        """Write what comes before that time; everything for None."""
        heap = self._heap
        while heap and (until_ns is None or heap[0].time_ns <= until_ns):
            segment = heapq.heappop(heap)
            composer = self._composer(segment.connection)
            data = composer.packet(segment.direction, segment.flags, segment.payload)
            interface = self._interface(self._cut._connections[segment.connection])
            self._writer.packet(data, segment.time_ns, interface=interface, comment=segment.comment)
            for at in range(0, segment.lost, MAX_MSS):
                # As a capture with a short snaplen shows bytes that it does not hold.
                size = min(MAX_MSS, segment.lost - at)
                data = composer.packet(segment.direction, ACK, bytes(size))
                head = data[: len(data) - size]
                self._writer.packet(head, segment.time_ns, interface=interface, length=len(data))

    def _composer(self, index: int) -> Composer:
        found = self._composers.get(index)
        if found is None:
            connection = self._cut._connections[index]
            ends = (self._rewrite.endpoint(end) for end in (connection.a, connection.b))
            isn = index * ISN_STEP & MASK
            composer = Composer(*ends, mss=self._mss, isn=(isn, isn))
            found = self._composers[index] = composer
        return found

    def _interface(self, connection: Connection) -> int:
        comment = self._rewrite.comment(connection.interface_comment)
        found = self._interfaces.get(comment)
        if found is None:
            name = f"cut{len(self._interfaces)}"
            found = self._interfaces[comment] = self._writer.interface(name, comment=comment)
        return found
