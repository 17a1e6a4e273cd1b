"""Behind damage: all that is whole is read, and nothing else is taken for it."""

from collections.abc import Callable
from random import Random
from struct import pack

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafkascope.captures.formats.pcap import Pcap
from kafkascope.captures.formats.resync import LINKS
from kafkascope.captures.model import Packet
from tests.captures.parts.checks import check, check_index
from tests.kit.captures import START_NS, Tape, conversation, enhanced, interface, section, whole

RECORD_HEADER = {"pcap": 16, "pcapng": 28}
TRAILER = {"pcap": 0, "pcapng": 8}
HARMS = ("random", "zeros", "ones", "bit", "cut out", "put in")


def made(kind: str, order: str) -> bytes:
    tape = conversation(12, 300)
    return tape.pcap(order=order) if kind == "pcap" else tape.pcapng()


def harmed(data: bytes, how: str, at: int, size: int, seed: int) -> tuple[bytes, int]:
    """Damaged data, and how many of its bytes were hit."""
    random = Random(seed)
    if how == "bit":
        return data[:at] + bytes([data[at] ^ 1 << seed % 8]) + data[at + 1 :], 1
    if how == "put in":
        return data[:at] + random.randbytes(size) + data[at:], 0
    new = {"random": random.randbytes(size), "zeros": bytes(size), "ones": b"\xff" * size}
    return data[:at] + new.get(how, b"") + data[at + size :], size


def untouched(packet: Packet, kind: str, at: int, size: int) -> bool:
    begin = packet.at - RECORD_HEADER[kind]
    return at + size <= begin or packet.at + len(packet.data) + TRAILER[kind] <= at


@given(
    kind=st.sampled_from(["pcap", "pcapng"]),
    order=st.sampled_from("<>"),
    how=st.sampled_from(HARMS),
    place=st.floats(0.01, 0.99),
    size=st.sampled_from([1, 2, 4, 16, 100, 1000]),
    seed=st.integers(0, 1 << 32),
    part=st.integers(300, 4000),
)
@example(kind="pcap", order="<", how="cut out", place=0.5, size=16, seed=0, part=300)
@example(kind="pcap", order="<", how="put in", place=0.5, size=1, seed=0, part=300)
def test_damage_costs_the_packets_that_it_hits(
    kind: str, order: str, how: str, place: float, size: int, seed: int, part: int
) -> None:
    data = made(kind, order)
    first = 200  # behind what is declared
    at = first + int(place * (len(data) - first - size))
    bad, hit = harmed(data, how, at, size, seed)
    before, *_ = whole(data)
    after, damage, gaps = whole(bad)
    there = {(each.time_ns, each.data) for each in after}
    lost = [each for each in before if (each.time_ns, each.data) not in there]
    assert not [each for each in lost if untouched(each, kind, at, hit)]
    assert [each.number for each in after] == list(range(1, len(after) + 1))
    assert bool(damage) == bool(gaps)
    check(bad, part, part)
    if kind == "pcap":
        check_index(bad, part)


def test_many_places_are_told_in_one_sentence() -> None:
    data = bytearray(made("pcap", "<"))
    packets, *_ = whole(bytes(data))
    for packet in packets[5:50:10]:
        data[packet.at - 8 : packet.at - 4] = b"\xff" * 4
    after, (told,), gaps = whole(bytes(data))
    assert len(after) == len(packets) - 5
    assert len(gaps) == 5
    lost = sum(len(each.data) + 16 for each in packets[5:50:10])
    assert told == (
        f"x is damaged at 5 places, first at byte {packets[5].at - 16}: a record of 4294967295"
        f" bytes; {lost} bytes were skipped"
    )


def test_damage_side_by_side_is_one_place() -> None:
    data = bytearray(made("pcap", "<"))
    packets, *_ = whole(bytes(data))
    for packet in packets[5:8]:
        data[packet.at - 8 : packet.at - 4] = b"\xff" * 4
    after, _, gaps = whole(bytes(data))
    assert len(after) == len(packets) - 3
    assert [gap[:2] for gap in gaps] == [(packets[5].at - 16, packets[8].at - 16)]


