"""Serves the page and its tabs on a loopback address, until ctrl+c.

All that is served lies below a token, which is in the printed address: there is no cookie that
pages of other ports would get, and no login.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from html import escape
from importlib.resources import files
from pathlib import Path
from socket import socket
from string import Template
from typing import Final

from aiohttp import WSCloseCode, web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler

from kafkascope.analyzer.terminal import out, say
from kafkascope.proxy.engine.directory import Address, open_socket
from kafkascope.tui.web.door import Door
from kafkascope.tui.web.guard import refusal
from kafkascope.tui.web.session import GRACE, Session, measure

OURS: Final = Path(str(files("kafkascope.tui.web")))
THEIRS: Final = Path(str(files("textual_serve"))) / "static"
FILES: Final = {
    "page.css": OURS / "page.css",
    "page.js": OURS / "page.js",
    "textual.js": THEIRS / "js" / "textual.js",
    "xterm.css": THEIRS / "css" / "xterm.css",
    "mono.ttf": THEIRS / "fonts" / "RobotoMono-VariableFont_wght.ttf",
}
# xterm.js puts style elements into the page; 'self' is no websocket to older browsers.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
    "img-src data:; connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Site:
    """Serves the page of a command line, which every tab runs in a process of its own."""

    def __init__(self, command: Sequence[str], title: str) -> None:
        self.token = secrets.token_urlsafe(24)
        self._command = command
        self._title = title
        self._tabs: set[web.WebSocketResponse] = set()

    def application(self) -> web.Application:
        """Return the application for aiohttp."""
        made = web.Application(middlewares=[self._guarded])
        made.router.add_get("/{token}/", self._page)
        made.router.add_get("/{token}/ws", self._serve_tab)
        made.router.add_get("/{token}/{name}", self._file)
        made.on_response_prepare.append(_add_headers)
        made.on_shutdown.append(self._close_tabs)
        return made

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        why = refusal(
            self.token,
            # As it was sent: a whole URL in its place, which names a host again, has no token here.
            request.raw_path.lstrip("/").partition("/")[0],
            request.headers.get("Host"),
            request.headers.get("Origin"),
            websocket="Upgrade" in request.headers,
        )
        if why is not None:
            return web.Response(status=403, text=f"kafkascope: {why}\n")
        return await handler(request)

    async def _page(self, request: web.Request) -> web.StreamResponse:
        text = Template((OURS / "page.html").read_text("utf-8")).substitute(
            title=escape(self._title),
            socket=escape(f"ws://{request.headers['Host']}/{self.token}/ws"),
        )
        policy = {"Content-Security-Policy": POLICY.format(host=request.headers["Host"])}
        return web.Response(text=text, content_type="text/html", headers=policy)

    async def _file(self, request: web.Request) -> web.StreamResponse:
        path = FILES.get(request.match_info["name"])
        if path is None:
            raise web.HTTPNotFound
        return web.FileResponse(path)

    async def _serve_tab(self, request: web.Request) -> web.StreamResponse:
        # Nobody is far away: without pings a closed connection is noticed, and a slow page kept.
        tab = web.WebSocketResponse(compress=False)
        await tab.prepare(request)
        told = request.query
        size = measure(told.get("width"), 80), measure(told.get("height"), 24)
        self._tabs.add(tab)
        try:
            await Session(self._command, tab).run(size)
        finally:
            self._tabs.discard(tab)
        return tab

    async def _close_tabs(self, _: web.Application) -> None:
        closing = (tab.close(code=WSCloseCode.GOING_AWAY) for tab in list(self._tabs))
        await asyncio.gather(*closing)


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    if not isinstance(response, web.WebSocketResponse):
        # The door sees the first request of a connection: there is no second one.
        response.headers["Connection"] = "close"
        response.force_close()


def _is_ours(record: logging.LogRecord) -> bool:
    """Return whether an error is a bug of ours, and not of a client that sent no HTTP."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


def serve(command: Sequence[str], title: str, address: Address) -> int:
    """Serve until ctrl+c; `OSError` names an address that cannot be bound."""
    return asyncio.run(_serve(Site(command, title), address))


@asynccontextmanager
async def serving(site: Site, listening: socket) -> AsyncIterator[None]:
    """Serve a site while the body runs; every connection comes through a `Door`."""
    # Nobody sends a body: there is none to wait for before a connection is closed.
    runner = web.AppRunner(
        site.application(), access_log=None, shutdown_timeout=GRACE + 1, lingering_time=0
    )
    await runner.setup()
    made = runner.server
    assert made is not None
    server = await asyncio.get_running_loop().create_server(lambda: Door(made), sock=listening)
    try:
        yield
    finally:
        server.close()
        await runner.cleanup()


async def _serve(site: Site, address: Address) -> int:
    listening = open_socket(address)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop.set)
    logging.getLogger("aiohttp.server").addFilter(_is_ours)
    async with serving(site, listening):
        here = Address(address.host, listening.getsockname()[1])
        out(f"http://{here}/{site.token}/")
        say("open it in a browser on this machine; ctrl+c ends it")
        await stop.wait()
    return 0
