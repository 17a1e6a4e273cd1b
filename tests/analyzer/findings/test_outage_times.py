"""What is known of outages without a look at all connections, held against such a look."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.findings.outage_times import (
    AnsweredHosts,
    AtBroker,
    Outage,
    outages_of,
    works,
)
from kafkascope.analyzer.findings.rules import SECOND, limit
from kafkascope.analyzer.findings.view import closed_at, ended_at
from kafkascope.analyzer.identity import host_of

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


def ended_of(outage: Outage, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
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


def users_of(outage: Outage, lines: list[dict[str, Any]]) -> set[tuple[str, str]]:
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
    there = AtBroker("x:1", lines)
    for outage in outages_of(lines, gone=gone):
        assert outage.ended == ended_of(outage, lines)
        assert there.users(outage) == users_of(outage, lines)


@given(lines_of(), st.data())
def test_who_was_served_by_others_meanwhile(
    lines: list[dict[str, Any]], data: st.DataObject
) -> None:
    served = AnsweredHosts(lines)
    for _ in range(5):
        host = data.draw(st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3"]))
        broker = data.draw(st.sampled_from(["11.0.0.1:9092", "11.0.0.2:9092"]))
        begin, end = data.draw(TIMES), data.draw(TIMES)
        assert served.meanwhile(host, broker, begin, end) == any(
            host_of(line["client_address"]) == host
            and line["broker_address"] != broker
            and works(line)
            and line["opened"] < end
            and (line["answered"] or 0) > begin
            for line in lines
        )
