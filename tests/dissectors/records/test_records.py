"""Record batches and message sets: every magic and codec, cut, damaged, other readers."""

import pytest
from hypothesis import example, given, settings
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
from kafkascope.dissectors.records.writer import (
    encode_batch,
    encode_message,
    encode_message_set,
    encode_record,
    varint,
)
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


# --- the hand-written loop: varints of every length, and what is refused where --------------------


sizes = st.sampled_from([0, 1, 62, 63, 64, 65, 8190, 8191, 8192, 8193, 1 << 20, (1 << 20) + 1])
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


@given(sizes, sizes, int64, int32, st.lists(st.tuples(st.text(), sizes), max_size=2))
@example(0, 0, -(2**63), -(2**31), [])
@example(1 << 20, 1 << 20, 2**63 - 1, 2**31 - 1, [("h" * 200, 9000)])
def test_varints_of_every_length(
    key: int, value: int, time: int, offset: int, headers: list[tuple[str, int]]
) -> None:
    named = [(name, bytes(size)) for name, size in headers]
    record = Record(offset, time, b"k" * key, b"v" * value, named)
    found = read_records(encode_record(record, 0, 0), 1, 0, 0)
    assert found.error is None
    assert [(*each[:4], list(each.headers)) for each in found.records] == [tuple(record)]


def test_a_key_of_a_header_need_not_be_utf_8() -> None:
    record = Record(0, 0, None, None, [("a\udcff", b"v")])
    assert read_records(encode_record(record, 0, 0), 1, 0, 0).records == [record]


def test_overlong_varints_mean_what_they_say() -> None:
    body = b"\x00" + b"\x80\x80\x00" + b"\x82\x80\x80\x80\x00" + b"\x01\x01" + b"\x80\x00"
    found = read_records(varint(len(body)) + body, 1, 10, 20)
    assert found.error is None
    assert found.records == [Record(11, 20, None, None, [])]


def one(body: bytes) -> Opened:
    """A record with this content behind a good one."""
    good = encode_record(Record(0, 0, None, b"good", ()), 0, 0)
    return read_records(good + varint(len(body)) + body, 2, 0, 0)


TEN = b"\xff" * 10 + b"\x01"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\0" + TEN + b"\0\1\1\0", "varlong of more than 10 bytes"),
        (b"\0\0" + b"\xff" * 5 + b"\1\1\1\0", "varint of more than 5 bytes"),
        (b"\0\0\0" + b"\xff" * 5 + b"\1\1\0", "varint of more than 5 bytes"),
        (b"\0\0\0\1" + b"\xff" * 5 + b"\1\0", "varint of more than 5 bytes"),
        (b"\0\0\0\1\1\1", "-1 headers"),
        (b"\0\0\0\1\1" + varint(1000), "1000 headers"),
        (b"\0\0\0\1\1\2\1\1", "key of a header"),
        (b"\0\0\0\1\1\2\x40\1", "key of a header"),
        (b"\0\0\0\1\1\2\2h\x40", "value of a header"),
        (b"\0\0\0\1\1\0\0", "ends at byte"),
        (b"\0\0\0", "cannot be 3 bytes"),
    ],
)
def test_a_malformed_record_is_refused_behind_the_good_one(body: bytes, reason: str) -> None:
    found = one(body)
    assert [record.value for record in found.records] == [b"good"]
    assert isinstance(found.error, Malformed)
    assert found.error.path == "records[1]"
    assert reason in found.error.reason


def test_a_key_that_takes_the_bytes_of_the_next_record_is_refused() -> None:
    bad = b"\0\0\0" + varint(12) + b"k"
    after = encode_record(Record(1, 0, None, b"after after after", ()), 0, 0)
    found = read_records(varint(len(bad) + 1) + bad + b"\1" + after, 2, 0, 0)
    assert found.records == []
    assert found.error is not None


def test_a_record_longer_than_the_bytes_is_truncated() -> None:
    found = read_records(varint(100) + bytes(50), 1, 0, 0)
    assert isinstance(found.error, Truncated)


@given(st.integers(1, 6), st.data())
def test_every_cut_gives_the_records_before_it(count: int, data: st.DataObject) -> None:
    parts = [
        encode_record(Record(n, n, b"k" * 70 * n, b"v", [("h", None)]), 0, 0) for n in range(count)
    ]
    whole = b"".join(parts)
    cut = data.draw(st.integers(0, len(whole) - 1))
    found = read_records(whole[:cut], count, 0, 0)
    ends = [sum(map(len, parts[: n + 1])) for n in range(count)]
    assert len(found.records) == len([end for end in ends if end <= cut])
    assert isinstance(found.error, DissectError)
