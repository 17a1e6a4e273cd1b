"""Hundreds of connections: memory and descriptors are bounded, and one too many is told so."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkascope.proxy.engine import descriptors
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.engine.stream import KEEP_ALIVE, READ_BYTES, SCARCE_BYTES, Arena
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.proxy.rules.faults import parse_fault
from tests.kit.proxy import (
    FETCH,
    HEARTBEAT,
    PATIENCE_S,
    broker,
    connect,
    echo,
    fetched,
    leave,
    memory_bytes,
    nobody,
    produce,
    read_frame,
    request,
    response,
    run,
    until,
    works,
)

MB = 1024 * 1024


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def files() -> Iterator[None]:
    """As many open files as the system lets us have; each connection here takes four."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= before[1] < 6000:
        pytest.skip(f"needs 6000 open files, {before[1]} are allowed")
    descriptors.raise_limit()
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("files", "allowed"), [(80, 24), (256, 112), (1024, 448), (20_000, 9872), (0, 0), (3, 1)]
)
def test_some_files_are_left_for_other_things(
    monkeypatch: pytest.MonkeyPatch, files: int, allowed: int
) -> None:
    monkeypatch.setattr(descriptors, "limit", lambda: files)
    assert descriptors.connections() == allowed


@pytest.mark.parametrize("loop", ["uvloop", pytest.param("asyncio", marks=pytest.mark.soak)])
def test_one_connection_too_many_is_told_and_others_may_come_when_some_are_gone(
    tmp_path: Path, loop: str
) -> None:
    ready = tmp_path / "ready"
    lines = ["import resource, sys", "resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))"]
    if loop == "asyncio":
        lines.append("sys.modules['uvloop'] = None")
    code = "\n".join([*lines, "from kafkascope.proxy.cli import proxy", "proxy.main()"])
    options = ["--listen", "127.0.0.1:0", "-q", "--control", "none", "--ready-file", str(ready)]

    async def ask(bootstrap: str) -> asyncio.StreamWriter | None:
        reader, writer = await connect(bootstrap)
        try:
            writer.write(request(HEARTBEAT, 4))
            assert await read_frame(reader) == response(HEARTBEAT, 4)
        except (ConnectionError, asyncio.IncompleteReadError):
            await leave(writer)
            return None
        return writer

    async def main() -> str:
        async with broker(echo) as up:
            process = subprocess.Popen(
                [sys.executable, "-c", code, "--upstream", str(up), *options],
                stderr=subprocess.PIPE,
            )
            try:
                await until(lambda: ready.exists() and ready.read_text())
                bootstrap = ready.read_text().strip()
                first, writer = await connect(bootstrap)
                served = [await ask(bootstrap) for _ in range(40)]
                assert [each is not None for each in served] == [True] * 23 + [False] * 17
                # Who was there before is served on.
                writer.write(request(HEARTBEAT, 4))
                await read_frame(first)
                await leave(*(each for each in served if each is not None))
                async with asyncio.timeout(PATIENCE_S):
                    while (again := await ask(bootstrap)) is None:
                        await asyncio.sleep(0.05)
                await leave(writer, again)
                process.terminate()
                return (await asyncio.to_thread(process.communicate, None, PATIENCE_S))[1].decode()
            finally:
                process.kill()
                process.wait()

    said = run(main())
    assert said.count("24 connections are open, more are refused until some end") == 1
    assert "80 files open (ulimit -n)" in said
    assert "Traceback" not in said


async def test_a_peer_that_is_gone_without_a_word_is_asked_for() -> None:
    async with broker(echo) as up, KafkaProxy(str(up)) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        await read_frame(reader)
        (handler,) = proxy.handlers
        for stream in handler.streams:
            assert stream is not None
            sock = stream.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            for name, value in KEEP_ALIVE:
                if hasattr(socket, name):
                    option = getattr(socket, name)
                    assert sock.getsockopt(socket.IPPROTO_TCP, option) == value
        await leave(writer)


def test_reads_are_small_while_all_slabs_are_in_use() -> None:
    arena = Arena()
    leases = []
    while not arena.scarce:
        lease = arena.keep(arena.view)
        assert lease is not None
        leases.append(lease)
        arena.advance(len(arena.view))
    assert arena.keep(arena.view) is None
    assert len({id(each.memory) for each in leases}) <= LIMITS.arena_slabs
    leases.pop(0)
    leases.pop(0)
    assert not arena.scarce


