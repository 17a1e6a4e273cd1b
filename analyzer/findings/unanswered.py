"""Requests without an answer, and answers that came too late (question 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import SECOND, limit
from kafkascope.analyzer.findings.view import View, all_of, api_is, duration, plural
from kafkascope.analyzer.identity import client_of, host_of
from kafkascope.analyzer.statistics.connections import WAITING
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, most
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.captures.model import Closed, Opened

FETCH: Final = 1
LEAVE_GROUP: Final = 13
FINAL: Final = -1
"""The epoch with which a client closes its fetch session (KIP-227)."""
MAX_CONNECTIONS: Final = 10_000


@measured
class Lost(Seen):
    """Of a client, an API, and a way to end."""

    oldest: int | None = most()
    """Longest time from a request to the end of its connection."""


@measured
class LateResponse(Seen):
    """Of a connection."""

    closed_ns: int | None = most()
    """When the client closed its direction."""
    client: tuple[str, str] | None = most()
    api: str | None = most()
    response: tuple[int, int] | None = most()
    """(time, number of its exchange) of the last slow answer."""


@measured
class Open(Seen):
    """Of a client and an API."""


class Unanswered(Detector):
    """Lost, in flight for too long, late."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "unanswered",
            "warning",
            "requests without a response on closed connections",
            "If the broker closed or reset the connection, check its log at that time (restart, "
            "idle connections, SASL, request too large). If the client did, it gave up "
            "(request.timeout.ms) or was stopped.",
            "NETWORK_EXCEPTION",
            brief="{n} request without response|{n} requests without response",
            limits=("lost.age",),
        ),
        Rule(
            "no-answer-yet",
            "warning",
            "requests pending at the end of the capture",
            "Check for a blocked broker, a black hole in the network, or a firewall that drops "
            "idle connections.",
            "REQUEST_TIMED_OUT",
            brief="{n} request without response|{n} requests without response",
            limits=("open.age",),
        ),
        Rule(
            "late-answer",
            "warning",
            "responses that came after the client gave up",
            "Raise request.timeout.ms, or find out why the broker was slow. The broker did the "
            "work, and the client will repeat it; without idempotence a repeated Produce makes "
            "duplicates.",
            "REQUEST_TIMED_OUT",
            brief="{n} late response|{n} late responses",
            limits=("lost.age",),
        ),
    )
    KEYS = None
    WATCHES = True

    lost: Keyed[Lost] = table(Lost, 2_000)
    """By client and API."""
    open: Keyed[Open] = table(Open, 2_000)
    late: Keyed[LateResponse] = table(LateResponse, MAX_CONNECTIONS, unranked=1)
    """By connection."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of requests without an answer; the last answer of each connection."""
        if row.state == "lost" and row.api != "SaslToken" and exchange.ended_ns is not None:
            age = exchange.ended_ns - row.time_ns
            if row.reason.startswith(("closed by", "reset by")) and not (
                _harmless(row, age) or _goodbye(exchange)
            ):
                lost = self.lost[(*client_of(row), row.api, row.broker_address, row.reason)]
                lost.see(row)
                lost.take(oldest=max(0, age))
        elif row.state == "open":
            if row.api_key not in WAITING:
                self.open[(*client_of(row), row.api, row.broker_address)].see(row)
        elif (
            row.state == "answered"
            and row.latency_ns is not None
            and row.latency_ns >= limit("lost.age")
            and row.api_key not in WAITING
        ):
            late = self.late[(row.connection, exchange.connection.first_ns)]
            late.take(
                client=(row.client_id or "", host_of(row.client_address)),
                api=row.api,
                response=(row.time_ns + row.latency_ns, row.number),
            )

    def add_all(self, alike: Alike) -> None:
        """Leave usual exchanges out: they were answered soon."""

    def saw(self, event: Opened | Closed) -> None:
        """Take note of when the client closed: direction 0 is the client's where the SYN was
        seen."""
        connection = event.connection
        if isinstance(event, Closed) and event.direction == 0 and connection.handshake:
            late = self.late[(connection.number, connection.first_ns)]
            late.take(closed_ns=event.time_ns)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client and API."""
        for (client_id, host, api, broker, reason), lost in self.lost.items():
            who = view.client(client_id, host)
            what = plural(lost.count, f"{api} request")
            age = lost.oldest or 0
            waited = f" after up to {duration(age)}" if age >= SECOND // 10 else ""
            yield view.finding(
                self.rule("unanswered"),
                f"{what} from {who} to {broker} got no response: the connection was "
                f"{reason}{waited}",
                all_of(
                    view.of_client(client_id, host),
                    api_is(api),
                    f"broker == {quoted(str(broker))} and lost",
                ),
                lost,
                severity="note" if view.is_broker(client_id, host) else None,
                about=[("client", who), ("api", str(api)), ("broker", str(broker))],
            )
        for (client_id, host, api, broker), seen in self.open.items():
            age = (view.last_ns or 0) - (seen.first[0] if seen.first else 0)
            if age < limit("open.age"):
                continue
            who = view.client(client_id, host)
            yield view.finding(
                self.rule("no-answer-yet"),
                f"{plural(seen.count, f'{api} request')} from {who} to {broker} had no response "
                f"when the capture ended, {duration(age)} after the first",
                all_of(
                    view.of_client(client_id, host),
                    api_is(api),
                    f"broker == {quoted(str(broker))} and open",
                ),
                seen,
                about=[("client", who), ("api", str(api)), ("broker", str(broker))],
            )
        for (number, _), late in self.late.items():
            if late.closed_ns is None or late.response is None or late.client is None:
                continue
            delay = late.response[0] - late.closed_ns
            if delay > 0:
                yield view.finding(
                    self.rule("late-answer"),
                    f"The response to {late.api} came {duration(delay)} after "
                    f"{view.client(*late.client)} had given up and closed connection {number}",
                    f"number == {late.response[1]}",
                    count=1,
                    first_ns=late.response[0],
                    last_ns=late.response[0],
                    number=late.response[1],
                    about=[
                        ("client", view.client(*late.client)),
                        ("connection", str(number)),
                    ],
                )


def _harmless(row: Row, age_ns: int) -> bool:
    """Return whether a lost request harms nobody: a client that closes while it polls loses
    nothing; one that is stopped closes at once."""
    return row.reason.endswith("by the client") and (
        row.api_key in WAITING or age_ns < limit("lost.age")
    )


def _goodbye(exchange: Exchange) -> bool:
    """Return whether a request only closes a fetch session, or leaves a group. Consumers send the
    first when they end, also where the broker closed the connection long before; the second stands
    behind a JoinGroup, if there is one, that may be held for minutes, and they close without its
    answer."""
    if exchange.api_key == LEAVE_GROUP:
        return exchange.reason.endswith("by the client")
    asked = exchange.request_body or {}
    return exchange.api_key == FETCH and asked.get("session_epoch") == FINAL
