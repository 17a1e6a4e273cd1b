"""Kafka over TCP in scapy: which packets carry it, and what their streams say.

scapy's own `TCPSession` fills holes of a stream with zeros and forgets which bytes it gave already.
Each of its segments therefore goes through the reassembly and pairing of all other inputs; a packet
gets the messages that end in it, others stay as they were captured.
"""

from __future__ import annotations

import socket
import struct
import weakref
from collections import OrderedDict
from typing import Any, Final

from scapy.config import conf
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.packet import bind_bottom_up

from kafkascope.analyzer.conversation.detect import look
from kafkascope.analyzer.conversation.limits import LIMITS as CONVERSATION_LIMITS
from kafkascope.bridges.following import FollowedMessage, Follower
from kafkascope.bridges.scapy.layers import (
    HEADER,
    PORT,
    Kafka,
    KafkaUndecoded,
    of_request,
    of_response,
)
from kafkascope.captures.model import Opened
from kafkascope.captures.packets.tcp import ACK, MASK, SYN, Segment, distance, reverse
from kafkascope.captures.streams.connection import NEAR_BYTES
from kafkascope.captures.streams.reassembly import Reassembler
from kafkascope.dissectors.errors import DissectError

# Connections whose state is kept; scapy never forgets one.
MAX_STREAMS: Final = 8192
# Addresses that were sent requests on other ports; what comes from there is Kafka, too.
MAX_BROKERS: Final = 1024
# Messages in one packet, one as the payload of the other: scapy calls itself for each, and Python
# allows a thousand calls.
MAX_STACKED: Final = 150

KEY: Final = "kafkascope"

_INT = struct.Struct(">i")


class Stream:
    """The state of one connection."""

    def __init__(self) -> None:
        self.reassembler = Reassembler()
        self.follower = Follower()
        self.ends: dict[bytes, int] = {}
        """Sequence number after the last segment, by flow."""
        self._begins = False
        """A request begins with the first segment; else the capture is in the middle of some."""
        self.packets = 0

    def take(self, original: Any, flow: bytes, payload: bytes) -> list[FollowedMessage]:
        """Return the messages that a segment completes."""
        tcp = original[TCP]
        time_ns = int(original.time * 1_000_000_000)
        if flow not in self.ends:
            # The packets of the handshake have no bytes, and no session of scapy reports them.
            flags = SYN | ACK if self.ends else SYN
            self._begins = self._begins or _begins(tcp, payload)
            self._feed(flow, tcp.seq - 1 & MASK, tcp.ack, flags, b"", time_ns)
        self.ends[flow] = tcp.seq + len(payload) & MASK
        return self._feed(flow, tcp.seq, tcp.ack, int(tcp.flags) & 0xFF, payload, time_ns)

    def continues(self, flow: bytes, seq: int) -> bool:
        """Whether a segment can be of the same connection, and not of a later one with its
        ports."""
        end = self.ends.get(flow)
        return end is None or abs(distance(end, seq)) < NEAR_BYTES

    def _feed(
        self, flow: bytes, seq: int, ack: int, flags: int, payload: bytes, time_ns: int
    ) -> list[FollowedMessage]:
        self.packets += 1
        number = self.packets
        segment = Segment(
            number, time_ns, -1, 0, flow, seq, ack, flags, payload, len(payload), number, 0
        )
        messages: list[FollowedMessage] = []
        for event in self.reassembler.feed(segment):
            if isinstance(event, Opened):
                event.connection.handshake = self._begins
            messages += self.follower.take(event)[0]
        return messages


class Streams(dict[bytes, Stream]):
    """The connections of one session of scapy that share a place there, by their flow."""


_recent: OrderedDict[tuple[int, bytes], weakref.ref[Streams]] = OrderedDict()
"""All connections, those that were silent longest first."""
_brokers: OrderedDict[tuple[str, int], None] = OrderedDict()


def reassembled(data: bytes, metadata: dict[str, Any], session: dict[str, Any]) -> Any:
    """Return the packet for the newest segment of a stream; None while bytes are missing."""
    original = metadata.get("original")
    flow = None if original is None else _flow(original)
    if original is None or flow is None:
        return _standalone(data, metadata)
    payload = bytes(original[TCP].payload.original)
    if not payload:
        return None
    stream = _stream(session, flow, original[TCP], payload)
    if stream is None:
        return conf.raw_layer(payload)
    packets = [packet_of(each) for each in stream.take(original, flow, payload)]
    if not packets:
        return conf.raw_layer(payload)
    return _stacked(packets)


def packet_of(message: FollowedMessage) -> Any:
    """Return the packet of a message."""
    frame = _INT.pack(message.frame.size) + message.frame.payload
    header, reason = message.header, message.reason
    if message.frame.cut:
        reason = "bytes are missing"
    elif header is not None:
        try:
            if message.side == "request":
                return of_request(frame)(frame)
            return of_response(frame, header.api_key, header.api_version)(frame)
        except DissectError as error:
            reason = str(error)
    return KafkaUndecoded(frame, reason=reason)


