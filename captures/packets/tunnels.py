"""Tunnels: finds the inner IP header after GRE, ERSPAN, VXLAN, Geneve, GTP, MPLS or IP in IP.

Stateless; one level a call. Mirror ports and clouds deliver traffic in tunnels: the connection that
people mean is inside.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import unpack_from
from typing import Final

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.packets.link import (
    IPV4,
    IPV6,
    MPLS,
    NOT_IP,
    Data,
    after_labels,
    after_ppp,
    after_type,
    by_version,
)

IP_IN_IP: Final = 4
IP6_IN_IP: Final = 41
GRE: Final = 47
UDP: Final = 17
ETHER_IP: Final = 97
MPLS_IN_IP: Final = 137
CARRIERS: Final = frozenset((IP_IN_IP, IP6_IN_IP, GRE, UDP, ETHER_IP, MPLS_IN_IP))
"""IP protocols that may carry packets."""

ETHERNET_INSIDE: Final = 0x6558
ERSPAN_2: Final = 0x88BE
ERSPAN_3: Final = 0x22EB
PPP_INSIDE: Final = 0x880B
# UDP ports: that of RFC 7348, and Linux' own from before it.
VXLAN_PORTS: Final = frozenset((4789, 8472))
VXLAN_GPE_PORT: Final = 4790
GENEVE_PORT: Final = 6081
GTP_PORT: Final = 2152
MPLS_PORT: Final = 6635
TZSP_PORT: Final = 37008

_CHECKSUM, _ROUTING, _KEY, _SEQUENCE, _VERSION = 0x8000, 0x4000, 0x2000, 0x1000, 0x0007


def inner_ip(data: Data, at: int, protocol: int) -> int:
    """Return the offset of the inner IP header, given that of the outer one's payload; `NOT_IP`
    when there is none."""
    if protocol in (IP_IN_IP, IP6_IN_IP):
        return by_version(data, at)
    if protocol == GRE:
        return _gre(data, at)
    if protocol == ETHER_IP:  # RFC 3378: version and nothing, 2
        return _frame(data, at + 2)
    if protocol == MPLS_IN_IP:
        return after_labels(data, at)
    return _udp(data, at)


def _gre(data: Data, at: int) -> int:
    """RFC 2784 and 2890: flags and version 2, type 2, then what the flags announce, 4 each."""
    flags, kind = unpack_from(">HH", data, at)
    if flags & (_ROUTING | _VERSION):
        return NOT_IP
    at += 4 + 4 * sum(bool(flags & bit) for bit in (_CHECKSUM, _KEY, _SEQUENCE))
    if kind in (IPV4, IPV6):
        return by_version(data, at)
    if kind == ERSPAN_2:
        # Without sequence numbers it is ERSPAN I, which has no header of its own.
        return _frame(data, at + 8 if flags & _SEQUENCE else at)
    if kind == ERSPAN_3:
        return _frame(data, at + (20 if data[at + 11] & 1 else 12))
    if kind in MPLS:
        return after_labels(data, at)
    if kind == PPP_INSIDE:
        return after_ppp(data, at)
    return _frame(data, at) if kind == ETHERNET_INSIDE else NOT_IP


def _udp(data: Data, at: int) -> int:
    reader = _PORTS.get(data[at + 2] << 8 | data[at + 3])
    if reader is None:
        return NOT_IP
    unpack_from("8x", data, at + 8)  # No tunnel has a smaller header.
    return reader(data, at + 8)


def _vxlan(data: Data, at: int) -> int:
    """Flags 1 (the id is there), reserved 3, network id 3, reserved 1 (RFC 7348)."""
    return _frame(data, at + 8) if data[at] & 0x08 else NOT_IP


def _vxlan_gpe(data: Data, at: int) -> int:
    """Return as for VXLAN, but the last reserved byte before the id is the next protocol."""
    kind = data[at + 3] if data[at] & 0x04 else 3
    if kind == 3:
        return _frame(data, at + 8)
    return by_version(data, at + 8) if kind in (1, 2) else NOT_IP


def _geneve(data: Data, at: int) -> int:
    """Version 2 bits, options' length in words 6 bits, flags 1, type 2, id 3, 1 (RFC 8926)."""
    kind = data[at + 2] << 8 | data[at + 3]
    begin = at + 8 + 4 * (data[at] & 0x3F)
    if data[at] >> 6:
        return NOT_IP
    if kind == ETHERNET_INSIDE:
        return _frame(data, begin)
    return by_version(data, begin) if kind in (IPV4, IPV6) else NOT_IP


def _gtp(data: Data, at: int) -> int:
    """GTP-U (3GPP TS 29.281): flags 1, type 1 (255: a packet), length 2, tunnel 4; with a flag 4
    more, the last of them the type of the next header, whose lengths are in words."""
    flags = data[at]
    if flags & 0xF0 != 0x30 or data[at + 1] != 0xFF:
        return NOT_IP
    if not flags & 0x07:
        return by_version(data, at + 8)
    at += 12
    if not flags & 0x04:
        return by_version(data, at)
    for _ in range(LIMITS.extension_headers):
        if not data[at - 1]:
            return by_version(data, at)
        if not data[at]:
            return NOT_IP
        at += 4 * data[at]
    return NOT_IP


def _tzsp(data: Data, at: int) -> int:
    """Version 1, type 1, protocol 2 (1: Ethernet); tags with lengths, but for 0 (nothing) and 1
    (the last)."""
    if data[at] != 1 or data[at + 2 : at + 4] != b"\0\1":
        return NOT_IP
    at += 4
    for _ in range(LIMITS.extension_headers):
        if data[at] == 1:
            return _frame(data, at + 1)
        at += 2 + data[at + 1] if data[at] else 1
    return NOT_IP


def _frame(data: Data, at: int) -> int:
    return after_type(data, at + 12)


_PORTS: Final[dict[int, Callable[[Data, int], int]]] = {
    **dict.fromkeys(VXLAN_PORTS, _vxlan),
    VXLAN_GPE_PORT: _vxlan_gpe,
    GENEVE_PORT: _geneve,
    GTP_PORT: _gtp,
    MPLS_PORT: after_labels,
    TZSP_PORT: _tzsp,
}
"""Readers of tunnels by UDP destination port."""
