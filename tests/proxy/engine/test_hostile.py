"""Peers that mean no good, on real sockets: nothing crashes, nobody else waits, memory is bounded.

The bounds are those of docs/proxy.md.
"""

import asyncio
import contextlib
import random
import socket
import struct
from pathlib import Path

import pytest

from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.recording.recorder import Recorder
from tests.kit import proxy as kit
from tests.kit.proxy import FETCH, HEARTBEAT, MB, METADATA, Link, beat, proxied, pulse, until, works
from tests.kit.run import objects
from tests.kit.wire import framed


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
    "half a head": beat()[:9],
    "half a frame": kit.produce(size=10_000)[:5_000],
    "a good request, then garbage": beat() + garbage(3),
    "an unknown API": framed(struct.pack(">hhih", 999, 99, 1, -1) + garbage(4)),
    "a body of garbage": framed(struct.pack(">hhih", METADATA, 1, 1, -1) + garbage(5)),
    "a bad client id": framed(struct.pack(">hhih", HEARTBEAT, 4, 1, 0x7FFF) + garbage(6)),
}


@pytest.mark.parametrize("rules", [[], ["topic == x -> drop"], ["-> hold on response"]])
@pytest.mark.parametrize("what", CLIENTS_SAY)
async def test_whatever_a_client_says_others_are_served(what: str, rules: list[str]) -> None:
    async with proxied(kit.echo, *rules) as proxy:
        bad = await proxy.client()
        bad.send(CLIENTS_SAY[what])
        proxy.rules.clear()
        await works(proxy)
        bad.abort()  # it goes as rudely as it came
        await until(lambda: not proxy.handlers)
        await works(proxy)


BROKERS_SAY = {
    "garbage": garbage(7),
    "negative size": struct.pack(">ii", -5, 1) + bytes(100),
    "2 GB": struct.pack(">ii", 0x7FFF_FFFF, 1) + bytes(100_000),
    "another id": kit.response(METADATA, 12, correlation_id=77),
    "the answer twice": kit.response(METADATA, 12) * 2,
    "a body of garbage": framed(struct.pack(">ib", 1, 0) + garbage(8)),
    "half an answer": kit.response(METADATA, 12, {"brokers": [kit.endpoint(1)]})[:20],
    "nothing": b"",
}


@pytest.mark.parametrize("ending", ["stays", "closes", "resets"])
@pytest.mark.parametrize("what", BROKERS_SAY)
async def test_whatever_a_broker_says_others_are_served(what: str, ending: str) -> None:
    async def serve(link: Link) -> None:
        if await link.frame() == beat():
            link.send(pulse())
            await link.reader.read()
            return
        link.send(BROKERS_SAY[what])
        if ending == "resets":
            link.linger_no_more()
        if ending == "stays":
            await link.reader.read()

    async with proxied(serve) as proxy:
        client = await proxy.client()
        client.send(kit.request(METADATA, 12))
        await works(proxy)
        if ending != "stays":
            # The end reaches the client; how much comes before is the broker's affair.
            with contextlib.suppress(ConnectionError):
                await client.rest()
        await client.leave()
        await until(lambda: not proxy.handlers)


@pytest.mark.parametrize("rules", [[], ["topic == x -> drop"], ["topic == x -> drop on response"]])
@pytest.mark.parametrize("from_broker", [False, True])
async def test_two_gigabytes_announced_cost_no_memory(from_broker: bool, rules: list[str]) -> None:
    amount, arrived = 64 * MB, 0

    async def pour(link: Link) -> None:
        head = (0x7FFF_FFF0, 0, 9, 1, -1)
        link.send(
            struct.pack(">ii", 0x7FFF_FFFF, 1) if from_broker else struct.pack(">ihhih", *head)
        )
        await link.pour(*[bytes(MB)] * 64)

    async def take(link: Link) -> None:
        nonlocal arrived
        while data := await link.reader.read(MB):
            arrived += len(data)

    async def serve(link: Link) -> None:
        if from_broker:
            await link.frame()
            await pour(link)
        await take(link)

    async with proxied(serve, *rules) as proxy:
        client = await proxy.client()
        before = kit.memory_bytes()
        if from_broker:
            client.send(kit.request(FETCH, 12))
        going = asyncio.create_task((take if from_broker else pour)(client))
        await until(lambda: arrived >= amount)
        assert kit.memory_bytes() - before < 16 * MB
        assert proxy.hub.metrics.get("errors_total") == 0
        going.cancel()
        await client.leave()


