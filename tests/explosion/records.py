"""Records that pretend, or expand, to be much."""

import struct
from collections.abc import Callable

from kafkascope.dissectors.records import writer
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.records.records import Record
from tests.explosion.turns import Turn, batch_of, exchange, fetch, produce, record
from tests.kit.wire import partition


def headers(n: int) -> list[Turn]:
    fields = b"\0\0\0\x01\x01" + writer.varint(n) + b"\0\x01" * n
    return produce(1, batch_of(4, 1, record(fields)))


def empty_records(n: int) -> list[Turn]:
    return produce(1, batch_of(4, n, record(b"\0\0\0\x01\x01\0") * n))


def fetched_records(n: int) -> list[Turn]:
    return fetch(1, batch_of(4, n, record(b"\0\0\0\x01\x01\0") * n))


def plain_batches(n: int) -> list[Turn]:
    return produce(1, writer.encode_batch([Record(0, 1, b"k", b"v", ())]) * n)


def fetched_batches(n: int) -> list[Turn]:
    return fetch(1, writer.encode_batch([Record(0, 1, b"k", b"v", ())]) * n)


def old_messages(n: int) -> list[Turn]:
    return produce(1, writer.encode_message_set(1, [Record(0, 1, None, b"v", ())]) * n)


def nested_sets(n: int) -> list[Turn]:
    """A compressed set within one, whose inner sets are many."""
    set_ = writer.encode_message_set(1, [Record(0, 1, None, b"", ())] * 10)
    inner = writer.encode_message(1, Record(0, 1, None, compress(1, set_), ()), 1)
    return produce(1, writer.encode_message(1, Record(n, 1, None, compress(1, inner * n), ()), 1))


def gzip_in_gzip(n: int) -> list[Turn]:
    """Message sets three deep; the innermost value expands to n bytes."""
    inner = writer.encode_message_set(1, [Record(0, 1, None, bytes(n), ())], codec=1)
    for _ in range(2):
        inner = writer.encode_message(1, Record(0, 1, None, compress(1, inner * 20), ()), 1)
    return produce(1, inner)


def bomb(codec: int) -> Callable[[int], list[Turn]]:
    def make(n: int) -> list[Turn]:
        value = bytes(n)
        fields = b"\0\0\0\x01" + writer.varint(n) + value + b"\0"
        return produce(1, batch_of(codec, 1, record(fields)))

    return make


def many_bombs(n: int) -> list[Turn]:
    """n partitions of 4 MB each, in 200 bytes."""
    size = 4 << 20
    fields = b"\0\0\0\x01" + writer.varint(size) + bytes(size) + b"\0"
    return fetch(1, *[batch_of(4, 1, record(fields))] * n)


def large_record(n: int) -> list[Turn]:
    return produce(1, writer.encode_batch([Record(0, 1, None, b"x\xff" * (n // 2), ())]))


def large_text(n: int) -> list[Turn]:
    return produce(1, writer.encode_batch([Record(0, 1, None, b"\x01" * n, ())]))


def long_varints(n: int) -> list[Turn]:
    """Every number in as many bytes as may be."""
    fields = b"\0" + b"\x80" * 9 + b"\0" + b"\x80" * 4 + b"\0" + b"\x81\x80\x80\x80\0" * 2 + b"\0"
    length = len(fields) << 1
    packed = bytes([length | 0x80, 0x80, 0x80, 0x80, 0])
    return produce(1, batch_of(0, n, (packed + fields) * n))


def internal_records(n: int) -> list[Turn]:
    """Offset commits as a broker stores them, fetched."""
    key = struct.pack(">hh", 1, 1) + b"g" + struct.pack(">h", 1) + b"t" + bytes(4)
    value = struct.pack(">hqih", 3, 7, -1, 0) + bytes(8)
    records = [Record(index, 1, key, value, ()) for index in range(n)]
    return fetch(1, writer.encode_batch(records, codec=4), topic="__consumer_offsets")


def control_batches(n: int) -> list[Turn]:
    marker = Record(0, 1, b"\0\0\0\1", b"\0\0\0\0\0\0", ())
    return fetch(1, writer.encode_batch([marker], attributes=0x30) * n)


def aborted(n: int) -> list[Turn]:
    """Transactions that were aborted, each with a Fetch that reads it and lists it."""
    key, value = b"\0\0\0\0", b"\0\0\0\0\0\0"
    turns: list[Turn] = []
    for index in range(n):
        who = {"producer_id": index, "producer_epoch": 0, "base_sequence": 0}
        at = 2 * index
        batch = writer.encode_batch([Record(at, 1, b"k", b"v", ())], attributes=0x10, **who)
        marker = writer.encode_batch([Record(at + 1, 1, key, value, ())], attributes=0x30, **who)
        wanted = {"fetch_offset": at, "partition_max_bytes": 100}
        part = partition(0, batch + marker, high_watermark=at + 2, last_stable_offset=at + 2)
        part |= {"aborted_transactions": [{"producer_id": index, "first_offset": at}]}
        turns += exchange(
            *("Fetch", 11),
            {"isolation_level": 1, "topics": [{"topic": "t", "partitions": [wanted]}]},
            {"responses": [{"topic": "t", "partitions": [part]}]},
            index,
        )
    return turns


def scram_records(n: int) -> list[Turn]:
    """Credentials in the cluster's own log: a secret in each record."""
    from kafkascope.dissectors.registry import encode_body, example

    records = []
    for index in range(n):
        body = example("UserScramCredentialRecord", 0) | {
            "name": f"u{index}",
            "mechanism": 1,
            "iterations": 4096,
            "salt": index.to_bytes(8, "big"),
            "stored_key": index.to_bytes(8, "little"),
            "server_key": bytes([index & 255]) * 8,
        }
        value = b"\x01\x0b\0" + encode_body("UserScramCredentialRecord", 0, body)
        records.append(Record(index, 1, None, value, ()))
    return fetch(1, writer.encode_batch(records), topic="__cluster_metadata")
