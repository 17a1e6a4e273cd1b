"""The hand-written loop: varints of every length, and what is refused where."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkascope.dissectors.errors import DissectError, Malformed, Truncated
from kafkascope.dissectors.records.reader import Opened, Record, read_records
from kafkascope.dissectors.records.writer import encode_record, varint

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
