"""What a path keeps of packets, by exact ones: round trips, and each kind of event where it is due
and where something alike is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files

import pytest

from kafkascope import kernel
from kafkascope.kernel import path as kernel_path
from kafkascope.kernel.path import AGAIN, CLOSED, FILLED, FULL, MASK, PAUSED, TRIP, UNKNOWN, Path

MS = 1_000_000
MSS = 1_000
ROOM = 60_000
STARTS = (0, 1 << 31, (1 << 32) - 1_500)
"""Sequence numbers that a direction begins with; the last ones wrap around."""


class Packets:
    """Puts packets on a path. Times are milliseconds."""

    def __init__(self, start: int = 1, scale: int = 0) -> None:
        self.path, self.scale = Path(), scale
        self.now = 100.0
        self.next = [start, start]
        self.windows = [ROOM, ROOM]

    @property
    def now_ns(self) -> int:
        return round(self.now * MS)

    def wait(self, ms: float) -> Packets:
        self.now += ms
        return self

    def open(self, to_broker: float = 10, to_client: float = 10) -> Packets:
        """The handshake, with the round trips to each side."""
        self.path.syn(self.now_ns, self.scale)
        self.path.syn_ack(self.wait(to_broker).now_ns, self.scale)
        self.wait(to_client)
        return self.ack(0).wait(1)

    def send(self, direction: int, size: int) -> Packets:
        self._packet(direction, size)
        self.next[direction] = (self.next[direction] + size) & MASK
        return self

    def ack(self, direction: int, behind: int = 0) -> Packets:
        """Acknowledge all bytes but `behind`."""
        self._packet(direction, 0, behind)
        return self

    def window(self, direction: int, size: int) -> Packets:
        self.windows[direction] = size
        return self.ack(direction)

    def _packet(self, direction: int, size: int, behind: int = 0) -> None:
        ack = (self.next[1 - direction] - behind) & MASK
        at = self.next[direction], size, ack, self.windows[direction] >> self.scale
        self.path.packet(direction, self.now_ns, *at)

    @property
    def events(self) -> list[tuple[int, int, float]]:
        """Kind, direction and length of each."""
        return [(kind, side, (end - begin) / MS) for kind, side, begin, end, *_ in self.path.events]


def opened(to_broker: float = 10, to_client: float = 10) -> Packets:
    return Packets().open(to_broker, to_client)


# The handshake


@pytest.mark.parametrize(("to_broker", "to_client"), [(40, 0.1), (0.1, 40), (15, 25)])
def test_a_handshake_tells_the_round_trips_to_both_sides(
    to_broker: float, to_client: float
) -> None:
    path = opened(to_broker, to_client).path
    assert (path.trip0 / MS, path.trip1 / MS) == (to_broker, to_client)
    assert path.known_ns == 0


def test_a_request_may_be_the_first_packet_behind_the_answer() -> None:
    packets = Packets()
    packets.path.syn(0, 0)
    packets.path.syn_ack(packets.now_ns, 0)
    packets.wait(3).send(0, 50).wait(90).ack(0)
    assert packets.path.trip1 == 3 * MS


def test_a_syn_that_was_lost_is_no_round_trip() -> None:
    packets = Packets()
    packets.path.syn(packets.now_ns, 0)
    packets.wait(1000).open(10, 10)
    assert packets.path.trip0 == 10 * MS
    assert packets.path.syns == 2


def test_the_answer_to_the_syn_before_is_no_answer_to_the_last_one() -> None:
    """The answer to the first SYN was lost before the capture point; the server sends it again by
    its own timer, just behind the second SYN, and answers that one, too."""
    packets = Packets()
    path = packets.path
    path.syn(packets.now_ns, 0)
    path.syn(packets.wait(1000).now_ns, 0)
    path.syn_ack(packets.wait(2).now_ns, 0)
    packets.wait(0.1).ack(0)
    path.syn_ack(packets.wait(57.9).now_ns, 0)
    assert path.trip0 == 60 * MS
    assert path.known_ns == packets.now_ns, "exchanges before have none"


def test_an_answer_that_was_lost_behind_the_capture_point_counts_when_it_comes_again() -> None:
    packets = Packets()
    path = packets.path
    path.syn(packets.now_ns, 0)
    path.syn_ack(packets.wait(5).now_ns, 0)
    path.syn_ack(packets.wait(1000).now_ns, 0)
    packets.wait(30).ack(0)
    assert (path.trip0, path.trip1) == (5 * MS, 30 * MS)


def test_an_answer_that_is_captured_late_tells_nothing() -> None:
    packets = Packets()
    packets.path.syn(packets.now_ns, 0)
    packets.wait(5).send(0, 50).wait(300)
    packets.path.syn_ack(packets.now_ns, 0)
    packets.wait(1).ack(0)
    assert (packets.path.trip0, packets.path.trip1) == (UNKNOWN, UNKNOWN)


def test_without_its_syn_an_answer_tells_the_way_to_the_client_alone() -> None:
    packets = Packets()
    packets.path.syn_ack(packets.now_ns, 7)
    packets.wait(4).ack(0)
    assert (packets.path.trip0, packets.path.trip1) == (UNKNOWN, 4 * MS)
    assert packets.path.scale0 == UNKNOWN


@pytest.mark.parametrize(
    ("client", "broker", "expected"), [(7, 8, (7, 8)), (7, -1, (0, 0)), (-1, 8, (0, 0))]
)
def test_windows_are_scaled_where_both_sides_say_so(
    client: int, broker: int, expected: tuple[int, int]
) -> None:
    path = Path()
    path.syn(1, client)
    path.syn_ack(2, broker)
    assert (path.scale0, path.scale1) == expected


# Bytes that were sent again, or were missing


def test_bytes_that_were_sent_again_are_an_event_since_the_last_ones() -> None:
    packets = opened().send(0, 50).wait(200)
    packets.path.again(0, packets.now_ns, packets.next[0], 0, 50)
    assert packets.events == [(AGAIN, 0, 200)]
    packets.wait(400)
    packets.path.again(0, packets.now_ns, packets.next[0], 0, 50)
    assert packets.events[1:] == [(AGAIN, 0, 400)]


def test_bytes_that_later_ones_followed_are_sent_again_after_a_round_trip() -> None:
    packets = opened(to_broker=30).send(0, MSS)
    behind = packets.next[0]
    packets.wait(1).send(0, MSS).wait(1).send(0, MSS).wait(50)
    packets.path.again(0, packets.now_ns, behind, 0, MSS)
    assert packets.events == [(AGAIN, 0, 30)]


def test_bytes_that_are_acknowledged_were_sent_again_for_nothing() -> None:
    packets = opened().send(0, 50).wait(10).ack(1).wait(200)
    packets.path.again(0, packets.now_ns, packets.next[0], 0, 50)
    assert packets.events == []


def test_nothing_is_sent_again_behind_the_end() -> None:
    packets = opened().send(0, 50).wait(200)
    packets.path.over = True
    packets.path.again(0, packets.now_ns, packets.next[0], 0, 50)
    assert packets.events == []


def test_bytes_that_were_missing_are_an_event_since_that_was_seen() -> None:
    packets = opened().send(0, 50).wait(200)
    packets.path.filled(0, packets.now_ns - 150 * MS, packets.now_ns, 50, 90)
    assert packets.events == [(FILLED, 0, 150)]


def test_silence_until_missing_bytes_came_is_no_pause() -> None:
    packets = opened().send(0, 60).wait(200)
    packets.path.filled(0, packets.now_ns - 200 * MS, packets.now_ns, 50, 90)
    packets.wait(1).send(0, 60)
    assert packets.events == [(FILLED, 0, 200)]


# Windows


@pytest.mark.parametrize("direction", [0, 1])
def test_a_window_that_closes_and_opens_is_an_event(direction: int) -> None:
    packets = opened().window(direction, 0).wait(300).window(direction, 0).wait(200)
    assert packets.events == []
    assert not packets.path.quiet(packets.now_ns)
    packets.window(direction, ROOM)
    assert packets.events == [(CLOSED, direction, 500)]
    assert packets.path.quiet(packets.now_ns + 1)


def test_small_windows_and_those_that_were_cut_off_are_none() -> None:
    packets = opened().window(0, 1)
    packets.path.packet(0, packets.now_ns, packets.next[0], 0, packets.next[1], UNKNOWN)
    packets.wait(100).window(0, ROOM)
    assert packets.events == []


def test_an_open_window_that_was_cut_off_does_not_end_a_closed_one() -> None:
    packets = opened().window(0, 0).wait(50)
    packets.path.packet(0, packets.now_ns, packets.next[0], 0, packets.next[1], UNKNOWN)
    packets.wait(50).window(0, ROOM)
    assert packets.events == [(CLOSED, 0, 100)]


def fill(packets: Packets, trip: float, closed: float) -> Packets:
    """A window of two segments and a half, whose side reads nothing for a time."""
    packets.window(1, 2_560).send(0, MSS).send(0, MSS)
    packets.wait(trip).window(1, 512).wait(closed).window(1, ROOM)
    return packets.wait(1).send(0, MSS)


@pytest.mark.parametrize("direction", [0, 1])
def test_silence_while_a_window_is_closed_is_no_pause(direction: int) -> None:
    packets = opened(0.1, 0.1).send(direction, 60).wait(0.1).window(1 - direction, 0).wait(300)
    packets.window(1 - direction, ROOM).wait(0.1).send(direction, 60)
    assert packets.events == [(CLOSED, 1 - direction, 300)]
    assert [each[0] for each in packets.wait(300).send(direction, 60).events] == [CLOSED, PAUSED]


@pytest.mark.parametrize("scale", [0, 7])
def test_a_window_without_room_for_the_next_segment_is_full(scale: int) -> None:
    packets = Packets(scale=scale).open(1, 1)
    fill(packets, 1, 80)
    assert packets.events == [(FULL, 0, 80)]


@pytest.mark.parametrize("direction", [0, 1])
def test_a_full_window_whose_acknowledgement_is_late_is_full_for_less_than_a_round_trip(
    direction: int,
) -> None:
    packets = opened(40, 40).window(1 - direction, 2 * MSS)
    packets.send(direction, MSS).send(direction, MSS).wait(40 + 25).window(1 - direction, ROOM)
    packets.wait(40).send(direction, MSS)
    assert [each for each in packets.events if each[0] != TRIP] == [(FULL, direction, 25)]


def test_a_window_is_not_full_within_two_round_trips() -> None:
    assert fill(opened(40, 0.1), 40, 40).events == []


def test_without_a_handshake_no_window_is_full() -> None:
    packets = fill(Packets(), 1, 80)
    assert FULL not in [kind for kind, *_ in packets.events]


# Pauses


@pytest.mark.parametrize(
    ("direction", "to_broker", "to_client"), [(0, 0.1, 0.1), (0, 30, 0.1), (1, 0.1, 20)]
)
def test_a_small_segment_that_waits_for_an_acknowledgement_is_nagle(
    direction: int, to_broker: float, to_client: float
) -> None:
    packets = opened(to_broker, to_client).send(direction, 4)
    packets.wait(40).ack(1 - direction)
    packets.wait(to_broker if direction else to_client).send(direction, 60)
    assert [each[:2] for each in packets.events] == [(kernel_path.NAGLE, direction)]


def test_a_small_segment_that_comes_long_behind_the_acknowledgement_is_a_pause() -> None:
    packets = opened(0.1, 0.1).send(0, 4).wait(40).ack(1).wait(60).send(0, 60)
    assert packets.events == [(PAUSED, 0, 100)]


def test_a_full_segment_that_waited_for_an_acknowledgement_is_slow_start() -> None:
    packets = opened(40, 0.1).send(0, MSS).send(0, MSS).wait(40).ack(1).wait(0.2).send(0, MSS)
    assert packets.events == []


def test_without_a_handshake_a_second_behind_an_acknowledgement_is_no_slow_start() -> None:
    packets = Packets().send(0, MSS).send(0, MSS).wait(1).ack(1).wait(200).send(0, MSS)
    assert packets.events == []
    packets.wait(1).ack(1).wait(1300).send(0, MSS)
    assert packets.events == [(kernel_path.HELD, 0, 1301)]


@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize(("size", "kind"), [(60, PAUSED), (MSS, kernel_path.HELD)])
def test_silence_behind_a_segment_is_its_senders(size: int, kind: int, direction: int) -> None:
    packets = opened(0.1, 0.1).send(direction, size).wait(0.1).ack(1 - direction)
    packets.wait(150).send(direction, size)
    assert [each[:2] for each in packets.events] == [(kind, direction)]


def test_a_segment_is_full_if_none_was_larger() -> None:
    packets = opened(0.1, 0.1).send(0, MSS).wait(1).send(0, 600).wait(150).send(0, MSS)
    assert [each[:2] for each in packets.events] == [(PAUSED, 0)]


def test_short_silence_is_none() -> None:
    assert opened().send(0, 60).wait(9).send(0, 60).events == []


def test_silence_behind_which_the_other_side_spoke_is_none() -> None:
    assert opened().send(0, 60).wait(150).send(1, 60).wait(150).send(0, 60).events == []


# Round trips of bursts


def burst(packets: Packets, trip: float, behind: int = 0) -> Packets:
    """Three segments of the client, their acknowledgement, and an answer."""
    packets.send(0, MSS).send(0, MSS).send(0, MSS).wait(trip).ack(1, behind)
    return packets.wait(1).send(1, 40).wait(1)


@pytest.mark.parametrize("lost", ["behind", "before"])
def test_a_burst_of_which_bytes_were_sent_again_has_no_round_trip(lost: str) -> None:
    packets = opened(10).send(0, MSS).send(0, MSS).send(0, MSS).wait(60)
    end, now_ns = packets.next[0], packets.now_ns
    if lost == "behind":
        packets.path.again(0, now_ns, (end - MSS) & MASK, MSS, 2 * MSS)
    else:
        packets.path.filled(0, now_ns - 60 * MS, now_ns, MSS, 2 * MSS)
    packets.wait(10).ack(1).wait(1).send(1, 40)
    assert TRIP not in [kind for kind, *_ in packets.events]


def test_a_burst_with_another_round_trip_is_an_event() -> None:
    packets = burst(burst(burst(opened(10), 10), 90), 91)
    assert packets.events == [(TRIP, 0, 90)]
    burst(packets, 10)
    assert packets.events[1:] == [(TRIP, 0, 10)]
    assert packets.path.trip0 == 10 * MS


def test_an_acknowledgement_that_may_be_delayed_is_no_round_trip() -> None:
    """Of one segment, or with an answer."""
    packets = opened(10).send(0, MSS).wait(50).ack(1)
    packets.send(1, 40).send(0, MSS).send(0, MSS).wait(50).send(1, 40)
    assert packets.events == []


def test_without_a_handshake_the_shortest_of_some_bursts_is_the_round_trip() -> None:
    packets = Packets()
    for trip in (70, 61, 60, 90):
        assert packets.path.trip0 == UNKNOWN
        begun = packets.now_ns
        burst(packets, trip)
    assert packets.path.samples == kernel_path.SAMPLES
    assert packets.path.trip0 == 60 * MS
    assert begun < packets.path.known_ns
    assert not packets.path.quiet(begun)
    assert packets.path.quiet(packets.now_ns)
    assert packets.path.trip1 == UNKNOWN


# Acknowledgements


@pytest.mark.parametrize("start", STARTS)
def test_bytes_may_be_sent_again_until_they_are_acknowledged(start: int) -> None:
    packets = Packets(start & MASK)
    path = packets.ack(0).send(1, 2_000).path
    assert path.unacknowledged(1) == packets.next[1]
    packets.ack(0, behind=500)
    assert path.unacknowledged(1) == packets.next[1]
    assert not path.covers(1, packets.next[1])
    assert path.covers(1, (packets.next[1] - 500) & MASK)
    packets.ack(0)
    packets.ack(0, behind=500)  # a copy of an older packet takes nothing back
    assert path.unacknowledged(1) == UNKNOWN
    assert path.covers(1, packets.next[1])


def test_where_nothing_is_acknowledged_nobody_waits_for_it() -> None:
    """Only one direction was captured."""
    path = Path()
    path.packet(1, MS, 7, 50, 3, ROOM)
    assert path.unacknowledged(1) == UNKNOWN


# What all have in common


STORIES: list[Callable[[Packets], object]] = [
    lambda it: it.send(0, 50).wait(200).send(0, 50),
    lambda it: it.send(0, 4).wait(40).ack(1).wait(10).send(0, 60),
    lambda it: it.send(1, MSS).wait(150).send(1, MSS),
    lambda it: burst(burst(it, 10), 90),
    lambda it: it.window(1, 3_000).send(0, MSS).send(0, MSS).send(0, MSS).wait(99).send(0, MSS),
    lambda it: it.window(1, 0).wait(99).window(1, ROOM),
]


@pytest.mark.parametrize("story", STORIES)
def test_sequence_numbers_wrap_around(story: Callable[[Packets], object]) -> None:
    found = []
    for start in (0, *range(MASK - 6_000, MASK, 499), kernel_path.HALF - 1, kernel_path.HALF):
        packets = Packets(start).open()
        story(packets)
        found.append(packets.events)
    assert found[0]
    assert found == [found[0]] * len(found)


@pytest.mark.parametrize("story", STORIES)
def test_our_own_recordings_have_no_events(story: Callable[[Packets], object]) -> None:
    packets = Packets()
    packets.path.off = True
    story(packets.open())
    assert packets.events == []


@pytest.mark.parametrize("story", STORIES)
def test_a_path_goes_on_in_another_process(story: Callable[[Packets], object]) -> None:
    here, there = Packets().open(), Packets().open()
    story(here)
    story(there)
    there.path = Path().load(there.path.dump())
    for each in (here, there):
        each.wait(30)
        story(each)
    assert here.path.dump() == there.path.dump()


def test_all_that_a_path_knows_is_dumped() -> None:
    source = files(kernel).joinpath("path.py").read_text()
    names = re.findall(r"^        self\.(\w+):", source, re.MULTILINE)
    assert sorted(kernel_path.FIELDS) == sorted(names)


def test_events_are_bounded_and_the_newest_stay() -> None:
    packets = opened(0.1, 0.1)
    for _ in range(3 * kernel_path.MOST_EVENTS):
        packets.send(0, 60).wait(20)
    assert kernel_path.MOST_EVENTS // 2 <= len(packets.events) <= kernel_path.MOST_EVENTS
    assert packets.path.events[-1][3] == packets.path.data0
    assert packets.path.latest_ns == packets.path.data0


def test_segments_without_an_acknowledgement_are_bounded() -> None:
    packets = opened(0.1, 0.1)
    for _ in range(3 * kernel_path.MOST_SENT):
        packets.send(0, MSS).wait(0.01)
        assert len(packets.path.sent) <= kernel_path.MOST_SENT
    packets.wait(30).ack(1)
    assert [(kind, round(ms)) for kind, _, ms in packets.events] == [(TRIP, 30)]
    assert packets.path.sent == []
