"""Both sides of the limits of what delays requests on their way."""

from collections.abc import Callable
from typing import Final

from tests.analyzer.findings.judging import Side, least
from tests.analyzer.findings.lines import MSS, Line, answer, found, severity
from tests.kit.wire import MS, request, response

SIZE: Final = 6_000
LARGE: Final = 20_000
RTO: Final = 200 * MS


def unread(side: int, takes_ns: int, count: int = 3) -> Line:
    """Messages of a side in the middle of which the other side's window closes."""
    line = Line()
    for number in range(count):
        data = answer(number, size=SIZE) if side else line.asking(number, "Produce", SIZE)
        if side:
            line.send(0, line.asking(number)).rest(MS)
        line.send(side, data[:MSS]).ack(1 - side, 1000, window=0)
        line.ack(1 - side, takes_ns - 2000)
        line.rest(1000).stream(side, data[MSS:], 0)
        if not side:
            line.send(1, answer(number, "Produce"), MS)
        line.rest(MS)
    return line


def interrupted(takes_ns: int, count: int = 3, *, first: int = 100) -> Line:
    """Responses in the middle of which the broker stops."""
    line = Line()
    for number in range(count):
        data = answer(number, size=SIZE)
        line.send(0, line.asking(number)).send(1, data[:first], MS).ack(0)
        line.send(1, data[first : first + MSS], takes_ns).ack(0).rest(MS)
        line.stream(1, data[first + MSS :], 0)
    return line


def lost_requests(count: int, timeout_ns: int = RTO, *, trip_ns: int = MS // 10) -> Line:
    """Seen, lost behind the capture point, and sent again after a while."""
    line = Line(trip_ns=trip_ns)
    for number in range(count):
        data = line.asking(number)
        line.send(0, data, MS, arrives=False).again(0, data, timeout_ns)
        line.send(1, answer(number), trip_ns + MS)
    return line


def transferred(side: int, takes_ns: int, count: int = 3) -> Line:
    """Messages that take long from the first to the last byte, in even steps."""
    line = Line()
    for number in range(count):
        if side:
            line.send(0, line.asking(number)).rest(line.trip_ns)
            line.stream(1, answer(number, size=LARGE), takes_ns)
        else:
            line.stream(0, line.asking(number, "Produce", LARGE), takes_ns)
            line.send(1, answer(number, "Produce"), line.trip_ns + MS)
        line.rest(MS)
    return line


def fetching(number: int, wait_ms: int, *, answered: bool) -> bytes:
    if answered:
        return response("Fetch", 11, number, responses=[])
    part = {"partition": 0, "fetch_offset": 7, "partition_max_bytes": 1000}
    part |= {"current_leader_epoch": -1, "log_start_offset": -1}
    topics = [{"topic": "t", "partitions": [part]}]
    asked = {"max_wait_ms": wait_ms, "min_bytes": 1, "topics": topics}
    return request("Fetch", 11, number, "app", **asked)


def queued(behind_ns: int, count: int = 5, others: int = 0) -> Line:
    """Lookups that wait behind a long poll; other ones find the connection free."""
    line = Line()
    for number in range(0, 2 * count, 2):
        line.send(0, fetching(number, 1000, answered=False), MS)
        line.send(0, line.asking(number + 1), 1000 * MS - behind_ns)
        line.send(1, fetching(number, 1000, answered=True), behind_ns)
        line.send(1, answer(number + 1), 1000)
    for number in range(others):
        line.rest(MS).ask(2 * count + number)
    return line


def slow(count: int, takes_ns: int, api: str = "Metadata") -> Line:
    """A round trip is no time of the broker."""
    line = Line(trip_ns=90 * MS)
    for number in range(count):
        line.rest(MS).ask(number, takes_ns, api)
    return line


LEAST = 100 * MS


def told(rule: str, make: Callable[[int], Line]) -> Callable[[int], bool]:
    return lambda size: rule in found([make(size)], rule)


def is_warning(rule: str, make: Callable[[int], Line]) -> Callable[[int], bool]:
    return lambda size: severity([make(size)], rule) == "warning"


TRANSFERS: dict[str, Callable[[int, int], Line]] = {
    "client-not-reading": lambda takes_ns, count: unread(1, takes_ns, count),
    "broker-not-reading": lambda takes_ns, count: unread(0, takes_ns, count),
    "broker-stopped-sending": lambda takes_ns, count: interrupted(takes_ns - MS, count),
    "slow-transfer": lambda takes_ns, count: transferred(1, takes_ns, count),
}
"""Rule -> what takes so long, so many times."""

SIDES: dict[str, Side] = {
    **{
        f"{rule} delays.least": least(told(rule, lambda n, make=make: make(n, 3)), LEAST)
        for rule, make in TRANSFERS.items()
    },
    **{
        f"{rule} slow.count": least(is_warning(rule, lambda n, make=make: make(3 * LEAST, n)), 3)
        for rule, make in TRANSFERS.items()
    },
    "lost-segments slow.count": least(is_warning("lost-segments", lost_requests), 3),
    "lost-segments slow.count soon": least(
        told("lost-segments", lambda n: lost_requests(n, 30 * MS, trip_ns=10 * MS)), 3
    ),
    "queued-requests delays.least": least(told("queued-requests", queued), LEAST),
    "queued-requests queued.least": least(
        told("queued-requests", lambda n: queued(3 * LEAST, n)), 5
    ),
    "queued-requests queued.share": least(
        told("queued-requests", lambda n: queued(3 * LEAST, n, others=100 - n)), 50
    ),
    "slow-answers server.time": least(told("slow-answers", lambda n: slow(3, n)), 200 * MS),
    "slow-answers server.few": least(told("slow-answers", lambda n: slow(2, n)), 500 * MS),
    "slow-answers slow.count server": least(told("slow-answers", lambda n: slow(n, 300 * MS)), 3),
}
