"""IPv4 and IPv6: from the IP header to the TCP bytes, inside one tunnel at most. Stateless;
fragments are reported, not guessed."""

from __future__ import annotations

from struct import unpack_from
from typing import Final, NamedTuple

from captures.link import SHORT, Data
from captures.tunnels import CARRIERS, inner_ip

TCP: Final = 6

NOT_TCP: Final = "not tcp"
FRAGMENT: Final = "fragment"
CUT: Final = "cut"
MALFORMED: Final = "malformed"
"""Why a record holds no TCP segment for us; keys of `Statistics.skipped`."""

_EXTENSIONS: Final = frozenset((0, 43, 60, 135, 139, 140))
"""Hop-by-hop, routing, destination options, mobility, HIP, shim6: length in units of 8 bytes."""
_AUTHENTICATION: Final = 51
_FRAGMENT_HEADER: Final = 44
_MAX_EXTENSIONS: Final = 16
"""RFC 8200 knows fewer; a hostile packet must not keep us here."""


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


def payload_of(data: Data, at: int, wire: int, *, inside: bool = False) -> Payload | str:
    """The TCP part of the IP packet at `at` of a record that was `wire` bytes long, or why there
    is none. `inside`: the packet came out of a tunnel, and may be none itself.

    Ethernet pads short frames, so the IP length decides where the payload ends. It is 0 in packets
    above
    64 KB that the sender's network card would have cut up (TSO, BIG TCP); then the frame's length
    decides.
    """
    captured = len(data)
    if at >= captured:
        return CUT
    version = data[at] >> 4
    if version == 4:
        if captured < at + 20:
            return CUT
        first, total, ident, fragment, protocol = unpack_from(">BxHHHxB", data, at)
        header = (first & 0x0F) << 2
        if header < 20:
            return MALFORMED
        if fragment & 0x3FFF:
            return FRAGMENT
        if protocol != TCP:
            return NOT_TCP if inside else _carried(data, at + header, protocol, wire)
        if not total:
            total = wire - at
        if total < header:
            return MALFORMED
        return Payload(bytes(data[at + 12 : at + 20]), at + header, total - header, ident)
    if version == 6:
        return _ipv6(data, at, wire, inside)
    return MALFORMED


def _carried(data: Data, at: int, protocol: int, wire: int) -> Payload | str:
    """The TCP part of the packet that this one carries."""
    if protocol not in CARRIERS:
        return NOT_TCP
    inner = inner_ip(data, at, protocol)
    if inner < 0:
        return CUT if inner == SHORT else NOT_TCP
    return payload_of(data, inner, wire, inside=True)


def _ipv6(data: Data, at: int, wire: int, inside: bool) -> Payload | str:
    captured = len(data)
    if captured < at + 40:
        return CUT
    length, following = unpack_from(">HB", data, at + 4)
    end = at + 40 + length if length else wire
    addresses = bytes(data[at + 8 : at + 40])
    at += 40
    for _ in range(_MAX_EXTENSIONS):
        if following == TCP:
            return Payload(addresses, at, end - at, -1) if end >= at else MALFORMED
        if following in _EXTENSIONS or following == _AUTHENTICATION:
            if captured < at + 2:
                return CUT
            size = data[at + 1] + 2 << 2 if following == _AUTHENTICATION else data[at + 1] + 1 << 3
        elif following == _FRAGMENT_HEADER:
            if captured < at + 4:
                return CUT
            # An "atomic" fragment (RFC 6946) is a whole packet: offset 0 and no more to come.
            if (data[at + 2] << 8 | data[at + 3]) & 0xFFF9:
                return FRAGMENT
            size = 8
        else:
            return NOT_TCP if inside else _carried(data, at, following, wire)
        following = data[at]
        at += size
    return MALFORMED
