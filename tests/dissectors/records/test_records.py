"""Record batches and message sets: every magic and codec, cut, damaged, other readers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.dissectors.errors import DissectError, Malformed, TooLarge, Truncated
from kafkascope.dissectors.records import writer
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.records.records import (
    LOG_APPEND_TIME,
    Batch,
    Opened,
    Partial,
    Record,
    aligned,
    batches,
    crc_ok,
    open_batch,
    read_records,
)
from kafkascope.dissectors.records.writer import encode_batch, encode_message, encode_message_set
from tests.kit.batches import encoded

FIVE = encode_batch([Record(n, 1, None, b"value", ()) for n in range(5)])
blobs = st.none() | st.binary(max_size=20) | st.just(b"v" * 200)
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=3)
times = st.integers(0, 2**41) | st.just(-1)


@st.composite
def some_records(draw: st.DrawFn, magic: int, least: int = 0) -> list[Record]:
    count = draw(st.integers(least, 6))
    base = draw(st.integers(0, 2**40))
    found = []
    for index in range(count):
        time = draw(times) if magic else None
        extra = tuple(draw(headers)) if magic == 2 else ()
        found.append(Record(base + index, time, draw(blobs), draw(blobs), extra))
    return found


def opened(data: bytes) -> list[Record]:
    records: list[Record] = []
    for batch in batches(data):
        assert crc_ok(data, batch)
        found = open_batch(data, batch)
        assert found.error is None
        records += [record._replace(headers=tuple(record.headers)) for record in found.records]
    return records


@pytest.mark.parametrize(
    ("magic", "codec"),
    [(magic, codec) for magic in range(3) for codec in range(5 if magic == 2 else 4)],
)
@given(st.data())
@settings(max_examples=40)
def test_records_read_back(magic: int, codec: int, data: st.DataObject) -> None:
    records = data.draw(some_records(magic, least=magic < 2))
    assert opened(encoded(magic, records, codec)) == records


def test_log_append_time_stands_for_all_records() -> None:
    records = [Record(n, 100 + n, None, b"v", ()) for n in range(3)]
    data = encode_batch(records, attributes=LOG_APPEND_TIME)
    assert [record.timestamp for record in opened(data)] == [102, 102, 102]
    wrapped = opened(encode_message_set(1, records, codec=1, log_append_time=777))
    assert [record.timestamp for record in wrapped] == [777, 777, 777]


@given(st.data())
@settings(max_examples=60)
def test_a_cut_field_gives_what_is_whole_and_a_partial(data: st.DataObject) -> None:
    parts = [
        encode_batch(data.draw(some_records(2)), codec=data.draw(st.integers(0, 4)))
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    whole = b"".join(parts)
    cut = data.draw(st.integers(0, len(whole)))
    found = list(batches(whole[:cut]))
    ends = [sum(map(len, parts[: n + 1])) for n in range(len(parts))]
    complete = [end for end in ends if end <= cut]
    assert len([each for each in found if isinstance(each, Batch)]) == len(complete)
    left = cut - (complete[-1] if complete else 0)
    assert [each.size for each in found if isinstance(each, Partial)] == ([left] if left else [])


@given(st.data())
@settings(max_examples=200)
def test_damage_is_an_error_and_never_another_exception(data: st.DataObject) -> None:
    magic, codec = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 3))
    records = data.draw(some_records(magic, least=1))
    bytes_ = bytearray(encoded(magic, records, codec))
    for _ in range(data.draw(st.integers(1, 4))):
        bytes_[data.draw(st.integers(0, len(bytes_) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(bytes_)
    try:
        for batch in batches(damaged):
            if isinstance(batch, Batch):
                found = open_batch(damaged, batch, limit=1 << 20)
                assert isinstance(found, Opened)
    except DissectError:
        pass


@given(st.binary(max_size=300), st.integers(-2, 50))
def test_garbage_is_an_error_and_never_another_exception(body: bytes, count: int) -> None:
    read_records(body, count, 0, 0)
    try:
        list(batches(body))
    except DissectError:
        pass


def test_a_flipped_bit_fails_the_checksum() -> None:
    data = bytearray(encode_batch([Record(0, 1, b"k", b"value", ())]))
    data[-2] ^= 1
    (batch,) = batches(bytes(data))
    assert not crc_ok(bytes(data), batch)
    mended = writer.with_right_crc(bytes(data), batch)
    (again,) = batches(mended)
    assert crc_ok(mended, again)


def test_records_before_the_damage_are_there() -> None:
    body = FIVE[61:]
    at = len(body) // 5 * 3
    found = read_records(body[:at] + writer.varint(-5) + body[at + 1 :], 5, 0, 1)
    assert len(found.records) == 3
    assert found.error.path == "records[3]"


@pytest.mark.parametrize(
    ("stated", "there", "error"),
    [
        (2**31 - 1, 5, Truncated),
        (1000, 5, Truncated),
        (6, 5, Truncated),
        (3, 3, Malformed),
        (-1, 0, Malformed),
    ],
)
def test_a_wrong_count_gives_the_records_that_are_there(
    stated: int, there: int, error: type[DissectError]
) -> None:
    body = FIVE[61:]
    found = read_records(body, stated, 0, 1)
    assert [record.offset for record in found.records] == list(range(there))
    assert type(found.error) is error
    assert stated < 0 or found.error.offset == len(body) // 5 * there
    assert error is Malformed or found.error.path == "records[5]"


@pytest.mark.parametrize("size", range(17))
def test_fewer_bytes_than_a_header_are_a_partial(size: int) -> None:
    for data in (bytes(size), FIVE[:size]):
        assert list(batches(data)) == list(aligned(data)) == ([Partial(0, size)] if size else [])


def test_the_offset_of_an_error_is_one_of_the_field() -> None:
    first = encode_batch([Record(0, 1, None, b"value", ())])
    data = bytearray(first * 2)
    data[-1] = 2  # one header, of which nothing is there
    _, batch = batches(bytes(data))
    error = open_batch(bytes(data), batch).error
    assert error.offset >= len(first) + 61


def test_messages_before_a_broken_one_keep_their_offsets() -> None:
    records = [Record(100 + n, 5, b"k", b"value", ()) for n in range(4)]
    inner = bytearray(encode_message_set(1, [r._replace(offset=n) for n, r in enumerate(records)]))
    third = len(inner) // 4 * 2
    inner[third + 26 : third + 30] = (1000).to_bytes(4, "big")  # its key is longer than itself
    wrapper = Record(103, 5, None, compress(1, bytes(inner)), ())
    data = encode_message(1, wrapper, 1)
    (entry,) = batches(data)
    found = open_batch(data, entry)
    assert found.records == records[:2]
    assert found.error is not None


@given(st.data())
@settings(max_examples=60)
def test_a_piece_of_a_snapshot_begins_and_ends_anywhere(data: st.DataObject) -> None:
    parts = [
        encode_batch(data.draw(some_records(2, least=1)), codec=data.draw(st.integers(0, 1)))
        for _ in range(4)
    ]
    whole = b"".join(parts)
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    starts = [sum(map(len, parts[:n])) for n in range(len(parts))]
    inside = {
        at - start
        for at, part in zip(starts, parts, strict=True)
        if start <= at and at + len(part) <= stop
    }
    found = list(aligned(whole[start:stop]))
    assert {each.at for each in found if isinstance(each, Batch)} == inside
    assert sum(each.size for each in found) == stop - start


def wrapped(magic: int, inner: bytes | None, codec: int = 1) -> Opened:
    """What an entry holds whose value is this message set, compressed."""
    value = None if inner is None else compress(codec, inner)
    data = encode_message(magic, Record(9, 1, None, value, ()), codec)
    (entry,) = batches(data)
    return open_batch(data, entry)


ENTRY = encode_message(1, Record(0, 1, None, b"v", ()))


@pytest.mark.parametrize(
    ("inner", "reason", "left"),
    [
        (None, "no value", 0),
        (ENTRY + ENTRY[:20], "ends inside a message", 1),
        (ENTRY + encode_batch([Record(0, 1, None, b"v", ())]), "a record batch inside", 1),
        (ENTRY + b"\0" * 16 + b"\7" + b"\0" * 9, "no magic 7", 1),
    ],
)
def test_a_wrapper_that_holds_nonsense(inner: bytes | None, reason: str, left: int) -> None:
    found = wrapped(1, inner)
    assert reason in found.error.reason
    assert len(found.records) == left


def test_message_sets_nested_deeper_than_anybody_writes_are_refused() -> None:
    data = ENTRY
    for _ in range(2):
        data = encode_message(1, Record(0, 1, None, compress(1, data), ()), 1)
    (entry,) = batches(data)
    assert len(open_batch(data, entry).records) == 1
    assert isinstance(wrapped(1, data).error, TooLarge)


@pytest.mark.parametrize("lengths", [b"\0\0\0\0\0\0\0\0\0", b"\0\0\0\2kk\0\0", b"\xff\0\0\0" * 2])
def test_a_message_whose_key_or_value_does_not_fit(lengths: bytes) -> None:
    size = (4 + 2 + 8 + len(lengths)).to_bytes(4, "big")
    data = bytes(8) + size + bytes(4) + b"\1\0" + bytes(8) + lengths
    (entry,) = batches(data)
    found = open_batch(data, entry)
    assert (found.records, isinstance(found.error, DissectError)) == ([], True)


def test_made_up_heads_of_batches_take_linear_time() -> None:
    head = encode_batch([Record(0, 1, None, bytes(200_000), ())])[:61]
    data = head * 20_000
    (partial,) = (each for each in aligned(data) if isinstance(each, Partial) and each.at == 0)
    assert partial.size <= len(data)


def test_what_cannot_be_written_is_refused() -> None:
    record = Record(0, 1, None, b"v", ())
    with pytest.raises(Malformed, match="magic 0 or 1"):
        encode_message(2, record)
    with pytest.raises(Malformed, match="a message at least"):
        encode_message_set(1, [], codec=1)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("length", [-1, 0, 13])
def test_a_length_that_no_batch_can_have_is_refused_where_it_stands(
    magic: int, length: int
) -> None:
    good = encode_batch([Record(0, 1, None, b"v", ())])
    bad = bytes(8) + length.to_bytes(4, "big", signed=True) + bytes(4) + bytes([magic]) + bytes(60)
    walk = batches(good + bad)
    assert isinstance(next(walk), Batch)
    with pytest.raises(Malformed) as error:
        next(walk)
    assert error.value.offset == len(good) + 8
