"""Host names with their addresses, as far as a capture shows them.

Sources are DNS responses in UDP packets and TCP streams (RFC 1035, also multicast DNS, RFC 6762),
names that TLS clients ask for, and lines in the format of /etc/hosts. Counts and lengths are
checked against the bytes that are there; a message in which they do not fit is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from
from typing import Final

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Chunk, Packet, Resolved
from kafkascope.captures.packets.ip import udp_of
from kafkascope.captures.packets.link_types import LINK_TYPES
from kafkascope.captures.packets.tcp import host_text
from kafkascope.captures.tls.begin import begins_hello

DNS_PORTS: Final = frozenset({53, 5353})
"""Ports of DNS servers and of multicast DNS."""
_A: Final = 1
_CNAME: Final = 5
_AAAA: Final = 28
_INTERNET: Final = 1
_HEADER: Final = 12
_ANSWER: Final = 0x8000
_ERROR: Final = 0x000F


def canonical(name: str) -> str:
    """Return a name in the form in which names are compared."""
    return name.rstrip(".").lower()


def in_packet(packet: Packet) -> Iterator[Resolved]:
    """Yield the names in a DNS response over UDP."""
    link = LINK_TYPES.get(packet.link_type)
    start = -1 if link is None else link[1](packet.data)
    found = udp_of(packet.data, start) if start >= 0 else None
    if found is not None and found[0] in DNS_PORTS:
        yield from in_message(bytes(found[1]))


def in_stream(data: bytes) -> Iterator[Resolved]:
    """Yield the names in DNS responses over TCP, each behind its length, as far as they are
    whole."""
    at = 0
    while at + 2 + _HEADER <= len(data):
        size = int.from_bytes(data[at : at + 2], "big")
        if size < _HEADER or at + 2 + size > len(data):
            return
        yield from in_message(data[at + 2 : at + 2 + size])
        at += 2 + size


def in_message(data: bytes) -> Iterator[Resolved]:
    """Yield the names in a DNS message, if it is a response without an error."""
    if len(data) < _HEADER:
        return
    _, flags, questions, answers, _, additional = unpack_from(">HHHHHH", data)
    if not flags & _ANSWER or flags & _ERROR or questions + answers > LIMITS.dns_records:
        return
    names: list[str] = []
    at = _HEADER
    for _ in range(questions):
        found = _name(data, at)
        if found is None or found[1] + 4 > len(data):
            return
        names.append(found[0])
        at = found[1] + 4
    aliases: dict[str, str] = {}
    addresses: dict[str, set[str]] = {}
    for _ in range(min(answers + additional, LIMITS.dns_records)):
        following = _record(data, at, aliases, addresses)
        if following is None:
            break
        at = following
    for name in dict.fromkeys((*names, *addresses)):
        hosts = _followed(name, aliases, addresses)
        if name and hosts:
            yield Resolved(name, tuple(sorted(hosts)), "dns")


def _record(
    data: bytes, at: int, aliases: dict[str, str], addresses: dict[str, set[str]]
) -> int | None:
    """Read the record at an offset; return the offset behind it, None where there is none."""
    found = _name(data, at)
    if found is None:
        return None
    owner, at = found
    if at + 10 > len(data):
        return None
    kind, class_, _, size = unpack_from(">HHIH", data, at)
    at += 10
    end: int = at + size
    if end > len(data):
        return None
    # The highest bit of the class says in multicast DNS that caches are to be flushed.
    if class_ & 0x7FFF == _INTERNET:
        if (kind, size) in ((_A, 4), (_AAAA, 16)):
            addresses.setdefault(owner, set()).add(host_text(data[at:end]))
        elif kind == _CNAME:
            alias = _name(data, at)
            if alias is not None:
                aliases[owner] = alias[0]
    return end


def _followed(name: str, aliases: dict[str, str], addresses: dict[str, set[str]]) -> set[str]:
    for _ in range(LIMITS.dns_aliases):
        if name in addresses or name not in aliases:
            break
        name = aliases[name]
    return addresses.get(name, set())


def _name(data: bytes, at: int) -> tuple[str, int] | None:
    """Return the name at an offset and the offset behind it; pointers lead backwards only."""
    labels: list[str] = []
    end = -1
    size = 0
    for _ in range(LIMITS.dns_labels):
        if at >= len(data):
            return None
        length = data[at]
        if length & 0xC0 == 0xC0:
            if at + 2 > len(data):
                return None
            end = at + 2 if end < 0 else end
            target = (length & 0x3F) << 8 | data[at + 1]
            if target >= at:
                return None
            at = target
            continue
        if length & 0xC0 or at + 1 + length > len(data):
            return None
        at += 1
        if not length:
            return canonical(".".join(labels)), at if end < 0 else end
        size += length + 1
        if size > LIMITS.host_chars:
            return None
        labels.append(data[at : at + length].decode("latin-1"))
        at += length
    return None


def in_hosts_file(text: str) -> Iterator[Resolved]:
    """Yield the names in lines of /etc/hosts' format; `ValueError` for a line that is not."""
    from ipaddress import ip_address

    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            host = str(ip_address(words[0].partition("%")[0]))
        except ValueError:
            raise ValueError(f"line {number}: {words[0]!r} is not an IP address") from None
        if len(words) < 2:
            raise ValueError(f"line {number}: {host} without a name")
        for name in words[1:]:
            yield Resolved(canonical(name), (host,), "hosts")


# --- bytes of TCP streams -----------------------------------------------------------------------


def in_chunk(chunk: Chunk) -> Iterator[Resolved]:
    """Yield the names in the first bytes of a direction: of a DNS response over TCP, or the server
    name (SNI) of a TLS client, as the name of the address that it connected to."""
    if chunk.offset:
        return
    data = chunk.data
    if len(chunk.pieces) > 1:
        # The same for everybody, however packets were put together.
        data = data[: chunk.pieces[1].start]
    ends = chunk.connection.a, chunk.connection.b
    if ends[chunk.direction].port in DNS_PORTS:
        yield from in_stream(data)
    elif begins_hello(data):
        from kafkascope.captures.tls.messages import server_name

        if name := server_name(data):
            yield Resolved(canonical(name), (ends[1 - chunk.direction].host,), "sni")
