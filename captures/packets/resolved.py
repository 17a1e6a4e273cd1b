"""Host names with their addresses, as far as a capture shows them.

Sources are DNS responses in UDP packets and TCP streams (RFC 1035, also multicast DNS, RFC 6762),
names that TLS clients ask for, and lines in the format of /etc/hosts. Counts and lengths are
checked against the bytes that are there; a message in which they do not fit is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from struct import unpack_from
from typing import Final

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Chunk, Packet, Resolved
from kafkascope.captures.packets.ip import udp_of
from kafkascope.captures.packets.link import CUT_SHORT, LINK_TYPES
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
_BROKEN: Final = (ValueError, *CUT_SHORT)
"""What reading a message raises in which lengths do not fit."""


def canonical(name: str) -> str:
    """Return a name in the form in which names are compared."""
    return name.rstrip(".").lower()


def in_packet(packet: Packet) -> Iterator[Resolved]:
    """Yield the names in a DNS response over UDP."""
    try:
        start = LINK_TYPES[packet.link_type][1](packet.data)
        found = udp_of(packet.data, start) if start >= 0 else None
    except (KeyError, *CUT_SHORT):
        return
    if found is not None and found[0] in DNS_PORTS:
        yield from in_message(bytes(found[1]))


def in_stream(data: bytes) -> Iterator[Resolved]:
    """Yield the names in DNS responses over TCP, each after its length, as far as they are
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
    aliases: dict[str, str] = {}
    addresses: dict[str, set[str]] = {}
    at = _HEADER
    with suppress(*_BROKEN):
        for _ in range(questions):
            name, at = _name(data, at)
            names.append(name)
            at += 4
        for _ in range(min(answers + additional, LIMITS.dns_records)):
            at = _record(data, at, aliases, addresses)
    for name in dict.fromkeys((*names, *addresses)):
        hosts = _followed(name, aliases, addresses)
        if name and hosts:
            yield Resolved(name, tuple(sorted(hosts)), "dns")


def _record(data: bytes, at: int, aliases: dict[str, str], addresses: dict[str, set[str]]) -> int:
    """Read the record at an offset; return the offset after it. Raises one of `_BROKEN`."""
    owner, at = _name(data, at)
    kind, class_, _, size = unpack_from(">HHIH", data, at)
    at += 10
    end: int = at + size
    if end > len(data):
        raise ValueError("a record that is cut")
    # The highest bit of the class says in multicast DNS that caches are to be flushed.
    if class_ & 0x7FFF == _INTERNET:
        if (kind, size) in ((_A, 4), (_AAAA, 16)):
            addresses.setdefault(owner, set()).add(host_text(data[at:end]))
        elif kind == _CNAME:
            with suppress(*_BROKEN):
                aliases[owner] = _name(data, at)[0]
    return end


def _followed(name: str, aliases: dict[str, str], addresses: dict[str, set[str]]) -> set[str]:
    for _ in range(LIMITS.dns_aliases):
        if name in addresses or name not in aliases:
            break
        name = aliases[name]
    return addresses.get(name, set())


def _name(data: bytes, at: int) -> tuple[str, int]:
    """Return the name at an offset and the offset after it; pointers lead backwards only. Raises
    one of `_BROKEN`."""
    labels: list[str] = []
    end = -1
    size = 0
    for _ in range(LIMITS.dns_labels):
        length = data[at]
        if length & 0xC0 == 0xC0:
            target = (length & 0x3F) << 8 | data[at + 1]
            end = at + 2 if end < 0 else end
            if target >= at:
                break
            at = target
            continue
        at += 1
        if not length:
            return canonical(".".join(labels)), at if end < 0 else end
        size += length + 1
        if length & 0xC0 or at + length > len(data) or size > LIMITS.host_chars:
            break
        labels.append(data[at : at + length].decode("latin-1"))
        at += length
    raise ValueError("no name")


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
