"""Compose TCP conversations packet by packet: for the recorder, for cuts, for fixtures.

Checksums are right, so that any tool follows; that of TCP may be left to a network card that is not
there, as captures of outgoing packets have it. Headers are packed by struct: the recorder is busy.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import Struct
from typing import Final

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Endpoint
from kafkascope.captures.packets.link import ETHERNET, IPV4, IPV6
from kafkascope.captures.packets.tcp import ACK, FIN, MASK, PSH, RST, SYN

MSS: Final = 1460
_WINDOW: Final = 65_535
# Bytes from which numpy is worth its call.
BULK: Final = 2_048

_ETHERNET = Struct(">6s6sH")
_MACS: Final = (bytes.fromhex("020000000001"), bytes.fromhex("020000000002"))
"""Locally administered addresses, which belong to nobody."""
_SCALE: Final = Struct(">BBBB")
"""A byte of padding and the option with its three."""


def checksum(data: bytes | memoryview) -> int:
    """Return the Internet checksum (RFC 1071): a number modulo 65535 is its ones' complement
    sum."""
    return 0xFFFF - _sum(data)


def _sum(data: bytes | memoryview) -> int:
    """Return the ones' complement sum of 16 bit words; 0 only when all bytes are."""
    if len(data) >= BULK:
        # Twenty times faster: the size and the order of the words matter only for the order of the
        # result's bytes (RFC 1071).
        import numpy as np

        words = len(data) >> 2
        value = int(np.frombuffer(data, "<u4", words).sum(dtype=np.uint64))
        return _swapped(value + int.from_bytes(data[words << 2 :], "little"))
    value = int.from_bytes(data, "big")
    if len(data) & 1:
        value <<= 8
    return value % 0xFFFF or (0xFFFF if value else 0)


def _sums(data: memoryview, step: int) -> Iterator[int]:
    """Yield the sum of each piece of `step` bytes of `data`; large pieces are summed all at
    once."""
    size = len(data)
    if size <= step or step < BULK or step & 3:
        for at in range(0, size, step):
            yield _sum(data[at : at + step])
        return
    import numpy as np

    count = size // step
    whole = np.frombuffer(data, "<u4", count * step >> 2)
    starts = np.arange(0, count * step >> 2, step >> 2)
    for value in np.add.reduceat(whole, starts, dtype=np.uint64).tolist():
        yield _swapped(value)
    if count * step < size:
        yield _sum(data[count * step :])


def _swapped(value: int) -> int:
    """Turn the sum of little-endian words into that of big-endian ones."""
    total = value % 0xFFFF or (0xFFFF if value else 0)
    return (total & 0xFF) << 8 | total >> 8


