"""What ends: SASL sessions that expire, topics that are deleted; and what only looks like it."""

from base64 import b64encode

import pytest

from kafkascope.analyzer.findings import Finding
from kafkascope.captures.model import Chunk
from tests.analyzer.findings.judging import found, states
from tests.analyzer.findings.sides_data import produced
from tests.kit.batches import batch
from tests.kit.wire import MS, SECOND, START, Wire, produce, request, response


def authenticating(wire: Wire, number: int, lifetime_ms: int) -> None:
    wire.exchange("SaslHandshake", 1, number, {"mechanisms": ["PLAIN"]}, mechanism="PLAIN")
    wire.client(request("SaslAuthenticate", 1, number + 1, auth_bytes=b"\0alice\0secret"))
    wire.broker(response("SaslAuthenticate", 1, number + 1, session_lifetime_ms=lifetime_ms))


@pytest.mark.parametrize(
    ("code", "offered", "advice"),
    [(34, [], "security.protocol"), (33, ["PLAIN"], "sasl.mechanism"), (33, [], "sasl.mechanism")],
)
def test_a_listener_without_sasl(code: int, offered: list[str], advice: str) -> None:
    wire = Wire().client(request("SaslHandshake", 1, 1, mechanism="SCRAM-SHA-256"))
    wire.broker(response("SaslHandshake", 1, 1, error_code=code, mechanisms=offered))
    finding = found([wire])["sasl-mechanism"]
    assert ("no SASL" in finding.text) == (code == 34)
    assert f"Set {advice}" in finding.advice


@pytest.mark.parametrize("acknowledged", [True, False], ids=["as RFC 7628 says", "kafkajs"])
@pytest.mark.parametrize("expired", [60, -60])
def test_a_token_that_a_broker_refuses(acknowledged: bool, expired: int) -> None:
    """The broker refuses it without an error, which comes with the acknowledgement."""
    wire = Wire().client(request("SaslHandshake", 1, 1, mechanism="OAUTHBEARER"))
    wire.broker(response("SaslHandshake", 1, 1, mechanisms=["OAUTHBEARER"]))
    claims = b64encode(b'{"sub":"app","exp":%d}' % (wire.time_ns // SECOND - expired))
    token = b"n,,\x01auth=Bearer e30." + claims + b".\x01\x01"
    wire.client(request("SaslAuthenticate", 1, 2, auth_bytes=token))
    wire.broker(response("SaslAuthenticate", 1, 2, auth_bytes=b'{"status":"invalid_token"}'))
    if acknowledged:
        wire.client(request("SaslAuthenticate", 1, 3, auth_bytes=b"\x01"))
        refusal = {"error_code": 58, "error_message": '{"status":"invalid_token"}'}
        wire.broker(response("SaslAuthenticate", 1, 3, **refusal))
    finding = found([wire])["sasl-failed"]
    assert states(finding.text, "OAUTHBEARER failed once", "invalid_token")
    assert ("the token had expired 60 s before" in finding.text) == (expired > 0)
    assert ("new token" in finding.advice) == (expired > 0)


def session(rest_ns: int, *, lifetime_ms: int = 4000, again: bool = False) -> Finding | None:
    """A client that works, rests, and whose next request the broker answers by closing."""
    wire = Wire()
    authenticating(wire, 1, lifetime_ms)
    wire.exchange("Metadata", 8, 3)
    wire.time_ns += rest_ns
    if again:
        authenticating(wire, 4, lifetime_ms)
    wire.client(request("Metadata", 8, 6)).close("broker")
    return found([wire]).get("session-expired")


def test_a_session_that_expired() -> None:
    finding = session(5 * SECOND)
    assert states(finding.text, "SASL session expired", "4.0 s")


@pytest.mark.parametrize(
    "finding",
    [
        session(3 * SECOND),
        session(5 * SECOND, lifetime_ms=0),
        session(5 * SECOND, again=True),
    ],
    ids=["closed before", "no limit", "authenticated again"],
)
def test_sessions_that_had_not_expired(finding: Finding | None) -> None:
    assert finding is None


def topic(refused: int, *, deleted: bool = False, works_again: bool = False) -> Finding | None:
    wire = Wire()
    produced(wire, 1, 0)
    if deleted:
        wire.client(request("DeleteTopics", 4, 2, "admin", topic_names=["t"]))
        wire.broker(response("DeleteTopics", 4, 2, responses=[{"name": "t", "error_code": 0}]))
    for number in range(3, 3 + refused):
        wire.time_ns += SECOND
        produced(wire, number, 3)
    if works_again:
        produced(wire, 900, 0)
    return found([wire]).get("topic-deleted")


def test_a_topic_that_is_no_longer_there() -> None:
    finding = topic(3)
    assert finding.severity == "error"
    assert states(finding.text, "Topic t", "no longer exists")
    assert ("topic", "t") in finding.entities


def test_a_topic_that_is_there_again() -> None:
    assert topic(9, works_again=True) is None


def test_a_deletion_that_is_seen() -> None:
    finding = topic(9, deleted=True)
    assert (finding.severity, "was deleted by" in finding.text) == ("error", True)
    short = topic(1, deleted=True)
    assert short.severity == "note"


def looked_up(wire: Wire, number: int, topic_id: int) -> None:
    topic = {"name": "t", "topic_id": bytes(15) + bytes((topic_id,))}
    topics = [topic | {"partitions": [{"leader_id": 1}]}]
    wire.exchange("Metadata", 12, number, {"topics": topics}, topics=[{"name": "t"}])


@pytest.mark.parametrize(
    ("ids", "refused", "severity"),
    [((7, 9), 3, "error"), ((7, 9), 2, "note"), ((7, 7), 3, None), ((7, 9), 0, None)],
)
def test_a_topic_that_was_created_again(
    ids: tuple[int, int], refused: int, severity: str | None
) -> None:
    """Its id shows it, however short the time in between."""
    wire = Wire()
    looked_up(wire, 1, ids[0])
    produced(wire, 2, 0)
    for number in range(3, 3 + refused):
        produced(wire, number, 3)
    looked_up(wire, 10, ids[1])
    produced(wire, 11, 0)
    finding = found([wire]).get("topic-deleted")
    assert (finding.severity if finding is not None else None) == severity
    assert finding is None or "deleted and created again" in finding.text


def producing(
    count: int, pause_ns: int, pairs: int = 1, per_request: int = 1, port: int = 9092
) -> Wire:
    """`pairs` requests are in flight at once; `pause_ns` after their responses the next follow."""
    wire = Wire(port=port, number=port)
    number = 0
    while number < count:
        numbers = range(number + 1, number + pairs + 1)
        for each in numbers:
            records = batch([(None, b"v")] * per_request)
            wire.client(produce(each, records=records))
        for each in numbers:
            wire.broker(response("Produce", 7, each))
        number += pairs
        wire.time_ns += pause_ns
    assert any(isinstance(event, Chunk) for event in wire.events)
    return wire


def tiny(*wires: Wire) -> Finding | None:
    return found(wires).get("tiny-batches")


def test_a_producer_that_waits_for_each_response() -> None:
    finding = tiny(producing(300, pause_ns=0))
    assert states(finding.text, "median of 1 record", "99 %")


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"pause_ns": 0, "per_request": 2}, False),
        ({"pause_ns": 7 * MS, "pairs": 5}, True),
        ({"pause_ns": 7 * MS, "pairs": 2}, False),
    ],
    ids=["two records", "in flight together", "few in flight"],
)
def test_who_waits_for_a_response(how: dict[str, int], told: bool) -> None:
    assert (tiny(producing(300, **how)) is not None) == told


