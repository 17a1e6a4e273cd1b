"""Batches and message sets of kafka-python and aiokafka read here, and ours there: two
implementations that share no code with this one."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AioSetBuilder
from aiokafka.record.memory_records import MemoryRecords as AioRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.dissectors.records.records import Record, batches, crc_ok, open_batch
from kafkascope.dissectors.records.writer import encode_batch, encode_message_set

with warnings.catch_warnings():
    # Its modules read their resources in a way that Python has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import MemoryRecords as PythonRecords
    from kafka.record.default_records import DefaultRecordBatchBuilder as PythonBatchBuilder
    from kafka.record.legacy_records import LegacyRecordBatchBuilder as PythonSetBuilder

TIME = 1_700_000_000_000

blobs = st.none() | st.binary(max_size=30) | st.just(b"v" * 300)
names = st.text(max_size=6)
contents = st.lists(
    st.tuples(
        st.integers(TIME - 10**6, TIME + 10**6),
        blobs,
        blobs,
        st.lists(st.tuples(names, st.none() | st.binary(max_size=9)), max_size=3),
    ),
    min_size=1,
    max_size=8,
)
Content = list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]
Row = tuple[Any, ...]

SETS = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)]
"""Magic and codec. lz4 in magic 0 is left out: both would need one more package to write the wrong
header checksum of those days."""


def ours(data: bytes) -> list[Row]:
    rows: list[Row] = []
    for batch in batches(data):
        assert crc_ok(data, batch)
        opened = open_batch(data, batch)
        assert opened.error is None
        rows += [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in opened.records]
    return rows


def theirs(records: Any) -> list[Row]:
    rows: list[Row] = []
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        rows += [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    return rows


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("builder", [PythonBatchBuilder, AioBatchBuilder])
@given(content=contents)
@settings(max_examples=25, deadline=None)
def test_their_batches(builder: Callable[..., Any], codec: int, content: Content) -> None:
    made = builder(
        magic=2,
        compression_type=codec,
        is_transactional=1,
        producer_id=77,
        producer_epoch=3,
        base_sequence=40,
        batch_size=1 << 20,
    )
    for offset, (time, key, value, headers) in enumerate(content):
        made.append(offset, time, key, value, headers)
    data = bytes(made.build())
    assert ours(data) == [(offset, *row) for offset, row in enumerate(content)]
    (batch,) = batches(data)
    assert batch.transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (77, 3, 40)
    assert batch.max_timestamp == max(time for time, *_ in content)
    assert batch.record_count == len(content) == batch.last_offset + 1


@pytest.mark.parametrize(("magic", "codec"), SETS)
@pytest.mark.parametrize("builder", [PythonSetBuilder, AioSetBuilder])
@given(content=contents)
@settings(max_examples=25, deadline=None)
def test_their_message_sets(
    builder: Callable[..., Any], magic: int, codec: int, content: Content
) -> None:
    made = builder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for offset, (time, key, value, _) in enumerate(content):
        made.append(offset, time, key, value)
    data = bytes(made.build())
    found = ours(data)
    assert [row[1:4] for row in found] == [
        (time if magic else None, key, value) for time, key, value, _ in content
    ]
    if codec == 0 or magic == 0:
        assert [row[0] for row in found] == list(range(len(content)))
    else:
        # A producer's wrapper has no offset yet, so the last message has that of the wrapper: 0.
        assert [row[0] for row in found] == list(range(1 - len(content), 1))


@pytest.mark.parametrize("reader", [PythonRecords, AioRecords])
@pytest.mark.parametrize("codec", range(5))
@given(content=contents, base=st.integers(0, 2**40))
@settings(max_examples=25, deadline=None)
def test_our_batches(reader: Any, codec: int, content: Content, base: int) -> None:
    records = [Record(base + n, *row) for n, row in enumerate(content)]
    data = encode_batch(records, codec=codec, producer_id=5, producer_epoch=0, base_sequence=9)
    assert theirs(reader(data)) == ours(data) == [tuple(record) for record in records]


@pytest.mark.parametrize("reader", [PythonRecords, AioRecords])
@pytest.mark.parametrize(("magic", "codec"), SETS)
@given(content=contents, base=st.integers(0, 2**40))
@settings(max_examples=25, deadline=None)
def test_our_message_sets(reader: Any, magic: int, codec: int, content: Content, base: int) -> None:
    records = [
        Record(base + n, time if magic else None, key, value, [])
        for n, (time, key, value, _) in enumerate(content)
    ]
    data = encode_message_set(magic, records, codec=codec)
    assert theirs(reader(data)) == ours(data) == [tuple(record) for record in records]
