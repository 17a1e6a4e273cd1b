"""TLS on both legs: two proxies in a row, one that speaks TLS to clients, one to brokers."""

import asyncio
import contextlib
import ssl
from pathlib import Path

import pytest

from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.engine.tls import ClientTls, UpstreamTls
from kafkascope.proxy.recording.recorder import Recorder
from tests.kit import proxy as kit
from tests.kit.authority import Authority
from tests.kit.proxy import Proxied, ask, beat, proxied, pulse
from tests.kit.run import objects


@kit.BOTH_LOOPS
async def test_a_generated_certificate_is_trusted_with_our_ca(loop: object, tmp_path: Path) -> None:
    async with proxied(tls=ClientTls(), folder=tmp_path / "conf") as proxy:
        context = ssl.create_default_context(cafile=str(proxy.tls.ca_file))
        assert await ask(proxy.bootstrap, beat(), ssl=context) == pulse()
    key = tmp_path / "conf" / "kafkascope-ca.pem"
    assert oct(key.stat().st_mode & 0o777) == "0o600"


async def test_plain_to_tls_and_tls_to_plain_with_client_certificates(
    authority: Authority, tmp_path: Path
) -> None:
    server = ClientTls(authority.issue("server", "127.0.0.1"), ca=authority.certificate)
    ours = UpstreamTls(ca=authority.certificate, certificate=authority.issue("client"))
    path = tmp_path / "tls.pcapng"
    async with (
        proxied(tls=server, recorder=Recorder(path)) as inner,
        Proxied(inner.bootstrap, upstream_tls=ours) as outer,
    ):
        assert await outer.ask(beat()) == pulse()
        assert (await outer.ask(kit.produce(size=3_000_000)))[4:8] == b"\0\0\0\1"
    told = objects("ls", path, "--json")
    assert [each["api"] for each in told] == ["Heartbeat", "Produce"]  # decrypted


async def test_a_client_without_the_certificate_is_sent_away(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    server = ClientTls(authority.issue("server2", "127.0.0.1"), ca=authority.certificate)
    async with proxied(tls=server) as proxy:
        context = ssl.create_default_context(cafile=str(authority.certificate))
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await ask(proxy.bootstrap, beat(), ssl=context)
        assert proxy.hub.metrics.requests[kit.HEARTBEAT] == 0
    assert "the client sent no certificate (--tls-client-ca requires one)" in caplog.text


async def test_a_broker_that_requires_a_certificate_disconnects_the_client(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """TLS 1.3: its alert comes after the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("server3", "127.0.0.1"))
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED

    async def refuse(link: kit.Link) -> None:
        received, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = context.wrap_bio(received, out, server_side=True)
        while data := await link.reader.read(65536):  # to the end: a reset could overtake the alert
            received.write(data)
            with contextlib.suppress(ssl.SSLError):
                session.do_handshake()
            link.send(out.read())

    async with proxied(refuse, upstream_tls=UpstreamTls(ca=authority.certificate)) as proxy:
        client = await proxy.client()
        client.send(beat())
        assert await client.rest() == b""
    assert "requires a client certificate that it trusts (--upstream-cert)" in caplog.text


@pytest.mark.parametrize("insecure", [False, True])
async def test_a_broker_is_verified_unless_that_is_not_wanted(
    authority: Authority, insecure: bool, caplog: pytest.LogCaptureFixture
) -> None:
    # A certificate for another address.
    wrong = ClientTls(authority.issue("wrong", "10.1.1.1"))
    upstream = UpstreamTls(ca=authority.certificate, insecure=insecure)
    async with (
        proxied(tls=wrong) as inner,
        Proxied(inner.bootstrap, upstream_tls=upstream) as outer,
    ):
        if insecure:
            assert await outer.ask(beat()) == pulse()
            return
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await outer.ask(beat())
    assert caplog.text.count("certificate is for another name (--upstream-name)") == 1


async def test_a_plain_client_on_a_tls_listener_gets_a_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with proxied(tls=ClientTls(), folder=tmp_path) as proxy:
        for _ in range(2):
            client = await proxy.client()
            client.send(beat())
            assert await client.rest() == b""
    assert caplog.text.count("sent plaintext") == 1  # however often it comes


async def test_a_certificate_without_its_key_is_refused_at_the_start(authority: Authority) -> None:
    with pytest.raises(ValueError, match="contains no unencrypted PEM key"):
        await KafkaProxy("127.0.0.1:1", tls=ClientTls(authority.certificate)).start()
    with pytest.raises(ValueError, match="contains no PEM certificate"):
        await KafkaProxy("127.0.0.1:1", tls=ClientTls(Path(__file__))).start()
    with pytest.raises(OSError, match="no such file"):
        await KafkaProxy("127.0.0.1:1", tls=ClientTls(Path("nowhere.pem"))).start()
