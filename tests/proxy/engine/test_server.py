"""A whole proxy over loopback sockets: life, peers that misbehave, memory."""

import asyncio
import contextlib
import gc
import os
import socket
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.dissectors.registry import decode_response
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.proxy.rules.verdicts import Respond
from tests.kit import proxy as kit
from tests.kit.proxy import BOTH_LOOPS, BOTH_LOOPS_SLOW, MB, Link, ask, beat, proxied, pulse, until
from tests.kit.wire import framed
from tests.matrix import each_nth


async def test_two_hundred_starts_and_stops_leave_nothing_behind() -> None:
    async def once() -> None:
        async with kit.Proxied(str(upstream)) as proxy:
            await proxy.ask(beat())

    async with kit.broker(kit.echo) as upstream:
        await once()
        gc.collect()
        files, tasks = kit.open_files(), len(asyncio.all_tasks())
        for _ in range(200):
            await once()
        gc.collect()
        await until(lambda: len(asyncio.all_tasks()) <= tasks + 1)
        await until(lambda: kit.open_files() <= files + 4)


@BOTH_LOOPS_SLOW
async def test_a_proxy_can_be_started_again(loop: object) -> None:
    async with kit.broker(kit.echo) as upstream:
        proxy = kit.Proxied(str(upstream))
        for _ in range(3):
            async with proxy:
                await proxy.ask(beat())


async def test_two_proxies_in_one_process_do_not_meet() -> None:
    async with proxied() as one, kit.Proxied(one.bootstrap) as two:
        assert await two.ask(beat()) == pulse()
        for each in (one, two):
            assert each.hub.metrics.requests[kit.HEARTBEAT] == 1


@BOTH_LOOPS_SLOW
async def test_stop_lets_an_answer_come_that_is_on_its_way(loop: object) -> None:
    asked, stopping = asyncio.Event(), asyncio.Event()

    async def slow(link: Link) -> None:
        await link.frame()
        asked.set()
        await stopping.wait()
        link.send(pulse())
        await asyncio.Event().wait()

    async with proxied(slow) as proxy:
        client = await Link.to(proxy.bootstrap)
        client.send(beat())
        await asked.wait()
        stop = asyncio.create_task(proxy.stop(1000))
        await until(lambda: kit.refused(proxy.address))
        assert not stop.done()
        stopping.set()
        await stop  # long before the time that it was given
        assert await client.rest() == pulse()
        client.writer.close()


async def test_stop_does_not_wait_longer_than_its_deadline() -> None:
    async with proxied(kit.swallow) as proxy:
        client = await proxy.client()
        client.send(beat())
        await until(lambda: any(handler.busy for handler in proxy.handlers))
        await proxy.stop(0.3)  # the answer never comes


@BOTH_LOOPS
async def test_upstreams_are_tried_in_order(loop: object) -> None:
    with kit.nobody() as dead:
        async with kit.broker(kit.echo) as up, kit.Proxied(f"{dead},{up}") as proxy:
            assert await proxy.ask(beat())
            assert proxy.hub.metrics.get("upstream_failures_total", str(dead)) == 1


async def test_once_the_cluster_is_known_any_broker_serves() -> None:
    async with kit.broker(kit.echo) as second, contextlib.AsyncExitStack() as stack:
        async with kit.broker(kit.cluster(kit.endpoint(2, *second))) as first:
            proxy = await stack.enter_async_context(kit.Proxied(str(first)))
            told = await proxy.ask(kit.request(kit.METADATA, 12))
            node = decode_response(told[4:], kit.METADATA, 12).body["brokers"][0]
        # The first broker is gone now.
        assert await proxy.ask(beat()) == pulse()
        assert await ask(f"{node['host']}:{node['port']}", beat()) == pulse()


async def test_no_upstream_is_said_once_and_the_client_is_let_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with kit.nobody() as dead:
        async with kit.Proxied(str(dead)) as proxy:
            for _ in range(3):
                assert await (await proxy.client()).rest() == b""
    assert len([r for r in caplog.records if "no broker answers" in r.message]) == 1


@BOTH_LOOPS_SLOW
async def test_both_directions_in_bulk_at_once_do_not_stall(loop: object) -> None:
    total = 32 * MB

    async def rude(link: Link) -> None:
        """Reads little, writes much before it reads on, as no broker would."""
        await link.reader.readexactly(64 * 1024)
        await link.pour(bytes(total))
        await kit.swallow(link)

    async with proxied(rude) as proxy:
        client = await proxy.client()
        client.send(struct.pack(">ihhih", total - 4, 777, 0, 1, -1).ljust(total, b"\0"))
        got = 0
        while got < total:
            got += len(await asyncio.wait_for(client.reader.read(1 << 20), kit.PATIENCE_S))
        await asyncio.wait_for(client.writer.drain(), kit.PATIENCE_S)


