"""Headers of the PROXY protocol, versions 1 and 2: what a load balancer sends before the bytes of
its client, so that the server learns the client's address. Stateless.

https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt
"""

from __future__ import annotations

import re
import struct
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Endpoint

V1: Final = b"PROXY "
V2: Final = b"\r\n\r\n\x00\r\nQUIT\n"

_LINE: Final = re.compile(
    rb"PROXY (?:UNKNOWN[ -~]*|TCP([46]) ([0-9A-Fa-f:.]{2,45}) ([0-9A-Fa-f:.]{2,45}) "
    rb"(\d{1,5}) (\d{1,5}))\r\n"
)
_HEAD: Final = struct.Struct(">12sBBH")
_PORTS: Final = struct.Struct(">HH")
LOCAL, PROXY = 0x20, 0x21
"""Version and command: the balancer itself speaks, as in a health check; it speaks for a client."""
ADDRESSES: Final = {1: 4, 2: 16}
"""Bytes of an address by the family: IPv4, IPv6."""
UNIX: Final = 3
UNIX_BYTES: Final = 216
STREAM: Final = 1


class ProxyHeader(NamedTuple):
    """Contents of a header."""

    version: int
    size: int
    """Bytes."""
    client: Endpoint | None
    """None: the balancer itself speaks, or it does not say for whom."""
    server: Endpoint | None
    """Address that the client connected to."""


def begins(data: bytes | bytearray) -> bool:
    """Return whether a header begins here, or may: of its first bytes not all need to be there."""
    return bool(data) and any(
        data.startswith(sign) or sign.startswith(bytes(data)) for sign in (V1, V2)
    )


def read_header(data: bytes | bytearray) -> ProxyHeader | None:
    """Return the header at the start of a stream; None as long as it is not whole. `ValueError`
    where it is none."""
    if data.startswith(V1) or V1.startswith(bytes(data)):
        return _read_line(bytes(data[: LIMITS.proxy_line_bytes]))
    if len(data) < _HEAD.size:
        if V2.startswith(bytes(data[: len(V2)])):
            return None
        raise ValueError("no header of the PROXY protocol")
    sign, command, family, length = _HEAD.unpack_from(data)
    if sign != V2 or command not in (LOCAL, PROXY):
        raise ValueError("no header of the PROXY protocol, version 2")
    size = _HEAD.size + length
    if size > LIMITS.proxy_header_bytes:
        raise ValueError(f"a header of {size} bytes")
    ends: tuple[Endpoint | None, Endpoint | None] = (None, None)
    width = ADDRESSES.get(family >> 4, 0)
    least = 2 * width + _PORTS.size if width else UNIX_BYTES if family >> 4 == UNIX else 0
    if command == PROXY and length < least:
        raise ValueError(f"{length} bytes for addresses of {least}")
    if len(data) < size:
        return None
    if command == PROXY and width:
        at = _HEAD.size
        places = [at + n * width for n in (0, 1)]
        hosts = (str(ip_address(bytes(data[place : place + width]))) for place in places)
        ports = _PORTS.unpack_from(data, at + 2 * width)
        client, server = map(Endpoint, hosts, ports)
        ends = client, server
    return ProxyHeader(2, size, *ends)


def _read_line(data: bytes) -> ProxyHeader | None:
    found = _LINE.match(data)
    if found is None:
        if b"\n" in data or len(data) >= LIMITS.proxy_line_bytes:
            raise ValueError("no header of the PROXY protocol, version 1")
        return None
    family, *ends = found.groups()
    if family is None:
        return ProxyHeader(1, found.end(), None, None)
    kind = IPv4Address if family == b"4" else IPv6Address
    source, target, *ports = (each.decode("ascii") for each in ends)
    client, server = (
        Endpoint(str(kind(host)), int(port))
        for host, port in zip((source, target), ports, strict=True)
    )
    if max(client.port, server.port) > 0xFFFF:
        raise ValueError("a port above 65535")
    return ProxyHeader(1, found.end(), client, server)


def header_of(version: int, client: Endpoint, server: Endpoint) -> bytes:
    """Return the header that names the client of a connection. Host names, and addresses of two
    families, become an unknown client."""
    try:
        source, target = ip_address(client.host), ip_address(server.host)
    except ValueError:
        source, target = ip_address("0.0.0.0"), ip_address("::")
    known = source.version == target.version
    if version == 1:
        if not known:
            return b"PROXY UNKNOWN\r\n"
        line = f"PROXY TCP{source.version} {source} {target} {client.port} {server.port}\r\n"
        return line.encode("ascii")
    if not known:
        return _HEAD.pack(V2, LOCAL, 0, 0)  # AF_UNSPEC
    body = source.packed + target.packed + _PORTS.pack(client.port, server.port)
    family = (1 if source.version == 4 else 2) << 4 | STREAM
    return _HEAD.pack(V2, PROXY, family, len(body)) + body
