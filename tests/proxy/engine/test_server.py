"""A whole proxy over loopback sockets: life, peers that misbehave, memory."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from kafkascope.dissectors.registry import decode_response
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.proxy.rules.faults import parse_fault
from tests.kit.proxy import (
    BOTH_LOOPS,
    BOTH_LOOPS_SLOW,
    FETCH,
    HEARTBEAT,
    METADATA,
    PATIENCE_S,
    broker,
    connect,
    echo,
    endpoint,
    nobody,
    produce,
    read_frame,
    refused,
    request,
    response,
    sink,
    until,
)
from tests.kit.wire import framed
from tests.matrix import each_nth

MB = 1 << 20


def memory_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def ask(bootstrap: str, data: bytes) -> bytes:
    reader, writer = await connect(bootstrap)
    writer.write(data)
    answer = await read_frame(reader)
    writer.close()
    return answer


@BOTH_LOOPS
async def test_a_client_gets_the_brokers_answer(loop: object) -> None:
    async with broker(echo) as upstream, KafkaProxy(str(upstream)) as proxy:
        answer = await ask(proxy.bootstrap, request(HEARTBEAT, 4, correlation_id=7))
        assert answer == response(HEARTBEAT, 4, correlation_id=7)


async def test_two_hundred_starts_and_stops_leave_nothing_behind() -> None:
    async def once(upstream: str) -> None:
        async with KafkaProxy(upstream) as proxy:
            await ask(proxy.bootstrap, request(HEARTBEAT, 4))

    async with broker(echo) as upstream:
        await once(str(upstream))
        gc.collect()
        files, tasks = len(list(Path("/proc/self/fd").iterdir())), len(asyncio.all_tasks())
        for _ in range(200):
            await once(str(upstream))
        gc.collect()
        await until(lambda: len(asyncio.all_tasks()) <= tasks + 1)
        await until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= files + 4)


@BOTH_LOOPS_SLOW
async def test_a_proxy_can_be_started_again(loop: object) -> None:
    async with broker(echo) as upstream:
        proxy = KafkaProxy(str(upstream))
        for _ in range(3):
            await proxy.start()
            await ask(proxy.bootstrap, request(HEARTBEAT, 4))
            await proxy.stop()


async def test_two_proxies_in_one_process_do_not_meet() -> None:
    async with (
        broker(echo) as upstream,
        KafkaProxy(str(upstream)) as one,
        KafkaProxy(one.bootstrap) as two,
    ):
        assert await ask(two.bootstrap, request(HEARTBEAT, 4)) == response(HEARTBEAT, 4)
        assert one.hub.metrics.requests[HEARTBEAT] == 1
        assert two.hub.metrics.requests[HEARTBEAT] == 1


@BOTH_LOOPS_SLOW
async def test_stop_lets_an_answer_come_that_is_on_its_way(loop: object) -> None:
    asked, stopping = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frame = await read_frame(reader)
        asked.set()
        await stopping.wait()
        writer.write(echo(HEARTBEAT, 4, frame))
        await asyncio.Event().wait()

    async with sink(slow) as upstream:
        proxy = KafkaProxy(str(upstream))
        await proxy.start()
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        await asked.wait()
        stop = asyncio.create_task(proxy.stop(1000))
        await until(lambda: refused(proxy.address))
        assert not stop.done()
        stopping.set()
        await stop  # long before the time that it was given
        assert await read_frame(reader) == response(HEARTBEAT, 4)
        assert await reader.read() == b""
        writer.close()


async def test_stop_does_not_wait_longer_than_its_deadline() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with sink(silent) as upstream:
        proxy = KafkaProxy(str(upstream))
        await proxy.start()
        _, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        await until(lambda: any(handler.busy for handler in proxy.handlers))
        await proxy.stop(0.3)  # the answer never comes
        writer.close()


@BOTH_LOOPS
async def test_upstreams_are_tried_in_order(loop: object) -> None:
    with nobody() as dead:
        async with broker(echo) as up, KafkaProxy(f"{dead},{up}") as proxy:
            assert await ask(proxy.bootstrap, request(HEARTBEAT, 4))
            assert proxy.hub.metrics.get("upstream_failures_total", str(dead)) == 1


async def test_once_the_cluster_is_known_any_broker_serves() -> None:
    async with broker(echo) as second:

        def metadata(key: int, version: int, asked: bytes) -> bytes:
            return response(METADATA, 12, {"brokers": [endpoint(2, *second)]})

        async with broker(metadata) as first:
            proxy = KafkaProxy(str(first))
            await proxy.start()
            told = decode_response((await ask(proxy.bootstrap, request(METADATA, 12)))[4:], 3, 12)
            node = told.body["brokers"][0]
        # The first broker is gone now.
        assert await ask(proxy.bootstrap, request(HEARTBEAT, 4)) == response(HEARTBEAT, 4)
        by_node = f"{node['host']}:{node['port']}"
        assert await ask(by_node, request(HEARTBEAT, 4)) == response(HEARTBEAT, 4)
        await proxy.stop()


async def test_no_upstream_is_said_once_and_the_client_is_let_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with nobody() as dead:
        async with KafkaProxy(str(dead)) as proxy:
            for _ in range(3):
                reader, writer = await connect(proxy.bootstrap)
                assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
                writer.close()
    assert len([r for r in caplog.records if "no broker answers" in r.message]) == 1


@BOTH_LOOPS_SLOW
async def test_both_directions_in_bulk_at_once_do_not_stall(loop: object) -> None:
    total = 32 * MB

    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads little, writes much before it reads on, as no broker would."""
        await reader.readexactly(64 * 1024)
        writer.write(bytes(total))
        await writer.drain()
        while await reader.read(1 << 20):
            pass

    async with sink(rude) as upstream, KafkaProxy(str(upstream)) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        frame = struct.pack(">ihhih", total - 4, 777, 0, 1, -1)
        writer.write(frame + bytes(total - len(frame)))

        got = 0
        while got < total:
            got += len(await asyncio.wait_for(reader.read(1 << 20), PATIENCE_S))
        await asyncio.wait_for(writer.drain(), PATIENCE_S)
        writer.close()


