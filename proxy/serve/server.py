"""The listeners of a served capture, one for each captured node. The only I/O here.

Clients may be anything: announced sizes are checked before they are waited for, every wait ends,
and log lines do not repeat without end.
"""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from kafkascope.analyzer.text import safe
from kafkascope.captures.signatures import HEAD, TLS, protocol_of
from kafkascope.dissectors.codec.walk import fitted
from kafkascope.dissectors.errors import DissectError, UnknownApi, UnknownVersion
from kafkascope.dissectors.registry import (
    API_VERSIONS,
    APIS,
    Decoded,
    RequestHeader,
    decode_request,
    encode_response,
    layout_of,
    read_request_header,
    unsupported_response,
)
from kafkascope.proxy.hosts import ON_PLAINTEXT
from kafkascope.proxy.limits import LIMITS, Limits, remember
from kafkascope.proxy.serve.broker import Broker, NoResponse, Response
from kafkascope.proxy.serve.logins import Accounts, Denied, Login
from kafkascope.proxy.serve.request import Code

# Seconds until there is room for another one after that: 20 MB a day at most.
LINE_S: Final = 1.0


class ClientLog:
    """Log lines of a served capture: who connected, and what went wrong.

    Clients control the text and number of lines: lines are short, move no cursor, do not repeat
    without end, and a flood of different ones cannot fill a disk."""

    def __init__(
        self,
        out: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        limits: Limits = LIMITS,
    ) -> None:
        self._limits = limits
        self._out = out
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._room = float(limits.log_burst)
        self._last = clock()
        self._left_out = 0

    def log(self, who: str, text: str, about: str = "") -> None:
        """Write a line the first time, the tenth, the hundredth that `about` (else the text) is
        told."""
        most = self._limits.log_chars
        who, text = safe(who[:most]), safe(text[:most])
        key = about[:most] or text
        count = self._counts[key] + 1
        remember(self._counts, key, count, self._limits.log_lines)
        if count == 1:
            self._write(f"{who}: {text}")
        elif str(count).strip("0") == "1":
            self._write(f"{who}: {text} ({count} times)")

    def _write(self, line: str) -> None:
        now = self._clock()
        self._room = min(self._room + (now - self._last) / LINE_S, self._limits.log_burst)
        self._last = now
        if self._room < 1:
            self._left_out += 1
            return
        self._room -= 1
        if self._left_out:
            line = f"{line} ({self._left_out} lines before it were suppressed)"
            self._left_out = 0
        self._out(line)


BUFFER: Final = 1 << 20
BACKLOG: Final = 512
# Requests up to here are not counted in that.
SMALL: Final = 64 << 10
# How long to wait for more of something that is no request, to say what it is.
BEGUN_S: Final = 0.2
_SIZE: Final = struct.Struct(">i")


