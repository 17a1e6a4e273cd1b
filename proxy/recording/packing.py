"""Composes blocks of a capture file: a TCP conversation around the bytes of each connection.

State without I/O: parts to be written come out, large payloads among them as they lie in memory.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.exchanges.offline import BROKER_LEG, CLIENT_LEG
from kafkascope.captures.build import MAX_MSS, Composer
from kafkascope.captures.formats.write import PcapngWriter, around
from kafkascope.captures.model import Endpoint
from kafkascope.captures.packets.tcp import ACK, PSH

Part: TypeAlias = bytes | memoryview

OPEN: Final = -1
CLOSE: Final = -2

MSS: Final = MAX_MSS & ~3
"""No padding behind packets; and no more of them than it takes."""
SCALE: Final = 7
"""Windows of 8 MB, so that an acknowledgement for each read is not needed."""
UNACKNOWLEDGED: Final = 1 << 20
LARGE: Final = 4096
"""Payloads from this size on are not copied."""


class TapEvent(NamedTuple):
    """Something that happened on a connection."""

    number: int
    """Of the connection."""
    leg: int
    """0: the client's, 1: the broker's; OPEN or CLOSE."""
    side: Any
    """Where it came from; OPEN: the client's endpoint."""
    data: Any
    """Bytes, or how many of them were lost; OPEN: the broker's endpoint; CLOSE: "fin" or "rst"."""
    now_ns: int
    comment: str = ""
    lease: object = None
    """Keeps the memory of `data`."""


class Batch(NamedTuple):
    """Blocks that are written together."""

    parts: tuple[Part, ...]
    size: int
    packets: int
    leases: tuple[object, ...]


def preamble() -> bytes:
    """Return the start of every file: the section and its two interfaces."""
    buffer = BytesIO()
    writer = PcapngWriter(buffer)
    writer.interface("client", comment=CLIENT_LEG)
    writer.interface("broker", comment=BROKER_LEG)
    return buffer.getvalue()


class _Conversation:
    """The packets of a connection: one TCP stream for each leg."""

    def __init__(self, client: Endpoint, broker: Endpoint, isn: int) -> None:
        self.client = client
        self.broker = broker
        self.legs: list[Composer | None] = [None, None]
        self.acknowledged = [[0, 0], [0, 0]]
        """By leg and direction: the sequence number up to which the other side told."""
        self.isn = isn
        self.closed = [False, False]
        self.over = False


class Packing:
    """All connections of a recording."""

    def __init__(self) -> None:
        self._conversations: dict[int, _Conversation] = {}
        self._isn = 1
        self._parts: list[Part] = []
        self._small: list[bytes] = []
        self._leases: list[object] = []
        self._packets = 0
        self.size = 0
        """Of what `take` would give."""

    def take(self) -> Batch:
        """Remove and return what was composed since the last call."""
        self._parts.append(b"".join(self._small))
        batch = Batch(tuple(self._parts), self.size, self._packets, tuple(self._leases))
        self._parts, self._small, self._leases = [], [], []
        self._packets = self.size = 0
        return batch

    def add(self, event: TapEvent) -> None:
        """Compose the packets of an event."""
        number, leg, side, data, now_ns, comment, lease = event
        if leg == OPEN:
            self._isn = (self._isn + 64_000) & 0xFFFF_FFFF
            self._conversations[number] = _Conversation(side, data, self._isn)
            self._composer(self._conversations[number], 0, now_ns)
            return
        conversation = self._conversations.get(number)
        if conversation is None or conversation.over:
            return
        if leg == CLOSE:
            self._close(number, conversation, side, data, now_ns)
            return
        if conversation.closed[side] and leg == 0:
            return
        composer = conversation.legs[leg] or self._composer(conversation, leg, now_ns)
        if isinstance(data, int):
            composer.lose(side, data)
            return
        if lease is not None:
            self._leases.append(lease)
        self._data(composer, leg, side, data, now_ns, comment)
        acknowledged = conversation.acknowledged[leg]
        acknowledged[1 - side] = composer.next[1 - side]  # every packet acknowledges
        if composer.next[side] - acknowledged[side] & 0xFFFF_FFFF > UNACKNOWLEDGED:
            acknowledged[side] = composer.next[side]
            self._packet(composer.head(1 - side, ACK), now_ns, leg)

    def _data(
        self, composer: Composer, leg: int, side: int, data: Part, now_ns: int, comment: str
    ) -> None:
        size = len(data)
        if size < LARGE:
            self._packet(composer.packet(side, ACK | PSH, data), now_ns, leg, comment)
            return
        small, parts = self._small, self._parts
        for head, part in composer.segments(side, data):
            length = len(head) + len(part)
            before, behind = around(length, now_ns, leg, None, comment)
            small += (before, head)
            parts += (b"".join(small), part)
            small.clear()
            small.append(behind)
            self._packets += 1
            self.size += len(before) + length + len(behind)
            comment = ""

    def _packet(self, packet: bytes, now_ns: int, leg: int, comment: str = "") -> None:
        before, behind = around(len(packet), now_ns, leg, None, comment)
        self._small += (before, packet, behind)
        self._packets += 1
        self.size += len(before) + len(packet) + len(behind)

    def _composer(self, conversation: _Conversation, leg: int, now_ns: int) -> Composer:
        a, b = conversation.client, conversation.broker
        if leg:
            # The same ports again would be the same conversation to whoever reads the file.
            a = Endpoint(a.host, a.port ^ 0x8000 or 1)
        isn = (conversation.isn, conversation.isn ^ 0x5A5A5A5A)
        composer = conversation.legs[leg] = Composer(a, b, mss=MSS, isn=isn, scale=SCALE)
        for packet in composer.open():
            self._packet(packet, now_ns, leg)
        conversation.acknowledged[leg] = list(composer.next)
        return composer

    def _close(
        self, number: int, conversation: _Conversation, side: int | None, how: str, now_ns: int
    ) -> None:
        composer, other = conversation.legs
        assert composer is not None
        packets: list[bytes] = []
        if how == "rst" and side is not None:
            packets = composer.reset(side)
            conversation.over = True
        else:
            for each in (0, 1) if side is None else (side,):
                if not conversation.closed[each]:
                    conversation.closed[each] = True
                    packets += composer.close(each)
        for packet in packets:
            self._packet(packet, now_ns, 0)
        if side is None or conversation.over:
            if other is not None:
                for packet in other.close(0) + other.close(1):
                    self._packet(packet, now_ns, 1)
            self._conversations.pop(number, None)
