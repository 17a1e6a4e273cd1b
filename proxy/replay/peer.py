"""A connection to a live broker: matches responses by correlation id, and limits every wait."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections import deque
from typing import Final, NamedTuple, cast

from kafkascope.analyzer.conversation.detect import is_tls
from kafkascope.analyzer.text import cut
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import (
    RequestHeader,
    api_named,
    decode_response,
    encode_body,
    encode_request_header,
)
from kafkascope.proxy.engine.directory import no_broker
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.sasl import Credentials, LoginRefused, tokens

CLIENT_ID: Final = "kafkascope-replay"
CLOSE_SECONDS: Final = 5.0
_SIZE: Final = struct.Struct(">i")
# Where correlation ids of requests of our own begin: captured ones keep theirs.
OWN: Final = 0x4000_0000


class Reach(NamedTuple):
    """How the brokers are reached."""

    tls: ssl.SSLContext | None = None
    credentials: Credentials | None = None
    timeout: float = 30.0
    """Seconds for a connection, and for any answer."""
    limits: Limits = LIMITS


class PeerError(Exception):
    """The broker cannot be reached, refuses, or closed the connection; one line for people."""


class Unreadable(PeerError):
    """The response to a request of ours cannot be read."""


class Peer(asyncio.Protocol):
    """An open connection; `open` makes one."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._limits: deque[tuple[float, int, asyncio.Future[bytes]]] = deque()
        """When each has to be here; all wait equally long, so the first is the earliest."""
        self._timer: asyncio.TimerHandle | None = None
        self._own = OWN
        self._data = bytearray()
        """The beginning of a response that is not whole."""
        self._room = asyncio.Event()
        self._room.set()
        self._gone = asyncio.Event()
        self.closed = False

    @classmethod
    async def open(cls, host: str, port: int, reach: Reach) -> Peer:
        """Connect and authenticate; `PeerError`."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(reach.timeout):
                name = host if reach.tls is not None else None
                _, peer = await loop.create_connection(
                    lambda: cls(reach), host, port, ssl=reach.tls, server_hostname=name
                )
                try:
                    await peer.authenticate()
                except BaseException:
                    await peer.close()
                    raise
                return peer
        except TimeoutError:
            raise PeerError(f"{host}:{port} did not respond in {reach.timeout:g} s") from None
        except ssl.SSLCertVerificationError as error:
            why = f"is not trusted: {error.verify_message} (--cafile)"
            raise PeerError(f"the certificate of {host}:{port} {why}") from None
        except OSError as error:
            if reach.tls is not None and (isinstance(error, ssl.SSLError) or error.errno is None):
                why = "if its listener is plaintext, leave out --tls and --cafile"
                raise PeerError(f"the TLS handshake with {host}:{port} failed; {why}") from None
            raise PeerError(no_broker(host, port, error)) from None
        except (ValueError, OverflowError) as error:
            # What a broker tells of others may be no host name, and no port.
            raise PeerError(f"{host!r}, port {port}: no address ({error})") from None

    # --- protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        buffer = self._data
        buffer += data
        at, end = 0, len(buffer)
        while end - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(buffer, at)
            if not 4 <= size <= self._reach.limits.response_bytes:
                tls = is_tls(buffer[at:]) and "the broker uses TLS: add --tls or --cafile"
                self._end(tls or f"the broker announces a response of {size} bytes")
                return
            if at + 4 + size > end:
                break
            self._received(bytes(buffer[at + 4 : at + 4 + size]))
            at += 4 + size
        del buffer[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        alert = f" (TLS: {exc.reason})" if isinstance(exc, ssl.SSLError) else ""
        self._end(f"the broker closed the connection{alert}")
        self._gone.set()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def _received(self, payload: bytes) -> None:
        future = self._waiting.pop(_SIZE.unpack_from(payload)[0], None)
        if future is not None and not future.done():
            future.set_result(payload)
        limits = self._limits
        while limits and limits[0][2].done():
            limits.popleft()  # else the responses of a whole timeout would stay in memory

    # --- requests

    async def authenticate(self) -> None:
        """Log in, where there are credentials; `PeerError`."""
        credentials = self._reach.credentials
        if credentials is None:
            return
        response = await self.ask("SaslHandshake", 1, {"mechanism": credentials.mechanism})
        if response["error_code"]:
            known = ", ".join(response["mechanisms"])
            known = cut(known, self._reach.limits.peer_text_chars) or "no mechanism"
            raise PeerError(f"the broker has {known}, not {credentials.mechanism}")
        steps = tokens(credentials)
        try:
            token = next(steps)
            while True:
                response = await self.ask("SaslAuthenticate", 1, {"auth_bytes": token})
                if response["error_code"]:
                    why = response["error_message"] or f"error {response['error_code']}"
                    why = cut(why, self._reach.limits.peer_text_chars)
                    raise PeerError(f"authentication failed: {why}")
                token = steps.send(response["auth_bytes"])
        except StopIteration:
            return
        except LoginRefused as error:
            raise PeerError(f"authentication failed: {error}") from None

    async def ask(self, api: str, version: int, body: Body) -> Body:
        key = api_named(api).key
        self._own += 1
        head = RequestHeader(key, version, self._own, CLIENT_ID, [], 0)
        payload = encode_request_header(head) + encode_body(f"{api}Request", version, body)
        response = await self.send(self._own, payload)
        try:
            return decode_response(response, key, version).body
        except DissectError as error:
            raise Unreadable(f"the broker's {api} response cannot be read: {error}") from None

    def post(self, payload: bytes) -> None:
        if self.closed:
            raise PeerError("the broker closed the connection")
        self._transport.write(_SIZE.pack(len(payload)) + payload)

    def send(self, correlation_id: int, payload: bytes) -> asyncio.Future[bytes]:
        """Send a request; the future is its response's payload, or `PeerError`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        if correlation_id in self._waiting:
            future.set_exception(PeerError(f"correlation id {correlation_id} is in flight twice"))
            return future
        try:
            self.post(payload)
        except PeerError as error:
            future.set_exception(error)
            return future
        self._waiting[correlation_id] = future
        self._limits.append((loop.time() + self._reach.timeout, correlation_id, future))
        if self._timer is None:
            self._timer = loop.call_later(self._reach.timeout, self._look)
        return future

    def _look(self) -> None:
        """Fail what has waited for too long; look again when the next one is due."""
        loop = asyncio.get_running_loop()
        self._timer = None
        limits = self._limits
        while limits and (limits[0][2].done() or limits[0][0] <= loop.time()):
            _, correlation_id, future = limits.popleft()
            if not future.done():
                self._waiting.pop(correlation_id, None)
                future.set_exception(PeerError(f"no response in {self._reach.timeout:g} s"))
        if limits:
            self._timer = loop.call_at(limits[0][0], self._look)

    async def drain(self) -> None:
        if self._room.is_set():
            return
        try:
            async with asyncio.timeout(self._reach.timeout):
                await self._room.wait()
        except TimeoutError:
            self._end("the broker does not read requests")

    def _end(self, why: str) -> None:
        self.closed = True
        self._room.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._limits.clear()
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(PeerError(why))
        self._transport.close()

    async def close(self) -> None:
        """Close; what waits for a response fails."""
        self._end("closed")
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._gone.wait()
        except TimeoutError:
            self._transport.abort()
            await asyncio.sleep(0)  # so that it is told
