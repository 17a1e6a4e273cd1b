"""A tab and its UI, in a process of its own that speaks the packets of Textual's web driver.

process -> server   "D" size(4) screen    "M" size(4) JSON    a line, when a UI begins
server -> process   "D" size(4) keys      "M" size(4) JSON
page    -> server   ["stdin", text]  ["resize", {"width", "height"}]  ["focus"]  ["blur"]
server  -> page     binary: screen
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import Final

from aiohttp import WSMsgType, web

from kafkascope.analyzer.text import safe

GRACE: Final = 5.0
"""Seconds that a UI has for ending."""
MOST: Final = 1_000
"""Largest number of columns and of lines of a screen."""
KEPT: Final = 8_192
"""Bytes that are kept of the end of stderr."""
UI_BEGINS: Final = b"_"
"""The first letter of the line that Textual's driver writes when it begins."""
LEAVE: Final = "\x1b[?1049l\x1b[H\x1b[2J"


def environment(size: tuple[int, int]) -> dict[str, str]:
    """Return the environment of a UI's process."""
    width, height = size
    return {
        **{name: value for name, value in os.environ.items() if name != "LINES"},
        "TEXTUAL_DRIVER": "kafkascope.tui.web.driver:TabDriver",
        "TEXTUAL_COLOR_SYSTEM": "truecolor",
        "TERM": "xterm-256color",
        "PYTHONUTF8": "1",
        "COLUMNS": str(width),
        "ROWS": str(height),
    }


def measure(value: object, usual: int) -> int:
    """Parse a width or height that a page tells, and limit it."""
    try:
        return max(1, min(MOST, int(str(value))))
    except ValueError:
        return usual


def packet(text: str) -> bytes | None:
    """Return a message of the page as a packet for the driver; None if it is none."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match told:
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


class Session:
    """Runs the UI of a tab until that is closed or the user leaves."""

    def __init__(self, command: Sequence[str], tab: web.WebSocketResponse) -> None:
        self._command = command
        self._tab = tab
        self._said = b""

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
            data = packet(message.data)
            if data is None:
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
        await self._last(self._said.decode("utf-8", "replace"))

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
            self._said = (self._said + data)[-KEPT:]
