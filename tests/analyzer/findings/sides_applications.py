"""Both sides of the limits of topics between applications."""

from __future__ import annotations

from tests.analyzer.findings.judging import found
from tests.analyzer.findings.sides import Side, at, wire_of
from tests.kit.batches import batch
from tests.kit.wire import MS, SECOND, Wire, request, response


def writes(wire: Wire, topic: str, time_ns: int, number: int, who: str = "writer") -> None:
    records = batch([(None, b"v")])
    data = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    at(wire, time_ns + MS).client(request("Produce", 7, number, who, topic_data=data))
    part = {"index": 0, "error_code": 0, "base_offset": number}
    part |= {"log_start_offset": 0}
    answer = [{"name": topic, "partition_responses": [part]}]
    wire.broker(response("Produce", 7, number, responses=answer))


def reads(wire: Wire, topic: str, time_ns: int, number: int) -> None:
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    part |= {}
    topics = [{"topic": topic, "partitions": [part]}]
    at(wire, time_ns + MS).client(request("Fetch", 11, number, "reader", topics=topics))
    data = {"partition_index": 0, "high_watermark": 9, "last_stable_offset": 9}
    data |= {"log_start_offset": 0, "aborted_transactions": None}
    data |= {"records": batch([(None, b"v")])}
    answer = [{"topic": topic, "partitions": [data]}]
    wire.broker(response("Fetch", 11, number, error_code=0, responses=answer))


def onesided(rule: str, span_ns: int) -> bool:
    """A topic with one side only, so long before the end of a capture that shows both sides of
    another one."""
    writer, reader = wire_of(0), wire_of(1)
    if rule == "topic-unread":
        writes(writer, "lonely", 0, 1)
    else:
        reads(reader, "lonely", 0, 1)
    writes(writer, "orders", span_ns // 2, 2)
    reads(reader, "orders", span_ns - MS, 2)  # the response comes a millisecond later
    return rule in found([writer, reader], rule)


def misspelled(letters: int) -> bool:
    """A topic of so many letters, and one without its last letter that nobody reads."""
    name = "abcdefghijk"[: letters + 1]
    writer, reader = wire_of(0), wire_of(1)
    writes(writer, name[:-1], 0, 1)
    writes(writer, name, SECOND, 2)
    reads(reader, name, 2 * SECOND, 1)
    return "topic-names-alike" in found([writer, reader], "topic-names-alike")


SIDES: dict[tuple[str, ...], Side] = {
    (rule, "map.span"): Side(
        lambda n, rule=rule: onesided(rule, n),  # type: ignore[misc]
        10 * SECOND - 1,
        10 * SECOND,
    )
    for rule in ("topic-unread", "topic-unwritten")
} | {("topic-names-alike", "map.letters"): Side(misspelled, 5, 6)}
