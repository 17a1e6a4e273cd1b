"""Where frames begin in what is recorded, so that a part of a recording can be read without the
parts before it.

A part begins with the beginnings of the frames that it is inside of, as if they were sent once
more: with their sizes, the next frames are found, and with their headers even these are exchanges,
which are cut. Who reads all parts has these bytes already. State without I/O.
"""

from __future__ import annotations

from typing import Final

from kafkascope.captures.packets.tcp import MASK

KEPT: Final = 1024
"""Bytes of the beginning of a frame: its header, and the names before the first records."""
MOST: Final = 128 << 20
"""Bytes of a frame, above the brokers' limit for requests: other sizes are no sizes."""
_SIZE: Final = 4


class FrameFollower:
    """Follows the sizes of frames in one direction of a leg."""

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
        """Bytes are missing behind `head`."""

    def add(self, seq: int, data: bytes | memoryview) -> None:
        """Take the next bytes, of which the first has the sequence number `seq`."""
        size, at = len(data), 0
        if self.lost and size >= _SIZE:
            # The recorder is told of whole frames, when they are small.
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
                self.lost = self.left > MOST
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
