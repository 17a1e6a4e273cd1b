"""Headers of all packets of a block at once: what `captures.packets.tcp.segment_of` reads of one.

What is not plainly TCP over IPv4 or IPv6 after a usual link header is left to `segment_of`; so are
other tunnels than those that mirror ports, clouds and overlay networks send by the gigabyte: VXLAN
and Geneve with IPv4 in Ethernet, plain GRE, ERSPAN II, and IP in IP (positions as of
`tunnels.inner_ip`). Compiled by mypyc; the same source runs without.
"""

from __future__ import annotations

from itertools import compress
from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i32_le
from mypy_extensions import i64

from kafkascope.kernel.path import MASK

SECOND_NS: Final[i64] = 1_000_000_000
# EtherTypes.
IPV4: Final[i64] = 0x0800
IPV6: Final[i64] = 0x86DD
# IP protocols.
IP_IN_IP: Final[i64] = 4
TCP: Final[i64] = 6
UDP: Final[i64] = 17
GRE: Final[i64] = 47
ETHERNET_INSIDE: Final[i64] = 0x6558
ERSPAN_2: Final[i64] = 0x88BE
GENEVE_PORT: Final[i64] = 6081
SYN: Final[i64] = 0x02
ACK: Final[i64] = 0x10
# All flags but PSH and those of congestion control (ECE, CWR), which change nothing for us.
QUIET_MASK: Final[i64] = 0x37
# IPv4 without options.
PLAIN: Final[i64] = 0x45
# Smallest headers of IPv4 with TCP; of a tunnel, its own or an IP header must be there.
SMALLEST: Final[i64] = 40
# VLAN tags that are followed.
TAGS: Final[i64] = 2
RAW: Final[i64] = -1
"""In place of the position of an EtherType: a record begins with its IP header."""
UNKNOWN_LINK: Final[i64] = -2
COOKED: Final[i64] = 1
"""Mark of Linux cooked v1: it tells the direction of a packet."""
COOKED_2: Final[i64] = 2
"""Mark of Linux cooked v2: it tells the interface's index, and its tags are not followed."""


def _half(data: bytes, at: i64) -> i64:
    return i64(read_i16_be(data, at)) & 0xFFFF


def _word(data: bytes, at: i64) -> i64:
    return i64(read_i32_be(data, at)) & MASK


def _number(data: bytes, at: i64, big: bool) -> i64:
    """Return a number of a record's header, in the byte order of the file."""
    return i64(read_i32_be(data, at)) & MASK if big else i64(read_i32_le(data, at)) & MASK


def fingerprint(flow: bytes, seq: i64, ack: i64, sign: i64, length: i64, flags: i64) -> i64:
    """Return 62 bits that exact copies of a segment share: of the IP id, or the checksum where
    there is none (`sign`, the last 16 bits), and 46 of a hash of all else.

    Only for counting: bytes are never dropped because of it, so a collision does no harm.
    """
    size: i64 = len(flow)
    one: i64 = 0
    two: i64 = 0
    at: i64 = 0
    while at < size - 4:
        one ^= _word(flow, at)
        two ^= _word(flow, at + 4)
        at += 8
    # Numbers of 32 bits by odd ones of 31 never reach the sign of a machine's integer, so that the
    # plain kernel computes the same.
    mixed: i64 = seq * 0x5851F42D ^ ack * 0x4C957F2D ^ _word(flow, size - 4) * 0x2545F491
    mixed ^= one * 0x369DEA0F ^ two * 0x41C64E6D ^ (length << 8 | flags) * 0x2F0B4D
    return (mixed >> 17) << 16 | sign


