"""Varints are bounded, uuids are printed as Kafka prints them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.dissectors.errors import DissectError, Malformed, Truncated
from kafkascope.dissectors.values import NonFinite, Uuid, finite, read_uvarint, write_uvarint


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_a_varint_is_read_as_it_was_written(value: int, behind: bytes) -> None:
    data = write_uvarint(value)
    assert len(data) <= 5
    assert read_uvarint(data + behind, 0) == (value, len(data))


@pytest.mark.parametrize(
    ("data", "value"),
    [("00", 0), ("7f", 127), ("8001", 128), ("ac02", 300), ("ffffffff0f", 2**32 - 1)],
)
def test_known_varints(data: str, value: int) -> None:
    assert read_uvarint(bytes.fromhex(data), 0) == (value, len(data) // 2)
    assert write_uvarint(value).hex() == data


def test_a_varint_that_is_longer_than_needed_is_read() -> None:
    assert read_uvarint(bytes.fromhex("8000"), 0) == (0, 2)
    assert read_uvarint(bytes.fromhex("8080808000"), 0) == (0, 5)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        *((data, Malformed) for data in ("ffffffff10", "808080808000", "ff" * 40)),
        *((data, Truncated) for data in ("", "80", "ffffff")),
    ],
)
def test_more_than_32_bits_or_5_bytes_and_no_end_are_refused(
    data: str, error: type[DissectError]
) -> None:
    with pytest.raises(error):
        read_uvarint(bytes.fromhex(data), 0)


@pytest.mark.parametrize("value", [-1, 2**32])
def test_what_no_varint_holds_is_refused(value: int) -> None:
    with pytest.raises(Malformed):
        write_uvarint(value)


def test_a_uuid_is_shown_as_kafka_shows_it() -> None:
    # The topic id of __cluster_metadata.
    assert str(Uuid(bytes(15) + b"\1")) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert str(Uuid(16)) == "A" * 22
    assert "-_" not in str(Uuid(b"\xff" * 16))
    assert str(Uuid(b"\xfb\xff" * 8)) == "-__7__v_-__7__v_-__7_w"


@given(st.binary(min_size=16, max_size=16).map(Uuid))
def test_a_uuid_is_parsed_from_what_it_shows(uuid: Uuid) -> None:
    assert Uuid.parse(str(uuid)) == uuid
    assert repr(uuid) == f"Uuid('{uuid}')"


@pytest.mark.parametrize("text", ["", "A", "AAAA", "A" * 21, "A" * 24, "!" * 22, "é" * 22])
def test_what_is_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Uuid.parse(text)


def test_numbers_that_json_lacks_are_marked() -> None:
    assert type(finite(1.5)) is float
    assert isinstance(finite(math.nan), NonFinite)
    shown = [str(finite(value)) for value in (math.nan, math.inf, -math.inf)]
    assert shown == ["NaN", "Infinity", "-Infinity"]
