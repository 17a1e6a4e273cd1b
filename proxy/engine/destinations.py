"""Decides which addresses that brokers tell may be connected to. State without I/O.

A response can name any host as a broker. What is not public is therefore connected to only where
the upstream that the user gave is of the same kind, or where the user allows the network. Judged is
the address that a connection would go to, never a name: names can lead anywhere (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from kafkascope.proxy.hosts import IpAddress, address_named

Network: TypeAlias = IPv4Network | IPv6Network
Kind: TypeAlias = str

# Clouds tell a machine its credentials there; no broker is at one, whatever the upstream is.
METADATA_SERVICES: Final = frozenset(
    map(
        ip_address,
        (
            *("169.254.169.254", "fd00:ec2::254", "fd20:ce::254"),  # AWS, Azure, Google and others
            *("169.254.170.2", "169.254.170.23", "fd00:ec2::23"),  # AWS: of tasks and pods
            *("100.100.100.200", "168.63.129.16", "192.0.0.192"),  # Alibaba, Azure, Oracle
            *("169.254.0.23", "fe80::a9fe:a9fe"),  # Tencent, OpenStack
        ),
    )
)
# Connecting to 0.0.0.0 leads to this machine (RFC 1122).
THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")
# Of carriers, and of overlay networks (RFC 6598).
SHARED: Final = IPv4Network("100.64.0.0/10")
# The last four bytes are the IPv4 address that is reached (RFC 6052).
NAT64: Final = IPv6Network("64:ff9b::/96")
# The same, deprecated (RFC 4291).
COMPATIBLE: Final = IPv6Network("::/96")


WORDS: Final[dict[Kind, str]] = {
    "metadata service": "the metadata service of a cloud",
    "unspecified": "an unspecified address",
}


class BadNetwork(ValueError):
    """A text is no network; a sentence."""


def parse_network(text: str) -> Network:
    """Parse a network (10.0.0.0/8, fd00::/8) or an address; `BadNetwork`."""
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise BadNetwork(f"{text!r} is not a network such as 10.0.0.0/8 or 10.1.2.3") from None


def kind_of(address: IpAddress) -> Kind:
    """The kind of an address, whatever address may be inside it."""
    if address in METADATA_SERVICES:
        return "metadata service"
    if address.is_unspecified or address in THIS_NETWORK:
        return "unspecified"
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    if address.is_multicast:
        return "multicast"
    if isinstance(address, IPv6Address) and address.is_site_local:
        return "private"
    if address.is_reserved:
        return "reserved"
    if address in SHARED:
        return "shared"
    return "public" if address.is_global else "private"


def reached(address: IpAddress) -> tuple[IpAddress, ...]:
    """Where packets to an address end: the IPv4 addresses inside an IPv6 one, else itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    inside = address in NAT64 or (address in COMPATIBLE and int(address) > 1)
    return (IPv4Address(int(address) & 0xFFFFFFFF),) if inside else (address,)


class Destinations:
    """The upstreams and networks that the user named."""

    def __init__(self, allowed: Iterable[Network] = ()) -> None:
        self._allowed = tuple(allowed)
        self._kinds: set[Kind] = {"public"}

    def trust(self, address: str) -> None:
        """Learn the address of an upstream that the user named: its kind is allowed from now on."""
        found = address_named(address.partition("%")[0])
        if found is not None:
            self._kinds |= {kind_of(each) for each in reached(found)} - {"metadata service"}

    def refusal(self, address: str) -> str | None:
        """Why an advertised address is not connected to; None when it is."""
        found = address_named(address.partition("%")[0])
        if found is None:
            return f"{address!r} is not an address"
        ends = reached(found)
        if any(each in network for network in self._allowed for each in (found, *ends)):
            return None
        for end in ends:
            kind = kind_of(end)
            if kind not in self._kinds:
                return f"{found} is {WORDS.get(kind, f'a {kind} address')}, the upstream is not"
        return None
