"""Captures that are not as one would wish: cut off, heard from one side, TLS, lengths of 2 GB."""

import struct
from collections.abc import Callable, Iterator
from io import BytesIO

from hypothesis import strategies as st

from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.model import Endpoint
from tests.kit.samples import SAMPLES

__all__ = ["SAMPLES", "broken", "conversation", "heard_from"]

SMALL = ("sasl-old.pcap", "transactions.pcap", "rebalance.pcap", "java-old.pcap")
TIME = 1_700_000_000_000_000_000
HUGE = struct.pack(">i", 2**31 - 1)
HELLO = bytes.fromhex("16030100a5010000a10303") + bytes(range(160))


def records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Header and packet of each record of a little-endian pcap."""
    at = 24
    while at + 16 <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        yield data[at : at + 16], data[at + 16 : at + 16 + size]
        at += 16 + size


def heard_from(data: bytes, *, broker: bool) -> bytes:
    """A pcap (IPv4 over Ethernet) with the packets of one side only."""
    kept = [data[:24]]
    for head, packet in records(data):
        tcp = 14 + 4 * (packet[14] & 15)
        from_broker = int.from_bytes(packet[tcp : tcp + 2], "big") in (9092, 9095)
        if from_broker == broker:
            kept += [head, packet]
    return b"".join(kept)


def conversation(*turns: tuple[int, bytes]) -> bytes:
    """A pcapng of one connection in which the sides say this."""
    sink = BytesIO()
    writer = PcapngWriter(sink)
    writer.interface("made")
    composer = Composer(Endpoint("10.0.0.1", 40_000), Endpoint("10.0.0.2", 9092))
    packets = composer.open()
    for direction, said in turns:
        packets += composer.send(direction, said)
    for number, packet in enumerate(packets):
        writer.packet(packet, TIME + number * 1_000_000)
    return sink.getvalue()


def _sample() -> st.SearchStrategy[bytes]:
    return st.sampled_from(SMALL).map(lambda name: (SAMPLES / name).read_bytes())


def _cut(data: bytes) -> st.SearchStrategy[bytes]:
    return st.integers(0, len(data)).map(lambda end: data[:end])


def _flipped(data: bytes) -> st.SearchStrategy[bytes]:
    places = st.lists(st.integers(24, len(data) - 1), min_size=1, max_size=20)

    def flip(at: list[int]) -> bytes:
        out = bytearray(data)
        for place in at:
            out[place] ^= 0xFF
        return bytes(out)

    return places.map(flip)


def _header(key: int, version: int, number: int) -> bytes:
    return struct.pack(">hhih", key, version, number, 3) + b"cli"


def _frames() -> st.SearchStrategy[bytes]:
    """Frames that begin well and go on anyhow."""
    key, version = st.integers(-2, 100), st.integers(-2, 20)
    rest = st.binary(max_size=200)
    whole = st.builds(
        lambda k, v, n, r: _header(k, v, n) + r, key, version, st.integers(0, 9), rest
    )
    sized = whole.map(lambda frame: struct.pack(">i", len(frame)) + frame)
    huge = whole.map(lambda frame: HUGE + frame)
    return st.one_of(sized, sized, huge, st.just(HELLO), st.binary(max_size=100))


def _talk() -> st.SearchStrategy[bytes]:
    turns = st.lists(st.tuples(st.integers(0, 1), _frames()), max_size=12)
    return turns.map(lambda said: conversation(*said))


def broken() -> st.SearchStrategy[bytes]:
    """Bytes of a file that somebody calls a capture."""
    make: list[Callable[[bytes], st.SearchStrategy[bytes]]] = [_cut, _flipped]
    one_way = st.builds(lambda data, side: heard_from(data, broker=side), _sample(), st.booleans())
    return st.one_of(*(_sample().flatmap(each) for each in make), one_way, _talk())
