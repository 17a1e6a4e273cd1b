"""What delays requests on their way, and what only looks like it: exact packets of each."""

from __future__ import annotations

from typing import Final

import pytest

from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings import Finding
from tests.analyzer.findings.judging import capture_of, judged, states
from tests.analyzer.findings.lines import MSS, Line, answer, found, rows_of
from tests.analyzer.findings.sides_delays import (
    LARGE,
    RTO,
    interrupted,
    lost_requests,
    queued,
    slow,
    transferred,
    unread,
)
from tests.kit.wire import MS

DELAYS: Final = (
    *("client-not-reading", "broker-not-reading", "broker-stopped-sending", "lost-segments"),
    *("slow-transfer", "queued-requests", "syn-lost", "slow-answers", "sent-in-pieces"),
    *("broker-paused", "network-loss"),
)


def only(line: Line) -> Finding:
    """The one finding about the latency of a connection, whose evidence is what it counts."""
    (finding,) = found([line], *DELAYS).values()
    if finding.name != "syn-lost":
        wanted = compile_filter(finding.filter)
        assert sum(wanted(row, each) for row, each in rows_of([line])) == finding.count
    return finding


def silent(line: Line) -> bool:
    return not found([line], *DELAYS)


def test_a_client_that_does_not_read() -> None:
    finding = only(unread(1, 300 * MS))
    assert (finding.name, finding.severity) == ("client-not-reading", "warning")
    parts = ("app", "did not read 3 of 3 Metadata responses", "10.0.1.2:9092", "closed", "300 ms")
    assert states(finding.text, *parts)


def test_a_broker_that_does_not_read() -> None:
    finding = only(unread(0, 300 * MS))
    assert (finding.name, finding.severity) == ("broker-not-reading", "warning")
    parts = ("10.0.1.2:9092 did not read 3 of 3 Produce requests from app", "closed", "300 ms")
    assert states(finding.text, *parts)


def test_a_broker_that_stops_in_the_middle_of_a_response() -> None:
    finding = only(interrupted(300 * MS))
    assert (finding.name, finding.severity) == ("broker-stopped-sending", "warning")
    assert states(finding.text, "10.0.1.2:9092 stopped", "3 of 3 Metadata responses", "301 ms")
    assert only(interrupted(300 * MS, first=MSS)).name == "broker-stopped-sending"


def test_a_broker_that_stops_before_a_response_is_slow() -> None:
    assert only(slow(3, 300 * MS)).name == "slow-answers"


def test_requests_that_are_lost() -> None:
    finding = only(lost_requests(3))
    assert (finding.name, finding.severity) == ("lost-segments", "warning")
    parts = ("3 of 3 Metadata requests from app", "up to 201 ms", 3, "retransmission timeout")
    assert states(finding.text, *parts)


def test_lost_requests_whose_round_trip_is_unknown_are_not_slow() -> None:
    """No handshake, and the acknowledgements of what is sent again tell no round trip."""
    lines = []
    for port in range(5000, 5003):
        line = Line(port)
        del line.segments[:]
        data = line.asking(port)
        line.send(0, data, MS, arrives=False).again(0, data, 1300 * MS).send(1, answer(port), MS)
        lines.append(line)
    assert [row.serving_ns for row, _ in rows_of(lines)] == [None] * 3
    assert [*found(lines, *DELAYS)] == ["lost-segments"]


def test_a_request_that_is_lost_before_the_capture_point() -> None:
    """So that those behind it wait for it at the broker, which does not read holes."""
    line = Line()
    first, *others = map(line.asking, range(4))
    line.send(0, first, seen=False)
    for each in others:
        line.send(0, each, MS).ack(1)
    line.again(0, first, RTO, newer=sum(map(len, others)))
    for number in range(4):
        line.send(1, answer(number), MS)
    finding = only(line)
    assert finding.name == "lost-segments"
    assert states(finding.text, "3 of 4 Metadata requests", 3, "retransmission timeout")
    taken = [
        (row.request_transfer_ns, row.serving_ns, row.stalled_by) for row, _ in rows_of([line])
    ]
    trip = MS // 10
    assert taken == [
        (RTO + 2 * MS, 2 * MS - trip, "network"),
        (RTO + MS, 3 * MS - trip, "network"),
        (RTO, 4 * MS - trip, "network"),
        (0, MS - trip, None),
    ]


def test_a_path_that_loses_segments_explains_requests_that_wait_for_them() -> None:
    found = {each.name: each for each in judged(capture_of("lossy-network"))[0]}
    assert found["lost-segments"].because == (found["network-loss"].id,)
    assert "slow-answers" not in found


