"""Times in which a broker took no connections, from the table of connections."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import itemgetter

from kafkascope.analyzer.findings.rules import SECOND, limit
from kafkascope.analyzer.findings.view import (
    DetectorInput,
    client_key,
    closed_at,
    ended_at,
    hosts_in,
)
from kafkascope.analyzer.identity import ClientKey, host_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.connections import FAILED, ZOOKEEPER
from kafkascope.analyzer.statistics.model import Line


@dataclass(slots=True)
class Outage:
    """A time in which an address that had worked took no connections."""

    begin_ns: int
    end_ns: int | None
    """When the next connection came to be; None: not before the capture ended."""
    failed: list[Line]
    """Connects that were refused or not answered."""
    ended: list[Line] = field(default_factory=list)
    """Connections that the broker ended at the beginning."""
    seen: bool = True
    """Whether the capture shows that the address had worked; else its cluster counts it as gone."""

    @property
    def silent(self) -> bool:
        """Whether no connect was even refused."""
        return all(line["phase"] == "no answer" for line in self.failed)


def works(line: Line) -> bool:
    """Return whether the broker answered on it."""
    return bool(line["requests"] > line["unanswered"])


def of_zookeeper(line: Line) -> bool:
    """Return whether ZooKeeper's protocol is spoken on it."""
    return bool((line["protocol"] or "").lower().startswith(ZOOKEEPER))


def by_broker(view: DetectorInput) -> dict[str, list[Line]]:
    """Group connections by the address of the broker. Of one that began before the capture and
    carries no request, the side is unknown, unless others were opened to it."""
    found: dict[str, list[Line]] = defaultdict(list)
    middle = view.base.connections.midstream()
    odd: list[Line] = []
    for line in view.lines:
        if line["opened"] is None:
            continue
        early = line["connection"] in middle
        if early and not line["requests"]:
            odd.append(line)
        else:
            found[line["broker_address"]].append({**line, "early": early})
    for line in odd:
        ends = (line["broker_address"], line["client_address"])
        broker = next((each for each in ends if each in found), ends[0])
        found[broker].append({**line, "early": True})
    return found


def _took(line: Line) -> bool:
    """Return whether the broker took the connection."""
    # What is left of a refused connect whose SYN came before the capture is one RST.
    early = line["early"] and (line["client_bytes"] or line["broker_bytes"] or line["life"])
    return works(line) or line["handshake"] is not None or bool(early)


def outages_of(lines: list[Line], *, gone: bool) -> Iterator[Outage]:
    """Yield runs of failed connects to an address that had taken others before, in the order of
    time; or of a broker that is `gone` for its cluster. `lines`: by when they opened."""
    current: Outage | None = None
    worked = _Worked()
    for line in lines:
        if line["phase"] in FAILED:
            if current is not None:
                current.failed.append(line)
            elif worked.took:
                current = Outage(line["opened"], None, [line])
            elif gone:
                current = Outage(line["opened"], None, [line], seen=False)
            continue
        if current is not None and (line["handshake"] is not None or works(line)):
            current.end_ns = line["opened"]
            yield worked.ended_with(current)
            current = None
        worked.add(line)
    if current is not None:
        yield worked.ended_with(current)


class _Worked:
    """Connections before an outage. A broker may have thousands of outages: what was closed long
    before one matters to none after it."""

    def __init__(self) -> None:
        self.took = False
        self._answered_ns = 0
        self._closed: list[tuple[int, int, Line]] = []
        """Connections that the broker ended, as a heap by time."""
        self._count = 0

    def add(self, line: Line) -> None:
        """Add a connection that did not fail."""
        self.took = self.took or _took(line)
        self._answered_ns = max(self._answered_ns, line["answered"] or 0)
        if line["end"].startswith("broker"):
            self._count += 1
            heappush(self._closed, (closed_at(line), self._count, line))

    def ended_with(self, outage: Outage) -> Outage:
        """Return an outage with the connections that the broker ended shortly before the first
        failed connect."""
        while self._closed and self._closed[0][0] < outage.begin_ns - limit("outage.before"):
            heappop(self._closed)
        # What it closed while others went on was no outage.
        least = self._answered_ns - SECOND
        found = [each for each in self._closed if least <= each[0] <= outage.begin_ns]
        outage.ended = [line for _, _, line in sorted(found, key=itemgetter(1))]
        if outage.ended:
            outage.begin_ns = min(closed_at(line) for line in outage.ended)
        return outage


class AtBroker:
    """The connections of one address, for its outages in the order of time."""

    def __init__(self, address: str, lines: list[Line]) -> None:
        """`lines`: by when they opened."""
        self.address = address
        self.lines = lines
        self.zookeeper = any(map(of_zookeeper, lines))
        self.asked = any(line["requests"] for line in lines)
        self._next = 0
        self._ends: list[tuple[int, int, str]] = []
        """A heap of when they ended, of those that are in `_by_host`."""
        self._by_host: dict[str, dict[int, Line]] = defaultdict(dict)
        self._opened = by_key((line["opened"], line) for line in lines)

    def users(self, outage: Outage) -> set[ClientKey]:
        """Return clients connected when it went or came back, and other clients of the hosts that
        tried."""
        last = outage.failed[-1]["opened"]
        begin = outage.begin_ns - limit("outage.before")
        self._move_on(begin - limit("outage.before"), last)
        back = [] if outage.end_ns is None else self._opened.get(outage.end_ns, [])
        there = (line for host in hosts_in(outage.failed) for line in self._by_host[host].values())
        return {
            client_key(line)
            for line in (*outage.ended, *back, *there)
            if line["client_id"] and ended_at(line) >= begin
        }

    def _move_on(self, begin: int, last: int) -> None:
        """Take in what opened up to `last`; let go of what ended before `begin`, for outages after
        this one begin later than that, too."""
        while self._next < len(self.lines) and self.lines[self._next]["opened"] <= last:
            line = self.lines[self._next]
            self._next += 1
            host = host_of(line["client_address"])
            self._by_host[host][line["connection"]] = line
            heappush(self._ends, (ended_at(line), line["connection"], host))
        while self._ends and self._ends[0][0] < begin:
            _, connection, host = heappop(self._ends)
            self._by_host[host].pop(connection, None)


class AnsweredHosts:
    """Hosts answered by each broker, and until when."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._opened: dict[str, list[int]] = defaultdict(list)
        """Host -> when its connections that work opened, in order."""
        self._until: dict[str, list[tuple[int, str, int]]] = defaultdict(list)
        """Host -> for each of those, of it and all before: the last answer, the broker that gave
        it, and the last one of any other broker."""
        worked = [line for line in lines if line["opened"] is not None and works(line)]
        for line in sorted(worked, key=itemgetter("opened")):
            host, broker = host_of(line["client_address"]), line["broker_address"]
            until = self._until[host]
            best, of, other = until[-1] if until else (0, broker, 0)
            answered = line["answered"] or 0
            if broker == of:
                best = max(best, answered)
            elif answered > best:
                best, of, other = answered, broker, best
            else:
                other = max(other, answered)
            self._opened[host].append(line["opened"])
            until.append((best, of, other))

    def meanwhile(self, host: str, broker: str, begin_ns: int, end_ns: int) -> bool:
        """Return whether another broker answered a host after `begin_ns`, on a connection that
        opened before `end_ns`."""
        at = bisect_left(self._opened.get(host, ()), end_ns) - 1
        if at < 0:
            return False
        best, of, other = self._until[host][at]
        return (other if of == broker else best) > begin_ns
