"""Requests whose sending takes the time: small pieces that wait for acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator
from operator import sub
from typing import ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, api_is, duration, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import least, measured, most, total
from kafkascope.analyzer.statistics.merging.tables import Keyed

# A request of this size fits into the window that TCP sends at once (RFC 6928: ten segments), and
# such a response into one segment: what lies between the first and the last byte of the request is
# neither the network's nor the broker's time.
MAX_REQUEST: Final = 14_600
MAX_RESPONSE: Final = 1_448
LONGEST: Final = 500_000_000
"""RFC 1122: an acknowledgement is delayed by less than 500 ms."""


@measured
class Sending(Seen):
    """Requests that took long to send."""

    time_ns: int = total()
    shortest: int | None = least()
    longest: int | None = most()
    server_ns: int = total()
    """From the last byte of the request to the first one of the response."""


class PiecewiseSending(Detector):
    """By client, API and broker."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "sent-in-pieces",
            "warning",
            "requests that clients send in small pieces",
            "Set TCP_NODELAY in the client (socket.nagle.disable=true in librdkafka), or write "
            "each request at once. Nagle's algorithm holds the last piece of a request until the "
            "broker's machine acknowledges the first one, and that delays the ACK by 40 ms "
            "(Linux) to 200 ms (Windows). The broker is not slow.",
            brief="{n} request in small pieces|{n} requests in small pieces",
            limits=("pieces.gap", "pieces.least", "pieces.share"),
        ),
    )
    KEYS = None

    clients: Keyed[Sending] = table(Sending, 2_000)
    """By client, API and broker."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of a request that took long to send."""
        latency, server = row.latency_ns, row.server_ns
        if latency is None or server is None or latency - server < limit("pieces.gap"):
            return
        size, answer = row.request_bytes or 0, row.response_bytes or 0
        self._see(row, [(row.time_ns, row.number, latency, server, size, answer)])

    def add_all(self, alike: Alike) -> None:
        """Take note of usual exchanges."""
        gap = limit("pieces.gap")
        if max(map(sub, alike.latencies, alike.servers)) < gap:
            return
        columns = alike.begins, alike.numbers, alike.latencies, alike.servers, alike.asked
        rows = zip(*columns, alike.answered, strict=True)
        self._see(alike.row, [each for each in rows if each[2] - each[3] >= gap])

    def _see(self, row: Row, sent: list[tuple[int, int, int, int, int, int]]) -> None:
        for begin, number, latency, server, size, answer in sent:
            took = latency - server
            if size <= MAX_REQUEST and answer <= MAX_RESPONSE and took <= LONGEST:
                sending = self.clients[(*client_of(row), row.api, row.broker_address)]
                sending.see_at(begin, number)
                sending.take(time_ns=took, shortest=took, longest=took, server_ns=server)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client, API and broker."""
        by = ("client_id", "host", "api", "broker")
        for key, traffic in view.base.apis.grouped(by):
            client_id, host, api, broker = (key[name] for name in by)
            sending = self.clients.get((client_id or "", host, api, broker))
            if sending is None or sending.count < limit("pieces.least"):
                continue
            if sending.count * 100 < traffic.answered * limit("pieces.share"):
                continue
            who, span = view.client(client_id, host), "each"
            if sending.longest != sending.shortest:
                span = f"{duration(sending.shortest)} to {duration(sending.longest)}"
            yield view.finding(
                self.rule("sent-in-pieces"),
                f"{who} sent {sending.count:,} of {plural(traffic.answered, f'{api} request')} to "
                f"{broker} in small pieces, with {duration(sending.time_ns // sending.count)} "
                f"between the first and the last byte ({span}); the broker answered "
                f"{duration(sending.server_ns // sending.count)} after the last byte on average",
                all_of(
                    view.of_client(client_id, host),
                    api_is(api),
                    f"broker == {quoted(str(broker))} and latency >= {sending.shortest}ns",
                ),
                sending,
                severity="note" if view.is_broker(client_id, host) else None,
                about=[("client", who), ("api", str(api)), ("broker", str(broker))],
            )
