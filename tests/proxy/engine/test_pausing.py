"""Reading that is paused before it began: uvloop, and asyncio of 3.11.2, begin all the same."""

from __future__ import annotations

import asyncio
import socket

import pytest

from kafkascope.proxy.engine.stream import LAYER, READ_BYTES, Arena, Stream


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"], indirect=True)
@pytest.mark.parametrize("started", [False, True])
async def test_what_comes_before_anybody_listens_is_a_read_at_most(
    loop: object, started: bool
) -> None:
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
