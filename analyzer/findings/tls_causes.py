"""TLS handshakes that failed, and their causes: what they show of hellos, names and certificates.

One alert is sent for many causes: a number alone names none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from kafkascope.analyzer.findings.view import DetectorInput
from kafkascope.analyzer.findings.words import plural
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.model import Line
from kafkascope.captures.tls.certificates import (
    default_of,
    described,
    hosts_of,
    matches,
    may_be_for,
    trouble_with,
)

# Cipher suites that a client offers, and that a text names.
FEW_SUITES: Final = 3
UNNAMED: Final = "the ClientHello names no server (SNI)"
# TLS_EMPTY_RENEGOTIATION_INFO_SCSV: no suite, though listed as one (RFC 5746).
RENEGOTIATION: Final = 0x00FF
ABOUT_CERTIFICATES: Final = frozenset({41, 42, 43, 44, 45, 46, 48, 111, 113, 114})
ABOUT_ISSUERS: Final = frozenset({42, 46, 48})
"""The first two are sent for anything."""
ABOUT_HOSTS: Final = frozenset({-1, 42, 46})
"""Sent for a host that is not among the names; -1: which one was sent is hidden."""
# Sent for anything: a certificate that is missing or refused, no suite in common.
HANDSHAKE_FAILURE: Final = 40
UNKNOWN_CA: Final = 48
ABOUT_VERSIONS: Final = frozenset({70, 86})
ABOUT_SUITES: Final = frozenset({HANDSHAKE_FAILURE, 71})
UNRECOGNIZED_NAME: Final = 112
CERTIFICATE_REQUIRED: Final = 116
FAILED: Final = frozenset({"alert", "rejected", "closed"})
"""Outcomes of the handshake itself; `answered` and `ended` come from the connection."""
PLAINTEXT: Final = ":9092"
"""End of the address of a usual plaintext listener (listeners=PLAINTEXT://:9092)."""
How: TypeAlias = tuple[str, str, int]
"""End of a handshake that failed: outcome, the side that ended it, its alert or -1."""
Failure: TypeAlias = tuple[str, str]
"""What the handshake shows of its failure: a text after how it ended, and the case of the rule's
fixes."""


@DetectorInput.once
def failed_connections(view: DetectorInput) -> set[object]:
    """Return numbers of the connections that the rule is about."""
    return {line["connection"] for line in handshakes(view) if failure(line) is not None}


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


@DetectorInput.once
def plain_listeners(view: DetectorInput) -> set[str]:
    """Return addresses of brokers to which Kafka was spoken without TLS."""
    return {
        line["broker_address"]
        for line in view.lines
        if line["phase"] in ("work", "versions", "sasl") and not is_tls(line)
    }


def handshakes(view: DetectorInput) -> Iterator[Line]:
    """Yield the lines of connections with TLS in which no Kafka was read, or requests that came
    before the handshake failed, but for hellos that a plaintext listener ended: `tls-to-plain` is
    about them."""
    plain = plain_listeners(view)
    for line in view.lines:
        if not is_tls(line) or (line["phase"] != "opaque" and not _sent_early(line)):
            continue
        broker = line["broker_address"]
        if broker in plain or broker.endswith(PLAINTEXT):
            # Without a request Kafka was not expected there, and that rule knows nothing of it.
            how = failure(line)
            if how is not None and how[0] == "ended" and line["requests"]:
                continue
        yield line


def _sent_early(line: Line) -> bool:
    """Return whether a client sent requests before the broker had refused its certificate."""
    failed = line["tls_result"] is not None and line["tls_result"][0] in FAILED
    return failed and line["requests"] == line["unanswered"]


def is_tls(line: Line) -> bool:
    """Return whether a connection has TLS."""
    return line["resumed"] is not None


def cause_of(how: How, line: Line, chosen: set[str]) -> Failure:
    """Return what the handshake shows of its failure: one alert is sent for many causes. `chosen`:
    versions and suites of other connections to the broker."""
    outcome, side, alert = how
    if outcome == "answered":
        return "", "no-tls"
    if "SSL 2.0" in line["tls_offered"]:
        newest = line["tls_offered"][0]
        return f"; the ClientHello is in SSLv2 format, for {newest} at most", "old-hello"
    if alert == UNRECOGNIZED_NAME or "broker: unrecognized_name" in line["tls_alerts"]:
        server_name = f"the client requested {line['sni']}" if line["sni"] else UNNAMED
        warned = "" if alert == UNRECOGNIZED_NAME else " the broker warned: unrecognized name;"
        return f";{warned} {server_name}", "server-name"
    if alert in ABOUT_VERSIONS or (side == "broker" and not line["tls"]):
        return _about_hello(side, alert, line, chosen)
    if side == "broker":
        return _about_client(alert, line)
    if outcome != "alert" or alert in ABOUT_CERTIFICATES:
        return _about_broker(alert, line)
    if alert == HANDSHAKE_FAILURE and line["certificate"] is not None:
        return _about_broker(alert, line)
    if line["tls"]:
        return f"; the broker chose {line['tls']}", ""
    return "", ""


def _about_hello(side: str, alert: int, line: Line, chosen: set[str]) -> Failure:
    """Return why a ClientHello was refused, or what the broker chose of it."""
    unnamed = "" if line["sni"] else f"; {UNNAMED}"
    if side != "broker":
        chose = f"; the broker chose {line['tls']}" if line["tls"] else _offer(line)
        return chose, "versions"
    if alert < 0:
        text = unnamed.replace("; the ClientHello", ", which") or f" for {line['sni']} (SNI)"
        return text, "no-server-name" if unnamed else "no-route"
    if alert in ABOUT_VERSIONS:
        others = sorted({each.rpartition(" ")[0] for each in chosen} - set(line["tls_offered"]))
        theirs = f"; other clients use {' and '.join(filter(None, others))}" if any(others) else ""
        return _offer(line) + theirs, "versions"
    if alert in ABOUT_SUITES:
        offered = set(_suites(line))
        common = sorted(each for each in chosen if each.rpartition(" ")[2] in offered)
        if common:
            # It has a suite of the broker: it is something else that does not fit.
            text = f"{_offer(line)}, among them {common[0].rpartition(' ')[2]}"
            return (
                f"{text}, which the broker uses with others{unnamed}",
                "server-name" if unnamed else "",
            )
        others = sorted(each for each in chosen if each)
        theirs = f"; the broker uses {others[0]} with others" if others else ""
        case = "suites-by-name" if unnamed else "suites"
        return _offer(line) + theirs + unnamed, case
    if alert in ABOUT_CERTIFICATES or alert == CERTIFICATE_REQUIRED:
        return _about_client(alert, line)
    return unnamed, "server-name" if unnamed else ""


def _offer(line: Line) -> str:
    if not line["tls_offered"]:
        return ""
    names = _suites(line)
    count = len(names) if 0 < len(names) <= FEW_SUITES else line["tls_suites"] or 0
    few = f" ({', '.join(names)})" if 0 < len(names) <= FEW_SUITES else ""
    return f"; the client offers {', '.join(line['tls_offered'])} and {plural(count, 'suite')}{few}"


def _suites(line: Line) -> list[str]:
    from kafkascope.captures.tls.keys.suites import suite_of

    return [suite_of(each).name for each in line["cipher_suites"] or () if each != RENEGOTIATION]


def _about_client(alert: int, line: Line) -> Failure:
    """Return why a broker ended the handshake: what it got from the client."""
    if line["tls_unauthenticated"] and not line["tls_requested"]:
        return "; the client's reply has the size of an empty Certificate", "no-certificate"
    if line["tls_unauthenticated"]:
        return (
            "; the broker requested a client certificate, and the client sent none "
            "(an empty Certificate)"
        ), "no-certificate"
    certificate = line["client_certificate"]
    refused = alert in ABOUT_CERTIFICATES or alert in (HANDSHAKE_FAILURE, CERTIFICATE_REQUIRED, -1)
    if certificate is not None and refused:
        wrong = trouble_with(certificate, line["opened"], "")
        text = f"; client certificate: {described(certificate)}{wrong and f': {wrong}'}"
        return text, "refused-certificate"
    if refused and line["tls_presented"]:
        text = "; the client's reply has the size of a certificate, which the broker refused"
        return text, "refused-certificate"
    if alert in ABOUT_CERTIFICATES or alert in (CERTIFICATE_REQUIRED, -1):
        requested = "; the broker requested a client certificate" if line["tls_requested"] else ""
        return requested, "client-certificate"
    return "", ""


def _about_broker(alert: int, line: Line) -> Failure:
    """Return why a client may have refused the broker's certificate."""
    certificate = line["certificate"]
    if certificate is None:
        server_name = f"the client requested {line['sni']} (SNI)" if line["sni"] else UNNAMED
        return f"; {server_name}" if alert in ABOUT_HOSTS else "", "certificate"
    address = host_of(line["broker_address"])
    named = bool(line["sni"])
    wrong = trouble_with(certificate, line["opened"], line["sni"] or "")
    known = named or any(matches(name, address) for name in hosts_of(certificate))
    mismatch = wrong.startswith("it is not for")
    if not wrong and not named and not may_be_for(certificate, address):
        wrong, mismatch = f"it is not for {address}, and {UNNAMED}", True
    default = default_of(certificate)
    whose = f" (the default certificate of {default})" if default else ""
    text = f"; broker certificate{whose}: {described(certificate)}{wrong and f': {wrong}'}"
    if default:
        return text, "default-certificate"
    if mismatch:
        return text, "other-host-and-issuer" if alert == UNKNOWN_CA else "other-host"
    if wrong or alert not in ABOUT_ISSUERS:
        return text, "certificate"
    return text, "issuer" if known else "no-host"
