"""Traffic on both sides of a limit, made by hand to the nanosecond."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.findings.limits import LIMITS, FindingLimits
from kafkascope.analyzer.payloads.decoding import Payloads
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.captures.model import Closed, Opened, StreamEvent
from tests.analyzer.wire import MS, START, Wire, request, response, told

SECOND = 1000 * MS


class Side(NamedTuple):
    """What decides at a limit."""

    make: Callable[[int], bool]
    """Makes traffic of some size, and says whether it was told."""
    calm: int
    """The last size that is not told, or is told more mildly."""
    told: int
    """The first one that is; smaller than `calm` where less is worse."""


def found(
    wires: Iterable[Wire],
    *rules: str,
    payloads: Payloads | None = None,
    limits: FindingLimits = LIMITS,
) -> dict[str, Finding]:
    """Rule -> finding, of these rules; events in the order of time."""
    events = sorted((event for wire in wires for event in wire.events), key=time_of)
    return found_in(events, *rules, payloads=payloads, limits=limits)


def found_in(
    events: Iterable[StreamEvent],
    *rules: str,
    payloads: Payloads | None = None,
    limits: FindingLimits = LIMITS,
) -> dict[str, Finding]:
    """Rule -> finding, of these rules."""
    events = list(events)
    findings = Findings(only=rules or None, payloads=payloads, limits=limits)
    context = Context()
    for event in events:
        if isinstance(event, Opened | Closed):
            findings.saw(event)
    for exchange in told(events, context):
        findings.add(ExchangeBatch.of(row_of(exchange, context.names), exchange))
    return {each.name: each for each in findings.reported(context.names)}


def time_of(event: StreamEvent) -> int:
    if isinstance(event, Opened):
        return event.connection.first_ns
    if isinstance(event, Closed):
        return event.time_ns
    pieces = getattr(event, "pieces", None)
    return int(pieces[0].time_ns) if pieces else int(getattr(event, "time_ns", 0))


def seconds(time_ns: int) -> Fraction:
    """For builders that take seconds."""
    return Fraction(time_ns, SECOND)


def severity(wires: Iterable[Wire], rule: str) -> str | None:
    finding = found(wires, rule).get(rule)
    return finding.severity if finding is not None else None


def at(wire: Wire, after_ns: int) -> Wire:
    """The wire, whose next packet is sent so long after the beginning."""
    wire.time_ns = START + after_ns - MS
    return wire


def ask(wire: Wire, number: int, begin_ns: int, end_ns: int, **fields: Any) -> None:
    """A Metadata request that is answered at the end."""
    named = f"app-{wire.connection.number}"
    at(wire, begin_ns).client(request("Metadata", 8, number, named))
    at(wire, end_ns).broker(response("Metadata", 8, number, **fields))


def wire_of(number: int) -> Wire:
    """A connection of a port of its own."""
    wire = Wire(number=number)
    wire.connection.a = wire.connection.a._replace(port=50_000 + number)
    return wire