class RecordLayout:
    """How the records of a file are laid out, and what stands in front of IP headers."""

    def __init__(self, blocks: bool, skip: int, unit_ns: int, latest_ns: int, tunnels: int) -> None:
        """`blocks`: of pcapng, with a tick count; else of pcap, with seconds and fractions of
        `unit_ns`. `skip`: bytes of a record's header. `latest_ns`: no time is after it."""
        self.blocks: bool = blocks
        self.big: bool = False
        """Big-endian: a section has its own byte order."""
        self.skip: i64 = skip
        self.unit_ns: i64 = unit_ns
        self.latest_ns: i64 = latest_ns
        self.tunnels: i64 = tunnels
        self.tags: frozenset[int] = frozenset()
        """EtherTypes of VLAN tags."""
        self.vxlan: frozenset[int] = frozenset()
        """UDP ports of VXLAN."""
        self.first: i64 = 0
        """Number of a section's first interface; the lists have all."""
        self.types: list[int] = []
        """Position of the EtherType in the link header, `RAW` or `UNKNOWN_LINK`."""
        self.heads: list[int] = []
        """Bytes of the link header."""
        self.marks: list[int] = []
        """`COOKED`, `COOKED_2` or 0."""
        self.multipliers: list[int] = []
        """Nanoseconds of a tick."""
        self.offsets: list[int] = []
        """Nanoseconds to add."""
        self.most: list[int] = []
        """Ticks at most; -1 where a tick is no whole number of them."""

    def time(self, data: bytes, at: i64) -> i64:
        """Return the time of a record in ns; -1 where it is odd."""
        if not self.blocks:
            fraction = _number(data, at + 4, self.big)
            return _number(data, at, self.big) * SECOND_NS + fraction * self.unit_ns
        mine = _number(data, at + 8, self.big) + self.first
        high = _number(data, at + 12, self.big)
        most: i64 = self.most[mine]
        if high >= 1 << 31:
            return -1
        ticks: i64 = high << 32 | _number(data, at + 16, self.big)
        if ticks > most:
            return -1
        multiplier: i64 = self.multipliers[mine]
        offset: i64 = self.offsets[mine]
        time_ns: i64 = ticks * multiplier
        # Added first, it could wrap around.
        if offset > 0 and time_ns > self.latest_ns - offset:
            return -1
        return time_ns + offset if time_ns + offset >= 0 else -1


LISTS: Final = (
    *("numbers", "times", "starts", "places", "lengths", "captured", "flows", "seqs", "acks"),
    *("flags", "windows", "interfaces", "prints", "plain"),
)


class HeaderColumns:
    """Packets with TCP in their order, one entry in each list."""

    def __init__(self, data: bytes, file: int) -> None:
        self.data = data
        """Where their payloads are."""
        self.file: i64 = file
        self.numbers: list[int] = []
        """Numbers of the packets in the capture."""
        self.times: list[int] = []
        self.starts: list[int] = []
        """Positions of payloads in the data."""
        self.places: list[int] = []
        """Offsets of payloads in the file."""
        self.lengths: list[int] = []
        """Payload bytes on the wire."""
        self.captured: list[int] = []
        """Payload bytes that are in the file."""
        self.flows: list[bytes] = []
        self.seqs: list[int] = []
        self.acks: list[int] = []
        self.flags: list[int] = []
        self.windows: list[int] = []
        """Receive windows as in the header, not scaled."""
        self.interfaces: list[int] = []
        """As `Segment.interface`."""
        self.prints: list[int] = []
        """As `fingerprint` gives them."""
        self.plain: list[bool] = []
        """Whether all payload is there, and no flag but ACK and quiet ones is set."""
        self.options: dict[int, bytes] = {}
        """TCP options of a SYN, by index."""
        self.others: list[int] = []
        """Indexes of the packets whose headers were not read."""
        self.latest_ns: int = 0
        """The latest time of all packets, and the times of the first and the last one."""
        self.first_ns: int = 0
        self.last_ns: int = 0
        self.captured_bytes: int = 0
        """Captured bytes of all packets."""
        self.cut: int = 0
        """Packets whose payload is not all there."""
        self.mirrored: int = 0
        """Whole frames among them, whose headers inside announce more: a mirror cut these."""

    def keep(self, flows: set[bytes]) -> None:
        """Leave out the packets of all other flows."""
        mine = [flow in flows for flow in self.flows]
        if all(mine):
            return
        for name in LISTS:
            setattr(self, name, list(compress(getattr(self, name), mine)))
        places = [at for at, kept in enumerate(mine) if kept]
        of = {at: index for index, at in enumerate(places)}
        self.options = {of[at]: found for at, found in self.options.items() if at in of}


