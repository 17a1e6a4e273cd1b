"""The schema id of a record, against the reader of varints."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.values import read_uvarint, write_uvarint
from kafkascope.kernel.groups import schema_at

VARINTS = st.integers(0, (1 << 32) - 1).map(write_uvarint) | st.binary(max_size=6)


def length(value: int) -> int:
    return max(0, (value >> 1) ^ -(value & 1))


def slowly(data: bytes) -> int:
    try:
        at = read_uvarint(data, 0)[1]
        at = read_uvarint(data, at + 1)[1]
        at = read_uvarint(data, at)[1]
        key, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at + length(key))
    except DissectError:
        return 0
    if length(size) <= 5 or len(data) < at + 5 or data[at]:
        return 0
    return int(struct.unpack_from(">i", data, at + 1)[0])


@given(st.lists(VARINTS, max_size=7), st.binary(max_size=12))
def test_any_bytes_give_the_same_id(varints: list[bytes], rest: bytes) -> None:
    data = b"\0".join(varints) + rest
    assert schema_at(data, 0) == slowly(data)


@given(st.binary(max_size=200), st.integers(0, (1 << 31) - 1), st.binary(min_size=1, max_size=200))
def test_a_framed_value_gives_its_id(key: bytes, schema: int, value: bytes) -> None:
    framed = b"\0" + struct.pack(">i", schema) + value
    parts = (b"\0\0\0", write_uvarint(2 * len(key)), key, write_uvarint(2 * len(framed)), framed)
    data = write_uvarint(2 * sum(map(len, parts))) + b"".join(parts)
    assert schema_at(data, 0) == schema
