"""One connection to the live broker: frames out, answers by correlation id, every wait limited."""

from __future__ import annotations

import asyncio
import ssl
import struct
from typing import Final, NamedTuple

from dissectors.reader import Body
from dissectors.registry import (
    api_named,
    decode_response,
    layout_of,
    request_header_version,
    write_layout,
)
from proxy.replay.sasl import Credentials, Refused, tokens

CLIENT_ID: Final = "kafkascope-replay"
MAX_RESPONSE: Final = 256 << 20
_SIZE: Final = struct.Struct(">i")
OWN: Final = 0x4000_0000
"""Where correlation ids of requests of our own begin: captured ones keep theirs."""


class Reach(NamedTuple):
    """How the peer's brokers are reached."""

    tls: ssl.SSLContext | None = None
    credentials: Credentials | None = None
    timeout: float = 30.0
    """Seconds for a connection, and for any answer."""


class PeerError(Exception):
    """The peer cannot be reached, refuses, or went away; one line for people."""


class Peer:
    """An open connection; `open` makes one."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, reach: Reach
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._reach = reach
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._own = OWN
        self._task = asyncio.create_task(self._read())
        self.closed = False

    @classmethod
    async def open(cls, host: str, port: int, reach: Reach) -> Peer:
        """Connect and authenticate; `PeerError`."""
        try:
            async with asyncio.timeout(reach.timeout):
                name = host if reach.tls is not None else None
                streams = await asyncio.open_connection(
                    host, port, ssl=reach.tls, server_hostname=name, limit=1 << 20
                )
                peer = cls(*streams, reach)
                try:
                    await peer._authenticate()
                except BaseException:
                    await peer.close()
                    raise
                return peer
        except TimeoutError:
            raise PeerError(f"{host}:{port} does not answer in {reach.timeout:g} s") from None
        except OSError as error:
            raise PeerError(f"{host}:{port}: {error.strerror or error}") from None

    async def _authenticate(self) -> None:
        credentials = self._reach.credentials
        if credentials is None:
            return
        told = await self.ask("SaslHandshake", 1, {"mechanism": credentials.mechanism})
        if told["error_code"]:
            known = ", ".join(told["mechanisms"])
            raise PeerError(f"the broker has {known}, not {credentials.mechanism}")
        steps = tokens(credentials)
        try:
            token = next(steps)
            while True:
                answer = await self.ask("SaslAuthenticate", 1, {"auth_bytes": token})
                if answer["error_code"]:
                    why = answer["error_message"] or f"error {answer['error_code']}"
                    raise PeerError(f"authentication failed: {why}")
                token = steps.send(answer["auth_bytes"])
        except StopIteration:
            return
        except Refused as error:
            raise PeerError(f"authentication failed: {error}") from None

    async def ask(self, api: str, version: int, body: Body) -> Body:
        """A request of our own; its answer."""
        key = api_named(api).key
        self._own += 1
        header = {
            "request_api_key": key,
            "request_api_version": version,
            "correlation_id": self._own,
            "client_id": CLIENT_ID,
        }
        layout = layout_of("RequestHeader", request_header_version(key, version))
        known = {slot.name: header[slot.name] for slot in layout.body.slots}
        whole = layout_of(f"{api}Request", version)
        payload = write_layout(layout, known) + write_layout(whole, body)
        answer = await self.send(self._own, payload)
        return decode_response(answer, key, version).body

    def post(self, payload: bytes) -> None:
        """Send a request that gets no answer."""
        if self.closed:
            raise PeerError("the broker closed the connection")
        self._writer.write(_SIZE.pack(len(payload)) + payload)

    def send(self, correlation_id: int, payload: bytes) -> asyncio.Future[bytes]:
        """Send a request; the future is its answer's payload, or `PeerError`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        if correlation_id in self._waiting:
            future.set_exception(PeerError(f"correlation id {correlation_id} is in flight twice"))
            return future
        if self.closed:
            future.set_exception(PeerError("the broker closed the connection"))
            return future
        self._waiting[correlation_id] = future
        self._writer.write(_SIZE.pack(len(payload)) + payload)
        handle = loop.call_later(self._reach.timeout, self._late, correlation_id, future)
        future.add_done_callback(lambda _: handle.cancel())
        return future

    async def drain(self) -> None:
        """Wait while the broker does not read."""
        try:
            async with asyncio.timeout(self._reach.timeout):
                await self._writer.drain()
        except (TimeoutError, OSError):
            self._end("the broker does not read")

    def _late(self, correlation_id: int, future: asyncio.Future[bytes]) -> None:
        self._waiting.pop(correlation_id, None)
        if not future.done():
            future.set_exception(PeerError(f"no answer in {self._reach.timeout:g} s"))

    async def _read(self) -> None:
        why = "the broker closed the connection"
        try:
            while True:
                (size,) = _SIZE.unpack(await self._reader.readexactly(4))
                if not 4 <= size <= MAX_RESPONSE:
                    why = f"the broker announces an answer of {size} bytes"
                    break
                payload = await self._reader.readexactly(size)
                future = self._waiting.pop(_SIZE.unpack_from(payload)[0], None)
                if future is not None and not future.done():
                    future.set_result(payload)
        except (asyncio.IncompleteReadError, OSError):
            pass
        self._end(why)

    def _end(self, why: str) -> None:
        self.closed = True
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(PeerError(why))
        self._writer.close()

    async def close(self) -> None:
        """Close; what waits for an answer fails."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._end("closed")
        try:
            async with asyncio.timeout(5):
                await self._writer.wait_closed()
        except (TimeoutError, OSError, ssl.SSLError):
            pass
