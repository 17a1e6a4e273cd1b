"""Topics between applications: which names are alike, and what is no reason to say anything."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.findings.applications import similar_pairs
from tests.analyzer.findings.sides import SECOND, found, wire_of
from tests.analyzer.findings.sides_applications import reads, writes
from tests.analyzer.findings.test_captures import capture_of, judged


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("orders", "Orders"), ("a.b", "a_b"), ("Page-Views", "page.views")),
        *(("metrics", "metrcis"), ("invoices", "invoice"), ("payments", "paymants")),
        ("customer-events", "customers-events"),
    ],
)
def test_names_that_differ_by_a_typo_are_alike(one: str, other: str) -> None:
    assert list(similar_pairs(sorted([one, other, "something-else"]))) == [
        tuple(sorted([one, other]))
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("orders-1", "orders-2"), ("orders-v1", "orders-v12"), ("shard-a", "shard-b")),
        *(("eu.orders", "us.orders"), ("in", "on"), ("orders", "invoices"), ("logs", "logs2")),
    ],
)
def test_numbered_and_short_names_are_not(one: str, other: str) -> None:
    assert not list(similar_pairs(sorted([one, other])))


def test_many_names_take_no_time() -> None:
    names = [f"{'x' * 200}{number:04}" for number in range(1_000)]
    assert not list(similar_pairs(names))


def test_the_capture_says_who_misspelled() -> None:
    findings, _ = judged(capture_of("topic-names-alike"))
    rules = ("topic-unread", "topic-unwritten", "shared-group", "topic-names-alike")
    told = {each.text: each.severity for each in findings if each.name in rules}
    assert told == {
        "Topics Metrics and metrics in this capture differ by case only": "note",
        "Topics metrcis and metrics in this capture differ by one letter only": "note",
        "1 topic was written, but not read in this capture: metrcis": "chat",
    }


def test_topics_of_kafka_and_streams_are_not_reported() -> None:
    writer, reader = wire_of(0), wire_of(1)
    for number, topic in enumerate(("__consumer_offsets", "app-store-changelog", "_schemas")):
        writes(writer, topic, number, number)
    writes(writer, "orders", 20 * SECOND, 9)
    reads(reader, "orders", 30 * SECOND, 9)
    assert not found([writer, reader], "topic-unread")


def test_a_capture_of_one_side_says_nothing() -> None:
    writer = wire_of(0)
    writes(writer, "orders", 0, 1)
    writes(writer, "orders", 60 * SECOND, 2)
    assert not found([writer], "topic-unread")


def test_applications_of_one_library_are_a_chat() -> None:
    (shared,) = [
        each for each in judged(capture_of("expired-member"))[0] if each.name == "shared-group"
    ]
    assert shared.severity == "chat"
    assert "2 applications in this capture: killed, survivor" in shared.text
