"""The `Host` header of an HTTP request, read strictly; addresses that mean all interfaces.

A page of another site can let its own name lead to an address of ours (DNS rebinding) and then
read what we answer. The browser still sends that name as `Host`, so names that are not known to be
ours are refused; addresses cannot be bent.
"""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, TypeAlias

import click

IpAddress: TypeAlias = IPv4Address | IPv6Address

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[0-9a-z_.-]+)(?::([0-9]{1,5}))?", re.ASCII | re.I)
LOCALHOST: Final = "localhost"
HIGHEST_PORT: Final = 65_535


def host_header(head: bytes) -> str | None:
    """The value of the one `Host` line of a request's head, as it was sent but for one space.

    None when there is another number of them, or a line that is no header: folded, or two in one.

    RFC 9110 allows more spaces and tabs around a value (OWS). They stay here, so that `host_named`
    refuses them: no browser and no scraper sends them, and what two readers of a head can take for
    two different hosts is of no use but to get past one of them.
    """
    found = []
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if any(b"\r" in line or b"\n" in line for line in lines):
        return None
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            return None
        if name.lower() == b"host":
            found.append(value.removeprefix(b" ").decode("latin-1"))
    return found[0] if len(found) == 1 else None


def host_named(header: str) -> str | None:
    """The host of `HOST[:PORT]`, in lower case and without brackets; None for anything else."""
    found = _HOST.fullmatch(header)
    if found is None or (found[2] is not None and int(found[2]) > HIGHEST_PORT):
        return None
    host = found[1].lower()
    if not host.startswith("["):
        return host
    return host[1:-1] if isinstance(address_named(host[1:-1]), IPv6Address) else None


def address_named(host: str) -> IpAddress | None:
    """The address that a host is written as; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether a host, as `host_named` gives it, is a loopback address or `localhost`."""
    address = address_named(host)
    return host == LOCALHOST if address is None else address.is_loopback


def same_address(host: str, address: str) -> bool:
    """Whether a host is written as that address of a socket (`fe80::1%eth0`, `::ffff:10.0.0.1`)."""
    named, ours = address_named(host), address_named(address.partition("%")[0])
    return named is not None and ours is not None and _plain(named) == _plain(ours)


def _plain(address: IpAddress) -> IpAddress:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


# What a client did that is let go.
ON_PLAINTEXT: Final = "TLS on a plaintext listener (--tls)"


def refuse_wildcard(option: str, given: str, host: str) -> None:
    """Raise a usage error where a host means all interfaces. `given`: the value of the option."""
    if is_wildcard(host):
        raise click.UsageError(
            f"{option} {given} listens on all interfaces: add --expose to allow that"
        )


def is_wildcard(host: str) -> bool:
    """Return whether a socket that listens on a host takes connections on all interfaces.

    The text decides nothing: 0, 0x0, 0.0 and names of hosts files are 0.0.0.0 as well, and so is
    ::ffff:0.0.0.0. They are resolved as the socket resolves them."""
    if host in ("", "*"):
        return True
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        return False  # nobody can listen there; whoever tries says why
    addresses = (ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in found)
    return any(_plain(address).is_unspecified for address in addresses)
