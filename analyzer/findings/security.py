"""Connections that fail before the work: TLS, SASL, other protocols (question 9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.conversation.detect import is_other
from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Worded
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.offers import refused_versions
from kafkascope.analyzer.findings.tls import failed_connections, plain_listeners
from kafkascope.analyzer.findings.view import View, all_of, among, ended_at, listed, plural
from kafkascope.analyzer.identity import client_of, host_of
from kafkascope.analyzer.statistics.connections import ZOOKEEPER
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled

HANDSHAKE: Final = 17
AUTHENTICATE: Final = 36
MOST_BROKERS: Final = 50
NO_SERVER_NAME: Final = (
    "Use the port of the SSL or SASL_SSL listener, or set security.protocol=PLAINTEXT "
    "(SASL_PLAINTEXT) if this one is plaintext. If a router forwards by server name (SNI), connect "
    "to a host name in place of an address (bootstrap.servers, advertised.listeners)."
)
ALERT: Final = range(5, 32)
"""Bytes of a TLS alert, and of two."""


class Security(Detector):
    """Opaque connections, SASL errors, connections closed at their first request."""

    TOUCHABLE = False
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "tls-to-plain",
            "error",
            "TLS sent to a plaintext listener",
            "Use the port of the SSL or SASL_SSL listener, or set security.protocol=PLAINTEXT "
            "(SASL_PLAINTEXT) for this one.",
            limits=("tls.hello",),
        ),
        Rule(
            "plain-to-tls",
            "error",
            "plaintext sent to a TLS listener",
            "Set security.protocol=SSL (or SASL_SSL), or use the port of a plaintext listener.",
        ),
        Rule(
            "http-to-kafka",
            "error",
            "HTTP sent to a Kafka port",
            "Point the health check, browser or scraper to another port. A broker reads the first "
            'four bytes as a length ("GET " is 1195725856) and closes the connection.',
        ),
        Rule(
            "not-kafka",
            "note",
            "unknown protocol on a Kafka port",
            "Identify the sender: a scanner, a health check, a client of another service.",
        ),
        Rule(
            "sasl-missing",
            "error",
            "connections closed because SASL is missing",
            "Set security.protocol=SASL_PLAINTEXT (or SASL_SSL) and sasl.mechanism, or use a "
            "listener without SASL.",
            "ILLEGAL_SASL_STATE",
            limits=("sasl.several",),
        ),
        Rule(
            "sasl-mechanism",
            "error",
            "SASL mechanism that the broker does not offer",
            "Set sasl.mechanism to one that the listener enables (sasl.enabled.mechanisms).",
            "UNSUPPORTED_SASL_MECHANISM",
        ),
        Rule(
            "sasl-failed",
            "error",
            "failed authentication",
            "Check user and password (or keytab, token) of the client, and that the user exists "
            "for this mechanism. SCRAM credentials must be created separately for each mechanism.",
            "SASL_AUTHENTICATION_FAILED",
        ),
    )
    ODD = True

    odd: Keyed[Worded] = table(Worded, 5_000, unranked=1)
    """By connection."""
    sasl: Keyed[Worded] = table(Worded, 2_000)
    """By client."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of connections without Kafka in them, and of failed SASL."""
        key = row.api_key
        if row.state == "opaque" and exchange.request is not None:
            connection = exchange.connection
            if not is_other(row.reason):
                return
            kind = row.reason.partition(",")[0].partition(":")[0]
            odd = self.odd[(connection.number, connection.first_ns, kind)]
            odd.see(row)
            odd.words.add((host_of(row.client_address), row.broker_address))
        elif key == HANDSHAKE and any(e.code in (33, 34) for e in row.errors):
            asked, response = exchange.request_body or {}, exchange.response_body or {}
            here = self._sasl("mechanism", row, asked.get("mechanism", ""))
            for each in response.get("mechanisms") or ():
                here.words.add(each)
        elif key == AUTHENTICATE and row.errors:
            here = self._sasl("failed", row, exchange.mechanism)
            for error in row.errors:
                here.words.add(error.message or error.name)
        elif row.api == "SaslToken" and row.state == "lost":
            self._sasl("token", row, exchange.mechanism)

    def _sasl(self, what: str, row: Row, mechanism: str) -> Worded:
        here = self.sasl[(what, *client_of(row), row.broker_address, mechanism)]
        here.see(row)
        return here

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client and broker."""
        lines = {line["connection"]: line for line in view.lines()}
        yield from self._odd(view, lines)
        yield from self._sasl_told(view)
        yield from self._closed(view, list(lines.values()))

    def _odd(self, view: View, lines: dict[Any, Line]) -> Iterator[Finding]:
        found: dict[tuple[str, str], list[tuple[Any, Worded]]] = {}
        failed = failed_connections(view)
        end_ns = max((ended_at(line) for line in lines.values()), default=0)
        for (number, _, kind), odd in self.odd.items():
            if number in failed:
                continue
            line = lines.get(number, {})
            name = _odd_name(str(kind), line, end_ns)
            if name is None:
                continue
            for host, _broker in odd.words:
                found.setdefault((name, host), []).append((number, odd))
        plain = plain_listeners(view)
        for (name, host), seen in sorted(found.items(), key=lambda each: each[0]):
            numbers = [number for number, _ in seen]
            what = plural(len(numbers), "connection")
            brokers = sorted({broker for _, odd in seen for _, broker in odd.words})
            broker = listed(brokers)
            nameless = name == "tls-to-plain" and not any(
                lines.get(number, {}).get("sni") for number in numbers
            )
            sure = all(each in plain for each in brokers)
            unnamed = " without a server name (SNI)" if nameless and not sure else ""
            advice = NO_SERVER_NAME if unnamed else ""
            text = {
                "tls-to-plain": f"{host} sent a TLS ClientHello{unnamed} to {broker} on {what} "
                "and got no answer",
                "http-to-kafka": f"{host} sent HTTP to {broker} on {what}",
                "not-kafka": f"{host} sent bytes that are not a Kafka request to {broker} on "
                f"{what}",
            }[name]
            firsts = [odd.first for _, odd in seen if odd.first]
            yield view.finding(
                self.rule(name),
                text,
                f"opaque and {among('conn', numbers[:50])}",
                advice=advice,
                count=len(numbers),
                first_ns=min(firsts)[0] if firsts else None,
                last_ns=max(firsts)[0] if firsts else None,
                number=min(firsts)[1] if firsts else None,
                about=[("host", host), *(("broker", each) for each in brokers[:MOST_BROKERS])],
            )

    def _sasl_told(self, view: View) -> Iterator[Finding]:
        found: dict[tuple[Any, ...], tuple[Worded, list[str]]] = {}
        for (what, client_id, host, broker, mechanism), here in self.sasl.items():
            # A client that is wrong at one broker is wrong at all.
            seen, brokers = found.setdefault((what, client_id, host, mechanism), (Worded(), []))
            seen.merge(here)
            brokers.append(str(broker))
        for (what, client_id, host, mechanism), (seen, brokers) in found.items():
            who, broker = view.client(client_id, host), listed(brokers)
            places = ", ".join(map(quoted, brokers[:MOST_BROKERS]))
            asked = spelled(mechanism or "SASL")
            if what == "mechanism":
                offered = listed(seen.words) or "none"
                text = f"{who} requested SASL mechanism {asked} from {broker}; offered: {offered}"
                where = "api == SaslHandshake and failed"
            elif what == "failed":
                often = "once" if seen.count == 1 else f"{seen.count} times"
                text = (
                    f"Authentication of {who} at {broker} with {asked} failed {often}: "
                    f"{listed(seen.words, 1)}"
                )
                where = "api == SaslAuthenticate and failed"
            else:
                text = (
                    f"{broker} closed {plural(seen.count, 'connection')} from {who} during {asked} "
                    "authentication, as old brokers do when they reject the password"
                )
                where = "lost"
            yield view.finding(
                self.rule("sasl-mechanism" if what == "mechanism" else "sasl-failed"),
                text,
                all_of(
                    view.of_client(client_id, host) or f"client.ip == {host}",
                    f"broker in {{{places}}}" if len(brokers) > 1 else f"broker == {places}",
                    where,
                ),
                seen,
                about=[
                    ("client", who),
                    *(("broker", each) for each in brokers[:MOST_BROKERS]),
                    ("mechanism", asked),
                ],
            )

    def _closed(self, view: View, lines: list[Line]) -> Iterator[Finding]:
        """Yield connections that brokers closed at the first request that is work."""
        sasl = {line["broker_address"] for line in lines if line["phase"] in ("sasl",)}
        sasl |= {line["broker_address"] for line in lines if _by_sasl(line)}
        served = {
            line["broker_address"]
            for line in lines
            if not line["user"] and line["requests"] - line["unanswered"] > 1
        }
        refused = refused_versions(view)
        middle = view.base.connections.midstream()
        found: dict[tuple[str, str, str, str], list[Line]] = {}
        for line in lines:
            ended = line["end"] in ("broker fin", "broker rst")
            if not ended or not line["requests"] or not line["unanswered"]:
                continue
            if line["connection"] in middle or line["protocol"] == ZOOKEEPER:
                continue  # what came before the capture may have been SASL
            host, broker = host_of(line["client_address"]), line["broker_address"]
            client = line["client_id"] or ""
            answered = line["requests"] - line["unanswered"]
            if not answered and line["broker_bytes"] in ALERT:
                found.setdefault(("plain-to-tls", client, host, broker), []).append(line)
            elif broker in sasl and not line["user"] and answered <= 1 and line["phase"] == "work":
                found.setdefault(("sasl-missing", client, host, broker), []).append(line)
            elif (client, host) in refused:
                continue  # a version that the broker does not take is closed alike
            elif broker not in sasl | served and answered == 1 and line["phase"] == "work":
                # It answers ApiVersions, and nothing else, to whoever does not say who it is.
                found.setdefault(("", client, host, broker), []).append(line)
        for (name, client, host, broker), seen in sorted(found.items()):
            who, what = view.client(client, host), plural(len(seen), "connection")
            if not name and len(seen) < limit("sasl.several"):
                continue
            if name == "plain-to-tls":
                text = (
                    f"{broker} closed {what} from {who} after {seen[0]['broker_bytes']} bytes that "
                    "are not a Kafka response (a TLS alert has 7)"
                )
            elif name:
                text = (
                    f"{broker} closed {what} from {who} at the first request; other clients "
                    "authenticate there with SASL"
                )
            else:
                text = (
                    f"{broker} answered ApiVersions from {who}, closed {what} at the next request, "
                    "and served no client without authentication"
                )
            conns = among("conn", [line["connection"] for line in seen[:50]])
            yield view.finding(
                self.rule(name or "sasl-missing"),
                text,
                f"{conns} and lost",
                count=len(seen),
                first_ns=seen[0]["opened"],
                last_ns=seen[-1]["opened"],
                about=[("client", who), ("broker", broker)],
            )


def _by_sasl(line: Line) -> bool:
    """Return whether SASL told the user, not a certificate."""
    return bool(line["user"]) and line["user"] != line["tls_client"]


def unanswered(line: Line, end_ns: int) -> bool:
    """Return whether the broker said nothing to a TLS hello. A broker without TLS closes the
    connection or waits for the rest of what it takes for a request; one with TLS may be slow to
    answer. `end_ns`: the last packet of the capture."""
    closed = line.get("end", "").startswith("broker")
    waited = end_ns - (line.get("opened") or end_ns) >= limit("tls.hello")
    return not line.get("broker_bytes") and (closed or waited)


def _odd_name(kind: str, line: Line, end_ns: int) -> str | None:
    """Return the rule for a connection without Kafka; None for TLS that cannot be read, which
    another detector tells. `end_ns`: the last packet of the capture."""
    if kind.startswith("TLS"):
        return "tls-to-plain" if unanswered(line, end_ns) else None
    return "http-to-kafka" if kind.startswith("HTTP") else "not-kafka"
