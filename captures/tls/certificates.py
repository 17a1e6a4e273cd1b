"""What X.509 certificates say that people look for when TLS fails. Stateless; any bytes may come.

The library `cryptography` reads them; without it there is nothing to tell.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Certificate
from kafkascope.extras import installed
from kafkascope.times import SECOND

if TYPE_CHECKING:
    from cryptography.x509 import Certificate as X509

COMMON_NAME: Final = re.compile(r"(?:^|[,+])CN=((?:[^,+\\]|\\.)+)")
"""In an owner as `certificate_of` writes it."""
HOST: Final = re.compile(r"[A-Za-z0-9*_-]+(\.[A-Za-z0-9_-]+)*\.?")
# Before an address that a certificate has as a host name: clients look for addresses among
# addresses only (RFC 2818, 3.1).
NO_HOST: Final = "DNS:"
DEFAULTS: Final = (
    (re.compile("CN=Kubernetes Ingress Controller Fake Certificate"), "the Kubernetes ingress"),
    (re.compile("CN=TRAEFIK DEFAULT CERT"), "Traefik"),
    (re.compile("CN=NGINXIngressController"), "the NGINX ingress"),
    (re.compile("CN=ingress-operator@|CN=\\*\\.apps[.-]"), "the OpenShift router"),
    (re.compile("CN=localhost,.*O=Kong|O=Kong,.*CN=localhost"), "Kong"),
    (re.compile("O=HAProxy Technologies|CN=HAProxy"), "HAProxy"),
    (re.compile("(?i)fake certificate|default[ _-]cert|CN=default-server"), "an ingress"),
)
"""Owners of certificates that an ingress makes for hosts that no rule of it names."""


def subject_of(der: bytes) -> str:
    """Return the owner as Kafka writes it in principals (RFC 4514); empty where it is no
    certificate."""
    read = _read(der)
    return "" if read is None else _name(read, "subject")


def certificate_of(der: bytes) -> Certificate | None:
    """Return what a certificate says; None where it is none."""
    read = _read(der)
    if read is None:
        return None
    try:
        dates = read.not_valid_before_utc, read.not_valid_after_utc
        begin, end = (int(date.timestamp()) * SECOND for date in dates)
    except Exception:  # see `_read`
        return None
    return Certificate(_name(read, "subject"), _name(read, "issuer"), _names(read), begin, end)


def described(certificate: Certificate) -> str:
    """Return owner, names, issuer and dates in a sentence."""
    owner, issuer, names, begin_ns, end_ns = certificate
    by = "self-signed" if owner == issuer else f"issued by {issuer or 'an unnamed issuer'}"
    of = f" for {', '.join(names)}" if names else ""
    return f"{owner or 'no name'}{of}, {by}, valid from {_day(begin_ns)} to {_day(end_ns)}"


def default_of(certificate: Certificate) -> str:
    """Return whose default certificate this is; empty where it is none that is known."""
    return next((whose for owner, whose in DEFAULTS if owner.search(certificate.owner)), "")


def hosts_of(certificate: Certificate) -> tuple[str, ...]:
    """Return hosts that clients take a certificate for: its subjectAltName, without one its CN."""
    if certificate.names:
        return certificate.names
    named = COMMON_NAME.search(certificate.owner)
    return () if named is None else (named.group(1),)


def may_be_for(certificate: Certificate, address: str) -> bool:
    """Return whether a certificate may be for a host to which a client went that named none (SNI):
    for its address, or for a name without a dot, which Java clients do not send."""
    return any(
        matches(name, address) or (HOST.fullmatch(name) is not None and "." not in name)
        for name in hosts_of(certificate)
    )


def trouble_with(certificate: Certificate, time_ns: int | None, host: str) -> str:
    """Return why a certificate is invalid for a host at a time; empty where no reason is visible: a
    client may not trust its issuer."""
    if time_ns is not None and time_ns > certificate.end_ns:
        return f"it expired on {_day(certificate.end_ns)}"
    if time_ns is not None and time_ns < certificate.begin_ns:
        return f"it is not valid before {_day(certificate.begin_ns)}"
    if host and not any(matches(name, host) for name in hosts_of(certificate)):
        return f"it is not for {host}"
    return ""


def matches(name: str, host: str) -> bool:
    """Return whether a name in a certificate, which may have a `*` for its first part, is of a
    host."""
    name, host = name.lower().rstrip("."), host.lower().rstrip(".")
    if name.startswith("*."):
        return name[1:] == host[host.find(".") :] and "." in host
    return name == host


def _day(time_ns: int) -> str:
    """Return the date of a time; the far ends of what certificates may say need not be dates."""
    try:
        return f"{datetime.fromtimestamp(time_ns // SECOND, UTC):%Y-%m-%d}"
    except (ValueError, OverflowError, OSError):
        return "?"


def _read(der: bytes) -> X509 | None:
    if not installed("tls"):
        return None
    from cryptography.x509 import load_der_x509_certificate

    try:
        return load_der_x509_certificate(der)
    except Exception:  # the library's parsers raise classes of their own for odd input
        return None


def _name(read: X509, whose: str) -> str:
    """Return the name of the owner (`subject`) or of the issuer."""
    try:
        return str(getattr(read, whose).rfc4514_string())[: LIMITS.certificate_name_chars]
    except Exception:  # see `_read`; names are parsed when they are asked for
        return ""


def _names(read: X509) -> tuple[str, ...]:
    from cryptography.x509 import DNSName, IPAddress, SubjectAlternativeName

    try:
        found = read.extensions.get_extension_for_class(SubjectAlternativeName).value
        names = [
            _dns(each.value) if isinstance(each, DNSName) else str(each.value)
            for each in found
            if isinstance(each, DNSName | IPAddress)
        ]
        return tuple(
            [name[: LIMITS.certificate_name_chars] for name in names[: LIMITS.certificate_names]]
        )
    except Exception:  # see `_read`
        return ()


def _dns(name: str) -> str:
    """Return a host name, or an address that is no good as one."""
    try:
        ip_address(name)
    except ValueError:
        return name
    return f"{NO_HOST}{name}"
