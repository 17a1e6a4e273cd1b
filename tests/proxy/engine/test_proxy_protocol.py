"""Headers of the PROXY protocol: read from load balancers, and sent to brokers."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.captures.model import Endpoint
from kafkascope.captures.proxy_protocol import ProxyHeader, header_of, read_header
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.engine.tls import ClientTls
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.proxy.relay.proxy_header import MODES
from tests.kit.proxy import (
    HEARTBEAT,
    broker,
    connect,
    echo,
    read_frame,
    request,
    response,
    sink,
    until,
)

ORIGIN = Endpoint("203.0.113.77", 55130)
TARGET = Endpoint("10.20.0.5", 9092)
ASKED = request(HEARTBEAT, 4, correlation_id=7)
ANSWER = response(HEARTBEAT, 4, correlation_id=7)


def run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


async def ask(bootstrap: str, *parts: bytes) -> bytes:
    """The answer to a request that comes behind some bytes, all in their own packets."""
    reader, writer = await connect(bootstrap)
    for part in (*parts, ASKED):
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0.02)
    try:
        return await read_frame(reader)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    finally:
        writer.close()


class Accepting:
    """A broker that takes a header, and notes it."""

    def __init__(self) -> None:
        self.headers: list[ProxyHeader] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = b""
        header = None
        while header is None:
            data += await reader.read(1)
            header = read_header(data)
        self.headers.append(header)
        await read_frame(reader)
        writer.write(ANSWER)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("cut", [0, 1, 13])
def test_a_header_is_accepted_and_the_recording_has_its_client(
    version: int, cut: int, tmp_path: Path
) -> None:
    header = header_of(version, ORIGIN, TARGET)
    path = tmp_path / "r.pcapng"

    async def main() -> str:
        async with (
            broker(echo) as up,
            KafkaProxy(str(up), recorder=Recorder(path), proxy_protocol=MODES["accept"]) as proxied,
        ):
            parts = (header[:cut], header[cut:]) if cut else (header,)
            assert await ask(proxied.bootstrap, *parts) == ANSWER
            return str(up)

    address = run(main())
    with open_capture([path]) as capture:
        (row,) = (row_of(each, capture.context.names) for each in capture.exchanges())
    assert (row.client_address, row.broker_address) == (str(ORIGIN), address)
    assert row.via.startswith("127.0.0.1:")


async def test_header_and_request_in_one_packet() -> None:
    async with broker(echo) as up, KafkaProxy(str(up), proxy_protocol=MODES["accept"]) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(header_of(2, ORIGIN, TARGET) + ASKED)
        assert await read_frame(reader) == ANSWER
        writer.close()


@pytest.mark.parametrize("mode", ["send", "send-v1"])
async def test_brokers_are_told_the_client(mode: str) -> None:
    accepting = Accepting()

    async with sink(accepting) as up, KafkaProxy(str(up), proxy_protocol=MODES[mode]) as proxy:
        assert await ask(proxy.bootstrap) == ANSWER
        (header,) = accepting.headers
        assert header.version == (1 if mode == "send-v1" else 2)
        assert header.client is not None
        assert header.client.host == "127.0.0.1"
        assert str(header.server) == proxy.bootstrap


async def test_the_client_of_an_accepted_header_is_sent_on() -> None:
    accepting = Accepting()

    async with sink(accepting) as up, KafkaProxy(str(up), proxy_protocol=MODES["both"]) as proxy:
        assert await ask(proxy.bootstrap, header_of(1, ORIGIN, TARGET)) == ANSWER
        (header,) = accepting.headers
        assert (header.version, header.client, header.server) == (2, ORIGIN, TARGET)


@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\n\r\n", b"PROXY TCP4 x\r\n"])
async def test_who_sends_no_header_is_refused(
    first: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker(echo) as up, KafkaProxy(str(up), proxy_protocol=MODES["accept"]) as proxy:
        assert await ask(proxy.bootstrap, first) == b""
    assert "PROXY protocol" in caplog.text
    assert "--proxy-protocol accept" in caplog.text


@pytest.mark.parametrize("version", [1, 2])
async def test_a_header_that_nobody_asked_for_ends_the_connection(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with broker(echo) as up, KafkaProxy(str(up)) as proxy:
        assert await ask(proxy.bootstrap, header_of(version, ORIGIN, TARGET)) == b""
    assert "--proxy-protocol accept" in caplog.text


async def test_who_sends_nothing_is_let_go() -> None:
    limits = Limits(header_s=0.2)

    async with (
        broker(echo) as up,
        KafkaProxy(str(up), proxy_protocol=MODES["accept"], limits=limits) as proxy,
    ):
        reader, writer = await connect(proxy.bootstrap)
        writer.write(b"PROXY TCP4 ")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await read_frame(reader)
        writer.close()
        _, left = await connect(proxy.bootstrap)
        left.close()
        await until(lambda: not proxy._greeting)


async def test_the_header_comes_before_tls(tmp_path: Path) -> None:
    async with broker(echo) as up:
        proxy = KafkaProxy(
            str(up), tls=ClientTls(), folder=tmp_path, proxy_protocol=MODES["accept"]
        )
        async with proxy:
            context = ssl.create_default_context(cafile=str(proxy.tls.ca_file))
            reader, writer = await connect(proxy.bootstrap)
            writer.write(header_of(2, ORIGIN, TARGET))
            await writer.start_tls(context, server_hostname="127.0.0.1")
            writer.write(ASKED)
            assert await read_frame(reader) == ANSWER
            writer.close()
