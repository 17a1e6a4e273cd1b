"""Headers of the PROXY protocol, from exact bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.model import Endpoint
from kafkascope.captures.proxy_protocol import V2, begins, header_of, read_header

CLIENT = Endpoint("203.0.113.77", 55130)
SERVER = Endpoint("10.20.0.5", 9097)
SIX = Endpoint("2001:db8::7", 55130), Endpoint("fd00::5", 9097)
FOUR = bytes([203, 0, 113, 77, 10, 20, 0, 5]) + b"\xd7\x5a\x23\x89"
CRC = b"\3\0\4\xde\xad\xbe\xef"
VPCE = b"\xea\0\x0c\1vpce-012345"


def v2(command: int, family: int, body: bytes) -> bytes:
    return V2 + bytes([command, family]) + len(body).to_bytes(2, "big") + body


@pytest.mark.parametrize(
    ("data", "client"),
    [
        (b"PROXY TCP4 203.0.113.77 10.20.0.5 55130 9097\r\n", CLIENT),
        (b"PROXY TCP6 2001:db8::7 fd00::5 55130 9097\r\n", SIX[0]),
        (b"PROXY UNKNOWN\r\n", None),
        (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", None),
        (v2(0x21, 0x11, FOUR), CLIENT),
        (v2(0x21, 0x11, FOUR + CRC + VPCE), CLIENT),
        (v2(0x20, 0, b""), None),
        (v2(0x20, 0x11, FOUR), None),
        (v2(0x20, 0, CRC), None),
        (v2(0x21, 0x31, bytes(216)), None),
        (header_of(2, *SIX), SIX[0]),
    ],
)
def test_a_header_is_read_when_it_is_whole(data: bytes, client: Endpoint | None) -> None:
    for size in range(1, len(data)):
        assert begins(data[:size])
        assert read_header(data[:size]) is None, size
    header = read_header(data + b"\0\0\0\x41")
    assert (header.size, header.client) == (len(data), client)


@pytest.mark.parametrize(
    "data",
    [
        b"PROXY TCP4 203.0.113.77\r\n",
        b"PROXY TCP4 203.0.113.777 10.20.0.5 55130 9097\r\n",
        b"PROXY TCP4 2001:db8::7 fd00::5 55130 9097\r\n",
        b"PROXY TCP4 203.0.113.77 10.20.0.5 70000 9097\r\n",
        b"PROXY TCP4 " + bytes(100),
        b"PROXY UNKNOWN " + b"x" * 200,
        v2(0x11, 0x11, FOUR),
        v2(0x22, 0x11, FOUR),
        v2(0x21, 0x11, FOUR[:11]),
        v2(0x21, 0x21, FOUR),
        V2 + b"\x21\x11\xff\xff",
        b"\0\0\0\x41" * 4,
    ],
)
def test_what_is_no_header(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_header(data)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_header_or_none(data: bytes) -> None:
    for start in (b"", b"PROXY ", b"PROXY TCP4 ", V2, V2 + b"\x21\x11"):
        try:
            header = read_header(start + data)
        except ValueError:
            continue
        assert header is None or header.size <= len(start + data)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("ends", [(CLIENT, SERVER), SIX])
def test_what_is_written_is_read(version: int, ends: tuple[Endpoint, Endpoint]) -> None:
    data = header_of(version, *ends)
    assert read_header(data) == (version, len(data), *ends)


@pytest.mark.parametrize("version", [1, 2])
def test_addresses_of_two_families_are_unknown(version: int) -> None:
    header = read_header(header_of(version, CLIENT, SIX[1]))
    assert header.client is None
