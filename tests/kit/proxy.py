"""Frames, a broker and a client for the tests of the proxy."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import socket
import struct
import sys
import weakref
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from kafkascope.captures.model import Endpoint
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.records.records import Batch, Record, batches, crc_ok, open_batch
from kafkascope.dissectors.registry import APIS, decode_request, decode_response, example
from kafkascope.proxy.engine.directory import Address, Listener, Nodes
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.hub import Hub
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.recording.packing import CLOSE, OPEN, Packing, TapEvent, preamble
from kafkascope.proxy.relay.connection import Connection
from kafkascope.proxy.relay.endpoints import Endpoints, VersionLimiter
from kafkascope.proxy.rules.faults import Fault, parse_fault
from kafkascope.proxy.rules.rules import Chain
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Action, Send, Verdict, WakeUp
from tests.kit import wire

PRODUCE, FETCH, METADATA, API_VERSIONS, HEARTBEAT = 0, 1, 3, 18, 12
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
TOPIC_ID = bytes(range(16))
MB = 1 << 20
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


def beat(correlation_id: int = 1, client_id: str = "test", **body: Any) -> bytes:
    """A small request of which nothing is special."""
    return request(HEARTBEAT, 4, body, correlation_id=correlation_id, client_id=client_id)


def pulse(correlation_id: int = 1, error_code: int = 0) -> bytes:
    """Its response."""
    return response(HEARTBEAT, 4, {"error_code": error_code}, correlation_id=correlation_id)


def produce(
    acks: int = 1,
    size: int = 100,
    topic: str = "orders",
    records: bytes | None = None,
    partition: int = 0,
    **more: Any,
) -> bytes:
    """A Produce request of `records`, or of `size` zeros."""
    data = [{"index": partition, "records": bytes(size) if records is None else records}]
    topics = [{"name": topic, "partition_data": data}]
    return request(PRODUCE, 9, {"acks": acks, "timeout_ms": 1000, "topic_data": topics}, **more)


def endpoint(node_id: int = 2, host: str = "10.9.8.7", port: int = 9092) -> dict[str, Any]:
    return {"node_id": node_id, "host": host, "port": port, "rack": None}


def fetched(
    version: int,
    endpoints: list[dict[str, Any]] | None = None,
    records: int | bytes = 10,
    **more: Any,
) -> bytes:
    """A Fetch response with one partition: its records, or so many zeros."""
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
        part["node_endpoints"] = endpoints or []
    return response(FETCH, version, part, **more)


def produced_records(frame: bytes) -> bytes:
    """The records of the one partition of a Produce request."""
    body = decode_request(frame[4:]).body
    return bytes(body["topic_data"][0]["partition_data"][0]["records"])


def fetched_partition(frame: bytes, version: int = 12) -> dict[str, Any]:
    """The one partition of a Fetch response."""
    body = decode_response(frame[4:], FETCH, version).body
    return dict(body["responses"][0]["partitions"][0])


def opened(data: bytes) -> tuple[Batch, list[Record]]:
    """The one batch in some bytes, which has to be right, and its records."""
    (batch,) = batches(data)
    assert isinstance(batch, Batch)
    assert crc_ok(data, batch)
    found = open_batch(data, batch)
    assert found.error is None
    return batch, [each._replace(headers=tuple(each.headers)) for each in found.records]


class Listening:
    """Stands in for sockets: notes the listeners that were asked for."""

    def __init__(self) -> None:
        self.opened: list[Listener] = []
        weakref.finalize(self, _close, self.opened)

    def __call__(self, listener: Listener) -> None:
        self.opened.append(listener)


def _close(listeners: list[Listener]) -> None:
    for listener in listeners:
        listener.socket.close()


class Bench:
    """A relay without a network: what goes in, what comes out. `rules`: as text, or as they are."""

    def __init__(self, *rules: Any, rewrite: bool = True, limits: Limits = LIMITS) -> None:
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
        self.rules = rules_of(*rules)
        self.chain = Chain(self.rules)
        if rules:
            self.chain.attach(self.hub)

    def feed(self, side: int, data: bytes) -> list[Action]:
        """All actions; bytes that pass as they are as a Send of them."""
        self.now_ns += 1000
        out = self.relay.feed(side, data, self.now_ns)
        actions: list[Action] = [Send(1 - side, data)] if out is None else list(out)
        # A view is valid during the call only: what the caller keeps has to be a copy.
        actions = [Send(a.side, bytes(a.data)) if isinstance(a, Send) else a for a in actions]
        self.actions += actions
        return actions

    def exchange(self, asked: bytes, answered: bytes) -> bytes:
        """Feed a request and its response; what the client got meanwhile."""
        before = len(self.sent(CLIENT))
        self.feed(CLIENT, asked)
        self.feed(BROKER, answered)
        return self.sent(CLIENT)[before:]

    def wake(self, after_ns: int = 0) -> None:
        """The time of the last `WakeUp` is over."""
        token = [each for each in self.actions if isinstance(each, WakeUp)][-1].token
        self.actions += self.relay.woken(token, self.now_ns + after_ns)

    def release(self, side: int, verdict: Verdict) -> list[Action]:
        """Somebody lets the held frame of a side go on."""
        stop = self.relay.directions[side].stop
        assert stop is not None, "nothing is held"
        actions = self.relay.release(side, stop, verdict, self.now_ns)
        self.actions += actions
        return actions

    def answer(self, key: int, version: int) -> Body:
        """The body of what the client got, as one response."""
        return decode_response(self.sent(CLIENT)[4:], key, version).body

    def said(self) -> list[str]:
        return [text for _, text in self.hub.notices]

    def sent(self, to: int) -> bytes:
        """All bytes for a side so far."""
        return b"".join(bytes(a.data) for a in self.actions if isinstance(a, Send) and a.side == to)

    def others(self) -> list[Action]:
        """What else was wanted."""
        return [a for a in self.actions if not isinstance(a, Send)]


ARGUMENTS = {
    "delay": "5ms",
    "throttle": "1KB/s",
    "error": "27",
    "stamp": "27",
    "truncate": "6",
    "set": "response.throttle_time_ms = 7",
    "records": "lose 1",
    "versions": "ApiVersions 0",
    "member": "expire",
}
"""What an action of a rule cannot do without."""


def rules_of(*rules: Any) -> list[Any]:
    """Rules, of which some are text."""
    return [parse_fault(each) if isinstance(each, str) else each for each in rules]


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
async def sink(handle: Callable[[Link], Awaitable[None]]) -> AsyncIterator[Address]:
    """A server that does what it is told with each connection."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        tasks.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await handle(Link(reader, writer))
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


