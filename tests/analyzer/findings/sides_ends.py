"""Both sides of the limits of open transactions, reset positions, and outcomes of clients."""

from fractions import Fraction
from typing import Any

from tests.analyzer.findings.judging import (
    Side,
    ask,
    at,
    found,
    least,
    most,
    outcome_of,
    seconds,
    severity,
    wire_of,
)
from tests.analyzer.findings.sides_groups import Readers
from tests.kit.members import Seconds
from tests.kit.wire import MS, SECOND, START, Wire, beat, heartbeat


def at_stable(*ends: tuple[Seconds, int, int]) -> list[Wire]:
    """A reader that gets nothing at the last stable offset: (second, stable, high) of each."""
    wire, other = Wire(), Wire(number=1)
    for number, (second, stable, high) in enumerate(ends, 1):
        wire.time_ns = other.time_ns = START + int(second * SECOND)
        marks = {"last_stable_offset": stable, "high_watermark": high}
        wire.fetch(number, stable, topic="t", asked={"isolation_level": 1}, **marks)
        other.exchange("Heartbeat", 4, number, group_id="g", member_id="m", generation_id=1)
    return [wire, other]


def add_partitions(wire: Wire, number: int, error: int = 0) -> None:
    """Add t-0 to transaction x of producer 7."""
    who = {"transactional_id": "x", "producer_id": 7, "producer_epoch": 0}
    asked: dict[str, Any] = {f"v3_and_below_{name}": value for name, value in who.items()}
    asked["v3_and_below_topics"] = [{"name": "t", "partitions": [0]}]
    parts = [{"partition_index": 0, "partition_error_code": error}]
    answer = {"results_by_topic_v3_and_below": [{"name": "t", "results_by_partition": parts}]}
    wire.exchange("AddPartitionsToTxn", 3, number, answer, **asked)


def open_for(age_ns: int) -> str | None:
    """How bad a transaction is whose timeout nobody saw, so long before the end of the capture."""
    wire, other = wire_of(0), wire_of(1)
    add_partitions(at(wire, SECOND), 1)
    ask(other, 1, SECOND, SECOND + age_ns)
    return severity([wire, other], "transaction-hangs")


def held_back(length_ns: int) -> list[Wire]:
    """A reader that waits for so long at the last stable offset."""
    return at_stable((0, 10, 20), (4, 20, 30), (4 + seconds(length_ns), 20, 50))


def stops(rule: str, length_ns: int, *, gone: bool = True) -> bool:
    """A reader whose offset is refused, so long before the end of the capture; it is `gone` then,
    or only does not poll."""
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.start("a", 1, 30)
    if rule == "retention-overtook":
        group.fetch("a", 2, 30, 10)
    refused = {"error_code": 1, "high_watermark": -1, "log_start_offset": -1}
    group.list_end("b", Fraction(5, 2), 60, stamp=-2)
    group.fetch("a", 3, 40, 0, **refused)
    # Heartbeats of a hundredth of a second; the refused request came behind one.
    group.beat("a", 3 + seconds(MS + length_ns), 1)
    if gone:
        group.wires["a"].close("client")
    return "did not continue" in found(group.wires.values(), rule)[rule].text


def left(after_ns: int) -> bool:
    """A client that ends so long after an error."""
    wire = Wire()
    at(wire, SECOND).client(heartbeat(1)).broker(beat(1, 25))
    at(wire, SECOND + after_ns).client(heartbeat(2)).broker(beat(2))
    wire.connection.last_ns = wire.time_ns
    return "right after UNKNOWN_MEMBER_ID" in outcome_of([wire.close("client")], "app").reason


def vanished(silent_ns: int) -> bool:
    """A client that is not heard of for so long before the end of the capture."""
    wire, other = wire_of(0), wire_of(1)
    at(wire, SECOND).client(heartbeat(1)).broker(beat(1))
    ask(other, 1, SECOND, SECOND + MS)
    ask(other, 2, SECOND + silent_ns - MS, SECOND + silent_ns)
    return outcome_of([wire, other], "app").word == "gone"


SIDES: dict[str, Side] = {
    "transaction-hangs transaction.open": least(lambda n: open_for(n) is not None, 60 * SECOND),
    "transaction-hangs transaction.most": least(lambda n: open_for(n) == "warning", 900 * SECOND),
    "transaction-blocks consumer.lso": least(
        lambda n: "transaction-blocks" in found(held_back(n), "transaction-blocks"), 10 * SECOND
    ),
    "offset-out-of-range resets.soon": least(lambda n: stops("offset-out-of-range", n), SECOND + 1),
    "retention-overtook resets.soon": least(lambda n: stops("retention-overtook", n), SECOND + 1),
    "offset-out-of-range resets.polled": least(
        lambda n: stops("offset-out-of-range", n, gone=False), 60 * SECOND + 1
    ),
    "retention-overtook resets.polled": least(
        lambda n: stops("retention-overtook", n, gone=False), 60 * SECOND + 1
    ),
    "outcomes outcome.after": most(left, 2 * SECOND),
    "outcomes outcome.still": least(
        lambda n: outcome_of(held_back(n), "app").word == "stuck", 2 * SECOND
    ),
    "outcomes outcome.silent": least(vanished, 600 * SECOND),
}