@BOTH_LOOPS_SLOW
async def test_every_byte_arrives_before_a_slow_reader(loop: object) -> None:
    """A receive buffer that is used again while a transport still holds it would show here."""
    total = 48 * MB
    wanted = 0

    async def source(link: Link) -> None:
        nonlocal wanted
        await link.frame()
        left = total
        while left:
            block = os.urandom(min(left, 300_000))
            wanted = zlib.crc32(block, wanted)
            left -= len(block)
            await link.pour(block)

    async with proxied(source) as proxy:
        client = await proxy.client()
        client.send(beat())
        crc = got = 0
        while got < total:
            data = await client.reader.read(100_000)
            crc = zlib.crc32(data, crc)
            got += len(data)
            if got % 7 == 0:
                await asyncio.sleep(0.001)
        assert crc == wanted


@contextlib.asynccontextmanager
async def pushed(
    proxy: KafkaProxy, amount: int, frame: bytes, patience_s: float = 1.5
) -> AsyncIterator[int]:
    """Push until nothing more is taken by the proxy: how much that was, while it is connected."""
    sent = 0
    with socket.create_connection(proxy.address) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        with contextlib.suppress(TimeoutError):
            while sent < amount:
                push = asyncio.get_running_loop().sock_sendall(sock, frame)
                await asyncio.wait_for(push, patience_s)
                sent += len(frame)
        yield sent


async def _memory_case(rule: str, amount: int) -> None:
    frame = kit.produce(size=60_000)
    async with proxied(kit.swallow, rule) as proxy:
        async with pushed(proxy, 100_000, frame):
            pass
        before = kit.memory_bytes()
        async with pushed(proxy, amount, frame) as sent:
            grown = kit.memory_bytes() - before
        await proxy.stop(0)
        assert grown < 16 * MB, f"{grown / MB:.1f} MB after {sent / MB:.0f} MB"


RULES = (
    "api == Produce -> delay 60s",
    "api == Produce and topic == orders -> delay 60s",
    "api == Produce -> throttle 100KB/s",
    "api == Produce and topic == orders -> throttle 100KB/s",
    "api == Produce -> hold",
    "api == Produce -> black-hole",
)


@pytest.mark.parametrize("rule", each_nth(RULES, 2))
async def test_a_rule_that_waits_holds_the_socket_not_the_bytes(rule: str) -> None:
    await _memory_case(rule, 64 * MB)


@pytest.mark.soak
@pytest.mark.parametrize("rule", RULES)
@BOTH_LOOPS
async def test_a_gigabyte_against_a_rule_that_waits(loop: object, rule: str) -> None:
    await _memory_case(rule, 1 << 30)


@pytest.mark.soak
@pytest.mark.parametrize("action", ["delay 60s", "throttle 100KB/s", "hold", "black-hole"])
@BOTH_LOOPS
async def test_a_gigabyte_of_answers_against_a_rule_that_waits(loop: object, action: str) -> None:
    """A broker that would send so much, in frames of 1 MB, to a client that takes all of it."""
    sent = 0

    async def generous(link: Link) -> None:
        nonlocal sent
        while True:
            asked = await link.frame()
            link.send(framed(asked[8:12] + bytes(MB - 4)))
            sent += MB
            await link.writer.drain()

    async with proxied(generous, f"api == Fetch -> {action} on response") as proxy:
        client = await proxy.client()
        client.send(*(kit.request(kit.FETCH, 12, correlation_id=n) for n in range(2000)))
        before = kit.memory_bytes()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(4):
                await kit.swallow(client)
        assert kit.memory_bytes() - before < 16 * MB
        assert 0 < sent < 1 << 30
        await proxy.stop(0)


@pytest.mark.soak
async def test_recording_a_gigabyte_takes_no_more_than_its_queues(tmp_path: Path) -> None:
    frame = kit.produce(size=60_000)
    recorder = Recorder(tmp_path / "r.pcapng", rotate_bytes=100 * MB, keep_bytes=300 * MB)
    async with proxied(kit.swallow, recorder=recorder) as proxy:
        async with pushed(proxy, 100 * MB, frame):
            pass
        before = kit.memory_bytes()
        async with pushed(proxy, 1 << 30, frame):
            assert kit.memory_bytes() - before < 64 * MB


@BOTH_LOOPS
async def test_a_client_that_does_not_take_our_answers_is_not_read(loop: object) -> None:
    async with proxied(kit.echo, "api == Produce -> error 6") as proxy:
        before = kit.memory_bytes()
        # An answer repeats the topic: few of them fill all buffers.
        many = kit.produce(size=10, topic="t" * 100_000) * 20
        async with pushed(proxy, 60 * len(many), many, 3) as sent:
            assert sent < 60 * len(many)
            assert kit.memory_bytes() - before < 24 * MB
        await proxy.stop(0)


