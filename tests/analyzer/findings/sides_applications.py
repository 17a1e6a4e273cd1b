"""Both sides of the limits of topics between applications."""

from __future__ import annotations

from tests.analyzer.findings.judging import found
from tests.analyzer.findings.sides import Side, at, least, wire_of
from tests.kit.batches import batch
from tests.kit.wire import MS, SECOND, Wire


def writes(wire: Wire, topic: str, time_ns: int, number: int, who: str = "writer") -> None:
    blob = batch([(None, b"v")])
    at(wire, time_ns + MS).write(number, blob, topic, client=who, base_offset=number)


def reads(wire: Wire, topic: str, time_ns: int, number: int) -> None:
    blob = batch([(None, b"v")])
    at(wire, time_ns + MS).fetch(number, 0, blob, topic=topic, client="reader")


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


SIDES: dict[str, Side] = {
    f"{rule} map.span": least(lambda n, rule=rule: onesided(rule, n), 10 * SECOND)
    for rule in ("topic-unread", "topic-unwritten")
} | {"topic-names-alike map.letters": least(misspelled, 6)}