class Link:
    """One end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, address: object, **options: Any) -> Link:
        host, _, port = str(address).rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port), **options))

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def frame(self, seconds: float = PATIENCE_S) -> bytes:
        """The next whole frame; fails when none comes."""
        return await read_frame(self.reader, seconds)

    async def ask(self, *frames: bytes) -> bytes:
        """Send frames, each when the one before is answered; the last answer."""
        for frame in frames:
            self.send(frame)
            answer = await self.frame()
        return answer

    async def rest(self) -> bytes:
        """All that comes until the connection ends."""
        return await asyncio.wait_for(self.reader.read(), PATIENCE_S)

    async def ended(self) -> bool:
        """The connection ends, by a reset or without another byte."""
        try:
            return await self.rest() == b""
        except ConnectionError:
            return True

    async def pour(self, *blocks: bytes) -> None:
        """Send blocks as the other end takes them."""
        for block in blocks:
            self.send(block)
            await self.writer.drain()

    def end(self) -> None:
        """Send no more."""
        self.writer.write_eof()

    def linger_no_more(self) -> None:
        """Reset the connection when it is closed."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def abort(self) -> None:
        self.writer.transport.abort()

    async def leave(self) -> None:
        await leave(self.writer)


async def ask(address: object, *frames: bytes, **options: Any) -> bytes:
    """What a client gets that comes, sends frames and leaves: the last answer."""
    client = await Link.to(address, **options)
    try:
        return await client.ask(*frames)
    finally:
        client.writer.close()


class Proxied(KafkaProxy):
    """A proxy before an upstream of the test; its clients leave before it stops."""

    def __init__(self, *words: Any, rules: Any = (), **options: Any) -> None:
        super().__init__(*words, rules=rules_of(*rules), **options)
        self.clients: list[Link] = []

    async def client(self) -> Link:
        self.clients.append(await Link.to(self.bootstrap))
        return self.clients[-1]

    async def ask(self, *frames: bytes) -> bytes:
        return await ask(self.bootstrap, *frames)

    def said(self) -> list[str]:
        return [text for _, text in self.hub.notices]

    @property
    def fault(self) -> Fault:
        """The first rule."""
        fault = next(iter(self.rules))
        assert isinstance(fault, Fault)
        return fault

    async def stop(self, deadline_s: float = 5.0) -> None:
        for client in self.clients:
            client.writer.close()
        await super().stop(deadline_s)


