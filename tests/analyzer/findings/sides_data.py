"""Both sides of the limits of what clients send, read and commit: rates, sizes, shares, quotas."""

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from kafkascope.analyzer.findings import Finding
from tests.analyzer.findings import judging
from tests.analyzer.findings.judging import Side, at, found, least, most, severity, wire_of
from tests.analyzer.findings.sides_connections import ended, opened
from tests.kit.batches import batch
from tests.kit.wire import MS, SECOND, START, Wire, beat, heartbeat, produce, request, response


def produced(wire: Wire, number: int, error: int) -> None:
    wire.write(number, error_code=error, base_offset=7)


def producing(*sent: tuple[int, int | None]) -> Wire:
    """Batches of two records: (sequence, error) of each; None: it is not answered."""
    wire = Wire()
    for place, (sequence, error) in enumerate(sent, 1):
        data = batch([(None, b"v")] * 2, producer=(7, 0, sequence))
        wire.write(place, data, error_code=error or 0, base_offset=-1 if error else 2 * place)
        if error is None:
            wire.events.pop()
    return wire


def cut_off(
    number: int,
    receiver: str,
    size: int,
    how: str = "rst",
    arrived: int = 1000,
    after_ns: int = 0,
) -> Wire:
    """A connection that the receiver of a large message closes when so much of it has arrived, or
    so long after it was due."""
    wire = opened(number, 10 * number).client(heartbeat(1)).broker(beat(1))
    wire.connection.a = wire.connection.a._replace(port=50_000 + number)
    if receiver == "broker":
        data = produce(2, records=bytes(100))
        wire.client((struct.pack(">i", size - 4) + data[4:] + bytes(arrived))[:arrived])
    else:
        wire.client(request("Fetch", 4, 2))
        due_ns = wire.time_ns
        wire.broker((struct.pack(">ii", size - 4, 2) + bytes(arrived))[:arrived])
        wire.time_ns = max(wire.time_ns, due_ns + after_ns)
    return ended(wire, 2_000, 2_000, receiver, how).close(None, "end")


SMALL, AGAIN, STUCK = "fetch-too-small", "fetched-repeatedly", "reader-stuck"


def circling(*wires: Wire) -> dict[str, Finding]:
    return judging.found(wires, SMALL, AGAIN, STUCK)


def fetch(
    wire: Wire,
    number: int,
    offset: int,
    records: bytes,
    *,
    version: int = 1,
    high: int = 90,
    gap_ns: int = SECOND,
    **more: Any,
) -> None:
    """A Fetch of one partition, so long after the one before."""
    wire.time_ns += gap_ns - 2 * MS
    ends = {"high_watermark": high, "last_stable_offset": high}
    to = {"topic": "photos", "client": "index", "version": version}
    wire.fetch(number, offset, records, **to, answer=more, **ends)


def starves(count: int, gap_ns: int, *, odd_ns: int = 0, more: int = 0) -> bool:
    """Whether so many responses without a record are told."""
    wire = Wire()
    for number in range(count + more):
        fetch(wire, number, 3, b"", gap_ns=gap_ns + (odd_ns if number == count else 0))
    return SMALL in circling(wire)


