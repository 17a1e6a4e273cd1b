"""Write a capture of Kafka traffic whose records are known: `python benchmarks/generate.py OUT.pcap
--megabytes 100`.

A client produces (Produce 7) and fetches (Fetch 10, asking Metadata 8 now and then) in versions
that tshark decodes, batches of
magic 2 with records of 100 to 1000 bytes, codecs none, none, lz4, gzip in turn, over one or several
connections, cut into segments of
--mss bytes with ACKs between. Imports nothing of the project, and prints what it wrote as one line
of JSON: the truth that the
benchmark asserts.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import cramjam
import google_crc32c

CODECS = (0, 0, 3, 1)
START_NS = 1_700_000_000_000_000_000
SYN, ACK, PSH, FIN = 2, 16, 8, 1


def varint(value: int) -> bytes:
    value = value << 1 ^ value >> 63
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def checksum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Truth:
    """What was written."""

    def __init__(self) -> None:
        self.exchanges = self.records = self.value_bytes = self.packets = 0


class Tcp:
    """One connection, written packet by packet."""

    def __init__(self, out: BinaryIO, number: int, mss: int, truth: Truth) -> None:
        self.out, self.mss, self.truth = out, mss, truth
        self.hosts = (bytes((10, 0, 2 * (number // 20_000), 4)), bytes((10, 0, 1, 2)))
        self.ports = (40000 + number % 20_000, 9092)
        self.sequence = [1000, 5000]
        self.identity = 0

    def packet(self, side: int, flags: int, payload: bytes, now: int) -> None:
        self.identity = (self.identity + 1) & 0xFFFF
        source, target = self.hosts[side], self.hosts[1 - side]
        ip = struct.pack(
            ">BBHHHBBH4s4s",
            0x45,
            0,
            40 + len(payload),
            self.identity,
            0x4000,
            64,
            6,
            0,
            source,
            target,
        )
        ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
        head = (
            self.ports[side],
            self.ports[1 - side],
            self.sequence[side],
            self.sequence[1 - side],
        )
        tcp = struct.pack(">HHIIBBHHH", *head, 0x50, flags, 65535, 0, 0)
        # tshark does not verify TCP checksums by default: zero is as good as right, and quicker.
        data = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + ip + tcp + payload
        self.out.write(struct.pack("<IIII", now // 10**9, now % 10**9, len(data), len(data)) + data)
        self.truth.packets += 1
        self.sequence[side] = (
            self.sequence[side] + len(payload) + bool(flags & (SYN | FIN)) & 0xFFFFFFFF
        )

    def open(self, now: int) -> None:
        self.packet(0, SYN, b"", now)
        self.packet(1, SYN | ACK, b"", now + 1000)
        self.packet(0, ACK, b"", now + 2000)

    def send(self, side: int, data: bytes, now: int) -> int:
        for index, at in enumerate(range(0, len(data), self.mss)):
            last = at + self.mss >= len(data)
            self.packet(side, ACK | (PSH if last else 0), data[at : at + self.mss], now)
            now += 1000
            if index % 8 == 7:
                self.packet(1 - side, ACK, b"", now)
                now += 500
        return now


def record(index: int, key: bytes | None, value: bytes) -> bytes:
    """A record of magic 2."""
    body = b"\0" + varint(index) * 2
    body += varint(-1) if key is None else varint(len(key)) + key
    body += varint(len(value)) + value + b"\0"
    return varint(len(body)) + body


def values_of(random_: random.Random, text: bytes, most: int, encoded: bool) -> list[bytes]:
    """Values of the records of a batch: text that compresses about as well as JSON does."""
    values = []
    for _ in range(random_.randint(min(20, most), most)):
        size = random_.randint(100, 1000)
        start = random_.randrange(0, 3000)
        value = text[start : start + size]
        if encoded:
            # Schema Registry's framing with id 7, then what Avro makes of a "string".
            value = b"\0\0\0\0\x07" + varint(len(value)) + value
        values.append(value)
    return values


def sealed(codec: int, base: int, count: int, data: bytes, now: int) -> bytes:
    """A batch of magic 2 around its records."""
    if codec == 1:
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        data = packer.compress(data) + packer.flush()
    elif codec == 3:
        data = bytes(cramjam.lz4.compress(data))
    stamp = now // 10**6
    head = struct.pack(">hiqqqhii", codec, count - 1, stamp, stamp + count - 1, -1, -1, -1, count)
    rest = b"\0\0\0\0\2" + struct.pack(">I", google_crc32c.value(head + data)) + head + data
    return struct.pack(">qi", base, len(rest)) + rest


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def frame(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def request(key: int, version: int, correlation: int, body: bytes) -> bytes:
    return frame(struct.pack(">hhi", key, version, correlation) + text("orders-svc") + body)


def produce(correlation: int, records: bytes) -> tuple[bytes, bytes]:
    body = struct.pack(">hhi", -1, -1, 30000) + struct.pack(">i", 1) + text("orders")
    body += struct.pack(">iii", 1, 3, len(records)) + records
    answer = struct.pack(">i", correlation) + struct.pack(">i", 1) + text("orders")
    answer += struct.pack(">iihqqq", 1, 3, 0, 88123, -1, 0) + struct.pack(">i", 0)
    return request(0, 7, correlation, body), frame(answer)


def fetch(correlation: int, records: bytes) -> tuple[bytes, bytes]:
    body = struct.pack(">iiiibii", -1, 500, 1, 52428800, 0, 0, -1) + struct.pack(">i", 1)
    body += text("orders") + struct.pack(">iiiqqi", 1, 3, -1, 88000, -1, 1048576)
    body += struct.pack(">i", 0)
    answer = struct.pack(">iihi", correlation, 0, 0, 0) + struct.pack(">i", 1) + text("orders")
    answer += struct.pack(">iihqqqii", 1, 3, 0, 99999, 99999, 0, 0, len(records)) + records
    return request(1, 10, correlation, body), frame(answer)


class Turn(NamedTuple):
    """A request with its response."""

    connection: int
    ask: bytes
    answer: bytes
    values: tuple[int, ...]
    """Bytes of the values of its records."""


def traffic(
    path: Path,
    turn: Callable[[int, int], Turn],
    connections: int,
    *,
    size: int = 0,
    turns: int = 0,
    mss: int = 1448,
    kind: type[Tcp] = Tcp,
) -> Truth:
    """Write a capture of so many bytes or `turns`. `turn` makes one, by its number and the time;
    `kind` makes the connections."""
    truth, now = Truth(), START_NS
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        made = [kind(out, number, mss, truth) for number in range(connections)]
        for connection in made:
            connection.open(now)
            now += 10_000
        while out.tell() < size or truth.exchanges < turns:
            each = turn(truth.exchanges, now)
            now = made[each.connection].send(0, each.ask, now) + 200_000
            now = made[each.connection].send(1, each.answer, now) + 50_000
            truth.exchanges += 1
            truth.records += len(each.values)
            truth.value_bytes += sum(each.values)
    return truth


def write(path: Path, options: argparse.Namespace, kind: type[Tcp] = Tcp) -> Truth:
    """Write a capture; `kind` makes its connections."""
    random_, count = random.Random(options.seed), options.connections
    words = [
        bytes(random_.choices(b"abcdefghijklmnopqrstuvwxyz0123456789", k=7)) for _ in range(97)
    ]
    text = b'","'.join(random_.choices(words, k=500))

    def turn(number: int, now: int) -> Turn:
        first = options.first and random_.random() < options.first
        values = values_of(random_, text, options.most, options.encoded)
        records = (record(at, b"k%d" % (at % 7), value) for at, value in enumerate(values))
        codec = CODECS[number // 2 % len(CODECS)]
        batch = sealed(codec, number * 1000, len(values), b"".join(records), now)
        ask, answer = (fetch if number % 2 else produce)(number, batch)
        return Turn(0 if first else number % count, ask, answer, tuple(map(len, values)))

    size = int(options.megabytes * 1e6)
    return traffic(path, turn, count, size=size, mss=options.mss, kind=kind)


def made(path: Path, megabytes: float, kind: type[Tcp] = Tcp, **options: Any) -> Truth:
    """Write a capture with options of the command."""
    words = (word for name, value in options.items() for word in (f"--{name}", str(value)))
    settings = options_of([str(path), "--megabytes", str(megabytes), *words])
    return write(path, settings, kind)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--mss", type=int, default=1448, help="65000 for loopback-like segments")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--first", type=float, default=0, help="the first one's share of all")
    parser.add_argument("--most", type=int, default=160, help="records of a batch")
    parser.add_argument("--encoded", action="store_true", help='values in Avro, schema 7: "string"')
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args(arguments)


def main() -> None:
    options = options_of()
    truth = write(options.out, options)
    print(json.dumps({**vars(truth), "bytes": options.out.stat().st_size}))


if __name__ == "__main__":
    main()
