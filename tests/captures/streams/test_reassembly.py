"""Reassembly by tables: segments in, events out."""

import gc
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.captures.model import Chunk, Closed, Connection, Gap, Opened
from kafkascope.captures.packets.tcp import ACK, FIN, PSH, RST, SYN, Segment
from kafkascope.captures.streams.connection import NEVER
from kafkascope.captures.streams.reassembly import Reassembler
from kafkascope.kernel.segments import DirectionState
from tests.kit.captures import BACK, FLOW, bytes_of, fed, segment, told

OPEN = "open 10.0.0.1:40000 10.0.0.2:9092"
LATER = 300.0
"""Milliseconds: beyond the reorder window."""


def handshake(isn: int = 99, other: int = 499) -> list[Segment]:
    return [
        segment(0, isn, flags=SYN),
        segment(1, other, flags=SYN | ACK, ack=isn + 1),
        segment(0, isn + 1, ack=other + 1),
    ]


def noise(ms: float, count: int = 20) -> list[Segment]:
    """Packets of another connection: time and packets pass."""
    return [
        segment(0, 5, flags=SYN if not n else ACK, ms=ms, flow=FLOW[:-1] + b"\x01")
        for n in range(count)
    ]


def connection_of(segments: list[Segment]) -> Connection:
    return next(event.connection for event in fed(segments) if isinstance(event, Opened))


AB, CD = segment(0, 100, b"ab"), segment(0, 102, b"cd")
TOLD = ["0 +0 b'ab'", "0 +2 b'cd'"]
TABLE: dict[str, tuple[list[Segment], list[str]]] = {
    "in order": ([AB, CD], TOLD),
    "swapped": ([CD, AB], TOLD),
    "retransmitted": ([AB, AB, CD], TOLD),
    "retransmitted with more": ([AB, segment(0, 100, b"abcd")], TOLD),
    "the first bytes win": (
        [segment(0, 102, b"CD"), segment(0, 100, b"abcdef")],
        ["0 +0 b'ab'", "0 +2 b'CD'", "0 +4 b'ef'"],
    ),
    "the first bytes win on both sides": (
        [AB, segment(0, 104, b"EF"), segment(0, 101, b"xcdx")],
        [*TOLD, "0 +4 b'EF'"],
    ),
    "keep-alive with a garbage byte": (
        [AB, segment(0, 101, b"\0", ms=50), segment(0, 102, b"cd", ms=60)],
        TOLD,
    ),
    "window probe with the next byte": (
        [AB, segment(0, 102, b"c"), CD],
        ["0 +0 b'ab'", "0 +2 b'c'", "0 +3 b'd'"],
    ),
    "lost, at the end of the capture": (
        [AB, segment(0, 105, b"fg")],
        ["0 +0 b'ab'", "0 gap +2 3 lost", "0 +5 b'fg'"],
    ),
    "lost and acknowledged": (
        [segment(0, 105, b"fg", ms=1), segment(1, 500, ack=107, ms=2), *noise(LATER)],
        ["0 gap +0 5 lost", "0 +5 b'fg'"],
    ),
    "an answer waits for its lost question": (
        [segment(1, 500, b"answer", ack=110, ms=1), *noise(LATER)],
        ["0 gap +0 10 lost", "1 +0 b'answer'"],
    ),
    "an answer waits for its late question": (
        [segment(1, 500, b"answer", ack=103, ms=1), segment(0, 100, b"ask", ms=2)],
        ["0 +0 b'ask'", "1 +0 b'answer'"],
    ),
    "an ACK that was wrong costs nothing but its gap": (
        [segment(1, 500, ack=110), *noise(LATER), segment(0, 100, b"ab", ms=LATER)],
        ["0 gap +0 10 lost", "0 +10 b'ab'"],
    ),
    "cut by the snaplen": (
        [segment(0, 100, b"ab", length=10), segment(0, 110, b"cd")],
        ["0 +0 b'ab'", "0 gap +2 8 cut", "0 +10 b'cd'"],
    ),
    "cut by the snaplen and out of order": (
        [segment(0, 110, b"cd"), segment(0, 100, b"ab", length=10)],
        ["0 +0 b'ab'", "0 gap +2 8 cut", "0 +10 b'cd'"],
    ),
    "FIN before the last bytes": (
        [segment(0, 102, b"cd", flags=FIN | ACK), AB],
        [*TOLD, "0 fin"],
    ),
    "FIN tells of lost bytes": (
        [segment(0, 104, flags=FIN | ACK), segment(1, 500, ack=105), *noise(LATER)],
        ["0 gap +0 4 lost", "0 fin"],
    ),
    "RST": ([AB, segment(1, 500, flags=RST)], ["0 +0 b'ab'", "1 rst"]),
    "bytes under way at an RST": (
        [segment(1, 500, flags=RST | ACK, ack=100), AB],
        ["1 rst", "0 +0 b'ab'"],
    ),
    "far ahead and alone": ([segment(0, 0x4000_0000, b"xx"), AB], ["0 +0 b'ab'"]),
    "far ahead and going on there": (
        [segment(0, 0x4000_0000, b"xx"), segment(0, 0x4000_0002, b"yy")],
        [f"0 gap +0 {0x4000_0002 - 100} lost", f"0 +{0x4000_0002 - 100} b'yy'"],
    ),
    "SYN again": ([segment(0, 99, flags=SYN), AB], ["0 +0 b'ab'"]),
}


