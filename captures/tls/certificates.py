"""What X.509 certificates say that people look for when TLS fails. Stateless; any bytes may come.

The library `cryptography` reads them; without it there is nothing to tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

MOST_TEXT: Final = 200
"""Characters of a name that are shown."""
MOST_NAMES: Final = 8


def subject_of(der: bytes) -> str:
    """Return the owner as Kafka writes it in principals (RFC 4514); empty where it is no
    certificate."""
    read = _read(der)
    return "" if read is None else _name(read.subject)


def described(der: bytes) -> str:
    """Return owner, issuer, dates and names in a sentence; empty where it is no certificate."""
    read = _read(der)
    if read is None:
        return ""
    try:
        begin, end = read.not_valid_before_utc, read.not_valid_after_utc
        names = _names(read)
    except ValueError:
        return ""
    owner, issuer = _name(read.subject), _name(read.issuer)
    by = "signed by itself" if owner == issuer else f"issued by {issuer or 'nobody'}"
    of = f" for {', '.join(names)}" if names else ""
    return f"{owner or 'no name'}{of}, {by}, good from {begin:%Y-%m-%d} to {end:%Y-%m-%d}"


def _read(der: bytes) -> Certificate | None:
    try:
        from cryptography.x509 import load_der_x509_certificate
    except ImportError:
        return None
    try:
        return load_der_x509_certificate(der)
    except Exception:  # the library's parsers raise classes of their own for odd input
        return None


def _name(name: object) -> str:
    try:
        return str(name.rfc4514_string())[:MOST_TEXT]  # type: ignore[attr-defined]
    except Exception:
        return ""


def _names(read: Certificate) -> list[str]:
    """Return host names and addresses."""
    from cryptography.x509 import SubjectAlternativeName

    try:
        found = read.extensions.get_extension_for_class(SubjectAlternativeName).value
        return [str(each.value)[:MOST_TEXT] for each in found][:MOST_NAMES]
    except Exception:
        return []
