"""Connections: too many, short-lived, lossy, and what a capture lacks of them (question 16)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.findings.filters import all_of, connections_in, quoted, with_requests
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import DetectorInput, Finding, unreadable
from kafkascope.analyzer.findings.words import duration, plural, size, spelled
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.connections import ZOOKEEPER, client_of
from kafkascope.analyzer.statistics.model import Line

# The payload of a TCP segment, for a count of segments.
SEGMENT: Final = 1448


def findings(view: DetectorInput) -> Iterator[Finding]:
    """Yield findings by client; of the capture."""
    lines = view.lines
    by_client = by_key((client_of(line), line) for line in lines)
    for summary in view.base.connections.by_client(lines=lines):
        yield from _lossy(summary, by_client.get(client_of(summary), []), view)
    # What a tool does with ZooKeeper, it does on a connection of its own.
    kafka = [line for line in lines if line["protocol"] != ZOOKEEPER]
    by_client = by_key((client_of(line), line) for line in kafka)
    for summary in view.base.connections.by_client(lines=kafka):
        yield from _many(summary, by_client.get(client_of(summary), []), view)
    middle = view.base.connections.midstream()
    gaps = [line for line in lines if line["gap_bytes"] and not unreadable(line)]
    if gaps:
        missing = view.gap_bytes()
        of = plural(len(gaps), "connection")
        if missing > sum(line["gap_bytes"] for line in gaps):
            of = f"more than {of}"
        # What a network that loses or reorders had under way when the capture began or ended is
        # outside of it, and nobody dropped it.
        outside = all(
            line["gap_bytes"] <= limit("gaps.window")
            and (line["retransmissions"] or line["out_of_order"])
            and (line["connection"] in middle or line["state"] == "open")
            for line in gaps
        )
        text, severity = f"The capture lacks {size(missing)} of {of}", "note" if outside else None
        yield _of("capture-gaps", text, gaps, view, severity=severity, case=view.gap_cause)
    # Connections that only a request log has come also after the capture.
    packets = [line for line in with_requests(lines) if line["client_bytes"] is not None]
    there = [line for line in packets if line["connection"] in middle]
    if there:
        text = f"{plural(len(there), 'connection')} began before the capture started"
        yield _of("capture-midstream", text, there, view)


def _many(line: Line, own: list[Line], view: DetectorInput) -> Iterator[Finding]:
    count, rate, life = line["connections"], line["per_minute"] or 0, line["life"]
    short = life is not None and life <= limit("connections.life")
    if not own or not short:
        return
    if count < limit("connections.short") or rate < limit("connections.rate"):
        return
    asking = sum(each["phase"] == "versions" for each in own)
    text = (
        f"{spelled(client_of(line))} opened {plural(count, 'connection')}, {rate:.0f} per minute, "
        f"with a median lifetime of {duration(life)}"
    )
    if 100 * asking >= limit("connections.asking") * count:
        name = "apiversions-loop"
        text += f"; {asking:,} of them carried only ApiVersions"
    elif _churns(own, line["per_connection"]):
        name = "connection-churn"
        text += f" and {line['per_connection']:.1f} requests each"
        text += f", {line['unused']} of them unused" if line["unused"] else ""
    else:
        return
    # Brokers ended these, or did not let the client in.
    refused = sum(
        each["end"].startswith("broker") or bool(each["failed"] and each["phase"] != "work")
        for each in own
    )
    text += f"; brokers closed or refused {refused:,} of them" if refused else ""
    if count - refused < limit("connections.short"):
        yield _of(name, text, own, view, severity="note", case="ended-by-broker")
    else:
        yield _of(name, text, own, view)


def _lossy(line: Line, own: list[Line], view: DetectorInput) -> Iterator[Finding]:
    lost = line["retransmissions"]
    octets = sum((each["client_bytes"] or 0) + (each["broker_bytes"] or 0) for each in own)
    segments = max(octets // SEGMENT, 2 * line["requests"], 1)
    if not own or lost < limit("network.retransmissions-count"):
        return
    if 100 * lost >= limit("network.retransmissions") * segments:
        text = (
            f"Connections of {spelled(client_of(line))} had {plural(lost, 'retransmission')}, "
            f"about {100 * lost / segments:.1f} % of their segments"
        )
        lossy = [each for each in own if each["retransmissions"]]
        ends = [each["opened"] + each["life"] for each in lossy if each["life"] is not None]
        span = None, max(ends, default=None)  # segments were lost until then, at most
        yield _of("network-loss", text, lossy, view, count=lost, span=span)


def _of(name: str, text: str, lines: list[Line], view: DetectorInput, **more: Any) -> Finding:
    clients = {line["client_id"] for line in lines}
    who = clients.pop() if len(clients) == 1 else None
    return view.finding(
        name,
        text,
        all_of(
            f"client == {quoted(who)}" if who else "",
            connections_in(with_requests(lines), LIMITS.client_connections),
        ),
        lines=lines,
        about={"client": spelled(who) if who else ()},
        **more,
    )


def _churns(own: list[Line], requests: float) -> bool:
    """Return whether connections come one after the other for as long as there is something to do,
    as those of a client that is made anew for each use; at its start a program opens many, too."""
    opened = [each["opened"] for each in own]
    span = max(opened) - min(opened)
    if not requests:
        return False
    if span >= limit("connections.span") or len(own) >= limit("connections.burst"):
        return True
    used = sorted(
        each["opened"]
        for each in own
        if each["phase"] == "work"
        and each["end"] == "client fin"
        and each["life"] is not None
        and each["life"] <= limit("connections.use")
    )
    return (
        len(used) >= limit("connections.short")
        and used[-1] - used[0] >= limit("connections.while")
        and requests <= limit("connections.few")
    )