def _stacked(packets: list[Any]) -> Any:
    if len(packets) > MAX_STACKED:
        rest = b"".join(bytes(each.original) for each in packets[MAX_STACKED - 1 :])
        many = f"{len(packets) - MAX_STACKED + 1} more messages"
        (size,) = _INT.unpack_from(rest)
        packets[MAX_STACKED - 1 :] = [KafkaUndecoded(size=size, data=rest[HEADER:], reason=many)]
    for upper, lower in zip(reversed(packets), reversed(packets[:-1]), strict=False):
        lower.add_payload(upper)
    return packets[0]


def _stream(session: dict[str, Any], flow: bytes, tcp: Any, payload: bytes) -> Stream | None:
    """Return the connection of a segment; None where nothing looks like Kafka."""
    # Connections may share a session: scapy's key is their ports and addresses, mixed.
    streams: Streams = session.setdefault(KEY, Streams())
    name = min(flow, reverse(flow))
    stream = streams.get(name)
    if stream is None or not stream.continues(flow, tcp.seq):
        bound = _is_bound(sport=tcp.sport, dport=tcp.dport)
        if not bound and not _is_kafka(tcp, payload):
            return None
        stream = streams[name] = Stream()
    place = (id(streams), name)
    _recent[place] = weakref.ref(streams)
    _recent.move_to_end(place)
    while len(_recent) > MAX_STREAMS:
        (_, oldest), found = _recent.popitem(last=False)
        known = found()
        if known is not None:
            known.pop(oldest, None)
    return stream


def _flow(packet: Any) -> bytes | None:
    tcp = packet[TCP]
    under = tcp.underlayer
    if not isinstance(under, IP | IPv6):
        return None
    family = socket.AF_INET6 if isinstance(under, IPv6) else socket.AF_INET
    hosts = socket.inet_pton(family, under.src) + socket.inet_pton(family, under.dst)
    return hosts + struct.pack(">HH", tcp.sport, tcp.dport)


def _standalone(data: bytes, metadata: dict[str, Any]) -> Any:
    """Return the packet of bytes of which the connection is not known, as those of a socket."""
    if len(data) < HEADER:
        return None
    (size,) = _INT.unpack_from(data)
    if not 0 <= size <= CONVERSATION_LIMITS.frame_bytes:
        return KafkaUndecoded(data)
    if len(data) < HEADER + size:
        metadata["tcp_min_len"] = HEADER + size
        return None
    return Kafka(data)


def bind() -> None:
    """Tell scapy which packets of TCP carry Kafka: `PORT` and content; `bind_layers` of scapy adds
    ports."""
    if getattr(TCP.default_payload_class, "finds_kafka", False):
        return
    Kafka.tcp_reassemble = staticmethod(reassembled)  # a session of scapy calls it
    bind_bottom_up(TCP, Kafka, sport=PORT)
    bind_bottom_up(TCP, Kafka, dport=PORT)
    usual = TCP.default_payload_class

    def by_content(self: Any, payload: bytes) -> Any:
        # A session asks before there are bytes, and leaves what turns out to be nothing of ours.
        session = self.stop_dissection_after is not None and not payload
        return Kafka if session or _is_kafka(self, payload) else usual(self, payload)

    by_content.finds_kafka = True  # type: ignore[attr-defined]
    # scapy asks this method for payloads without a known port: the only place to judge by content.
    TCP.default_payload_class = by_content


def _is_bound(**ports: int) -> bool:
    """Return whether one of these ports is bound to Kafka."""
    return any(
        cls is Kafka and fields.items() <= ports.items() for fields, cls in TCP.payload_guess
    )


def _ends(tcp: Any) -> tuple[tuple[str, int], tuple[str, int]]:
    """Return where a segment comes from, and where it goes to."""
    under = tcp.underlayer
    return (getattr(under, "src", ""), tcp.sport), (getattr(under, "dst", ""), tcp.dport)


def _begins(tcp: Any, payload: bytes) -> bool:
    """Whether a request begins with the bytes of a segment."""
    source, _ = _ends(tcp)
    client = _is_bound(dport=tcp.dport)
    if source in _brokers or (not client and _is_bound(sport=tcp.sport)):
        return False
    return look(payload, kafka_port=client) != "other"


def _is_kafka(tcp: Any, payload: bytes) -> bool:
    """Whether bytes on some port are Kafka's: a request, or what comes from where one went."""
    source, target = _ends(tcp)
    if source in _brokers or target in _brokers:
        return True
    seen = look(payload, kafka_port=False)
    session = tcp.stop_dissection_after is not None
    if seen == "kafka" or (session and seen == "short"):
        _brokers[target] = None
        if len(_brokers) > MAX_BROKERS:
            _brokers.popitem(last=False)
        return True
    return False
