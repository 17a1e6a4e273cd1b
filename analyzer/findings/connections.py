"""Connections: too many, short-lived, lossy, and what a capture lacks of them (question 16)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import (
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
    "Find out why brokers end or refuse them (see the other findings, and the log of the broker): "
    "a client has to connect again then, whether it keeps its connections or not."
)


class Lives(Detector):
    """From the statistic of connections."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "connection-churn",
            "warning",
            "a client opens connection after connection",
            "Make one client object and keep it: each connection costs threads, memory, TLS and "
            "SASL handshakes on the broker.",
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
            "a client connects, asks for ApiVersions, closes, and does it again",
            "A readiness probe that is too eager, or a client that cannot use what it is told: "
            "each connection costs the broker a handshake. Probe every ten seconds or more.",
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
            "segments had to be sent again",
            "Look at the network (or at a machine without time to receive): each loss costs at "
            "least a round trip, often 200 ms.",
            brief="{n} segment sent again|{n} segments sent again",
            limits=("network.retransmissions", "network.retransmissions-count"),
        ),
        Rule(
            "capture-gaps",
            "warning",
            "the capture lacks bytes of its connections",
            "Numbers below are of what is there. Capture whole packets (tcpdump -s 0) with a "
            "larger buffer (-B 65536), nearer to the source.",
            limits=("gaps.window",),
        ),
        Rule(
            "capture-midstream",
            "chat",
            "connections that began before the capture",
            "Libraries, users and fetch sessions of these are not known: start the capture "
            "before the clients to see them.",
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
                f"{size(missing)} of {of} are not in the capture",
                gaps,
                view,
                severity="note" if outside else None,
            )
        if middle:
            there = [line for line in lines if line["connection"] in middle and line["requests"]]
            if there:
                text = f"{plural(len(there), 'connection')} began before the capture"
                yield self._of("capture-midstream", text, there, view)

    def _many(self, line: Line, own: list[Line], view: View) -> Iterator[Finding]:
        count, rate, life = line["connections"], line["per_minute"] or 0, line["life"]
        short = life is not None and life <= limit("connections.life")
        if count < limit("connections.short") or rate < limit("connections.rate") or not short:
            return
        asking = [each for each in own if each["phase"] == "versions"]
        who = spelled(client_of(line))
        often = (
            f"{who} opened {plural(count, 'connection')}, {rate:.0f} a minute, "
            f"with a median life of {duration(life)}"
        )
        refused = sum(_refused(each) for each in own)
        ends = f"; brokers closed or refused {refused:,} of them" if refused else ""
        innocent = count - refused < limit("connections.short")
        severity: Severity | None = "note" if innocent else None
        advice = ENDED_THERE if innocent else ""
        if 100 * len(asking) >= limit("connections.asking") * count:
            yield self._of(
                "apiversions-loop",
                f"{often}, and asked for nothing but ApiVersions on {len(asking):,} of them{ends}",
                own,
                view,
                severity=severity,
                advice=advice,
            )
        elif _churns(own, line["per_connection"]):
            idle = f", {line['unused']} of them without any work" if line["unused"] else ""
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
            f"{plural(lost, 'segment')} of {spelled(client_of(line))} were sent again, about "
            f"{100 * lost / segments:.1f} % of all",
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
