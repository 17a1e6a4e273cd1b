"""First bytes of other protocols keep what they are, and nothing of what they say."""

import ssl

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.detect import describe, look
from kafkascope.analyzer.transform.cut_rewrites import hidden

SIGNS = [b"GET ", b"HTTP/1.1 ", b"SSH-2.0-", b"PROXY TCP4 ", b"\x16\x03\x01", b"\x15\x03\x03"]
SIZES = [b"\xff\xff\xff\x10", bytes(4), b"\x00\x00\x00\x20", b"\x40\x00\x00\x00"]
BEGINNINGS = st.sampled_from([b"", *SIGNS, *SIZES])


def kind(data: bytes) -> str:
    return describe(data).partition(":")[0]


@given(BEGINNINGS, st.binary(max_size=200))
def test_any_bytes_stay_of_their_kind_and_size(start, rest):
    data = start + rest
    out = hidden(data, names=False)
    assert len(out) == len(data)
    assert kind(out) == kind(data)
    if look(data, kafka_port=True) == "other":
        assert look(out, kafka_port=True) == "other"


@given(st.sampled_from([*SIGNS, b"\x16\x03\x01\x00\x40"]), st.integers(0, 60))
def test_what_is_said_behind_the_sign_goes(start, junk):
    data = start + b"/" * junk + b" Authorization: Basic c2VjcmV0 "
    for names in (False, True):
        assert b"c2VjcmV0" not in hidden(data, names=names)


def hello(name: str) -> bytes:
    """What a client sends first."""
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def test_a_client_hello_without_names_keeps_its_shape():
    data = hello("kafka-1.secret.internal")
    assert b"secret" in data
    assert hidden(data, names=True) == data
    out = hidden(data, names=False)
    assert b"secret" not in out
    assert out[:9] == data[:9], "types and sizes of record and message"
    assert set(out[9:]) == {ord("*")}


def record(kind: int, body: bytes) -> bytes:
    return bytes([kind, 3, 3]) + len(body).to_bytes(2, "big") + body


def message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def test_alerts_stay_and_data_never():
    alert, data = record(21, b"\x02\x2d"), record(23, b"password")
    out = hidden(alert + data, names=True)
    assert out == alert + data[:5] + b"********"


def test_of_a_handshake_only_public_messages_stay():
    certificate, key = message(11, b"CN=kafka"), message(16, b"premaster")
    flight = certificate + key
    # Messages share records and cross them.
    plain = record(22, flight[:7]) + record(22, flight[7:])
    later = record(20, b"\x01") + record(22, message(11, b"encrypted"))
    kept = hidden(plain + later, names=True)
    assert b"CN=" in kept
    assert b"premaster" not in kept
    assert b"encrypted" not in kept
    assert kept.startswith(plain[:12])
    assert b"CN=" not in hidden(plain, names=False)


def test_a_message_head_in_two_records_hides_the_rest():
    cut = message(11, b"certificate")
    out = hidden(record(22, cut[:2]) + record(22, cut[2:]), names=True)
    assert b"certificate" not in out
