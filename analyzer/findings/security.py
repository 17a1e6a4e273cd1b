"""Connections that fail before the work for want of SASL (question 9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Worded
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.offers import refused_versions
from kafkascope.analyzer.findings.view import View, all_of, among, listed, plural
from kafkascope.analyzer.identity import client_of, host_of
from kafkascope.analyzer.statistics.connections import ZOOKEEPER
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled

HANDSHAKE: Final = 17
AUTHENTICATE: Final = 36
MOST_BROKERS: Final = 50


class Security(Detector):
    """SASL errors, connections closed at their first request."""

    TOUCHABLE = False
    RULES: ClassVar[tuple[Rule, ...]] = (
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

    sasl: Keyed[Worded] = table(Worded, 2_000)
    """By client."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of failed SASL."""
        key = row.api_key
        if key == HANDSHAKE and any(e.code in (33, 34) for e in row.errors):
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
        yield from self._sasl_told(view)
        yield from self._closed(view, view.lines())

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
            if line["server_protocol"]:
                continue
            if broker in sasl and not line["user"] and answered <= 1 and line["phase"] == "work":
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
            if name:
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