async def test_a_frame_that_a_rule_wants_costs_its_size_and_is_given_back() -> None:
    """The bound: one frame of 100 MB at most for each direction of each connection."""
    async with proxied(kit.echo, "topic == x -> drop") as proxy:
        client = await proxy.client()
        client.send(kit.produce(size=40 * MB)[: 30 * MB])
        await client.writer.drain()
        await until(lambda: [h for h in proxy.handlers if h.kafka and h.kafka.relay])
        (handler,) = proxy.handlers
        direction = handler.relay.directions[0]
        await until(lambda: len(direction.body) >= 29 * MB)
        await works(proxy)
        client.abort()
        await until(lambda: not proxy.handlers)
        assert len(direction.body) == 0


async def test_clients_that_say_nothing_hold_nobody_up() -> None:
    async with proxied() as proxy:
        for number in range(50):
            silent = await proxy.client()
            silent.send(beat()[: 7 * (number % 2)])
        await works(proxy)
        await KafkaProxy.stop(proxy, 1)


async def test_a_broker_that_takes_connections_and_drops_them() -> None:
    async def rude(link: Link) -> None:
        link.abort()

    async with proxied(rude) as proxy:
        for _ in range(30):
            client = await proxy.client()
            client.send(beat())
            assert await client.ended()  # the reset arrives as one
            await client.leave()
        await until(lambda: not proxy.handlers)
        assert proxy.hub.metrics.get("errors_total") == 0


@kit.BOTH_LOOPS_SLOW
async def test_a_broker_that_goes_down_and_comes_back(loop: object) -> None:
    # The port stays taken, so that it is nobody else's when the broker comes back.
    down = socket.socket()
    down.bind(("127.0.0.1", 0))
    async with kit.Proxied(f"127.0.0.1:{down.getsockname()[1]}") as proxy:
        client = await proxy.client()
        client.send(beat())
        assert await client.ended()
        await client.leave()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await kit.read_frame(reader)
            writer.write(pulse())
            await reader.read()
            writer.close()

        async with await asyncio.start_server(serve, sock=down):
            await works(proxy)


async def test_garbage_of_many_at_once_is_recorded_and_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "r.pcapng"
    async with proxied(recorder=Recorder(path)) as proxy:
        bad = [await proxy.client() for _ in range(100)]
        for number, client in enumerate(bad):
            client.send(garbage(number))
        await works(proxy)
        for client in bad:
            client.abort()
        await until(lambda: not proxy.handlers)
    assert "Heartbeat" in [each["api"] for each in objects("ls", path, "--json")]


# --- SOCKS5: clients tell where they want to go; nothing is replaced


async def through_socks(proxy: kit.Proxied, host: str, port: int) -> Link:
    client = await proxy.client()
    client.send(b"\x05\x01\x00")
    assert await client.reader.readexactly(2) == b"\x05\x00"
    client.send(b"\x05\x01\x00\x03", bytes([len(host)]), host.encode(), struct.pack(">H", port))
    assert (await client.reader.readexactly(10))[1] == 0
    return client


async def test_socks_clients_reach_the_broker_that_they_name(tmp_path: Path) -> None:
    path = tmp_path / "r.pcapng"
    async with (
        kit.broker(kit.cluster(kit.endpoint(1))) as up,
        kit.Proxied(mode="socks5", recorder=Recorder(path)) as proxy,
    ):
        client = await through_socks(proxy, *up)
        assert b"10.9.8.7" in await client.ask(kit.request(METADATA, 12))
        await client.leave()
        await until(lambda: not proxy.handlers)
        assert proxy.hub.metrics.get("errors_total") == 0
    assert [each["api"] for each in objects("ls", path, "--json")] == ["Metadata"]


async def test_no_socks_at_a_socks_listener_ends(caplog: pytest.LogCaptureFixture) -> None:
    async with kit.broker(kit.echo) as up, kit.Proxied(mode="socks5") as proxy:
        client = await proxy.client()
        client.send(beat())
        await client.rest()
        assert "client refused by --mode socks5: Invalid SOCKS version" in caplog.text
        assert await (await through_socks(proxy, *up)).ask(beat()) == pulse()
        assert proxy.hub.metrics.get("errors_total") == 0
