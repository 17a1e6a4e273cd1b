"""Record batches for tests, written by hand: magic 2 without compression."""

import struct

import google_crc32c

from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch, encode_message_set

Pair = tuple[bytes | None, bytes | None]


def varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def batch(
    pairs: list[Pair],
    *,
    base_offset: int = 0,
    time_ms: int = 1_700_000_000_123,
    producer: tuple[int, int, int] = (-1, -1, -1),
    attributes: int = 0,
    headers: list[tuple[str, bytes | None]] | None = None,
) -> bytes:
    """A batch of (key, value) pairs a millisecond apart; `producer` is id, epoch, sequence."""
    records = b""
    for place, (key, value) in enumerate(pairs):
        body = b"\0" + varint(place) + varint(place) + sized(key) + sized(value)
        body += varint(len(headers or []))
        for name, content in headers or []:
            body += sized(name.encode()) + sized(content)
        records += varint(len(body)) + body
    last = len(pairs) - 1
    tail = struct.pack(
        ">hiqqqhii", attributes, last, time_ms, time_ms + last, *producer, len(pairs)
    )
    rest = tail + records
    start = struct.pack(">qiib", base_offset, len(rest) + 9, 0, 2)
    return start + struct.pack(">I", google_crc32c.value(rest)) + rest


def encoded(magic: int, records: list[Record], codec: int = 0) -> bytes:
    """A batch, or a message set of an older magic."""
    if magic == 2:
        return encode_batch(records, codec=codec)
    return encode_message_set(magic, records, codec=codec)


def batch_of(codec: int, count: int, body: bytes) -> bytes:
    """A batch with a body that its header knows nothing of."""
    head = bytearray(encode_batch([Record(0, 1, None, None, ())])[:61])
    head[8:12] = struct.pack(">i", 49 + len(body))
    head[22] = codec
    head[57:61] = struct.pack(">i", count)
    return bytes(head) + body
