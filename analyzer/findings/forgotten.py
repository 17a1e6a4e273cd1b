"""Connections that a device between client and broker forgot while they were idle, which it resets
or closes at the next request."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from kafkascope.analyzer.findings.filters import connections_in
from kafkascope.analyzer.findings.outage_times import works
from kafkascope.analyzer.findings.rules import SECOND, limit
from kafkascope.analyzer.findings.security import expired, rest_before
from kafkascope.analyzer.findings.versions import refused_versions
from kafkascope.analyzer.findings.view import DetectorInput, Finding, brokers_in, client_key
from kafkascope.analyzer.findings.words import duration, listed, plural
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.connections import ZOOKEEPER
from kafkascope.analyzer.statistics.model import Line

DEFAULT_IDLE: Final = 600 * SECOND
"""connections.max.idle.ms of brokers."""
DEVICES: Final = (
    (3600, "many firewalls"),
    (600, "Google Cloud's load balancers"),
    (350, "AWS Network Load Balancer"),
    (240, "Azure Load Balancer"),
)
"""Idle timeouts in seconds that vendors document."""
# Seconds that a client may be idle beyond the timeout that it is compared with.
NEAR: Final = 30


def forgotten(view: DetectorInput) -> Iterator[Finding]:
    """Yield one finding about all these connections, for the device is the same."""
    found = _idle_ends(view)
    if found:
        yield _finding(found, view)


def _finding(found: list[tuple[int, Line]], view: DetectorInput) -> Finding:
    """Return the finding. `found`: idle times and connections, the shortest first."""
    lines = [line for _, line in found]
    shortest, longest = found[0][0], found[-1][0]
    rests = duration(shortest)
    rests += f" to {duration(longest)}" if longest - shortest > SECOND else ""
    who, brokers = view.clients_at(lines), brokers_in(lines)
    lost = sum(line["unanswered"] for line in lines)
    fins = sum(map(_is_fin, lines))
    how = "reset" if not fins else "closed" if fins == len(lines) else "closed or reset"
    return view.finding(
        "silent-drop",
        f"{plural(len(lines), 'connection')} from {listed(who)} to {listed(brokers)} "
        f"{'was' if len(lines) == 1 else 'were'} {how} at the first request after {rests} of "
        f"inactivity; {plural(lost, 'request')} lost{device_near(shortest)}",
        f"{connections_in(lines)} and not answered",
        count=len(lines),
        span=(min(line["waiting"] for line in lines), max(line["waiting"] for line in lines)),
        advice=idle_advice(shortest, closes=fins == len(lines)),
        connects=connections_in(lines),
        about={"client": who, "broker": brokers},
    )


def _idle_ends(view: DetectorInput) -> list[tuple[int, Line]]:
    """Return the connections that were reset or closed at their first request after a rest, each
    with its idle time, the shortest first. Empty where there are so few that each may have another
    reason."""
    rests = [(_rest_of(line), line) for line in view.lines if not expired(line)]
    found = [(rest, line) for rest, line in rests if rest is not None]
    others = [line for rest, line in rests if rest is None]
    own = _OwnCloses(others, view) if any(_is_fin(line) for _, line in found) else None
    found = [each for each in found if own is None or not own.may_be(*each)]
    found.sort(key=lambda each: each[0])
    if len(found) >= limit("reset.count"):
        return found
    soon = _soon(view)
    if soon:
        return soon
    return [each for each in found if each[0] >= limit("reset.single") and not _is_fin(each[1])]


def _soon(view: DetectorInput) -> list[tuple[int, Line]]:
    """Return connections that were reset after shorter rests, where that happened several times,
    one after the other, and to none that was busy: a broker that stops resets all at once."""
    reset = by_key(
        (line["broker_address"], (rest_before(line), line))
        for line in view.lines
        if line["end"] == "broker rst" and line["unanswered"]
    )
    for found in reset.values():
        found.sort(key=lambda each: (each[0] or 0, each[1]["connection"]))
        times = sorted(line["ended"] for _, line in found)
        turns = 1 + sum(after - before >= SECOND for before, after in pairwise(times))
        rests = [_rest_of(line, limit("drop.rest")) for _, line in found]
        if (
            turns >= limit("reset.turns")
            and None not in rests
            and not any(expired(line) for _, line in found)
        ):
            return [(rest or 0, line) for rest, line in found]
    return []


def _rest_of(line: Line, least: float | None = None) -> int | None:
    """Return how long a connection was idle before the request at which the broker's side ended it;
    None where that is not how it ended. Devices answer at once for a connection that they
    forgot."""
    rest = rest_before(line)
    if rest is None or line["end"] not in ("broker fin", "broker rst"):
        return None
    at_once = 0 <= line["ended"] - line["waiting"] < limit("lost.age")
    idle = rest >= (limit("reset.rest") if least is None else least)
    return rest if at_once and idle and line["protocol"] != ZOOKEEPER else None


def _is_fin(line: Line) -> bool:
    return str(line["end"]) == "broker fin"


class _OwnCloses:
    """Connections that brokers closed themselves. A load balancer or proxy that lost its own half
    of an idle connection closes the other with a FIN; so does a broker that stops, and one whose
    connections.max.idle.ms is over just as a request arrives."""

    def __init__(self, others: list[Line], view: DetectorInput) -> None:
        self._ended: dict[str, list[int]] = defaultdict(list)
        self._idle: dict[str, list[int]] = defaultdict(list)
        for line in others:
            if line["end"] not in ("broker fin", "broker rst") or not works(line):
                continue
            self._ended[line["broker_address"]].append(line["ended"])
            if _is_fin(line) and line["idle"] is not None:
                self._idle[line["broker_address"]].append(line["idle"])
        for times in (*self._ended.values(), *self._idle.values()):
            times.sort()
        self._refused = refused_versions(view)

    def may_be(self, rest: int, line: Line) -> bool:
        """Return whether the broker may have closed this one."""
        if not _is_fin(line):
            return False
        broker, near = line["broker_address"], limit("idle.default")
        return (
            client_key(line) in self._refused
            or abs(rest - DEFAULT_IDLE) <= near
            or _has_near(self._idle[broker], rest, near)
            or _has_near(self._ended[broker], line["ended"], SECOND)
        )


def _has_near(ordered: list[int], value: int, distance: int) -> bool:
    at = bisect_left(ordered, value - distance)
    return at < len(ordered) and ordered[at] <= value + distance


def device_near(rest_ns: int) -> str:
    """Return the vendor whose idle timeout a rest is just above; empty for none."""
    seconds = rest_ns / SECOND
    for timeout, name in DEVICES:
        if timeout <= seconds + 1 and seconds - timeout <= max(NEAR, timeout // 10):
            drop = "drop" if name.endswith("s") else "drops"
            return f"; {name} {drop} connections after {timeout} s"
    return ""


def idle_advice(rest_ns: int, *, closes: bool = False) -> str:
    """Return the fix, with a time below the shortest rest. `closes`: the device ends connections
    with a FIN, as a proxy does that has a connection of its own to each side."""
    below = max(1, int(rest_ns / SECOND * 0.75))
    device = "proxy or load balancer" if closes else "load balancer, NAT or firewall"
    how = (
        "loses its idle connection to the broker, and closes the client's at the next request."
        if closes
        else "forgets idle connections and resets them at the next packet."
    )
    return (
        f"Set connections.max.idle.ms of the clients below the idle timeout of the {device} in "
        f"between (say {below * 1000}), raise that timeout, or enable TCP keep-alive. Such a "
        f"device {how}"
    )
