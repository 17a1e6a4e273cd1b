"""Serves the page and its tabs on a loopback address, until ctrl+c.

All that is served lies below a token, which is in the printed address: there is no cookie that
pages of other ports would get, and no login.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from html import escape
from importlib.resources import files
from pathlib import Path
from socket import socket
from string import Template
from typing import Final

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler

from kafkascope.analyzer.terminal import out, say
from kafkascope.analyzer.text import safe
from kafkascope.proxy.engine.directory import Address, open_socket
from kafkascope.tui.limits import LIMITS
from kafkascope.tui.web.door import Door, refusal

# Seconds that a UI has for ending.
GRACE: Final = 5.0
# Bytes that are kept of the end of stderr.
KEPT: Final = 8_192
UI_BEGINS: Final = b"_"
"""The first letter of the line that Textual's driver writes when it begins."""
LEAVE: Final = "\x1b[?1049l\x1b[H\x1b[2J"


def environment(size: tuple[int, int]) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if name != "LINES"},
        "TEXTUAL_DRIVER": "kafkascope.tui.web.driver:TabDriver",
        "TEXTUAL_COLOR_SYSTEM": "truecolor",
        "TERM": "xterm-256color",
        "PYTHONUTF8": "1",
        **dict(zip(("COLUMNS", "ROWS"), map(str, size), strict=True)),
    }


def measure(value: object, usual: int) -> int:
    """Parse a width or height that a page tells, and limit it."""
    try:
        return max(1, min(LIMITS.terminal_cells, int(str(value))))
    except ValueError:
        return usual


def packet(text: str) -> bytes | None:
    """Return a message of the page as a packet for the driver; None if it is none."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match message:
        case ["stdin", str(keys)]:
            return _framed(b"D", keys.encode("utf-8", "replace"))
        case ["resize", {"width": width, "height": height}]:
            size = {"width": measure(width, 80), "height": measure(height, 24)}
            return _framed(b"M", json.dumps({"type": "resize", **size}).encode())
        case ["focus" | "blur" as what]:
            return _framed(b"M", json.dumps({"type": what}).encode())
    return None


def _framed(kind: bytes, payload: bytes) -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


class BrowserSession:
    """Runs the UI of a tab until that is closed or the user leaves."""

    def __init__(self, command: Sequence[str], tab: web.WebSocketResponse) -> None:
        self._command, self._tab = command, tab
        self._stderr = b""

    async def run(self, size: tuple[int, int]) -> None:
        """Run the UI, and end all of its processes."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=environment(size),
                # Apart from the terminal's ctrl+c; with its readers it can be ended as one.
                start_new_session=True,
            )
        except OSError as error:
            await self._last(f"kafkascope: no process can be started: {error.strerror}")
            return
        showing = asyncio.create_task(self._show(process))
        try:
            await self._type(process)
        finally:
            try:
                await self._end(process)
            finally:
                await showing

    async def _type(self, process: Process) -> None:
        assert process.stdin is not None
        async for message in self._tab:
            if message.type is not WSMsgType.TEXT:
                continue
            if (data := packet(message.data)) is None:
                continue
            process.stdin.write(data)
            try:
                await process.stdin.drain()
            except ConnectionError:
                return  # it has ended; its last words are on the way

    async def _end(self, process: Process) -> None:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(GRACE):
                await process.wait()
        except TimeoutError:
            pass  # it is stuck
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # nothing is left of it
            await process.wait()

    async def _show(self, process: Process) -> None:
        """Send to the tab what the UI draws; close its connection when the UI ends."""
        assert process.stdout is not None
        assert process.stderr is not None
        complaining = asyncio.create_task(self._listen(process.stderr))
        try:
            while True:
                kind = await process.stdout.readexactly(1)
                if kind == UI_BEGINS:
                    await process.stdout.readline()
                    continue
                size = int.from_bytes(await process.stdout.readexactly(4), "big")
                payload = await process.stdout.readexactly(size)
                if kind == b"D":
                    await self._send(payload)
        except asyncio.IncompleteReadError:
            pass
        await complaining
        await self._last(self._stderr.decode("utf-8", "replace"))

    async def _last(self, words: str) -> None:
        """Close the tab's connection, after showing why the UI ended, if that was not the user."""
        if words:
            await self._send((LEAVE + "\r\n".join(map(safe, words.splitlines()))).encode())
        await self._tab.close()

    async def _send(self, data: bytes) -> None:
        try:
            await self._tab.send_bytes(data)
        except ConnectionError:
            pass  # the tab is gone: the UI's last screens are for nobody

    async def _listen(self, stderr: asyncio.StreamReader) -> None:
        while data := await stderr.read(KEPT):
            self._stderr = (self._stderr + data)[-KEPT:]


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
        self._command, self._title = command, title
        self._tabs: set[web.WebSocketResponse] = set()

    def application(self) -> web.Application:
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
        query = request.query
        size = measure(query.get("width"), 80), measure(query.get("height"), 24)
        self._tabs.add(tab)
        try:
            await BrowserSession(self._command, tab).run(size)
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
