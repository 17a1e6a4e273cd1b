"""More small reads than the recorder's thread composes: the queue has an end, and what is left out
is a gap."""

from pathlib import Path

from kafkascope.captures.model import Endpoint
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.recording.recorder import Recorder
from tests.kit.proxy import beat, pulse
from tests.kit.samples import exchanges_of

CLIENT, BROKER = Endpoint("10.0.0.1", 5000), Endpoint("10.0.0.2", 9092)
MOST = 50


def test_a_flood_of_small_reads_does_not_pile_up(tmp_path: Path) -> None:
    made = Recorder(tmp_path / "flood.pcapng", limits=Limits(queued_events=MOST))
    tap = made.tap(1, CLIENT, BROKER, 1)
    asked = beat(1)
    tap.client(0, asked, 2)
    for number in range(1_000):
        tap.client(0, memoryview(b"x"), number)
        tap.broker(1, b"y", number)
    # Nobody composes yet: the thread has not been started.
    assert len(made._queue) == MOST
    assert made.tap(2, CLIENT, BROKER, 3) is None
    left_out = 2_000 + 2 - MOST + 1
    assert made.dropped == left_out
    tap.end(None, "fin", 5_000)
    # What was lost of each leg and side is one event; then the end.
    assert len(made._queue) == MOST + 3
    lost = [event.data for event in made._queue if isinstance(event.data, int)]
    assert sum(lost) == 2_000 - (MOST - 2)
    made.start()
    made.stop()
    assert made.dropped == left_out


def test_what_comes_behind_a_flood_is_recorded_again(tmp_path: Path) -> None:
    made = Recorder(tmp_path / "again.pcapng")
    tap = made.tap(1, CLIENT, BROKER, 1)
    for room, numbers in ((1_000, [1]), (0, range(2, 100)), (1_000, range(100, 103))):
        made.limits = Limits(queued_events=room)
        for number in numbers:
            tap.client(0, beat(number), number * 10)
            tap.client(1, pulse(number), number * 10 + 1)
    tap.end(None, "fin", 5_000)
    assert len(made._queue) < 20
    made.start()
    made.stop()
    seen = [each.correlation_id for each in exchanges_of(tmp_path / "again.pcapng")]
    assert seen[0] == 1
    assert seen[-2:] == [101, 102]
    assert len(seen) <= 5