def reading(*offsets: int, gap_ns: int = SECOND // 4) -> Wire:
    """Fetches that bring five records each."""
    wire = Wire()
    for number, offset in enumerate(offsets):
        records = batch([(None, b"v")] * 5, base_offset=offset)
        fetch(wire, number, offset, records, version=5, gap_ns=gap_ns)
    return wire


def circles(offsets: int, times: int, once: int = 0) -> bool:
    """Whether a reader that fetches so many offsets several times, and others once, is told."""
    every = [5 * at for at in range(offsets + once) for _ in range(times if at < offsets else 1)]
    return AGAIN in circling(reading(*every))


def full_batches(count: int, most: int = 30) -> bool:
    """Batches of thirty records, all but two of them of one partition, where one has the most."""
    wire = Wire()
    for number in range(count):
        index = number if number in (1, 2) else 0
        records = batch([(None, b"v")] * (30 if index else most))
        wire.write(number, records, index=index, base_offset=30 * number)
    return "hot-partition" in found([wire], "hot-partition")


DAY = 86_400 * SECOND


def clock(ahead_ns: int, *others: int) -> bool:
    """Whether a producer's clock is told, beside those of others."""
    wires = [wire_of(number) for number in range(1 + len(others))]
    for wire, ahead in zip(wires, (*others, ahead_ns), strict=True):
        sent_ns = START + 1_000 * SECOND - ahead
        records = batch([(None, b"v")], time_ms=(START + 1_000 * SECOND) // MS)
        data = [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]
        named = f"app-{wire.connection.number}"
        at(wire, sent_ns - START).client(request("Produce", 7, 1, named, topic_data=data))
        wire.broker(response("Produce", 7, 1, responses=[]))
    return "clock-skew" in found(wires, "clock-skew")


def gone(refused: int, span_ns: int) -> bool:
    """A topic that was there, and is refused then."""
    wire = Wire()
    produced(wire, 1, 0)
    for number in range(refused):
        at(wire, SECOND + span_ns * number // max(1, refused - 1))
        produced(wire, number + 2, 3)
    return "topic-deleted" in found([wire], "topic-deleted")


def singles(gaps_ns: Iterable[int]) -> bool:
    """Batches of one record, each so long after the response to the one before."""
    wire = Wire()
    records = batch([(None, b"v")])
    for number, gap in enumerate(gaps_ns, 1):
        wire.time_ns += gap - MS
        wire.client(produce(number, records=records)).broker(response("Produce", 7, number))
    return "tiny-batches" in found([wire], "tiny-batches")


def bursts(count: int) -> bool:
    """So many requests in each of eleven seconds."""
    pause = SECOND - 2 * MS * count + MS
    return singles([MS if number % count else pause for number in range(11 * count)])


def waiting(percent: int) -> bool:
    """The first request waits for none."""
    turn = [5 * MS] * (100 - percent) + [MS] * percent
    return singles([*turn, *turn])


def sized(count: int) -> bool:
    """A batch of so many bytes."""
    records = batch([(None, b"v" * 800_000)])
    records = batch([(None, b"v" * (800_000 + count - len(records)))])
    assert len(records) == count
    wire = Wire().client(produce(1, records=records)).broker(response("Produce", 7, 1))
    return "large-batches" in found([wire], "large-batches")


def huge(count: int) -> bool:
    """A request of so many bytes, of which the capture has the first."""
    data = produce(1)
    head = (count - 4).to_bytes(4, "big") + data[4:]
    wire = Wire().client(head).gap("client", count - len(head)).close("broker")
    return "request-too-large" in found([wire], "request-too-large")


def unread(count: int, size: int = 5_000_000, after_ns: int = 0) -> bool:
    """Responses that their client does not read to the end."""
    wires = [cut_off(number, "client", size, after_ns=after_ns) for number in range(count)]
    return severity(wires, "response-too-large") == "error"


def reset_at(outstanding: int) -> bool:
    """A client that resets the connection when so many percent of a response are to come."""
    wire = cut_off(0, "client", 1_000_000, arrived=10_000 * (100 - outstanding))
    return "response-too-large" in found([wire], "response-too-large")


def spread(records: Sequence[int]) -> bool:
    """So many records in each partition."""
    wire = Wire()
    data = [
        {"index": index, "records": batch([(None, b"v")] * count)}
        for index, count in enumerate(records)
    ]
    topics = [{"name": "t", "partition_data": data}]
    wire.exchange("Produce", 7, 1, {"responses": []}, acks=-1, topic_data=topics)
    return "hot-partition" in found([wire], "hot-partition")


def share(hundredths: int) -> bool:
    """One of ten partitions has so much of an even share."""
    rest, more = divmod(10_000 - 10 * hundredths, 9)
    return spread([10 * hundredths, *(rest + (number < more) for number in range(9))])


def fetches(count: int, span_ns: int, *, records: int = 0, wait_ms: int = 0) -> str | None:
    """The advice; None where nothing is told. The first fetches bring a record each."""
    wire = Wire()
    asked = {"max_wait_ms": wait_ms, "min_bytes": 1}
    for number in range(count):
        at(wire, span_ns * number // (count - 1))
        wire.fetch(number, 0, batch([(None, b"v")]) if number < records else None, asked=asked)
    finding = found([wire], "eager-fetches").get("eager-fetches")
    return finding.advice if finding is not None else None


def commits(count: int, span_ns: int) -> str | None:
    wire = Wire()
    for number in range(count):
        at(wire, span_ns * number // (count - 1))
        wire.exchange("OffsetCommit", 7, number, {"topics": []}, group_id="g", topics=[])
    return severity([wire], "commit-storm")


def throttled(count: int, of: int, each_ms: int) -> bool:
    wire = Wire()
    for number in range(of):
        told_ms = each_ms if number < count else 0
        wire.client(produce(number))
        wire.broker(response("Produce", 7, number, responses=[], throttle_time_ms=told_ms))
    return severity([wire], "throttled") == "warning"


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
    "fetch-too-small starved.fetches": least(lambda n: starves(n, SECOND), 3),
    "fetch-too-small starved.time": least(
        lambda n: starves(2, n // 2, odd_ns=n % 2, more=1), SECOND
    ),
    "fetched-repeatedly circles.offsets": least(lambda n: circles(n, 2), 4),
    "fetched-repeatedly circles.share": least(lambda n: circles(n, 2, once=100 - n), 50),
    "clock-skew clock.ahead": least(lambda n: clock(n, 0), 600 * SECOND),
    "clock-skew clock.alone": least(clock, DAY),
    "clock-skew clock.behind": least(lambda n: clock(-n), 7 * DAY),
    "topic-deleted deleted.count": least(lambda n: gone(n, 9 * SECOND), 3),
    "topic-deleted deleted.span": least(lambda n: gone(3, n), 2 * SECOND),
    "tiny-batches batches.least": least(lambda n: singles([MS] * n), 200),
    "tiny-batches batches.busy": least(bursts, 20),
    "tiny-batches batches.right-after": most(lambda n: singles([n] * 300), 4 * MS),
    "tiny-batches batches.waiting": least(waiting, 60),
    "large-batches large.batch": least(sized, 900_000),
    "request-too-large large.frame": least(huge, 100 * 1024 * 1024 + 1),
    "response-too-large partial.responses": least(unread, 2),
    "response-too-large partial.outstanding": least(reset_at, 50),
    "response-too-large partial.soon": most(lambda n: unread(3, after_ns=n), 2 * SECOND),
    "response-too-large partial.size": least(lambda n: unread(3, n), 100_000),
    "hot-partition skew.records": least(lambda n: spread([n - 2, 1, 1]), 1_000),
    "hot-partition skew.times": least(share, 300),
    "hot-partition skew.fuller": least(lambda n: full_batches(40, 30 * n), 2),
    "hot-partition skew.batches": least(full_batches, 50),
    "hot-partition skew.partitions": least(lambda n: spread([9_000] + [1] * (n - 1)), 3),
    "eager-fetches fetches.least": least(lambda n: fetches(n, SECOND) is not None, 300),
    "eager-fetches fetches.rate": most(lambda n: fetches(400, n) is not None, 8 * SECOND),
    "eager-fetches fetches.empty": most(
        lambda n: fetches(400, SECOND, records=4 * n) is not None, 9
    ),
    "eager-fetches fetches.waits": least(
        lambda n: "answers at once" in (fetches(600, 10 * SECOND, wait_ms=n) or ""), 100
    ),
    "eager-fetches fetches.early": least(
        lambda n: fetches(600, n, wait_ms=500) is not None, 10 * SECOND
    ),
    "commit-storm commits.least": least(lambda n: commits(n, SECOND), 100),
    "commit-storm commits.many": most(lambda n: commits(200, n) == "warning", 4 * SECOND),
    "commit-storm commits.rate": most(lambda n: commits(200, n), 20 * SECOND),
    "throttled throttle.share": least(lambda n: throttled(n, 100, 500), 5),
    "throttled throttle.time": least(lambda n: throttled(1, 1, n), 1_000),
    "topic-unread map.span": least(lambda n: onesided("topic-unread", n), 10 * SECOND),
    "topic-unwritten map.span": least(lambda n: onesided("topic-unwritten", n), 10 * SECOND),
    "topic-names-alike map.letters": least(misspelled, 6),
}