def test_a_producer_that_waits_for_one_broker_and_the_other_in_turn() -> None:
    one, other = producing(200, pause_ns=2 * MS), producing(200, pause_ns=2 * MS, port=9093)
    assert tiny(one, other) is not None


MINUTE_MS = 60_000


def clocks(*offsets_ms: int, error: int = 0) -> dict[str, Finding]:
    """One client for each offset of its clock from the capture's."""
    wires = []
    for number, offset in enumerate(offsets_ms, 1):
        wire = Wire(number=number)
        records = batch([(None, b"v")], time_ms=START // 1_000_000 + offset)
        wires.append(wire.write(1, records, client=f"app-{number}", error_code=error))
    return found(wires)


def test_a_clock_that_is_ahead_of_those_of_others() -> None:
    finding = clocks(0, 11 * MINUTE_MS)["clock-skew"]
    assert states(finding.text, "app-2", "660 s ahead of")
    assert finding.severity == "warning"


def test_refused_timestamps_are_an_error_that_explains_others() -> None:
    finding = clocks(90 * MINUTE_MS, error=32)["clock-skew"]
    assert finding.severity == "error"
    assert "1 request for t was refused with INVALID_TIMESTAMP" in finding.text


DAY_MS = 24 * 60 * MINUTE_MS


@pytest.mark.parametrize("days", [2, 400])
def test_a_single_client_far_in_the_future(days: int) -> None:
    finding = clocks(days * DAY_MS)["clock-skew"]
    assert states(finding.text, "app-1", f"{days} days ahead of", "retention.ms")


@pytest.mark.parametrize("others", [(), (0,)])
@pytest.mark.parametrize("days", [8, 400, 9_000])
def test_records_that_retention_deletes_at_once(days: int, others: tuple[int, ...]) -> None:
    finding = clocks(-days * DAY_MS, *others)["clock-skew"]
    assert states(finding.text, "1 Produce request", "app-1", "t", f"{days:,} days old", "7 days")
    assert finding.severity == ("warning" if days > 5_000 else "note")


@pytest.mark.parametrize(
    ("factor", "unit"), [(0.001, "seconds"), (1_000, "microseconds"), (1_000_000, "nanoseconds")]
)
def test_timestamps_in_another_unit(factor: float, unit: str) -> None:
    now = START // 1_000_000
    assert f"as if they were {unit}" in clocks(int(now * factor) - now)["clock-skew"].text


@pytest.mark.parametrize("offset_ms", [90 * MINUTE_MS, -400 * DAY_MS, 400 * DAY_MS])
def test_a_capture_whose_own_clock_is_wrong(offset_ms: int) -> None:
    assert "clock-skew" not in clocks(offset_ms, offset_ms)
    assert "clock-skew" not in clocks(0, -90 * MINUTE_MS), "records of the past are usual"