@BOTH_LOOPS_SLOW
async def test_every_byte_arrives_before_a_slow_reader(loop: object) -> None:
    """A receive buffer that is used again while a transport still holds it would show here."""
    import zlib

    total = 48 * MB

    wanted = 0

    async def source(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal wanted
        await read_frame(reader)
        left = total
        while left:
            block = os.urandom(min(left, 300_000))
            wanted = zlib.crc32(block, wanted)
            writer.write(block)
            left -= len(block)
            await writer.drain()

    async with sink(source) as upstream, KafkaProxy(str(upstream)) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        crc = got = 0
        while got < total:
            data = await reader.read(100_000)
            crc = zlib.crc32(data, crc)
            got += len(data)
            if got % 7 == 0:
                await asyncio.sleep(0.001)
        assert crc == wanted
        writer.close()


async def push(bootstrap: str, amount: int) -> tuple[int, asyncio.StreamWriter]:
    """Push until nothing more is taken; how much that was."""
    host, _, port = bootstrap.rpartition(":")
    loop = asyncio.get_running_loop()
    sock = socket.create_connection((host, int(port)))
    sock.setblocking(False)
    frame = produce(size=60_000)
    sent = 0
    try:
        while sent < amount:
            await asyncio.wait_for(loop.sock_sendall(sock, frame), 1.5)
            sent += len(frame)
    except TimeoutError:
        pass
    _, writer = await asyncio.open_connection(sock=sock)
    return sent, writer


async def _memory_case(rule: str, amount: int) -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1 << 20):
            pass

    rules = [parse_fault(rule)]
    async with sink(swallow) as up, KafkaProxy(str(up), rules=rules) as proxy:
        _, warm = await push(proxy.bootstrap, 100_000)
        warm.close()
        before = memory_bytes()
        sent, writer = await push(proxy.bootstrap, amount)
        grown = memory_bytes() - before
        writer.close()
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


ANSWERS = (
    "api == Fetch -> delay 60s on response",
    "api == Fetch -> throttle 100KB/s on response",
    "api == Fetch -> hold on response",
    "api == Fetch -> black-hole on response",
)


async def _memory_of_answers(rule: str, amount: int) -> None:
    """A broker that would send so much, in frames of 1 MB, to a client that takes all of it."""

    sent = 0

    async def generous(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            asked = await read_frame(reader, 60)
            writer.write(struct.pack(">i", MB) + asked[8:12] + bytes(MB - 4))
            sent += MB
            await writer.drain()

    rules = [parse_fault(rule)]
    async with sink(generous) as up, KafkaProxy(str(up), rules=rules) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(b"".join(request(FETCH, 12, correlation_id=n) for n in range(2000)))
        before = memory_bytes()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(4):
                while await reader.read(1 << 20):
                    pass
        assert memory_bytes() - before < 16 * MB
        assert 0 < sent < amount
        writer.close()
        await proxy.stop(0)


@pytest.mark.soak
@pytest.mark.parametrize("rule", ANSWERS)
@BOTH_LOOPS
async def test_a_gigabyte_of_answers_against_a_rule_that_waits(loop: object, rule: str) -> None:
    await _memory_of_answers(rule, 1 << 30)


@pytest.mark.soak
async def test_recording_a_gigabyte_takes_no_more_than_its_queues(tmp_path: Path) -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1 << 20):
            pass

    recorder = Recorder(tmp_path / "r.pcapng", rotate_bytes=100 * MB, keep_bytes=300 * MB)
    async with sink(swallow) as up, KafkaProxy(str(up), recorder=recorder) as proxy:
        _, warm = await push(proxy.bootstrap, 100 * MB)
        warm.close()
        before = memory_bytes()
        _, writer = await push(proxy.bootstrap, 1 << 30)
        writer.close()
        assert memory_bytes() - before < 64 * MB


