"""`--metrics`: the counters over HTTP, for Prometheus. A request must name a host of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kafkascope.proxy.hosts import address_named, host_header, host_named, is_loopback, same_address

if TYPE_CHECKING:
    from kafkascope.proxy.engine.directory import Address
    from kafkascope.proxy.engine.server import KafkaProxy


BAD: Final = "400 Bad Request"
FORBIDDEN: Final = "403 Forbidden"


class Exposition:
    """A minimal HTTP server: GET /metrics."""

    def __init__(self, proxy: KafkaProxy, names: Iterable[str] = ()) -> None:
        """`names`: hosts that requests may name besides loopback and the address listened on."""
        self._proxy = proxy
        self._names = {name.lower() for name in names}
        self._server: asyncio.Server | None = None
        self.port = 0

    async def listen(self, address: Address) -> None:
        limit = self._proxy.hub.limits.metrics_request_bytes
        self._server = await asyncio.start_server(self._serve, *address, limit=limit)
        named = address_named(address.host)
        if named is None or not named.is_unspecified:
            self._names.add(address.host.lower())
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.transport.set_write_buffer_limits(0)  # `drain` waits for all of it
            async with asyncio.timeout(self._proxy.hub.limits.metrics_s):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self.respond(head, writer.get_extra_info("sockname")[0]))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()  # no client of ours, or one that does not read
        finally:
            writer.close()

    def respond(self, head: bytes, came_to: str) -> bytes:
        words = head.partition(b"\r\n")[0].split(b" ")
        status, text = "404 Not Found", "GET /metrics\n"
        host = host_header(head)
        named = None if host is None else host_named(host)
        if named is None:
            status, text = BAD, "expected one Host header\n"
        elif not (named in self._names or is_loopback(named) or same_address(named, came_to)):
            status, text = FORBIDDEN, f"{named}: unknown host; allow it with --metrics-host\n"
        elif len(words) == 3 and words[0] == b"GET" and words[1].split(b"?")[0] == b"/metrics":
            self._proxy.count_sinks()
            status, text = "200 OK", self._proxy.hub.metrics.text()
        body = text.encode()
        respond = (
            f"HTTP/1.1 {status}",
            "Content-Type: text/plain; version=0.0.4; charset=utf-8",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        return "\r\n".join((*respond, "", "")).encode() + body