def read(
    data: bytes,
    file: int,
    positions: list[int],
    layout: RecordLayout,
    shift_: int,
    number_: int,
    base_: int,
) -> HeaderColumns | None:
    """Return the headers of the records at some positions; None where a time is odd. `shift_`: to
    add to times; `number_`: of the first packet; `base_`: offset of the data in the file."""
    shift: i64 = shift_
    number: i64 = number_
    base: i64 = base_
    out = HeaderColumns(data, file)
    blocks, big, skip, first = layout.blocks, layout.big, layout.skip, layout.first
    sizes_at: i64 = 20 if blocks else 8
    interface: i64 = -1
    type_at: i64 = UNKNOWN_LINK
    head: i64 = 0
    mark: i64 = 0
    mine: i64 = 0
    time_ns: i64 = 0
    latest: i64 = 0
    sum_captured: i64 = 0
    cut: i64 = 0
    mirrored: i64 = 0
    index: i64 = 0
    for position in positions:
        at: i64 = position
        time_ns = layout.time(data, at)
        if time_ns < 0:
            return None
        time_ns += shift
        if time_ns < 0:
            time_ns = 0
        if time_ns > latest:
            latest = time_ns
        if index == 0:
            out.first_ns = time_ns
        start: i64 = at + skip
        captured = _number(data, at + sizes_at, big)
        wire = _number(data, at + sizes_at + 4, big)
        if blocks:
            mine = _number(data, at + 8, big) + first
        if captured > wire:
            wire = captured
        end: i64 = start + captured
        sum_captured += captured
        if mine != interface:
            interface = mine
            type_at, head, mark = layout.types[mine], layout.heads[mine], layout.marks[mine]
        ip: i64 = -1
        if type_at == RAW:
            ip = start
        elif type_at >= 0 and captured >= head:
            ip = _behind(data, start + type_at, start + head, end, mark, layout)
        if ip >= 0 and ip + SMALLEST <= end and data[ip] == PLAIN and data[ip + 9] != TCP:
            ip = _peeled(data, ip, end, layout)
        tcp_at: i64 = -1
        ip_end: i64 = 0
        sign: i64 = 0
        if ip >= 0 and ip + SMALLEST <= end:
            version: i64 = data[ip]
            if version >> 4 == 4:
                size: i64 = (version & 15) << 2
                if data[ip + 9] == TCP and _half(data, ip + 6) & 0x3FFF == 0 and size >= 20:
                    tcp_at = ip + size
                    total = _half(data, ip + 2)
                    ip_end = ip + total if total > 0 else start + wire
                    sign = _half(data, ip + 4)
            elif version >> 4 == 6 and ip + 60 <= end and data[ip + 6] == TCP:
                tcp_at = ip + 40
                total = _half(data, ip + 4)
                ip_end = tcp_at + total if total > 0 else start + wire
        payload: i64 = 0
        length: i64 = -1
        if tcp_at >= 0 and tcp_at + 20 <= end:
            words: i64 = data[tcp_at + 12]
            payload = tcp_at + (words >> 4 << 2)
            if words >= 0x50:
                length = ip_end - payload
        if length < 0:
            out.others.append(index)
            index += 1
            continue
        seq = _word(data, tcp_at + 4)
        ack = _word(data, tcp_at + 8)
        flags: i64 = data[tcp_at + 13]
        if sign == 0:
            sign = _half(data, tcp_at + 16)
        if tcp_at == ip + 20:
            flow = data[ip + 12 : ip + 24]
        elif tcp_at == ip + 40 and data[ip] >> 4 == 6:
            flow = data[ip + 8 : ip + 44]
        else:
            flow = data[ip + 12 : ip + 20] + data[tcp_at : tcp_at + 4]
        if flags & SYN:
            out.options[len(out.numbers)] = data[tcp_at + 20 : payload if payload < end else end]
        there: i64 = end - payload if payload < end else 0
        whole = payload + length <= end
        if length > 0 and not whole:
            cut += 1
            if wire <= captured:
                mirrored += 1
        if mark == COOKED_2:
            mine |= _word(data, start + 4) << 32
        elif mark == COOKED:
            mine |= _half(data, start) << 32
        out.numbers.append(number + index)
        out.times.append(time_ns)
        out.starts.append(payload)
        out.places.append(payload + base)
        out.lengths.append(length)
        out.captured.append(length if length < there else there)
        out.flows.append(flow)
        out.seqs.append(seq)
        out.acks.append(ack)
        out.flags.append(flags)
        out.windows.append(_half(data, tcp_at + 14))
        out.interfaces.append(mine)
        out.prints.append(fingerprint(flow, seq, ack, sign, length, flags))
        out.plain.append(whole and flags & QUIET_MASK == ACK)
        mine = interface
        index += 1
    out.latest_ns, out.last_ns, out.captured_bytes = latest, time_ns, sum_captured
    out.cut, out.mirrored = cut, mirrored
    return out


