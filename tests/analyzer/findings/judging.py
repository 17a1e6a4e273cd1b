"""Findings of captures and of traffic by hand, which is exact to the nanosecond on both sides of a
limit; what their sentences state."""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.filter.language import compile_filter
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.findings.outcomes import Outcome, outcomes
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import Closed, Opened, StreamEvent
from tests.kit.counting import count_capture, counted
from tests.kit.samples import CAPTURES
from tests.kit.wire import MS, SECOND, START, Wire, request, response, told


def ends(path: Path) -> dict[str | None, Outcome]:
    """Client id -> what became of the client."""
    found = Findings()
    names = count_capture(path, found)
    return {who.client_id: end for who, end in outcomes(found, names).items()}


def found(wires: Iterable[Wire], *rules: str, **options: Any) -> dict[str, Finding]:
    """Rule -> finding, of these rules or of all; events in the order of time."""
    return {each.name: each for each in every(in_order(wires), *rules, **options)}


def every(events: list[StreamEvent], *rules: str, **options: Any) -> list[Finding]:
    """All findings of these rules, causes before their consequences; every evidence filter is
    tried."""
    findings = Findings(only=rules or None, **options)
    pairs, names = watched(findings, events)
    out = findings.reported(names)
    for finding in out:
        selects = compile_filter(finding.filter)
        # What is about connections that came to none has no exchanges.
        assert finding.connects or any(selects(*pair) for pair in pairs), finding
    return out


def watched(
    findings: Findings, events: list[StreamEvent]
) -> tuple[list[tuple[Row, Exchange]], TopicNames]:
    """Let findings count the connections and the exchanges of events."""
    context = Context()
    for event in events:
        if isinstance(event, Opened | Closed):
            findings.saw(event)
    pairs = [(row_of(each, context.names), each) for each in told(events, context)]
    counted(findings, pairs)
    return pairs, context.names


def outcome_of(wires: Iterable[Wire], client: str | None = None) -> Outcome:
    """What became of a client, or of the only one."""
    findings = Findings()
    _, names = watched(findings, in_order(wires))
    ends = {who.client_id: end for who, end in outcomes(findings, names).items()}
    return ends[client] if client else next(iter(ends.values()))


def in_order(wires: Iterable[Wire]) -> list[StreamEvent]:
    """Events of connections in the order of time."""
    return sorted((event for wire in wires for event in wire.events), key=time_of)


def time_of(event: StreamEvent) -> int:
    if isinstance(event, Opened):
        return event.connection.first_ns
    if isinstance(event, Closed):
        return event.time_ns
    pieces = getattr(event, "pieces", None)
    return int(pieces[0].time_ns) if pieces else int(getattr(event, "time_ns", 0))


@cache
def judged(path: Path) -> tuple[list[Finding], list[tuple[Row, Exchange]]]:
    found = Findings()
    log = path.with_name(path.name.partition(".")[0] + ".keys")
    with open_capture([path], keylog=[log] if log.exists() else []) as capture:
        capture.watch = found.saw
        exchanges = list(capture.exchanges())
        names = capture.context.names
        pairs = [(row_of(exchange, names), exchange) for exchange in exchanges]
    return counted(found, pairs).reported(names), pairs


def capture_of(name: str, folder: Path = CAPTURES) -> Path:
    places = folder, CAPTURES / "causes", CAPTURES / "tls"
    return next(each for place in places for each in place.glob(f"{name}.pcap*"))


def states(text: str, *parts: object) -> bool:
    """Return whether a text has these parts in this order, each as whole words."""
    place = 0
    for part in map(str, parts):
        found = re.compile(rf"(?<![\w.]){re.escape(part)}(?!\w)").search(text, place)
        if found is None:
            return False
        place = found.end()
    return True


def sized(wire: Wire) -> Wire:
    """With the numbers of bytes that reassembly counts."""
    wire.connection.bytes = list(wire.offsets)
    return wire


def reported(wires: Iterable[Wire]) -> list[Finding]:
    """Findings of connections whose bytes are counted."""
    return list(found([sized(wire) for wire in wires]).values())


class Side(NamedTuple):
    """What decides at a limit."""

    make: Callable[[int], bool]
    """Makes traffic of some size, and says whether it was told."""
    calm: int
    """The last size that is not told, or is told more mildly."""
    told: int
    """The first one that is; smaller than `calm` where less is worse."""


def least(make: Callable[[int], bool], told: int) -> Side:
    """Told from a size on."""
    return Side(make, told - 1, told)


def most(make: Callable[[int], bool], told: int) -> Side:
    """Told up to a size."""
    return Side(make, told + 1, told)


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


def commit(wire: Wire, number: int, offset: int) -> None:
    """A commit of t-0 by a member of group g."""
    row = {"partition_index": 0, "committed_offset": offset}
    asked = {"group_id": "g", "member_id": "m", "generation_id_or_member_epoch": 1}
    asked["topics"] = [{"name": "t", "partitions": [row]}]
    done = [{"name": "t", "partitions": [{"partition_index": 0, "error_code": 0}]}]
    wire.exchange("OffsetCommit", 8, number, {"topics": done}, **asked)


def wire_of(number: int) -> Wire:
    """A connection of a port of its own."""
    wire = Wire(number=number)
    wire.connection.a = wire.connection.a._replace(port=50_000 + number)
    return wire
