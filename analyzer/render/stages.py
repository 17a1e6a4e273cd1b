"""Where the time of an exchange went, as a bar with its legend.

>>~~~~~~~~####....<  > request transfer 3.1 ms  ~ round trip 80 ms  # server ...
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkascope.analyzer.exchanges.stages import stages_of
from kafkascope.analyzer.model import Exchange, Logged, Point
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.text import plural

# Signs of a bar, or some more: each stage has one at least.
BAR: Final = 40
SIGNS: Final = {
    "request transfer": ">",
    "round trip": "~",
    "server": "#",
    "server and round trip": "?",
    "wait": ".",
    "response transfer": "<",
    "request queue": ":",
    "request handler": "#",
    "replicas": "+",
    "purgatory": "+",
    "response queue": ";",
    "send": "<",
    "outside of the broker": "~",
}
"""In their order; those of a broker's request log last."""
WHERE: Final[dict[Point, str]] = {
    "client": "at the client",
    "broker": "at the broker",
    "between": "between client and broker",
}


class Stage(NamedTuple):
    """A part of the latency."""

    name: str
    took_ns: int

    @property
    def legend(self) -> str:
        return f"{SIGNS[self.name]} {self.name} {duration(self.took_ns)}"


def stage_list(exchange: Exchange) -> list[Stage]:
    """Return the stages that took time, in their order; none where times are unknown."""
    if exchange.logged is not None and exchange.logged.times.local_ns is not None:
        return _inside(exchange, exchange.logged)
    request, response, stages = exchange.request, exchange.response, stages_of(exchange)
    if request is None or response is None or stages.request_ns is None:
        return []
    both = max(0, response.spot.first_ns - request.spot.first_ns - stages.request_ns)
    server = both if stages.server_ns is None else min(stages.server_ns, both)
    wait = min(exchange.wait_ns, server)
    found = {
        "request transfer": stages.request_ns,
        "round trip": both - server,
        "server and round trip" if stages.server_ns is None else "server": server - wait,
        "wait": wait,
        "response transfer": stages.response_ns or 0,
    }
    return [Stage(name, took) for name, took in found.items() if took > 0]


def _inside(exchange: Exchange, logged: Logged) -> list[Stage]:
    """Return the stages inside the broker. What the client asked to wait for is a wait, as it is
    with packets."""
    times, latency = logged.times, exchange.latency_ns
    wait = min(exchange.wait_ns, times.remote_ns or 0)
    rest = (times.remote_ns or 0) - wait
    outside = 0 if latency is None or exchange.sizeless else latency - logged.total_ns
    found = {
        "request queue": times.request_queue_ns or 0,
        "request handler": times.local_ns or 0,
        "replicas" if exchange.api == "Produce" else "purgatory": rest,
        "wait": wait,
        "response queue": times.response_queue_ns or 0,
        "send": times.send_ns or 0,
        "outside of the broker": outside,
    }
    return [Stage(name, took) for name, took in found.items() if took > 0]


def stage_bar(stages: list[Stage]) -> Iterator[tuple[str, Stage]]:
    """Yield the signs of each stage in a bar."""
    total = sum(stage.took_ns for stage in stages)
    for stage in stages:
        yield SIGNS[stage.name] * max(1, round(BAR * stage.took_ns / total)), stage


def remarks(exchange: Exchange) -> str:
    """Return in words what delayed the bytes of an exchange, and where they were captured."""
    stages = stages_of(exchange)
    out = [] if stages.stalled_by is None else [f"stalled by {stages.stalled_by}"]
    if stages.retransmissions:
        out.append(plural(stages.retransmissions, "retransmission"))
    if stages.closed_ns:
        out.append(f"receive window closed for {duration(stages.closed_ns)}")
    if stages.point is not None:
        out.append("captured " + WHERE[stages.point])
    return ", ".join(out)


def stage_lines(exchange: Exchange) -> Iterator[str]:
    """Yield the bar with remarks, then its legend."""
    stages, words = stage_list(exchange), remarks(exchange)
    if stages:
        bar = "".join(signs for signs, _ in stage_bar(stages))
        yield f"{bar}  {words}".rstrip()
        yield "  ".join(stage.legend for stage in stages)
    elif words:
        yield words
