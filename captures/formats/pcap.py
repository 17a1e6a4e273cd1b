"""pcap, the classic capture format: where its records are, and their headers. No I/O.

magic 4 | major 2 | minor 2 | zone 4 | accuracy 4 | snaplen 4 | link type 4      once
seconds 4 | fraction 4 | captured 4 | on the wire 4 | data                       each record
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from kafkascope.captures.formats.records import USUAL, CaptureRecord, Format, Found, Interface
from kafkascope.captures.limits import LIMITS
from kafkascope.kernel import records

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
"""First bytes -> byte order, nanoseconds per fraction, sizes of file header and record header."""

OTHER_CAPTURE: Final = "a capture of another format starts here; join captures with mergecap"
# AIX writes version 2.2, nanoseconds, and an ifType (RFC 1573), as here of Ethernet and loopback.
_AIX_LINKS: Final = {6: 1, 24: 0}

_VERSIONS: Final = frozenset((b"\2\0\4\0", b"\0\2\0\4"))


# Seconds (eight years); the headers of records that are further apart are checked.
YEARS: Final = 1 << 28

# Bytes by which a packet may be longer than it says: VLAN tags that the system put back in.
TAGS: Final = 16

_NOTHING: Final = bytes(16)
"""What a crash or a full disk leaves at the end; it would read as an empty packet of 1970."""


class Pcap(Format):
    """Reads the records of one pcap file."""

    backs = True
    strict = None
    """A record whose header contradicts itself is damage unless a good one follows. None: not known
    yet; a file that begins with such a record was written by a program that makes them."""

    def __init__(self, head: bytes, file: int) -> None:
        """`head` starts with the file header, at least `size_of_header(head)` bytes; the first
        record may follow it."""
        self.order, self.unit_ns, self.header, self.skip = _MAGICS[head[:4]]
        *version, _, _, snaplen, link = Struct(self.order + "HHIIII").unpack_from(head, 4)
        if version == [2, 2] and link in _AIX_LINKS:
            self.unit_ns, link = 1, _AIX_LINKS[link]
        # The upper bits tell about a trailing frame check sequence; IP's length leaves it out
        # anyway.
        super().__init__([Interface(file, 0, link & 0x03FF_FFFF, "", "", snaplen, 1, 1, 0)])
        self._years = 0, 1 << 32
        """Times in seconds that are near those of the first record."""
        self._more = 0
        """Bytes that are needed to judge the record at which the walk stopped."""
        usual = max(snaplen, USUAL)
        self.limit = usual if usual <= LIMITS.packet_bytes else LIMITS.packet_bytes
        """Largest size of a record; a larger one is damage. libpcap's largest snaplen is usual."""
        self.fractions = 1_000_000_000 // self.unit_ns
        """Fractions per second."""
        self._head = Struct(self.order + "IIII").unpack_from
        self._start = bytes(head[:8])
        self._link = bytes(head[20:24])
        first = bytearray(head[self.header :])
        if len(first) >= self.skip:
            self.walk(first, 0, self.skip)
            self.damage = ""

    def walk(self, buffer: bytearray, at: int, end: int) -> tuple[list[int], int]:
        positions: list[int] = []
        head, skip, limit, fractions = self._head, self.skip, self.limit, self.fractions
        low, high = self._years
        self._more = 0
        data, begin, big = bytes(memoryview(buffer)[at:end]), at, self.order == ">"
        while at + skip <= end:
            if self.strict is not None:
                bounds = skip, limit, USUAL, fractions, *self._years
                at = records.walk(data, begin, at, big, *bounds, positions)
                if at + skip > end:
                    break
            seconds, fraction, size, wire = head(buffer, at)
            if not (
                0 < size <= wire <= USUAL
                and size <= limit
                and fraction < fractions
                and low <= seconds <= high
            ):
                if not size and self._begins(buffer, at):
                    # Files that were joined with cat: their headers stand between records.
                    if at + self.header > end:
                        break
                    same_link = buffer[at + 20 : at + 24] == self._link
                    if not same_link or buffer[at : at + 8] != self._start:
                        self.damage = OTHER_CAPTURE
                        self.hopeless = True
                        break
                    at += self.header
                    continue
                if not self._passes(buffer, at, end):
                    break
            elif self.strict is None:
                self.strict = True
                low, high = self._years = seconds - YEARS, seconds + YEARS
            following = at + skip + size
            if following > end:
                break
            positions.append(at)
            at = following
        return positions, at

    def _passes(self, buffer: bytearray, at: int, end: int) -> bool:
        """Whether an odd header is one of a record all the same; if not, there is damage, or more
        bytes are needed."""
        _, _, size, wire = self._head(buffer, at)
        if size > self.limit:
            self.damage = f"a record of {size} bytes"
            return False
        if buffer[at : at + 16] == _NOTHING:
            self.damage = "zeros instead of a record"
            return False
        if self.strict is None:
            self.strict = False
        if not self.strict:
            self._years = 0, 1 << 32
            return True
        following = at + self.skip + size
        if following + self.skip > end and not self.final:
            self._more = following + self.skip - at
            return False
        if self._follows(buffer, following, end):
            return True
        if size > wire:
            self.damage = f"a record of {size} bytes, made from {wire}"
        else:
            self.damage = "a record whose header contradicts itself"
        return False

    def _follows(self, buffer: bytearray, at: int, end: int) -> bool:
        """Whether a good record stands there, or the end of the file, or the next file."""
        if at == end:
            return True
        if at + self.skip > end:
            return False
        _, fraction, size, wire = self._head(buffer, at)
        good = 0 < size <= wire + TAGS and wire <= USUAL and fraction < self.fractions
        return good or self._begins(buffer, at)

    def search(self, data: bytearray, final: bool, damaged: int = 0) -> Found:
        from kafkascope.captures.formats.resync import search_pcap

        return search_pcap(data, self.order, self.skip, self.fractions, final, damaged)

    def record_size(self, buffer: bytearray, at: int, end: int) -> int:
        if at + self.skip > end:
            return self.skip
        if self._begins(buffer, at):
            return self.header
        return self._more or self.skip + int(self._head(buffer, at)[2])

    @staticmethod
    def _begins(buffer: bytearray, at: int) -> bool:
        """Whether a file header stands there: a magic, and a version that any such file has."""
        if bytes(buffer[at : at + 4]) not in _MAGICS:
            return False
        return bytes(buffer[at + 4 : at + 8]) in _VERSIONS

    def record(self, buffer: bytearray, at: int) -> CaptureRecord:
        seconds, fraction, captured, wire = self._head(buffer, at)
        time_ns = self.last_ns = seconds * 1_000_000_000 + fraction * self.unit_ns
        return CaptureRecord(
            time_ns, self.interfaces[0], at + self.skip, captured, max(wire, captured)
        )


def size_of_header(head: bytes) -> int:
    """Return the size of the file header if `head` starts like a pcap file, else 0."""
    found = _MAGICS.get(head[:4])
    return found[2] if found else 0
