"""Both sides of the limits of requests: slow, lost, refused and repeated ones."""

from typing import Any

from kafkascope.analyzer.findings import Finding
from tests.analyzer.findings import judging, sides_connections
from tests.analyzer.findings.judging import Side, ask, at, found, least, most, severity, wire_of
from tests.kit.wire import MS, SECOND, Wire, beat, heartbeat, metadata, produce, request, response

RULE = "sent-in-pieces"


def sent(
    wire: Wire, number: int, gap_ns: int, *, cuts: tuple[int, ...] = (4,), api: str = "Produce"
) -> None:
    """A request in pieces of some sizes and a rest, the last one so long after the first."""
    data = heartbeat(number) if api == "Heartbeat" else produce(number, records=bytes(200))
    begin, at = wire.time_ns, 0
    for place, size in enumerate(cuts):
        wire.time_ns = begin + gap_ns * place // len(cuts)
        wire.client(data[at : at + size])
        at += size
    wire.time_ns = begin + gap_ns
    wire.client(data[at:])
    wire.broker(beat(number) if api == "Heartbeat" else response("Produce", 7, number))


def sent_in_pieces(wire: Wire) -> Finding | None:
    return judging.found([wire.close("client")], RULE).get(RULE)


def pieces(gap_ns: int, count: int = 10, whole: int = 0) -> bool:
    """Whether so many requests in two pieces are told, among others in one."""
    wire = Wire()
    for number in range(count + whole):
        sent(wire, number, gap_ns if number < count else 0)
    return sent_in_pieces(wire) is not None


NODE = (1, "10.0.1.2", 9092)
BUSY = 51


def asking(*answers: dict[str, Any]) -> Wire:
    wire = Wire()
    for number, answer in enumerate(answers, 1):
        wire.exchange("Metadata", 12, number, answer, topics=[{"name": "orders"}])
        wire.time_ns += SECOND // 10
    return wire


def unknown(code: int = 3) -> dict[str, Any]:
    answer = metadata(NODE)
    answer["topics"][0] |= {"error_code": code, "partitions": []}
    return answer


def closing(times: int, served: bool = False, rest_ns: int = 0) -> list[Wire]:
    """Connections that a broker closes at the first request behind ApiVersions.

    rest_ns: how long each is idle before that request.
    """
    wires = [Wire(number=number) for number in range(times)]
    for wire in wires:
        wire.exchange("ApiVersions", 3, 1)
        wire.time_ns += rest_ns
        wire.client(request("Metadata", 12, 2)).close("broker")
    if served:
        wires.append(asking(metadata(NODE), metadata(NODE)))
        wires[-1].connection.number = times
    return wires


ORDER, SKIPPED, REFUSED = "answers-out-of-order", "request-skipped", "version-refused"


def ordered(*wires: Wire) -> dict[str, Finding]:
    return judging.found(wires, ORDER, SKIPPED, REFUSED, "unanswered")


def first(
    number: int, version: int, how: str = "rst", *, answered: bool = False, wait_ns: int = 2 * MS
) -> Wire:
    """A connection whose first request is ApiVersions; the broker ends it there, or answers."""
    wire = sides_connections.opened(number, number).client(request("ApiVersions", version, 1))
    wire.connection.packets = [3, 2]
    if answered:
        wire.broker(response("ApiVersions", version, 1))
        return sides_connections.ended(wire, 40, 300, "client")
    wire.time_ns += wait_ns
    return sides_connections.ended(wire, 40, 0, "broker", how)


def ended(count: int, wait_ns: int = 2 * MS) -> bool:
    """Whether so many connections that end at their first request are told."""
    return REFUSED in ordered(*(first(number, 4, wait_ns=wait_ns) for number in range(count)))


SLOT = SECOND // 20


def slow(count: int, takes_ns: int) -> list[Wire]:
    wire = Wire()
    for number in range(1, count + 1):
        begin = 10 * number * SECOND
        ask(wire, number, begin, begin + takes_ns)
    return [wire]


def silent_for(length_ns: int) -> bool:
    """Two requests wait for more than a second; a third one was answered meanwhile."""
    wires = [wire_of(number) for number in range(3)]
    begin = 20 * SLOT
    ask(wires[2], 1, begin + 2 * SLOT, begin + 2 * SLOT + 2 * MS)
    for wire in wires[:2]:
        ask(wire, 1, begin, begin + 3 * SLOT + length_ns)
    return "broker-paused" in found(wires, "broker-paused")


def flooded(length_ns: int, late_ns: int) -> bool:
    """A second request is answered behind the end of a pause."""
    wires = [wire_of(number) for number in range(2)]
    for wire, late in zip(wires, (0, late_ns), strict=True):
        ask(wire, 1, SECOND, SECOND + length_ns + late)
    return "broker-paused" in found(wires, "broker-paused")


