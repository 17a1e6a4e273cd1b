"""Packets, and blocks of pcapng, that nobody sends: below Kafka, where streams are put together."""

import struct
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Final

from kafkascope.captures.build import Composer, checksum
from kafkascope.captures.formats.pcapng import COMMENT, INTERFACE
from kafkascope.captures.formats.remarks import OURS
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.model import Endpoint
from tests.explosion.turns import BROKER, TIME, Turn, exchange, host, produce, write_packets
from tests.kit.captures import block
from tests.kit.wire import request, response

CLIENT: Final = Endpoint("10.0.0.4", 40_000)
ASKED: Final[list[Turn]] = exchange("ApiVersions", 0, {}, {})
ETHERNET: Final = bytes.fromhex("020000000002020000000001")
ICMP, UDP = 1, 17
NAMES: Final = 4
"""Type of pcapng's name resolution block."""


def write_slowly(path: Path, packets: Iterable[bytes]) -> None:
    """A pcapng with these packets, ten seconds apart."""
    write_packets(path, packets, 10_000_000_000)


def write_blocks(path: Path, blocks: Iterable[tuple[int, bytes]]) -> None:
    """A pcapng, as of our own proxy, with these blocks (type, body) before an exchange."""
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.interface("made", comment=OURS + "made")
        for kind, body in blocks:
            file.write(block("<", kind, body))
        for number, packet in enumerate(_exchange()):
            writer.packet(packet, TIME + number * 1_000)


def _composer(number: int = 0) -> Composer:
    return Composer(Endpoint(host(number), 40_000), BROKER)


def _exchange(number: int = 0) -> list[bytes]:
    """A connection with one exchange."""
    return _exchanged(_composer(number))


def _exchanged(composer: Composer) -> list[bytes]:
    return composer.open() + [each for turn in ASKED for each in composer.send(*turn)]


# --- segments of one connection


def every_second(n: int) -> Iterator[bytes]:
    """Every second segment is missing, on both sides; what is there begins with a frame."""
    composer = _composer()
    yield from composer.open()
    for number in range(n):
        asked, told = request("Heartbeat", 0, number), response("Heartbeat", 0, number)
        yield from composer.send(0, asked, ack=False)
        yield from composer.send(1, told, ack=False)
        composer.lose(0, len(asked))
        composer.lose(1, len(told))


def one_byte(n: int) -> Iterator[bytes]:
    """Every byte in a segment of its own."""
    composer = Composer(CLIENT, BROKER, mss=1)
    yield from composer.open()
    for number in range(n // 50):
        yield from composer.send(0, request("Heartbeat", 0, number), ack=False)
        yield from composer.send(1, response("Heartbeat", 0, number), ack=False)


def overlaps(n: int) -> Iterator[bytes]:
    """Every segment begins one byte behind the one before it: a thousand copies of each byte."""
    composer = _composer()
    yield from composer.open()
    said = produce(1, b"x" * (n + 2_000))[0][1]
    start = composer.next[0]
    for at in range(n):
        composer.next[0] = start + at
        yield from composer.send(0, said[at : at + 1_000], ack=False)


def descending(n: int) -> Iterator[bytes]:
    """The last segment first, with holes between them all; the first one never comes."""
    return _descending(n, 0)


def descending_on_many(n: int) -> Iterator[bytes]:
    """The same, 100,000 segments on each connection."""
    for begin in range(0, n, 100_000):
        yield from _descending(min(100_000, n - begin), begin)


def _descending(n: int, number: int) -> Iterator[bytes]:
    composer = _composer(number)
    yield from composer.open()
    start = composer.next[0]
    for at in range(n, 0, -1):
        composer.next[0] = start + 20 * at
        yield composer.packet(0, 0x18, b"0123456789")


# --- connections


def brokers(n: int) -> Iterator[bytes]:
    """Connections of one exchange, closed, each to a broker of its own."""
    for number in range(n):
        client = Endpoint("10.255.0.4", 1_024 + number % 60_000)
        composer = Composer(client, Endpoint(host(number), BROKER.port))
        yield from _exchanged(composer) + composer.close(0)


def hellos(n: int) -> Iterator[bytes]:
    """A connection for each ClientHello, every one with another name, closed by an alert."""
    for number in range(n):
        composer = _composer(number)
        yield from composer.open()
        yield from composer.send(0, _client_hello(f"b{number}.example.com".encode()))
        yield from composer.send(1, b"\x15\x03\x03\0\x02\x02\x28")
        yield from composer.close(1)


def _client_hello(name: bytes) -> bytes:
    asked = struct.pack(">HBH", len(name) + 3, 0, len(name)) + name
    extensions = struct.pack(">HH", 0, len(asked)) + asked
    body = b"\x03\x03" + bytes(33) + b"\0\x02\x13\x01\x01\0"
    body += struct.pack(">H", len(extensions)) + extensions
    hello = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + struct.pack(">H", len(hello)) + hello


# --- packets of other kinds


def _ip(protocol: int, payload: bytes, number: int = 0, offset: int = 0x4000) -> bytes:
    """An IPv4 packet in Ethernet; `offset` with the flags of fragments."""
    source = struct.pack(">I", 10 << 24 | number & 0xFFFFFF)
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), number & 0xFFFF, offset, 64, 0, 0)
    head = head[:9] + bytes([protocol]) + head[10:] + source + bytes((10, 255, 0, 2))
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return ETHERNET + b"\x08\0" + head + payload