@pytest.mark.parametrize("name", TABLE)
def test_segments_become_events(name: str) -> None:
    segments, expected = TABLE[name]
    lines = [line for line in told(fed([*handshake(), *segments])) if ":8961" not in line]
    ends = [line for line in lines if line.endswith((" end", " idle"))]
    assert [line for line in lines if line not in ends] == [OPEN, *expected]
    assert len(ends) <= 2


@pytest.mark.parametrize("isn", [99, 0xFFFF_FFFD, 0xFFFF_FFFF])
def test_sequence_numbers_wrap_around(isn: int) -> None:
    parts = [segment(0, isn + 1 + 2 * n, bytes([65 + n, 97 + n])) for n in range(4)]
    events = fed([*handshake(isn), parts[1], parts[0], parts[3], parts[2]])
    assert bytes_of(events)["10.0.0.1:40000"] == b"AaBbCcDd"


def test_a_connection_without_syn_starts_at_its_lowest_bytes() -> None:
    segments = [
        segment(1, 502, b"zz", ack=104),
        segment(0, 102, b"cd", ack=500),
        segment(0, 100, b"ab", ack=500),
        segment(1, 500, b"yy", ack=104),
    ]
    lines = told(fed(segments))
    assert lines[:3] == [
        "open 10.0.0.2:9092 10.0.0.1:40000",
        "0 gap +0 None midstream",
        "1 gap +0 None midstream",
    ]
    assert bytes_of(fed(segments)) == {"10.0.0.1:40000": b"abcd", "10.0.0.2:9092": b"yyzz"}


def test_a_late_syn_tells_who_opened() -> None:
    syn, synack, ack = handshake()
    data = segment(1, 500, b"yy", ack=100)
    for order in ([data, syn, synack, ack], [synack, data, syn, ack], [data, synack, syn, ack]):
        events = fed([*order, segment(0, 100, b"ab")])
        assert told(events)[0] == OPEN
        assert not [event for event in events if isinstance(event, Gap)]
        assert bytes_of(events) == {"10.0.0.1:40000": b"ab", "10.0.0.2:9092": b"yy"}


def test_a_syn_behind_what_was_told_changes_nothing_of_it() -> None:
    """Whoever hears of the connection later must hear the same."""
    syn, synack, ack = (each._replace(time_ns=each.time_ns + 9_000_000_000) for each in handshake())
    early = [segment(0, 100, b"ab"), segment(1, 500, b"yy", ms=1), segment(0, 102, b"cd", ms=8000)]
    reassembler, told_of = Reassembler(), []
    for each in [*early, syn, synack, ack, segment(0, 104, b"ef", ms=9100)]:
        for event in reassembler.feed(each):
            if isinstance(event, Opened):
                told_of.append((event.connection, event.connection.handshake))
    (connection, handshake_), *others = told_of
    assert not others
    assert (handshake_, connection.handshake, connection.handshake_ns) == (False, False, None)


def test_what_an_end_tells_of_use_stays_though_packets_follow() -> None:
    """A forged RST: a reader of whole blocks hears of it when the rest is counted already."""
    syn, _, ack = handshake()
    events = fed([syn, segment(1, 0, flags=RST | ACK, ack=100), ack, segment(0, 100, b"ab")])
    (end,) = (event for event in events if isinstance(event, Closed))
    assert end.connection.used
    assert not end.used


def test_no_time_of_the_handshake_is_told_behind_bytes() -> None:
    """Bytes may come with the SYN (RFC 7413); a reader of whole blocks would know the time."""
    syn, synack, ack = handshake()
    syn = syn._replace(payload=b"ab", length=2)
    events = fed([syn, synack._replace(ack=102), ack._replace(seq=102)])
    assert bytes_of(events) == {"10.0.0.1:40000": b"ab"}
    assert connection_of([syn, synack, ack]).handshake_ns is None


