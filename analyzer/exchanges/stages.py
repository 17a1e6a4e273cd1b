"""Where the time of an exchange went: on the way to the broker, at the broker, on the way back.

    first byte    last byte            first byte     last byte
    of the request                     of the response
    ├─ request ───┤                    ├── response ──┤
         transfer  ├─ trip ─┬─ server ─┤     transfer
                            └─ what the round trip to the broker leaves

All of it as seen at the capture point (docs/latency.md). Times of bytes that were sent again count
for transfers: a request is with the broker when its last segment is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from kafkascope.analyzer.model import Cause, Point, Stages
from kafkascope.kernel.path import (
    AGAIN,
    CLOSED,
    FILLED,
    FULL,
    HELD,
    NAGLE,
    PAUSED,
    SENT_AGAIN_NS,
    TRIP,
)

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Exchange, Spot
    from kafkascope.kernel.path import Path

CLIENT: Final = "client"
BROKER: Final = "broker"
NETWORK: Final = "network"

# Less is no stall: as `kernel.path.PAUSE`.
STALL: Final = 10_000_000
# Percent of the latency that a stall takes at least.
SHARE: Final = 10
# TCP sends again after 200 ms at the earliest (Linux: `TCP_RTO_MIN`), tail loss probes after two
# round trips (RFC 8985): one of these may have been for nothing.
TIMEOUT: Final = 180_000_000
# A pause after a full segment is its sender's where it is this many times as long as those between
# other segments: slow links space segments evenly.
STEADY: Final = 5
# The capture point is at an end whose round trip is shorter than this, and than a third of the
# other one: a host answers a SYN within some 0.1 ms.
NEAR: Final = 1_000_000

Event: TypeAlias = tuple[int, int, int, int, int, int]


COLUMNS: Final = (
    *("request_transfer_ns", "serving_ns", "response_transfer_ns", "rtt_ns", "retransmissions"),
    *("zero_window_ns", "stalled_by", "capture_point"),
)
"""Columns of `Row` with the fields of `Stages`, in their order."""


def stages_of(exchange: Exchange) -> Stages:
    """Return the stages of an exchange: those that were found before, or by what is known of its
    path by now."""
    if exchange.stages is not None:
        return exchange.stages
    connection, client = exchange.connection, exchange.client_end
    request, response = exchange.request, exchange.response
    asking = None if request is None else request.spot
    answering = None if response is None else response.spot
    path = connection.path
    first = asking or answering
    if first is None or path.off:
        return Stages()
    end_ns = first.last_ns if answering is None else answering.last_ns
    events: Sequence[Event] = ()
    if not path.quiet(first.first_ns):
        events = [each for each in path.events if each[3] >= first.first_ns]
        events += [
            (CLOSED, number, since, max(since, end_ns), 0, 0)
            for number, since in enumerate((path.closed0, path.closed1))
            if since
        ]
    known = path.trip(client, first.first_ns)
    trip = known if known >= 0 else None
    if asking is None or answering is None:
        mine = _between(events, first.first_ns, end_ns)
        return Stages(
            None if asking is None else asking.last_ns - asking.first_ns,
            None,
            None if answering is None else answering.last_ns - answering.first_ns,
            trip,
            None
            if answering is None
            else sum(each[0] == AGAIN and each[3] <= end_ns for each in mine),
            _closed(mine, first.first_ns, end_ns),
            None,
            point_of(path, client),
        )
    return _answered(exchange, asking, answering, trip, events)


def _answered(
    exchange: Exchange, asking: Spot, answering: Spot, trip: int | None, events: Sequence[Event]
) -> Stages:
    client = exchange.client_end
    begin, sent, answered = asking.first_ns, asking.last_ns, answering.first_ns
    end = answering.last_ns
    again = resumed = 0
    if events:
        assert exchange.request is not None
        assert exchange.response is not None
        plain = exchange.connection.tls is None
        request = exchange.request.offset, asking.wire_bytes
        answer = exchange.response.offset, answering.wire_bytes
        until = end + SENT_AGAIN_NS if plain else end
        if plain:
            # What was lost after the bytes of an exchange does not delay it.
            ends = sum(request), sum(answer)
            events = [
                each
                for each in events
                if each[0] not in (AGAIN, FILLED) or each[4] < ends[each[1] != client]
            ]
        for kind, direction, since, time_ns, first, last in events:
            if kind not in (AGAIN, FILLED):
                continue
            if direction == client:
                # The broker reads a request when all bytes before it have come, too.
                if begin <= time_ns <= answered:
                    sent = max(sent, time_ns)
                    again += kind == AGAIN and (not plain or last > request[0])
                    if kind == FILLED and plain and request[0] < last < sum(request):
                        begin = min(begin, since)  # What follows the missing bytes came first.
            elif time_ns <= answered and plain and last <= answer[0] and time_ns - since >= STALL:
                resumed = time_ns
            elif answered <= time_ns <= until and (not plain or _overlaps(answer, first, last)):
                end = max(end, time_ns)
                again += kind == AGAIN
                if kind == FILLED and plain and last < sum(answer):
                    answered = min(answered, since)
    path = exchange.connection.path
    mine = _between(events, begin, end)
    served = None
    # TCP holds a response back while it sends lost bytes before it again.
    if trip is not None and resumed <= sent:
        trips = [each[3] - each[2] for each in mine if each[0] == TRIP and each[3] <= answered]
        served = max(0, answered - sent - max([trip, *trips[-1:]]))
    return Stages(
        sent - begin,
        served,
        end - answered,
        trip,
        again,
        _closed(mine, begin, end),
        _stalled(exchange, (begin, sent), (answered, end), mine) if mine else None,
        point_of(path, client),
    )


def point_of(path: Path, client: int) -> Point | None:
    """Return where packets were captured, by the handshake."""
    if path.trip0 < 0 or path.trip1 < 0:
        return None
    to_broker, to_client = (path.trip1, path.trip0) if client else (path.trip0, path.trip1)
    if _near(to_client, to_broker):
        return CLIENT
    if _near(to_broker, to_client):
        return BROKER
    return "between" if to_broker + to_client > 2 * NEAR else None


def _near(trip: int, other: int) -> bool:
    return trip <= NEAR and 3 * trip <= other


def _overlaps(place: tuple[int, int], first: int, last: int) -> bool:
    offset, size = place
    return first < offset + size and last > offset


def _between(events: Sequence[Event], begin: int, end: int) -> list[Event]:
    return [each for each in events if each[2] <= end and each[3] >= begin]


def _closed(events: Sequence[Event], begin: int, end: int) -> int:
    spans = [(max(each[2], begin), min(each[3], end)) for each in events if each[0] == CLOSED]
    total, until = 0, begin
    for first, last in sorted(spans):
        total += max(0, last - max(first, until))
        until = max(until, last)
    return total


def _stalled(
    exchange: Exchange, request: tuple[int, int], response: tuple[int, int], events: Sequence[Event]
) -> Cause | None:
    """Return who delayed an exchange, by events of its path: None where nothing took long."""
    client, path = exchange.client_end, exchange.connection.path
    begin, answered, end = request[0], *response
    lost: dict[Cause, int] = {CLIENT: 0, BROKER: 0, NETWORK: 0}
    ends: tuple[Cause, Cause] = (BROKER, CLIENT) if client else (CLIENT, BROKER)
    for kind, direction, first, last, *_ in events:
        span = request if direction == client else response
        took = min(last, end) - max(first, begin)
        within = span[0] <= first and last <= span[1]
        if kind == CLOSED or (kind in (NAGLE, PAUSED) and within):
            lost[ends[direction]] += took
        elif kind == FULL and within:
            lost[ends[1 - direction]] += took
        elif kind == FILLED and span[0] < last <= span[1]:
            lost[NETWORK] += last - max(first, span[0])
        elif kind == AGAIN and begin <= last <= end:
            way = path.trip1 if direction else path.trip0
            # Its response may not have waited for it: it came sooner, or much later.
            needless = direction == client and not 0 <= answered - last - way <= took
            if took >= TIMEOUT or (way >= NEAR and not needless):
                lost[NETWORK] += took
    sides = (client, request, exchange.request), (1 - client, response, exchange.response)
    for direction, span, side in sides:
        held = [
            each[3] - each[2]
            for each in events
            if each[:2] == (HELD, direction) and span[0] <= each[2] and each[3] <= span[1]
        ]
        gaps = (0 if side is None or not held else len(side.frame.parts)) - 1
        if held and 2 * len(held) < gaps:
            usual = (span[1] - span[0] - sum(held)) // (gaps - len(held))
            least = max(STEADY * usual, 2 * max(0, path.trip0 + path.trip1) + 2 * STALL)
            lost[ends[direction]] += sum(each for each in held if each > least)
    cause = max(lost, key=lost.__getitem__)
    latency = max(end - begin - exchange.wait_ns, 0)
    return cause if lost[cause] >= max(STALL, latency * SHARE // 100) else None
