"""Brokers that go and come back, connections that go dead or are closed for being idle: both sides
of each limit, on connections made by hand."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.findings import Finding, outage_times
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import closed_at, ended_at
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.groups import groups
from kafkascope.analyzer.statistics.groups.model import Story
from tests.analyzer.findings import judging
from tests.analyzer.findings.judging import capture_of, judged, states
from tests.analyzer.findings.sides_connections import (
    dead,
    ended,
    failed,
    forgotten,
    opened,
    working,
)
from tests.analyzer.findings.sides_data import cut_off
from tests.kit.samples import CAPTURES
from tests.kit.wire import SECOND, START, Wire, heartbeat, request, response


def found(*wires: Wire) -> dict[str, Finding]:
    """Rule -> finding, for the rules of this module."""
    return judging.found(wires, "broker-down", "silent-drop", "idle-close")


def test_a_broker_that_restarted() -> None:
    finding = found(working(0, 0, 2), failed(1, 3), failed(2, 9), working(3, 16.9, 26))
    assert (finding["broker-down"].severity, finding["broker-down"].count) == ("note", 2)
    assert "and came back" in finding["broker-down"].text


def test_a_broker_that_never_came_back() -> None:
    finding = found(working(0, 0, 2), failed(1, 3), failed(2, 40))["broker-down"]
    assert finding.severity == "warning"
    assert states(finding.text, "10.0.1.2:9092", "still down", "closed 1 connection", "refused")
    assert "came back" not in finding.text


@pytest.mark.parametrize(
    "wires",
    [
        [failed(0, 0), failed(1, 1), working(2, 3, 9)],
        [working(0, 0, 9, rest=6), working(1, 0.1, 9.5, rest=6)],
        [working(0, 0, 9, "client", 6), working(1, 20, 29, "client", 6)],
        [forgotten(0, 300 * SECOND, how="fin")],
    ],
    ids=["never worked", "ended together", "closed by the client", "closed after one long rest"],
)
def test_what_is_no_outage(wires: list[Wire]) -> None:
    assert not found(*wires)


def test_connects_that_are_not_answered_belong_to_the_dead_connection() -> None:
    told = found(dead(), failed(1, 12, silent=True))
    assert set(told) == {"silent-drop"}
    assert states(told["silent-drop"].text, "went dead", "1 new connection", "no answer")


def test_stories_of_groups_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all detectors, and all outages: there may be thousands of both."""

    def asked(outages: int) -> int:
        calls.clear()
        wires = []
        for number in range(outages):
            at = 100.0 * number
            wires += [working(3 * number + 1, at, at + 10), failed(3 * number + 2, at + 11)]
            wires.append(working(3 * number + 3, at + 12, at + 50, side="client"))
        down = judging.found(wires)["broker-down"]
        assert ("group", "g") in down.entities
        return len(calls)

    calls: list[str] = []
    tell = groups.story_of

    def counted(name: str, *given: Any) -> Story:
        calls.append(name)
        return tell(name, *given)

    monkeypatch.setattr(groups, "story_of", counted)
    assert asked(1) == asked(6) == 1  # for detectors and the delivery audit together


@pytest.mark.parametrize(("client", "severity"), [("2", "note"), ("app", "warning")])
def test_requests_between_brokers_are_not_lost(client: str, severity: str) -> None:
    """A controller tells a broker that stops to give up its replicas, and does not wait."""
    wire = Wire(number=7, start_ns=START)
    api = "UpdateMetadata" if client == "2" else "Heartbeat"
    wire.exchange(api, 4, 1, client=client)
    wire.time_ns = START + 2 * SECOND - 1_000_000
    wire.client(request("StopReplica" if client == "2" else "Heartbeat", 1, 2, client))
    wire.connection.bytes = [50, 50]
    wire.connection.last_ns = wire.time_ns
    wires = [working(0, 0, 2), wire.close("broker"), failed(1, 3), working(3, 5, 9)]
    assert found(*wires)["broker-down"].severity == severity


def test_a_server_of_zookeeper_is_known_by_its_protocol_or_by_words() -> None:
    protocols = ["zookeeper", "ZooKeeper's four-letter word srvr", "kafka", "", None]
    known = [outage_times.of_zookeeper({"protocol": each}) for each in protocols]
    assert known == [True, True, False, False, False]


def test_an_address_that_took_no_connection_at_all() -> None:
    """The address that a client was started with; on a port of Kafka's."""
    refused = [failed(number, 2 * number) for number in range(4)]
    (finding,) = found(*refused).values()
    assert (finding.name, finding.severity, finding.count) == ("broker-down", "warning", 4)
    parts = ("accepted no connection", "6.0 s", "refused 4 connection attempts")
    assert states(finding.text, *parts)
    assert "bootstrap.servers" in finding.advice
    for wire in refused:
        wire.connection.b = wire.connection.b._replace(port=8081)
    assert not found(*refused), "anything may be there"


