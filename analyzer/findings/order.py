"""Responses that break the order of requests: late ones, and requests that a broker skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.conversation.pending import OUT_OF_ORDER, SKIPPED, overtaken_by
from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import SECOND
from kafkascope.analyzer.findings.offers import first_release
from kafkascope.analyzer.findings.view import View, all_of, among, api_is, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import least, measured, most, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled
from kafkascope.dissectors.registry import APIS

API_VERSIONS: Final = "ApiVersions"
KNOWN: Final = frozenset(api.name for api in APIS.values())
"""Names of the APIs that Kafka has."""
IN_FLIGHT: Final = 5
"""max.in.flight.requests.per.connection: responses that may come before the client closes."""
AT_ONCE: Final = SECOND
"""A client that waits for a response closes after request.timeout.ms."""
MAX_NUMBERS: Final = 100
"""Exchanges that a filter names."""
OLD_BROKER: Final = (
    "Configure the client for the broker's version: api.version.request=false and "
    "broker.version.fallback=0.9.0.1 (librdkafka), api_version (kafka-python, aiokafka), "
    "Config.Version (sarama). Or upgrade the broker: brokers before 0.10 do not know ApiVersions."
)
NOT_KNOWN: Final = (
    "Use a client version that the broker supports, or upgrade the broker. It answers later "
    "requests of the connection, so this request was read and dropped."
)


@measured
class Disorder(Seen):
    """Requests that a later one overtook."""

    example: tuple[int, int, str, str, str] | None = least()
    """Of the first: time, correlation id, API, API and correlation id of the later request."""
    responses: int | None = most()
    """That overtook a request of a connection."""
    connections: Names = whole(Names)
    numbers: Names = whole(Names)


class ResponseOrder(Detector):
    """By client and broker."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "answers-out-of-order",
            "error",
            "responses in another order than their requests",
            "Check the proxy or broker that answers there: Kafka answers the requests of a "
            "connection in order, and clients close the connection otherwise (Java: Correlation "
            "id for response does not match request). Until it is fixed, set "
            "max.in.flight.requests.per.connection=1.",
            "NETWORK_EXCEPTION",
            brief="{n} response out of order|{n} responses out of order",
        ),
        Rule(
            "request-skipped",
            "warning",
            "request that a broker skipped while it answered a later one",
            NOT_KNOWN,
            "UNSUPPORTED_VERSION",
            brief="{n} skipped request|{n} skipped requests",
        ),
    )
    ODD = True

    late: Keyed[Disorder] = table(Disorder, 2_000)
    """By client, API and broker."""
    skipped: Keyed[Disorder] = table(Disorder, 2_000)
    """By client, API, version and broker."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of requests that a later one overtook."""
        if row.state == "answered":
            texts = [note.text for note in row.notes if note.text.startswith(OUT_OF_ORDER)]
            if texts:
                _take(self.late[(*client_of(row), row.broker_address)], row, texts[0])
        elif row.state == "lost" and row.reason.startswith(SKIPPED):
            key = (*client_of(row), row.api, row.api_version, row.broker_address)
            _take(self.skipped[key], row, row.reason)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client and broker."""
        for (client_id, host, broker), late in self.late.items():
            yield self._late(view, client_id, host, broker, late)
        for (client_id, host, api, version, broker), skipped in self.skipped.items():
            if api != API_VERSIONS and _closed_at_once(skipped, view):
                yield self._late(view, client_id, host, broker, skipped)
            else:
                yield self._skipped(view, (client_id, host), str(api), version, broker, skipped)

    def _late(self, view: View, client_id: Any, host: Any, broker: Any, late: Disorder) -> Finding:
        assert late.example is not None
        who = view.client(client_id, host)
        _, own, api, later, other = late.example
        ended = [each["end"] for each in _lines_of(late, view) if each["end"].startswith("client")]
        how = "reset" if ended and all(end == "client rst" for end in ended) else "closed"
        then = f"; the client then {how} {plural(len(ended), 'connection')}" if ended else ""
        return view.finding(
            self.rule("answers-out-of-order"),
            f"Broker {spelled(broker)} answered {plural(late.count, 'request')} of {who} out of "
            f"order: {later} with correlation id {other} before {own} ({api}), which was sent "
            f"first{then}",
            among("number", sorted(late.numbers)[:MAX_NUMBERS]),
            late,
            about=[("client", who), ("broker", spelled(broker))],
        )

    def _skipped(
        self,
        view: View,
        client: tuple[Any, Any],
        api: str,
        version: Any,
        broker: Any,
        skipped: Disorder,
    ) -> Finding:
        assert skipped.example is not None
        who = view.client(*client)
        _, own, _, later, other = skipped.example
        since = first_release(api, version)
        known = f"; Kafka has {api} v{version} since {since}" if since else ""
        if api == API_VERSIONS:
            known = "; Kafka has ApiVersions since 0.10.0"
        return view.finding(
            self.rule("request-skipped"),
            f"Broker {spelled(broker)} never answered "
            f"{plural(skipped.count, f'{api} v{version} request')} of {who}, but the later "
            f"{later} (correlation id {own}, then {other}){known}",
            all_of(
                view.of_client(*client),
                api_is(api),
                f"broker == {quoted(str(broker))} and lost",
            ),
            skipped,
            advice=OLD_BROKER if api == API_VERSIONS else "",
            about=[("client", who), ("api", api), ("broker", spelled(broker))],
        )


def _lines_of(disorder: Disorder, view: View) -> list[Line]:
    """Return the connections of some requests."""
    return [line for line in view.lines() if line["connection"] in disorder.connections]


def _closed_at_once(skipped: Disorder, view: View) -> bool:
    """Return whether the client closed each connection as soon as a later request was answered: it
    did not wait for the earlier one."""
    lines = _lines_of(skipped, view)
    at_once = (skipped.responses or 0) <= IN_FLIGHT
    return (
        at_once
        and bool(lines)
        and all(
            line["end"].startswith("client") and line["ended"] - line["waiting"] < AT_ONCE
            for line in lines
        )
    )


def _take(disorder: Disorder, row: Row, text: str) -> None:
    """Count a request; `text`: the note or reason that names the later one."""
    later = overtaken_by(text)
    # Behind bytes that are no request, anything may look like a header.
    known = later is not None and {row.api, later[0]} <= KNOWN
    if later is not None and known and row.correlation_id is not None:
        disorder.see(row)
        api, correlation_id, responses = later
        about = row.time_ns, row.correlation_id, row.api, api, correlation_id
        disorder.take(example=about, responses=responses)
        disorder.connections.add(row.connection)
        disorder.numbers.add(row.number)
