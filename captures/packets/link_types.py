"""The table of link types: name and reader by number; 802.11, and headers that name the link type
behind them: radiotap, PPI, macOS' packet tap.

Stateless; offsets and negative numbers as in `link`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import unpack_from
from typing import Final

from kafkascope.captures.packets import link
from kafkascope.captures.packets.link import (
    NOT_IP,
    SHORT,
    Data,
    Reader,
    after_ppp,
    after_type,
    by_version,
)

Header = Callable[[Data], tuple[int, int]]
"""Offset of the inner record (or a negative number), and its link type."""

# LLC and SNAP before an EtherType: RFC 1042, and bridge tunnels.
_SNAP = (b"\xaa\xaa\x03\x00\x00\x00", b"\xaa\xaa\x03\x00\x00\xf8")


def ieee802_11(data: Data) -> int:
    """An 802.11 frame; encrypted ones cannot be read."""
    return _frame(data, 0, padded=False)


def radiotap(data: Data) -> int:
    """Version 1, pad 1, length 2, what is present 4 or more; then the 802.11 frame."""
    if len(data) < 8:
        return SHORT
    size, present = unpack_from("<HI", data, 2)
    at, more = 8, present
    while more >> 31:
        if at + 4 > min(size, len(data)):
            return SHORT
        (more,) = unpack_from("<I", data, at)
        at += 4
    if present & 1:  # a time, 8 bytes at a multiple of 8
        at = (at + 7 & ~7) + 8
    # Flag 0x20: the header was padded to a multiple of 4.
    padded = bool(present & 2 and at < min(size, len(data)) and data[at] & 0x20)
    return _frame(data, size, padded=padded)


def _frame(data: Data, at: int, *, padded: bool) -> int:
    """Control 2, duration 2, three addresses 18, sequence 2, and what the control announces."""
    if at + 24 > len(data):
        return SHORT
    control, flags = data[at], data[at + 1]
    if control & 0x0F != 0x08 or control & 0x40 or flags & 0x40:
        return NOT_IP  # no data, no bytes of data, or encrypted
    size, aggregated = 24, False
    if flags & 0x03 == 0x03:
        size += 6  # a fourth address, between access points
    if control & 0x80:  # quality of service
        if at + size >= len(data):
            return SHORT
        aggregated = bool(data[at + size] & 0x80)
        size += 6 if flags & 0x80 else 2
    if padded:
        size = size + 3 & ~3
    at += size
    if aggregated:
        at += 14  # destination 6, source 6, length 2 of the first frame in it
    if at + 8 > len(data):
        return SHORT
    return after_type(data, at + 6) if bytes(data[at : at + 6]) in _SNAP else NOT_IP


def ppi(data: Data) -> tuple[int, int]:
    """Version 1, flags 1, length 2, link type 4."""
    if len(data) < 8:
        return SHORT, 0
    size, link_type = unpack_from("<HI", data, 2)
    return (size, link_type) if size >= 8 else (NOT_IP, 0)


def pktap(data: Data) -> tuple[int, int]:
    """Length 4, type 4 (1: a packet), link type 4, then interface and process."""
    if len(data) < 12:
        return SHORT, 0
    size, kind, link_type = unpack_from("<III", data, 0)
    return (size, link_type) if kind == 1 and 12 <= size <= 1024 else (NOT_IP, 0)


def _behind(size: int, follow: Callable[[Data, int], int]) -> Reader:
    """Return a reader of records with a header of fixed size, of which nothing is needed."""
    return lambda data: follow(data, size)


_raw: Final = _behind(0, by_version)

# Before the EtherType stand the addresses in Ethernet, and 14 bytes of types and an address in
# Linux cooked v1; before IP's version 12 bytes of BSD's IPsec, 24 of Solaris' zones.
_PLAIN: Final[dict[int, tuple[str, Reader]]] = {
    0: ("BSD loopback", link.loopback),
    1: ("Ethernet", _behind(12, after_type)),
    9: ("PPP", link.ppp),
    12: ("raw IP", _raw),
    14: ("raw IP", _raw),
    50: ("PPP in HDLC", link.cisco_hdlc),
    51: ("PPPoE", _behind(6, after_ppp)),
    101: ("raw IP", _raw),
    104: ("Cisco HDLC", link.cisco_hdlc),
    105: ("802.11", ieee802_11),
    108: ("OpenBSD loopback", link.loopback),
    109: ("BSD IPsec", _behind(12, by_version)),
    113: ("Linux cooked v1", _behind(14, after_type)),
    117: ("OpenBSD packet filter log", link.pflog),
    127: ("802.11 with radiotap", radiotap),
    166: ("PPP of pppd", link.directed_ppp),
    204: ("PPP with direction", link.directed_ppp),
    226: ("Solaris IPNET", _behind(24, by_version)),
    228: ("raw IPv4", _raw),
    229: ("raw IPv6", _raw),
    239: ("Linux netfilter log", link.nflog),
    276: ("Linux cooked v2", link.linux_sll2),
}


def _within(header: Header) -> Reader:
    """Return a reader of records whose header names the link type behind it."""

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
