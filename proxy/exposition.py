"""`--metrics`: the counters over HTTP, for Prometheus."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from proxy.directory import Address
    from proxy.server import KafkaProxy

SECONDS: Final = 5.0
MAX_REQUEST: Final = 16 * 1024


class Exposition:
    """A very small HTTP server: GET /metrics."""

    def __init__(self, proxy: KafkaProxy) -> None:
        self._proxy = proxy
        self._server: asyncio.Server | None = None
        self.port = 0

    async def listen(self, address: Address) -> None:
        """Answer there; `OSError`."""
        self._server = await asyncio.start_server(
            self._serve, address.host, address.port, limit=MAX_REQUEST
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # no client of ours
        finally:
            writer.close()

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].split()
        status, text = "404 Not Found", "GET /metrics\n"
        if len(words) == 3 and words[0] == b"GET" and words[1].split(b"?")[0] == b"/metrics":
            self._proxy.count_sinks()
            status, text = "200 OK", self._proxy.hub.metrics.text()
        body = text.encode()
        lines = (
            f"HTTP/1.1 {status}",
            "Content-Type: text/plain; version=0.0.4; charset=utf-8",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        return "\r\n".join((*lines, "", "")).encode() + body