def _behind(data: bytes, type_at: i64, ip: i64, end: i64, mark: i64, layout: RecordLayout) -> i64:
    """Return where the IP header after a link header is, which ends at `ip`; -1: nowhere."""
    kind = _half(data, type_at)
    tags: i64 = 0
    while kind != IPV4 and kind != IPV6:
        if tags == TAGS or mark == COOKED_2 or ip + 4 > end or kind not in layout.tags:
            return -1
        ip += 4
        kind = _half(data, ip - 2)
        tags += 1
    return ip


def _peeled(data: bytes, ip: i64, end: i64, layout: RecordLayout) -> i64:
    """Return where the innermost IP header is; the outer one where there is no tunnel."""
    level: i64 = 0
    while level < layout.tunnels:
        inner = _inside(data, ip, end, layout)
        if inner == 0:
            break
        ip = inner
        level += 1
    return ip


def _inside(data: bytes, ip: i64, end: i64, layout: RecordLayout) -> i64:
    """Return where the IPv4 header inside a packet is that may be a tunnel; 0: nowhere."""
    if ip + SMALLEST > end or data[ip] != PLAIN or _half(data, ip + 6) & 0x3FFF != 0:
        return 0
    protocol: i64 = data[ip + 9]
    at: i64 = ip + 20
    first = _half(data, at)
    second = _half(data, at + 2)
    inner: i64 = 0
    frame: i64 = 0
    if protocol == IP_IN_IP:
        inner = at
    elif protocol == GRE:
        if first == 0 and second == IPV4:
            inner = at + 4
        elif first == 0x1000 and second == ERSPAN_2:
            frame = at + 16
    elif protocol == UDP:
        flags: i64 = data[at + 8]
        if second in layout.vxlan:
            frame = at + 16 if flags & 8 else 0
        elif second == GENEVE_PORT and flags >> 6 == 0 and _half(data, at + 10) == ETHERNET_INSIDE:
            frame = at + 16 + 4 * (flags & 0x3F)
    if frame and frame + 34 <= end and _half(data, frame + 12) == IPV4:
        inner = frame + 14
    return inner if inner and data[inner] >> 4 == 4 else 0


def times(data: bytes, positions: list[int], layout: RecordLayout, shift_: int) -> list[int] | None:
    """Return the times of the records at some positions; None where one is odd."""
    shift: i64 = shift_
    out: list[int] = []
    for position in positions:
        time_ns = layout.time(data, position)
        if time_ns < 0:
            return None
        time_ns += shift
        out.append(time_ns if time_ns > 0 else 0)
    return out


def first_late(
    times: list[int], latest: tuple[int, int], tolerance_: int
) -> tuple[int, tuple[int, int]]:
    """Return the index of the first time that is before the second latest one by more than a
    tolerance, or how many times there are, and the second latest and the latest time before it.
    `latest`: these two before `times`."""
    second: i64 = latest[0]
    first: i64 = latest[1]
    tolerance: i64 = tolerance_
    index: i64 = 0
    for each in times:
        time_ns: i64 = each
        if time_ns >= first:
            second = first
            first = time_ns
        elif second - time_ns > tolerance:
            break
        elif time_ns > second:
            second = time_ns
        index += 1
    return index, (second, first)
