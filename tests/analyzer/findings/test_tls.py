"""Causes of TLS handshakes that failed, on handshakes made by hand."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.analyzer.findings.handshakes import failed, hello, wire
from tests.analyzer.findings.judging import found, states
from tests.captures.tls.writer import ALERT, HANDSHAKE, extension, message, record, vector
from tests.kit.wire import Wire, beat, heartbeat, told

HOST = "broker-0.kafka.example"


def der(common_name: str, *names: str) -> bytes:
    """A certificate that is good at the time of `Wire`."""
    key = ec.derive_private_key(7, ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    start = datetime(2023, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject)
    builder = builder.public_key(key.public_key()).serial_number(17).not_valid_before(start)
    if names:
        entries = [
            x509.IPAddress(ip_address(name))
            if name.replace(".", "").isdigit()
            else x509.DNSName(name.removeprefix("DNS:"))
            for name in names
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(entries), critical=False)
    made = builder.not_valid_after(start + timedelta(days=999)).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.DER)


def served(certificate: bytes = b"", *, asks: bool = False) -> bytes:
    """A ServerHello of TLS 1.2 with what follows."""
    flight = message(2, b"\3\3" + bytes(range(32, 64)) + vector(1, b"") + b"\xc0\x30\0")
    if certificate:
        flight += message(11, vector(3, vector(3, certificate)))
    if asks:
        flight += message(13, vector(1, b"\1\x40") + vector(2, b"\4\3") + vector(2, b""))
    return record(HANDSHAKE, flight + message(14))


def alert(number: int, level: int = 2) -> bytes:
    return record(ALERT, bytes((level, number)))


def presented(certificate: bytes = b"") -> bytes:
    chain = vector(3, certificate) if certificate else b""
    return record(HANDSHAKE, message(11, vector(3, chain)))


@pytest.mark.parametrize("number", [40, 42, 43, 46, 48, 116])
def test_an_empty_client_certificate_is_the_cause_whatever_the_alert(number: int) -> None:
    one = wire(hello(HOST), served(der(HOST, HOST), asks=True), presented(), alert(number))
    finding = failed(one.close("broker"))
    assert states(finding.text, f"({number})", "requested a client certificate", "sent none")
    assert "ssl.keystore.location" in finding.advice
    assert "cipher" not in finding.advice


def test_an_empty_client_certificate_without_any_alert() -> None:
    one = wire(hello(HOST), served(der(HOST, HOST), asks=True), presented())
    finding = failed(one.close("broker", "rst"))
    assert states(finding.text, "the broker closed", "sent none")


def test_a_client_certificate_that_the_broker_refused() -> None:
    mine = der("app-1")
    one = wire(hello(HOST), served(der(HOST, HOST), asks=True), presented(mine), alert(48))
    finding = failed(one.close("broker"))
    assert states(finding.text, "client certificate: CN=app-1", "2025-09-26")
    assert "ssl.truststore.location" in finding.advice


@pytest.mark.parametrize("name", [HOST, ""])
def test_an_unrecognized_name_is_named(name: str) -> None:
    finding = failed(wire(hello(name), alert(112)).close("broker"))
    assert states(finding.text, "(112)", name or "names no server (SNI)")
    assert "SNI" in finding.advice
    assert "certificate that it trusts" not in finding.advice


def test_a_warning_about_the_name_ends_nothing() -> None:
    one = wire(hello(HOST), alert(112, 1) + served(der(HOST, HOST)))
    assert "tls-failed" not in found([one])
    ended = wire(hello(HOST), alert(112, 1) + served(der(HOST, HOST)), alert(40))
    assert states(failed(ended).text, "the broker warned", HOST)


@pytest.mark.parametrize("how", ["rst", "fin"])
@pytest.mark.parametrize("name", [HOST, ""])
def test_a_hello_that_is_ended_at_once(name: str, how: str) -> None:
    wires = [wire(hello(name), number=number).close("broker", how) for number in range(3)]
    finding = failed(*wires)
    did = "reset" if how == "rst" else "closed"
    assert states(finding.text, "3 TLS handshakes", did, name or "names no server (SNI)")
    assert "--keylog" not in finding.advice


def test_a_hello_to_a_plaintext_listener() -> None:
    plain = Wire(number=1).client(heartbeat(1)).broker(beat(1))
    wires = [plain, wire(hello(), number=2, port=9092).close("broker", "rst")]
    names = found(wires)
    assert "tls-failed" not in names
    assert states(names["tls-to-plain"].text, "ClientHello", "9092", "no answer")
    alone = found([wire(hello(), port=9092).close("broker", "rst")])["tls-to-plain"]
    assert states(alone.text, "without a server name (SNI)")
    assert states(alone.advice, "PLAINTEXT", "SNI")


def test_a_hello_without_a_name_where_others_name_one() -> None:
    """Between the same hosts, one reset alone is nothing; here the name makes the difference."""
    done = record(20, b"\1")
    keys = record(HANDSHAKE, message(16, b"x"))
    good = wire(hello(HOST), served(der(HOST, HOST)), keys + done, done, number=1)
    assert "tls-failed" in found([good, wire(hello(), number=2).close("broker", "rst")])
    assert "tls-failed" not in found([good, wire(hello(HOST), number=2).close("broker", "rst")])


@pytest.mark.parametrize(
    ("host", "sni", "names", "says"),
    [
        ("10.0.1.2", HOST, ("other.example",), f"it is not for {HOST}"),
        ("10.0.1.2", "", ("other.example",), "it is not for 10.0.1.2"),
        ("10.0.1.2", "", ("DNS:10.0.1.2",), "it is not for 10.0.1.2"),
        ("fd00::2", "", (HOST,), "it is not for fd00::2"),
        ("10.0.1.2", "", ("10.0.1.2",), ""),
        ("10.0.1.2", HOST, ("*.kafka.example",), ""),
        ("10.0.1.2", "", ("broker",), ""),
        ("10.0.1.2", HOST, (), ""),
        ("10.0.1.2", "other.example", (), "it is not for other.example"),
    ],
)
def test_a_certificate_for_another_host(
    host: str, sni: str, names: tuple[str, ...], says: str
) -> None:
    one = wire(hello(sni), served(der(HOST, *names)), alert(46), host=host)
    finding = failed(one)
    assert states(finding.text, "certificate unknown (46)", f"CN={HOST}")
    assert ("it is not for" in finding.text) == bool(says)
    assert says in finding.text
    assert ("subjectAltName" in finding.advice) == bool(says)
    known = sni or "10.0.1.2" in names
    assert says or ("matches this host" in finding.advice) == bool(known)


@pytest.mark.parametrize(
    ("owner", "whose"),
    [
        ("Kubernetes Ingress Controller Fake Certificate", "Kubernetes ingress"),
        ("TRAEFIK DEFAULT CERT", "Traefik"),
        ("*.apps.cluster.example", "OpenShift router"),
    ],
)
def test_the_default_certificate_of_an_ingress(owner: str, whose: str) -> None:
    one = wire(hello(HOST), served(der(owner, "ingress.local")), alert(42))
    finding = failed(one)
    assert states(finding.text, "default certificate", whose, f"it is not for {HOST}")
    assert "passthrough" in finding.advice


@pytest.mark.parametrize(("version", "name"), [(b"\3\1", "TLS 1.0"), (b"\0\2", "SSL 2.0")])
@pytest.mark.parametrize("port", [9093, 9443])
def test_a_hello_in_the_format_of_sslv2(version: bytes, name: str, port: int) -> None:
    body = b"\1" + version + b"\0\6\0\0\0\x10" + bytes(6) + bytes(range(16))
    old = (0x8000 | len(body)).to_bytes(2, "big") + body
    finding = failed(wire(old, port=port).close("broker", "rst"))
    assert states(finding.text, "SSLv2", name)
    assert "ssl.enabled.protocols" in finding.advice
    assert states(failed(wire(old, alert(40), port=port).close("broker")).text, "(40)", "SSLv2")


def test_suites_and_versions_that_are_not_in_common() -> None:
    done = record(20, b"\1")
    keys = record(HANDSHAKE, message(16, b"x"))
    good = wire(hello(HOST), served(der(HOST, HOST)), keys + done, done, number=1)
    refused = wire(hello(HOST, b"\x00\x2f\x00\xff"), alert(40), number=2).close("broker")
    text = failed(good, refused).text
    assert states(text, "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")
    # The broker uses a suite of it with others: that one is not the cause.
    nameless = wire(hello(), alert(40), number=2).close("broker")
    finding = failed(good, nameless)
    assert states(finding.text, "uses with others", "names no server (SNI)")
    assert "ssl.cipher.suites" not in finding.advice
    older = wire(hello(HOST, versions=b"\3\1"), alert(70), number=2).close("broker")
    finding = failed(good, older)
    assert states(finding.text, "TLS 1.0", "other clients use TLS 1.2")
    assert "ssl.enabled.protocols" in finding.advice


def test_a_version_that_the_client_refuses() -> None:
    finding = failed(wire(hello(HOST), served(), alert(70)))
    assert states(finding.text, "the client sent the alert protocol version", "the broker chose")


def test_what_tls_1_3_hides_is_not_told() -> None:
    chosen = extension(43, b"\3\4")
    first = b"\3\3" + bytes(range(32)) + vector(1, b"") + b"\x13\1\0" + vector(2, chosen)
    flight = record(HANDSHAKE, message(2, first)) + record(23, bytes(900))
    finding = failed(wire(hello(HOST, b"\x13\1"), flight, record(23, bytes(19))).close("client"))
    assert states(finding.text, "encrypted alert")
    assert "certificate" not in finding.text
    assert "unknown ca" not in finding.text


@pytest.mark.parametrize("sizes", [(25, 53), (25, 69), (61,), (77,), (53,), (690, 104, 53)])
@pytest.mark.parametrize("silent", [False, True])
def test_an_empty_client_certificate_of_tls_1_3_shows_by_its_size(
    sizes: tuple[int, ...], silent: bool
) -> None:
    chosen = extension(43, b"\3\4")
    first = b"\3\3" + bytes(range(32)) + vector(1, b"") + b"\x13\1\0" + vector(2, chosen)
    flight = record(HANDSHAKE, message(2, first)) + record(23, bytes(900))
    reply = b"".join(record(23, bytes(size)) for size in sizes)
    refusal = b"" if silent else record(23, bytes(19))
    one = wire(hello(HOST, b"\x13\1"), flight, reply, refusal)
    finding = failed(one.close("broker", "rst"))
    empty = sizes[0] in (25, 61, 77)
    assert ("the size of a certificate, which the broker refused" in finding.text) == (
        sizes[0] == 690
    )
    assert ("the size of an empty Certificate" in finding.text) == empty
    assert ("a client whose certificate has another issuer sends none" in finding.advice) == empty


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
        (b"SSH-2.0-OpenSSH_9\r\n", "SSH"),
        (b"-ERR unknown command\r\n", "Redis"),
        (b"\x01\x02\x03\x04", "bytes that are not TLS"),
    ],
)
def test_a_hello_that_is_answered_without_tls(answer: bytes, what: str) -> None:
    finding = failed(wire(hello(HOST), answer, alert(70)).close("client"))
    assert states(finding.text, "answered the ClientHello with", what)
    assert "TLS version" not in finding.advice


@pytest.mark.parametrize("port", [9092, 9093])
def test_the_row_of_a_handshake_that_failed_asks_for_no_key_log(port: int) -> None:
    refused = wire(hello(HOST), alert(40), port=port).close("broker").close("client")
    silent = wire(hello(HOST), port=port).close("broker")
    silent.connection.packets = [3, 2]
    for each in (refused, silent):
        assert [states(row.reason, "TLS", "handshake failed") for row in told(each.events)] == [
            True
        ]
    one_way = wire(hello(HOST), port=port).close("client")
    one_way.connection.packets = [3, 0]
    assert "key log" in told(one_way.events)[0].reason
