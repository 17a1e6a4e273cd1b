"""IPv4 and IPv6: from the IP header to the TCP bytes, through a few tunnels at most. Stateless.

Fragments are reported as such; `packets.fragments` keeps them.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Final, NamedTuple

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.packets.link import NOT_IP, Data
from kafkascope.captures.packets.tunnels import CARRIERS, UDP, inner_ip

TCP: Final = 6

NOT_TCP: Final = "not tcp"
FRAGMENT: Final = "fragment"
CUT: Final = "cut"
MALFORMED: Final = "malformed"
"""Reasons why a record holds no usable TCP segment; keys of `Statistics.skipped`."""

_EXTENSIONS: Final = frozenset((0, 43, 60, 135, 139, 140))
"""Hop-by-hop, routing, destination options, mobility, HIP, shim6: length in units of 8 bytes."""
_AUTHENTICATION: Final = 51
_FRAGMENT_HEADER: Final = 44


class Payload(NamedTuple):
    """The TCP bytes of an IP packet."""

    addresses: bytes
    """Source and destination: 8 bytes for IPv4, 32 for IPv6."""
    at: int
    """Offset of the TCP header in the record."""
    size: int
    """Bytes of TCP header and payload on the wire, padding excluded; may be more than was
    captured."""
    ident: int
    """IPv4's identification; -1 for IPv6, which has none."""


class Fragment(NamedTuple):
    """A fragment of an IP packet."""

    key: bytes
    """Equal in all fragments of a packet: addresses, identification, in IPv4 the protocol."""
    offset: int
    """Offset of its bytes in the packet's payload."""
    more: bool
    """Whether others come after it."""
    at: int
    """Offset of its bytes in the record."""
    size: int
    """Bytes of it on the wire."""
    field: int
    """Offset in the record of the 16 bits that make it a fragment."""


def udp_of(data: Data, at: int) -> tuple[int, Data] | None:
    """Return the port that sent the UDP packet in the IP packet at `at`, and its payload; None for
    fragments, tunnels and everything else. Raises one of `CUT_SHORT`."""
    version = data[at] >> 4
    if version == 4:
        header = (data[at] & 0x0F) << 2
        if data[at + 9] != UDP or unpack_from(">H", data, at + 6)[0] & 0x3FFF or header < 20:
            return None
    elif version == 6:
        header = 40
        if data[at + 6] != UDP:
            return None
    else:
        return None
    at += header
    source, _, length = unpack_from(">HHH2x", data, at)
    return source, data[at + 8 : at + max(length, 8)]


def payload_of(data: Data, at: int, wire: int, tunnels: int = 0) -> Payload | Fragment | str:
    """Return the TCP part of the IP packet at `at` in a record of `wire` bytes, or why there is
    none. `tunnels`: how many of them the packet came out of.

    Ethernet pads short frames, so the IP length decides where the payload ends. It is 0 in packets
    above 64 KB that the sender's network card would have cut up (TSO, BIG TCP); then the frame's
    length decides. Raises one of `CUT_SHORT`.
    """
    version = data[at] >> 4
    if version == 4:
        layout = ">BxHHHxB2x8s"
        first, total, ident, fragment, protocol, addresses = unpack_from(layout, data, at)
        header = (first & 0x0F) << 2
        if header < 20:
            return MALFORMED
        if not total:
            total = wire - at
        size = total - header
        if fragment & 0x3FFF:
            key = addresses + bytes((protocol, ident >> 8, ident & 0xFF))
            more = bool(fragment & 0x2000)
            return Fragment(key, (fragment & 0x1FFF) << 3, more, at + header, size, at + 6)
        at += header
        if protocol == _AUTHENTICATION:
            protocol, skipped = data[at], data[at + 1] + 2 << 2
            at, size = at + skipped, size - skipped
        if protocol != TCP:
            return _carried(data, at, protocol, wire, tunnels)
        return Payload(addresses, at, size, ident) if size >= 0 else MALFORMED
    if version == 6:
        return _ipv6(data, at, wire, tunnels)
    return MALFORMED


def _carried(
    data: Data, at: int, protocol: int, wire: int, tunnels: int
) -> Payload | Fragment | str:
    """Return the TCP part of the packet inside this one."""
    if protocol not in CARRIERS or tunnels >= LIMITS.tunnels:
        return NOT_TCP
    inner = inner_ip(data, at, protocol)
    return NOT_TCP if inner == NOT_IP else payload_of(data, inner, wire, tunnels + 1)


def _ipv6(data: Data, at: int, wire: int, tunnels: int) -> Payload | Fragment | str:
    length, following, addresses = unpack_from(">4xHBx32s", data, at)
    end = at + 40 + length if length else wire
    at += 40
    for _ in range(LIMITS.extension_headers):
        if following == TCP:
            return Payload(addresses, at, end - at, -1) if end >= at else MALFORMED
        if following in _EXTENSIONS or following == _AUTHENTICATION:
            size = data[at + 1] + 2 << 2 if following == _AUTHENTICATION else data[at + 1] + 1 << 3
        elif following == _FRAGMENT_HEADER:
            # An "atomic" fragment (RFC 6946) is a whole packet: offset 0 and no more to come.
            offset, ident = unpack_from(">2xH4s", data, at)
            if offset & 0xFFF9:
                key = addresses + ident
                more = bool(offset & 1)
                return Fragment(key, offset & 0xFFF8, more, at + 8, end - at - 8, at + 2)
            size = 8
        else:
            return _carried(data, at, following, wire, tunnels)
        following = data[at]
        at += size
    return MALFORMED
