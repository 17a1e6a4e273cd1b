"""The address of the page, and the check of the head of a request as it was sent, before aiohttp
gets it. Loads nothing of the extra.

aiohttp strips spaces and tabs around the value of a header, so that what a browser would never send
cannot be told from what it sends once a request is parsed.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Callable
from typing import Final, cast

from kafkascope.proxy.engine.directory import Address, whole_address
from kafkascope.proxy.hosts import host_header, host_named, is_loopback
from kafkascope.tui.limits import LIMITS

HERE: Final = "127.0.0.1"


class NotHere(ValueError):
    """The address may not be served on, with a sentence why."""


def address_of(text: str) -> Address:
    """Parse `PORT` or `HOST:PORT`, of loopback alone; `NotHere`."""
    found = whole_address(f"{HERE}:{text}" if text.isdigit() else text)
    if found is None:
        raise NotHere(f'"{text}": write PORT or HOST:PORT')
    if found.host == "localhost":
        return found._replace(host=HERE)
    try:
        near = ipaddress.ip_address(found.host).is_loopback
    except ValueError:
        near = False
    if not near:
        raise NotHere(
            f'"{text}": without a login the UI serves this machine only; from another one: '
            f"ssh -L {found.port or 8000}:{HERE}:{found.port or 8000} and --web-port "
            f"{found.port or 8000}"
        )
    return found


def refusal(
    token: str, given: str, host: str | None, origin: str | None, *, websocket: bool
) -> str | None:
    """Return why a request is refused, None if it is not. `given` is the token in its path."""
    # The port may be another one than ours: ssh -L.
    named = None if host is None else host_named(host)
    if named is None or not is_loopback(named):
        return NOT_OURS
    # Pages name their origin in what they load, and always when they open a websocket.
    if origin != f"http://{host}" and (websocket or origin is not None):
        return "pages of other sites are not allowed to use kafkascope"
    if not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
        return "the address that kafkascope printed ends with a token: open that one"
    return None


# Limit for a head; a browser on this machine sends it at once.
SECONDS: Final = 10.0
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
    head comes. What a client sends after its first head without waiting is dropped.
    """

    def __init__(self, server: Callable[[], asyncio.Protocol]) -> None:
        self._server, self._head = server, bytearray()
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
        if end < 0 and len(self._head) <= LIMITS.request_head_bytes:
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
