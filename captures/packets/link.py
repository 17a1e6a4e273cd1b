"""Link layers: finds the IP header in a captured record. Stateless.

Each reader takes the captured bytes and returns the offset of the IP header, or `NOT_IP`. Where the
snaplen cut a header, reading past the end raises one of `CUT_SHORT`: who calls catches it once.
Add a link layer: one function here and one row of `LINK_TYPES`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from struct import unpack_from
from typing import Final

from kafkascope.captures.limits import LIMITS

# The record carries something else (ARP, LLDP, ...).
NOT_IP: Final = -1
CUT_SHORT: Final = (IndexError, struct.error)
"""What reading a header raises that the snaplen cut."""

IPV4: Final = 0x0800
IPV6: Final = 0x86DD
VLAN_TAGS: Final = frozenset((0x8100, 0x88A8, 0x9100, 0x9200))
"""802.1Q, 802.1ad (QinQ) and two older numbers for the outer tag: 4 bytes, the next type at their
end."""
MPLS: Final = frozenset((0x8847, 0x8848))
PPPOE_SESSION: Final = 0x8864
WIDE_TAGS: Final = {0x8926: 6, 0x893F: 8, 0x8909: 8, 0x88E7: 18}
"""VN-Tag, 802.1BR, Cisco's group tag, and 802.1ah with the frame inside: from this EtherType to the
next one."""

ETHERNET: Final = 1
LINUX_SLL: Final = 113
LINUX_SLL2: Final = 276

Data = bytes | bytearray | memoryview
Reader = Callable[[Data], int]


def after_type(data: Data, at: int) -> int:
    """Follow the EtherType at `at` over tags to the IP header."""
    for _ in range(LIMITS.link_tags):
        kind = data[at] << 8 | data[at + 1]
        if kind in (IPV4, IPV6):
            return at + 2
        if kind in VLAN_TAGS:
            at += 4
        elif kind in WIDE_TAGS:
            at += WIDE_TAGS[kind]
        elif kind in MPLS:
            return after_labels(data, at + 2)
        elif kind == PPPOE_SESSION:
            return after_ppp(data, at + 2 + 6)
        elif kind <= 1500 and data[at + 2 : at + 8] == b"\xaa\xaa\x03\x00\x00\x00":
            at += 8  # an 802.3 length, then LLC and SNAP
        else:
            return NOT_IP
    return NOT_IP


def after_labels(data: Data, at: int) -> int:
    """Skip an MPLS stack (RFC 3032): the label with the bottom bit is the last."""
    for _ in range(LIMITS.link_tags):
        at += 4
        if data[at - 2] & 1:
            found = by_version(data, at)
            return _pseudowire(data, at) if found == NOT_IP else found
    return NOT_IP


def _pseudowire(data: Data, at: int) -> int:
    """Skip to Ethernet after the labels (RFC 4448), with or without its control word of four
    bytes."""
    for begin in (at + 4, at) if not data[at] >> 4 else (at,):
        found = after_type(data, begin + 12)
        if found != NOT_IP:
            return found
    return NOT_IP


def by_version(data: Data, at: int) -> int:
    """Look for IP's version where nothing says what follows."""
    return at if data[at] >> 4 in (4, 6) else NOT_IP


def after_ppp(data: Data, at: int) -> int:
    """Follow the PPP protocol number (RFC 1661), which may be compressed to one byte."""
    first, second = data[at], data[at + 1]
    if first & 1:
        return at + 1 if first in (0x21, 0x57) else NOT_IP
    return at + 2 if first == 0 and second in (0x21, 0x57) else NOT_IP


def loopback(data: Data) -> int:
    """BSD loopback: an address family in the byte order of the capturing machine.

    AF_INET is 2 everywhere; AF_INET6 is 10 (Linux), 23 (Windows), 24, 28 (BSD) or 30 (macOS).
    """
    family = min(*unpack_from("<I", data), *unpack_from(">I", data))
    return 4 if family in (2, 10, 23, 24, 28, 30) else NOT_IP


def linux_sll2(data: Data) -> int:
    """Linux cooked v2: protocol 2, zero 2, interface 4, hardware 2, type 1, length 1, address 8."""
    (kind,) = unpack_from(">H18x", data)
    if kind in (IPV4, IPV6):
        return 20
    if kind in VLAN_TAGS:
        return after_type(data, 22)  # the tag comes first in the payload
    if kind in MPLS:
        return after_labels(data, 20)
    return after_ppp(data, 26) if kind == PPPOE_SESSION else NOT_IP


def ppp(data: Data) -> int:
    """PPP, with or without HDLC's address and control bytes."""
    return after_ppp(data, 2 if data[0] == 0xFF and data[1] == 0x03 else 0)


def directed_ppp(data: Data) -> int:
    """PPP after a byte with the direction, which pppd writes in place of the address."""
    if data[1] == 0x03:
        return after_ppp(data, 2)
    return after_ppp(data, 3 if data[1] == 0xFF and data[2] == 0x03 else 1)


def cisco_hdlc(data: Data) -> int:
    """Address 1, control 1, EtherType 2; PPP-style framing uses FF 03 here."""
    return after_ppp(data, 2) if data[0] == 0xFF else after_type(data, 2)


