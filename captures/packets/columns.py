"""Headers of all packets of a block at once, with numpy: what `segment_of` tells, as columns.

What is not plainly TCP over IPv4 or IPv6 behind a usual link header is left to `segment_of`; so are
other tunnels than those that mirror ports, clouds and overlay networks send by the gigabyte: VXLAN
and Geneve with IPv4 in Ethernet, plain GRE, ERSPAN II, and IP in IP (positions as of
`tunnels.inner_ip`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkascope.captures.formats.pcap import Pcap
from kafkascope.captures.formats.pcapng import Pcapng
from kafkascope.captures.formats.records import Format
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.packets.ip import TCP
from kafkascope.captures.packets.link import ETHERNET, IPV4, IPV6, LINUX_SLL, LINUX_SLL2, VLAN_TAGS
from kafkascope.captures.packets.tcp import SYN, UNKNOWN, scale_in
from kafkascope.captures.packets.tunnels import (
    ERSPAN_2,
    ETHERNET_INSIDE,
    GENEVE_PORT,
    GRE,
    IP_IN_IP,
    UDP,
    VXLAN_PORTS,
)

if TYPE_CHECKING:
    from kafkascope.captures.formats.records import Block


Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

_IPV4: Final = np.dtype(
    {
        "names": ["first", "total", "ident", "fragment", "protocol", "addresses"],
        "formats": ["u1", ">u2", ">u2", ">u2", "u1", "V8"],
        "offsets": [0, 2, 4, 6, 9, 12],
        "itemsize": 20,
    }
)
_IPV6: Final = np.dtype(
    {
        "names": ["first", "length", "following", "addresses"],
        "formats": ["u1", ">u2", "u1", "V32"],
        "offsets": [0, 4, 6, 8],
        "itemsize": 40,
    }
)
_TCP: Final = np.dtype(
    {
        "names": ["ports", "raw_ports", "seq", "ack", "offset", "flags", "window", "checksum"],
        "formats": [">u4", "V4", ">u4", ">u4", "u1", "u1", ">u2", ">u2"],
        "offsets": [0, 0, 4, 8, 12, 13, 14, 16],
        "itemsize": 20,
    }
)
_RAW_LINKS: Final = (12, 14, 101, 228, 229)
_TYPE_AT: Final = {ETHERNET: (12, 14), LINUX_SLL: (14, 16), LINUX_SLL2: (0, 20)}
"""Position of the EtherType and size of the header, by link type."""
_TAGS: Final = np.array(sorted(VLAN_TAGS))


class Columns(NamedTuple):
    """Columns with an entry for each record of a block; those of TCP count only where `tcp` is
    true."""

    time_ns: Ints
    start: Ints
    """Position of the record's data in the buffer."""
    captured: Ints
    wire: Ints
    """Bytes of the frame on the wire, of which `captured` are in the file."""
    interface: Ints
    """As `Segment.interface`."""
    tcp: Flags
    """Whether the headers were read here."""
    payload: Ints
    """Position of the payload in the buffer."""
    length: Ints
    """Payload bytes on the wire."""
    seq: Words
    ack: Words
    flags: Words
    window: Ints
    """Receive window as in the header, not scaled."""
    scale: Ints
    """As `Segment.scale`."""
    copy: Words
    """As `Segment.copy`."""
    flows: list[bytes]
    """As `Segment.flow`; empty where `tcp` is false."""


