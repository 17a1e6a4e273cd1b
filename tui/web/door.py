"""Checks the head of a request as it was sent, before aiohttp gets it.

aiohttp strips spaces and tabs around the value of a header, so that what a browser would never send
cannot be told from what it sends once a request is parsed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from kafkascope.proxy.hosts import host_header, host_named, is_loopback

MAX_HEAD: Final = 16 * 1024
SECONDS: Final = 10.0
"""Limit for a head; a browser on this machine sends it at once."""
END: Final = b"\r\n\r\n"
NOT_OURS: Final = "this is not the address that kafkascope printed"


def refused(head: bytes) -> bytes | None:
    """Return the response to a request head that names no loopback host; None if it names one."""
    host = host_header(head)
    named = None if host is None else host_named(host)
    if named is not None and is_loopback(named):
        return None
    status = "400 Bad Request" if named is None else "403 Forbidden"
    body = f"kafkascope: {NOT_OURS}\n"
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", body)).encode()


class Door(asyncio.Protocol):
    """Owns a connection until its first head is whole; then the protocol of the server does.

    The server closes a connection after one response, unless that opens a websocket: no second
    head comes. What a client sends behind its first head without waiting is dropped.
    """

    def __init__(self, server: Callable[[], asyncio.Protocol]) -> None:
        self._server = server
        self._head = bytearray()
        self._transport: asyncio.Transport | None = None
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the head, for `SECONDS`."""
        self._transport = cast(asyncio.Transport, transport)
        self._late = asyncio.get_running_loop().call_later(SECONDS, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        """Hand the connection over, or refuse it, as soon as the head is whole."""
        assert self._transport is not None
        assert self._late is not None
        if self._transport.is_closing():
            return
        searched = max(0, len(self._head) - len(END) + 1)
        self._head += data
        end = self._head.find(END, searched)
        if end < 0 and len(self._head) <= MAX_HEAD:
            return
        self._late.cancel()
        head = bytes(self._head[: end + len(END)]) if end >= 0 else b""
        answer = refused(head)
        if answer is not None:
            self._transport.write(answer)
            self._transport.close()
            return
        protocol = self._server()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(head)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the wait: the client has left."""
        if self._late is not None:
            self._late.cancel()
