"""TLS handshakes that failed: by their alerts, or by their shape."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.view import View, among, listed, plural
from kafkascope.analyzer.identity import host_of, is_address
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled
from kafkascope.captures.tls.alerts import ALERTS

FAILED: Final = frozenset({"alert", "rejected", "closed"})
MOST_NAMED: Final = 50
"""Connections, hosts and brokers of a finding."""
CERTIFICATE: Final = (
    "Check the broker's certificate (openssl s_client -connect ADDRESS -showcerts): its issuer "
    "must be in the client's truststore, its names must include the address that the client uses, "
    "and its dates must be valid."
)
CLIENT_CERTIFICATE: Final = (
    "Give the client a keystore, and the broker a truststore with its issuer: the broker requires "
    "a client certificate that it trusts (ssl.client.auth)."
)
ISSUER: Final = (
    "Add the issuer of the broker's certificate to the client's truststore: the certificate "
    "matches this host and its dates are valid, so the client does not know the issuer."
)
VERSIONS: Final = (
    "Compare ssl.enabled.protocols and ssl.cipher.suites of client and broker: they have no TLS "
    "version or cipher suite in common."
)
OTHER: Final = (
    "Compare certificates, truststores, ssl.enabled.protocols and ssl.cipher.suites of client and "
    "broker, and check the logs of both."
)
ABOUT_CERTIFICATES: Final = frozenset({41, 42, 43, 44, 45, 46, 48, 111, 112, 113, 114})
ABOUT_ISSUERS: Final = frozenset({42, 46, 48})
"""The first two are sent for anything."""
ABOUT_VERSIONS: Final = frozenset({40, 47, 60, 70, 71, 86, 109, 110, 120})


class TlsFailures(Detector):
    """From the statistic of connections."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "tls-failed",
            "error",
            "failed TLS handshakes",
            OTHER,
            subject=("host", "broker"),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by how handshakes ended: one wrong certificate is one trouble of many
        clients and brokers."""
        failed: list[tuple[tuple[str, str], tuple[str, str, int], Line]] = []
        worked: set[tuple[str, str]] = set()
        for line in view.lines():
            if line["tls_result"] is None or line["phase"] != "opaque":
                continue
            outcome, _, alert = line["tls_result"]
            place = host_of(line["client_address"]), line["broker_address"]
            if outcome in FAILED:
                failed.append((place, (outcome, line["tls_side"], alert), line))
            else:
                worked.add(place)
        found: dict[tuple[str, str, int, bool, str], list[Line]] = defaultdict(list)
        for place, how, line in failed:
            if how[0] != "closed" or place not in worked:
                # Who closes an odd one in the middle gave up, or looked for a port.
                found[(*how, place in worked, _more(*how, line))].append(line)
        for (outcome, side, alert, also_worked, more), lines in sorted(found.items()):
            opened = [line["opened"] for line in lines if line["opened"] is not None]
            hosts = sorted({host_of(line["client_address"]) for line in lines})
            brokers = sorted({line["broker_address"] for line in lines})
            who, did = _how(outcome, side, alert)
            numbers = [line["connection"] for line in lines][:MOST_NAMED]
            yield view.finding(
                self.rule("tls-failed"),
                f"{plural(len(lines), 'TLS handshake')} from {listed(hosts)} to {listed(brokers)} "
                f"failed: {who} {did}{more}",
                f"opaque and {among('conn', numbers)}",
                count=len(lines),
                first_ns=min(opened, default=None),
                last_ns=max(opened, default=None),
                severity="warning" if also_worked else None,
                advice=_advice(side, alert, lines[0]),
                connects=among("conn", numbers),
                about=[
                    *(("host", host) for host in hosts[:MOST_NAMED]),
                    *(("broker", spelled(broker)) for broker in brokers[:MOST_NAMED]),
                ],
            )


def failed_connections(view: View) -> set[object]:
    """Return numbers of the connections that the rule is about."""
    return {
        line["connection"]
        for line in view.lines()
        if line["tls_result"] is not None and line["tls_result"][0] in FAILED
    }


def _how(outcome: str, side: str, alert: int) -> tuple[str, str]:
    """Return (who ended the handshake, what it did)."""
    who = "the client" if side == "client" else "the broker"
    if outcome == "alert":
        name = ALERTS.get(alert, f"alert {alert}").replace("_", " ")
        return who, f"sent the alert {name} ({alert})"
    if outcome == "rejected":
        what = "the broker's certificate" if side == "client" else "the client or its certificate"
        return who, f"sent an encrypted alert at once, and probably rejected {what}"
    return who, "closed the connection during the handshake"


def _more(outcome: str, side: str, alert: int, line: Line) -> str:
    """Return what the handshake shows of the cause: clients send one alert for many."""
    certificate = line["certificate"]
    if certificate is not None and _about_certificate(outcome, side, alert):
        from kafkascope.captures.tls.certificates import described

        wrong = _trouble(line)
        return f"; broker certificate: {described(certificate)}{wrong and f': {wrong}'}"
    if alert in ABOUT_VERSIONS and line["tls_offered"]:
        suites = plural(line["tls_suites"] or 0, "suite")
        return f"; the client offers {', '.join(line['tls_offered'])} and {suites}"
    return ""


def _about_certificate(outcome: str, side: str, alert: int) -> bool:
    """Return whether the client may have refused the broker's certificate."""
    return side == "client" and (alert in ABOUT_CERTIFICATES or outcome != "alert")


def _trouble(line: Line) -> str:
    """Return what is wrong with the broker's certificate, as far as the capture tells."""
    from kafkascope.captures.tls.certificates import trouble_with

    certificate = line["certificate"]
    # Without SNI the client may know the broker by a name; if none is in it, the address has to be.
    host = line["sni"] or ""
    if not host and all(map(is_address, certificate.names)):
        host = host_of(line["broker_address"])
    return trouble_with(certificate, line["opened"], host)


def _advice(side: str, alert: int, line: Line) -> str:
    if alert == 116 or (side == "broker" and alert in ABOUT_CERTIFICATES):
        return CLIENT_CERTIFICATE
    if alert in ABOUT_VERSIONS:
        return VERSIONS
    if side == "client" and (alert in ABOUT_CERTIFICATES or alert < 0):
        judged = line["certificate"] is not None and not _trouble(line)
        return ISSUER if judged and alert in ABOUT_ISSUERS else CERTIFICATE
    return CLIENT_CERTIFICATE if side == "broker" and alert < 0 else OTHER
