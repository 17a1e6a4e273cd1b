"""Both sides of the limits of connections: many, short, lossy, dead and idle ones, addresses."""

from collections.abc import Sequence

from tests.analyzer.findings import handshakes
from tests.analyzer.findings.judging import Side, at, found, least, most, seconds, severity
from tests.kit.members import Seconds
from tests.kit.wire import (
    MS,
    SECOND,
    START,
    Wire,
    beat,
    heartbeat,
    metadata,
    produce,
    request,
    response,
)


def opened(number: int = 0, at: Seconds = 0, broker: str = "") -> Wire:
    """A connection whose handshake took a microsecond."""
    wire = Wire(number=number, start_ns=START + int(at * SECOND))
    wire.connection.handshake_ns = 1_000
    if broker:
        wire.connection.b = wire.connection.b._replace(host=broker)
    return wire


def ended(wire: Wire, sent: int, got: int, side: str = "broker", how: str = "fin") -> Wire:
    """The connection, ended by a side at its time, with so many bytes of client and broker."""
    wire.connection.bytes = [sent, got]
    wire.connection.last_ns = wire.time_ns
    return wire.close(side, how)


def working(
    number: int, begin: Seconds, end: Seconds, side: str = "broker", rest: Seconds = 0
) -> Wire:
    """A connection with one exchange, ended by a side; times in seconds. `rest`: between the
    response and the end."""
    wire = opened(number, begin)
    wire.time_ns = START + int((end - rest) * SECOND) - 2_000_000
    wire.client(heartbeat(number + 1)).broker(beat(number + 1))
    wire.time_ns = START + int(end * SECOND)
    return ended(wire, 50, 50, side)


def failed(number: int, at: Seconds, *, silent: bool = False) -> Wire:
    """A connect that was refused, or not answered for three seconds."""
    wire = Wire(number=number, start_ns=START + int(at * SECOND))
    wire.connection.last_ns = wire.time_ns + 3 * SECOND * silent
    return wire if silent else wire.close("broker", "rst")


def dead(rest: Seconds = 7, again: int = 3, span: Seconds = 5) -> Wire:
    """A connection that worked, rested, and then sent a request in vain."""
    wire = opened().client(heartbeat(1)).broker(beat(1))
    wire.time_ns += int(rest * SECOND)
    wire.client(heartbeat(2))
    wire.connection.bytes = [100, 50]
    wire.connection.retransmissions = (again, 0)
    wire.connection.last_ns = wire.time_ns + int(span * SECOND)
    return wire


def forgotten(
    number: int, rest_ns: int, wait_ns: int = 1_000_000, how: str = "rst", broker: str = ""
) -> Wire:
    """A connection that worked, rested, and was ended at its next request, so long after it."""
    wire = opened(number, 1000 * number, broker).client(heartbeat(1)).broker(beat(1))
    wire.time_ns += rest_ns - 1_000_000
    wire.client(heartbeat(2)).time_ns += wait_ns
    return ended(wire, 100, 50, "broker", how)


def asking(*nodes: tuple[int, str, int], times: int = 1) -> Wire:
    wire = Wire()
    for number in range(1, times + 1):
        wire.exchange("Metadata", 12, number, metadata(*nodes), topics=[{"name": "t"}])
    return wire


def use(
    number: int, at: Seconds, *, life: Seconds = 0.02, work: bool = True, more: int = 0
) -> Wire:
    """A connection of a client for one use; times in seconds."""
    wire = opened(number, at).exchange("ApiVersions", 3, 1)
    for turn in range(2, 2 + work + more):
        wire.client(produce(turn)).broker(response("Produce", 7, turn))
    wire.time_ns = START + int((at + life) * SECOND)
    return ended(wire, 100, 100, "client")


CHURN = "connection-churn"
LOOP = "apiversions-loop"


