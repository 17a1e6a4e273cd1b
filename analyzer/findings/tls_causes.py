"""Causes of TLS handshakes that failed: what they show of hellos, names and certificates.

One alert is sent for many causes: a number alone names none.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from kafkascope.analyzer.findings.view import plural
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

FEW_SUITES: Final = 3
"""Cipher suites that a client offers, and that a text names."""
CERTIFICATE: Final = (
    "Check the broker's certificate (openssl s_client -connect ADDRESS -showcerts): its issuer "
    "must be in the client's truststore, its names must include the address that the client uses, "
    "and its dates must be valid."
)
CLIENT_CERTIFICATE: Final = (
    "Give the client a keystore, and the broker a truststore with its issuer: the broker requires "
    "a client certificate that it trusts (ssl.client.auth)."
)
NO_CERTIFICATE: Final = (
    "Give the client a keystore (ssl.keystore.location) whose certificate has an issuer that the "
    "broker's truststore contains: a client whose certificate has another issuer sends none. Or "
    "set ssl.client.auth=none on the listener."
)
REFUSED_CERTIFICATE: Final = (
    "Add the issuer of the client's certificate to the broker's truststore "
    "(ssl.truststore.location), and check the certificate's dates (ssl.keystore.location of the "
    "client)."
)
ISSUER: Final = (
    "Add the issuer of the broker's certificate to the client's truststore: the certificate "
    "matches this host and its dates are valid, so the client does not know the issuer."
)
NO_HOST: Final = (
    "Add the issuer of the broker's certificate to the client's truststore "
    "(ssl.truststore.location), and check that its names include the host that the client uses: "
    "the ClientHello names none."
)
OTHER_HOST: Final = (
    "Connect to a name that the certificate has, or give the broker a certificate whose "
    "subjectAltName names include the host that clients use (ssl.keystore.location)."
)
UNKNOWN_ISSUER: Final = (
    " The client does not know the issuer either: add it to ssl.truststore.location."
)
DEFAULT: Final = (
    "Add a rule for this host that passes TLS through to the brokers "
    "(nginx.ingress.kubernetes.io/ssl-passthrough and --enable-ssl-passthrough, HostSNI of "
    "Traefik, a route with termination passthrough), and connect to the host name of the rule: "
    "the ingress answered with its own default certificate."
)
SERVER_NAME: Final = (
    "Connect to a host name that the broker, or the ingress before it, has a certificate or a "
    "rule for (bootstrap.servers, advertised.listeners): clients send the server name (SNI) for "
    "host names, not for IP addresses."
)
NO_SERVER_NAME: Final = (
    "If a router, ingress or proxy forwards by server name (SNI), connect to a host name in place "
    "of an address (bootstrap.servers, advertised.listeners): clients send no SNI for IP "
    "addresses, and Java none for names without a dot. If the listener is plaintext, set "
    "security.protocol=PLAINTEXT or use the port of the SSL listener."
)
NO_ROUTE: Final = (
    "If a router, ingress or proxy forwards by server name (SNI), add a rule for this name. If "
    "the listener is plaintext, set security.protocol=PLAINTEXT or use the port of the SSL "
    "listener."
)
NO_TLS: Final = (
    "Use the port of the SSL or SASL_SSL listener: this port does not speak TLS. If a proxy or "
    "another service has the port, correct bootstrap.servers or advertised.listeners."
)
OLD_HELLO: Final = (
    "Remove SSLv2Hello from ssl.enabled.protocols of the client, and upgrade it (Java 6 and 7 send "
    "this format): brokers take TLS 1.2 and newer."
)
VERSIONS: Final = (
    "Set ssl.enabled.protocols of client and broker so that they have a TLS version in common."
)
SUITES: Final = (
    "Compare ssl.cipher.suites and ssl.enabled.protocols of client and broker, and the key of the "
    "broker's certificate (suites with ECDSA need an EC key, others RSA): the client offers no "
    "suite that the broker can use."
)
UNNAMED: Final = "the ClientHello names no server (SNI)"
RENEGOTIATION: Final = 0x00FF
"""TLS_EMPTY_RENEGOTIATION_INFO_SCSV: no suite, though it stands among them (RFC 5746)."""
OTHER: Final = (
    "Compare certificates, truststores, ssl.enabled.protocols and ssl.cipher.suites of client and "
    "broker, and check the logs of both."
)
ABOUT_CERTIFICATES: Final = frozenset({41, 42, 43, 44, 45, 46, 48, 111, 113, 114})
ABOUT_ISSUERS: Final = frozenset({42, 46, 48})
"""The first two are sent for anything."""
ABOUT_HOSTS: Final = frozenset({-1, 42, 46})
"""Sent for a host that is not among the names; -1: which one was sent is hidden."""
HANDSHAKE_FAILURE: Final = 40
"""Sent for anything: a certificate that is missing or refused, no suite in common."""
UNKNOWN_CA: Final = 48
ABOUT_VERSIONS: Final = frozenset({70, 86})
ABOUT_SUITES: Final = frozenset({HANDSHAKE_FAILURE, 71})
UNRECOGNIZED_NAME: Final = 112
CERTIFICATE_REQUIRED: Final = 116


How: TypeAlias = tuple[str, str, int]
"""Of a handshake that failed: outcome, the side that ended it, its alert or -1."""


class HandshakeFailure(NamedTuple):
    """What the handshake shows of its failure."""

    text: str = ""
    """Behind how it ended."""
    advice: str = OTHER


def cause_of(how: How, line: Line, chosen: set[str]) -> HandshakeFailure:
    """Return what the handshake shows of its failure: one alert is sent for many causes. `chosen`:
    versions and suites of other connections to the broker."""
    outcome, side, alert = how
    if outcome == "answered":
        return HandshakeFailure(advice=NO_TLS)
    if "SSL 2.0" in line["tls_offered"]:
        newest = line["tls_offered"][0]
        return HandshakeFailure(
            f"; the ClientHello is in SSLv2 format, for {newest} at most", OLD_HELLO
        )
    if alert == UNRECOGNIZED_NAME or "broker: unrecognized_name" in line["tls_alerts"]:
        asked = f"the client requested {line['sni']}" if line["sni"] else UNNAMED
        warned = "" if alert == UNRECOGNIZED_NAME else " the broker warned: unrecognized name;"
        return HandshakeFailure(f";{warned} {asked}", SERVER_NAME)
    if alert in ABOUT_VERSIONS or (side == "broker" and not line["tls"]):
        return _about_hello(side, alert, line, chosen)
    if side == "broker":
        return _about_client(alert, line)
    if outcome != "alert" or alert in ABOUT_CERTIFICATES:
        return _about_broker(alert, line)
    if alert == HANDSHAKE_FAILURE and line["certificate"] is not None:
        return _about_broker(alert, line)
    if line["tls"]:
        return HandshakeFailure(f"; the broker chose {line['tls']}")
    return HandshakeFailure()


def _about_hello(side: str, alert: int, line: Line, chosen: set[str]) -> HandshakeFailure:
    """Return why a ClientHello was refused, or what the broker chose of it."""
    unnamed = "" if line["sni"] else f"; {UNNAMED}"
    if side != "broker":
        chose = f"; the broker chose {line['tls']}" if line["tls"] else _offer(line)
        return HandshakeFailure(chose, VERSIONS)
    if alert < 0:
        text = unnamed.replace("; the ClientHello", ", which") or f" for {line['sni']} (SNI)"
        return HandshakeFailure(text, NO_SERVER_NAME if unnamed else NO_ROUTE)
    if alert in ABOUT_VERSIONS:
        others = sorted({each.rpartition(" ")[0] for each in chosen} - set(line["tls_offered"]))
        theirs = f"; other clients use {' and '.join(filter(None, others))}" if any(others) else ""
        return HandshakeFailure(_offer(line) + theirs, VERSIONS)
    if alert in ABOUT_SUITES:
        offered = set(_suites(line))
        common = sorted(each for each in chosen if each.rpartition(" ")[2] in offered)
        if common:
            # It has a suite of the broker: it is something else that does not fit.
            text = f"{_offer(line)}, among them {common[0].rpartition(' ')[2]}"
            return HandshakeFailure(
                f"{text}, which the broker uses with others{unnamed}",
                SERVER_NAME if unnamed else OTHER,
            )
        others = sorted(each for each in chosen if each)
        theirs = f"; the broker uses {others[0]} with others" if others else ""
        behind = f" If the broker chooses its certificate by name: {SERVER_NAME}"
        return HandshakeFailure(_offer(line) + theirs + unnamed, SUITES + behind * bool(unnamed))
    if alert in ABOUT_CERTIFICATES or alert == CERTIFICATE_REQUIRED:
        return _about_client(alert, line)
    return HandshakeFailure(unnamed, SERVER_NAME if unnamed else OTHER)


def _offer(line: Line) -> str:
    """Return what the client offers."""
    if not line["tls_offered"]:
        return ""
    names = _suites(line)
    count = len(names) if 0 < len(names) <= FEW_SUITES else line["tls_suites"] or 0
    few = f" ({', '.join(names)})" if 0 < len(names) <= FEW_SUITES else ""
    return f"; the client offers {', '.join(line['tls_offered'])} and {plural(count, 'suite')}{few}"


def _suites(line: Line) -> list[str]:
    """Return names of the cipher suites that the client offers."""
    from kafkascope.captures.tls.keys.suites import suite_of

    return [suite_of(each).name for each in line["cipher_suites"] or () if each != RENEGOTIATION]


def _about_client(alert: int, line: Line) -> HandshakeFailure:
    """Return why a broker ended the handshake: what it got from the client."""
    if line["tls_unauthenticated"] and not line["tls_requested"]:
        return HandshakeFailure(
            "; the client's reply has the size of an empty Certificate", NO_CERTIFICATE
        )
    if line["tls_unauthenticated"]:
        return HandshakeFailure(
            "; the broker requested a client certificate, and the client sent none "
            "(an empty Certificate)",
            NO_CERTIFICATE,
        )
    certificate = line["client_certificate"]
    refused = alert in ABOUT_CERTIFICATES or alert in (HANDSHAKE_FAILURE, CERTIFICATE_REQUIRED, -1)
    if certificate is not None and refused:
        wrong = trouble_with(certificate, line["opened"], "")
        text = f"; client certificate: {described(certificate)}{wrong and f': {wrong}'}"
        return HandshakeFailure(text, REFUSED_CERTIFICATE)
    if alert in ABOUT_CERTIFICATES or alert in (CERTIFICATE_REQUIRED, -1):
        asked = "; the broker requested a client certificate" if line["tls_requested"] else ""
        return HandshakeFailure(asked, CLIENT_CERTIFICATE)
    return HandshakeFailure()


def _about_broker(alert: int, line: Line) -> HandshakeFailure:
    """Return why a client may have refused the broker's certificate."""
    certificate = line["certificate"]
    if certificate is None:
        asked = f"the client requested {line['sni']} (SNI)" if line["sni"] else UNNAMED
        return HandshakeFailure(f"; {asked}" if alert in ABOUT_HOSTS else "", CERTIFICATE)
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
        return HandshakeFailure(text, DEFAULT)
    if mismatch:
        return HandshakeFailure(text, OTHER_HOST + (UNKNOWN_ISSUER if alert == UNKNOWN_CA else ""))
    if wrong or alert not in ABOUT_ISSUERS:
        return HandshakeFailure(text, CERTIFICATE)
    return HandshakeFailure(text, ISSUER if known else NO_HOST)