@BOTH_LOOPS_SLOW
async def test_a_consumer_that_stops_reading_costs_a_buffer_at_most(loop: object) -> None:
    async def generous(link: Link) -> None:
        await link.frame()
        link.send(struct.pack(">ii", 1 << 30, 1))
        await link.pour(*[bytes(MB)] * 1024)

    async with proxied(generous) as proxy:
        before = kit.memory_bytes()
        client, other = await proxy.client(), await proxy.client()
        client.send(kit.request(kit.FETCH, 12))
        await asyncio.sleep(2)
        assert kit.memory_bytes() - before < 16 * MB
        other.send(beat())
        assert len(await asyncio.wait_for(other.reader.readexactly(8), kit.PATIENCE_S)) == 8


class Victims(kit.Always):
    """A rule about one client."""

    def look(self, frame: Any) -> str:
        return "head" if frame.client_id == "victim" else "no"


async def test_a_hung_rule_hangs_its_connection_only() -> None:
    async with proxied(kit.echo, Victims(0, asyncio.sleep(3600))) as proxy:
        hung = await proxy.client()
        hung.send(beat(client_id="victim"))
        assert await proxy.ask(beat()) == pulse()
        await proxy.stop(0.2)


async def test_an_asynchronous_rule_decides_when_it_is_ready() -> None:
    slow = asyncio.sleep(0.05, Respond(pulse(1, 27)[4:]))
    async with proxied(kit.echo, kit.Always(0, slow)) as proxy:
        assert await proxy.ask(beat()) == pulse(1, 27)


@BOTH_LOOPS_SLOW
async def test_half_close_of_a_client_lets_the_answer_through(loop: object) -> None:
    async with proxied() as proxy:
        client = await proxy.client()
        client.send(beat())
        client.end()
        assert await client.rest() == pulse()
        client.writer.close()
        await until(lambda: not proxy.handlers)


@BOTH_LOOPS
async def test_a_reset_of_the_broker_is_a_reset_for_the_client(loop: object) -> None:
    async def rude(link: Link) -> None:
        await link.frame()
        link.linger_no_more()
        link.abort()

    async with proxied(rude) as proxy:
        client = await proxy.client()
        client.send(beat())
        with pytest.raises(ConnectionResetError):
            await client.rest()


@BOTH_LOOPS_SLOW
async def test_a_client_that_leaves_a_black_hole_is_noticed(loop: object) -> None:
    async with proxied(kit.echo, "-> black-hole") as proxy:
        client = await proxy.client()
        client.send(beat())
        await until(lambda: proxy.fault.trigger.fired)
        assert len(proxy.handlers) == 1
        client.writer.close()
        await until(lambda: not proxy.handlers)


async def answer_and_leave(link: Link) -> None:
    await link.frame()
    link.send(pulse())


@pytest.mark.parametrize("action", ["hold", "black-hole"])
async def test_an_answer_that_nobody_waits_for_is_not_kept(action: str) -> None:
    rule = f"api == Heartbeat -> {action} on response"
    async with proxied(answer_and_leave, rule, limits=Limits(gone_check_s=0.02)) as proxy:
        client = await proxy.client()
        client.send(beat())
        await until(lambda: proxy.fault.trigger.fired)
        client.writer.close()
        await until(lambda: not proxy.handlers)
        assert not len(proxy.held)


@pytest.mark.parametrize(
    ("action", "half"),
    [("delay 300ms", False), ("delay 300ms", True), ("throttle 60B/s", True), ("hold", False)],
)
async def test_an_answer_that_waits_is_given_though_its_broker_has_left(
    action: str, half: bool
) -> None:
    rule = f"api == Heartbeat -> {action} on response"
    async with proxied(answer_and_leave, rule, limits=Limits(gone_check_s=0.02)) as proxy:
        client = await proxy.client()
        client.send(beat())
        if action == "hold":
            await until(lambda: len(proxy.held))
            await asyncio.sleep(0.2)
            proxy.held.release_all()
        elif half:
            # Before the proxy has reached the broker it would be taken for a client that left.
            await until(lambda: any(h.kafka and h.kafka.relay for h in proxy.handlers))
            client.end()
        assert await client.rest() == pulse()
        client.writer.close()
        await until(lambda: not proxy.handlers)


async def test_a_client_that_takes_nothing_does_not_outlive_the_proxy() -> None:
    async with kit.broker(lambda key, version, asked: framed(asked[8:12] + bytes(32 * MB))) as up:
        proxy = KafkaProxy(str(up))
        await proxy.start()
        client = await Link.to(proxy.bootstrap)
        client.writer.transport.pause_reading()
        client.send(beat())
        await until(lambda: any(h.busy and h.holds() for h in proxy.handlers))
        streams = [each for handler in proxy.handlers for each in handler.streams]
        await proxy.stop(0.1)
        assert [each is not None and each.lost for each in streams] == [True, True]
        client.abort()
