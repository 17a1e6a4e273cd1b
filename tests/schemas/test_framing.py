"""What the first bytes and the headers of a record say about schemas."""

import uuid
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.schemas.framing import candidates, message_index, message_name, plausible, unpacked
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import SchemaKey
from tests.kit.schemas import refused

GUID = "f0225c91-ba20-f19f-3f5c-d09fa528d344"
GUID_BYTES = uuid.UUID(GUID).bytes
NONE: frozenset[str] = frozenset()


def named(data: bytes, headers: list[tuple[str, bytes | None]] | None = None) -> list[str]:
    return [f"{each.key} at {each.at}" for each in candidates("value", data, headers or [])]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\0\0\0\0\7xy", ["id 7 at 5", "contentId 7 at 5", "globalId 7 at 5"]),
        (b"\0\0\0\0\0\0\0\0\7xy", ["globalId 7 at 9", "contentId 7 at 9"]),
        (b"\3\0" + GUID_BYTES + b"x", [f"guid {GUID} at 18"]),
        (b"\0\0\0\0" + GUID_BYTES.hex().encode() + b"x", [f"guid {GUID} at 36"]),
        (b"\3\5" + GUID_BYTES + zlib.compress(b"x"), [f"guid {GUID} at 18"]),
        (b"\xc3\1\1\0\0\0\0\0\0\0x", ["fingerprint 1 at 10"]),
        (b"", []),
        (b"\0", []),
        (b"\0\0\0\0", []),
        (b"\0\xff\xff\xff\xffxy", []),
        (b"\3\1" + GUID_BYTES + b"x", []),
        (b"\3\5" + GUID_BYTES + b"no zlib", []),
        (b"\3\5" + GUID_BYTES + zlib.compress(b"x" * 100)[:-1], []),
        (b"text", []),
    ],
)
def test_the_first_bytes_name_schemas(data: bytes, found: list[str]) -> None:
    assert named(data) == found


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([("__value_schema_id", b"\1" + GUID_BYTES)], [f"guid {GUID} at 0"]),
        ([("__value_schema_id", b"\0\0\0\0\5")], ["id 5 at 0"]),
        ([("__key_schema_id", b"\1" + GUID_BYTES)], []),
        ([("__value_schema_id", None)], []),
        ([("__value_schema_id", b"\1short")], []),
        ([("apicurio.value.globalId", bytes(7) + b"\4")], ["globalId 4 at 0"]),
        ([("apicurio.value.contentId", bytes(7) + b"\4")], ["contentId 4 at 0"]),
        ([("apicurio.key.globalId", bytes(7) + b"\4")], []),
        ([("apicurio.value.globalId", b"4")], []),
        ([("content-type", b"avro/binary+" + GUID_BYTES.hex().encode())], [f"guid {GUID} at 0"]),
        ([("content-type", b"avro/binary")], []),
    ],
)
def test_headers_name_schemas(headers: list[tuple[str, bytes | None]], found: list[str]) -> None:
    assert named(b"x", headers) == found


def test_a_header_wins_over_the_bytes() -> None:
    assert named(b"\0\0\0\0\7xy", [("__value_schema_id", b"\0\0\0\0\5")]) == ["id 5 at 0"]


def test_headers_say_how_avro_is_written_and_which_message_it_is() -> None:
    headers = [("apicurio.value.globalId", bytes(7) + b"\4"), ("apicurio.value.encoding", b"JSON")]
    assert candidates("value", b"{}", headers)[0].json
    (found,) = candidates("value", b"", [("__value_schema_id", b"\1" + GUID_BYTES + b"\4\2\0")])
    assert found.selector == (1, 0)


