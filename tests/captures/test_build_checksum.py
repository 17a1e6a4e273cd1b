"""The fast checksum of much data is the one of RFC 1071."""

from __future__ import annotations

import struct
from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.build import BULK, Composer, checksum
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Endpoint
from kafkascope.captures.packets.tcp import ACK


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


@given(
    st.sampled_from([("10.0.0.1", "10.0.0.2"), ("::1", "fe80::2")]),
    st.integers(0, LIMITS.mss_bytes),
)
def test_without_the_sum_of_a_payload_the_pseudo_header_is_summed(
    hosts: tuple[str, str], size: int
) -> None:
    a, b = (Endpoint(host, 9000 + port) for port, host in enumerate(hosts))
    head = Composer(a, b).head(1, ACK, size, None)
    right = Composer(a, b).head(1, ACK, size, 0)
    assert head[:-4] + head[-2:] == right[:-4] + right[-2:]  # nothing but the checksum of TCP
    pseudo = ip_address(b.host).packed + ip_address(a.host).packed
    pseudo += struct.pack(">II", 6, 20 + size)
    assert int.from_bytes(head[-4:-2], "big") == 0xFFFF - by_words(pseudo)