def test_a_client_that_others_serve_does_not_miss_one_of_its_bootstrap_addresses() -> None:
    served = working(9, 0, 9)
    served.connection.b = served.connection.b._replace(host="10.0.1.8")
    finding = found(served, *(failed(number, 2 * number) for number in range(1, 5)))["broker-down"]
    assert finding.severity == "note"


def test_real_connections_that_were_forgotten() -> None:
    findings = {each.name: each for each in judged(capture_of("reset-after-rest", CAPTURES))[0]}
    finding = findings["silent-drop"]
    assert states(finding.text, "5 connections", "pricing", "reset", "first request", "360 s")
    assert states(finding.text, "5 requests lost", "AWS Network Load Balancer", "350 s")
    assert "connections.max.idle.ms" in finding.advice
    assert findings["unanswered"].because == (finding.id,)


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_a_client_that_rested_does_not_lack_a_login(how: str) -> None:
    """Each got one response before, as one from a broker that requires SASL would."""
    wires = [forgotten(number, 350 * SECOND, how=how) for number in range(5)]
    assert set(found(*wires)) == {"silent-drop"}
    assert not judging.found(wires, "sasl-missing")


@pytest.mark.parametrize(
    ("how", "verb", "device"),
    [("rst", "were reset", "NAT or firewall"), ("fin", "were closed", "proxy or load balancer")],
)
def test_a_device_resets_what_it_forgot_and_a_proxy_closes_it(
    how: str, verb: str, device: str
) -> None:
    """HAProxy and Envoy answer with a FIN when their own connection to the broker is lost."""
    wires = [forgotten(number, 60 * SECOND, how=how) for number in range(5)]
    if how == "fin":  # half closed: the client still sends, and is reset then
        wires[0].client(heartbeat(3)).close("broker", "rst")
    finding = found(*wires)["silent-drop"]
    assert (finding.count, finding.severity) == (5, "error")
    assert states(finding.text, f"5 connections from app to 10.0.1.2:9092 {verb}")
    assert states(finding.text, "first request after 60 s of inactivity", "requests lost")
    assert device in finding.advice


def test_some_are_closed_and_some_reset() -> None:
    wires = [forgotten(0, 60 * SECOND, how="fin"), forgotten(1, 60 * SECOND, how="rst")]
    assert states(found(*wires)["silent-drop"].text, "2 connections", "were closed or reset")


def test_a_broker_that_closes_what_is_idle_is_no_device() -> None:
    """connections.max.idle.ms, 10 minutes by default: a FIN when that time is over. A request may
    cross it."""
    own = [working(at, 700 * at, 700 * at + 605, rest=600) for at in range(3)]
    assert found(*own)["idle-close"].severity == "note"
    crossed = [forgotten(5 + at, 600 * SECOND, how="fin") for at in range(3)]
    assert set(found(*own, *crossed)) == {"idle-close"}
    assert not found(*crossed)
    shorter = [working(at, 700 * at, 700 * at + 65, rest=60) for at in range(3)]
    crossed = [forgotten(5 + at, 60 * SECOND, how="fin") for at in range(3)]
    assert set(found(*shorter, *crossed)) == {"idle-close"}
    assert set(found(*crossed)) == {"silent-drop"}


def test_a_broker_that_stops_closes_rested_connections_as_well() -> None:
    rested = [forgotten(number, 60 * SECOND, how="fin") for number in (1, 2)]
    ends = [wire.connection.last_ns for wire in rested]
    assert set(found(*rested)) == {"silent-drop"}
    busy = [
        working(5 + at, 0, (end - START) / SECOND + 0.5, rest=0.1) for at, end in enumerate(ends)
    ]
    assert not found(*rested, *busy)


def test_rests_of_any_length_beyond_the_timeout_are_one_finding() -> None:
    """At several brokers: the device is the same."""
    rests = [245, 300, 900]
    wires = [
        forgotten(number, rest * SECOND, broker=f"10.0.1.{number + 2}")
        for number, rest in enumerate(rests)
    ]
    finding = found(*wires)["silent-drop"]
    assert finding.count == 3
    assert states(finding.text, "10.0.1.2:9092", "10.0.1.3:9092", "10.0.1.4:9092")
    assert states(finding.text, "245 s to 900 s", "Azure Load Balancer", "240 s")


def test_a_device_that_resets_when_its_timeout_is_over() -> None:
    """Azure's can: both sides get the RST, without a request."""
    wires = [working(at, 700 * at, 700 * at + 243, rest=240) for at in range(3)]
    for wire in wires:
        wire.events.pop()
        wire.close("broker", "rst")
    finding = found(*wires)["idle-close"]
    assert states(finding.text, "3 connections", "10.0.1.2:9092", "reset after 240 s", "Azure")
    assert "in between" in finding.advice