def test_a_keep_alive_does_not_start_a_midstream_connection() -> None:
    segments = [segment(0, 99, b"\0"), segment(0, 100, b"ab", flags=ACK | PSH)]
    assert bytes_of(fed(segments)) == {"10.0.0.1:40000": b"ab"}


def test_a_new_syn_on_the_same_ports_is_a_new_connection() -> None:
    segments = [*handshake(), segment(0, 100, b"ab"), *handshake(7000, 8000)]
    lines = told(fed([*segments, segment(0, 7001, b"cd")]))
    assert lines == [OPEN, "0 +0 b'ab'", "None reuse", OPEN, "0 +0 b'cd'", "None end"]


def test_ports_used_again_without_a_syn() -> None:
    segments = [*handshake(), segment(1, 500, flags=RST), segment(0, 0x5000_0000, b"cd")]
    lines = told(fed(segments))
    assert lines[1:3] == ["1 rst", OPEN]
    assert lines[-2:] == ["0 +0 b'cd'", "None end"]


def test_a_segment_to_itself_is_harmless() -> None:
    flow = bytes([10, 0, 0, 1] * 2) + b"\1\1\1\1"
    segments = [segment(0, 100 + n, b"x", flow=flow, ack=50 * n) for n in range(5)]
    assert told(fed([segment(0, 99, flags=SYN, flow=flow), *segments]))


def test_counters() -> None:
    again = segment(0, 100, b"ab", ms=30)
    connection = connection_of(
        [
            *handshake(),
            segment(0, 100, b"ab", ms=10),
            again,
            again._replace(interface=1),
            segment(0, 104, b"ef", ms=31),
            segment(0, 102, b"cd", ms=32),
            segment(0, 105, ms=40),
            segment(1, 500, b"z", length=5, ms=50),
        ]
    )
    assert connection.handshake
    assert connection.handshake_ns == 0
    assert connection.packets == [8, 2]
    assert connection.bytes == [10, 1]
    assert connection.retransmissions == (1, 0)
    assert connection.duplicates == (1, 0)
    assert connection.out_of_order == (1, 0)
    assert connection.keep_alives == (1, 0)
    assert connection.gap_bytes == (0, 4)


def test_the_handshake_is_timed_from_syn_to_ack() -> None:
    syn, synack, ack = handshake()
    times = [syn, synack._replace(time_ns=syn.time_ns + 70), ack._replace(time_ns=syn.time_ns + 90)]
    assert connection_of(times).handshake_ns == 90


def test_a_lost_syn_ack_is_no_gap() -> None:
    syn, _, ack = handshake()
    lines = told(fed([syn, ack, segment(1, 500, b"zz", ack=100)]))
    assert lines == [OPEN, "1 +0 b'zz'", "None end"]


def test_without_any_ack_a_gap_is_given_up_after_its_timeout() -> None:
    start = [*handshake(), segment(0, 102, b"cd", ms=1)]
    assert len(fed([*start, *noise(LATER)], finish=False)) == 2
    late = fed([*start, *noise(LATER), *noise(3000, 5)], finish=False)
    assert told(late)[-2:] == ["0 gap +0 2 lost", "0 +2 b'cd'"]


def test_a_direction_gives_up_its_gap_at_its_limit() -> None:
    reassembler = Reassembler(limits=CaptureLimits(direction_bytes=5000))
    segments = [segment(0, 200 + 100 * n, b"x" * 100) for n in range(20)]
    lines = told([event for each in [*handshake(), *segments] for event in reassembler.feed(each)])
    assert lines[1] == "0 gap +0 100 limit"
    assert len(lines) == 22


def test_all_directions_together_stay_within_the_limit() -> None:
    reassembler, most = Reassembler(limits=CaptureLimits(reassembly_bytes=100_000)), 0
    for n in range(3000):
        flow = FLOW[:8] + (n % 50).to_bytes(2, "big") + FLOW[10:]
        reassembler.feed(segment(0, 1000 + 200 * n, b"x" * 100, flow=flow))
        most = max(most, reassembler.held)
    assert 50_000 < most <= 100_000
    assert sum(half.held for half in reassembler.flows.values()) <= reassembler.held


def test_endless_connections_are_forgotten() -> None:
    reassembler, events = Reassembler(limits=CaptureLimits(connections=64)), []
    for n in range(1000):
        flow = FLOW[:8] + n.to_bytes(2, "big") + FLOW[10:]
        events += reassembler.feed(segment(0, 5, flags=SYN, flow=flow, ms=n))
        assert len(reassembler.flows) <= 128
    lines = told(events)
    assert sum(line.endswith("idle") for line in lines) >= 1000 - 64
    assert len(lines) == 1000 + sum(line.endswith("idle") for line in lines)