async def test_consumers_that_take_nothing_cost_little_each() -> None:
    count, many = 40, 8
    answer = fetched(12, [], records=4 * MB)

    async with (
        broker(lambda key, *_: answer if key == FETCH else response(HEARTBEAT, 4)) as up,
        KafkaProxy(str(up), limits=Limits(unsent_streams=many)) as proxy,
    ):
        peers = []
        for _ in range(count):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setblocking(False)
            host, _, port = proxy.bootstrap.rpartition(":")
            await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
            sock.send(request(FETCH, 12))  # and never reads
            peers.append(sock)

        def stuck() -> int:
            return sum(bool(h.streams[0] and h.streams[0].unsent) for h in proxy.handlers)

        await until(lambda: stuck() == count)
        kept = sum(handler.holds() for handler in proxy.handlers)
        assert kept <= (many + 1) * READ_BYTES + count * SCARCE_BYTES
        await works(proxy)
        for sock in peers:
            sock.close()
        await until(lambda: not proxy.handlers)
        assert proxy.arena.piles == 0


async def storm(proxy: KafkaProxy, count: int) -> None:
    """Clients that come, ask and leave, some of them rudely, some before they have asked."""

    async def one(number: int) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await connect(proxy.bootstrap)
            try:
                if number % 4:
                    writer.write(request(HEARTBEAT, 4))
                if number % 4 > 1:
                    await read_frame(reader)
            finally:
                if number % 2:
                    writer.transport.abort()
                else:
                    await leave(writer)

    for at in range(0, count, 50):
        await asyncio.gather(*(one(number) for number in range(at, min(count, at + 50))))


@pytest.mark.parametrize(
    "count", [pytest.param(300, id="few"), pytest.param(2000, marks=pytest.mark.soak, id="many")]
)
async def test_a_storm_of_connections_leaves_nothing_behind(count: int, files: None) -> None:
    async with broker(echo) as up, KafkaProxy(str(up)) as proxy:
        await storm(proxy, count)  # what is made once is made
        await until(lambda: not proxy.handlers)
        await asyncio.sleep(0.1)
        opened, before = open_files(), memory_bytes()
        await storm(proxy, count)
        await until(lambda: not proxy.handlers)
        await until(lambda: open_files() <= opened + 2)
        assert memory_bytes() - before < 8 * MB
        await works(proxy)


async def test_a_broker_that_is_away_costs_no_descriptors(files: None) -> None:
    with nobody() as away:
        async with KafkaProxy(str(away)) as proxy:
            await storm(proxy, 50)
            await until(lambda: not proxy.handlers)
            opened = open_files()
            await storm(proxy, 200)
            await until(lambda: not proxy.handlers)
            await until(lambda: open_files() <= opened + 2)
            assert proxy.hub.metrics.get("errors_total") == 0


@pytest.mark.soak
@pytest.mark.parametrize("how", ["plain", "recording", "looking into each"])
async def test_five_hundred_idle_and_fifty_busy(tmp_path: Path, files: None, how: str) -> None:
    idle, busy, rounds, size = 500, 50, 20, 300_000

    recorder = Recorder(tmp_path / "s.pcapng") if how == "recording" else None
    async with broker(echo) as up, KafkaProxy(str(up), recorder=recorder) as proxy:
        if how == "looking into each":
            proxy.rules.add(parse_fault("topic == other -> drop"))
        await works(proxy)
        opened, before = open_files(), memory_bytes()
        waiting = []
        for number in range(idle):
            reader, writer = await connect(proxy.bootstrap)
            waiting.append((reader, writer))
            if number % 2:
                writer.write(request(HEARTBEAT, 4))
                await read_frame(reader)

        async def one() -> None:
            reader, writer = await connect(proxy.bootstrap)
            for number in range(rounds):
                writer.write(produce(size=size, correlation_id=number))
                await read_frame(reader, 60)
            await leave(writer)

        async with asyncio.timeout(120):
            await asyncio.gather(*(one() for _ in range(busy)))
        # Client and broker of the test are in the same process, with 64 KB and more for each.
        assert memory_bytes() - before < 160 * MB
        # An idle one is served at once.
        reader, writer = waiting[-1]
        writer.write(request(HEARTBEAT, 4))
        await read_frame(reader)
        await leave(*(writer for _, writer in waiting))
        await until(lambda: not proxy.handlers)
        await until(lambda: open_files() <= opened + 4)
        assert proxy.memory.cuts == 0
        assert proxy.hub.metrics.get("errors_total") == 0


@pytest.mark.soak
async def test_frames_of_a_hundred_megabytes_from_many_at_once(files: None) -> None:
    limit = 512 * MB
    size = 99 * MB
    frame = produce(size=size)

    async with broker(echo) as up, KafkaProxy(str(up), buffer_bytes=limit) as proxy:
        proxy.rules.add(parse_fault("topic == other -> drop"))

        async def one() -> None:
            reader, writer = await connect(proxy.bootstrap)
            for at in range(0, len(frame), MB):
                writer.write(frame[at : at + MB])
                await writer.drain()
            await read_frame(reader, 200)
            await leave(writer)

        tasks = [asyncio.create_task(one()) for _ in range(8)]
        await works(proxy)
        await asyncio.gather(*tasks)
        assert proxy.memory.peak <= limit + MB
        assert proxy.memory.cuts == 0
