"""Packets in packets: where the inner IP header is behind GRE, ERSPAN, VXLAN, Geneve or IP in IP.
Stateless; one level only.

Mirror ports and clouds deliver traffic so: what is inside is the connection that people mean.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Final

from captures.link import IPV4, IPV6, NOT_IP, SHORT, Data, after_type

IP_IN_IP: Final = 4
IP6_IN_IP: Final = 41
GRE: Final = 47
UDP: Final = 17
CARRIERS: Final = frozenset((IP_IN_IP, IP6_IN_IP, GRE, UDP))
"""Protocols of IP that may carry packets."""

ETHERNET_INSIDE: Final = 0x6558
ERSPAN_2: Final = 0x88BE
ERSPAN_3: Final = 0x22EB
VXLAN_PORTS: Final = frozenset((4789, 8472))
"""The one of RFC 7348, and Linux' own from before it."""
GENEVE_PORT: Final = 6081

_CHECKSUM, _ROUTING, _KEY, _SEQUENCE, _VERSION = 0x8000, 0x4000, 0x2000, 0x1000, 0x0007


def inner_ip(data: Data, at: int, protocol: int) -> int:
    """Offset of the inner IP header, given where the payload of the outer one begins; negative as
    in `captures.link` when there is none."""
    if protocol in (IP_IN_IP, IP6_IN_IP):
        return _ip(data, at)
    if protocol == GRE:
        return _gre(data, at)
    return _udp(data, at)


def _ip(data: Data, at: int) -> int:
    if at >= len(data):
        return SHORT
    return at if data[at] >> 4 in (4, 6) else NOT_IP


def _gre(data: Data, at: int) -> int:
    """RFC 2784 and 2890: flags and version 2, type 2, then what the flags announce, 4 each."""
    if len(data) < at + 4:
        return SHORT
    flags, kind = unpack_from(">HH", data, at)
    if flags & (_ROUTING | _VERSION):
        return NOT_IP
    at += 4 + 4 * sum(bool(flags & bit) for bit in (_CHECKSUM, _KEY, _SEQUENCE))
    if kind in (IPV4, IPV6):
        return _ip(data, at)
    if kind == ERSPAN_2:
        # Without sequence numbers it is ERSPAN I, which has no header of its own.
        return _frame(data, at + 8 if flags & _SEQUENCE else at)
    if kind == ERSPAN_3:
        if len(data) < at + 12:
            return SHORT
        return _frame(data, at + (20 if data[at + 11] & 1 else 12))
    return _frame(data, at) if kind == ETHERNET_INSIDE else NOT_IP


def _udp(data: Data, at: int) -> int:
    if len(data) < at + 4:
        return SHORT
    port = data[at + 2] << 8 | data[at + 3]
    at += 8
    if port not in VXLAN_PORTS and port != GENEVE_PORT:
        return NOT_IP
    if len(data) < at + 8:
        return SHORT
    if port in VXLAN_PORTS:
        # Flags 1 (the id is there), reserved 3, network id 3, reserved 1 (RFC 7348).
        return _frame(data, at + 8) if data[at] & 0x08 else NOT_IP
    # Geneve: version 2 bits, options' length in words 6 bits, flags 1, type 2, id 3, 1 (RFC 8926).
    kind = data[at + 2] << 8 | data[at + 3]
    begin = at + 8 + 4 * (data[at] & 0x3F)
    if data[at] >> 6:
        return NOT_IP
    if kind == ETHERNET_INSIDE:
        return _frame(data, begin)
    return _ip(data, begin) if kind in (IPV4, IPV6) else NOT_IP


def _frame(data: Data, at: int) -> int:
    """Behind the Ethernet header at `at`."""
    return after_type(data, at + 12)
