"""Whole records of a capture file in a buffer: what files are read as, and all readers take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from kafkascope.captures.formats.records import Format
from kafkascope.captures.model import Packet


class Block(NamedTuple):
    """Whole records in a buffer. Valid until the next one is read."""

    file: int
    format: Format
    buffer: bytearray
    base: int
    """Offset of the buffer's first byte in the (uncompressed) file."""
    positions: list[int]
    number: int
    """Packet number of the first record."""
    shift_ns: int = 0
    """To add to the times of all records."""

    def packet(self, index: int) -> Packet:
        """Return one of the records."""
        positions = self.positions[index : index + 1]
        return next(self._replace(positions=positions, number=self.number + index).packets())

    def packets(self) -> Iterator[Packet]:
        """Yield the records one by one; their data are views of the buffer."""
        view = memoryview(self.buffer)
        record = self.format.record
        number, shift_ns = self.number, self.shift_ns
        for at in self.positions:
            time_ns, interface, start, captured, wire = record(self.buffer, at)
            if shift_ns:
                time_ns = max(time_ns + shift_ns, 0)
            # A view in place of bytes: what lives longer than the block is copied where it is kept.
            data = cast(bytes, view[start : start + captured])
            yield Packet(
                number,
                time_ns,
                interface.link_type,
                data,
                wire,
                self.file,
                self.base + start,
                interface.number,
            )
            number += 1
