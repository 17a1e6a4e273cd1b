"""The classic capture format: where its records are, and what their headers say. No I/O.

magic 4 | major 2 | minor 2 | zone 4 | accuracy 4 | snaplen 4 | link type 4      once
seconds 4 | fraction 4 | captured 4 | on the wire 4 | data                       each record
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from captures.records import MAX_RECORD, Interface, Record, Secrets

_MAGICS: Final[dict[bytes, tuple[str, int, int, int]]] = {
    bytes.fromhex("d4c3b2a1"): ("<", 1000, 24, 16),
    bytes.fromhex("a1b2c3d4"): (">", 1000, 24, 16),
    bytes.fromhex("4d3cb2a1"): ("<", 1, 24, 16),
    bytes.fromhex("a1b23c4d"): (">", 1, 24, 16),
    # Kuznetsov's modified format of old Red Hat: 8 more bytes (interface, protocol, type) per
    # record.
    bytes.fromhex("34cdb2a1"): ("<", 1000, 24, 24),
    bytes.fromhex("a1b2cd34"): (">", 1000, 24, 24),
    # Ixia's hardware and software captures: nanoseconds, and the size of all records after the
    # header.
    bytes.fromhex("ac01001c"): ("<", 1, 28, 16),
    bytes.fromhex("1c0001ac"): (">", 1, 28, 16),
    bytes.fromhex("ab01001c"): ("<", 1, 28, 16),
    bytes.fromhex("1c0001ab"): (">", 1, 28, 16),
}
"""First bytes -> byte order, nanoseconds per fraction, size of the file header, of a record
header."""

_VERSIONS: Final = frozenset((b"\2\0\4\0", b"\0\2\0\4"))

USUAL_SNAPLEN: Final = 262_144
"""libpcap's largest; records above it and above the file's own snaplen are damage."""

_NOTHING: Final = bytes(16)
"""What a crash or a full disk leaves at the end; it would read as a packet of no bytes in 1970."""


class Pcap:
    """The state of reading one pcap file."""

    def __init__(self, head: bytes, file: int) -> None:
        """`head` starts with the file header, at least `size_of_header(head)` bytes."""
        self.order, self.unit_ns, self.header, self.skip = _MAGICS[head[:4]]
        _, _, _, _, snaplen, link = Struct(self.order + "HHIIII").unpack_from(head, 4)
        # The upper bits tell about a trailing frame check sequence; IP's length leaves it out
        # anyway.
        self.interfaces = [Interface(file, 0, link & 0x03FF_FFFF, "", "", snaplen, 1, 1, 0)]
        self.secrets: list[Secrets] = []
        self.drops: dict[int, int] = {}
        self.damage = ""
        self.unwanted = 0
        self.uniform = True
        self.last_ns = 0
        usual = max(snaplen, USUAL_SNAPLEN)
        self.limit = usual if usual <= MAX_RECORD else MAX_RECORD
        """Bytes of a record: more are damage."""
        self._size = Struct(self.order + "I").unpack_from
        self._head = Struct(self.order + "IIII").unpack_from
        self._start = bytes(head[:8])
        self._link = bytes(head[20:24])

    def walk(self, buffer: bytearray, at: int, end: int) -> tuple[list[int], int]:
        """Positions of the whole records in buffer[at:end], and where the walk stopped."""
        positions: list[int] = []
        add = positions.append
        size_at, skip, limit = self._size, self.skip, self.limit
        while at + skip <= end:
            size = size_at(buffer, at + 8)[0]
            if size > limit:
                self.damage = f"a record of {size} bytes"
                break
            if not size:
                if buffer[at : at + 16] == _NOTHING:
                    self.damage = "zeros in place of a record"
                    break
                if self._begins(buffer, at):
                    # Files that were joined with cat: their headers stand between records.
                    if at + self.header > end:
                        break
                    if not self._is_alike(buffer, at):
                        self.damage = "a capture of another kind begins here"
                        break
                    at += self.header
                    continue
            following = at + skip + size
            if following > end:
                break
            add(at)
            at = following
        return positions, at

    def wanted(self, buffer: bytearray, at: int, end: int) -> int:
        """Bytes that the record at `at` needs in all, as far as known."""
        if at + self.skip > end:
            return self.skip
        if self._begins(buffer, at):
            return self.header
        return self.skip + int(self._size(buffer, at + 8)[0])

    @staticmethod
    def _begins(buffer: bytearray, at: int) -> bool:
        """Whether a file header stands there: a magic, and a version that any such file has."""
        if bytes(buffer[at : at + 4]) not in _MAGICS:
            return False
        return bytes(buffer[at + 4 : at + 8]) in _VERSIONS

    def _is_alike(self, buffer: bytearray, at: int) -> bool:
        """Whether records behind that header are read as those before it."""
        same_link = buffer[at + 20 : at + 24] == self._link
        return buffer[at : at + 8] == self._start and same_link

    def record(self, buffer: bytearray, at: int) -> Record:
        """The record at a position from `walk`."""
        seconds, fraction, captured, wire = self._head(buffer, at)
        time_ns = self.last_ns = seconds * 1_000_000_000 + fraction * self.unit_ns
        return Record(time_ns, self.interfaces[0], at + self.skip, captured, max(wire, captured))


def size_of_header(head: bytes) -> int:
    """Size of the file header if `head` starts like a pcap file, else 0."""
    found = _MAGICS.get(head[:4])
    return found[2] if found else 0
