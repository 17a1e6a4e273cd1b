"""Addresses to listen on: those that mean all interfaces need `--expose`."""

from __future__ import annotations

import socket
from ipaddress import IPv6Address, ip_address
from typing import Final

import click

ON_PLAINTEXT: Final = "TLS on a plaintext listener (--tls)"
"""What a client did that is let go."""


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
    return any(_is_unspecified(str(sockaddr[0])) for *_, sockaddr in found)


def _is_unspecified(text: str) -> bool:
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_unspecified