@pytest.mark.parametrize(("side", "name"), [("value", ""), ("key", ".key")])
@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"\7\x0a\5Orderx", 8),
        (b"\7\x0a\5Order\2\2\x0ax", 10),
        (b"\2\2\x0ax", 2),
        (b"\0\x0ax", 1),
        (b"\2", 0),
        (b"x", 0),
        (b"\7\x0a\5Linesx", 0),
        (b"\7\x0a\5Ord", 0),
    ],
)
def test_apicurios_header_of_a_message_has_it_before_the_message_as_well(
    side: Any, name: str, data: bytes, at: int
) -> None:
    headers = [
        (f"apicurio.{side}.contentId", bytes(7) + b"\4"),
        ("apicurio.protobuf.type", b"Order" if not name else b"Of.The.Value"),
        ("apicurio.protobuf.type.key", b"Order" if name else b"Of.The.Key"),
    ]
    (found,) = candidates(side, data, headers)
    assert (found.selector, found.at, found.data) == ("Order", at, data[at:])


def test_a_payload_that_unfolds_without_end_is_not_unfolded() -> None:
    packed = zlib.compress(bytes(LIMITS.inflated + 1), 9)
    (found,) = candidates("value", b"\3\5" + GUID_BYTES + packed, [])
    assert found.packed
    assert "more than 4 MB" in refused(unpacked, found).text


def test_payloads_that_are_packed() -> None:
    text = " ".join(map(str, range(5_000))).encode()
    packed = zlib.compress(text)
    (found,) = candidates("value", b"\3\5" + GUID_BYTES + packed, [])
    assert unpacked(found).data == text
    for bad in (packed[:-1], packed[:-9] + b"\xff" * 9):
        (found,) = candidates("value", b"\3\5" + GUID_BYTES + bad, [])
        refused(unpacked, found)
    assert candidates("value", b"\3\5" + GUID_BYTES + b"no zlib", []) == []


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b"\0\0\0\0\7x", SchemaKey("id", 7)),
        (b"\0\0\0\0\7", None),
        (b"\0hello", None),
        (b"\0\0\0\0\7\0\0\0", None),
        (b"\0" + bytes(7) + b"\7x", None),
        (bytes.fromhex("0000000001a230c6f7a0"), None),
    ],
    ids=["an id", "no payload", "text", "an int64", "an int64 and more", "a heartbeat"],
)
def test_of_unknown_schemas_only_likely_ids_are_worth_a_word(
    data: bytes, key: SchemaKey | None
) -> None:
    found = plausible(candidates("value", data, []), len(data), NONE)
    assert (found and found.key) == key


def test_where_apicurios_ids_are_known_its_int64_is_likely() -> None:
    data = b"\0" + bytes(7) + b"\7x"
    found = plausible(candidates("value", data, []), len(data), frozenset({"globalId"}))
    assert found.key == SchemaKey("globalId", 7)


@pytest.mark.parametrize(
    ("read", "data", "found"),
    [
        (message_index, b"\0x", ((0,), 1)),
        (message_index, b"\2\2x", ((1,), 2)),
        (message_index, b"\4\2\4x", ((1, 2), 3)),
        (message_index, b"\2\x80\2", ((128,), 3)),
        (message_name, b"\0x", ("", 1)),
        (message_name, b"\5\x0a\3abcx", ("abc", 6)),
    ],
)
def test_an_index_or_a_name_of_a_message(read: Any, data: bytes, found: object) -> None:
    assert read(data) == found


@pytest.mark.parametrize(
    ("read", "data"),
    [
        *((message_index, data) for data in (b"", b"\4\2", b"\1", b"\2\1", b"\xfe\1")),
        (message_index, b"\xff\xff\xff\xff\xff\1"),
        *((message_name, data) for data in (b"", b"\5\x0a\3ab", b"\5\x0b\3abc", b"\5\x0a\2abc")),
        (message_name, b"\3\x0a\1\xff"),
    ],
)
def test_no_index_and_no_name_of_a_message(read: Any, data: bytes) -> None:
    assert refused(read, data)


@given(
    st.binary(max_size=40),
    st.lists(
        st.tuples(
            st.sampled_from(["__value_schema_id", "apicurio.value.globalId", "x"]),
            st.none() | st.binary(max_size=30),
        ),
        max_size=3,
    ),
)
def test_any_bytes_and_headers_give_candidates_inside_of_them(
    data: bytes, headers: list[tuple[str, bytes | None]]
) -> None:
    found = candidates("value", data, headers)
    assert all(each.at <= len(data) for each in found)
    plausible(found, len(data), frozenset({"id", "globalId", "contentId", "guid"}))
