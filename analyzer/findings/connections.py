"""Connections: too many, short-lived, lossy, and what a capture lacks of them (question 16)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import (
    GapCause,
    View,
    all_of,
    among,
    duration,
    plural,
    size,
    unreadable,
)
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.connections import ZOOKEEPER, client_of
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled

SEGMENT: Final = 1448
ENDED_THERE: Final = (
    "Find out why brokers close or refuse the connections: see the other findings and the broker's "
    "log. The client has to reconnect each time, also if it reuses its connections."
)


GAP_ADVICE: Final[dict[GapCause, str]] = {
    "mirror": "Raise the packet length of the mirror (AWS: PacketLength of the mirror session; "
    "ERSPAN: no truncation), or the MTU between it and the capturing host by the size of its "
    "headers (VXLAN: 54 bytes). It cut packets that are longer. The other findings cover only what "
    "was captured.",
    "damage": "Copy the capture again in binary mode, or capture again: the file is damaged, and "
    "bytes of these connections were in what could not be read. The other findings cover only the "
    "rest.",
}


class Lives(Detector):
    """From the statistic of connections."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "connection-churn",
            "warning",
            "client that opens short-lived connections one after another",
            "Create one client object and reuse it. Each connection costs the broker threads, "
            "memory, and TLS and SASL handshakes.",
            brief="{n} short connection|{n} short connections",
            limits=(
                "connections.short",
                "connections.rate",
                "connections.life",
                "connections.asking",
                "connections.span",
                "connections.burst",
                "connections.use",
                "connections.while",
                "connections.few",
            ),
        ),
        Rule(
            "apiversions-loop",
            "warning",
            "client that connects, sends only ApiVersions and disconnects",
            "If it is a readiness probe, probe every 10 s or less often. Otherwise check whether "
            "the client supports the versions that the broker offers. Each connection costs the "
            "broker a handshake.",
            brief="{n} short connection|{n} short connections",
            limits=(
                "connections.short",
                "connections.rate",
                "connections.life",
                "connections.asking",
            ),
        ),
        Rule(
            "network-loss",
            "warning",
            "TCP retransmissions",
            "Check the network path and the load of the receiving machine. Each lost segment "
            "costs at least one round trip, often 200 ms.",
            brief="{n} TCP retransmission|{n} TCP retransmissions",
            limits=("network.retransmissions", "network.retransmissions-count"),
        ),
        Rule(
            "capture-gaps",
            "warning",
            "bytes missing from the capture",
            "Capture whole packets (tcpdump -s 0) with a larger buffer (-B 65536), closer to the "
            "source. The other findings cover only what was captured.",
            limits=("gaps.window",),
        ),
        Rule(
            "capture-midstream",
            "chat",
            "connections opened before the capture started",
            "Start the capture before the clients. Libraries, users and fetch sessions of these "
            "connections are unknown.",
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client; of the capture."""
        lines = view.lines()
        by_client: dict[str, list[Line]] = {}
        for line in lines:
            by_client.setdefault(client_of(line), []).append(line)
        for summary in view.base.connections.by_client(lines=lines):
            own = by_client.get(client_of(summary), [])
            if own:
                yield from self._lossy(summary, own, view)
        # What a tool does with ZooKeeper, it does on a connection of its own.
        kafka = [line for line in lines if line["protocol"] != ZOOKEEPER]
        for summary in view.base.connections.by_client(lines=kafka):
            own = [
                line
                for line in by_client.get(client_of(summary), [])
                if line["protocol"] != ZOOKEEPER
            ]
            if own:
                yield from self._many(summary, own, view)
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
            yield self._of(
                "capture-gaps",
                f"The capture lacks {size(missing)} of {of}",
                gaps,
                view,
                severity="note" if outside else None,
                advice=GAP_ADVICE.get(view.gap_cause, ""),
            )
        if middle:
            there = [line for line in lines if line["connection"] in middle and line["requests"]]
            if there:
                text = f"{plural(len(there), 'connection')} began before the capture started"
                yield self._of("capture-midstream", text, there, view)

    def _many(self, line: Line, own: list[Line], view: View) -> Iterator[Finding]:
        count, rate, life = line["connections"], line["per_minute"] or 0, line["life"]
        short = life is not None and life <= limit("connections.life")
        if count < limit("connections.short") or rate < limit("connections.rate") or not short:
            return
        asking = [each for each in own if each["phase"] == "versions"]
        who = spelled(client_of(line))
        often = (
            f"{who} opened {plural(count, 'connection')}, {rate:.0f} per minute, with a median "
            f"lifetime of {duration(life)}"
        )
        refused = sum(_refused(each) for each in own)
        ends = f"; brokers closed or refused {refused:,} of them" if refused else ""
        innocent = count - refused < limit("connections.short")
        severity: Severity | None = "note" if innocent else None
        advice = ENDED_THERE if innocent else ""
        if 100 * len(asking) >= limit("connections.asking") * count:
            yield self._of(
                "apiversions-loop",
                f"{often}; {len(asking):,} of them carried only ApiVersions{ends}",
                own,
                view,
                severity=severity,
                advice=advice,
            )
        elif _churns(own, line["per_connection"]):
            idle = f", {line['unused']} of them unused" if line["unused"] else ""
            yield self._of(
                "connection-churn",
                f"{often} and {line['per_connection']:.1f} requests each{idle}{ends}",
                own,
                view,
                severity=severity,
                advice=advice,
            )

    def _lossy(self, line: Line, own: list[Line], view: View) -> Iterator[Finding]:
        lost = line["retransmissions"]
        octets = sum((each["client_bytes"] or 0) + (each["broker_bytes"] or 0) for each in own)
        segments = max(octets // SEGMENT, 2 * line["requests"], 1)
        if lost < limit("network.retransmissions-count"):
            return
        if 100 * lost < limit("network.retransmissions") * segments:
            return
        yield self._of(
            "network-loss",
            f"Connections of {spelled(client_of(line))} had {plural(lost, 'retransmission')}, "
            f"about {100 * lost / segments:.1f} % of their segments",
            [each for each in own if each["retransmissions"]],
            view,
            count=lost,
        )

    def _of(
        self,
        name: str,
        text: str,
        lines: list[Line],
        view: View,
        *,
        count: int | None = None,
        severity: Severity | None = None,
        advice: str = "",
    ) -> Finding:
        numbers = [line["connection"] for line in lines if line["requests"]][:200]
        where = among("conn", numbers)
        opened = [line["opened"] for line in lines if line["opened"] is not None]
        clients = {line["client_id"] for line in lines}
        who = clients.pop() if len(clients) == 1 else None
        return view.finding(
            self.rule(name),
            text,
            all_of(f"client == {quoted(who)}" if who else "", where),
            count=len(lines) if count is None else count,
            first_ns=min(opened, default=None),
            last_ns=max(opened, default=None),
            severity=severity,
            advice=advice,
            about=[("client", spelled(who))] if who else [],
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


def _refused(line: Line) -> bool:
    """Return whether the broker ended a connection, or did not let the client in."""
    return line["end"].startswith("broker") or bool(line["failed"] and line["phase"] != "work")
