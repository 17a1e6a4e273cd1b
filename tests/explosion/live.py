"""The bytes of a capture once more: its clients, and a broker that says what they heard, with a
proxy between them."""

from __future__ import annotations

import asyncio
import contextlib
import re
import resource
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Chunk, Closed
from kafkascope.captures.streams.streams import streams

STALLED_S: Final = 0.3
"""After this time without a byte nobody waits for other members: a proxy may answer in a broker's
place, and other addresses have other lengths."""
MOST_STALLS: Final = 10
"""After so many, a side no longer waits to hear all."""
FULL_S: Final = 2.0
"""A proxy that takes no more connections gives none to the broker."""
READ_BYTES: Final = 1 << 18
LOOKING: Final = 'record.value contains "nowhere" -> delay 1s'
"""A rule that looks into each record, and never acts."""
TRIED_S = 0.05
"""A connection that ends before is one that tries the address."""


class Side:
    """What a client, or the broker, has of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.sent = self.heard = 0
        self.over = self.left = False
        self._stalls = 0
        self._more = asyncio.Event()

    async def listen(self) -> None:
        """Count what comes, until nothing does."""
        try:
            while data := await self._reader.read(READ_BYTES):
                self.heard += len(data)
                self._more.set()
        except asyncio.CancelledError:
            self.left = True
        except OSError:
            pass
        self.over = True
        self._more.set()
        if self.left:
            self._writer.close()

    async def say(self, data: bytes) -> None:
        """Send bytes, as long as the other side takes them."""
        self.sent += len(data)
        with contextlib.suppress(OSError):
            self._writer.write(data)
            await self._writer.drain()

    async def hear(self, other: Side) -> None:
        """Return when all came that the other side said, and its end, or nothing more does."""
        while not self.over and (self.heard < other.sent or other.left):
            if self._stalls >= MOST_STALLS:
                return
            self._more.clear()
            try:
                await asyncio.wait_for(self._more.wait(), STALLED_S)
            except TimeoutError:
                self._stalls += 1
                return

    def leave(self, how: str) -> None:
        """End what this side says, or the connection."""
        self.left = True
        with contextlib.suppress(OSError):
            if how == "fin" and not self.over:
                self._writer.write_eof()
            else:
                self._writer.close()


class Players:
    """Both sides of all connections, which come one after the other."""

    def __init__(self) -> None:
        self._accepted: asyncio.Queue[Side] = asyncio.Queue()
        self._pairs: dict[int, tuple[Side, Side] | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._full = False
        """Whether the proxy takes no more connections."""

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Be a broker; a starting proxy only tries whether there is one."""
        await asyncio.sleep(TRIED_S)
        if reader.at_eof():
            writer.close()
            return
        side = Side(reader, writer)
        self._start(side)
        self._accepted.put_nowait(side)

    async def play(self, path: str, port: int) -> None:
        """Send all that a capture has, each byte behind those that came before it."""
        with open_inputs([path]) as source:
            for event in streams(source):
                if isinstance(event, Chunk):
                    await self._say(event, port)
                elif isinstance(event, Closed):
                    await self._leave(event)
        for pair in self._pairs.values():
            await _over(pair)

    async def _say(self, chunk: Chunk, port: int) -> None:
        key = chunk.connection.number
        if key not in self._pairs:
            self._pairs[key] = await self._connected(port)
        pair = self._pairs[key]
        if pair is not None:
            teller, other = pair if chunk.direction == 0 else pair[::-1]
            await teller.hear(other)
            await teller.say(chunk.data)

    async def _connected(self, port: int) -> tuple[Side, Side] | None:
        if self._full:
            return None
        client = Side(*await asyncio.open_connection("127.0.0.1", port))
        self._start(client)
        try:
            return client, await asyncio.wait_for(self._accepted.get(), FULL_S)
        except TimeoutError:
            self._full = True
            client.leave("refused")
            return None

    async def _leave(self, closed: Closed) -> None:
        key = closed.connection.number
        pair = self._pairs.get(key)
        if closed.direction is None or pair is None:
            await _over(self._pairs.pop(key, None))
            return
        leaver, other = pair if closed.direction == 0 else pair[::-1]
        await leaver.hear(other)
        await other.hear(leaver)
        leaver.leave(closed.how)

    async def leave(self) -> None:
        """End all that still goes on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)

    def _start(self, side: Side) -> None:
        task = asyncio.create_task(side.listen())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _over(pair: tuple[Side, Side] | None) -> None:
    for side, other in (pair, pair[::-1]) if pair else ():
        await side.hear(other)
    for side in pair or ():
        side.leave("end")


async def through_a_proxy(path: str, into: Path, *options: str) -> None:
    """Record a capture anew, by a proxy that prints all exchanges and has a rule."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    players = Players()
    broker = await asyncio.start_server(players.accept, "127.0.0.1")
    upstream = broker.sockets[0].getsockname()[1]
    with TemporaryDirectory() as folder:
        ready = Path(folder, "ready")
        proxy = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kafkascope.tui.cli", "proxy", "--json", "--grace", "1s"),
            *("--upstream", f"127.0.0.1:{upstream}", "--listen", "127.0.0.1:0"),
            *("--fault", LOOKING, "-w", str(into), "--ready-file", str(ready), *options),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            while proxy.returncode is None and not (said := _told(ready)):
                await asyncio.sleep(0.05)
            assert proxy.returncode is None, "the proxy did not start"
            await players.play(path, int(said))
            proxy.send_signal(signal.SIGINT)
            assert await proxy.wait() == 0
        finally:
            if proxy.returncode is None:
                proxy.kill()
                await proxy.wait()
            broker.close()
            await players.leave()


def _told(ready: Path) -> str:
    """Return the port of a proxy that listens."""
    found = re.search(r":(\d+)", ready.read_text()) if ready.exists() else None
    return found[1] if found else ""
