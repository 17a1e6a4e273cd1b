"""The fast checksum of much data is the one of RFC 1071."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.build import BULK, checksum


def by_words(data: bytes) -> int:
    padded = data + bytes(len(data) & 1)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


@given(st.binary(max_size=64), st.integers(0, 2 * BULK), st.sampled_from([0, 1, 0x7F, 0xFF]))
def test_any_length_and_content_has_the_plain_sum(data: bytes, more: int, fill: int) -> None:
    whole = data + bytes([fill]) * more
    assert checksum(whole) == by_words(whole)
