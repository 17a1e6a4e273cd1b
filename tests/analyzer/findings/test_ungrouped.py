"""Readers without a group that ask for one offset again and again, next to those that are well."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.findings import Finding
from tests.analyzer.batches import batch
from tests.analyzer.findings.stating import states
from tests.analyzer.findings.test_handmade import found
from tests.analyzer.wire import START, Wire, request, response

SECOND = 1_000_000_000


def alone(times: int, every: int, *, more: int = 5, value: bytes = b"v") -> Finding | None:
    """A reader without a group that asks for an offset so often, then for another one."""
    wire = Wire()
    for number in range(times + 1):
        asked = 5 if number < times else more
        part = {"partition": 0, "fetch_offset": asked, "partition_max_bytes": 1000}
        part |= {"current_leader_epoch": -1, "log_start_offset": -1}
        data: dict[str, object] = {"partition_index": 0, "error_code": 0, "high_watermark": 25}
        data |= {"last_stable_offset": 25, "log_start_offset": 0, "aborted_transactions": None}
        data |= {"preferred_read_replica": -1, "records": batch([(None, value)], base_offset=asked)}
        wire.time_ns = START + every * number * SECOND
        topics = [{"topic": "orders", "partitions": [part]}]
        wire.client(request("Fetch", 11, number, "job", topics=topics))
        answer = [{"topic": "orders", "partitions": [data]}]
        wire.broker(response("Fetch", 11, number, error_code=0, responses=answer))
    return found([wire]).get("reader-stuck")


def test_a_reader_without_a_group_is_stuck() -> None:
    told = alone(4, 5)
    assert told is not None
    assert told.severity == "error"
    parts = ("job", "stuck at offset 5 of orders-0", "5 times within 20 s", "20 records behind it")
    assert states(told.text, *parts)
    assert ("topic", "orders") in told.entities


@pytest.mark.parametrize(
    ("times", "every", "more"),
    [(1, 20, 5), (4, 2, 5), (4, 5, 6)],
    ids=["a restart", "within seconds", "goes on"],
)
def test_readers_without_a_group_that_are_well(times: int, every: int, more: int) -> None:
    assert alone(times, every, more=more) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [(b"\0\0\0\0\x11avro", True), (b"\0\0\0\0\0\0\0\x11", False), (b'{"a": 1}', False)],
)
def test_the_schema_id_of_what_a_reader_fails_on(value: bytes, said: bool) -> None:
    told = alone(4, 5, value=value)
    assert told is not None
    assert states(told.text, "schema id 17") == said
