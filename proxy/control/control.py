"""Serves the control channel: JSON lines on a Unix socket (0600), or on stdin and stdout.

docs/control.md is the protocol; `steering` answers requests. Here are sockets, lines, events and
streams.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.dissectors.errors import DissectError
from kafkascope.private import make_private_folder
from kafkascope.proxy import answers
from kafkascope.proxy.control.expecting import Expected, Judges
from kafkascope.proxy.control.live import PacketStreams
from kafkascope.proxy.control.steering import Steering, text_of
from kafkascope.proxy.engine.held import NotHeld
from kafkascope.proxy.limits import LIMITS
from kafkascope.proxy.rules.faults import FaultError

if TYPE_CHECKING:
    from kafkascope.proxy.engine.server import KafkaProxy

EVERY_S: Final = 1.0
SHORTEST_S, LONGEST_S = 0.1, 3600.0
# Changes that come together are sent together.
GATHER_S: Final = 0.05
FLUSH_S: Final = 10.0
HUNG_UP_S: Final = 0.2
# For the last lines of streams when the proxy ends.
STREAM_S: Final = 3.0

REFUSED: Final = (*answers.REFUSED, FaultError, FilterError, DissectError, NotHeld)


def runtime_folder() -> Path:
    """Return the folder of the sockets, private to the user: the first that can be made. Any user
    may make the one in /tmp before us; `OSError` where none is left."""
    folders = list(_folders())
    for folder in folders:
        if _is_ours(folder):
            return folder
    raise OSError(f"other users can access {folders[0]}")


def _folders() -> Iterator[Path]:
    """Yield where the folder may be, the best first; the same for all processes of a user."""
    if base := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(base) / "kafkascope"
    yield Path(tempfile.gettempdir()) / f"kafkascope-{os.getuid()}"
    with contextlib.suppress(RuntimeError):  # a user without a home
        yield Path.home() / ".kafkascope" / "run"


def _is_ours(folder: Path) -> bool:
    """Make a folder, if it is missing; return whether it is ours alone, and no link."""
    try:
        make_private_folder(folder)
        status = folder.lstat()
    except OSError:
        return False
    mine = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return mine and not stat.S_IMODE(status.st_mode) & 0o077


def socket_path(pid: int | None = None) -> Path:
    return runtime_folder() / f"proxy-{pid or os.getpid()}.sock"


def _bound(path: Path) -> socket.socket:
    """Bind a socket for its owner alone, under a name that a dead process, a link or an empty file
    may have. `OSError` where another process listens or another file exists."""
    if path.is_socket() and is_listening(path):
        raise OSError(errno.EADDRINUSE, "another process listens on it", str(path))
    with contextlib.suppress(FileNotFoundError):
        status = path.lstat()
        free = stat.S_ISSOCK(status.st_mode) or stat.S_ISLNK(status.st_mode)
        if not (free or (stat.S_ISREG(status.st_mode) and not status.st_size)):
            raise OSError(errno.EEXIST, "the file exists and is not a socket", str(path))
    # Nobody can connect before it listens; until then it has got its mode and then its name.
    temporary = path.with_name(f".{token_hex(4)}")
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.bind(str(temporary))
        temporary.chmod(0o600)
        temporary.replace(path)
    except OSError as error:
        sock.close()
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    return sock


class Control:
    """Serves requests about one proxy."""

    def __init__(self, proxy: KafkaProxy, stop: Callable[[], None] | None = None) -> None:
        self.proxy = proxy
        self.steering = Steering(proxy, stop)
        self.live = PacketStreams(proxy)
        self.judges = Judges(proxy.schemas.options)
        self._server: asyncio.Server | None = None
        self._sessions: set[asyncio.Task[None]] = set()
        self.streaming: set[asyncio.Task[None]] = set()
        self.path: Path | None = None

    async def listen(self, path: Path) -> None:
        """Serve on a socket; `OSError`, also when a living process has it."""
        sock = _bound(path)
        self._server = await asyncio.start_unix_server(
            self._serve, sock=sock, limit=LIMITS.control_line_bytes
        )
        self.path = path

    async def close(self) -> None:
        """Serve no more; streams get what was recorded for them."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        if self.streaming:
            # Their recorder is over: what it gave them is on its way.
            await asyncio.wait(tuple(self.streaming), timeout=STREAM_S)
        await self.judges.close()
        for task in tuple(self._sessions):
            task.cancel()
        if self._sessions:
            await asyncio.wait(tuple(self._sessions), timeout=5)
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self.path = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._sessions.add(task)
        try:
            await ControlSession(self, reader, writer).run()
        except asyncio.CancelledError:
            writer.transport.abort()  # the proxy ends; whoever does not read is not waited for
        finally:
            self._sessions.discard(task)
            self.streaming.discard(task)
            writer.close()

    async def serve_pipe(self) -> None:
        reader, writer = await answers.standard_pipes()
        await ControlSession(self, reader, writer).run()


