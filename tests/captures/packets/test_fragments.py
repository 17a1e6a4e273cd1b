"""Fragments of IP packets bring the bytes that the whole packets would have brought."""

import random
import tracemalloc
from collections.abc import Callable
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Closed
from kafkascope.captures.packets.fragments import Fragments
from kafkascope.captures.packets.ip import FRAGMENT, NOT_TCP
from kafkascope.captures.packets.tcp import FIN, MASK, SYN, Segment
from kafkascope.captures.streams.reassembly import Reassembler
from tests.kit import captures as kit
from tests.kit.captures import bytes_of as streams_of

VXLAN = b"\x15\xb3\x12\xb5\0\0\0\0" + b"\x08\0\0\0\0\0\7\0"
ETHER_6 = bytes(12) + b"\x86\xdd"


def fragments6(whole: bytes, size: int, ident: int = 7) -> list[bytes]:
    """The same for IPv6; what comes next is only right in the first one (RFC 8200)."""
    out = []
    for at in range(0, len(whole), size):
        part, more = whole[at : at + size], at + size < len(whole)
        head = pack(">BBHI", 6 if not at else 59, 0, at | more, ident)
        addresses = b"\xfd" + bytes(14) + b"\1" + b"\xfd" + bytes(14) + b"\2"
        out.append(
            ETHER_6 + pack(">IHBB", 6 << 28, len(part) + 8, 44, 64) + addresses + head + part
        )
    return out


def vxlan_fragments(whole: bytes, size: int) -> list[bytes]:
    """A packet in VXLAN, whose outer packet is cut."""
    return kit.fragments4(VXLAN + kit.ETHER + kit.ip4(whole), size, protocol=17)


WAYS: dict[str, Callable[[bytes, int], list[bytes]]] = {
    "ipv4": kit.fragments4,
    "ipv6": fragments6,
    "vxlan": vxlan_fragments,
}


def bytes_of(found: list[Segment], size: int, seq: int = 1000) -> bytes:
    """The stream that segments make, whatever their order."""
    out = bytearray(size)
    for each in found:
        at = each.seq - seq & MASK
        out[at : at + each.length] = each.payload
    return bytes(out)


def fed(datas: list[bytes], keeper: Fragments | None = None) -> list[Segment]:
    keeper = keeper or Fragments()
    found = []
    for number, data in enumerate(datas, 1):
        for each in keeper.segments_of(kit.packet(data, number=number)):
            assert isinstance(each, Segment), each
            found.append(each)
    return found


@pytest.mark.parametrize("way", WAYS)
@given(size=st.integers(12, 60), length=st.integers(400, 700), turn=st.integers())
def test_any_order_gives_all_bytes(way: str, size: int, length: int, turn: int) -> None:
    data = random.Random(length).randbytes(length)
    parts = WAYS[way](kit.tcp(data), size * 8)
    assert len(parts) <= LIMITS.fragments + 1
    random.Random(turn).shuffle(parts)
    found = fed(parts)
    assert bytes_of(found, length) == data
    assert sum(each.length for each in found) == length
    assert len({each.copy for each in found}) == len(found)
    assert sum(bool(each.flags & 0x08) for each in found) == 1


def test_pieces_lead_to_their_bytes_in_the_record() -> None:
    parts = kit.fragments4(kit.tcp(bytes(range(200))), 80)
    for data, found in zip(parts, fed(parts), strict=True):
        assert data[found.at : found.at + found.length] == found.payload


def test_the_end_is_in_the_last_part_and_the_start_in_the_first() -> None:
    found = fed(kit.fragments4(kit.tcp(bytes(100), FIN | 0x10), 48))
    assert [each.flags & FIN for each in found] == [0, 0, FIN]
    found = fed(kit.fragments4(kit.tcp(bytes(100), SYN), 48))
    assert [each.flags & SYN for each in found] == [SYN, 0, 0]
    assert [each.seq for each in found] == [1000, 1029, 1077]


def test_the_snaplen_cuts_parts_too() -> None:
    keeper = Fragments()
    for number, data in enumerate(kit.fragments4(kit.tcp(bytes(292)), 104), 1):
        (found,) = keeper.segments_of(kit.packet(data[:80], length=len(data), number=number))
        assert len(found.payload) < found.length