def nflog(data: Data) -> int:
    """Linux netfilter log: family 1, version 1, resource 2, then TLVs; type 9 is the packet."""
    at = 4
    for _ in range(64):
        size, kind = unpack_from("<HH", data, at)
        if size < 4:
            return NOT_IP
        if kind & 0x7FFF == 9:
            return by_version(data, at + 4)
        at += size + 3 & ~3
    return NOT_IP


def pflog(data: Data) -> int:
    """OpenBSD packet filter log: the first byte is the header's length without its padding."""
    return by_version(data, data[0] + 3 & ~3)


# --- 802.11, and headers that name the link type after them -------------------------------------

Header = Callable[[Data], tuple[int, int]]
"""Offset of the inner record (or `NOT_IP`), and its link type."""

# LLC and SNAP before an EtherType: RFC 1042, and bridge tunnels.
_SNAP = (b"\xaa\xaa\x03\x00\x00\x00", b"\xaa\xaa\x03\x00\x00\xf8")


def ieee802_11(data: Data) -> int:
    """An 802.11 frame; encrypted ones cannot be read."""
    return _frame(data, 0, padded=False)


def radiotap(data: Data) -> int:
    """Version 1, pad 1, length 2, what is present 4 or more; then the 802.11 frame."""
    size, present = unpack_from("<HI", data, 2)
    at, more = 8, present
    while more >> 31:
        (more,) = unpack_from("<I", data[:size], at)
        at += 4
    if present & 1:  # a time, 8 bytes at a multiple of 8
        at = (at + 7 & ~7) + 8
    # Flag 0x20: the header was padded to a multiple of 4.
    padded = bool(present & 2 and at < min(size, len(data)) and data[at] & 0x20)
    return _frame(data, size, padded=padded)


def _frame(data: Data, at: int, *, padded: bool) -> int:
    """Control 2, duration 2, three addresses 18, sequence 2, and what the control announces."""
    control, flags = unpack_from("BB22x", data, at)
    if control & 0x0F != 0x08 or control & 0x40 or flags & 0x40:
        return NOT_IP  # no data, no bytes of data, or encrypted
    size, aggregated = 24, False
    if flags & 0x03 == 0x03:
        size += 6  # a fourth address, between access points
    if control & 0x80:  # quality of service
        aggregated = bool(data[at + size] & 0x80)
        size += 6 if flags & 0x80 else 2
    if padded:
        size = size + 3 & ~3
    at += size
    if aggregated:
        at += 14  # destination 6, source 6, length 2 of the first frame in it
    (snap,) = unpack_from("6s2x", data, at)
    return after_type(data, at + 6) if snap in _SNAP else NOT_IP


def ppi(data: Data) -> tuple[int, int]:
    """Version 1, flags 1, length 2, link type 4."""
    size, link_type = unpack_from("<HI", data, 2)
    return (size, link_type) if size >= 8 else (NOT_IP, 0)


def pktap(data: Data) -> tuple[int, int]:
    """Length 4, type 4 (1: a packet), link type 4, then interface and process."""
    size, kind, link_type = unpack_from("<III", data, 0)
    return (size, link_type) if kind == 1 and 12 <= size <= 1024 else (NOT_IP, 0)


def _behind(size: int, follow: Callable[[Data, int], int]) -> Reader:
    """Return a reader of records with a header of fixed size, of which nothing is needed."""
    return lambda data: follow(data, size)


_raw: Final = _behind(0, by_version)

# Before the EtherType stand the addresses in Ethernet, and 14 bytes of types and an address in
# Linux cooked v1; before IP's version 12 bytes of BSD's IPsec, 24 of Solaris' zones.
_PLAIN: Final[dict[int, tuple[str, Reader]]] = {
    0: ("BSD loopback", loopback),
    1: ("Ethernet", _behind(12, after_type)),
    9: ("PPP", ppp),
    12: ("raw IP", _raw),
    14: ("raw IP", _raw),
    50: ("PPP in HDLC", cisco_hdlc),
    51: ("PPPoE", _behind(6, after_ppp)),
    101: ("raw IP", _raw),
    104: ("Cisco HDLC", cisco_hdlc),
    105: ("802.11", ieee802_11),
    108: ("OpenBSD loopback", loopback),
    109: ("BSD IPsec", _behind(12, by_version)),
    113: ("Linux cooked v1", _behind(14, after_type)),
    117: ("OpenBSD packet filter log", pflog),
    127: ("802.11 with radiotap", radiotap),
    166: ("PPP of pppd", directed_ppp),
    204: ("PPP with direction", directed_ppp),
    226: ("Solaris IPNET", _behind(24, by_version)),
    228: ("raw IPv4", _raw),
    229: ("raw IPv6", _raw),
    239: ("Linux netfilter log", nflog),
    276: ("Linux cooked v2", linux_sll2),
}


def _within(header: Header) -> Reader:
    """Return a reader of records whose header names the link type after it."""

    def read(data: Data) -> int:
        at, link_type = header(data)
        if at < 0:
            return at
        found = _PLAIN.get(link_type)
        if found is None:
            return NOT_IP
        start = found[1](data[at:])
        return start if start < 0 else at + start

    return read


LINK_TYPES: Final[dict[int, tuple[str, Reader]]] = _PLAIN | {
    149: ("macOS packet tap", _within(pktap)),
    192: ("per-packet information", _within(ppi)),
    258: ("macOS packet tap", _within(pktap)),
}
"""Name for people and reader, by LINKTYPE_ number (tcpdump.org/linktypes.html). 149 is reserved for
users, and older macOS called its packet tap so."""
