"""Filters behind lines are filters of the language, whatever names traffic has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.filter.language import bind
from kafkascope.analyzer.filter.syntax import parse
from kafkascope.tui.screens import evidence

NAMES = st.text(max_size=30)


def test_usual_lines() -> None:
    assert evidence.of_connection({"connection": 17}) == "conn == 17"
    assert (
        evidence.of_client({"client_id": "orders-svc", "client_address": "10.0.0.4"})
        == "client == orders-svc and client.ip == 10.0.0.4"
    )
    assert (
        evidence.of_api(
            {
                "api": "Fetch",
                "api_version": 12,
                "broker_address": "b:9",
                "client_id": "a",
                "client_address": "10.0.0.4",
            }
        )
        == "api == Fetch and version == 12 and client == a and client.ip == 10.0.0.4"
        ' and broker == "b:9"'
    )
    assert (
        evidence.of_topic({"topic": "a.b", "partition": 3}) == 'topic == "a.b" and partition == 3'
    )
    assert evidence.of_titled_client("::1") == "client.ip == ::1"
    rebalance = {"group": "g", "time": 1_700_000_000_123_456_789, "duration": 5_000_000}
    assert (
        evidence.of_rebalance(rebalance) == "group == g and time >= 2023-11-14T22:13:20.123456789Z"
        " and time <= 2023-11-14T22:13:20.128456789Z"
    )


def test_sums_of_many_keys_have_no_filter() -> None:
    assert evidence.of_connection({"connection": "(others)"}) == ""
    assert evidence.of_topic({"topic": "(others)"}) == ""
    assert evidence.of_titled_client("(others)") == ""
    assert evidence.of_group({"group": "(others)"}) == ""


def test_alternatives_are_put_into_parentheses() -> None:
    assert (
        evidence.both("api == Fetch or api == Produce", "", "conn == 1")
        == "(api == Fetch or api == Produce) and conn == 1"
    )


@given(NAMES, NAMES, NAMES, st.integers(0, 2**62), st.none() | st.integers(0, 2**40))
def test_any_name_gives_a_filter_that_can_be_read(client, topic, group, time, spent) -> None:
    lines = [
        evidence.of_titled_client(client),
        evidence.of_topic({"topic": topic, "partition": 1}),
        evidence.of_member({"group": group, "member": client}),
        evidence.of_rebalance({"group": group, "time": time, "duration": spent}),
        evidence.both(evidence.of_group({"group": group}), evidence.of_titled_client(client)),
    ]
    for text in lines:
        if text:
            assert parse(text) is not None
            bind(text)