def waited(age_ns: int) -> bool:
    """Of two requests one is answered at the end of a pause, the other one was given up before."""
    wires = [wire_of(number) for number in range(2)]
    ask(wires[0], 1, SECOND, 4 * SECOND)
    at(wires[1], SECOND).client(request("Metadata", 8, 1))
    at(wires[1], SECOND + age_ns + MS).close("client")
    return "broker-paused" in found(wires, "broker-paused")


def both_paused(apart_ns: int) -> bool:
    """Whether pauses of two brokers that end so far apart are one finding."""
    wires = [Wire(number=number, port=9092 + number // 2) for number in range(4)]
    for wire in wires:
        end = 4 * SECOND + apart_ns * (wire.connection.number // 2)
        ask(wire, 1, SECOND, end)
    return "10.0.1.2:9092, 10.0.1.2:9093" in found(wires, "broker-paused")["broker-paused"].text


def far(trip_ns: int) -> bool:
    wires = slow(1, MS)
    wires[0].connection.handshake_ns = trip_ns
    return "network-far" in found(wires, "network-far")


def given_up(age_ns: int) -> bool:
    wire = Wire()
    at(wire, SECOND).client(request("Metadata", 8, 1))
    at(wire, SECOND + age_ns + MS).close("client")
    return "unanswered" in found([wire], "unanswered")


def late(age_ns: int) -> bool:
    """The client closes half a second after its request, and is answered then."""
    wire = Wire()
    at(wire, SECOND).client(request("Metadata", 8, 1))
    at(wire, SECOND + SECOND // 2).close("client")
    at(wire, SECOND + age_ns).broker(response("Metadata", 8, 1))
    return "late-answer" in found([wire], "late-answer")


def unanswered_for(age_ns: int) -> bool:
    wire, other = wire_of(0), wire_of(1)
    at(wire, SECOND).client(request("Metadata", 8, 1))
    ask(other, 1, SECOND, SECOND + MS)
    ask(other, 2, SECOND + age_ns - MS, SECOND + age_ns)
    return "no-answer-yet" in found([wire, other], "no-answer-yet")


def storm(count: int, span_ns: int) -> bool:
    """Heartbeats that are told to rejoin."""
    wire = Wire()
    for number in range(count):
        at(wire, span_ns * number // (count - 1))
        wire.client(heartbeat(number + 1)).broker(beat(number + 1, 27))
    return "error-storm" in found([wire], "error-storm")


def busy(span_ns: int) -> bool:
    """Thirty answers that the transaction before has not ended."""
    wire = Wire()
    for number in range(30):
        at(wire, span_ns * number // 29)
        wire.exchange("EndTxn", 1, number + 1, {"error_code": BUSY}, transactional_id="x")
    return "error-storm" in found([wire], "error-storm")


def stale(repeats: int, refresh_ns: int) -> bool:
    """A reader that repeats what was refused, and asks for metadata so long after the refusal."""
    wire = Wire()
    for number in range(repeats + 1):
        at(wire, 10 * number * MS).fetch(number, error_code=6, high_watermark=-1)
    at(wire, MS + refresh_ns).exchange("Metadata", 12, 99, metadata(NODE))
    return "stale-leader" in found([wire], "stale-leader")


def leaderless(*leaders: int) -> list[dict[str, Any]]:
    """Metadata responses with the leader of orders-0; -1: there is none."""
    answers = [metadata(NODE, leader=leader) for leader in leaders]
    for leader, answer in zip(leaders, answers, strict=True):
        answer["topics"][0]["partitions"][0]["error_code"] = 5 if leader < 0 else 0
    return answers


def without_leader(count: int) -> bool:
    return "leader-missing" in found([asking(*leaderless(*[-1] * count))], "leader-missing")


def uncoordinated(
    count: int, span_ns: int = 9 * SECOND, then: int = 15, version: int = 3
) -> dict[str, Finding]:
    """A member that looks so often for a coordinator; at last it gets another code."""
    wire = wire_of(0)
    for number in range(count):
        answer: dict[str, Any] = {"error_code": 15 if number < count - 1 else then}
        asked: dict[str, Any] = {"key": "g"}
        if version >= 4:
            answer = {"coordinators": [asked | answer]}
            asked = {"coordinator_keys": ["g"]}
        at(wire, SECOND + span_ns * number // max(1, count - 1))
        wire.exchange("FindCoordinator", version, number, answer, **asked)
    return found([wire], "coordinator-missing")


def unjoined(stays_ns: int, then: str = "ListGroups") -> dict[str, Finding]:
    """A client that finds its coordinator, sends something, and stays so long; another goes on."""
    wire = Wire().client(request("FindCoordinator", 3, 1, key="g"))
    found_ns = wire.time_ns
    wire.broker(response("FindCoordinator", 3, 1))
    wire.exchange(then, 4, 2)
    wire.time_ns = wire.connection.last_ns = found_ns + stays_ns
    other = Wire(number=1)
    other.time_ns = wire.time_ns - MS
    other.exchange("Metadata", 8, 1, client="b")
    return found([wire.close("client"), other], "group-unjoined")


def unknown_topic(count: int) -> bool:
    return "unknown-topic" in found([asking(*[unknown()] * count)], "unknown-topic")


def spreading(span_ns: int) -> bool:
    """Another client finds the topic; the last request that does not comes so much later."""
    wire, other = wire_of(0), wire_of(1)
    born_ns = 2 * SECOND
    asked = [{"name": "orders"}]
    times = [*(SECOND + 10 * MS * number for number in range(5)), born_ns + span_ns]
    for number, time_ns in enumerate(times):
        at(wire, time_ns)
        wire.exchange("Metadata", 12, number, unknown(), client="reader", topics=asked)
    at(other, born_ns).exchange("Metadata", 12, 1, metadata(NODE), topics=asked)
    return severity([wire, other], "unknown-topic") == "warning"


def lookups(count: int, span_ns: int, connections: int = 1) -> bool:
    wires = [wire_of(number) for number in range(connections)]
    for number in range(count):
        at(wires[number % connections], span_ns * number // (count - 1))
        wires[number % connections].exchange("Metadata", 8, number)
    return "lookup-storm" in found(wires, "lookup-storm")


def closed_by_broker(times: int, rest_ns: int = 0) -> bool:
    return "sasl-missing" in found(closing(times, rest_ns=rest_ns), "sasl-missing")


SIDES: dict[str, Side] = {
    "slow-answers slow.excess": least(
        lambda n: severity(slow(1, n), "slow-answers") is not None, SECOND
    ),
    "slow-answers slow.count": least(
        lambda n: severity(slow(n, 2 * SECOND), "slow-answers") == "warning", 3
    ),
    "broker-paused slow.excess": least(silent_for, SECOND),
    "broker-paused pause.flood": most(lambda n: flooded(SECOND + SECOND // 2, n), SECOND // 4),
    "broker-paused slow.excess given up": least(waited, SECOND),
    "broker-paused pause.flood brokers": most(both_paused, SECOND // 4),
    "broker-paused pause.flood-share": most(lambda n: flooded(10 * SECOND, n * SECOND // 10), 10),
    "network-far network.far": least(far, 20 * MS),
    "sent-in-pieces pieces.gap": least(lambda n: pieces(n), 30 * MS),
    "sent-in-pieces pieces.least": least(lambda n: pieces(40 * MS, n), 5),
    "sent-in-pieces pieces.share": least(lambda n: pieces(40 * MS, n, whole=100 - n), 50),
    "version-refused versions.ended": least(ended, 3),
    "version-refused lost.age": most(lambda n: ended(3, n), SECOND - 1),
    "unanswered lost.age": least(given_up, SECOND),
    "late-answer lost.age": least(late, SECOND),
    "no-answer-yet open.age": least(unanswered_for, 30 * SECOND),
    "error-storm errors.storm": least(lambda n: storm(n, SECOND), 20),
    "error-storm errors.storm-rate": most(lambda n: storm(30, n), 30 * SECOND),
    "error-storm errors.storm-busy": most(busy, 3 * SECOND),
    "stale-leader leader.retries": least(lambda n: stale(n, 9 * SECOND), 3),
    "stale-leader leader.refresh": least(lambda n: stale(5, n), 2 * SECOND),
    "group-unjoined coordinator.unused": least(lambda n: bool(unjoined(n)), 5 * SECOND),
    "coordinator-missing coordinator.count": least(lambda n: bool(uncoordinated(n)), 3),
    "coordinator-missing coordinator.span": least(lambda n: bool(uncoordinated(9, n)), 2 * SECOND),
    "leader-missing unknown-topic.count": least(without_leader, 5),
    "unknown-topic unknown-topic.count": least(unknown_topic, 5),
    "unknown-topic unknown-topic.spreading": least(spreading, 5 * SECOND),
    "lookup-storm metadata.count": least(lambda n: lookups(n + 3, SECOND), 20),
    "lookup-storm metadata.rate": most(lambda n: lookups(40, n), 40 * SECOND),
    "lookup-storm metadata.starting": least(
        lambda n: lookups(10 * n + 20, SECOND, connections=10), 3
    ),
    "sasl-missing sasl.several": least(closed_by_broker, 3),
    "sasl-missing reset.rest": most(lambda n: closed_by_broker(3, n - MS), 20 * SECOND - 1),
}
