"""Compose a TCP conversation packet by packet: for the recorder, for "save as capture", for
fixtures.

Valid to the last checksum, so that any tool follows it; from struct templates, for the recorder is
busy.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import Struct
from typing import Final

from captures.link import ETHERNET, IPV4, IPV6
from captures.model import Endpoint
from captures.tcp import ACK, FIN, MASK, PSH, RST, SYN

MSS: Final = 1460
MAX_MSS: Final = 65_000
"""Below the 65 535 bytes of an IP packet, with room for headers."""
_WINDOW: Final = 65_535
BULK: Final = 2_048
"""Bytes from which numpy is worth its call."""

_ETHERNET = Struct(">6s6sH")
_IPV4 = Struct(">BBHHHBBH4s4s")
_IPV6 = Struct(">IHBB16s16s")
_TCP = Struct(">HHIIBBHHH")
_MACS: Final = (bytes.fromhex("020000000001"), bytes.fromhex("020000000002"))
"""Locally administered addresses: nobody's."""


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071): a big number modulo 65535 is its ones' complement sum."""
    if len(data) >= BULK:
        return 0xFFFF - _bulk_sum(data)
    if len(data) & 1:
        data += b"\0"
    value = int.from_bytes(data, "big")
    return 0xFFFF - (value % 0xFFFF or (0xFFFF if value else 0))


def _bulk_sum(data: bytes) -> int:
    """The same sum of much data, twenty times faster: words of any size and order have it (RFC
    1071), but for the order of the result's bytes."""
    import numpy as np

    words = len(data) >> 2
    value = int(np.frombuffer(data, "<u4", words).sum(dtype=np.uint64))
    value += int.from_bytes(data[words << 2 :], "little")
    total = value % 0xFFFF or (0xFFFF if value else 0)
    return (total & 0xFF) << 8 | total >> 8


class Composer:
    """Both directions of one connection; every method returns the packets it makes, in order.

    Direction 0 runs from `a`, which connects, to `b`. Hosts are IP addresses; where one is IPv4
    and the
    other IPv6, the former is mapped.
    """

    def __init__(
        self,
        a: Endpoint,
        b: Endpoint,
        *,
        mss: int = MSS,
        link_type: int = ETHERNET,
        isn: tuple[int, int] = (0, 0),
    ) -> None:
        """`link_type`: ETHERNET or raw IP (101). `isn`: where sequence numbers start."""
        hosts = [ip_address(each.host.split("%")[0]) for each in (a, b)]
        self._v6 = any(host.version == 6 for host in hosts)
        self._hosts = [_packed(host, self._v6) for host in hosts]
        self._ports = (a.port, b.port)
        self._mss = max(1, min(mss, MAX_MSS))
        self._ethernet = link_type == ETHERNET
        self.next = [isn[0] & MASK, isn[1] & MASK]
        """Sequence number that each direction uses next."""
        self._ident = [0, 0]

    def open(self) -> list[bytes]:
        """The handshake."""
        return [self.packet(0, SYN), self.packet(1, SYN | ACK), self.packet(0, ACK)]

    def send(self, direction: int, data: bytes | memoryview, *, ack: bool = True) -> list[bytes]:
        """The segments that carry `data`, then the ACK of the other side."""
        packets = []
        view = memoryview(data)
        while view:
            part, view = view[: self._mss], view[self._mss :]
            packets.append(self.packet(direction, ACK if view else ACK | PSH, bytes(part)))
        if ack and packets:
            packets.append(self.packet(1 - direction, ACK))
        return packets

    def lose(self, direction: int, size: int) -> None:
        """Let `size` bytes pass unseen: the reader of the capture meets a gap."""
        self.next[direction] = self.next[direction] + size & MASK

    def close(self, direction: int) -> list[bytes]:
        """One side ends its direction, the other acknowledges."""
        return [self.packet(direction, FIN | ACK), self.packet(1 - direction, ACK)]

    def reset(self, direction: int) -> list[bytes]:
        """One side aborts."""
        return [self.packet(direction, RST | ACK)]

    def packet(self, direction: int, flags: int, payload: bytes = b"") -> bytes:
        """One packet; moves the sequence number on."""
        seq, ack = self.next[direction], self.next[1 - direction]
        self.next[direction] = seq + len(payload) + bool(flags & (SYN | FIN)) & MASK
        source, target = self._hosts[direction], self._hosts[1 - direction]
        ports = self._ports[direction], self._ports[1 - direction]
        ack = ack if flags & ACK else 0
        size = 20 + len(payload)
        pseudo = source + target + bytes((0, 6)) + size.to_bytes(2, "big")
        head = _TCP.pack(*ports, seq, ack, 0x50, flags, _WINDOW, 0, 0)
        if len(payload) >= BULK:
            # A sum over parts of even length is the sum of their sums: nothing is copied for it.
            both = 0x1FFFE - checksum(pseudo + head) - checksum(payload)
            check = (0xFFFF - (both % 0xFFFF or 0xFFFF)).to_bytes(2, "big")
        else:
            check = checksum(pseudo + head + payload).to_bytes(2, "big")
        segment = head[:16] + check + head[18:]
        if self._v6:
            packet = _IPV6.pack(6 << 28, size, 6, 64, source, target) + segment
        else:
            ident = self._ident[direction] = self._ident[direction] + 1 & 0xFFFF
            fields = (0x45, 0, 20 + size, ident, 0x4000, 64, 6)
            check_ip = checksum(_IPV4.pack(*fields, 0, source, target))
            packet = _IPV4.pack(*fields, check_ip, source, target) + segment
        if not self._ethernet:
            return packet + payload
        kind = IPV6 if self._v6 else IPV4
        return _ETHERNET.pack(_MACS[1 - direction], _MACS[direction], kind) + packet + payload


def _packed(host: IPv4Address | IPv6Address, v6: bool) -> bytes:
    if v6 and isinstance(host, IPv4Address):
        return bytes(10) + b"\xff\xff" + host.packed
    return host.packed
