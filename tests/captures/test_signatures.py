"""The table of signatures: the first bytes of each protocol, and what may stand in their place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.detect import describe, stand_in
from kafkascope.captures.signatures import (
    SIGNATURES,
    Side,
    protocol_of,
    sign_of,
    signature_of,
    words_amid,
    words_of,
)
from tests.captures.signatures import ALL


@pytest.mark.parametrize(("side", "data", "name"), ALL, ids=lambda each: str(each)[:30])
def test_each_protocol_is_known_by_its_first_bytes(side: Side, data: bytes, name: str) -> None:
    assert protocol_of(data, side) == name
    assert words_of(data, side).partition(":")[0] == name.replace(" ruok", "").replace(" mntr", "")
    if name != "TLS":
        assert describe(data, side) == f"{name}, not Kafka"


@pytest.mark.parametrize(("side", "data", "name"), ALL, ids=lambda each: str(each)[:30])
def test_a_stand_in_is_the_same_protocol(side: Side, data: bytes, name: str) -> None:
    start = sign_of(data, side)
    hidden = start + b"*" * (len(data) - len(start))
    assert len(hidden) == len(data)
    assert protocol_of(hidden, side) == name
    assert describe(stand_in(data) + b"*" * (len(data) - len(stand_in(data)))) == describe(data)


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0\x41\0\x12\0\3\0\0\0\1\0\x08shipping", b"\0\0", b"***"]
)
def test_what_has_no_signature(data: bytes) -> None:
    assert signature_of(data) is None
    assert not sign_of(data)


def test_words_repeat_a_status_and_no_header() -> None:
    assert words_of(b"HTTP/1.1 400 Bad Request\r\nSet-Cookie: secret\r\n") == (
        "HTTP: HTTP/1.1 400 Bad Request"
    )
    assert words_of(b"SSH-2.0-OpenSSH_9.6\r\n") == "SSH: SSH-2.0-OpenSSH_9.6"
    assert words_of(b"\x15\3\3\0\2\2\x46") == "TLS: alert protocol version"
    assert words_of(b"GET /?token=secret HTTP/1.1\r\n") == "HTTP"


@given(st.binary(max_size=400))
def test_any_bytes_are_judged(data: bytes) -> None:
    found = signature_of(data)
    assert (found is None) == (not words_of(data))
    assert len(sign_of(data)) <= len(data)


def test_each_signature_is_matched_by_what_stands_in_its_place() -> None:
    for each in SIGNATURES:
        assert each.stand_in == b"" or each.pattern.match(each.stand_in + b"***"), each
        assert each.stand_in or each.pattern.groups == 1, each


WEAK = {"JRMI", "Telnet", "MongoDB", "RDP", "Java serialization", "PROXY protocol v1"}
"""Of their signatures too little is fixed."""


@pytest.mark.parametrize(("side", "data", "name"), ALL, ids=lambda each: str(each)[:30])
def test_what_is_known_amid_a_stream(side: Side, data: bytes, name: str) -> None:
    said = words_amid(data, side)
    assert said in ("", words_of(data, side))
    assert said or name in WEAK or data.startswith((b"0\x84", b"\x80", b"\x16", b"\r\n\r\n\0"))


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\6\4\0\0\0\0\0\0\0\0\0\x2b",  # a response with correlation id 0
        b"R\0\0\0\x0c\0\0\0\2\0\0\0\1",  # the end of a name, a size, partitions
        b"N\0\5topic\0\0",
        b"GET the most of your data",
        b'220 {"order": 1}, {"order": 2}',
        b"+OK that is a record" + b"x" * 300 + b"\n",
        b"\x15\3\3\x10\0topic",
        b"ruok, said the record",
    ],
)
@pytest.mark.parametrize("side", ["client", "server"])
def test_what_a_payload_of_kafka_may_go_on_with_is_not_named(data: bytes, side: Side) -> None:
    assert words_amid(data, side) == ""
