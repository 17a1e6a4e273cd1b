"""Headers of the PROXY protocol: read from load balancers, and sent to brokers."""

import asyncio
import ssl
from pathlib import Path

import pytest

from kafkascope.captures.model import Endpoint
from kafkascope.captures.proxy_protocol import ProxyHeader, header_of, read_header
from kafkascope.proxy.engine.tls import ClientTls
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.proxy.relay.proxy_header import MODES
from tests.kit import proxy as kit
from tests.kit.proxy import proxied
from tests.kit.samples import rows_of

ORIGIN = Endpoint("203.0.113.77", 55130)
TARGET = Endpoint("10.20.0.5", 9092)
ASKED, ANSWER = kit.beat(7), kit.pulse(7)
ACCEPT = MODES["accept"]


async def ask(proxy: kit.Proxied, *parts: bytes) -> bytes:
    """The answer to a request that comes behind some bytes, all in their own packets."""
    client = await proxy.client()
    for part in (*parts, ASKED):
        await client.pour(part)
        await asyncio.sleep(0.02)
    try:
        return await client.frame()
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


class Accepting:
    """A broker that takes a header, and notes it."""

    def __init__(self) -> None:
        self.headers: list[ProxyHeader] = []

    async def __call__(self, link: kit.Link) -> None:
        data = b""
        while (header := read_header(data)) is None:
            data += await link.reader.read(1)
        self.headers.append(header)
        await link.frame()
        link.send(ANSWER)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("cut", [0, 1, 13])
async def test_a_header_is_accepted_and_the_recording_has_its_client(
    version: int, cut: int, tmp_path: Path
) -> None:
    header = header_of(version, ORIGIN, TARGET)
    recorder = Recorder(tmp_path / "r.pcapng")
    async with proxied(recorder=recorder, proxy_protocol=ACCEPT) as proxy:
        parts = (header[:cut], header[cut:]) if cut else (header,)
        assert await ask(proxy, *parts) == ANSWER
        (upstream,) = proxy.nodes.upstreams
    (row,) = rows_of(tmp_path / "r.pcapng")
    assert (row.client_address, row.broker_address) == (str(ORIGIN), str(upstream))
    assert row.via.startswith("127.0.0.1:")


async def test_header_and_request_in_one_packet() -> None:
    async with proxied(proxy_protocol=ACCEPT) as proxy:
        assert await proxy.ask(header_of(2, ORIGIN, TARGET) + ASKED) == ANSWER


@pytest.mark.parametrize("mode", ["send", "send-v1"])
async def test_brokers_are_told_the_client(mode: str) -> None:
    accepting = Accepting()
    async with proxied(accepting, proxy_protocol=MODES[mode]) as proxy:
        assert await ask(proxy) == ANSWER
        (header,) = accepting.headers
        assert header.version == (1 if mode == "send-v1" else 2)
        assert header.client.host == "127.0.0.1"
        assert str(header.server) == proxy.bootstrap


async def test_the_client_of_an_accepted_header_is_sent_on() -> None:
    accepting = Accepting()
    async with proxied(accepting, proxy_protocol=MODES["both"]) as proxy:
        assert await ask(proxy, header_of(1, ORIGIN, TARGET)) == ANSWER
        (header,) = accepting.headers
        assert (header.version, header.client, header.server) == (2, ORIGIN, TARGET)


@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\n\r\n", b"PROXY TCP4 x\r\n"])
async def test_who_sends_no_header_is_refused(
    first: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with proxied(proxy_protocol=ACCEPT) as proxy:
        assert await ask(proxy, first) == b""
    assert "PROXY protocol" in caplog.text
    assert "--proxy-protocol accept" in caplog.text


@pytest.mark.parametrize("version", [1, 2])
async def test_a_header_that_nobody_asked_for_ends_the_connection(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with proxied() as proxy:
        assert await ask(proxy, header_of(version, ORIGIN, TARGET)) == b""
    assert "--proxy-protocol accept" in caplog.text


async def test_who_sends_nothing_is_let_go() -> None:
    async with proxied(proxy_protocol=ACCEPT, limits=Limits(header_s=0.2)) as proxy:
        client = await proxy.client()
        client.send(b"PROXY TCP4 ")
        assert await client.ended()
        await (await proxy.client()).leave()
        await kit.until(lambda: not proxy._greeting)


async def test_the_header_comes_before_tls(tmp_path: Path) -> None:
    async with proxied(tls=ClientTls(), folder=tmp_path, proxy_protocol=ACCEPT) as proxy:
        context = ssl.create_default_context(cafile=str(proxy.tls.ca_file))
        client = await proxy.client()
        client.send(header_of(2, ORIGIN, TARGET))
        await client.writer.start_tls(context, server_hostname="127.0.0.1")
        assert await client.ask(ASKED) == ANSWER
