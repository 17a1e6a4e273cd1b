"""A sample as a broker in this process, for tests of `proxy.serve`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.session.session import Session
from kafkascope.captures.inputs.spool import Spool
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.records.records import Partial, Record, batches, open_batch
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.replay.peer import Peer, Reach
from kafkascope.proxy.serve.broker import Broker, Library
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.logins import Accounts
from kafkascope.proxy.serve.request import Handler, Request, respond
from kafkascope.proxy.serve.server import Server
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


def library_of(name: str, limits: Limits = LIMITS) -> tuple[CapturedCluster, Library, Any]:
    capture = open_capture([SAMPLES / name], spool=Spool())
    session = Session(capture.context, capture.source.read)
    model, library = CapturedCluster(capture.context.names, limits), Library(session, limits)
    for exchange in capture.exchanges():
        model.add(exchange)
        library.add(exchange)
    model.finish()
    return model, library, capture


@asynccontextmanager
async def serving(
    name: str, *, users: dict[str, str] | None = None, limits: Limits = LIMITS, **more: Any
) -> AsyncIterator[tuple[str, int, list[str]]]:
    """Serve a sample: host, port, and the lines for people so far."""
    model, library, capture = library_of(name, limits)
    told: list[str] = []
    accounts = Accounts(users)
    server = Server(told.append, accounts=accounts, limits=limits, **more)
    try:
        places = {node: await server.listen("127.0.0.1", 0) for node in sorted(model.nodes)}
        server.broker = Broker(model, library, places, login=accounts.required)
        yield *places[min(places)], told
    finally:
        await server.stop()
        capture.close()
        await asyncio.sleep(0.05)


async def peer_of(host: str, port: int, **reach: Any) -> Peer:
    """A client."""
    return await Peer.open(host, port, Reach(timeout=60, **reach))


def problems(told: list[str]) -> list[str]:
    """The lines for people without those about clients that came."""
    return [line for line in told if " connected" not in line]
