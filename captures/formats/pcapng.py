"""pcapng: sections, interfaces, packet blocks (draft-ietf-opsawg-pcapng). Reading, no I/O.

    block type 4 | total length 4 | body | options | total length 4

Each section has its own byte order and interfaces; each interface its link type, clock and comment.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, unpack_from
from typing import Final, Literal

from kafkascope.captures.formats.records import (
    CaptureRecord,
    DecryptionSecrets,
    Format,
    Found,
    Interface,
)
from kafkascope.captures.formats.remarks import OURS, remark
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Resolved
from kafkascope.captures.packets.tcp import host_text

SECTION: Final = 0x0A0D0D0A
INTERFACE: Final = 1
OLD_PACKET: Final = 2
SIMPLE_PACKET: Final = 3
NAMES: Final = 4
STATISTICS: Final = 5
ENHANCED_PACKET: Final = 6
SECRETS: Final = 10

BYTE_ORDER: Final = 0x1A2B3C4D
COMMENT: Final = 1
IF_NAME: Final = 2
IF_DESCRIPTION: Final = 3
IF_TSRESOL: Final = 9
IF_TSOFFSET: Final = 14
ISB_IFDROP: Final = 5
ISB_OSDROP: Final = 7
NRB_IPV4: Final = 1
NRB_IPV6: Final = 2

# Memory of a block of secrets beside its bytes.
SECRETS_BYTES: Final = 200
# Bytes of a packet block around its data, padding included; with options there are more.
PLAIN_SIZE: Final = 35
_LARGE: Final = frozenset((NAMES, 9, SECRETS, 0x0BAD, 0x40000BAD))
"""Names, journal entries, secrets, custom blocks: they may have any size, for they are skipped."""


class Pcapng(Format):
    """Reads the blocks of one pcapng file."""

    header = 0
    backs = False

    def __init__(self, file: int) -> None:
        super().__init__([])
        self.file = file
        self._ours = False
        """Whether an interface is one of our own recordings."""
        self.first = 0
        """Number of the section's first interface."""
        self._secret_bytes = 0
        self._use("<")

    def _use(self, order: str) -> None:
        self.order = order
        self._two = Struct(order + "II").unpack_from
        self._one = Struct(order + "I").unpack_from
        self._packet = Struct(order + "IIIIIII").unpack_from
        self._old = Struct(order + "HHIIII").unpack_from

    def resume(self, order: str, first: int, interfaces: list[Interface], last_ns: int) -> None:
        """Go on inside a section, with what was declared before."""
        self._use(order)
        self.first, self.interfaces, self.last_ns = first, interfaces, last_ns
        self._ours = any(each.comment.startswith(OURS) for each in interfaces)

    def walk(self, buffer: bytearray, at: int, end: int) -> tuple[list[int], int]:
        """Return the positions of the whole packet blocks in buffer[at:end], and where the walk
        stopped.

        Stops in front of a new section when there are packets, for they belong to the old one.
        """
        positions: list[int] = []
        self.uniform = True
        add = positions.append
        packet, one, two = self._packet, self._one, self._two
        known = len(self.interfaces) - self.first
        while at + 12 <= end:
            kind, size = two(buffer, at)
            following = at + size
            if kind == ENHANCED_PACKET and at + 28 <= end:
                _, _, interface, _, _, captured, _ = packet(buffer, at)
                if (
                    captured + 32 <= size <= LIMITS.packet_bytes
                    and following <= end
                    and interface < known
                    and not size & 3
                    and one(buffer, following - 4)[0] == size
                ):
                    add(at)
                    if self._ours and size - captured > PLAIN_SIZE:
                        self._remark(buffer, at, interface, captured, size)
                    at = following
                    continue
            if kind == SECTION:
                if positions:
                    break
                if not self._section_order(buffer, at):
                    break
                packet, one, two = self._packet, self._one, self._two
                size = one(buffer, at + 4)[0]
            if size & 3 or size < 12:
                self.damage = f"a block with the impossible length {size}"
                break
            if size > LIMITS.packet_bytes:
                if kind not in _LARGE:
                    self.damage = f"a block of {size} bytes"
                    break
                self.unwanted = size
                break
            following = at + size
            if following > end:
                break
            if one(buffer, following - 4)[0] != size:
                self.damage = "a block whose two lengths differ"
                break
            if self._other(kind, buffer, at, size):
                add(at)
            if self.damage:
                self.beyond = size
                break
            known = len(self.interfaces) - self.first
            at = following
        return positions, at

    def _remark(self, buffer: bytearray, at: int, number: int, captured: int, size: int) -> None:
        if not self.interfaces[self.first + number].comment.startswith(OURS):
            return
        end = at + size
        for code, value in self._options(buffer, at + 28 + (captured + 3 & ~3), end - 4):
            if code == COMMENT:
                self.remarks.append(remark(at, end, _text(value)))
                return

    def search(self, data: bytearray, final: bool, damaged: int = 0) -> Found:
        from kafkascope.captures.formats.resync import search_pcapng

        return search_pcapng(data, self.order, final, damaged)

    def record_size(self, buffer: bytearray, at: int, end: int) -> int:
        return int(self._one(buffer, at + 4)[0]) if at + 8 <= end else 12

    def _section_order(self, buffer: bytearray, at: int) -> bool:
        """Begin a section; return whether its byte order is known."""
        magic = buffer[at + 8 : at + 12]
        if magic == BYTE_ORDER.to_bytes(4, "little"):
            self._use("<")
        elif magic == BYTE_ORDER.to_bytes(4, "big"):
            self._use(">")
        else:
            self.damage = "a section without byte order"
            return False
        self.first = len(self.interfaces)
        return True

    def _other(self, kind: int, buffer: bytearray, at: int, size: int) -> bool:
        """Read a block other than an enhanced packet; return whether it is a packet all the
        same."""
        body, end = at + 8, at + size - 4
        known = len(self.interfaces) - self.first
        if kind == INTERFACE:
            self._interface(buffer, body, end)
        elif kind == SECRETS and end - body >= 8:
            secret, length = self._two(buffer, body)
            kept = self._secret_bytes + length + SECRETS_BYTES
            if length <= end - body - 8 and kept <= LIMITS.secrets_block_bytes:
                self._secret_bytes = kept
                data = bytes(buffer[body + 8 : body + 8 + length])
                self.secrets.append(DecryptionSecrets(self.file, secret, data))
        elif kind == NAMES:
            self._names(buffer, body, end)
        elif kind == STATISTICS and end - body >= 12:
            interface = self._one(buffer, body)[0]
            dropped = sum(
                int.from_bytes(value, "little" if self.order == "<" else "big")
                for code, value in self._options(buffer, body + 12, end)
                if code in (ISB_IFDROP, ISB_OSDROP) and len(value) == 8
            )
            if interface < known:
                self.drops[self.first + interface] = dropped
        elif kind == SIMPLE_PACKET:
            if end - body < 4 or not known:
                self.damage = "a simple packet block without interface"
            self.uniform = False
            return not self.damage
        elif kind in (OLD_PACKET, ENHANCED_PACKET):
            if end - body < 20:
                self.damage = "a packet block without header"
                return False
            interface = (self._old if kind == OLD_PACKET else self._one)(buffer, body)[0]
            (captured,) = self._one(buffer, body + 12)
            if interface >= known:
                described = f"only {known} are described"
                self.damage = f"a packet of interface {interface}, but {described}"
            elif captured > end - body - 20:
                self.damage = f"a packet of {captured} bytes in a block of {size}"
            self.uniform = False
            return not self.damage
        return False

    def _names(self, buffer: bytearray, at: int, end: int) -> None:
        """Read a name resolution block: records of an address with its names, up to an empty
        one."""
        two = Struct(self.order + "HH").unpack_from
        while at + 4 <= end and len(self.names) < LIMITS.resolved_names:
            kind, length = two(buffer, at)
            at += 4
            if not kind or at + length > end:
                return
            size = {NRB_IPV4: 4, NRB_IPV6: 16}.get(kind, 0)
            if size and length > size:
                host = host_text(bytes(buffer[at : at + size]))
                for name in bytes(buffer[at + size : at + length]).split(b"\0"):
                    if name and len(self.names) < LIMITS.resolved_names:
                        self.names.append(
                            Resolved(_text(name).rstrip(".").lower(), (host,), "block")
                        )
            at += length + 3 & ~3

    def _interface(self, buffer: bytearray, body: int, end: int) -> None:
        if end - body < 8:
            self.damage = "an interface block without header"
            return
        if len(self.interfaces) >= LIMITS.interfaces:
            self.damage = f"more than {LIMITS.interfaces} interfaces"
            return
        link, _, snaplen = unpack_from(self.order + "HHI", buffer, body)
        name = description = comment = ""
        multiplier, divisor, offset_s = 1000, 1, 0
        for code, value in self._options(buffer, body + 8, end):
            if code == IF_NAME:
                name = _text(value[: LIMITS.interface_text_bytes])
            elif code == IF_DESCRIPTION:
                description = _text(value[: LIMITS.interface_text_bytes])
            elif code == COMMENT and not comment:
                comment = _text(value[: LIMITS.interface_text_bytes])
            elif code == IF_TSRESOL and value:
                multiplier, divisor = _resolution(value[0])
            elif code == IF_TSOFFSET and len(value) == 8:
                order: Literal["little", "big"] = "little" if self.order == "<" else "big"
                offset_s = int.from_bytes(value, order, signed=True)
        number = len(self.interfaces)
        what = comment or description
        self._ours = self._ours or what.startswith(OURS)
        self.interfaces.append(
            Interface(self.file, number, link, name, what, snaplen, multiplier, divisor, offset_s)
        )

    def _options(self, buffer: bytearray, at: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield the code and value of each option: code 2, length 2, value padded to 4 bytes."""
        while at + 4 <= end:
            code, size = unpack_from(self.order + "HH", buffer, at)
            if not code or at + 4 + size > end:
                return
            yield code, bytes(buffer[at + 4 : at + 4 + size])
            at += 4 + (size + 3 & ~3)

    def record(self, buffer: bytearray, at: int) -> CaptureRecord:
        kind, size, number, high, low, captured, wire = self._packet(buffer, at)
        start = at + 28
        if kind == SIMPLE_PACKET:
            interface = self.interfaces[self.first]
            wire = number
            captured = min(wire, size - 16, interface.snaplen or size)
            return CaptureRecord(self.last_ns, interface, at + 12, captured, max(wire, captured))
        if kind == OLD_PACKET:
            number, _, high, low, captured, wire = self._old(buffer, at + 8)
        interface = self.interfaces[self.first + number]
        self.last_ns = interface.time_ns(high << 32 | low)
        return CaptureRecord(self.last_ns, interface, start, captured, max(wire, captured))


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode("utf-8", "replace")


def _resolution(value: int) -> tuple[int, int]:
    """Return nanoseconds per tick as a fraction, of if_tsresol: a power of 10, or of 2 with the
    high bit set."""
    if value & 0x80:
        return 1_000_000_000, 1 << (value & 0x7F)
    return (10 ** (9 - value), 1) if value <= 9 else (1, 10 ** (value - 9))