def test_noise_to_the_end_is_said_to_be_that() -> None:
    data = made("pcap", "<")
    after, (told,), ((at, resume, _),) = whole(data + b"\xff" * 3_000_000)
    assert (at, resume) == (len(data), None)
    assert told.endswith(f"damaged at byte {len(data)}: a record of 4294967295 bytes")
    assert after == whole(data)[0]


def test_a_hole_of_many_windows_is_passed() -> None:
    data = made("pcap", "<")
    after, _, gaps = whole(data + bytes(5_000_000) + data[24:])
    assert len(after) == 2 * len(whole(data)[0])
    assert gaps[0][:2] == (len(data), len(data) + 5_000_000)


def test_a_capture_sent_in_the_packet_before_is_not_taken_for_ours() -> None:
    """Its records follow each other, but they end with the packet that carries them."""
    inner = conversation(6, 300).pcap()
    tape = conversation(2, 100)
    count = len(tape.frames)
    tape.add([bytes(14) + inner[24:], bytes(60), bytes(61), bytes(62)])
    data = bytearray(tape.pcap())
    packets, *_ = whole(bytes(data))
    data[packets[count + 1].at - 8 : packets[count + 1].at - 4] = b"\xff" * 4
    after, *_ = whole(bytes(data))
    expected = [each.data for each in packets]
    del expected[count + 1]
    assert [each.data for each in after] == expected


@pytest.mark.parametrize(
    ("which", "at", "new"),
    [
        (slice(4, 5), -12, lambda _: 1_000_000),  # of microseconds, as some clocks write
        (slice(4, 5), -12, lambda _: 4_000_000),
        (slice(3, None), -4, lambda packet: packet.length - 4),  # tags were put back in
        (slice(None), -4, lambda _: 10),  # sizes that were swapped, in each record
    ],
)
def test_records_that_are_only_odd_are_no_damage(
    which: slice, at: int, new: Callable[[Packet], int]
) -> None:
    data = bytearray(made("pcap", "<"))
    packets, *_ = whole(bytes(data))
    for packet in packets[which]:
        data[packet.at + at : packet.at + at + 4] = pack("<I", new(packet))
    after, damage, _ = whole(bytes(data))
    assert not damage
    assert [each.data for each in after] == [each.data for each in packets]
    check_index(bytes(data), 500)


def test_a_clock_that_was_set_is_no_damage() -> None:
    tape = Tape()
    tape.frames = [(1_000_000_000 * number, bytes(60)) for number in range(20)]
    tape.frames += [(START_NS + number, bytes(60)) for number in range(20)]
    _, damage, _ = whole(tape.pcap())
    assert not damage
    check_index(tape.pcap(), 300)


def test_packets_of_an_interface_that_was_lost_are_left_out_one_by_one() -> None:
    data = section("<") + interface("<") + enhanced("<", 1)
    data += b"".join(enhanced("<", each, 1) for each in range(2, 3000))
    data += enhanced("<", 3)
    after, (told,), gaps = whole(data)
    assert len(after) == 2
    assert len(gaps) == 1
    assert "interface 1, but only 1 are described" in told


def test_noise_that_is_all_candidates_does_not_take_long() -> None:
    """Half of all offsets look like records: nothing is proven, and nothing is tried for hours."""
    data = made("pcap", "<")
    packets, *_ = whole(data)
    trap = pack("<I", 1) * 3_000_000
    after, _, _ = whole(data + b"\xff" * 16 + trap)
    assert after == packets


@given(data=st.binary(min_size=16, max_size=4000))
def test_what_is_found_is_a_chain(data: bytes) -> None:
    format_ = Pcap(made("pcap", "<")[:24], 0)
    at = format_.search(bytearray(data), True).at
    if at is None:
        return
    links = 0
    while at + 16 <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        at += 16 + size
        links += 1
    assert links >= LINKS or at >= len(data) - 15
