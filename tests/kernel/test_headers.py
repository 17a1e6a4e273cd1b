"""What the kernel reads of the headers of a block is what is read of each packet alone."""

import random
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures.build import Composer
from kafkascope.captures.formats.records import Block
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.model import Endpoint
from kafkascope.captures.packets.columns import columns_of, first_late, times_of
from kafkascope.captures.packets.tcp import UNKNOWN, Segment, scale_in, segment_of
from kafkascope.kernel import headers
from tests.kit.captures import Tape, Trickle, conversation

TAGS = {0: b"", 1: b"\x81\0\0\7", 2: b"\x88\xa8\0\1\x81\0\0\7", 3: b"\x81\0\0\1" * 3}
LINKS = (1, 12, 101, 113, 228, 229, 276, 147)


def relinked(frame: bytes, link: int, tags: int) -> bytes:
    """A frame of Ethernet behind another link header."""
    kind, rest = frame[12:14], frame[14:]
    if link == 113:
        return pack(">HHHQ", tags, 1, 6, 0) + kind + rest
    if link == 276:
        return kind + pack(">HIHBBQ", 0, tags + 5, 1, 0, 6, 0) + rest
    return frame[:12] + TAGS[tags] + kind + rest if link == 1 else rest


def block_of(data: bytes) -> Block:
    return next(Source(["x"], None, {0: Trickle(data)}).blocks())


def pcapng(frames: list[tuple[int, int, bytes]], links: list[int], order: str, units: int) -> bytes:
    """Frames (interface, ticks, bytes) of interfaces with a clock of `units`."""

    def block(kind: int, body: bytes) -> bytes:
        size = 12 + len(body)
        return pack(order + "II", kind, size) + body + pack(order + "I", size)

    out = block(0x0A0D0D0A, pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    for link in links:
        options = pack(order + "HHB3xHHqHH", 9, 1, units, 14, 8, -5, 0, 0)
        out += block(1, pack(order + "HHI", link, 0, 0) + options)
    for interface, ticks, frame in frames:
        head = interface, ticks >> 32, ticks & 0xFFFF_FFFF, len(frame), len(frame)
        out += block(6, pack(order + "IIIII", *head) + frame + bytes(-len(frame) % 4))
    return out


def check(data: bytes) -> int:
    """Return how many packets were read at once; 0 where their clock is odd."""
    block = block_of(data)
    packets = list(block.packets())
    assert times_of(block) == [packet.time_ns for packet in packets]
    columns = columns_of(block)
    if columns is None:
        return 0
    numbers = [*columns.numbers, *(block.number + at for at in columns.others)]
    assert sorted(numbers) == [packet.number for packet in packets]
    assert columns.captured_bytes == sum(len(packet.data) for packet in packets)
    for at, number in enumerate(columns.numbers):
        segment = segment_of(packets[number - block.number])
        assert isinstance(segment, Segment)
        options = columns.options.get(at)
        assert segment == (
            *(number, columns.times[at], block.file, columns.places[at], columns.flows[at]),
            *(columns.seqs[at], columns.acks[at], columns.flags[at]),
            block.buffer[columns.starts[at] :][: columns.captured[at]],
            *(columns.lengths[at], columns.prints[at], columns.interfaces[at]),
            *(columns.windows[at], UNKNOWN if options is None else scale_in(options)),
        )
        whole = len(segment.payload) == segment.length
        quiet = segment.flags & headers.QUIET_MASK == headers.ACK
        assert not columns.plain[at] or (whole and quiet)
    return len(columns.numbers)


def frames_of(seed: random.Random, link: int, damage: float) -> list[bytes]:
    frames = [frame for _, frame in conversation(2, size=300).frames]
    if seed.random() < 0.5:
        composer = Composer(Endpoint("fd00::1", 40_000), Endpoint("fd00::2", 9092))
        frames += [*composer.open(), *composer.send(0, bytes(200))]
    out = []
    for frame in frames:
        octets = bytearray(relinked(frame, link, seed.randrange(4)))
        if seed.random() < damage:
            octets[seed.randrange(min(len(octets), 80))] = seed.choice((0, 4, 6, 47, 255, 0x45))
        out.append(bytes(octets))
    return out


@settings(max_examples=150)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(LINKS),
    st.sampled_from("<>"),
    st.booleans(),
    st.sampled_from([40, 70, 100, 262_144]),
)
def test_pcap_at_once(seed: random.Random, link: int, order: str, nano: bool, snaplen: int) -> None:
    tape = Tape()
    tape.add(frames_of(seed, link, seed.choice((0, 0.5))))
    check(tape.pcap(order=order, nano=nano, link_type=link, snaplen=snaplen))


@settings(max_examples=100)
@given(
    st.randoms(use_true_random=False),
    st.lists(st.sampled_from(LINKS), min_size=1, max_size=4),
    st.sampled_from("<>"),
    st.sampled_from([9, 6, 3, 12, 0x8A]),
    st.sampled_from([10, 1 << 20, 1 << 50, 1 << 62, (1 << 64) - 1]),
)
def test_pcapng_at_once(
    seed: random.Random, links: list[int], order: str, units: int, ticks: int
) -> None:
    found = [
        (interface, seed.randrange(ticks), frame)
        for interface, link in enumerate(links)
        for frame in frames_of(seed, link, 0.2)
    ]
    check(pcapng(found, links, order, units))


@pytest.mark.parametrize("link", [1, 12, 113, 276])
def test_usual_packets_are_read_at_once(link: int) -> None:
    frames = [relinked(frame, link, link == 1) for _, frame in conversation(2).frames]
    tape = Tape()
    tape.add(frames)
    assert check(tape.pcap(link_type=link)) == len(frames)
    found = [(0, 10_000_000_000 + at, frame) for at, frame in enumerate(frames)]
    assert check(pcapng(found, [link], "<", 9)) == len(frames)


@given(st.lists(st.integers(0, 60)), st.tuples(st.integers(0, 50), st.integers(0, 50)))
def test_late_packets(times: list[int], before: tuple[int, int]) -> None:
    second, first = sorted(before)
    at, latest = first_late(times, (second, first), 7)
    for index, time_ns in enumerate(times):
        if second - time_ns > 7:
            assert index == at
            break
        second, first = sorted((second, first, time_ns))[1:]
    else:
        assert at == len(times)
    assert latest == (second, first)
