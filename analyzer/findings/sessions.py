"""SASL sessions that expired because the client did not authenticate again (KIP-368)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.view import View, all_of, among, duration, listed, once, plural
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled

MOST_NAMED: Final = 100


class Sessions(Detector):
    """From the statistic of connections."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "session-expired",
            "warning",
            "SASL sessions that expired",
            "Use a library that re-authenticates (KIP-368; Java clients since 2.2), refresh its "
            "token sooner, or raise connections.max.reauth.ms. The broker ends a session after "
            "that time, or at the end of the token's lifetime. Requests at that moment are lost "
            "and sent again.",
            "SASL_AUTHENTICATION_FAILED",
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client."""
        found: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for line in view.lines():
            if expired(line):
                host = host_of(line["client_address"])
                found[line["client_id"] or "", host].append(line)
        for (client_id, host), lines in sorted(found.items()):
            who = view.client(client_id, host)
            lasted = min(line["session"][1] - line["session"][0] for line in lines)
            brokers = sorted({spelled(line["broker_address"]) for line in lines})
            users = sorted({spelled(line["user"]) for line in lines if line["user"]})
            user = f" (user {listed(users, 2)})" if users else ""
            lost = sum(line["unanswered"] for line in lines)
            conns = among("conn", [line["connection"] for line in lines][:MOST_NAMED])
            yield view.finding(
                self.rule("session-expired"),
                f"{listed(brokers)} closed {plural(len(lines), 'connection')} from {who}{user} "
                f"after the SASL session expired ({duration(lasted)} without re-authentication); "
                f"{plural(lost, 'request')} lost",
                all_of(conns, "lost"),
                count=len(lines),
                first_ns=min(line["waiting"] for line in lines),
                last_ns=max(line["waiting"] for line in lines),
                about=[
                    ("client", who),
                    *(("user", each) for each in users[:MOST_NAMED]),
                    *(("broker", each) for each in brokers[:MOST_NAMED]),
                ],
            )


def expired_at(view: View, client: str, broker: str, time_ns: int) -> bool:
    """Return whether the SASL session of a connection, by its addresses, had expired at a time, so
    that the broker closed it instead of handling the request."""
    sessions = _sessions(view).get((client, broker), ())
    begun = [each for each in sessions if each[0] <= time_ns]
    return bool(begun) and 0 < max(begun)[1] <= time_ns


@once
def _sessions(view: View) -> dict[tuple[str, str], list[tuple[int, int]]]:
    found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for line in view.lines():
        if line["session"] is not None:
            found[line["client_address"], line["broker_address"]].append(line["session"])
    return found


def expired(line: Line) -> bool:
    """Return whether the broker ended the connection at a request after the end of its session."""
    if line["session"] is None or not line["end"].startswith("broker"):
        return False
    _, until = line["session"]
    return bool(line["waiting"] is not None and 0 < until <= line["waiting"])