def _udp(source: int, target: int, payload: bytes) -> bytes:
    return struct.pack(">HHHH", source, target, 8 + len(payload), 0) + payload


def fragments(n: int) -> Iterator[bytes]:
    """First parts of packets, and parts whose first one never comes, in turn."""
    yield from _exchange()
    head = _composer().packet(0, 0x10, b"\x55" * 1_400)[34:]
    for number in range(n):
        if number & 1:
            yield _ip(6, bytes(1_400), number, 0x2000 | 200)
        else:
            yield _ip(6, head[:1_400], number, 0x2000)


def unreachable(n: int) -> Iterator[bytes]:
    """ICMP: ports that cannot be reached, each of another connection."""
    yield from _exchange()
    for number in range(n):
        told = _composer(number).packet(0, 0x02)[14:42]
        body = b"\x03\x03\0\0\0\0\0\0" + told
        yield _ip(ICMP, body[:2] + struct.pack(">H", checksum(body)) + body[4:], number)


def scan(n: int) -> Iterator[bytes]:
    """SYNs that are refused, each of another host."""
    yield from _exchange()
    for number in range(n):
        composer = _composer(number)
        yield composer.packet(0, 0x02)
        yield composer.packet(1, 0x14)


def _outage(client: int, broker: Endpoint) -> Iterator[bytes]:
    """A connection that the broker closes, and two that it refuses."""
    worked = Composer(Endpoint(host(client), 40_000), broker)
    yield from _exchanged(worked)
    yield worked.packet(1, 0x14)
    for port in (40_001, 40_002):
        refused = Composer(Endpoint(host(client), port), broker)
        yield refused.packet(0, 0x02)
        yield refused.packet(1, 0x14)


def outages(n: int) -> Iterator[bytes]:
    """One broker that goes and comes, with a client each time."""
    for number in range(n):
        yield from _outage(number, BROKER)


def outages_of_many(n: int) -> Iterator[bytes]:
    """Brokers that go, each once."""
    for number in range(n):
        yield from _outage(number, Endpoint(host(number, 11), 9092))


def tunnels(n: int) -> Iterator[bytes]:
    """VLAN tags, MPLS labels and VXLAN in VXLAN, each as deep as a packet is long."""
    yield from _exchange()
    inner = _exchange()[3]
    tagged = ETHERNET + b"\x81\0\0\x01" * 300 + inner[12:]
    labels = ETHERNET + b"\x88\x47" + b"\0\0\x10\x40" * 300 + b"\0\0\x11\x40" + inner[14:]
    nested = inner
    for level in range(25):
        nested = _ip(UDP, _udp(40_000, 4789, b"\x08\0\0\0\0\0\x01\0" + nested), level)
    for number in range(n):
        yield (tagged, labels, nested)[number % 3]


def dns_answers(n: int) -> Iterator[bytes]:
    """DNS answers of 60 addresses each, no name and no address twice."""
    yield from _exchange()
    for number in range(n):
        name = b"".join(
            bytes([len(each)]) + each for each in (b"h%d" % number, b"example", b"com", b"")
        )
        answers = b"".join(
            b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04" + struct.pack(">I", 60 * number + at)
            for at in range(60)
        )
        said = struct.pack(">HHHHHH", number & 0xFFFF, 0x8180, 1, 60, 0, 0)
        yield _ip(UDP, _udp(53, 50_000, said + name + b"\0\x01\0\x01" + answers), number)


# --- blocks of pcapng


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) & 3)


def comments(n: int) -> Iterator[tuple[int, bytes]]:
    """Packets with fifty comments each, about whom our own proxy met."""
    packets = _exchange(1)
    for number in range(n // 50):
        data = packets[number % len(packets)]
        head = struct.pack("<IIIII", 0, TIME >> 32, TIME & 0xFFFFFFFF, len(data), len(data))
        said = b"".join(
            _option(COMMENT, b"fault %d of rule %d [10.0.0.1:40000]" % (each, number))
            for each in range(50)
        )
        yield 6, head + data + bytes(-len(data) & 3) + said + bytes(4)


def options(n: int) -> Iterator[tuple[int, bytes]]:
    """Interfaces with a hundred options each that nobody knows, some of them long."""
    for _ in range(n // 100):
        some = b"".join(_option(0x4000 + each, bytes(each)) for each in range(100))
        yield INTERFACE, struct.pack("<HHI", 1, 0, 0) + some + bytes(4)


def resolved_names(n: int) -> Iterator[tuple[int, bytes]]:
    """Name resolution blocks: n addresses with four names each."""
    out = BytesIO()
    for number in range(n):
        names = b"".join(b"h%d-%d.example.com\0" % (number, each) for each in range(4))
        out.write(_option(1, struct.pack(">I", number) + names))
        if number % 1_000 == 999 or number == n - 1:
            yield NAMES, out.getvalue() + bytes(4)
            out = BytesIO()
