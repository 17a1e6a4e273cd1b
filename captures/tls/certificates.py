"""What X.509 certificates say that people look for when TLS fails. Stateless; any bytes may come.

The library `cryptography` reads them; without it there is nothing to tell.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kafkascope.captures.model import Certificate
from kafkascope.extras import installed

if TYPE_CHECKING:
    from cryptography.x509 import Certificate as X509

MOST_TEXT: Final = 200
"""Characters of a name that are shown."""
MOST_NAMES: Final = 100
"""Of one certificate: one for many hosts has as many."""
SECOND: Final = 1_000_000_000


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


def trouble_with(certificate: Certificate, time_ns: int | None, host: str) -> str:
    """Return what is wrong with a certificate for whoever connects to a host at a time; empty where
    nothing can be seen: who signed it may be unknown to a client."""
    if time_ns is not None and time_ns > certificate.end_ns:
        return f"it expired on {_day(certificate.end_ns)}"
    if time_ns is not None and time_ns < certificate.begin_ns:
        return f"it is not valid before {_day(certificate.begin_ns)}"
    if host and certificate.names and not any(matches(name, host) for name in certificate.names):
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
        return str(getattr(read, whose).rfc4514_string())[:MOST_TEXT]
    except Exception:  # see `_read`; names are parsed when they are asked for
        return ""


def _names(read: X509) -> tuple[str, ...]:
    """Return host names and addresses."""
    from cryptography.x509 import SubjectAlternativeName

    try:
        found = read.extensions.get_extension_for_class(SubjectAlternativeName).value
        return tuple([str(each.value)[:MOST_TEXT] for each in found][:MOST_NAMES])
    except Exception:  # see `_read`
        return ()