def _view(buffer: bytearray, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return a view of the buffer with an item of `kind` at each byte."""
    return np.ndarray((len(buffer) - kind.itemsize + 1,), kind, buffer, strides=(1,))


def _rows(buffer: bytearray, at: Ints, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return the items of `kind` at the given places, copied."""
    plain = np.dtype(f"V{kind.itemsize}")
    return _view(buffer, plain)[at].view(kind)


def _u2(buffer: bytearray, at: Ints) -> Ints:
    return _view(buffer, np.dtype(">u2"))[at].astype(np.int64)


_Records = tuple[Ints, Ints, Ints, Ints, Ints]
"""The first five of `Columns`, but times without the block's shift."""


def _pcap(format_: Pcap, buffer: bytearray, at: Ints) -> _Records:
    rows = _rows(buffer, at, np.dtype(f"({4},){format_.order}u4")).reshape(-1, 4)
    fields = rows.astype(np.int64)
    time_ns = fields[:, 0] * 1_000_000_000 + fields[:, 1] * format_.unit_ns
    captured = fields[:, 2]
    wire = np.maximum(fields[:, 3], captured)
    return time_ns, at + format_.skip, captured, wire, np.zeros(len(at), np.int64)


def _pcapng(format_: Pcapng, buffer: bytearray, at: Ints) -> _Records | None:
    rows = _rows(buffer, at, np.dtype(f"({7},){format_.order}u4")).reshape(-1, 7)
    fields = rows.astype(np.int64)
    interface = fields[:, 2] + format_.first
    ticks = fields[:, 3] << 32 | fields[:, 4]
    time_ns = np.empty(len(at), np.int64)
    for number in np.unique(interface).tolist():
        known = format_.interfaces[number]
        mine = interface == number
        few = ticks[mine]
        low, high = int(few.min()), int(few.max())
        exact = known.divisor == 1 and low >= 0
        if not exact or high * known.multiplier > LIMITS.time_ns:
            return None
        offset = known.offset_s * 1_000_000_000
        first, last = low * known.multiplier + offset, high * known.multiplier + offset
        if first < 0 or last > LIMITS.time_ns or abs(offset) > LIMITS.time_ns:
            return None
        time_ns[mine] = few * known.multiplier + offset
    captured = fields[:, 5]
    return time_ns, at + 28, captured, np.maximum(fields[:, 6], captured), interface


def _records(format_: Format, buffer: bytearray, at: Ints) -> _Records | None:
    if isinstance(format_, Pcap):
        return _pcap(format_, buffer, at)
    return _pcapng(format_, buffer, at) if isinstance(format_, Pcapng) else None


def _shifted(times: Ints, block: Block) -> Ints:
    return np.maximum(times + block.shift_ns, 0) if block.shift_ns else times


def times_of(block: Block) -> Ints:
    format_, at = block.format, np.array(block.positions, np.int64)
    if format_.uniform and isinstance(
        format_, Pcap
    ):  # two words of a record are half of the work of four
        rows = _rows(block.buffer, at, np.dtype(f"(2,){format_.order}u4")).reshape(-1, 2)
        seconds, fractions = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
        return _shifted(seconds * 1_000_000_000 + fractions * format_.unit_ns, block)
    if format_.uniform:
        found = _records(format_, block.buffer, at)
        if found is not None:
            return _shifted(found[0], block)
    return np.array([packet.time_ns for packet in block.packets()], np.int64)


def first_late(
    times: Ints, latest: tuple[int, int], tolerance_ns: int
) -> tuple[int, tuple[int, int]]:
    """Return the index of the first packet that is late by more than `tolerance_ns`, or the number
    of packets, and the second latest and the latest time before it. `latest`: these two before
    `times`."""
    count = len(times)
    second_ns, first_ns = latest
    if count > 1 and int(times[0]) >= first_ns and bool((times[1:] >= times[:-1]).all()):
        return count, (int(times[-2]), int(times[-1]))
    before = np.maximum.accumulate(np.concatenate([[first_ns], times]))
    second = np.maximum.accumulate(np.maximum(np.minimum(before[:-1], times), second_ns))
    late = np.concatenate([[second_ns], second[:-1]]) - times > tolerance_ns
    first = int(late.argmax()) if late.any() else count
    second_ns = int(second[first - 1]) if first else second_ns
    return first, (second_ns, int(before[first]))


def lateness(times: Ints, latest_ns: int) -> Ints:
    """Return by how much each time is before the latest one up to it. `latest_ns`: of the packets
    before."""
    latest: Ints = np.maximum(np.maximum.accumulate(times), latest_ns)
    return latest - times


def _ip_at(buffer: bytearray, links: Ints, start: Ints, room: Ints) -> tuple[Ints, Flags]:
    """Return positions of IP headers behind the usual link headers, and for which records they
    hold."""
    one = int(links[0])
    if (links == one).all():
        return _ip_behind(buffer, one, start, room)
    at, good = start.copy(), np.zeros(len(start), np.bool_)
    for link in np.unique(links).tolist():
        mine = links == link
        at[mine], good[mine] = _ip_behind(buffer, link, start[mine], room[mine])
    return at, good


def _ip_behind(buffer: bytearray, link: int, start: Ints, room: Ints) -> tuple[Ints, Flags]:
    """Return the same for records of one link type."""
    if link in _RAW_LINKS:
        return start, np.ones(len(start), np.bool_)
    if link not in _TYPE_AT:
        return start, np.zeros(len(start), np.bool_)
    type_at, header = _TYPE_AT[link]
    whole = room >= header
    kind = _u2(buffer, np.where(whole, start + type_at, 0))
    good = whole & ((kind == IPV4) | (kind == IPV6))
    at = start + header
    if link == LINUX_SLL2:
        return at, good
    tagged = whole & ~good
    for _ in range(2):
        tagged &= np.isin(kind, _TAGS) & (at + 4 <= start + room)
        if not tagged.any():
            break
        at = np.where(tagged, at + 4, at)
        kind = np.where(tagged, _u2(buffer, np.where(tagged, at - 2, 0)), kind)
        good |= tagged & ((kind == IPV4) | (kind == IPV6))
    return at, good


def columns_of(block: Block) -> Columns | None:
    """Return the headers of a block; None if packets have to go one by one (old block types, odd
    clocks)."""
    format_, buffer = block.format, block.buffer
    if not format_.uniform:
        return None
    records = _records(format_, buffer, np.array(block.positions, np.int64))
    if records is None:
        return None
    time_ns, start, captured, wire, interface = records
    time_ns = _shifted(time_ns, block)
    count = len(start)
    kinds = np.array([each.link_type for each in format_.interfaces], np.int64)
    links = kinds[interface]
    ip_at, good = _ip_at(buffer, links, start, captured)
    end = start + captured
    good &= ip_at + 40 <= end  # the smallest headers of IPv4 with TCP; IPv6 is checked below
    ip_at = np.where(good, ip_at, 0)

    four = _rows(buffer, ip_at, _IPV4)
    if (good & (four["protocol"] != TCP) & (four["first"] == 0x45)).any():
        ip_at = peel(buffer, ip_at, good, end)
        good &= ip_at + 40 <= end
        four = _rows(buffer, np.where(good, ip_at, 0), _IPV4)
    version = four["first"] >> 4
    is4 = good & (version == 4) & (four["protocol"] == 6) & ((four["fragment"] & 0x3FFF) == 0)
    header = ((four["first"] & 15) << 2).astype(np.int64)
    is4 &= header >= 20
    tcp_at = ip_at + header
    total = four["total"].astype(np.int64)
    ip_end = ip_at + np.where(total > 0, total, start + wire - ip_at)
    sign = four["ident"].astype(np.uint64)

    is6 = good & (version == 6) & (ip_at + 60 <= end)
    six = None
    if is6.any():
        six = _rows(buffer, np.where(is6, ip_at, 0), _IPV6)
        is6 &= six["following"] == 6
        length6 = six["length"].astype(np.int64)
        ip_end = np.where(is6, np.where(length6 > 0, ip_at + 40 + length6, start + wire), ip_end)
        tcp_at = np.where(is6, ip_at + 40, tcp_at)
        sign[is6] = 0
    tcp = (is4 | is6) & (tcp_at + 20 <= end)

    rows = _rows(buffer, np.where(tcp, tcp_at, 0), _TCP)
    data_at = (rows["offset"] >> 4 << 2).astype(np.int64)
    payload = tcp_at + data_at
    length = ip_end - payload
    tcp &= (data_at >= 20) & (length >= 0)

    if (links == LINUX_SLL2).any():
        index = _view(buffer, np.dtype(">u4"))[np.where(links == LINUX_SLL2, start + 4, 0)]
        interface = np.where(
            links == LINUX_SLL2, interface | index.astype(np.int64) << 32, interface
        )

    if (links == LINUX_SLL).any():
        kind = _u2(buffer, np.where(links == LINUX_SLL, start, 0))
        interface = np.where(links == LINUX_SLL, interface | kind << 32, interface)

    seq, ack = rows["seq"].astype(np.uint64), rows["ack"].astype(np.uint64)
    flags = rows["flags"].astype(np.uint64)
    window, scale = rows["window"].astype(np.int64), np.full(count, UNKNOWN, np.int64)
    for at in (tcp & ((rows["flags"] & SYN) != 0)).nonzero()[0].tolist():
        scale[at] = scale_in(bytes(buffer[tcp_at[at] + 20 : min(payload[at], end[at])]))
    sign = np.where(sign > 0, sign, rows["checksum"])
    ports = rows["ports"].astype(np.uint64)
    hosts = _folded(four["addresses"], is6, six)
    copy = _fingerprints(ports, seq, ack, sign, length, flags, hosts)
    flows = _flows(four["addresses"], rows["raw_ports"], tcp, is6, six)
    assert len(flows) == count
    place = (time_ns, start, captured, wire, interface)
    return Columns(*place, tcp, payload, length, seq, ack, flags, window, scale, copy, flows)


def _fingerprints(
    ports: Words, seq: Words, ack: Words, sign: Words, length: Ints, flags: Words, hosts: Words
) -> Words:
    """Compute `tcp.fingerprint` by columns: uint64 wraps around as its mask does."""
    one, two, three, four = (
        np.uint64(0x9E37_79B9_7F4A_7C15),
        np.uint64(0xC2B2_AE3D_27D4_EB4F),
        np.uint64(0x1656_67B1_9E37_79F9),
        np.uint64(0x85EB_CA77_C2B2_AE63),
    )
    left = (seq << np.uint64(32) | ack) * one
    right = (ports << np.uint64(32) | sign << np.uint64(16) | flags) * two
    mixed: Words = (left ^ right) + length.astype(np.uint64) * three + hosts * four
    return mixed


def _folded(addresses: NDArray[Any], is6: Flags, six: NDArray[Any] | None) -> Words:
    """Compute `tcp.folded` for each row."""
    found = np.ascontiguousarray(addresses).view(">u8").astype(np.uint64)
    if six is not None:
        wide = np.ascontiguousarray(six["addresses"]).view(">u8").reshape(-1, 4)
        found = np.where(is6, np.bitwise_xor.reduce(wide, axis=1).astype(np.uint64), found)
    return found


def _flows(
    addresses: NDArray[Any], ports: NDArray[Any], tcp: Flags, is6: Flags, six: NDArray[Any] | None
) -> list[bytes]:
    count = len(ports)
    key = np.zeros(count, np.dtype([("addresses", "V8"), ("ports", "V4")]))
    key["addresses"], key["ports"] = addresses, ports
    flows: list[bytes] = key.view("V12").tolist()
    if six is not None:
        wide = np.zeros(count, np.dtype([("addresses", "V32"), ("ports", "V4")]))
        wide["addresses"], wide["ports"] = six["addresses"], ports
        wides: list[bytes] = wide.view("V36").tolist()
        flows = [w if v6 else f for f, w, v6 in zip(flows, wides, is6.tolist(), strict=True)]
    return flows


_CARRIERS: Final = np.array([IP_IN_IP, GRE, UDP])
_VXLAN: Final = np.array(sorted(VXLAN_PORTS))
# IPv4 without options.
_PLAIN: Final = 0x45
# Bytes that have to be there behind the outer header: the tunnel's own, or an IP header.
_ROOM: Final = 20


def peel(buffer: bytearray, ip_at: Ints, good: Flags, end: Ints) -> Ints:
    """Return the position of each record's innermost IP header; `ip_at` where there is no
    tunnel."""
    octets = np.frombuffer(buffer, np.uint8)
    for _ in range(LIMITS.tunnels):
        carrier = good & (octets[ip_at] == _PLAIN) & np.isin(octets[ip_at + 9], _CARRIERS)
        rows = (carrier & (ip_at + 20 + _ROOM <= end)).nonzero()[0]
        if not len(rows):
            break
        inner = _inner(octets, ip_at[rows], end[rows])
        moved = inner > 0
        if not moved.any():
            break
        ip_at = ip_at.copy()
        ip_at[rows[moved]] = inner[moved]
        # Rows that do not move will not in the next turn either.
        good = np.zeros(len(good), np.bool_)
        good[rows[moved]] = True
    return ip_at


def _inner(octets: NDArray[np.uint8], ip_at: Ints, end: Ints) -> Ints:
    """Return positions of inner IP headers of packets that may be tunnels; 0 where there is
    none."""

    def two(at: Ints) -> Any:
        return octets[at].astype(np.int64) << 8 | octets[at + 1]

    protocol, at = octets[ip_at + 9], ip_at + 20
    whole = two(ip_at + 6) & 0x3FFF == 0
    first, second = two(at), two(at + 2)

    udp = protocol == UDP
    vxlan = udp & np.isin(second, _VXLAN) & (octets[at + 8] & 8 != 0)
    geneve = udp & (second == GENEVE_PORT) & (octets[at + 8] >> 6 == 0)
    geneve &= two(at + 10) == ETHERNET_INSIDE
    options = 4 * (octets[at + 8].astype(np.int64) & 0x3F)
    erspan = (protocol == GRE) & (first == 0x1000) & (second == ERSPAN_2)
    frame = np.where(geneve, at + 16 + options, at + 16)
    framed = (vxlan | geneve | erspan) & (frame + 34 <= end)
    framed &= two(np.where(framed, frame + 12, at)) == IPV4

    gre = (protocol == GRE) & (first == 0) & (second == IPV4)
    plain = gre | (protocol == IP_IN_IP)
    inner = np.where(framed, frame + 14, np.where(gre, at + 4, at))
    found = whole & (framed | plain)
    found &= octets[np.where(found, inner, at)] >> 4 == 4
    return np.where(found, inner, 0)
