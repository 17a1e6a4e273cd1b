"""How TLS handshakes went, told from real ones (OpenSSL's, both ends in memory)."""

import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.model import HandshakeResult
from kafkascope.captures.tls.sources import KeySources
from tests.captures.tls.reading import Read, cut
from tests.captures.tls.talks import BROKER, CLIENT, Bytes, contexts, talk
from tests.kit.authority import Authority


def result(told: Bytes, *ends: int) -> HandshakeResult | None:
    read = Read(KeySources()).take(told)
    return (read.close(*ends) if ends else read).tls.result


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("version", VERSIONS)
def test_one_that_succeeds(version: ssl.TLSVersion, broker: Path, authority: Authority) -> None:
    client, server = contexts(broker, authority)
    client.maximum_version = version
    assert result(talk(client, server)) == HandshakeResult("established")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_that_does_not_trust(version: ssl.TLSVersion, broker: Path) -> None:
    client, server = contexts(broker, None)
    client.maximum_version = version
    told = talk(client, server)
    assert result(told) == HandshakeResult("alert", CLIENT, 48)


def test_no_common_version(broker: Path, authority: Authority) -> None:
    client, server = contexts(broker, authority)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    server.minimum_version = ssl.TLSVersion.TLSv1_3
    assert result(talk(client, server)) == HandshakeResult("alert", BROKER, 70)


def test_a_client_without_its_certificate(broker: Path, authority: Authority) -> None:
    client, server = contexts(broker, authority)
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(authority.certificate)
    assert result(talk(client, server)) == HandshakeResult("rejected", BROKER)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert result(talk(client, server)) == HandshakeResult("alert", BROKER, 40)


def test_a_client_with_its_certificate(broker: Path, authority: Authority) -> None:
    client, server = contexts(broker, authority)
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(authority.certificate)
    client.load_cert_chain(authority.issue("client"))
    assert result(talk(client, server)) == HandshakeResult("established")


def test_an_encrypted_alert_of_the_client(broker: Path, authority: Authority) -> None:
    """As Java sends it: encrypted from the first record on."""
    client, server = contexts(broker, authority)
    told = talk(client, server, work=False)
    first, answer = told[0], told[1]
    alert = bytes.fromhex("1703030013") + bytes(19)
    assert result([first, answer, (CLIENT, alert)]) == HandshakeResult("rejected", CLIENT)


@pytest.mark.parametrize("size", [19, 35])
def test_an_encrypted_alert_of_the_broker(size: int, broker: Path, authority: Authority) -> None:
    """Java pads each record of TLS 1.3 with 16 zeros."""
    client, server = contexts(broker, authority)
    told = talk(client, server, work=False)[:3]
    alert = b"\x17\3\3" + size.to_bytes(2) + bytes(size)
    assert result([*told, (BROKER, alert)]) == HandshakeResult("rejected", BROKER)


@pytest.mark.parametrize("first", [CLIENT, BROKER])
def test_an_encrypted_alert_behind_bytes_that_are_no_record(
    first: int, broker: Path, authority: Authority
) -> None:
    """Clients of Kafka 2.6 to 3.0 on Java 17 send all of a buffer before it; the broker may close
    before it comes."""
    client, server = contexts(broker, authority)
    told = talk(client, server, work=False)[:2]
    told.append((CLIENT, b"\x14\3\3\0\1\1" + b"\0\1\xaf\3\3" + bytes(900)))
    alert = (CLIENT, b"\x17\3\3\0\x23" + bytes(35))
    ends = [(BROKER, b"\x17\3\3\0\x23" + bytes(35)), alert]
    told += ends if first == BROKER else ends[::-1]
    assert result(told, BROKER) == HandshakeResult("rejected", CLIENT)


@pytest.mark.parametrize("end", [CLIENT, BROKER])
def test_a_side_that_closes_in_the_middle(end: int, broker: Path, authority: Authority) -> None:
    client, server = contexts(broker, authority)
    told = talk(client, server, work=False)[:2]
    assert result(told, end) == HandshakeResult("closed", end)
    assert result(told[:1], end) is None  # nobody answered: that is no TLS listener


def test_a_check_that_asks_for_nothing_has_not_failed(broker: Path, authority: Authority) -> None:
    client, server = contexts(broker, authority)
    told = talk(client, server, work=False)
    hello, answer, finished = told[:3]
    assert result([hello, answer, finished], CLIENT) == HandshakeResult("established")
    assert result([hello, answer, finished], BROKER) == HandshakeResult("closed", BROKER)


def test_who_leaves_says_so_and_has_not_failed() -> None:
    hello = bytes.fromhex("1603010005") + b"\1\0\0\1\0"
    notify = bytes.fromhex("15030300020100")
    assert result([(CLIENT, hello), (CLIENT, notify)]) is None


@given(st.lists(st.integers(1, 700), min_size=1, max_size=30), st.booleans())
def test_any_chunks_tell_the_same(sizes: list[int], trusted: bool) -> None:
    told = RECORDED[trusted]
    assert result(cut(told, sizes)) == result(told)


@given(st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=60)), max_size=20))
def test_garbage_tells_something_or_nothing(told: Bytes) -> None:
    result(told, CLIENT, BROKER)


def test_nothing_is_told_behind_a_gap(broker: Path, authority: Authority) -> None:
    told = talk(*contexts(broker, authority))
    read = Read(KeySources()).lose(BROKER, 10).take(told)
    assert read.stream.over
    assert read.tls.result is None


def test_a_small_record_behind_a_gap_is_no_alert(broker: Path, authority: Authority) -> None:
    told = talk(*contexts(broker, authority), work=False)[:2]
    read = Read(KeySources()).take(told).lose(CLIENT, 80)
    assert read.take([(CLIENT, b"\x17\3\3\0\x23" + bytes(35))]).tls.result is None


RECORDED: dict[bool, Bytes] = {}


@pytest.fixture(scope="module", autouse=True)
def recorded(broker: Path, authority: Authority) -> None:
    RECORDED[True] = talk(*contexts(broker, authority))
    RECORDED[False] = talk(*contexts(broker, None))