class Composer:
    """Composes both directions of a connection; methods return the packets they make, in order.

    Direction 0 runs from `a`, which connects, to `b`. Hosts are IP addresses; where one is IPv4
    and the other IPv6, the former is mapped.
    """

    def __init__(
        self,
        a: Endpoint,
        b: Endpoint,
        *,
        mss: int = MSS,
        link_type: int = ETHERNET,
        isn: tuple[int, int] = (0, 0),
        scale: int = 0,
    ) -> None:
        """`link_type`: ETHERNET or raw IP (101). `isn`: where sequence numbers start. `scale`: of
        both windows (RFC 7323), for those who acknowledge rarely."""
        hosts = [ip_address(each.host.split("%")[0]) for each in (a, b)]
        self._v6 = any(host.version == 6 for host in hosts)
        packed = [_packed(host, self._v6) for host in hosts]
        ports = [port.to_bytes(2, "big") for port in (a.port, b.port)]
        self._mss = max(1, min(mss, LIMITS.mss_bytes))
        self._scale = _SCALE.pack(1, 3, 3, scale) if scale else b""
        self.next = [isn[0] & MASK, isn[1] & MASK]
        """Sequence number that each direction uses next."""
        self._ident = [0, 0]
        # What is the same in all packets of a direction: bytes, and their part of the checksums.
        kind = IPV6 if self._v6 else IPV4
        ethernet = link_type == ETHERNET
        self._links = [
            _ETHERNET.pack(_MACS[1 - way], _MACS[way], kind) if ethernet else b"" for way in (0, 1)
        ]
        self._hosts = [packed[way] + packed[1 - way] for way in (0, 1)]
        self._ports = [ports[way] + ports[1 - way] for way in (0, 1)]
        self._ip_sum = [0x4500 + 0x4000 + 0x4006 + _sum(each) for each in self._hosts]
        self._tcp_sum = [6 + _WINDOW + _sum(self._hosts[way] + self._ports[way]) for way in (0, 1)]
        self._pseudo_sum = [6 + _sum(each) for each in self._hosts]
        link = len(self._links[0])
        ip = "IHH32s" if self._v6 else "HHHHHH8s"
        self._head = Struct(f">{link}s{ip}4sIIHHHH")

    def open(self) -> list[bytes]:
        return [self.packet(0, SYN), self.packet(1, SYN | ACK), self.packet(0, ACK)]

    def send(self, direction: int, data: bytes | memoryview, *, ack: bool = True) -> list[bytes]:
        """Return the segments that carry `data`, then the ACK of the other side."""
        packets = [head + part for head, part in self.segments(direction, data)]
        if ack and packets:
            packets.append(self.packet(1 - direction, ACK))
        return packets

    def segments(
        self, direction: int, data: bytes | memoryview
    ) -> Iterator[tuple[bytes, memoryview]]:
        """Yield the segments that carry `data`: the headers, and the payload as a view of
        `data`."""
        view, mss = memoryview(data), self._mss
        size = len(view)
        sums = _sums(view, mss)
        for at in range(0, size, mss):
            flags = ACK if at + mss < size else ACK | PSH
            part = view[at : at + mss]
            yield self.head(direction, flags, len(part), next(sums)), part

    def lose(self, direction: int, size: int) -> None:
        """Let `size` bytes pass unseen: the reader of the capture meets a gap."""
        self.next[direction] = self.next[direction] + size & MASK

    def close(self, direction: int) -> list[bytes]:
        return [self.packet(direction, FIN | ACK), self.packet(1 - direction, ACK)]

    def reset(self, direction: int) -> list[bytes]:
        return [self.packet(direction, RST | ACK)]

    def packet(self, direction: int, flags: int, payload: bytes | memoryview = b"") -> bytes:
        """Return one packet, and move the sequence number on."""
        return b"".join((self.head(direction, flags, len(payload), _sum(payload)), payload))

    def again(self, direction: int, seq: int, payload: bytes) -> bytes:
        """Return a packet with bytes that were sent before, from `seq` on."""
        following = self.next[direction]
        self.next[direction] = seq
        packet = self.packet(direction, ACK | PSH, payload)
        self.next[direction] = following
        return packet

    def head(self, direction: int, flags: int, size: int = 0, words: int | None = 0) -> bytes:
        """Return the headers of a packet, given size and sum of its payload, and move the sequence
        number on. Without the sum the checksum is what a kernel leaves to its network card: the
        sum of the pseudo header."""
        seq, ack = self.next[direction], self.next[1 - direction]
        self.next[direction] = seq + size + bool(flags & (SYN | FIN)) & MASK
        options = self._scale if flags & SYN else b""
        if not flags & ACK:
            ack = 0
        size += 20 + len(options)
        offset = 0x5000 + (len(options) << 10) + flags
        if words is None:
            check = (self._pseudo_sum[direction] + size) % 0xFFFF
        else:
            # A sum over parts of even length is the sum of their sums: nothing is copied for it.
            total = self._tcp_sum[direction] + offset + size + (seq >> 16) + (seq & 0xFFFF)
            total += (ack >> 16) + (ack & 0xFFFF) + words
            if options:
                total += _sum(options)
            check = 0xFFFF - (total % 0xFFFF or 0xFFFF)
        link, hosts, ports = self._links[direction], self._hosts[direction], self._ports[direction]
        tcp = (ports, seq, ack, offset, _WINDOW, check, 0)
        if self._v6:
            return self._head.pack(link, 6 << 28, size, 0x0640, hosts, *tcp) + options
        ident = self._ident[direction] = self._ident[direction] + 1 & 0xFFFF
        size += 20
        check = 0xFFFF - ((self._ip_sum[direction] + size + ident) % 0xFFFF or 0xFFFF)
        ip = (0x4500, size, ident, 0x4000, 0x4006, check)
        return self._head.pack(link, *ip, hosts, *tcp) + options


def _packed(host: IPv4Address | IPv6Address, v6: bool) -> bytes:
    if v6 and isinstance(host, IPv4Address):
        return bytes(10) + b"\xff\xff" + host.packed
    return host.packed
