"""A second, much simpler reader of our own loopback captures: who asked what, and was it answered?

It knows pcap with Ethernet, IPv4, TCP without loss, and the first eight bytes of Kafka frames; it
shares no code with the program, so that the two can be compared.
"""

import gzip
import struct
from collections import Counter, defaultdict
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

SASL_HANDSHAKE = 17
# Round trips of bare tokens after a SaslHandshake of version 0.
TOKENS = {b"PLAIN": 1, b"SCRAM-SHA-256": 2}


class Asked(NamedTuple):
    """A request as its first bytes say it."""

    api_key: int
    api_version: int
    answered: bool


def asked(capture: Path, ports: Container[int]) -> Counter[Asked]:
    """Requests to brokers on `ports`, counted."""
    found: Counter[Asked] = Counter()
    for requests, responses in _connections(capture, ports):
        frames, answers = list(_frames(requests)), list(_frames(responses))
        tokens = 0
        heads: list[tuple[int, int, int]] = []
        for frame in frames:
            if tokens:
                tokens -= 1
                del answers[len(heads)]  # the token that answers this one
                continue
            api_key, version, correlation = struct.unpack_from(">hhi", frame)
            heads.append((api_key, version, correlation))
            if (api_key, version) == (SASL_HANDSHAKE, 0):
                (client,) = struct.unpack_from(">h", frame, 8)
                tokens = TOKENS.get(frame[12 + max(client, 0) :], 0)
        correlations = {struct.unpack_from(">i", answer)[0] for answer in answers}
        found.update(Asked(key, version, c in correlations) for key, version, c in heads)
    return found


def _frames(stream: bytes) -> Iterator[bytes]:
    at = 0
    while at + 4 <= len(stream):
        (size,) = struct.unpack_from(">i", stream, at)
        if at + 4 + size > len(stream):
            return
        yield stream[at + 4 : at + 4 + size]
        at += 4 + size


def _connections(capture: Path, ports: Container[int]) -> Iterator[tuple[bytes, bytes]]:
    """Bytes of client and broker for each connection, by SYN."""
    generation: Counter[tuple[int, int]] = Counter()
    parts: dict[tuple[int, int, int, bool], dict[int, bytes]] = defaultdict(dict)
    starts: dict[tuple[int, int, int, bool], int] = {}
    for source, target, sequence, flags, data in _segments(capture):
        from_client = target in ports
        pair = (source, target) if from_client else (target, source)
        if flags & 0x12 == 0x02:
            generation[pair] += 1
        key = (*pair, generation[pair], from_client)
        if flags & 0x02:
            starts[key] = sequence + 1
        if data:
            start = starts.setdefault(key, sequence)  # older than the capture: it was at rest
            at = (sequence - start) & 0xFFFFFFFF
            if len(data) > len(parts[key].get(at, b"")):  # sent again, there may be less of it
                parts[key][at] = data
    for client, broker, turn, from_client in starts:
        if from_client:
            two = [parts[client, broker, turn, side] for side in (True, False)]
            yield _joined(two[0]), _joined(two[1])


def _joined(parts: dict[int, bytes]) -> bytes:
    stream = bytearray()
    for at in sorted(parts):
        if at > len(stream):
            raise ValueError(f"{at - len(stream)} bytes are missing")
        stream += parts[at][len(stream) - at :]
    return bytes(stream)


def _segments(capture: Path) -> Iterator[tuple[int, int, int, int, bytes]]:
    data = capture.read_bytes()
    if capture.suffix == ".gz":
        data = gzip.decompress(data)
    if data[:4] != b"\xd4\xc3\xb2\xa1" or data[20] != 1:
        raise ValueError("not a little-endian pcap of Ethernet frames")
    at = 24
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        packet = data[at + 16 : at + 16 + size]
        at += 16 + size
        if packet[12:14] != b"\x08\x00" or packet[23] != 6:
            continue
        tcp = 14 + (packet[14] & 15) * 4
        end = 14 + int.from_bytes(packet[16:18], "big") or len(packet)
        source, target, sequence = struct.unpack_from(">HHI", packet, tcp)
        body = tcp + (packet[tcp + 12] >> 4) * 4
        yield source, target, sequence, packet[tcp + 13], packet[body:end]
