"""Idle connections that a device between client and broker forgot: reset at their next request."""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.sessions import expired
from kafkascope.analyzer.findings.view import View, duration
from kafkascope.analyzer.statistics.connections import ZOOKEEPER
from kafkascope.analyzer.statistics.model import Line

SECOND: Final = 1_000_000_000
DEVICES: Final = (
    (3600, "many firewalls"),
    (600, "Google Cloud's load balancers"),
    (350, "AWS Network Load Balancer"),
    (240, "Azure Load Balancer"),
)
"""Idle timeouts in seconds that vendors document."""
NEAR: Final = 30
"""Seconds that a client may be idle beyond the timeout that it is compared with."""


def rest_of(line: Line) -> int | None:
    """Return how long a connection was idle before the request at which it was reset; None where
    that is not how it ended. Devices answer at once for a connection that they forgot; a FIN comes
    from a host that knew it."""
    answered, waiting, ended = line["answered"], line["waiting"], line["ended"]
    if answered is None or waiting is None or line["end"] != "broker rst":
        return None
    rest = int(waiting - answered)
    at_once = 0 <= ended - waiting < limit("lost.age")
    idle = rest >= limit("reset.rest")
    return rest if at_once and idle and line["protocol"] != ZOOKEEPER else None


def idle_resets(view: View) -> list[tuple[int, Line]]:
    """Return connections that were reset at their first request after a rest, with the rest, the
    shortest first; none where too few may have another reason."""
    found = [
        (rest, line)
        for line in view.lines()
        if not expired(line) and (rest := rest_of(line)) is not None
    ]
    found.sort(key=lambda each: each[0])
    if len(found) >= limit("reset.count"):
        return found
    return [each for each in found if each[0] >= limit("reset.single")]


def rests_text(rests: list[int]) -> str:
    """Return `360 s`, or `360 s to 900 s`."""
    first, last = duration(min(rests)), duration(max(rests))
    return first if max(rests) - min(rests) <= SECOND else f"{first} to {last}"


def device_text(rest_ns: int) -> str:
    """Return the vendor whose idle timeout a rest is just above; empty for none."""
    seconds = rest_ns / SECOND
    return next(
        (
            f"; {name} {'drop' if name.endswith('s') else 'drops'} connections after {timeout} s"
            for timeout, name in DEVICES
            if timeout <= seconds + 1 and seconds - timeout <= max(NEAR, timeout // 10)
        ),
        "",
    )


def advice_text(rest_ns: int) -> str:
    """Return the fix, with a time below the shortest rest."""
    below = max(1, int(rest_ns / SECOND * 0.75))
    return (
        "Set connections.max.idle.ms of the clients below the idle timeout of the load balancer, "
        f"NAT or firewall in between (say {below * 1000}), raise that timeout, or enable TCP "
        "keep-alive. Such a device forgets idle connections and resets them at the next packet."
    )
