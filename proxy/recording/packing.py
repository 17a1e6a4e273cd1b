"""Composes blocks of a capture file: a TCP conversation around the bytes of each connection.

State without I/O. What passes is copied once, to where it is written from: chunks of memory whose
blocks lie as those of the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.exchanges.offline import BROKER_LEG, CLIENT_LEG
from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter, around
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.model import Endpoint
from kafkascope.captures.packets.tcp import ACK, MASK, PSH
from kafkascope.proxy.limits import LIMITS
from kafkascope.proxy.recording.direct import BLOCK, CHUNK, Chunks, Lease, Part

# Bytes of the beginning of a frame: its header, and the names before the first records.
KEPT: Final = 1024
_SIZE: Final = 4


class FrameFollower:
    """Follows the sizes of frames in one direction of a leg, so that a file of a row of recordings
    can be read without the files before it.

    A file begins with the beginnings of the frames that it is inside of, as if they were sent once
    more: with their sizes the next frames are found, and with their headers even these are
    exchanges, which are cut. A reader of all files has these bytes already."""

    __slots__ = ("_holes", "head", "left", "lost", "seq")

    def __init__(self) -> None:
        self.left = 0
        """Bytes of the frame that are still to come."""
        self.head = b""
        """Its first bytes; none between two frames."""
        self.seq = 0
        """Sequence number of the first one."""
        self.lost = False
        """It is not known where frames begin."""
        self._holes = False
        """Bytes are missing after `head`."""

    def add(self, seq: int, data: bytes | memoryview) -> None:
        size, at = len(data), 0
        if self.lost and size >= _SIZE:
            # The recorder gets whole frames, when they are small.
            self.lost = int.from_bytes(data[:_SIZE], "big") != size - _SIZE
        while at < size and not self.lost:
            if self.left:
                take = min(self.left, size - at)
                room = KEPT - len(self.head)
                if room > 0 and not self._holes:
                    self.head += bytes(data[at : at + min(room, take)])
                at += take
                self._pass(take)
                continue
            if not self.head:
                self.seq = seq + at & MASK
            more = bytes(data[at : at + _SIZE - len(self.head)])
            self.head += more
            at += len(more)
            if len(self.head) == _SIZE:
                self.left = int.from_bytes(self.head, "big")
                self.lost = self.left > LIMITS.recorded_frame_bytes
                self._pass(0)

    def skip(self, size: int) -> None:
        """Take note of bytes that are not recorded."""
        if self.left and size <= self.left:
            self._holes = True
            self._pass(size)
        elif size:
            self.lost = True
            self._pass(0)

    def _pass(self, size: int) -> None:
        self.left -= size
        if self.lost or not self.left:
            self.left, self.head, self._holes = 0, b"", False


OPEN: Final = -1
CLOSE: Final = -2

# No padding after packets; and no more of them than it takes.
MSS: Final = CAPTURE_LIMITS.mss_bytes & ~3
# Windows of 8 MB, so that an acknowledgement for each read is not needed.
SCALE: Final = 7
UNACKNOWLEDGED: Final = 1 << 20
# Payloads from this size on are not read for checksums.
LARGE: Final = 4096
# No block has more bytes around payload and comment.
AROUND: Final = 256


class TapEvent(NamedTuple):
    """Something that happened on a connection."""

    number: int
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
    leases: tuple[object, ...] = ()
    """Keep the memory of the parts."""
    starts: tuple[int, ...] = ()
    """Addresses of the parts modulo the size of a block, if they are known."""
    begin: bytes = b""
    """Blocks before these where a file begins with them, see `following`."""


def preamble() -> bytes:
    buffer = BytesIO()
    writer = PcapngWriter(buffer)
    writer.interface("client", comment=CLIENT_LEG)
    writer.interface("broker", comment=BROKER_LEG)
    return buffer.getvalue()


@dataclass(eq=False)
class _Conversation:
    """The packets of a connection: one TCP stream for each leg."""

    number: int
    client: Endpoint
    broker: Endpoint
    isn: int

    def __post_init__(self) -> None:
        self.legs: list[Composer | None] = [None, None]
        self.acknowledged = [[0, 0], [0, 0]]
        """By leg and direction: the sequence number up to which the other side acknowledged."""
        self.closed = [False, False]
        self.over = False
        self.followers = [[FrameFollower(), FrameFollower()] for _ in range(2)]
        """By leg and direction."""


class Packing:
    """All connections of a recording."""

    def __init__(self) -> None:
        self._conversations: dict[int, _Conversation] = {}
        self._isn = 1
        self._chunks = Chunks()
        self._lease: Lease[memoryview] | None = None
        """On the chunk that packets go to."""
        self._view = memoryview(b"")
        self._at = self._from = 0
        """In that chunk: where the next packet goes, and the first one that was not taken."""
        self._parts: list[Part] = []
        self._starts: list[int] = []
        self._leases: list[object] = []
        self._packets = 0
        self._taken = 0
        self.size = 0
        """Size of what `take` would give."""
        self.skew = 0
        """How far the file is ahead of what was composed: its header, less what it left out. Where
        it is known, blocks in memory are blocks of the file (`direct`)."""
        self.lost = 0
        """Events that were left out for want of memory."""
        self.follows = False
        """Whether files may begin anywhere: batches have a `begin`."""
        self._inside: dict[tuple[int, int, int], None] = {}
        """Connections, legs and directions that are inside of a frame."""
        self._begin = b""
        self._now_ns = 0

    def take(self) -> Batch:
        self._cut()
        parts, starts, leases = tuple(self._parts), tuple(self._starts), tuple(self._leases)
        batch = Batch(parts, self.size, self._packets, leases, starts, self._begin)
        if self.follows and self._packets:  # else nothing has begun or ended
            self._begin = self._beginnings()
        self._parts, self._starts, self._leases = [], [], []
        self._taken += self.size
        self._packets = self.size = 0
        return batch

    def _cut(self) -> None:
        if self._at > self._from:
            self._parts.append(self._view[self._from : self._at])
            self._starts.append(self._from % BLOCK)
            self._leases.append(self._lease)
            self._from = self._at

    def _room(self, size: int, *, small: bool = False) -> bool:
        """Make room for `size` bytes in a row. False: there is none until something was
        written."""
        if self._at + size <= len(self._view):
            return True
        lease = self._chunks.take(reserve=small)
        if lease is None or size > CHUNK - BLOCK:
            return False
        self._cut()
        self._lease, self._view = lease, lease.memory
        self._at = self._from = (self._taken + self.size + self.skew) % BLOCK
        return True

    def add(self, event: TapEvent) -> None:
        number, leg, side, data, now_ns, comment, _ = event
        if leg == OPEN:
            self._isn = (self._isn + 64_000) & 0xFFFF_FFFF
            opened = self._conversations[number] = _Conversation(number, side, data, self._isn)
            self._composer(opened, 0, now_ns)
            return
        conversation = self._conversations.get(number)
        if conversation is None or conversation.over:
            return
        if leg == CLOSE:
            self._close(conversation, side, data, now_ns)
            return
        if conversation.closed[side] and leg == 0:
            return
        composer = conversation.legs[leg] or self._composer(conversation, leg, now_ns)
        if self.follows:
            self._follow(conversation, leg, side, data, composer.next[side])
            self._now_ns = now_ns
        if isinstance(data, int):
            composer.lose(side, data)
            return
        self._data(composer, leg, side, data, now_ns, comment)
        acknowledged = conversation.acknowledged[leg]
        acknowledged[1 - side] = composer.next[1 - side]  # every packet acknowledges
        if composer.next[side] - acknowledged[side] & 0xFFFF_FFFF > UNACKNOWLEDGED:
            acknowledged[side] = composer.next[side]
            self._packet(composer.head(1 - side, ACK), now_ns, leg)

    def _follow(
        self, conversation: _Conversation, leg: int, side: int, data: Part | int, seq: int
    ) -> None:
        follower = conversation.followers[leg][side]
        if isinstance(data, int):
            follower.skip(data)
        else:
            follower.add(seq, data)
        if follower.head:
            self._inside[conversation.number, leg, side] = None
        else:
            self._inside.pop((conversation.number, leg, side), None)

    def _beginnings(self) -> bytes:
        blocks: list[bytes] = []
        for number, leg, side in list(self._inside)[: LIMITS.begun_frames]:
            conversation = self._conversations.get(number)
            composer = None if conversation is None else conversation.legs[leg]
            if conversation is None or composer is None:
                del self._inside[number, leg, side]
                continue
            follower = conversation.followers[leg][side]
            packet = composer.again(side, follower.seq, follower.head)
            before, behind = around(len(packet), self._now_ns + 1, leg)
            blocks += before, packet, behind
        return b"".join(blocks)

    def _data(
        self, composer: Composer, leg: int, side: int, data: Part, now_ns: int, comment: str
    ) -> None:
        size = len(data)
        source, at = memoryview(data), 0
        while size - at >= LARGE:
            length = min(MSS, size - at)
            if not self._room(length + AROUND + len(comment) * 4):
                composer.lose(side, size - at)  # whoever reads meets a gap
                self.lost += 1
                return
            # Not read for its checksum: with it, this would take twice as long.
            flags = ACK if at + length < size else ACK | PSH
            head = composer.head(side, flags, length, None)
            before, behind = around(len(head) + length, now_ns, leg, None, comment)
            head = before + head
            view, start = self._view, self._at
            first = start + len(head)
            end = first + length
            view[start:first] = head
            view[first:end] = source[at : at + length]
            self._at = end + len(behind)
            view[end : self._at] = behind
            self._packets += 1
            self.size += self._at - start
            at += length
            comment = ""
        if at < size or not size:
            self._packet(composer.packet(side, ACK | PSH, source[at:]), now_ns, leg, comment)

    def _packet(self, packet: bytes, now_ns: int, leg: int, comment: str = "") -> None:
        before, behind = around(len(packet), now_ns, leg, None, comment)
        block = b"".join((before, packet, behind))
        size = len(block)
        if not self._room(size, small=True):
            self.lost += 1
            return
        self._view[self._at : self._at + size] = block
        self._at += size
        self._packets += 1
        self.size += size

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

    def _close(self, conversation: _Conversation, side: int | None, how: str, now_ns: int) -> None:
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
            self._conversations.pop(conversation.number, None)
