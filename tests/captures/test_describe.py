"""One packet for people."""

import pytest

from kafkascope.captures.build import Composer
from kafkascope.captures.describe import describe
from tests.kit.captures import A, B, packet

FRAME = Composer(A, B).send(0, b"secret")[0]
SNAP = b"\xaa\xaa\x03\0\0\0" + FRAME[12:]


@pytest.mark.parametrize(
    ("link_type", "data", "words"),
    [
        (1, FRAME, ["Ethernet", "IP", "10.0.0.1", "TCP", "9092", "payload: 6 bytes"]),
        (101, FRAME[14:], ["IP", "TCP", "payload: 6 bytes"]),
        (113, bytes(14) + b"\x08\x00" + FRAME[14:], ["cooked linux", "TCP", "payload: 6 bytes"]),
        (1, FRAME[:12] + b"\x08\x06" + bytes(28), ["Ethernet", "ARP"]),
        (127, bytes.fromhex("0000080000000000 0801") + bytes(22) + SNAP, ["RadioTap", "802.11"]),
        (1, FRAME[:20] + b"\x00\x05" + FRAME[22:], ["frag", "payload: 26 bytes"]),
        (51, bytes.fromhex("11000001 001c 0021") + FRAME[14:], ["PPP", "TCP"]),
        (147, FRAME, ["link type 147: not dissected"]),
    ],
)
def test_shows_headers_and_no_payload(link_type: int, data: bytes, words: list[str]) -> None:
    text = describe(packet(data, link_type=link_type))
    assert text.startswith(f"packet 1: {len(data)} bytes on the wire")
    for word in words:
        assert word in text
    assert "secret" not in text
    assert "\\options" not in text
