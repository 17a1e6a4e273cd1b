"""What delays requests on their way, and what only looks like it: exact packets of each."""

from typing import Final

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.findings.counting import Event, Keyed
from kafkascope.analyzer.findings.followers import SLOT, Slots, idle_followers
from kafkascope.analyzer.statistics.feed import Feed
from tests.analyzer.findings import judging
from tests.analyzer.findings.judging import capture_of, every, in_order, judged, states
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
from tests.analyzer.findings.sides_requests import RULE, sent, sent_in_pieces
from tests.kit.batches import batch
from tests.kit.samples import CAPTURES
from tests.kit.wire import MS, SECOND, Wire, produce, request, response, told

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


@pytest.mark.parametrize(
    ("line", "expected", "parts"),
    [
        (unread(1, 300 * MS), "warning client-not-reading",
         ("app did not read 3 of 3 Metadata responses", "10.0.1.2:9092", "closed", "300 ms")),
        (unread(0, 300 * MS), "warning broker-not-reading",
         ("10.0.1.2:9092 did not read 3 of 3 Produce requests from app", "closed", "300 ms")),
        (interrupted(300 * MS), "warning broker-stopped-sending",
         ("10.0.1.2:9092 stopped", "3 of 3 Metadata responses", "301 ms")),
        (interrupted(300 * MS, first=MSS), "warning broker-stopped-sending", ()),
        (lost_requests(3), "warning lost-segments",
         ("3 of 3 Metadata requests from app", "up to 201 ms", 3, "retransmission timeout")),
        (transferred(0, 400 * MS), "warning slow-transfer",
         ("3 of 3 Produce requests from app to 10.0.1.2:9092", "400 ms", "50 KB per second")),
        (transferred(1, 400 * MS), "warning slow-transfer",
         ("3 of 3 Metadata responses from 10.0.1.2:9092 to app", "400 ms", "50 KB per second")),
        (queued(400 * MS), "note queued-requests",
         ("5 of 5 Metadata requests from app", "400 ms", "behind")),
    ],
)  # fmt: skip
def test_what_delays_requests(line: Line, expected: str, parts: tuple[object, ...]) -> None:
    finding = only(line)
    assert f"{finding.severity} {finding.name}" == expected
    assert states(finding.text, *parts)


def test_a_broker_that_stops_before_a_response_is_slow() -> None:
    assert only(slow(3, 300 * MS)).name == "slow-answers"


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


def test_a_real_client_with_nagle() -> None:
    names = {each.name: each for each in judged(capture_of("nagle", CAPTURES))[0]}
    finding = names[RULE]
    assert states(finding.text, "nodeclient", "45 ms", "39 of 40 Produce requests", "small pieces")
    assert "TCP_NODELAY" in finding.advice
    assert "slow-answers" not in names


@pytest.mark.parametrize("api", ["Produce", "Heartbeat"])
@pytest.mark.parametrize(
    ("cuts", "gap_ns"), [((4,), 40 * MS), ((4, 20), 80 * MS), ((10, 10), 199 * MS)]
)
def test_pieces_of_any_size_and_number(cuts: tuple[int, ...], gap_ns: int, api: str) -> None:
    wire = Wire()
    for number in range(20):
        sent(wire, number, gap_ns, cuts=cuts, api=api)
    finding = sent_in_pieces(wire)
    assert states(finding.text, f"{gap_ns // MS} ms", f"20 of 20 {api} requests", "1.0 ms after")


def test_large_requests_take_their_time() -> None:
    wire = Wire()
    for number in range(20):
        data = produce(number, records=bytes(20_000))
        wire.client(data[:9_000])
        wire.time_ns += 40 * MS
        wire.client(data[9_000:]).broker(response("Produce", 7, number))
    assert sent_in_pieces(wire) is None


@pytest.mark.parametrize(("first", "told"), [(1460, False), (4, True)])
def test_full_segments_are_paced_by_the_link(first: int, told: bool) -> None:
    wire = Wire()
    for number in range(20):
        data = produce(number, records=bytes(9_000))
        wire.client(data[:first])
        for at in range(first, len(data), 1460):
            wire.time_ns += 12 * MS
            wire.client(data[at : at + 1460])
        wire.broker(response("Produce", 7, number))
    assert (sent_in_pieces(wire) is not None) is told