def test_what_is_forgotten_is_freed_where_python_seldom_looks() -> None:
    reassembler = Reassembler(limits=CaptureLimits(connections=64))
    gc.collect()

    def count() -> int:
        return sum(isinstance(each, DirectionState) for each in gc.get_objects())

    gc.disable()
    try:
        before = count()
        for n in range(2000):
            flow = FLOW[:8] + n.to_bytes(2, "big") + FLOW[10:]
            reassembler.feed(segment(0, 5, flags=SYN, flow=flow, ms=n))
        assert count() - before == len(reassembler.flows)
    finally:
        gc.enable()


ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=12)


@given(
    sizes=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    cuts=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    extra=st.tuples(ranges, ranges),
    isn=st.sampled_from([0, 1000, 0xFFFF_FFF0, 0x7FFF_FFF0]),
    syn=st.booleans(),
    seed=st.randoms(use_true_random=False),
)
def test_any_order_with_duplicates_and_overlaps_gives_the_same_stream(
    sizes: tuple[int, int],
    cuts: list[int],
    extra: tuple[list[tuple[int, int]], list[tuple[int, int]]],
    isn: int,
    syn: bool,
    seed: random.Random,
) -> None:
    contents = [bytes(range(size)) for size in sizes]
    segments = handshake(isn, isn ^ 0x1234) if syn else []
    starts = (isn + 1, (isn ^ 0x1234) + 1)
    for direction, content in enumerate(contents):
        spans = [(begin, cuts[n % len(cuts)]) for n, begin in enumerate(_begins(content, cuts))]
        for begin, size in [*spans, *extra[direction]]:
            part = content[begin : begin + size]
            # PSH, for a lone byte without it at a midstream start is taken for a keep-alive.
            if part:
                seq, ack = starts[direction] + begin, starts[1 - direction]
                segments.append(segment(direction, seq, part, ACK | PSH, ack=ack))
    seed.shuffle(segments)
    timed = [each._replace(time_ns=each.time_ns + 1000 * n) for n, each in enumerate(segments)]
    events = fed(timed)
    expected = {"10.0.0.1:40000": contents[0], "10.0.0.2:9092": contents[1]}
    assert bytes_of(events) == {name: content for name, content in expected.items() if content}
    gaps = [event for event in events if isinstance(event, Gap)]
    assert {gap.reason for gap in gaps} <= (set() if syn else {"midstream"})
    positions = {0: 0, 1: 0}
    for event in events:
        if isinstance(event, Chunk):
            assert event.offset == positions[event.direction]
            positions[event.direction] += len(event.data)


def _begins(content: bytes, cuts: list[int]) -> list[int]:
    begins, at = [], 0
    while at < len(content):
        begins.append(at)
        at += cuts[(len(begins) - 1) % len(cuts)]
    return begins


@given(
    st.lists(
        st.tuples(
            st.sampled_from([FLOW, BACK, FLOW[:-1] + b"\x01"]),
            st.integers(0, 40) | st.integers(0, 0xFFFF_FFFF),
            st.integers(0, 40) | st.integers(0, 0xFFFF_FFFF),
            st.integers(0, 63),
            st.binary(max_size=6),
            st.integers(0, 3),
            st.integers(0, 4000),
        ),
        max_size=60,
    )
)
def test_any_segments_give_each_byte_once_and_in_order(rows: list[tuple[bytes, ...]]) -> None:
    segments = [
        segment(0, seq, data, flags, ack=ack, flow=flow, length=len(data) + more, ms=ms)
        for flow, seq, ack, flags, data, more, ms in rows  # type: ignore[misc]
    ]
    positions: dict[tuple[int, int], int] = {}
    reassembler = Reassembler()
    events = [event for each in segments for event in reassembler.feed(each)]
    events += reassembler.finish()
    opened = set()
    for event in events:
        if isinstance(event, Opened):
            opened.add(event.connection.number)
        assert event.connection.number in opened
        if isinstance(event, Chunk | Gap):
            key = event.connection.number, event.direction
            assert event.offset == positions.get(key, 0)
            size = len(event.data) if isinstance(event, Chunk) else event.size or 0
            positions[key] = event.offset + size
    assert reassembler.held == 0
    assert sum(sum(event.connection.packets) for event in events if isinstance(event, Opened)) == (
        len(segments)
    )


def test_a_hostile_clock_leaves_time_for_deadlines() -> None:
    """Beyond 64 bits they would end the bulk path, and gaps would stay at the end."""
    late = segment(0, 104, b"cd")._replace(time_ns=LIMITS.time_ns)
    reassembler = Reassembler()
    out = [*reassembler.feed(segment(0, 100, b"ab")), *reassembler.feed(late)]
    assert reassembler.deadlines.wake_ns < NEVER
    assert "0 +4 b'cd'" in told(out + reassembler.finish())
