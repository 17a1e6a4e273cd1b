"""All connections together keep no more than they may; who has to wait gets a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.proxy.engine.memory import LEAST, PATIENCE, QUIET, Memory
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.rules.faults import parse_fault
from tests.kit.proxy import (
    HEARTBEAT,
    broker,
    connect,
    echo,
    leave,
    produce,
    read_frame,
    request,
    until,
    works,
)

MB = 1024 * 1024
LIMIT = 16 * MB


class Client:
    """A connection that is sent a frame of `size` bytes."""

    def __init__(self, size: int, *, stuck: bool = False) -> None:
        self.size = size
        self.stuck = stuck
        self.got = 0
        self.waits = False
        self.was_cut = False

    def holds(self) -> int:
        return 0 if self.got >= self.size or self.was_cut else self.got

    def grows(self) -> bool:
        return not self.ended and self.got > 0

    def wait(self, on: bool) -> None:
        self.waits = on

    def cut(self, holds: int) -> None:
        assert holds
        self.was_cut = True

    @property
    def ended(self) -> bool:
        return self.got >= self.size or self.was_cut


def through(clients: list[Client], limit: int, read: int = 256 * 1024) -> Memory:
    """Feed them all until nothing more happens."""
    again = 0

    def wanted() -> None:
        nonlocal again
        again += 1

    def there() -> Iterable[Client]:
        return [each for each in clients if not each.ended]

    memory = Memory(there, wanted, limit)
    for _ in range(20 * len(clients) * PATIENCE):
        moved = False
        for each in clients:
            if not (each.ended or each.waits) and not (each.stuck and each.got >= each.size // 2):
                each.got += min(read, each.size - each.got)
                moved = True
                memory.grew(read)
                assert sum(each.holds() for each in clients) <= limit + limit // 64 + read
        if not moved and not again:
            break
        again = 0
        memory.look()
    return memory


@given(st.lists(st.integers(1, 8 * MB), min_size=1, max_size=30))
def test_every_frame_gets_through_when_the_largest_ones_fit(sizes: list[int]) -> None:
    clients = [Client(size) for size in sizes]
    # A quarter for those who wait, the rest for the one that goes on, and a read for each.
    memory = through(clients, 16 * MB + len(sizes) * MB)
    assert all(each.got == each.size for each in clients)
    assert memory.cuts == 0


def test_who_stands_still_does_not_keep_the_others_from_their_turn() -> None:
    clients = [Client(8 * MB, stuck=True), *(Client(6 * MB) for _ in range(5))]
    memory = through(clients, 24 * MB)
    assert [each.got == each.size for each in clients] == [False] + [True] * 5
    assert memory.cuts == 0


def test_at_the_bound_the_largest_go() -> None:
    clients = [Client(size * MB, stuck=True) for size in (1, 2, 30, 2, 20)]
    memory = through(clients, 12 * MB)
    assert sum(each.holds() for each in clients) <= 12 * MB
    assert memory.cuts
    assert not any(clients[index].was_cut for index in (0, 1, 3))


def test_the_small_ones_never_wait() -> None:
    small = Client(LEAST, stuck=True)
    through([small, *(Client(4 * MB, stuck=True) for _ in range(9))], 4 * MB)
    assert not small.waits
    assert small.got


async def test_frames_of_many_clients_are_kept_one_after_the_other() -> None:
    count, size = 12, 3 * MB

    async def one(proxy: KafkaProxy) -> None:
        reader, writer = await connect(proxy.bootstrap)
        frame = produce(size=size)
        # All of them have sent half before one has sent all.
        writer.write(frame[: size // 2])
        await writer.drain()
        await asyncio.sleep(0.2)
        writer.write(frame[size // 2 :])
        await read_frame(reader)
        await leave(writer)

    async with broker(echo) as up, KafkaProxy(str(up), buffer_bytes=LIMIT) as proxy:
        proxy.rules.add(parse_fault("topic == other -> drop"))  # looks into each
        tasks = [asyncio.create_task(one(proxy)) for _ in range(count)]
        await works(proxy)
        await asyncio.gather(*tasks)
        assert proxy.memory.peak > LIMIT // QUIET
        assert proxy.memory.cuts == 0
        assert proxy.hub.metrics.get("errors_total") == 0


async def test_frames_that_are_held_end_at_the_bound() -> None:
    limits = Limits(memory_look_s=0.01)

    async with broker(echo) as up, KafkaProxy(str(up), buffer_bytes=LIMIT, limits=limits) as proxy:
        proxy.rules.add(parse_fault("topic == orders -> hold"))
        peers = [await connect(proxy.bootstrap) for _ in range(10)]
        small, small_writer = await connect(proxy.bootstrap)
        for _, writer in peers:
            writer.write(produce(size=2 * MB))
        await until(lambda: proxy.memory.cuts > 0 and len(proxy.handlers) <= 5)
        assert 1 <= len(proxy.held) <= 4
        assert proxy.hub.metrics.counters["connections_closed_total"]["memory"]
        assert any("--buffer" in text for _, text in proxy.hub.notices)
        small_writer.write(request(HEARTBEAT, 4))
        await read_frame(small)
        await leave(small_writer, *(writer for _, writer in peers))
        await until(lambda: not proxy.handlers)
        await works(proxy)
