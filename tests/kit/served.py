"""A sample as a broker in this process, for tests of `proxy.serve`."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.inputs.spool import Spool
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.records.records import Partial, Record, batches, open_batch
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import example
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.replay.peer import Peer, Reach
from kafkascope.proxy.serve.broker import Broker, Library
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.logins import Accounts
from kafkascope.proxy.serve.partitions import Partitions
from kafkascope.proxy.serve.request import Handler, Request, respond
from kafkascope.proxy.serve.server import Server
from tests.kit.proxy import Link
from tests.kit.samples import SAMPLES

PRODUCER = 7


def rows(*values: bytes, base: int = 0) -> list[Record]:
    return [Record(base + n, 5 + n, None, value, ()) for n, value in enumerate(values)]


def read(data: bytes) -> list[tuple[int, bytes | None]]:
    found = []
    for batch in batches(data):
        assert not isinstance(batch, Partial)
        opened = open_batch(data, batch)
        assert opened.error is None
        found += [(record.offset, record.value) for record in opened.records]
    return found


def batch(*values: bytes, base: int = 0, transaction: bool = False, **more: Any) -> bytes:
    """A batch of these values; in a transaction of PRODUCER."""
    if transaction:
        more = {"attributes": 0x10, "producer_id": PRODUCER, "producer_epoch": 0} | more
    return encode_batch(rows(*values, base=base), **more)


async def answered(
    handler: Handler, api: str, version: int, body: Body, client_id: str = "test"
) -> Body:
    """The whole response of a handler, whether it takes the request or refuses it."""
    response = await respond(handler, api, Request(version, body, client_id))
    assert response is not None
    return response


@contextmanager
def library_of(
    name: str | Path, limits: Limits = LIMITS
) -> Iterator[tuple[CapturedCluster, Library]]:
    """What a broker answers from: a sample, as long as it is open."""
    with open_capture([SAMPLES / name], spool=Spool()) as capture:
        session = Session(capture.context, capture.source.read)
        model, library = CapturedCluster(capture.context.names, limits), Library(session, limits)
        for exchange in capture.exchanges():
            model.add(exchange)
            library.add(exchange)
        model.finish()
        yield model, library


def cluster_of(
    *topics: str, partitions: int = 1, limits: Limits = LIMITS
) -> tuple[CapturedCluster, Partitions]:
    """A cluster with some empty topics."""
    model = CapturedCluster(TopicNames(), limits)
    for name in topics:
        for number in range(partitions):
            model.partition(name, number)
    model.finish()
    return model, Partitions(model)


class Served:
    """A sample as a broker; its clients leave before it stops."""

    def __init__(self, host: str, port: int, told: list[str]) -> None:
        self.host, self.port = host, port
        self.told = told
        """The lines for people so far."""
        self._clients = AsyncExitStack()

    async def peer(self, address: tuple[str, int] | None = None, **reach: Any) -> Peer:
        """A client that replays."""
        host, port = address or (self.host, self.port)
        peer = await Peer.open(host, port, Reach(timeout=60, **reach))
        self._clients.push_async_callback(peer.close)
        return peer

    async def link(self) -> Link:
        """A client that sends what it wants."""
        link = await Link.to(f"{self.host}:{self.port}")
        self._clients.callback(link.writer.close)
        return link

    async def works(self, peer: Peer | None = None) -> None:
        """A client is served, and nothing of ours broke."""
        assert (await (peer or await self.peer()).ask("ApiVersions", 0, {}))["api_keys"]
        assert not self.says("internal error"), self.told

    def says(self, words: str) -> bool:
        return any(words in line for line in self.told)

    @property
    def problems(self) -> list[str]:
        """The lines for people without those about clients that came."""
        return [line for line in self.told if " connected" not in line]


@asynccontextmanager
async def serving(
    name: str, *, users: dict[str, str] | None = None, limits: Limits = LIMITS, **more: Any
) -> AsyncIterator[Served]:
    """Serve a sample."""
    with library_of(name, limits) as (model, library):
        told: list[str] = []
        accounts = Accounts(users)
        server = Server(told.append, accounts=accounts, limits=limits, **more)
        try:
            places = {node: await server.listen("127.0.0.1", 0) for node in sorted(model.nodes)}
            server.broker = Broker(model, library, places, login=accounts.required)
            served = Served(*places[min(places)], told)
            async with served._clients:
                yield served
        finally:
            await server.stop()
            await asyncio.sleep(0.05)


async def ask(peer: Peer, api: str, version: int, **fields: Any) -> Body:
    """The response to a request with some fields, and defaults for the others."""
    return await peer.ask(api, version, example(f"{api}Request", version) | fields)