@BOTH_LOOPS
async def test_a_client_that_does_not_take_our_answers_is_not_read(loop: object) -> None:

    rules = [parse_fault("api == Produce -> error 6")]
    async with broker(echo) as up, KafkaProxy(str(up), rules=rules) as proxy:
        host, _, port = proxy.bootstrap.rpartition(":")
        sock = socket.create_connection((host, int(port)))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        before = memory_bytes()
        # An answer repeats the topic: few of them fill all buffers.
        many = produce(size=10, topic="t" * 100_000) * 20
        stopped = False
        for _ in range(60):
            try:
                await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(sock, many), 3)
            except TimeoutError:
                stopped = True
                break
        assert stopped
        assert memory_bytes() - before < 24 * MB
        sock.close()
        await proxy.stop(0)


@BOTH_LOOPS_SLOW
async def test_a_consumer_that_stops_reading_costs_a_buffer_at_most(loop: object) -> None:
    async def generous(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        writer.write(struct.pack(">ii", 1 << 30, 1))
        while True:
            writer.write(bytes(1 << 20))
            await writer.drain()

    async with sink(generous) as upstream, KafkaProxy(str(upstream)) as proxy:
        before = memory_bytes()
        _, writer = await connect(proxy.bootstrap)
        writer.write(request(FETCH, 12))
        await asyncio.sleep(2)
        assert memory_bytes() - before < 16 * MB
        other = await connect(proxy.bootstrap)
        other[1].write(request(HEARTBEAT, 4))
        assert len(await asyncio.wait_for(other[0].readexactly(8), PATIENCE_S)) == 8
        writer.close()
        other[1].close()


async def test_a_hung_rule_hangs_its_connection_only() -> None:
    class Hung:
        name, side = "hung", 0

        def look(self, frame: Any) -> str:
            return "head" if frame.client_id == "victim" else "no"

        async def judge(self, frame: Any) -> None:
            await asyncio.sleep(3600)

    async with broker(echo) as upstream, KafkaProxy(str(upstream), rules=[Hung()]) as proxy:  # type: ignore[list-item]
        _, hung = await connect(proxy.bootstrap)
        hung.write(request(HEARTBEAT, 4, client_id="victim"))
        assert await ask(proxy.bootstrap, request(HEARTBEAT, 4)) == response(HEARTBEAT, 4)
        hung.close()
        await proxy.stop(0.2)


async def test_an_asynchronous_rule_decides_when_it_is_ready() -> None:
    from kafkascope.proxy.rules.verdicts import Respond

    class Slow:
        name, side = "slow", 0

        def look(self, frame: Any) -> str:
            return "whole"

        async def judge(self, frame: Any) -> Any:
            await asyncio.sleep(0.05)
            return Respond(response(HEARTBEAT, 4, {"error_code": 27})[4:])

    async with broker(echo) as upstream, KafkaProxy(str(upstream), rules=[Slow()]) as proxy:  # type: ignore[list-item]
        answer = await ask(proxy.bootstrap, request(HEARTBEAT, 4))
        assert answer == response(HEARTBEAT, 4, {"error_code": 27})


async def test_a_slow_drip_of_bytes_is_served() -> None:
    async with broker(echo) as upstream, KafkaProxy(str(upstream)) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        for byte in request(HEARTBEAT, 4):
            writer.write(bytes((byte,)))
            await asyncio.sleep(0.001)
        assert await read_frame(reader) == response(HEARTBEAT, 4)
        writer.close()


async def test_a_flood_of_connections_leaves_the_others_alone() -> None:
    async with broker(echo) as upstream, KafkaProxy(str(upstream)) as proxy:
        before = memory_bytes()
        flood = [await connect(proxy.bootstrap) for _ in range(200)]
        for index, (_, writer) in enumerate(flood):
            if index % 2:
                writer.write(os.urandom(20))
            if index % 3 == 0:
                writer.transport.abort()
        assert await ask(proxy.bootstrap, request(HEARTBEAT, 4)) == response(HEARTBEAT, 4)
        assert memory_bytes() - before < 64 * MB
        for _, writer in flood:
            writer.close()


@BOTH_LOOPS_SLOW
async def test_half_close_of_a_client_lets_the_answer_through(loop: object) -> None:
    async with broker(echo) as upstream, KafkaProxy(str(upstream)) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        writer.write_eof()
        assert await read_frame(reader) == response(HEARTBEAT, 4)
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        writer.close()
        await until(lambda: not proxy.handlers)


@BOTH_LOOPS
async def test_a_reset_of_the_broker_is_a_reset_for_the_client(loop: object) -> None:
    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with sink(rude) as upstream, KafkaProxy(str(upstream)) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()


@BOTH_LOOPS_SLOW
async def test_a_client_that_leaves_a_black_hole_is_noticed(loop: object) -> None:
    rules = [parse_fault("-> black-hole")]
    async with broker(echo) as upstream, KafkaProxy(str(upstream), rules=rules) as proxy:
        _, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        await until(lambda: rules[0].trigger.fired)
        assert len(proxy.handlers) == 1
        writer.close()
        await until(lambda: not proxy.handlers)


async def test_held_frames_can_be_listed_edited_and_released() -> None:
    asked: list[bytes] = []

    def note(key: int, version: int, frame: bytes) -> bytes:
        asked.append(frame)
        return echo(key, version, frame)

    rules = [parse_fault("api == Heartbeat -> hold")]
    async with broker(note) as upstream, KafkaProxy(str(upstream), rules=rules) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4, {"group_id": "one"}))
        await until(lambda: len(proxy.held))
        (held,) = proxy.held.list()
        assert (held["api"], held["kind"]) == ("Heartbeat", "request")
        body = proxy.held.body(held["number"])
        assert body is not None
        proxy.held.edit(held["number"], body | {"group_id": "another, longer one"})
        await read_frame(reader)
        assert asked == [request(HEARTBEAT, 4, {"group_id": "another, longer one"})]
        assert len(proxy.held) == 0
        writer.close()