@asynccontextmanager
async def proxied(serve: Any = None, *rules: Any, **options: Any) -> AsyncIterator[Proxied]:
    """A proxy whose upstream answers as `broker`, or, of a coroutine function, as `sink`."""
    coroutine = inspect.iscoroutinefunction(serve) or inspect.iscoroutinefunction(
        getattr(serve, "__call__", None)  # noqa: B004
    )
    async with (
        (sink if coroutine else broker)(serve or echo) as upstream,
        Proxied(str(upstream), rules=rules, **options) as proxy,
    ):
        yield proxy


class Child(NamedTuple):
    """A proxy in a process of its own."""

    process: asyncio.subprocess.Process
    bootstrap: str

    async def ended(self) -> tuple[int | None, bytes, str]:
        """Close its stdin, wait for its end: exit code, stdout and stderr."""
        out, said = await asyncio.wait_for(self.process.communicate(b""), PATIENCE_S)
        return self.process.returncode, out, said.decode()


PROGRAM = (sys.executable, "-m", "kafkascope.proxy.cli")


@asynccontextmanager
async def started(
    folder: Path, *words: object, program: Sequence[str] = PROGRAM, stdout: int = PIPE
) -> AsyncIterator[Child]:
    """Run the command, with pipes, until clients may connect; kill what is left of it."""
    ready = folder / f"ready-{uuid4().hex}"
    arguments = (*program, *words, "--listen", "127.0.0.1:0", "--ready-file", ready)
    process = await asyncio.create_subprocess_exec(
        *map(str, arguments), stdin=PIPE, stdout=stdout, stderr=PIPE
    )
    try:
        await until(lambda: ready.exists() and ready.read_text())
        yield Child(process, ready.read_text().strip())
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


class Noted:
    """An upstream's answers; it notes what was asked."""

    def __init__(self, answer: Answering) -> None:
        self.answer = answer
        self.asked: list[bytes] = []

    def __call__(self, key: int, version: int, asked: bytes) -> bytes | None:
        self.asked.append(asked)
        return self.answer(key, version, asked)


def cluster(*brokers: dict[str, Any]) -> Answering:
    """An upstream that answers Metadata with these brokers, and else as `echo`."""

    def answer(key: int, version: int, asked: bytes) -> bytes:
        if key != METADATA:
            return echo(key, version, asked)
        number = int.from_bytes(asked[8:12], "big")
        return response(METADATA, version, {"brokers": list(brokers)}, correlation_id=number)

    return answer


async def read_frame(reader: asyncio.StreamReader, seconds: float = PATIENCE_S) -> bytes:
    """The next whole frame; fails when none comes."""
    async with asyncio.timeout(seconds):
        head = await reader.readexactly(4)
        return head + await reader.readexactly(struct.unpack(">i", head)[0])


async def swallow(link: Link) -> None:
    """A broker, for `sink`, that takes all and answers nothing."""
    while await link.reader.read(MB):
        pass


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


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def leave(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        writer.close()
    await asyncio.gather(*(w.wait_closed() for w in writers), return_exceptions=True)


async def works(proxy: KafkaProxy) -> None:
    """Another client is served, and nothing of ours broke."""
    assert await ask(proxy.bootstrap, beat()) == pulse()
    assert proxy.hub.metrics.get("errors_total") == 0


class Tape:
    """A connection's tap that keeps all, as a recording gets it."""

    def __init__(self, bench: Bench) -> None:
        context = bench.context
        self.events = [TapEvent(1, OPEN, context.client, context.broker, bench.now_ns)]
        context.tap = self

    def client(self, side: int, data: bytes | memoryview, now_ns: int, comment: str = "") -> None:
        self.events.append(TapEvent(1, 0, side, bytes(data), now_ns, comment))

    def broker(self, side: int, data: bytes, now_ns: int, comment: str = "") -> None:
        self.events.append(TapEvent(1, 1, side, bytes(data), now_ns, comment))

    def end(self, side: int | None, how: str, now_ns: int) -> None:
        self.events.append(TapEvent(1, CLOSE, side, how, now_ns))

    def of(self, leg: int, side: int) -> bytes:
        """All bytes of a side, on the client's leg (0) or the broker's (1)."""
        parts = [each.data for each in self.events if (each.leg, each.side) == (leg, side)]
        return b"".join(parts)

    def notes(self, leg: int = 0) -> list[tuple[int, bytes, str]]:
        """Side, bytes and comment of all that was recorded of a leg."""
        return [(e.side, e.data, e.comment) for e in self.events if e.leg == leg]

    @property
    def comments(self) -> list[str]:
        return [each.comment for each in self.events if each.comment]

    def write(self, path: Path) -> None:
        packing = Packing()
        for event in self.events:
            packing.add(event)
        path.write_bytes(preamble() + b"".join(map(bytes, packing.take().parts)))
