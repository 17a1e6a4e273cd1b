"""What findings say that happened, and what to do about it, fits the traffic."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.findings import Finding
from tests.analyzer.findings.stating import states
from tests.analyzer.findings.test_captures import SAMPLES, capture_of, judged
from tests.analyzer.findings.test_handmade import found
from tests.analyzer.wire import CLIENT, Wire, request, response


def of(rule: str, name: str) -> list[Finding]:
    folder = SAMPLES if name == "sasl" else None
    path = capture_of(name) if folder is None else capture_of(name, folder)
    return [finding for finding in judged(path)[0] if finding.name == rule]


def test_denials_are_errors_and_say_what_to_grant() -> None:
    producer, consumer = of("denied", "acl-denied-java")
    assert {producer.severity, consumer.severity} == {"error"}
    topic = ("2 Metadata requests", "orders", "TOPIC_AUTHORIZATION_FAILED")
    cluster = ("19 InitProducerId requests", "CLUSTER_AUTHORIZATION_FAILED")
    assert states(producer.text, "acl-producer", "user alice", "denied", *topic, *cluster)
    assert "WRITE on the topics" in producer.advice
    assert "IDEMPOTENT_WRITE on the cluster" in producer.advice
    assert "READ on the group" in consumer.advice
    assert {("topic", "orders"), ("group", "acl-group")} <= set(consumer.entities)
    assert all("retry" not in finding.advice for finding in (producer, consumer))


def test_all_fenced_members_are_counted_and_those_who_took_over_are_named() -> None:
    (finding,) = of("static-conflict", "static-conflict-java")
    assert finding.count == 2
    first, second = "stat-1 (instance pod-1) by stat-2", "stat-2 (instance pod-1) by stat-3"
    assert states(finding.text, "2 members", "group stat", "fenced", first, second)
    assert ("instance", "pod-1") in finding.entities


@pytest.mark.parametrize(("hosts", "named"), [(2, "app at 10.0.0.9"), (1, "app (member-2)")])
def test_who_took_over_is_told_apart_from_others_of_its_name(hosts: int, named: str) -> None:
    wires = []
    for number in (1, 2):
        wire = Wire(number=number, start_ns=number * 10_000_000_000)
        if number == 2 and hosts == 2:
            wire.connection.a = CLIENT._replace(host="10.0.0.9")
        joined = {
            "group_id": "g",
            "member_id": "",
            "group_instance_id": "pod-1",
            "protocol_type": "consumer",
        }
        member = {"error_code": 0, "member_id": f"member-{number}", "generation_id": 1}
        wire.client(request("JoinGroup", 5, 1, **joined))
        wire.broker(response("JoinGroup", 5, 1, **member))
        wires.append(wire)
    first = wires[0]
    first.time_ns = wires[1].time_ns + 1_000_000_000
    beat = {"group_id": "g", "member_id": "member-1", "generation_id": 1}
    first.client(request("Heartbeat", 3, 2, **beat))
    first.broker(response("Heartbeat", 3, 2, error_code=82))
    finding = found(wires)["static-conflict"]
    assert finding.text.endswith(f"app (instance pod-1) by {named}")


def test_throttling_links_to_the_error_of_topic_changes_only_there() -> None:
    assert {finding.link for finding in of("throttled", "throttled")} == {""}
    wire = Wire()
    for number in range(1, 4):
        wire.client(request("CreateTopics", 6, number))
        wire.broker(response("CreateTopics", 6, number, throttle_time_ms=800))
    assert found([wire])["throttled"].link == "THROTTLING_QUOTA_EXCEEDED"


def test_connections_that_brokers_end_are_not_for_the_client_to_keep() -> None:
    """kafka-python with a wrong password on half of its connections."""
    (finding,) = of("connection-churn", "sasl")
    assert finding.severity == "note"
    assert "brokers closed or refused 10 of them" in finding.text
    assert "one client object" not in finding.advice
    (own,) = of("apiversions-loop", "short-connections")
    assert own.severity == "warning"
    assert "probe" in own.advice
