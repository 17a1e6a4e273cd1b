"""Brokers that answer nobody for a while, and requests that are slow beside others that are not."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.findings import Finding
from kafkascope.analyzer.findings.counting import Event, Keyed
from kafkascope.analyzer.findings.followers import SLOT, Slots, idle_followers
from tests.analyzer.findings.judging import every, found, states
from tests.kit.wire import MS, SECOND, Wire, request, response


def asks(wire: Wire, number: int, at_ns: int, until_ns: int) -> None:
    wire.time_ns = at_ns
    wire.client(request("Metadata", 8, number, f"app-{wire.connection.number}"))
    wire.time_ns = until_ns
    wire.broker(response("Metadata", 8, number))


def paused(*spans: tuple[int, int]) -> Finding | None:
    """One connection for each span of a request, in milliseconds."""
    wires = []
    for number, (begin, end) in enumerate(spans, 1):
        wire = Wire(number=number)
        wire.connection.a = wire.connection.a._replace(port=50_000 + number)
        start = wire.time_ns
        asks(wire, 1, start, start + MS)
        asks(wire, 2, start + begin * MS, start + end * MS)
        wires.append(wire)
    return found(wires).get("broker-paused")


def test_several_wait_for_the_same_moment() -> None:
    finding = paused((1000, 4000), (1500, 4010), (2000, 4020))
    assert finding is not None
    assert states(finding.text, "stalled for 3.0 s", "3 pending requests")
    assert {name for kind, name in finding.entities if kind == "client"} == {
        "app-1",
        "app-2",
        "app-3",
    }
    assert finding.last_ns is not None
    assert finding.first_ns is not None
    assert abs(finding.last_ns - finding.first_ns - 3 * SECOND) < SECOND // 10


def test_slow_answers_outside_of_a_pause_are_a_finding_of_their_own() -> None:
    wires = []
    for number in range(1, 3):
        wire = Wire(number=number)
        wire.connection.a = wire.connection.a._replace(port=50_000 + number)
        start = wire.time_ns
        for correlation, (begin, end) in enumerate(((0, 1200), (1500, 2600), (9000, 14_000)), 1):
            wire.time_ns = start + begin * MS + number
            wire.client(request("Metadata", 8, correlation, "app"))
            wire.time_ns = start + end * MS + number * (5 if begin == 9000 else 40) * MS
            wire.broker(response("Metadata", 8, correlation))
        wires.append(wire)
    lone = Wire(number=3)
    lone.connection.a = lone.connection.a._replace(port=50_003)
    for at in range(0, 8000, 100):
        asks(lone, at, lone.time_ns + 50 * MS, lone.time_ns + 50 * MS)
    slow = every([*wires, lone], "slow-answers", "broker-paused")
    assert [(each.name, each.count, bool(each.because)) for each in slow] == [
        ("slow-answers", 4, False),
        ("broker-paused", 2, False),
        ("slow-answers", 2, True),
    ]


def test_a_broker_that_answers_others_meanwhile() -> None:
    assert paused((1000, 4000), (1500, 4010), (2500, 2510), (3300, 3310)) is None


def test_one_connection_alone_says_nothing_about_a_broker() -> None:
    assert paused((1000, 4000)) is None


def test_requests_that_are_answered_one_after_the_other() -> None:
    assert paused((1000, 2500), (2600, 4100)) is None


def test_a_follower_that_fetches_from_another_leader_is_not_idle() -> None:
    """Broker 2 is killed: it fetches from nobody, and 1 and 3 from each other only."""
    fetching = Keyed(Slots, 100)
    for leader, follower in ((1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)):
        for slot in range(40 if 2 in (leader, follower) else 200):
            fetching[(f"broker-{leader}", follower, 0)].at(slot * SLOT)
    slow = [Event(40 * SLOT, "e", 0, 1, "slow", {"latency": 100 * SLOT})]
    assert idle_followers(fetching, slow) == "; follower 2 sent no Fetch for 5.0 s meanwhile"


@pytest.mark.parametrize("throttle_ms", [0, 5000])
def test_a_client_that_gives_up_while_it_is_throttled(throttle_ms: int) -> None:
    wire = Wire()
    wire.exchange("Heartbeat", 1, 1, {"throttle_time_ms": throttle_ms})
    wire.time_ns += SECOND
    wire.client(request("Heartbeat", 1, 2))
    wire.time_ns += 2 * SECOND
    wire.close("client")
    finding = found([wire])["unanswered"]
    assert (
        ("throttled" in finding.text) is ("Raise the quota" in finding.advice) is bool(throttle_ms)
    )


def test_requests_behind_a_response_that_a_quota_holds() -> None:
    """Brokers before 2.0 hold it, so that its latency has the throttle time."""
    wire = Wire()
    wire.client(*(request("Heartbeat", 1, number) for number in range(4)))
    wire.time_ns += 3 * SECOND
    wire.broker(response("Heartbeat", 1, 0, throttle_time_ms=3000))
    wire.broker(*(response("Heartbeat", 1, number) for number in range(1, 4)))
    assert "slow-answers" not in found([wire])