@pytest.mark.parametrize("paced", [0, 9])
def test_a_request_that_the_link_paces_is_left_out_alone(paced: int) -> None:
    """Wherever it stands among others of the same client, which are counted together."""
    wire = Wire()
    for number in range(10):
        size, piece, gap = (9_000, 1460, 12 * MS) if number == paced else (200, 150, 40 * MS)
        data = produce(number, records=batch([(None, bytes(size))]))
        for at in range(0, len(data), piece):
            wire.time_ns += gap if at else 0
            wire.client(data[at : at + piece])
        wire.broker(response("Produce", 7, number))
    findings, context = Findings(only=(RULE,)), Context()
    feed = Feed([findings])
    for exchange in told(wire.close("client").events, context):
        feed.add(row_of(exchange, context.names), exchange)
    feed.settle()
    (finding,) = findings.reported(context.names)
    assert states(finding.text, "9 of 10 Produce requests")


def test_a_slow_response_is_none_of_it() -> None:
    wire = Wire()
    for number in range(20):
        wire.client(produce(number))
        wire.time_ns += 40 * MS
        wire.broker(response("Produce", 7, number))
    assert sent_in_pieces(wire) is None


def in_pieces(
    gap_ns: int, count: int = 10, *, nagle: bool = False, trip_ns: int = MS // 10
) -> Line:
    """Requests in two pieces whose packets tell why: the second one comes with the acknowledgement
    of the first, or when the client has it."""
    line = Line(trip_ns=trip_ns)
    for number in range(count):
        data = line.asking(number, "Produce", 20_000)
        line.send(0, data[:4], MS).ack(1, gap_ns - 1000 if nagle else 1000)
        line.send(0, data[4:1464], 1000 if nagle else gap_ns - 1000)
        line.stream(0, data[1464:], 0).send(1, answer(number, "Produce"), trip_ns + MS)
    return line


def found_on(line: Line) -> Finding | None:
    return found([line], RULE).get(RULE)


@pytest.mark.parametrize("nagle", [True, False])
@pytest.mark.parametrize("trip_ns", [MS // 10, 30 * MS])
def test_packets_tell_that_the_client_waits(nagle: bool, trip_ns: int) -> None:
    """In requests of any size, and whatever the way to the broker."""
    finding = found_on(in_pieces(80 * MS, nagle=nagle, trip_ns=trip_ns))
    assert states(finding.text, "80 ms", "10 of 10 Produce requests")
    assert found_on(in_pieces(80 * MS, 4, nagle=nagle, trip_ns=trip_ns)) is None


@pytest.mark.parametrize("gap_ns", [30 * MS - 1, 30 * MS])
def test_packets_tell_how_long_it_waits(gap_ns: int) -> None:
    assert (found_on(in_pieces(gap_ns)) is not None) == (gap_ns == 30 * MS)


def test_packets_tell_that_the_path_waits() -> None:
    """A segment that is lost before the capture point, and a window of the broker that is
    closed."""
    lost, closed = Line(), Line()
    for number in range(10):
        data = lost.asking(number, "Produce", 4_000)
        lost.send(0, data[:1460], MS).ack(1).send(0, data[1460:2920], seen=False)
        lost.send(0, data[2920:]).ack(1).again(0, data[1460:2920], 80 * MS, newer=len(data) - 2920)
        closed.send(0, data[:1460], MS).ack(1, window=0).ack(1, 80 * MS).send(0, data[1460:])
        for line in (lost, closed):
            line.send(1, answer(number, "Produce"), MS)
    assert found_on(lost) is None
    assert found_on(closed) is None


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
    return judging.found(wires).get("broker-paused")


def test_several_wait_for_the_same_moment() -> None:
    finding = paused((1000, 4000), (1500, 4010), (2000, 4020))
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
    slow = every(in_order([*wires, lone]), "slow-answers", "broker-paused")
    assert [(each.name, each.count, bool(each.because)) for each in slow] == [
        ("slow-answers", 4, False),
        ("broker-paused", 2, False),
        ("slow-answers", 2, True),
    ]


@pytest.mark.parametrize(
    "spans",
    [
        [(1000, 4000), (1500, 4010), (2500, 2510), (3300, 3310)],
        [(1000, 4000)],
        [(1000, 2500), (2600, 4100)],
    ],
    ids=["others are answered", "one connection", "one after the other"],
)
def test_what_is_no_pause_of_a_broker(spans: list[tuple[int, int]]) -> None:
    assert paused(*spans) is None


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
    finding = judging.found([wire])["unanswered"]
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
    assert "slow-answers" not in judging.found([wire])
