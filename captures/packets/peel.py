"""Finds IP headers inside the usual tunnels over IPv4, for all packets of a block at once.

These are what mirror ports, clouds and overlay networks send by the gigabyte: VXLAN and Geneve with
IPv4 in Ethernet, plain GRE, ERSPAN II, and IP in IP. Positions are those of `tunnels.inner_ip`; all
other packets stay as they are, for `segment_of`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kafkascope.captures.packets.ip import MAX_TUNNELS
from kafkascope.captures.packets.link import IPV4
from kafkascope.captures.packets.tunnels import (
    ERSPAN_2,
    ETHERNET_INSIDE,
    GENEVE_PORT,
    GRE,
    IP_IN_IP,
    UDP,
    VXLAN_PORTS,
)

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_CARRIERS: Final = np.array([IP_IN_IP, GRE, UDP])
_VXLAN: Final = np.array(sorted(VXLAN_PORTS))
_PLAIN: Final = 0x45
"""IPv4 without options."""
_ROOM: Final = 20
"""Bytes that have to be there behind the outer header: the tunnel's own, or an IP header."""


def peel(buffer: bytearray, ip_at: Ints, good: Flags, end: Ints) -> Ints:
    """Return the position of each record's innermost IP header; `ip_at` where there is no
    tunnel."""
    octets = np.frombuffer(buffer, np.uint8)
    for _ in range(MAX_TUNNELS):
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
