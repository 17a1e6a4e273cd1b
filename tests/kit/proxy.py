"""Frames, a broker and a client for the tests of the proxy."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkascope.captures.model import Endpoint
from kafkascope.dissectors.registry import APIS, decode_request, example
from kafkascope.proxy.engine.directory import Address, Listener, Nodes
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.hub import Hub
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.relay.connection import Connection
from kafkascope.proxy.relay.endpoints import Endpoints, VersionLimiter
from kafkascope.proxy.rules.verdicts import Action, Send
from tests.kit import wire

PRODUCE, FETCH, METADATA, API_VERSIONS, HEARTBEAT = 0, 1, 3, 18, 12
TOPIC_ID = bytes(range(16))
PATIENCE_S = 60.0
"""For what has to come: a machine may be ten times as slow, and only a failure takes so long."""


def request(
    key: int,
    version: int,
    body: dict[str, Any] | None = None,
    *,
    correlation_id: int = 1,
    client_id: str | None = "test",
) -> bytes:
    """A whole request."""
    return wire.request(APIS[key].name, version, correlation_id, client_id, **(body or {}))


def response(
    key: int, version: int, body: dict[str, Any] | None = None, *, correlation_id: int = 1
) -> bytes:
    """A whole response."""
    return wire.response(APIS[key].name, version, correlation_id, **(body or {}))


def produce(acks: int = 1, size: int = 100, topic: str = "orders", **more: Any) -> bytes:
    data = [{"index": 0, "records": bytes(size)}]
    body = {
        "acks": acks,
        "timeout_ms": 1000,
        "topic_data": [{"name": topic, "partition_data": data}],
    }
    return request(PRODUCE, 9, body, **more)


def endpoint(node_id: int = 2, host: str = "10.9.8.7", port: int = 9092) -> dict[str, Any]:
    return {"node_id": node_id, "host": host, "port": port, "rack": None}


def fetched(version: int, endpoints: list[dict[str, Any]], records: int = 10, **more: Any) -> bytes:
    """A Fetch response with one partition."""
    part = example("FetchResponse", version)
    filled = {
        "partition_index": 0,
        "error_code": 6 if endpoints else 0,
        "high_watermark": 5,
        "last_stable_offset": 5,
        "log_start_offset": 0,
        "diverging_epoch": {"epoch": -1, "end_offset": -1},
        "current_leader": {"leader_id": 2, "leader_epoch": 3},
        "snapshot_id": {"end_offset": -1, "epoch": -1},
        "aborted_transactions": [{"producer_id": 1, "first_offset": 2}],
        "preferred_read_replica": -1,
        "records": bytes(records),
    }
    topic: dict[str, Any] = {"partitions": [filled]}
    topic["topic" if version < 13 else "topic_id"] = "orders" if version < 13 else TOPIC_ID
    part["responses"] = [topic]
    if version >= 16:
        part["node_endpoints"] = endpoints
    return response(FETCH, version, part, **more)


class Listening:
    """Stands in for sockets: notes the listeners that were asked for."""

    def __init__(self) -> None:
        self.opened: list[Listener] = []

    def __call__(self, listener: Listener) -> None:
        self.opened.append(listener)

    def close(self) -> None:
        for listener in self.opened:
            listener.socket.close()


class Bench:
    """A relay without a network: what goes in, what comes out."""

    def __init__(self, *, rewrite: bool = True, limits: Limits = LIMITS) -> None:
        self.hub = Hub(limits)
        self.listening = Listening()
        self.nodes = Nodes([Address("b", 9092)], self.listening, host="127.0.0.1", limits=limits)
        if rewrite:
            self.hub.endpoints = Endpoints(self.nodes)
            self.hub.versions = VersionLimiter()
        self.relay = Connection(self.hub, 1, Endpoint("10.0.0.1", 5000), Endpoint("10.0.0.2", 9092))
        self.context = self.relay.context
        self.context.advertise_host = "127.0.0.1"
        self.now_ns = 1_000_000_000
        self.actions: list[Action] = []

    def feed(self, side: int, data: bytes) -> list[Action]:
        """All actions; bytes that pass as they are as a Send of them."""
        self.now_ns += 1000
        out = self.relay.feed(side, data, self.now_ns)
        actions: list[Action] = [Send(1 - side, data)] if out is None else list(out)
        # A view is valid during the call only: what the caller keeps has to be a copy.
        actions = [Send(a.side, bytes(a.data)) if isinstance(a, Send) else a for a in actions]
        self.actions += actions
        return actions

    def sent(self, to: int) -> bytes:
        """All bytes for a side so far."""
        return b"".join(bytes(a.data) for a in self.actions if isinstance(a, Send) and a.side == to)

    def others(self) -> list[Action]:
        """What else was wanted."""
        return [a for a in self.actions if not isinstance(a, Send)]


class Always:
    """A rule that gives these verdicts, one after the other, then None."""

    def __init__(self, side: int, *verdicts: Any, look: str = "whole", name: str = "rule") -> None:
        self.side, self.verdicts, self._look, self.name = side, list(verdicts), look, name
        self.seen: list[Any] = []

    def look(self, frame: Any) -> Any:
        return self._look

    def judge(self, frame: Any) -> Any:
        self.seen.append(frame)
        return self.verdicts.pop(0) if self.verdicts else None


Answering = Callable[[int, int, bytes], "bytes | None"]


@asynccontextmanager
async def broker(answer: Answering) -> AsyncIterator[Address]:
    """A server that answers each request by a function of key, version and the whole frame."""
    writers: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, OSError):
                while True:
                    head = await reader.readexactly(4)
                    payload = await reader.readexactly(struct.unpack(">i", head)[0])
                    key, version = struct.unpack_from(">hh", payload)
                    answered = answer(key, version, head + payload)
                    if answered is not None:
                        writer.write(answered)
                        await writer.drain()
        finally:  # Before 3.11.5, a writer that is let go stays open.
            writer.close()
            writers.discard(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for writer in list(writers):
            writer.close()


@asynccontextmanager
async def sink(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[Address]:
    """A server that does what it is told with each connection."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await handle(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def nobody() -> Iterator[Address]:
    """An address where nobody listens, and nobody else can meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield Address(*taken.getsockname())


def refused(address: Address) -> bool:
    """Whether nobody can come there any more."""
    try:
        socket.create_connection(address).close()
    except ConnectionRefusedError:
        return True
    return False


async def connect(bootstrap: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = bootstrap.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def read_frame(reader: asyncio.StreamReader, seconds: float = PATIENCE_S) -> bytes:
    """The next whole frame; fails when none comes."""
    async with asyncio.timeout(seconds):
        head = await reader.readexactly(4)
        return head + await reader.readexactly(struct.unpack(">i", head)[0])


async def until(true: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    """Return when something holds; `TimeoutError` when it does not come to hold."""
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.01)


def echo(key: int, version: int, asked: bytes) -> bytes:
    """An empty response of the right API, version and id."""
    if key == PRODUCE and decode_request(asked[4:]).body["acks"] == 0:
        return b""
    (correlation_id,) = struct.unpack_from(">i", asked, 8)
    return response(key, version, correlation_id=correlation_id)


BOTH_LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"], indirect=True)
"""Tests of conversations that uvloop, too, has to get right."""
BOTH_LOOPS_SLOW = pytest.mark.parametrize(
    "loop", ["asyncio", pytest.param("uvloop", marks=pytest.mark.slow)], indirect=True
)
"""The same, with uvloop in `make slow` alone."""


def run(coroutine: Any) -> Any:
    """Return what a coroutine returns, at the latest after five minutes."""
    return asyncio.run(asyncio.wait_for(coroutine, 300))


def memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def leave(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        writer.close()
    await asyncio.gather(*(w.wait_closed() for w in writers), return_exceptions=True)


async def works(proxy: KafkaProxy) -> None:
    """Another client is served, and nothing of ours broke."""
    reader, writer = await connect(proxy.bootstrap)
    writer.write(request(HEARTBEAT, 4))
    assert await read_frame(reader) == response(HEARTBEAT, 4)
    await leave(writer)
    assert proxy.hub.metrics.get("errors_total") == 0


class Tape:
    """A tap that keeps all."""

    def __init__(self) -> None:
        self.told = [bytearray(), bytearray()]

    def client(self, side: int, data: Any, now_ns: int, comment: str = "") -> None:
        self.told[side] += data

    def broker(self, side: int, data: bytes, now_ns: int, comment: str = "") -> None: ...

    def end(self, side: int | None, how: str, now_ns: int) -> None: ...
