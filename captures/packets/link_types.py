"""The table of link types: name and reader by number."""

from __future__ import annotations

from typing import Final

from kafkascope.captures.packets import link, wireless
from kafkascope.captures.packets.link import NOT_IP, Data, Reader

_PLAIN: Final[dict[int, tuple[str, Reader]]] = {
    0: ("BSD loopback", link.loopback),
    1: ("Ethernet", link.ethernet),
    9: ("PPP", link.ppp),
    12: ("raw IP", link.raw),
    14: ("raw IP", link.raw),
    50: ("PPP in HDLC", link.cisco_hdlc),
    51: ("PPPoE", link.pppoe),
    101: ("raw IP", link.raw),
    104: ("Cisco HDLC", link.cisco_hdlc),
    105: ("802.11", wireless.ieee802_11),
    108: ("OpenBSD loopback", link.loopback),
    109: ("BSD IPsec", link.enc),
    113: ("Linux cooked v1", link.linux_sll),
    117: ("OpenBSD packet filter log", link.pflog),
    127: ("802.11 with radiotap", wireless.radiotap),
    166: ("PPP of pppd", link.directed_ppp),
    204: ("PPP with direction", link.directed_ppp),
    226: ("Solaris IPNET", link.ipnet),
    228: ("raw IPv4", link.raw),
    229: ("raw IPv6", link.raw),
    239: ("Linux netfilter log", link.nflog),
    276: ("Linux cooked v2", link.linux_sll2),
}


def _within(header: wireless.Header) -> Reader:
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
    149: ("macOS packet tap", _within(wireless.pktap)),
    192: ("per-packet information", _within(wireless.ppi)),
    258: ("macOS packet tap", _within(wireless.pktap)),
}
"""Name for people and reader, by LINKTYPE_ number (tcpdump.org/linktypes.html). 149 is reserved for
users, and older macOS called its packet tap so."""