def test_parts_of_other_protocols_say_so() -> None:
    keeper = Fragments()
    datas = kit.fragments4(b"\x04\0\0\x35" + bytes(100), 48, protocol=17)
    assert [keeper.segments_of(kit.packet(data)) for data in datas] == [[NOT_TCP]] * 3


def test_what_has_no_first_part_is_counted_in_the_end() -> None:
    keeper = Fragments()
    datas = kit.fragments4(kit.tcp(bytes(200)), 48)[1:]
    assert [keeper.segments_of(kit.packet(data)) for data in datas] == [[]] * len(datas)
    later = kit.packet(
        kit.fragments4(kit.tcp(bytes(200)), 48, ident=8)[1],
        time_ns=kit.START_NS + LIMITS.fragment_life_ns,
    )
    assert keeper.segments_of(later) == [FRAGMENT] * len(datas)
    assert list(keeper.finish()) == [FRAGMENT]
    assert list(keeper.finish()) == []


def test_memory_is_bounded() -> None:
    keeper = Fragments()
    left_out = 0
    for ident in range(2 * LIMITS.fragmented_packets):
        (data,) = kit.fragments4(kit.tcp(bytes(40)), 48, ident=ident)[1:]
        left_out += len(keeper.segments_of(kit.packet(data)))
    data = kit.fragments4(kit.tcp(bytes(40)), 48, ident=1)[1]
    for _ in range(3 * LIMITS.fragments):
        left_out += len(keeper.segments_of(kit.packet(data)))
    waiting = len(list(keeper.finish()))
    assert left_out + waiting == 2 * LIMITS.fragmented_packets + 3 * LIMITS.fragments
    assert waiting <= LIMITS.fragmented_packets + LIMITS.fragments


def test_large_records_do_not_fill_the_memory() -> None:
    first, second, _ = kit.fragments4(kit.tcp(bytes(64_000)), 32_000)
    keeper = Fragments()
    tracemalloc.start()
    try:
        for ident in range(1000):
            for data in (first, second):
                bare = bytearray(data)
                # Half of them are first parts, the others wait in vain.
                bare[18:20] = pack(">H", 2 * ident + (data is second))
                keeper.segments_of(kit.packet(bytes(bare)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * LIMITS.fragment_bytes
    assert len(list(keeper.finish())) <= LIMITS.fragment_bytes // len(second) + 1


def test_an_identification_used_again_is_another_packet() -> None:
    one, two = (
        kit.fragments4(kit.tcp(b"a" * 80), 48),
        kit.fragments4(kit.tcp(b"b" * 80, seq=1080), 48),
    )
    assert bytes_of(fed([*one, *two]), 160) == b"a" * 80 + b"b" * 80


@given(st.lists(st.tuples(st.binary(max_size=60), st.integers(0, 0x3FFF)), max_size=12))
def test_any_parts_give_segments_or_reasons(parts: list[tuple[bytes, int]]) -> None:
    keeper, reassembler = Fragments(), Reassembler()
    for data, field in parts:
        for each in keeper.segments_of(kit.packet(kit.ETHER + kit.ip4(data, 6, 7, field))):
            if isinstance(each, Segment):
                assert each.length >= len(each.payload)
                list(reassembler.feed(each))
    list(keeper.finish())


def in_parts(frame: bytes, ident: int) -> list[bytes]:
    """An Ethernet frame with IPv4, as a router with a small MTU passes it on."""
    payload = frame[34:]
    out = []
    for at in range(0, len(payload), 576):
        part, more = payload[at : at + 576], 0x2000 if at + 576 < len(payload) else 0
        out.append(frame[:16] + pack(">HHH", 20 + len(part), ident, more | at >> 3))
        out[-1] += frame[22:34] + part
    return out


@pytest.mark.parametrize("bulk", [False, True])
def test_a_capture_in_parts_tells_the_same_streams(bulk: bool) -> None:
    whole, parts = kit.conversation(60), kit.Tape()
    for ident, (time_ns, frame) in enumerate(whole.frames, 1):
        parts.now_ns = time_ns
        parts.add(in_parts(frame, ident))
    expected, _, _ = kit.read(whole.pcap(), bulk=bulk)
    found, source, _ = kit.read(parts.pcap(), bulk=bulk)
    assert streams_of(found) == streams_of(expected)
    assert [each.how for each in found if isinstance(each, Closed)] == ["fin", "fin"]
    assert not source.statistics.skipped
    assert source.statistics.segments == len(parts.frames)
