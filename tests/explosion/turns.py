"""What hostile captures are made of: connections, turns of each side, batches nobody looked at."""

from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Endpoint
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.records.records import Batch, batches
from kafkascope.dissectors.records.writer import varint, with_right_crc
from tests.kit import batches as batches_by_hand
from tests.kit.wire import request, response

Turn = tuple[int, bytes]
"""Direction (0 from the client) and bytes."""

TIME: Final = 1_700_000_000_000_000_000


BROKER: Final = Endpoint("10.255.0.2", 9092)


def host(number: int, network: int = 10) -> str:
    """The address of each client."""
    return f"{network}.{number >> 16 & 127}.{number >> 8 & 255}.{number & 255}"


def write_packets(path: Path, packets: Iterable[bytes | str], apart_ns: int = 1_000) -> Path:
    """A pcapng with these packets, a microsecond apart. A text belongs to the capture's key log."""
    time = TIME
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.interface("made")
        for packet in packets:
            if isinstance(packet, str):
                writer.secrets(packet.encode())
                continue
            writer.packet(packet, time)
            time += apart_ns
    return path


def write_capture(path: Path, conversations: Iterable[list[Turn]]) -> Path:
    """A pcapng with these connections, one behind the other."""
    return write_packets(path, chain.from_iterable(map(_packets, count(), conversations)))


def _packets(number: int, turns: list[Turn]) -> list[bytes]:
    composer = Composer(Endpoint(host(number), 40_000), BROKER, mss=LIMITS.mss_bytes)
    return composer.open() + [each for turn in turns for each in composer.send(*turn)]


def batch_of(codec: int, count: int, body: bytes) -> bytes:
    """A batch of magic 2 with a right checksum and a body that nobody looked at."""
    whole = batches_by_hand.batch_of(codec, count, compress(codec, body) if codec else body)
    batch = next(batches(whole))
    assert isinstance(batch, Batch)
    return with_right_crc(whole, batch)


def record(body: bytes) -> bytes:
    """A record with its length, from attributes on."""
    return varint(len(body)) + body


def produce(number: int, *fields: bytes, topic: str = "t", key: str = "name") -> list[Turn]:
    """A Produce with a partition for each records field, and its response."""
    data = [{"index": index, "records": each} for index, each in enumerate(fields)]
    topics = [{key: topic, "partition_data": data}]
    return exchange("Produce", 7, {"acks": -1, "topic_data": topics}, {}, number)


def fetch(number: int, *fields: bytes, topic: str = "t") -> list[Turn]:
    """A Fetch whose response has a partition for each records field."""
    end = {"high_watermark": 1, "last_stable_offset": 1, "log_start_offset": 0}
    parts = [{"partition_index": at, "records": each} | end for at, each in enumerate(fields)]
    topics = [{"topic": topic, "partitions": parts}]
    return exchange("Fetch", 11, {}, {"responses": topics}, number)


def exchange(
    api: str, version: int, asked: dict[str, Any], told: dict[str, Any], number: int = 1
) -> list[Turn]:
    return [
        (0, request(api, version, number, **asked)),
        (1, response(api, version, number, **told)),
    ]


def at_once(asked: Iterable[bytes], told: Iterable[bytes] = ()) -> list[Turn]:
    """All requests, then all responses."""
    return [(0, b"".join(asked)), (1, b"".join(told))]


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