@dataclass
class ControlSession:
    """A connection of the control channel."""

    control: Control
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    _watch: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Respond to requests until there are no more; events go on until the other end leaves."""
        try:
            while line := await self.reader.readline():
                if await self._one(line):
                    return
            pipe = self.writer.get_extra_info("pipe")
            sock = self.writer.get_extra_info("socket") if pipe is None else None
            while self._watch is not None and not (sock is None or _hung_up(sock.fileno())):
                # Whoever sends no more may still read: `echo '{"do":"watch"}' | nc -U PATH`.
                if (await asyncio.wait((self._watch,), timeout=HUNG_UP_S))[0]:
                    return
        except (OSError, ValueError):
            pass  # it left, or sent a line without end
        finally:
            if self._watch is not None:
                self._watch.cancel()

    async def _one(self, line: bytes) -> bool:
        """Respond to a line. True: a stream has used the connection up."""
        request, response = answers.read(line)
        stream = None
        if not response:
            try:
                response = answers.response(request, await self._do(request))
                stream = {"capture": self._capture, "exchanges": self._exchanges}.get(request["do"])
            except REFUSED as error:
                response = answers.response(request, error)
        self.writer.write(response)
        await self.writer.drain()
        if stream is not None:
            task: Any = asyncio.current_task()
            self.control.streaming.add(task)
            await stream(request)
        return stream is not None

    async def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the members of the answer to a request; one of `REFUSED`."""
        match request.get("do"):
            case "flush":
                return {"files": await self._flushed()}
            case "expect":
                expected = Expected.of_request(request)
                return await self.control.judges.judge(expected, self._flushed)
            case "watch":
                return self._start_watch(request)
            case "capture" | "exchanges":
                return self._check_stream(request)
            case _:
                return self.control.steering.do(request)

    async def _flushed(self) -> list[str]:
        recorder = self.control.proxy.recorder
        end = time.monotonic() + FLUSH_S
        # Everything about connections is queued by now; the recorder's thread does the rest.
        while recorder is not None and not recorder.idle:
            recorder.hurry()
            if time.monotonic() > end:
                raise ValueError("the recording cannot keep up")
            await asyncio.sleep(0.005)
        return [str(path) for path in recorder.files] if recorder is not None else []

    # --- events

    def _start_watch(self, request: dict[str, Any]) -> dict[str, Any]:
        every = request.get("every", EVERY_S)
        if isinstance(every, bool) or not isinstance(every, int | float) or isnan(every):
            raise ValueError(f"`every` must be seconds, not {every!r}")
        if self._watch is not None:
            self._watch.cancel()
        seconds = min(max(float(every), SHORTEST_S), LONGEST_S)
        self._watch = asyncio.get_running_loop().create_task(self._events(seconds))
        return {}

    async def _events(self, every: float) -> None:
        hub = self.control.proxy.hub
        changed = asyncio.Event()
        hub.watchers.add(changed.set)
        shown = hub.notice_count
        try:
            while True:
                changed.clear()
                new = min(hub.notice_count - shown, len(hub.notices))
                for at_ns, text in list(hub.notices)[len(hub.notices) - new :]:
                    event = {"event": "notice", "at_ns": at_ns, "text": text}
                    self.writer.write(answers.written(event))
                shown = hub.notice_count
                self.writer.write(answers.written(self.control.steering.state()))
                await self.writer.drain()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(every):
                        await changed.wait()
                await asyncio.sleep(GATHER_S)
        except OSError:
            pass  # it left
        finally:
            hub.watchers.discard(changed.set)

    # --- streams

    def _check_stream(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.writer.get_extra_info("pipe") is not None:  # uvloop gives it a "socket", too
            raise ValueError("streams need the control socket")
        if self._watch is not None:
            raise ValueError("this connection is a stream already: use another connection")
        if request.get("filter") is not None:
            from kafkascope.analyzer.filter.language import bind
            from kafkascope.analyzer.filter.saved import spelled

            bind(spelled(text_of(request, "filter")))
        return {}

    async def _capture(self, request: dict[str, Any]) -> None:
        sock = self.writer.get_extra_info("socket")
        sink = self.control.live.add(os.dup(sock.fileno()))
        try:
            while not (sink.failed or sink.ended) and not _hung_up(sock.fileno()):
                await asyncio.sleep(HUNG_UP_S)
        finally:
            await asyncio.shield(self.control.live.remove(sink))

    async def _exchanges(self, request: dict[str, Any]) -> None:
        from kafkascope.proxy.recording.watch import command

        text = request.get("filter")
        arguments = ("--json", *(("-Y", text) if text else ()))
        theirs, ours = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *command(*arguments),
                stdin=theirs,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        sink = self.control.live.add(ours)
        ended = asyncio.get_running_loop().create_task(self._until_hung_up(process))
        try:
            assert process.stdout is not None
            while data := await process.stdout.read(1 << 16):
                self.writer.write(data)
                await self.writer.drain()
        finally:
            ended.cancel()
            await asyncio.shield(self._end(sink, process))

    async def _until_hung_up(self, process: asyncio.subprocess.Process) -> None:
        sock = self.writer.get_extra_info("socket")
        while not _hung_up(sock.fileno()):
            await asyncio.sleep(HUNG_UP_S)
        _kill(process)

    async def _end(self, sink: Any, process: asyncio.subprocess.Process) -> None:
        await self.control.live.remove(sink)
        _kill(process)
        await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def _hung_up(descriptor: int) -> bool:
    """Return whether the peer closed its reading end. A half-closed peer still reads."""
    if descriptor < 0:
        return True
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))


def is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