def uses(
    rule: str,
    count: int,
    span_ns: int,
    *,
    life_ns: int = 20 * MS,
    requests: int = 2,
    asking_only: int = 0,
) -> bool:
    """Connections of a client within a span, each with so many requests; the first ones ask for
    nothing but ApiVersions."""
    wires = []
    for number in range(count):
        begin, life = seconds(span_ns * number // (count - 1)), seconds(life_ns)
        asks = number < asking_only
        more = 0 if asks else requests - 2
        wires.append(use(number, begin, life=life, work=not asks, more=more))
    return rule in found(wires, CHURN, LOOP)


def innocent(count: int) -> bool:
    """So many connections that their client closed, among forty that brokers closed."""
    wires = [use(number, number * 0.6) for number in range(count + 40)]
    for wire in wires[count:]:
        wire.events.pop()
        wire.close("broker")
    return severity(wires, CHURN) == "warning"


def churn(count: int, span_ns: int = 10 * SECOND, life_ns: int = 20 * MS) -> bool:
    return uses(CHURN, count, span_ns, life_ns=life_ns)


def loop(count: int, span_ns: int = 10 * SECOND, life_ns: int = 20 * MS) -> bool:
    return uses(LOOP, count, span_ns, life_ns=life_ns, asking_only=count)


def lossy(lost: int, segments: int) -> bool:
    wire = asking((1, "10.0.1.2", 9092))
    wire.connection.retransmissions = (lost, 0)
    wire.connection.bytes = [segments * 1448, 0]
    return "network-loss" in found([wire], "network-loss")


def missing(size: int) -> bool:
    """Bytes that a lossy network may have had under way before the capture began."""
    wire = Wire(handshake=False).client(request("Metadata", 8, 1))
    wire.connection.gap_bytes, wire.connection.retransmissions = (0, size), (0, 1)
    wire.connection.bytes = [100, size]
    return severity([wire.close()], "capture-gaps") == "warning"


def hello(waits_ns: int) -> bool:
    """A TLS hello, so long before the last packet."""
    wire = Wire().client(b"\x16\x03\x01\x00\x05hello")
    wire.connection.last_ns = wire.connection.first_ns + waits_ns
    return "tls-to-plain" in found([wire], "tls-to-plain")


def ended_hello(waits_ns: int) -> bool:
    """A TLS hello that the broker ends after so long; whether that is no reset at once."""
    wire = handshakes.wire(handshakes.hello())
    wire.connection.last_ns = wire.connection.first_ns + waits_ns
    at(wire, waits_ns).close("broker", "rst")
    return "without a response" in handshakes.failed(wire).text


def unread_header(waits_ns: int) -> bool:
    """A PROXY protocol header and a request, so long before the last packet."""
    wire = Wire().client(b"PROXY UNKNOWN\r\n").client(request("ApiVersions", 0, 1))
    wire.connection.last_ns = wire.connection.first_ns + waits_ns
    return "proxy-protocol" in found([wire], "proxy-protocol")


def down(gap_ns: int) -> bool:
    """Whether a connection that ended so long before the first refusal belongs to it."""
    wires = [working(0, 0, 2), failed(1, 2 + seconds(gap_ns)), failed(2, 60)]
    return "closed 1 connection" in found(wires, "broker-down")["broker-down"].text


def back(after_ns: int) -> bool:
    begin = 2 + seconds(after_ns)
    wires = [working(0, 0, 2), failed(1, 3), failed(2, 4), working(3, begin, begin + 9)]
    return severity(wires, "broker-down") == "warning"


def died(rest_ns: int = 7 * SECOND, again: int = 3, span_ns: int = 5 * SECOND) -> bool:
    wire = dead(seconds(rest_ns - MS), again, seconds(span_ns))
    return "silent-drop" in found([wire], "silent-drop")


def forgets(*rests_ns: int, wait_ns: int = MS, how: str = "rst") -> bool:
    """Connections that are ended so long after the request behind a rest."""
    wires = [forgotten(number, rest_ns, wait_ns, how) for number, rest_ns in enumerate(rests_ns)]
    return "silent-drop" in found(wires, "silent-drop")


def idle(rests_ns: Sequence[int], apart_ns: int = 700 * SECOND) -> bool:
    """Connections that the broker closed after a rest, at times so far apart."""
    begins = [seconds(number * apart_ns) for number in range(len(rests_ns))]
    wires = [
        working(number, begin, begin + 700, rest=seconds(rest_ns))
        for number, (begin, rest_ns) in enumerate(zip(begins, rests_ns, strict=True))
    ]
    return "idle-close" in found(wires, "idle-close")


def silent(wait_ns: int) -> list[Wire]:
    """A connect that nobody answers to an address that had worked, or was told; then others go
    on."""
    wire = failed(1, 60, silent=True)
    wire.connection.last_ns = wire.connection.first_ns
    wire.close(how="end")
    other = working(2, 3, 60 + seconds(wait_ns), "client")
    other.connection.b = other.connection.b._replace(host="10.0.1.9")
    return [wire, other]


def unanswered(wait_ns: int) -> bool:
    wires = [working(0, 0, 2), *silent(wait_ns)]
    return "broker-down" in found(wires, "broker-down")


def unseen(count: int, span_ns: int) -> bool:
    """Connects to an address that takes none."""
    wires = [failed(number, seconds(span_ns * number // (count - 1))) for number in range(count)]
    return "broker-down" in found(wires, "broker-down")


def told_and_silent(wait_ns: int) -> bool:
    told = asking((1, "10.0.1.2", 9092))
    told.connection.b = told.connection.b._replace(host="10.0.1.7")
    wires = [told, *silent(wait_ns)]
    return "address-unanswered" in found(wires, "address-unanswered")


def looks(count: int, every_ns: int) -> bool:
    """A client that is told a name, and asks again."""
    wire, answer = Wire(), metadata((1, "kafka-1", 9192))
    for number in range(count):
        at(wire, every_ns * number).exchange("Metadata", 12, number, answer, topics=[{"name": "t"}])
    return "address-unresolved" in found([wire], "address-unresolved")


def starts(count: int, topics: Sequence[str] = ()) -> bool:
    """Starts of a client that is told a name, each on a connection of its own."""
    wires, asked = [], [{"name": name} for name in topics]
    for number in range(count):
        wire = Wire(number=number, start_ns=START + 200 * SECOND * number)
        wire.exchange("Metadata", 12, number, metadata((1, "kafka-1", 9192)), topics=asked)
        wires.append(wire.close("client"))
    return "address-unresolved" in found(wires, "address-unresolved")


def needs(count: int, every_ns: int) -> bool:
    """A client that works with two nodes is told of a third one, which it needs, and asks again."""
    nodes = [(1, "10.0.1.2", 9092), (2, "10.0.1.3", 9092), (3, "kafka-3", 9092)]
    asker, others = Wire(), [Wire(number=number, port=50_000 + number) for number in (1, 2)]
    for other, (_, host, port) in zip(others, nodes, strict=False):
        other.connection.b = other.connection.b._replace(host=host, port=port)
        at(other, 0).exchange("OffsetCommit", 8, 1, group_id="g")
    answer = metadata(*nodes, leader=3)
    for number in range(count):
        at(asker, every_ns * number)
        asker.exchange("Metadata", 12, number, answer, topics=[{"name": "t"}])
    return "address-unresolved" in found([*others, asker], "address-unresolved")


REST = 6 * SECOND

SIDES: dict[str, Side] = {
    "connection-churn connections.short": least(churn, 20),
    "connection-churn connections.short not refused": least(innocent, 20),
    "connection-churn connections.rate": most(lambda n: churn(26, n), 50 * SECOND),
    "connection-churn connections.life": most(lambda n: churn(40, 40 * SECOND, n), 10 * SECOND),
    "connection-churn connections.asking": most(
        lambda n: uses(CHURN, 100, 10 * SECOND, asking_only=n), 89
    ),
    "connection-churn connections.span": least(
        lambda n: uses(CHURN, 40, n, requests=9), 30 * SECOND
    ),
    "connection-churn connections.burst": least(
        lambda n: uses(CHURN, n, 10 * SECOND, requests=9), 100
    ),
    "connection-churn connections.use": most(lambda n: churn(30, 10 * SECOND, n), SECOND),
    "connection-churn connections.while": least(lambda n: churn(30, n), 5 * SECOND),
    "connection-churn connections.few": most(lambda n: uses(CHURN, 30, 10 * SECOND, requests=n), 4),
    "apiversions-loop connections.short": least(loop, 20),
    "apiversions-loop connections.rate": most(lambda n: loop(26, n), 50 * SECOND),
    "apiversions-loop connections.life": most(lambda n: loop(40, 40 * SECOND, n), 10 * SECOND),
    "apiversions-loop connections.asking": least(
        lambda n: uses(LOOP, 100, 10 * SECOND, asking_only=n), 90
    ),
    "network-loss network.retransmissions": least(lambda n: lossy(20 * n, 2_000), 2),
    "network-loss network.retransmissions-count": least(lambda n: lossy(n, 100), 20),
    "capture-gaps gaps.window": least(missing, 65_537),
    "proxy-protocol tls.hello": least(unread_header, 5 * SECOND),
    "tls-to-plain tls.hello": least(hello, 5 * SECOND),
    "tls-failed tls.at-once": least(ended_hello, SECOND),
    "broker-down outage.before": most(down, 10 * SECOND),
    "broker-down outage.short": least(back, 15 * SECOND + 1),
    "silent-drop reset.rest": least(lambda n: forgets(n, n), 20 * SECOND),
    "silent-drop reset.count": least(lambda n: forgets(*[60 * SECOND] * n), 2),
    "silent-drop reset.turns": least(lambda n: forgets(*[7 * SECOND] * n), 3),
    "silent-drop reset.single": least(forgets, 200 * SECOND),
    "silent-drop idle.default": most(lambda n: forgets(n, n, how="fin"), 590 * SECOND - 1),
    "silent-drop lost.age": most(lambda n: forgets(300 * SECOND, wait_ns=n), SECOND - 1),
    "silent-drop drop.rest": least(lambda n: died(rest_ns=n), 2 * SECOND),
    "silent-drop drop.retransmissions": least(lambda n: died(again=n), 3),
    "silent-drop drop.span": least(lambda n: died(span_ns=n), 2 * SECOND),
    "idle-close idle.rest": least(lambda n: idle([n, n]), 2 * SECOND),
    "idle-close idle.same": most(lambda n: idle([REST, REST + n]), SECOND // 2),
    "idle-close idle.same-share": most(lambda n: idle([100 * SECOND, (100 + n) * SECOND]), 2),
    "idle-close idle.default": most(lambda n: idle([600 * SECOND - n]), 10 * SECOND),
    "idle-close idle.apart": least(lambda n: idle([REST, REST], n), SECOND),
    "broker-down outage.unseen": least(lambda n: unseen(n, 9 * SECOND), 3),
    "broker-down outage.unseen-span": least(lambda n: unseen(4, n), 5 * SECOND),
    "broker-down connects.answer": least(unanswered, SECOND),
    "address-unanswered connects.answer": least(told_and_silent, SECOND),
    "address-unresolved addresses.looks": least(lambda n: looks(n, SECOND), 3),
    "address-unresolved addresses.pace": most(lambda n: looks(3, n), 60 * SECOND),
    "address-unresolved addresses.starts": least(starts, 4),
    "address-unresolved addresses.starts topics": least(lambda n: starts(n, ["orders"]), 4),
    "address-unresolved addresses.needed": least(lambda n: needs(n, SECOND), 10),
    "address-unresolved addresses.needed-pace": most(lambda n: needs(10, n), 5 * SECOND),
}
