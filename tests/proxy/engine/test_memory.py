"""All connections together keep no more than they may; who has to wait gets a turn."""

import asyncio
import socket
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.proxy.engine.memory import LEAST, PATIENCE, QUIET, Memory
from kafkascope.proxy.engine.stream import LAYER, READ_BYTES, Arena, Stream
from kafkascope.proxy.limits import Limits
from tests.kit import proxy as kit
from tests.kit.proxy import MB

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
    frame = kit.produce(size=3 * MB)
    half = len(frame) // 2

    async def one() -> None:
        client = await proxy.client()
        # All of them have sent half before one has sent all.
        await client.pour(frame[:half])
        await asyncio.sleep(0.2)
        await client.ask(frame[half:])
        await client.leave()

    # Looks into each.
    async with kit.proxied(kit.echo, "topic == other -> drop", buffer_bytes=LIMIT) as proxy:
        tasks = [asyncio.create_task(one()) for _ in range(12)]
        await kit.works(proxy)
        await asyncio.gather(*tasks)
        assert proxy.memory.peak > LIMIT // QUIET
        assert proxy.memory.cuts == 0
        assert proxy.hub.metrics.get("errors_total") == 0


async def test_frames_that_are_held_end_at_the_bound() -> None:
    rule, options = "topic == orders -> hold", {"limits": Limits(memory_look_s=0.01)}
    async with kit.proxied(kit.echo, rule, buffer_bytes=LIMIT, **options) as proxy:
        small, *peers = [await proxy.client() for _ in range(11)]
        for peer in peers:
            peer.send(kit.produce(size=2 * MB))
        await kit.until(lambda: proxy.memory.cuts > 0 and len(proxy.handlers) <= 5)
        assert 1 <= len(proxy.held) <= 4
        assert proxy.hub.metrics.counters["connections_closed_total"]["memory"]
        assert any("--buffer" in text for text in proxy.said())
        await small.ask(kit.beat())
        await kit.leave(*(each.writer for each in (small, *peers)))
        await kit.until(lambda: not proxy.handlers)
        await kit.works(proxy)


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"], indirect=True)
@pytest.mark.parametrize("started", [False, True])
async def test_what_comes_before_anybody_listens_is_a_read_at_most(
    loop: object, started: bool
) -> None:
    """Reading that is paused before it began: uvloop, and asyncio of 3.11.2, begin all the same."""
    got: list[int] = []

    arena, streams = Arena(), []

    def made(stream: Stream) -> None:
        stream.stop(LAYER)  # as long as there is no broker
        if started:
            stream.start(lambda data: got.append(len(data)))
        streams.append(stream)

    running = asyncio.get_running_loop()
    server = await running.create_server(lambda: Stream(arena, made), "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()) as client:
        client.setblocking(False)
        sent = 0
        for _ in range(50):
            while True:
                try:
                    sent += client.send(bytes(1 << 20))
                except BlockingIOError:
                    break
            await asyncio.sleep(0.01)
        (stream,) = streams
        assert sent > READ_BYTES
        assert sum(got) + sum(map(len, stream._early)) <= READ_BYTES
        if not started:
            stream.start(lambda data: got.append(len(data)))
        stream.allow(LAYER)
        client.setblocking(True)
        client.shutdown(socket.SHUT_WR)
        await stream.ended
        assert sum(got) == sent
        stream.abort()
    server.close()
