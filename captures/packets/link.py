"""Link layers: finds the IP header in a captured record. Stateless.

Each reader takes the captured bytes and returns the offset of the IP header, or one of
the negative numbers below. Add a link layer: one function here (`link_types` has those of
radio, and of programs that put a header of their own before others) and one row of `LINK_TYPES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkascope.captures.limits import LIMITS

# The record carries something else (ARP, LLDP, ...).
NOT_IP: Final = -1
# The snaplen cut the record inside the link header.
SHORT: Final = -2

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
    end = len(data)
    for _ in range(LIMITS.link_tags):
        if at + 2 > end:
            return SHORT
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
        if at + 4 > len(data):
            return SHORT
        at += 4
        if data[at - 2] & 1:
            found = by_version(data, at)
            return _pseudowire(data, at) if found == NOT_IP else found
    return NOT_IP


def _pseudowire(data: Data, at: int) -> int:
    """Skip to Ethernet behind the labels (RFC 4448), with or without its control word of four
    bytes."""
    for begin in (at + 4, at) if not data[at] >> 4 else (at,):
        found = after_type(data, begin + 12)
        if found != NOT_IP:
            return found
    return NOT_IP


def by_version(data: Data, at: int) -> int:
    """Look for IP's version where nothing says what follows."""
    if at >= len(data):
        return SHORT
    return at if data[at] >> 4 in (4, 6) else NOT_IP


def after_ppp(data: Data, at: int) -> int:
    """Follow the PPP protocol number (RFC 1661), which may be compressed to one byte."""
    if at + 2 > len(data):
        return SHORT
    if data[at] & 1:
        return at + 1 if data[at] in (0x21, 0x57) else NOT_IP
    return at + 2 if data[at] == 0 and data[at + 1] in (0x21, 0x57) else NOT_IP


def loopback(data: Data) -> int:
    """BSD loopback: an address family in the byte order of the capturing machine.

    AF_INET is 2 everywhere; AF_INET6 is 10 (Linux), 23 (Windows), 24, 28 (BSD) or 30 (macOS).
    """
    if len(data) < 4:
        return SHORT
    head = bytes(data[:4])
    family = min(int.from_bytes(head, "little"), int.from_bytes(head, "big"))
    return 4 if family in (2, 10, 23, 24, 28, 30) else NOT_IP


def linux_sll2(data: Data) -> int:
    """Linux cooked v2: protocol 2, zero 2, interface 4, hardware 2, type 1, length 1, address 8."""
    if len(data) < 20:
        return SHORT
    kind = data[0] << 8 | data[1]
    if kind in (IPV4, IPV6):
        return 20
    if kind in VLAN_TAGS:
        return after_type(data, 22)  # the tag comes first in the payload
    if kind in MPLS:
        return after_labels(data, 20)
    return after_ppp(data, 26) if kind == PPPOE_SESSION else NOT_IP


def ppp(data: Data) -> int:
    """PPP, with or without HDLC's address and control bytes."""
    if len(data) < 2:
        return SHORT
    return after_ppp(data, 2 if data[0] == 0xFF and data[1] == 0x03 else 0)


def directed_ppp(data: Data) -> int:
    """PPP behind a byte with the direction, which pppd writes in place of the address."""
    if len(data) < 3:
        return SHORT
    if data[1] == 0x03:
        return after_ppp(data, 2)
    return after_ppp(data, 3 if data[1] == 0xFF and data[2] == 0x03 else 1)


def cisco_hdlc(data: Data) -> int:
    """Address 1, control 1, EtherType 2; PPP-style framing uses FF 03 here."""
    if len(data) < 4:
        return SHORT
    return after_ppp(data, 2) if data[0] == 0xFF else after_type(data, 2)


def nflog(data: Data) -> int:
    """Linux netfilter log: family 1, version 1, resource 2, then TLVs; type 9 is the packet."""
    at, end = 4, len(data)
    for _ in range(64):
        if at + 4 > end:
            return SHORT
        size = data[at] | data[at + 1] << 8
        kind = data[at + 2] | data[at + 3] << 8
        if size < 4:
            return NOT_IP
        if kind & 0x7FFF == 9:
            return by_version(data, at + 4)
        at += size + 3 & ~3
    return NOT_IP


def pflog(data: Data) -> int:
    """OpenBSD packet filter log: the first byte is the header's length without its padding."""
    if len(data) < 1:
        return SHORT
    return by_version(data, data[0] + 3 & ~3)
