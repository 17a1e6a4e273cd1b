"""The listeners of a served capture: one for each captured node. The only I/O here."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Final

from dissectors.errors import DissectError, UnknownApi, UnknownVersion
from dissectors.registry import (
    API_VERSIONS,
    APIS,
    Decoded,
    RequestHeader,
    decode_request,
    layout_of,
    read_request_header,
    response_header_version,
    write_layout,
)
from proxy.serve.broker import UNSUPPORTED_VERSION, Answer, Broker, Refused

MAX_REQUEST: Final = 100 << 20
MAX_CONNECTIONS: Final = 1_000
_SIZE: Final = struct.Struct(">i")

Told = Callable[[str], None]


class Server:
    """Listens for a broker; `start` and `stop` as often as wanted."""

    def __init__(self, told: Told | None = None) -> None:
        self._told = told or (lambda text: None)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests = 0
        self.broker: Broker | None = None

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Open a listener, port 0 for any; where it is. `OSError` when that is not possible."""
        server = await asyncio.start_server(self._connected, host, port, limit=1 << 20)
        self._servers.append(server)
        place: tuple[str, int] = server.sockets[0].getsockname()[:2]
        return place

    async def stop(self) -> None:
        """Close everything."""
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        who = ":".join(map(str, writer.get_extra_info("peername")[:2]))
        try:
            if len(self._tasks) > MAX_CONNECTIONS:
                self._told(f"{who}: more than {MAX_CONNECTIONS} connections")
                return
            await self._serve(reader, writer, who)
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, who: str
    ) -> None:
        while True:
            size = await reader.readexactly(4)
            (length,) = _SIZE.unpack(size)
            if not 8 <= length <= MAX_REQUEST:
                self._told(f"{who}: {_looks(size)}; closed")
                return
            payload = await reader.readexactly(length)
            self.requests += 1
            try:
                answer = await self._answer(payload)
            except Refused as error:
                self._told(f"{who}: {error}; closed")
                return
            except DissectError as error:
                self._told(f"{who}: a request cannot be read ({error}); closed")
                return
            if answer is not None:
                writer.write(_SIZE.pack(len(answer)) + answer)
                await writer.drain()

    async def _answer(self, payload: bytes) -> bytes | None:
        """The payload of the answer; None when none is due."""
        assert self.broker is not None
        head = read_request_header(payload)
        try:
            decoded = decode_request(payload)
            offered = {each["api_key"]: each for each in self.broker.versions()}
            known = offered.get(head.api_key)
            outside = known is None or not (
                known["min_version"] <= head.api_version <= known["max_version"]
            )
            if outside and head.api_key == API_VERSIONS:
                return self._fallback(head)
            answer = await self.broker.answer(
                head.api_key, head.api_version, head.client_id, decoded
            )
        except (UnknownApi, UnknownVersion) as error:
            if head.api_key == API_VERSIONS:
                return self._fallback(head)
            raise Refused(str(error)) from None
        if answer.note:
            self._told(f"{head.client_id or '?'}: {answer.note}")
        return _written(head, decoded, answer)

    def _fallback(self, head: RequestHeader) -> bytes:
        """An ApiVersions of a version that the captured broker lacks (KIP-511)."""
        assert self.broker is not None
        body = {"error_code": UNSUPPORTED_VERSION, "api_keys": self.broker.versions()}
        return _SIZE.pack(head.correlation_id) + write_layout(
            layout_of("ApiVersionsResponse", 0), body
        )


def _written(head: RequestHeader, decoded: Decoded, answer: Answer) -> bytes | None:
    if answer.body is None:
        return None
    version = response_header_version(head.api_key, head.api_version)
    header = layout_of("ResponseHeader", version)
    layout = layout_of(f"{APIS[head.api_key].name}Response", answer.version)
    written = write_layout(header, {"correlation_id": head.correlation_id})
    return written + write_layout(layout, answer.body)


def _looks(size: bytes) -> str:
    """What the first bytes are, when they are no Kafka request."""
    if size[:1] == b"\x16" and size[1:2] == b"\x03":
        return "TLS arrived; a served capture speaks plaintext"
    if size in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI"):
        return "HTTP arrived"
    return f"a request of {_SIZE.unpack(size)[0]} bytes was announced"
