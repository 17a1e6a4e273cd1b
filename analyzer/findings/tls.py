"""TLS handshakes that failed: by their alerts, or by their shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.tls_causes import OTHER, HandshakeFailure, How, cause_of
from kafkascope.analyzer.findings.view import View, among, listed, once, plural
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled
from kafkascope.captures.tls.alerts import ALERTS

FAILED: Final = frozenset({"alert", "rejected", "closed"})
"""Outcomes of the handshake itself; `answered` and `ended` are told by the connection."""
MOST_NAMED: Final = 50
"""Connections, hosts and brokers of a finding."""
PLAINTEXT: Final = ":9092"
"""End of the address of a usual plaintext listener (listeners=PLAINTEXT://:9092)."""


class TlsFailures(Detector):
    """From the statistic of connections."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "tls-failed",
            "error",
            "failed TLS handshakes",
            OTHER,
            subject=("host", "broker"),
            limits=("tls.at-once",),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by how handshakes ended: one wrong certificate is one trouble of many
        clients and brokers."""
        failed: list[tuple[tuple[str, str], How, Line]] = []
        worked: dict[tuple[str, str], list[Line]] = defaultdict(list)
        chosen: dict[str, set[str]] = defaultdict(set)
        for line in _handshakes(view):
            place = host_of(line["client_address"]), line["broker_address"]
            how = failure(line)
            if how is not None:
                failed.append((place, how, line))
            elif line["tls_result"] is not None:
                worked[place].append(line)
                chosen[line["broker_address"]].add(line["tls"])
        if not failed:
            return
        found: dict[tuple[How, bool, HandshakeFailure], list[Line]] = defaultdict(list)
        for place, how, line in failed:
            others = worked.get(place)
            if how[0] in ("closed", "ended") and others and not _differs(line, others):
                # Who closes an odd one in the middle gave up, or looked for a port.
                continue
            cause = cause_of(how, line, chosen[line["broker_address"]])
            found[(how, place in worked, cause)].append(line)
        for (how, also_worked, cause), lines in sorted(found.items()):
            opened = [line["opened"] for line in lines if line["opened"] is not None]
            hosts = sorted({host_of(line["client_address"]) for line in lines})
            brokers = sorted({line["broker_address"] for line in lines})
            who, did = _how(how, lines)
            numbers = [line["connection"] for line in lines][:MOST_NAMED]
            rows = [line["connection"] for line in lines if line["requests"]][:MOST_NAMED]
            yield view.finding(
                self.rule("tls-failed"),
                f"{plural(len(lines), 'TLS handshake')} from {listed(hosts)} to {listed(brokers)} "
                f"failed: {who} {did}{cause.text}",
                f"opaque and {among('conn', rows)}" if rows else "",
                count=len(lines),
                first_ns=min(opened, default=None),
                last_ns=max(opened, default=None),
                severity="warning" if also_worked else None,
                advice=cause.advice,
                connects=among("conn", numbers),
                about=[
                    *(("host", host) for host in hosts[:MOST_NAMED]),
                    *(("broker", spelled(broker)) for broker in brokers[:MOST_NAMED]),
                ],
            )


@once
def failed_connections(view: View) -> set[object]:
    """Return numbers of the connections that the rule is about."""
    return {line["connection"] for line in _handshakes(view) if failure(line) is not None}


def failure(line: Line) -> How | None:
    """Return how the handshake of a connection failed; None where it did not, or nothing shows."""
    if line["tls_answer"]:
        return "answered", "broker", -1
    if line["tls_result"] is not None:
        outcome, _, alert = line["tls_result"]
        return (outcome, line["tls_side"], alert) if outcome in FAILED else None
    if line["proxy_header"] and not line["broker_bytes"]:
        return None  # it may not have come to the ClientHello
    ended = line["tls_offered"] and not line["broker_bytes"] and line["end"].startswith("broker")
    return ("ended", "broker", -1) if ended else None


@once
def plain_listeners(view: View) -> set[str]:
    """Return addresses of brokers to which Kafka was spoken without TLS."""
    return {
        line["broker_address"]
        for line in view.lines()
        if line["phase"] in ("work", "versions", "sasl") and not _tls(line)
    }


def _handshakes(view: View) -> Iterator[Line]:
    """Yield the lines of connections with TLS in which no Kafka was read, but for hellos that a
    plaintext listener ended: `tls-to-plain` is about them."""
    plain = plain_listeners(view)
    for line in view.lines():
        if line["phase"] != "opaque" or not _tls(line):
            continue
        broker = line["broker_address"]
        if broker in plain or broker.endswith(PLAINTEXT):
            # Without a request Kafka was not expected there, and that rule knows nothing of it.
            how = failure(line)
            if how is not None and how[0] == "ended" and line["requests"]:
                continue
        yield line


def _is_late(line: Line) -> bool:
    return (line["life"] or 0) >= limit("tls.at-once")


def _tls(line: Line) -> bool:
    return line["resumed"] is not None


def _differs(line: Line, worked: Sequence[Line]) -> bool:
    """Return whether a handshake that ended without a word did not work otherwise, between the same
    hosts: they worked with a server name (SNI), and this one has none."""
    return not line["sni"] and all(each["sni"] for each in worked)


def _how(how: How, lines: list[Line]) -> tuple[str, str]:
    """Return (who ended the handshake, what it did)."""
    outcome, side, alert = how
    who = "the client" if side == "client" else "the broker"
    if outcome == "alert":
        name = ALERTS.get(alert, f"alert {alert}").replace("_", " ")
        return who, f"sent the alert {name} ({alert})"
    if outcome == "rejected":
        return who, "sent an encrypted alert at once (a key log shows which)"
    if outcome == "answered":
        what = lines[0]["tls_answer"]
        spoke = "bytes that are not TLS" if what == "unknown" else what
        return who, f"answered the ClientHello with {spoke}"
    if outcome == "ended":
        reset = all(line["end"].endswith("rst") for line in lines)
        when = "without a response to" if any(map(_is_late, lines)) else "right after"
        return who, f"{'reset' if reset else 'closed'} the connection {when} the ClientHello"
    return who, "closed the connection during the handshake"