async def test_metrics_count_what_passed() -> None:
    async with broker(echo) as upstream, KafkaProxy(str(upstream)) as proxy:
        await ask(proxy.bootstrap, request(HEARTBEAT, 4))
        text = proxy.hub.metrics.text()
        assert 'kafkascope_requests_total{api="Heartbeat"} 1' in text
        assert 'kafkascope_latency_seconds_count{api="Heartbeat"} 1' in text


async def answer_and_leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(echo(HEARTBEAT, 4, await read_frame(reader)))


@pytest.mark.parametrize("action", ["hold", "black-hole"])
async def test_an_answer_that_nobody_waits_for_is_not_kept(action: str) -> None:
    rule = parse_fault(f"api == Heartbeat -> {action} on response")
    async with (
        sink(answer_and_leave) as up,
        KafkaProxy(str(up), rules=[rule], limits=Limits(gone_check_s=0.02)) as made,
    ):
        _, writer = await connect(made.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        await until(lambda: rule.trigger.fired)
        writer.close()
        await until(lambda: not made.handlers)
        assert not len(made.held)


@pytest.mark.parametrize(
    ("action", "half"),
    [("delay 300ms", False), ("delay 300ms", True), ("throttle 60B/s", True), ("hold", False)],
)
async def test_an_answer_that_waits_is_given_though_its_broker_has_left(
    action: str, half: bool
) -> None:
    rule = parse_fault(f"api == Heartbeat -> {action} on response")
    async with (
        sink(answer_and_leave) as up,
        KafkaProxy(str(up), rules=[rule], limits=Limits(gone_check_s=0.02)) as made,
    ):
        reader, writer = await connect(made.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        if action == "hold":
            await until(lambda: len(made.held))
            await asyncio.sleep(0.2)
            made.held.release_all()
        elif half:
            # Before the proxy has reached the broker it would be taken for a client that left.
            await until(lambda: any(h.kafka and h.kafka.relay for h in made.handlers))
            writer.write_eof()
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == response(HEARTBEAT, 4)
        writer.close()
        await until(lambda: not made.handlers)


async def test_a_client_that_takes_nothing_does_not_outlive_the_proxy() -> None:
    def large(key: int, version: int, asked: bytes) -> bytes:
        return framed(asked[8:12] + bytes(32 * MB))

    async with broker(large) as up:
        proxy = KafkaProxy(str(up))
        await proxy.start()
        _, writer = await connect(proxy.bootstrap)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(request(HEARTBEAT, 4))
        await until(lambda: any(h.busy and h.holds() for h in proxy.handlers))
        streams = [each for handler in proxy.handlers for each in handler.streams]
        await proxy.stop(0.1)
        assert [each is not None and each.lost for each in streams] == [True, True]
        writer.transport.abort()
