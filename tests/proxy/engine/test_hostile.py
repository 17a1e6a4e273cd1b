"""Peers that mean no good, on real sockets: nothing crashes, nobody else waits, memory is bounded.

The bounds are those of docs/proxy.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.proxy.rules.faults import parse_fault
from tests.kit.proxy import (
    BOTH_LOOPS_SLOW,
    FETCH,
    HEARTBEAT,
    METADATA,
    PATIENCE_S,
    broker,
    connect,
    echo,
    endpoint,
    leave,
    memory_bytes,
    produce,
    read_frame,
    request,
    response,
    sink,
    until,
    works,
)
from tests.kit.wire import framed

MB = 1024 * 1024
Act = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def garbage(seed: int) -> bytes:
    return random.Random(seed).randbytes(5_000)


CLIENTS_SAY = {
    "garbage": garbage(1),
    "zeros": bytes(5_000),
    "ones": b"\xff" * 5_000,
    "negative size": struct.pack(">i", -5) + bytes(100),
    "2 GB": struct.pack(">ihhih", 0x7FFF_FFFF, 0, 9, 1, -1) + bytes(100_000),
    "size 0": bytes(4) * 1000,
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + garbage(2),
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50,
    "half a head": request(HEARTBEAT, 4)[:9],
    "half a frame": produce(size=10_000)[:5_000],
    "a good request, then garbage": request(HEARTBEAT, 4) + garbage(3),
    "an unknown API": framed(struct.pack(">hhih", 999, 99, 1, -1) + garbage(4)),
    "a body of garbage": framed(struct.pack(">hhih", METADATA, 1, 1, -1) + garbage(5)),
    "a bad client id": framed(struct.pack(">hhih", HEARTBEAT, 4, 1, 0x7FFF) + garbage(6)),
}


@pytest.mark.parametrize("rule", ["", "topic == x -> drop", "-> hold on response"])
@pytest.mark.parametrize("what", CLIENTS_SAY)
async def test_whatever_a_client_says_others_are_served(what: str, rule: str) -> None:
    async with broker(echo) as up, KafkaProxy(str(up)) as proxy:
        if rule:
            proxy.rules.add(parse_fault(rule))
        _, bad = await connect(proxy.bootstrap)
        bad.write(CLIENTS_SAY[what])
        proxy.rules.clear()
        await works(proxy)
        # It goes as rudely as it came.
        bad.transport.abort()
        await until(lambda: not proxy.handlers)
        await works(proxy)


BROKERS_SAY = {
    "garbage": garbage(7),
    "negative size": struct.pack(">ii", -5, 1) + bytes(100),
    "2 GB": struct.pack(">ii", 0x7FFF_FFFF, 1) + bytes(100_000),
    "another id": response(METADATA, 12, correlation_id=77),
    "the answer twice": response(METADATA, 12) * 2,
    "a body of garbage": framed(struct.pack(">ib", 1, 0) + garbage(8)),
    "half an answer": response(METADATA, 12, {"brokers": [endpoint(1)]})[:20],
    "nothing": b"",
}


@pytest.mark.parametrize("ending", ["stays", "closes", "resets"])
@pytest.mark.parametrize("what", BROKERS_SAY)
async def test_whatever_a_broker_says_others_are_served(what: str, ending: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await read_frame(reader)
        if struct.unpack_from(">h", asked, 4)[0] == HEARTBEAT:
            writer.write(echo(HEARTBEAT, 4, asked))
            await reader.read()
            return
        writer.write(BROKERS_SAY[what])
        if ending == "resets":
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if ending != "stays":
            writer.close()
            return
        await reader.read()

    async with sink(serve) as up, KafkaProxy(str(up)) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(METADATA, 12))
        await works(proxy)
        if ending != "stays":
            # The end reaches the client; how much comes before is the broker's affair.
            with contextlib.suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), PATIENCE_S)
        await leave(writer)
        await until(lambda: not proxy.handlers)


@pytest.mark.parametrize("rule", ["", "topic == x -> drop", "topic == x -> drop on response"])
@pytest.mark.parametrize("from_broker", [False, True])
async def test_two_gigabytes_announced_cost_no_memory(from_broker: bool, rule: str) -> None:
    head = struct.pack(">ii", 0x7FFF_FFFF, 1)
    if not from_broker:
        head = struct.pack(">ihhih", 0x7FFF_FFF0, 0, 9, 1, -1)
    amount = 64 * MB

    async def pour(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        for _ in range(amount // MB):
            writer.write(bytes(MB))
            await writer.drain()

    arrived = 0

    async def take(reader: asyncio.StreamReader) -> None:
        nonlocal arrived
        while data := await reader.read(MB):
            arrived += len(data)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if from_broker:
            await read_frame(reader)
            await pour(writer)
            await reader.read()
        else:
            await take(reader)

    async with sink(serve) as up, KafkaProxy(str(up)) as proxy:
        if rule:
            proxy.rules.add(parse_fault(rule))
        reader, writer = await connect(proxy.bootstrap)
        before = memory_bytes()
        if from_broker:
            writer.write(request(FETCH, 12))
            taking = asyncio.create_task(take(reader))
        else:
            taking = asyncio.create_task(pour(writer))
        await until(lambda: arrived >= amount)
        assert memory_bytes() - before < 16 * MB
        assert proxy.hub.metrics.get("errors_total") == 0
        taking.cancel()
        await leave(writer)


async def test_a_frame_that_a_rule_wants_costs_its_size_and_is_given_back() -> None:
    """The bound: one frame of 100 MB at most for each direction of each connection."""

    async with broker(echo) as up, KafkaProxy(str(up)) as proxy:
        proxy.rules.add(parse_fault("topic == x -> drop"))
        whole = produce(size=40 * MB)
        _, writer = await connect(proxy.bootstrap)
        writer.write(whole[: 30 * MB])
        await writer.drain()
        await until(lambda: [h for h in proxy.handlers if h.kafka and h.kafka.relay])
        (handler,) = proxy.handlers
        assert handler.kafka is not None
        relay = handler.kafka.relay
        assert relay is not None
        direction = relay.directions[0]
        await until(lambda: len(direction.body) >= 29 * MB)
        await works(proxy)
        writer.transport.abort()
        await until(lambda: not proxy.handlers)
        assert len(direction.body) == 0


async def test_clients_that_say_nothing_hold_nobody_up() -> None:
    async with broker(echo) as up:
        proxy = KafkaProxy(str(up))
        await proxy.start()
        silent = [(await connect(proxy.bootstrap))[1] for _ in range(50)]
        half = request(HEARTBEAT, 4)[:7]
        for writer in silent[::2]:
            writer.write(half)
        await works(proxy)
        await proxy.stop(1)
        await leave(*silent)


async def test_a_broker_that_takes_connections_and_drops_them() -> None:
    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with sink(rude) as up, KafkaProxy(str(up)) as proxy:
        for _ in range(30):
            reader, writer = await connect(proxy.bootstrap)
            writer.write(request(HEARTBEAT, 4))
            with contextlib.suppress(ConnectionError):  # the reset arrives as one
                assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
            await leave(writer)
        await until(lambda: not proxy.handlers)
        assert proxy.hub.metrics.get("errors_total") == 0


@BOTH_LOOPS_SLOW
async def test_a_broker_that_goes_down_and_comes_back(loop: object) -> None:
    # The port stays taken, so that it is nobody else's when the broker comes back.
    down = socket.socket()
    down.bind(("127.0.0.1", 0))
    async with KafkaProxy(f"127.0.0.1:{down.getsockname()[1]}") as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        await leave(writer)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(echo(HEARTBEAT, 4, await read_frame(reader)))
            await reader.read()
            writer.close()

        async with await asyncio.start_server(serve, sock=down):
            await works(proxy)


async def test_garbage_of_many_at_once_is_recorded_and_forgotten(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.pcapng")
    async with broker(echo) as up, KafkaProxy(str(up), recorder=recorder) as proxy:
        bad = [(await connect(proxy.bootstrap))[1] for _ in range(100)]
        for number, writer in enumerate(bad):
            writer.write(garbage(number))
        await works(proxy)
        for writer in bad:
            writer.transport.abort()
        await until(lambda: not proxy.handlers)
    import subprocess
    import sys

    command = [
        sys.executable,
        "-m",
        "kafkascope.tui.cli",
        "ls",
        str(tmp_path / "r.pcapng"),
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert '"api":"Heartbeat"' in done.stdout


# --- SOCKS5: clients tell where they want to go; nothing is replaced


async def through_socks(proxy: KafkaProxy, host: str, port: int) -> Any:
    reader, writer = await connect(proxy.bootstrap)
    writer.write(b"\x05\x01\x00")
    assert await reader.readexactly(2) == b"\x05\x00"
    writer.write(b"\x05\x01\x00\x03" + bytes([len(host)]) + host.encode())
    writer.write(struct.pack(">H", port))
    answer = await reader.readexactly(4)
    await reader.readexactly(6)
    return reader, writer, answer[1]


async def test_socks_clients_reach_the_broker_that_they_name(tmp_path: Path) -> None:
    def answer(key: int, version: int, asked: bytes) -> bytes | None:
        return response(METADATA, 12, {"brokers": [endpoint(1)]})

    recorder = Recorder(tmp_path / "r.pcapng")
    async with broker(answer) as up, KafkaProxy(mode="socks5", recorder=recorder) as proxy:
        reader, writer, code = await through_socks(proxy, up.host, up.port)
        assert code == 0
        writer.write(request(METADATA, 12))
        assert b"10.9.8.7" in await read_frame(reader)
        await leave(writer)
        await until(lambda: not proxy.handlers)
        assert proxy.hub.metrics.get("errors_total") == 0
    from kafkascope.analyzer.exchanges.offline import open_capture

    with open_capture([tmp_path / "r.pcapng"]) as capture:
        assert [exchange.api for exchange in capture.exchanges()] == ["Metadata"]


async def test_no_socks_at_a_socks_listener_ends(caplog: pytest.LogCaptureFixture) -> None:
    async with broker(echo) as up, KafkaProxy(mode="socks5") as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        await asyncio.wait_for(reader.read(), PATIENCE_S)
        await leave(writer)
        assert "client refused by --mode socks5: Invalid SOCKS version" in caplog.text
        reader, writer, code = await through_socks(proxy, up.host, up.port)
        assert code == 0
        writer.write(request(HEARTBEAT, 4))
        assert await read_frame(reader) == response(HEARTBEAT, 4)
        await leave(writer)
        assert proxy.hub.metrics.get("errors_total") == 0