TIMES = st.integers(0, 60).map(lambda seconds: seconds * SECOND)


@st.composite
def lines_of(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Connections to three brokers, by when they opened."""
    opened = sorted(draw(st.lists(TIMES, max_size=25)))
    return [
        {
            "connection": number,
            "opened": at,
            "life": (life := draw(TIMES)),
            "ended": at + life if draw(st.booleans()) else None,
            "phase": draw(st.sampled_from(["work", "refused", "no answer", "work"])),
            "requests": draw(st.integers(0, 2)),
            "unanswered": draw(st.integers(0, 1)),
            "answered": at + draw(TIMES) if draw(st.booleans()) else None,
            "handshake": draw(st.sampled_from([None, 5])),
            "end": draw(st.sampled_from(["", "broker fin", "client fin"])),
            "client_id": draw(st.sampled_from(["", "a", "b"])),
            "client_address": draw(st.sampled_from(["10.0.0.1", "10.0.0.2"])) + f":{number}",
            "broker_address": draw(st.sampled_from(["11.0.0.1:9092", "11.0.0.2:9092", "x:1"])),
            "protocol": "kafka",
            "early": draw(st.booleans()),
            "client_bytes": 0,
            "broker_bytes": draw(st.integers(0, 1)),
        }
        for number, at in enumerate(opened)
    ]


def ended_of(outage: outage_times.Outage, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The connections that the broker ended, as a look at all before the outage has them."""
    first = outage.failed[0]
    worked = [
        each
        for each in lines[: lines.index(first)]
        if each["phase"] not in ("refused", "no answer")
    ]
    answered = max((each["answered"] or 0 for each in worked), default=0)
    return [
        each
        for each in worked
        if each["end"].startswith("broker")
        and 0 <= first["opened"] - closed_at(each) <= limit("outage.before")
        and closed_at(each) >= answered - SECOND
    ]


def users_of(outage: outage_times.Outage, lines: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Who was connected around it, as a look at all has them."""
    hosts = {host_of(line["client_address"]) for line in outage.failed}
    ended = {line["connection"] for line in outage.ended}
    return {
        (line["client_id"], host_of(line["client_address"]))
        for line in lines
        if line["client_id"]
        and (
            line["connection"] in ended
            or line["opened"] == outage.end_ns
            or (
                host_of(line["client_address"]) in hosts
                and line["opened"] <= outage.failed[-1]["opened"]
            )
        )
        and ended_at(line) >= outage.begin_ns - limit("outage.before")
    }


@given(lines_of(), st.booleans())
def test_who_used_a_broker_around_its_outages(lines: list[dict[str, Any]], gone: bool) -> None:
    there = outage_times.AtBroker("x:1", lines)
    for outage in outage_times.outages_of(lines, gone=gone):
        assert outage.ended == ended_of(outage, lines)
        assert there.users(outage) == users_of(outage, lines)


@given(lines_of(), st.data())
def test_who_was_served_by_others_meanwhile(
    lines: list[dict[str, Any]], data: st.DataObject
) -> None:
    served = outage_times.AnsweredHosts(lines)
    for _ in range(5):
        host = data.draw(st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3"]))
        broker = data.draw(st.sampled_from(["11.0.0.1:9092", "11.0.0.2:9092"]))
        begin, end = data.draw(TIMES), data.draw(TIMES)
        assert served.meanwhile(host, broker, begin, end) == any(
            host_of(line["client_address"]) == host
            and line["broker_address"] != broker
            and outage_times.works(line)
            and line["opened"] < end
            and (line["answered"] or 0) > begin
            for line in lines
        )


@pytest.mark.parametrize(("rest_ns", "told"), [(7 * SECOND, True), (SECOND, False)])
def test_resets_after_short_rests_one_after_the_other(rest_ns: int, told: bool) -> None:
    wires = [forgotten(number, rest_ns) for number in range(3)]
    assert ("silent-drop" in found(*wires)) == told
    assert "silent-drop" not in found(*wires, forgotten(9, SECOND // 2))


@pytest.mark.parametrize(
    ("back", "other", "severity"),
    [(None, "", "warning"), (10, "", "note"), (None, "Fetch", "warning"), (None, "Vote", "note")],
)
def test_a_controller_that_only_its_brokers_miss(
    back: int | None, other: str, severity: str
) -> None:
    """`other`: what another node answers meanwhile."""
    wire = ended(opened().exchange("BrokerHeartbeat", 1, 1, client="1"), 50, 50)
    later = [] if back is None else [working(3, back, back + 9)]
    if other:
        later.append(opened(4, 5, "10.0.1.9").exchange(other, 1, 1, client="1"))
    last = failed(2, 19 if back is None else 9)
    told = found(wire, failed(1, 3), last, *later)["broker-down"]
    assert told.severity == severity
    assert states(told.text, "Controller 10.0.1.2:9092")
    assert "majority of controllers" in told.advice


@pytest.mark.parametrize(("api", "told"), [("CreateTopics", True), ("Metadata", False)])
def test_requests_that_a_broker_passes_on_to_the_controller(api: str, told: bool) -> None:
    wire = Wire().client(request(api, 7, 1))
    wire.time_ns += 12 * SECOND
    finding = judging.found([wire.close("client")])["unanswered"]
    assert ("controllers run" in finding.advice) == told


def test_a_broker_that_nobody_tried_again_may_be_back() -> None:
    """Clients that know another leader have no reason to."""
    other = Wire(number=3, start_ns=START + 30 * SECOND).client(heartbeat(1))
    told = found(working(0, 0, 2), failed(1, 3), failed(2, 4), other)["broker-down"]
    assert states(told.text, "was down for 2.0 s at least", "no client tried again in 26 s")


@pytest.mark.parametrize("served", [True, False])
def test_a_broker_that_limits_new_connections(served: bool) -> None:
    """A client that does not wait for as long as it is delayed; others of its connections work."""
    reset = Wire().client(request("ApiVersions", 3, 1)).close("broker", "rst")
    wires = [reset]
    if served:
        other = Wire(number=1, start_ns=START + SECOND).client(request("ApiVersions", 3, 1))
        wires.append(other.broker(response("ApiVersions", 3, 1)))
    finding = judging.found(wires)["unanswered"]
    assert ("connection_creation_rate" in finding.advice) == served


REQUEST, RESPONSE = "request-too-large", "response-too-large"


def found_cut(*wires: Wire) -> dict[str, Finding]:
    return judging.found(wires, REQUEST, RESPONSE, "unanswered")


@pytest.mark.parametrize("how", ["rst", "fin"])
@pytest.mark.parametrize("size", [70_000, 5_242_880])
def test_a_request_larger_than_the_broker_takes(size: int, how: str) -> None:
    finding = found_cut(cut_off(0, "broker", size, how))[REQUEST]
    assert states(finding.text, "10.0.1.2:9092", "1 Produce request", "app", "1.0 KB")
    assert "socket.request.max.bytes" in finding.text
    assert f"{size:,} bytes" in finding.advice


def test_many_large_requests_are_one_finding() -> None:
    names = found_cut(*(cut_off(number, "broker", 2_000_000 + number) for number in range(4)))
    assert states(names[REQUEST].text, "4 Produce requests", "up to 2.0 MB")


def test_a_broker_that_stops_has_no_limit() -> None:
    other = working(7, -5, 0.004)
    assert REQUEST not in found_cut(cut_off(0, "broker", 2_000_000), other)


def test_a_response_after_the_end_is_none_of_it() -> None:
    wires = []
    for number in range(3):
        wire = Wire(number=number).client(request("Fetch", 4, 2)).close("client")
        wires.append(wire.broker(struct.pack(">ii", 500_000, 2) + bytes(900)).close("broker"))
    assert RESPONSE not in found_cut(*wires)


def test_responses_larger_than_the_client_takes() -> None:
    names = found_cut(*(cut_off(number, "client", 12_000_000, arrived=900) for number in range(3)))
    finding = names[RESPONSE]
    assert states(finding.text, "app", "3 Fetch responses", "up to 12 MB", "900 B")
    assert "receive.message.max.bytes" in finding.advice


def test_one_reset_during_a_large_response_is_a_note() -> None:
    """The client may have a lower limit, or was killed: the kernel resets what holds unread
    bytes. It says what was seen, and what to check."""
    finding = found_cut(cut_off(0, "client", 12_000_000, arrived=900))[RESPONSE]
    assert (finding.severity, finding.count) == ("note", 1)
    assert states(finding.text, "app reset the connection", "1 Fetch response of 12 MB", "900 B")
    assert states(finding.advice, "killed", "connects again", "receive.message.max.bytes")


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_two_are_a_limit_however_the_client_ends_the_connection(how: str) -> None:
    finding = found_cut(*(cut_off(number, "client", 12_000_000, how) for number in range(2)))[
        RESPONSE
    ]
    assert (finding.severity, finding.count) == ("error", 2)


@pytest.mark.parametrize(
    "wires",
    [
        [cut_off(0, "client", 12_000_000, "fin")],
        [Wire().client(request("Fetch", 4, 2)).close("client") for _ in range(3)],
    ],
    ids=["closed once", "long polls"],
)
def test_what_is_no_limit_of_a_client(wires: list[Wire]) -> None:
    assert RESPONSE not in found_cut(*wires)
