"""Which batches that were sent again may be in the log twice: those that were refused cannot."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from tests.analyzer.findings.test_captures import capture_of, judged

PRODUCE = 0
AUTHENTICATE = 36

Pairs = list[tuple[Row, Exchange]]


def rules(pairs: Pairs) -> set[str]:
    found = Findings(["batch-twice"])
    for row, exchange in pairs:
        found.add(ExchangeBatch.of(row, exchange))
    return {finding.name for finding in found.reported()}


def without(pairs: Pairs, *numbers: int) -> Pairs:
    return [(row, exchange) for row, exchange in pairs if row.number not in numbers]


@pytest.mark.parametrize(
    "name",
    [
        "client-too-old-producer-kafkapython",  # it takes no Produce v2, and closed
        "sasl-expired-aiokafka",  # it closed the connection when the SASL session had expired
        "moved-producer",  # NOT_LEADER_OR_FOLLOWER, then nothing until the capture ends
    ],
)
def test_what_a_broker_refused_is_not_there_twice(name: str) -> None:
    findings, pairs = judged(capture_of(name))
    batches = [
        (*outcome[:2], blob)
        for row, exchange in pairs
        if row.api_key == PRODUCE
        for outcome, parts in ExchangeBatch.of(row, exchange).parts.items()
        for blob in parts.blobs
    ]
    assert len(set(batches)) < len(batches), "nothing was sent again"
    assert "batch-twice" not in {finding.name for finding in findings}


def test_offsets_without_a_hole_prove_that_there_is_one_copy() -> None:
    _, pairs = judged(capture_of("sasl-expired-aiokafka"))
    unknown = [(row, exchange) for row, exchange in pairs if row.api_key != AUTHENTICATE]
    assert not rules(unknown)
    # Of each partition, the answer before the batch that was sent again.
    assert rules(without(unknown, 10, 17)) == {"batch-twice"}
    # With the session's lifetime there is nothing to prove.
    assert not rules(without(pairs, 10, 17))


def test_a_hole_before_the_second_copy_leaves_it_open() -> None:
    """Number 17 was given offset 85, and number 23, a second try, 86: without the answer to the one
    nobody knows what is at 85."""
    _, pairs = judged(capture_of("sasl-expired-aiokafka"))
    produced = [(row, exchange) for row, exchange in pairs if row.api_key == PRODUCE]
    (lost,) = (row for row, _ in produced if row.number == 18)
    assert lost.state == "lost"
    assert not rules(produced)
    assert rules(without(produced, 17)) == {"batch-twice"}
    assert rules(without(produced, 9)) == set()


def test_the_order_and_the_division_of_a_capture_do_not_matter() -> None:
    _, pairs = judged(capture_of("sasl-expired-aiokafka"))
    parts = [pairs[::2], pairs[1::2]]
    whole = Findings(["batch-twice"])
    for part in reversed(parts):
        one = Findings(["batch-twice"])
        for row, exchange in reversed(part):
            one.add(ExchangeBatch.of(row, exchange))
        whole.merge(Findings().load(one.dump()))
    assert not whole.reported()
