"""Hundreds of connections: memory and descriptors are bounded, and one too many is told so."""

import asyncio
import contextlib
import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkascope.proxy.engine import descriptors
from kafkascope.proxy.engine.stream import KEEP_ALIVE, READ_BYTES, SCARCE_BYTES, Arena
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.recording.recorder import Recorder
from tests.kit import proxy as kit
from tests.kit.proxy import MB, Link, beat, memory_bytes, open_files, proxied, pulse, until, works


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
    lines = ["import resource, sys", "resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))"]
    if loop == "asyncio":
        lines.append("sys.modules['uvloop'] = None")
    code = "\n".join([*lines, "from kafkascope.proxy.cli import proxy", "proxy.main()"])

    async def served(bootstrap: str) -> Link | None:
        client = await Link.to(bootstrap)
        try:
            assert await client.ask(beat()) == pulse()
        except (ConnectionError, asyncio.IncompleteReadError):
            await client.leave()
            return None
        return client

    async def main() -> str:
        async with kit.broker(kit.echo) as up:
            words = ("--upstream", up, "-q", "--control", "none")
            async with kit.started(tmp_path, *words, program=(sys.executable, "-c", code)) as child:
                first = await Link.to(child.bootstrap)
                clients = [await served(child.bootstrap) for _ in range(40)]
                assert [each is not None for each in clients] == [True] * 23 + [False] * 17
                await first.ask(beat())  # who was there before is served on
                await kit.leave(*(each.writer for each in clients if each is not None))
                async with asyncio.timeout(kit.PATIENCE_S):
                    while (again := await served(child.bootstrap)) is None:
                        await asyncio.sleep(0.05)
                await kit.leave(first.writer, again.writer)
                child.process.terminate()
                return (await child.process.communicate())[1].decode()

    said = kit.run(main())
    assert said.count("24 connections are open, more are refused until some end") == 1
    assert "80 files open (ulimit -n)" in said
    assert "Traceback" not in said


async def test_a_peer_that_is_gone_without_a_word_is_asked_for() -> None:
    async with proxied() as proxy:
        client = await proxy.client()
        await client.ask(beat())
        (handler,) = proxy.handlers
        for stream in handler.streams:
            sock = stream.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            for name, value in KEEP_ALIVE:
                if hasattr(socket, name):
                    option = getattr(socket, name)
                    assert sock.getsockopt(socket.IPPROTO_TCP, option) == value


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
    leases.clear()
    del lease
    assert arena.keep(arena.view) is not None


async def test_consumers_that_take_nothing_cost_little_each() -> None:
    count, many = 40, 8
    answers = {kit.FETCH: kit.fetched(12, records=4 * MB), kit.HEARTBEAT: pulse()}
    limits = Limits(unsent_streams=many)
    async with proxied(lambda key, *_: answers[key], limits=limits) as proxy:
        peers = []
        for _ in range(count):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, proxy.address)
            sock.send(kit.request(kit.FETCH, 12))  # and never reads
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


async def storm(proxy: kit.Proxied, count: int) -> None:
    """Clients that come, ask and leave, some of them rudely, some before they have asked."""

    async def one(number: int) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            client = await Link.to(proxy.bootstrap)
            try:
                if number % 4:
                    client.send(beat())
                if number % 4 > 1:
                    await client.frame()
            finally:
                if number % 2:
                    client.abort()
                else:
                    await client.leave()

    for at in range(0, count, 50):
        await asyncio.gather(*(one(number) for number in range(at, min(count, at + 50))))
    await until(lambda: not proxy.handlers)


@pytest.mark.parametrize(
    "count", [pytest.param(300, id="few"), pytest.param(2000, marks=pytest.mark.soak, id="many")]
)
async def test_a_storm_of_connections_leaves_nothing_behind(count: int, files: None) -> None:
    async with proxied() as proxy:
        await storm(proxy, count)  # what is made once is made
        await asyncio.sleep(0.1)
        opened, before = open_files(), memory_bytes()
        await storm(proxy, count)
        await until(lambda: open_files() <= opened + 2)
        assert memory_bytes() - before < 8 * MB
        await works(proxy)


async def test_a_broker_that_is_away_costs_no_descriptors(files: None) -> None:
    with kit.nobody() as away:
        async with kit.Proxied(str(away)) as proxy:
            await storm(proxy, 50)
            opened = open_files()
            await storm(proxy, 200)
            await until(lambda: open_files() <= opened + 2)
            assert proxy.hub.metrics.get("errors_total") == 0


@pytest.mark.soak
@pytest.mark.parametrize("how", ["plain", "recording", "looking into each"])
async def test_five_hundred_idle_and_fifty_busy(tmp_path: Path, files: None, how: str) -> None:
    idle, busy, rounds, size = 500, 50, 20, 300_000

    recorder = Recorder(tmp_path / "s.pcapng") if how == "recording" else None
    rules = ["topic == other -> drop"] if how == "looking into each" else []
    async with proxied(kit.echo, *rules, recorder=recorder) as proxy:
        await works(proxy)
        opened, before = open_files(), memory_bytes()
        waiting = [await proxy.client() for _ in range(idle)]
        for client in waiting[1::2]:
            await client.ask(beat())
        frames = [kit.produce(size=size, correlation_id=number) for number in range(rounds)]
        async with asyncio.timeout(120):
            await asyncio.gather(*(proxy.ask(*frames) for _ in range(busy)))
        # Client and broker of the test are in the same process, with 64 KB and more for each.
        assert memory_bytes() - before < 160 * MB
        await waiting[-1].ask(beat())  # an idle one is served at once
        await kit.leave(*(client.writer for client in waiting))
        await until(lambda: not proxy.handlers)
        await until(lambda: open_files() <= opened + 4)
        assert proxy.memory.cuts == 0
        assert proxy.hub.metrics.get("errors_total") == 0


@pytest.mark.soak
async def test_frames_of_a_hundred_megabytes_from_many_at_once(files: None) -> None:
    limit = 512 * MB
    frame = kit.produce(size=99 * MB)

    async with proxied(kit.echo, "topic == other -> drop", buffer_bytes=limit) as proxy:

        async def one() -> None:
            client = await proxy.client()
            for at in range(0, len(frame), MB):
                await client.pour(frame[at : at + MB])
            await client.frame(200)
            await client.leave()

        tasks = [asyncio.create_task(one()) for _ in range(8)]
        await works(proxy)
        await asyncio.gather(*tasks)
        assert proxy.memory.peak <= limit + MB
        assert proxy.memory.cuts == 0