class Server:
    """The listeners of a broker."""

    def __init__(
        self,
        log: Callable[[str], None] | None = None,
        *,
        accounts: Accounts | None = None,
        tls: ssl.SSLContext | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self.limits = limits
        self.log = ClientLog(log or (lambda text: None), limits=limits).log
        self._accounts = accounts or Accounts()
        self._tls = tls
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._buffered = 0
        self.requests = 0
        self._broker: Broker | None = None
        self._serves = asyncio.Event()

    @property
    def broker(self) -> Broker | None:
        """The broker. It knows the addresses of all listeners: clients that come earlier wait for
        it."""
        return self._broker

    @broker.setter
    def broker(self, broker: Broker) -> None:
        self._broker = broker
        self._serves.set()

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Open a listener; port 0 takes any. Returns its address; `OSError` when that is not
        possible."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._failed)
        protocol = asyncio.StreamReaderProtocol if self._tls is None else _Paused
        server = await loop.create_server(
            lambda: protocol(asyncio.StreamReader(BUFFER), self._connected),
            *(host, port),
            backlog=BACKLOG,
        )
        self._servers.append(server)
        if not server.sockets:
            # asyncio takes any failure to make a socket for a kind that the system lacks.
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        place: tuple[str, int] = server.sockets[0].getsockname()[:2]
        return place

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what asyncio would log, such as that there are no more file descriptors."""
        error = context.get("exception")
        self.log("listener", f"{context.get('message')} ({error})")

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        who = ":".join(map(str, (writer.get_extra_info("peername") or ("?",))[:2]))
        try:
            most = self.limits.serve_connections
            if len(self._tasks) > most:
                self.log(who, f"more than {most} connections; closed")
                return
            await self._serves.wait()
            if self._tls is not None:
                await writer.start_tls(self._tls, ssl_handshake_timeout=self.limits.frame_s)
            await _Connection(self, self._accounts, reader, writer, who).serve()
        except ssl.SSLError as error:
            self.log(who, f"TLS failed ({error.reason or error}); closed")
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        except Exception as error:  # a fault of ours must cost this connection only, and be told
            self.log(who, f"internal error ({error}); closed")
        finally:
            self._tasks.discard(task)
            writer.close()

    @contextmanager
    def buffer(self, what: str, size: int) -> Iterator[None]:
        """Reserve so many bytes of the buffers meanwhile; `NoResponse` where there is no room."""
        if size > SMALL and self._buffered + size > self.limits.serve_buffer_bytes:
            raise NoResponse(
                f"no room for a {what} of {size} bytes: other connections use the memory"
            )
        self._buffered += size
        try:
            yield
        finally:
            self._buffered -= size


class _Paused(asyncio.StreamReaderProtocol):
    """Pauses reading until TLS begins, so that it begins in our hands and its failures are
    logged."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        super().connection_made(transport)


@dataclass
class _Connection:
    server: Server
    accounts: Accounts
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    who: str

    def __post_init__(self) -> None:
        self._login = Login(self.accounts)
        self._met = False

    async def serve(self) -> None:
        try:
            while await self._one():
                pass
        except (NoResponse, Denied) as error:
            self.server.log(self.who, f"{error}; closed")
        except DissectError as error:
            self.server.log(self.who, f"a request cannot be read ({error}); closed")

    async def _begun(self) -> bytes:
        try:
            async with asyncio.timeout(BEGUN_S):
                return await self.reader.read(HEAD)
        except TimeoutError:
            return b""

    async def _one(self) -> bool:
        try:
            async with asyncio.timeout(self.server.limits.idle_s):
                size = await self.reader.readexactly(4)
        except TimeoutError:
            return False
        (length,) = _SIZE.unpack(size)
        least = 0 if self._login.raw else 8
        if not least <= length <= self.server.limits.serve_request_bytes:
            raise NoResponse(_looks(size + await self._begun()))
        with self.server.buffer("request", length):
            response = await self._respond(await self._payload(length))
        if response is not None:
            await self._send(response)
        return True

    async def _payload(self, length: int) -> bytes:
        try:
            async with asyncio.timeout(self.server.limits.frame_s):
                return await self.reader.readexactly(length)
        except TimeoutError:
            raise NoResponse(
                f"a request of {length} bytes did not arrive in {self.server.limits.frame_s:g} s"
            ) from None
        except asyncio.IncompleteReadError as error:
            raise NoResponse(
                f"{len(error.partial)} of the {length} bytes of a request arrived"
            ) from None

    async def _send(self, response: bytes) -> None:
        frame_s = self.server.limits.frame_s
        with self.server.buffer("response", len(response)):
            self.writer.write(_SIZE.pack(len(response)) + response)
            try:
                async with asyncio.timeout(frame_s):
                    await self.writer.drain()
            except TimeoutError:
                self.writer.transport.abort()
                raise NoResponse(f"a response was not read within {frame_s:g} s") from None

    async def _respond(self, payload: bytes) -> bytes | None:
        broker = self.server.broker
        assert broker is not None
        self.server.requests += 1
        if self._login.raw:
            return self._login.token(payload)
        head = read_request_header(payload)
        known = broker.versions.get(head.api_key)
        if head.api_key == API_VERSIONS and (
            known is None or not known[0] <= head.api_version <= known[1]
        ):
            return unsupported_response(head.correlation_id, broker.versions)
        try:
            decoded = decode_request(payload)
        except (UnknownApi, UnknownVersion) as error:
            raise NoResponse(str(error)) from None
        if not self._met:
            self._meet(head, decoded)
        response = self._logged_in(head, decoded)
        if response is None:
            if not self._login.done and head.api_key != API_VERSIONS:
                raise NoResponse(
                    f"{APIS[head.api_key].name} before authentication, which --user requires"
                )
            response = await broker.respond(head.api_key, head.api_version, head.client_id, decoded)
        if response.note:
            self.server.log(head.client_id or "?", response.note)
        if response.body is None:
            return None
        return encode_response(head.api_key, head.api_version, head.correlation_id, response.body)

    def _meet(self, head: RequestHeader, decoded: Decoded) -> None:
        """Log a connected client: a line for each client, not for each of its connections."""
        self._met = True
        name = "no client id" if head.client_id is None else f'client "{head.client_id}"'
        software = decoded.body.get("client_software_name") or ""
        version = decoded.body.get("client_software_version") or ""
        text = f"{name} connected" + (f", {software} {version}".rstrip() if software else "")
        self.server.log(self.who, text, f"{self.who.rpartition(':')[0]} {text}")

    def _logged_in(self, head: RequestHeader, decoded: Decoded) -> Response | None:
        name, note = APIS[head.api_key].name, ""
        if name == "SaslHandshake":
            mechanism = decoded.body["mechanism"]
            body = self._login.handshake(head.api_version, mechanism)
            if body["error_code"]:
                note = f"{mechanism} is not served, only {', '.join(body['mechanisms'])}"
                note += " (SCRAM needs --user)" if mechanism.startswith("SCRAM") else ""
        elif name == "SaslAuthenticate":
            try:
                body = {"auth_bytes": self._login.token(decoded.body["auth_bytes"])}
            except Denied as error:
                note = f"authentication failed: {error}"
                failed = Code.SASL_AUTHENTICATION_FAILED
                body = {"error_code": failed, "error_message": f"A{note[1:]}"}
        else:
            return None
        return Response(fitted(layout_of(f"{name}Response", head.api_version), body), note)


def _looks(head: bytes) -> str:
    protocol = protocol_of(head, "client")
    if protocol == TLS:
        return ON_PLAINTEXT
    if protocol:
        return f"{protocol} arrived"
    return f"a request of {_SIZE.unpack_from(head)[0]} bytes was announced"
