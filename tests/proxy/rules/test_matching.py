"""A rule that can never fire is refused; any other has frames on which it does."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import blank
from kafkascope.analyzer.filter.fields import FIELDS, Field
from kafkascope.analyzer.filter.language import bind, compile_filter
from kafkascope.captures.model import Endpoint
from kafkascope.proxy.cli import proxy as command
from kafkascope.proxy.control.control import Control
from kafkascope.proxy.control.steering import hold_rule
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.relay.connection import Connection
from kafkascope.proxy.rules.faults import FAULTS, FaultError, load_rules, parse_fault
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.matching import NEVER, RESPONSE_FIELDS, refusal
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT
from tests.kit.proxy import ARGUMENTS, Always, Bench, request, response
from tests.kit.samples import SAMPLES

EACH = 12
"""Exchanges of one version of an API in one sample."""
SIDES = {"request": CLIENT, "response": BROKER}


@cache
def seen() -> tuple[tuple[InterceptedFrame, ...], tuple[InterceptedFrame, ...]]:
    """Requests and responses of the samples, as rules see them; and what the samples lack."""
    spies = [Always(CLIENT), Always(BROKER)]
    bench = Bench(*spies, rewrite=False)
    number = 0

    def pass_by(asked: bytes, answered: bytes, client: Endpoint, broker: Endpoint) -> None:
        nonlocal number
        number += 1
        relay = Connection(bench.hub, number, client, broker)
        relay.context.via = "10.0.1.9:443" if number % 2 else ""
        relay.feed(CLIENT, asked, number * 1_000_000)
        relay.feed(BROKER, answered, number * 1_000_000 + 7_000 * number)

    for path in sorted(SAMPLES.glob("*.pcap*")):
        had: Counter[tuple[Any, Any]] = Counter()
        with open_capture([path]) as capture:
            for exchange in capture.exchanges():
                asked, answered = exchange.request, exchange.response
                kind = (exchange.api_key, exchange.api_version)
                if asked is None or answered is None or exchange.api_key == 17:
                    continue
                had[kind] += 1
                if had[kind] <= EACH:
                    frames = (
                        f.size.to_bytes(4, "big") + f.payload for f in (asked.frame, answered.frame)
                    )
                    pass_by(*frames, exchange.client, exchange.broker)
    ends = Endpoint("10.0.0.1", 5000), Endpoint("10.0.0.2", 9092)
    pass_by(request(12, 4), response(12, 4, {"throttle_time_ms": 5}), *ends)
    return tuple(spies[0].seen), tuple(spies[1].seen)


def values(field: Field, frame: InterceptedFrame) -> tuple[Any, ...]:
    if field.read is not None:
        return field.read(frame.exchange)
    return field.get(frame.row)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_each_field_is_told_by_some_frames_or_refused(field: Field, side: str) -> None:
    number = SIDES[side]
    why = refusal(bind(field.name), number)
    unknown = field.name in NEVER or (number == CLIENT and field.name in RESPONSE_FIELDS)
    assert (why is not None) == unknown
    if why is not None:
        assert field.name in why
        with pytest.raises(FaultError, match="would never act"):
            parse_fault(f"{field.name} -> delay 1s on {side}")
        return
    if field.told_by == "schemas":  # what they tell: tests/proxy/engine/test_decoded_rules.py
        assert parse_fault(f"{field.name} -> delay 1s on {side}").side == number
        return
    found = {values(field, frame) for frame in seen()[number]}
    assert len(found) > 1, found  # it tells some frames from others
    assert found - {()}
    assert parse_fault(f"{field.name} -> delay 1s on {side}").side == number


@pytest.mark.parametrize(
    "text",
    [
        "marked -> delay 1s",
        "not marked -> delay 1s",
        "finding == late-answer -> drop",
        "finding.severity == error or api == Fetch -> drop",
        "undecoded -> drop",
        "undecoded == surplus -> reset",
        "comment contains x -> delay 1s",
        "state == lost -> delay 1s on response",
        "number == 5 -> delay 1s",
        "user == alice -> drop",
        "latency > 1s -> delay 1s on request",
        "error == 6 -> error 7",
        "response.throttle_time_ms > 0 -> black-hole on request",
        "api == Fetch and records > 0 -> delay 1s on request",
        'api == Fetch and record.key == "x" -> error 6',
        "api == Heartbeat and topic == orders -> drop",
        "api == Heartbeat and record.value.count > 1 -> delay 1ms",
        "api == Fetch and schema.id == 7 -> delay 1ms on request",
        "api == Produce and request.max_wait_ms > 5 -> delay 1s",
        "api == Fetch and body.session_timeout_ms > 5 -> delay 1s",
        "api == Produce and version < 3 and txn == x -> delay 1s",
        "api == Fetch and api == Produce -> drop",
        "api == Fetch and version < 3 and version > 5 -> drop",
        "api == Fetch -> stale-metadata",
        "api == Metadata -> corrupt-crc",
        "api == Fetch -> corrupt-crc on request",
        "api == ApiVersions -> error 35 at partition",
        "api == Heartbeat -> stamp 6 at topic",
        "acks == 0 -> stamp 6",
        "api == Produce and acks in {0} -> delay 1s on response",
        "request.acks == 0 -> set response.throttle_time_ms = 3",
        "body.acks == 0 -> drop on response",
    ],
)
def test_what_can_never_fire_is_refused_wherever_it_is_given(text: str, tmp_path: Path) -> None:
    with pytest.raises(FaultError, match="would never act") as refused:
        parse_fault(text)
    assert "\n" not in str(refused.value)
    done = CliRunner().invoke(command, ["--upstream", "b", "--fault", text])
    assert done.exit_code == 2
    assert "would never act" in done.output
    when, _, do = text.rpartition(" -> ")
    path = tmp_path / "rules.toml"
    path.write_text(f"[[fault]]\nwhen = '{when}'\ndo = '{do}'\n")
    with pytest.raises(FaultError, match=r"fault 1: .* would never act"):
        load_rules(path)
    control = Control(KafkaProxy("127.0.0.1:1"))
    with pytest.raises(FaultError, match="would never act"):
        control.steering.do({"do": "fault", "rule": text})
    assert len(control.proxy.rules) == 0


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("api == Fetch and records > 0", BROKER),
        ("api == Produce and records > 0", CLIENT),
        ('api == Fetch and record.value contains "x"', BROKER),
        ("api == Fetch and schema.id == 7", BROKER),
        ("latency > 1s", BROKER),
        ("response.brokers.port == 9092", BROKER),
        ("api == Heartbeat", CLIENT),
        ("api == 1234", CLIENT),
        ("api == Fetch and version > 99", CLIENT),
        ("", CLIENT),
        ('"orders"', CLIENT),
    ],
)
def test_a_rule_looks_where_there_is_something_to_see(text: str, side: int) -> None:
    assert parse_fault(f"{text} -> delay 1s").side == side
    rule = hold_rule(text)
    assert (rule.side, rule.name) == (side, f"hold {('request', 'response')[side]}")


@pytest.mark.parametrize(
    ("text", "side"),
    [
        # A Produce with acks 0 has no response: `drop` of one never came.
        ("acks == 0 -> drop", CLIENT),
        ("api == Produce and acks == 0 -> truncate 10", CLIENT),
        ("acks in {-1, 0} -> drop", BROKER),
        ("acks == 5 -> drop", BROKER),
        ("acks <= 0 -> stamp 6", BROKER),
        ("not acks == 0 -> drop", BROKER),
    ],
)
def test_a_rule_acts_where_frames_come(text: str, side: int) -> None:
    assert parse_fault(text).side == side


@pytest.mark.parametrize("text", ["marked", "finding == x", "undecoded", "state == open"])
def test_nothing_is_held_by_what_nobody_knows(text: str) -> None:
    with pytest.raises(FaultError, match="would never act"):
        hold_rule(text)
    done = CliRunner().invoke(command, ["--upstream", "b", "--hold", text])
    assert done.exit_code == 2
    assert "would never act" in done.output


@pytest.mark.parametrize("word", FAULTS)
def test_every_action_without_a_filter_can_act(word: str) -> None:
    assert parse_fault(f"-> {word} {ARGUMENTS.get(word, '')}")


NUMBERS = {"acks": (-1, 0, 1), "correlation_id": (0, 1, 2, 3)}
CLIENTS = (None, "a", "b", "c")
TESTS = [
    *(f"acks {sign} {n}" for sign in ("==", "!=", "<", ">=") for n in NUMBERS["acks"]),
    *(f"correlation_id {sign} {n}" for sign in ("==", "<=", ">") for n in (1, 2)),
    *(f"client {sign} {name}" for sign in ("==", "!=") for name in "ab"),
    *(f"records {sign} 3" for sign in ("==", "<", ">=")),
    *(
        "records",
        "not records",
        "acks in {-1, 1}",
        "correlation_id in {1..2}",
        "client in {a, b}",
        "client",
        "not client",
    ),
]


@given(st.lists(st.tuples(st.sampled_from(TESTS), st.booleans()), min_size=2, max_size=5))
@settings(max_examples=150, deadline=None)
def test_a_rule_is_refused_when_its_tests_exclude_each_other(terms: list[tuple[str, bool]]) -> None:
    """Every request of the domain is tried: some match exactly where the rule is taken. That a
    field cannot be absent is nothing that rules know."""
    text = "api == Produce and " + " and ".join(
        term if holds else f"not ({term})" for term, holds in terms
    )
    matches = compile_filter(text)
    found = any(
        matches(
            blank(
                api_key=0,
                api_version=9,
                acks=acks,
                correlation_id=number,
                client_id=name,
                records=records,
            )
        )
        for acks in (None, -2, *NUMBERS["acks"], 2)
        for number in (None, *NUMBERS["correlation_id"], 4)
        for name in CLIENTS
        for records in (None, 0, 2, 3, 4)
    )
    why = refusal(bind(text), CLIENT)
    assert (why is None) == found, why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("acks == 1 and acks == 2", "its conditions on acks contradict each other"),
        ("client == a and client == b", "its conditions on client contradict each other"),
        (
            "request.bytes > 1KB and request.bytes < 100",
            "its conditions on request.bytes contradict",
        ),
        ("api == Produce and api == Fetch", "no version of an API matches"),
    ],
)
def test_a_rule_that_excludes_itself_is_refused(text: str, why: str) -> None:
    with pytest.raises(FaultError, match=why):
        parse_fault(f"{text} -> delay 1s")
    with pytest.raises(FaultError, match=why):
        hold_rule(text)
