"""What certificates say, and what is wrong with them."""

import random
from datetime import UTC, datetime

import pytest

from kafkascope.captures.tls.certificates import (
    SECOND,
    certificate_of,
    described,
    matches,
    subject_of,
    trouble_with,
)
from tests.captures.tls.writer import certificate


def at(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * SECOND


def test_dates_and_owners_are_told() -> None:
    found = certificate_of(certificate("broker", "ours"))
    text = "CN=broker, issued by CN=ours, valid from 2026-01-01 to 2026-01-31"
    assert described(found) == text
    assert trouble_with(found, at("2026-01-15"), "broker") == ""
    assert trouble_with(found, at("2026-01-15"), "other") == "it is not for other"
    assert trouble_with(found, at("2026-02-01"), "") == "it expired on 2026-01-31"
    assert trouble_with(found, at("2025-12-31"), "") == "it is not valid before 2026-01-01"
    assert trouble_with(found, None, "") == ""
    named = found._replace(names=("*.example",), begin_ns=0, end_ns=1 << 62)
    assert trouble_with(named, at("2026-01-15"), "a.example") == ""
    assert trouble_with(named, at("2026-01-15"), "a.b.example") == "it is not for a.b.example"
    own = certificate_of(certificate("own"))
    assert "self-signed" in described(own)
    assert "?" in described(own._replace(end_ns=1 << 100))


@pytest.mark.parametrize(
    ("name", "host", "good"),
    [
        ("a.example", "A.example", True),
        ("a.example.", "a.example", True),
        ("*.example", "a.example", True),
        ("*.example", "example", False),
        ("*.example", ".example", True),
        ("*.example", "a.b.example", False),
        ("*.example", "aexample", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.10", False),
        ("", "a", False),
    ],
)
def test_names_match_hosts(name: str, host: str, good: bool) -> None:
    assert matches(name, host) == good


@pytest.mark.parametrize("der", [b"", b"\x30", b"\x30\x82\xff\xff", bytes(1000)])
def test_what_is_no_certificate_says_nothing(der: bytes) -> None:
    assert certificate_of(der) is None
    assert subject_of(der) == ""


def test_changed_certificates_make_no_exception() -> None:
    """The library parses names and dates when they are asked for, and raises what it likes."""
    source, whole = random.Random(3), certificate("a,=\\\0b", "c" * 30)
    for _ in range(20_000):
        der = bytearray(whole)
        for _ in range(source.choice([1, 1, 2])):
            der[source.randrange(len(der))] = source.randrange(256)
        found = certificate_of(bytes(der))
        assert found is None or described(found)
        subject_of(bytes(der))