def test_a_response_that_is_lost() -> None:
    """Behind the capture point, so that it is seen twice."""
    line = Line()
    for number in range(3):
        line.send(0, line.asking(number), MS)
        line.send(1, answer(number), MS, arrives=False).again(1, answer(number), RTO).ack(0)
    finding = only(line)
    assert finding.name == "lost-segments"
    assert states(finding.text, "3 of 3 Metadata requests", "200 ms", 3, "retransmission timeout")


def test_responses_that_wait_for_a_lost_one_are_not_slow() -> None:
    """TCP sends nothing new while it recovers: how long the broker took is not known."""
    line = Line()
    line.send(0, line.asking(0)).send(1, answer(0), MS).ack(0)
    line.send(0, line.asking(1), MS).send(1, answer(1), MS, arrives=False)
    for number in range(2, 5):
        line.send(0, line.asking(number), 10 * MS)
    line.again(1, answer(1), 2 * RTO).ack(0, MS)
    for number in range(2, 5):
        line.send(1, answer(number))
    rows = [row for row, _ in rows_of([line])]
    assert [row.serving_ns is None for row in rows] == [False, False, True, True, True]
    assert only(line).name == "lost-segments"


def test_segments_that_are_sent_again_soon_delay_nothing() -> None:
    line = Line(trip_ns=20 * MS)
    for number in range(20):
        data = line.asking(number)
        line.send(0, data, MS)
        if not number % 5:
            line.again(0, data, MS)
        line.send(1, answer(number), 20 * MS)
    assert silent(line)


@pytest.mark.parametrize("side", [0, 1])
def test_a_thin_path(side: int) -> None:
    finding = only(transferred(side, 400 * MS))
    what = ("3 of 3 Produce requests from app to 10.0.1.2:9092", "400 ms")
    back = ("3 of 3 Metadata responses from 10.0.1.2:9092 to app", "400 ms")
    assert (finding.name, finding.severity) == ("slow-transfer", "warning")
    assert states(finding.text, *(back if side else what), "50 KB per second")


@pytest.mark.parametrize("trip_ns", [60 * MS, 150 * MS])
def test_slow_start_is_no_thin_path(trip_ns: int) -> None:
    """TCP sends ten segments, then waits for a round trip before it sends more."""
    line = Line(trip_ns=trip_ns)
    data = line.asking(0, "Produce", LARGE)
    for number, at in enumerate(range(0, len(data), MSS)):
        if number == 10:
            line.ack(1, trip_ns)
        line.send(0, data[at : at + MSS])
    line.send(1, answer(0, "Produce"), trip_ns + MS)
    assert silent(line)


def test_requests_behind_a_long_poll() -> None:
    finding = only(queued(400 * MS))
    assert (finding.name, finding.severity) == ("queued-requests", "note")
    assert states(finding.text, "5 of 5 Metadata requests from app", "400 ms", "behind")


def test_a_poll_that_nothing_waits_for() -> None:
    assert silent(queued(MS))


def test_a_syn_that_is_lost() -> None:
    lines = [Line(syns=syns).ask(0) for syns in (1, 2, 3)]
    assert silent(lines[0])
    for line, opened in zip(lines[1:], ("1.0 s", "2.0 s"), strict=True):
        finding = only(line)
        assert (finding.name, finding.severity) == ("syn-lost", "note")
        assert states(finding.text, "1 connection from app to 10.0.1.2:9092", opened, "SYN")


def test_connections_whose_syn_is_lost_are_one_finding() -> None:
    lines = [Line(40_000 + number, syns=2, at_ns=number * MS).ask(0) for number in range(4)]
    assert states(found(lines, "syn-lost")["syn-lost"].text, "4 connections from app")


def test_slow_answers_are_those_of_the_broker() -> None:
    finding = only(slow(3, 300 * MS))
    assert states(finding.text, "3 of 3 Metadata requests", "390 ms", "300 ms of it at the broker")
    assert silent(slow(3, 150 * MS))
    far = Line(trip_ns=600 * MS)
    for number in range(3):
        far.rest(MS).ask(number, 150 * MS)
    assert set(found([far], *DELAYS)) == set()


def test_requests_behind_a_slow_one_are_not_slow() -> None:
    """A broker serves the requests of a connection one after the other."""
    line = Line()
    for number in range(5):
        line.send(0, line.asking(number), MS)
    line.rest(400 * MS)
    for number in range(5):
        line.send(1, answer(number), 1000)
    assert silent(line)


def test_changes_of_the_cluster_may_take_longer() -> None:
    assert silent(slow(5, 600 * MS, "CreateTopics"))
    assert only(slow(3, 1000 * MS, "CreateTopics")).name == "slow-answers"
