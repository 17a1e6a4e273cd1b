"""Live traffic -> capture files: pcapng with TCP around what the clients sent and got.

The event loop only appends to a queue. A thread composes packets and hands them to sinks; each sink
has a bounded queue of its own, so a slow disk or a slow reader loses packets (counted, and seen as
a gap by whoever reads the file), never time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from analyzer.offline import BROKER_LEG
from captures.build import MAX_MSS, Composer
from captures.model import Endpoint
from captures.write import PcapngWriter
from proxy.sinks import FileSink, PipeSink, Sink

if TYPE_CHECKING:
    from proxy.hub import Hub

CLIENT_LEG: Final = "kafkascope: client leg"
MAX_QUEUED: Final = 16 * 1024 * 1024
"""Bytes between the event loop and the thread; more is dropped."""
REST_S: Final = 0.02
"""How long the thread waits for more before it writes what it has."""
MSS: Final = 60_000

OPEN: Final = -1
CLOSE: Final = -2


class _Buffer:
    """What `PcapngWriter` writes into."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.parts.append(data)

    def take(self) -> bytes:
        parts, self.parts = self.parts, []
        return b"".join(parts)


def preamble(link_type: int = 1) -> tuple[bytes, PcapngWriter, _Buffer]:
    """The start of every file: section and the two interfaces."""
    buffer = _Buffer()
    writer = PcapngWriter(buffer)
    writer.interface("client", link_type=link_type, comment=CLIENT_LEG)
    writer.interface("broker", link_type=link_type, comment=BROKER_LEG)
    return buffer.take(), writer, buffer


class ConnectionTap:
    """One connection's way into the recording; called in the event loop."""

    __slots__ = ("_brokers", "_recorder", "number")

    def __init__(self, recorder: Recorder, number: int) -> None:
        self._recorder = recorder
        self.number = number
        self._brokers = False

    def client(self, side: int, data: bytes | memoryview, now_ns: int, comment: str = "") -> None:
        """See `hub.Tap`."""
        self._recorder.put((self.number, 0, side, bytes(data), now_ns, comment), len(data))

    def broker(self, side: int, data: bytes, now_ns: int, comment: str = "") -> None:
        """See `hub.Tap`."""
        self._recorder.put((self.number, 1, side, data, now_ns, comment), len(data))

    def end(self, side: int | None, how: str, now_ns: int) -> None:
        """See `hub.Tap`."""
        self._recorder.put((self.number, CLOSE, side, how, now_ns, ""), 0)


class _Conversation:
    """A connection as it is composed: one TCP stream per leg."""

    def __init__(self, client: Endpoint, broker: Endpoint, isn: int) -> None:
        self.client = client
        self.broker = broker
        self.legs: list[Composer | None] = [None, None]
        self.isn = isn
        self.closed = [False, False]
        self.over = False


class Recorder:
    """Records all connections of a proxy into a file (rotated, limited) and, if wanted, a pipe."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        rotate_bytes: int = 0,
        rotate_s: float = 0,
        keep_bytes: int = 0,
        overwrite: bool = False,
        secrets: bool = False,
    ) -> None:
        """`rotate_*`: begin a new file then; 0: never. `keep_bytes`: of all files together, the
        oldest are deleted; 0: all. A file that is there is not replaced unless `overwrite` (an
        empty one is); a row of files goes on behind an earlier one. Without a path only sinks that are added get anything."""
        self.path = path
        self.secrets = secrets
        self.hub: Hub | None = None
        self._sinks: list[Sink] = []
        if path is not None:
            self._sinks.append(
                FileSink(
                    path,
                    rotate_bytes=rotate_bytes,
                    rotate_s=rotate_s,
                    keep_bytes=keep_bytes,
                    overwrite=overwrite,
                )
            )
        self._queue: deque[tuple[Any, ...]] = deque()
        self._queued = 0
        self._dropped: dict[int, list[int]] = {}
        self.dropped = 0
        """Reads that did not get into the queue."""
        self._wanted = threading.Event()
        self._over = False
        self._composing = False
        self._thread: threading.Thread | None = None
        self._conversations: dict[int, _Conversation] = {}
        self._isn = 1

    # --- in the event loop

    def tap(
        self, number: int, client: Endpoint, broker: Endpoint, now_ns: int
    ) -> ConnectionTap | None:
        """See `hub.Recording`."""
        self.put((number, OPEN, client, broker, now_ns, ""), 0)
        return ConnectionTap(self, number)

    def put(self, what: tuple[Any, ...], size: int) -> None:
        """Queue something; bytes are dropped when there are too many."""
        if size and self._queued > MAX_QUEUED:
            self.dropped += 1
            what = (what[0], what[1], what[2], size, what[4], "")
            size = 0
        # Only the thread takes away, only the loop adds: the sum may be a little off, no more.
        self._queued += size
        self._queue.append(what)
        if not self._wanted.is_set():
            self._wanted.set()

    def add_pipe(self, fd: int, name: str = "pipe") -> PipeSink:
        """Also write everything into a pipe; whoever reads it may be as slow as it likes."""
        sink = PipeSink(fd, name)
        self._sinks = [*self._sinks, sink]
        if self._thread is not None:
            sink.start(preamble()[0])
        return sink

    def remove(self, sink: Sink) -> None:
        """Write into that sink no more; it is stopped by who added it."""
        self._sinks = [each for each in self._sinks if each is not sink]

    @property
    def idle(self) -> bool:
        """Whether all that was queued is in the file, or was dropped."""
        files = (sink for sink in self._sinks if isinstance(sink, FileSink))
        return not (self._queue or self._composing) and all(file.idle for file in files)

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """Where packets go."""
        return tuple(self._sinks)

    @property
    def files(self) -> list[Path]:
        """The files that there are, oldest first."""
        return [path for sink in self._sinks if isinstance(sink, FileSink) for path in sink.files]

    def start(self) -> None:
        """Open the file; `OSError` when that is not possible."""
        head, self._writer, self._buffer = preamble()
        for sink in self._sinks:
            sink.start(head)
        self._over = False
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Write what is queued and close the files; not longer than that."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._over = True
        self._wanted.set()
        thread.join(timeout_s)
        for sink in self._sinks:
            sink.stop(timeout_s)

    # --- in the thread

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            over = self._over
            self._wanted.clear()
            self._composing = True
            self._compose()
            self._composing = False
            if over and not self._queue:
                return
            # Gather a little: a write per read would cost more than the composing.
            if not self._over:
                time.sleep(REST_S)

    def _compose(self) -> None:
        queue, buffer = self._queue, self._buffer
        while queue:
            packets = size = taken = 0
            while queue and size < 1 << 20:
                what = queue.popleft()
                if isinstance(what[3], bytes):
                    taken += len(what[3])
                packets += self._one(what)
                size = sum(map(len, buffer.parts[-4:])) + size
            self._queued -= taken
            data = buffer.take()
            if data:
                for sink in self._sinks:
                    sink.put(data, packets)
                if self.hub is not None:
                    self.hub.metrics.add("recorder_bytes_total", "", len(data))

    def _one(self, what: tuple[Any, ...]) -> int:
        """Compose one event; how many packets that made."""
        number, leg, side, data, now_ns, comment = what
        if leg == OPEN:
            self._isn = (self._isn + 64_000) & 0xFFFF_FFFF
            self._conversations[number] = _Conversation(side, data, self._isn)
            self._composer(self._conversations[number], 0, now_ns)
            return 3
        conversation = self._conversations.get(number)
        if conversation is None or conversation.over:
            return 0
        if leg == CLOSE:
            return self._close(number, conversation, side, data, now_ns)
        if conversation.closed[side] and leg == 0:
            return 0
        composer = self._composer(conversation, leg, now_ns)
        if isinstance(data, int):
            composer.lose(side, data)
            return 0
        packets = composer.send(side, data)
        for packet in packets:
            self._writer.packet(packet, now_ns, interface=leg, comment=comment)
            comment = ""
        return len(packets)

    def _composer(self, conversation: _Conversation, leg: int, now_ns: int) -> Composer:
        composer = conversation.legs[leg]
        if composer is None:
            isn = (conversation.isn, conversation.isn ^ 0x5A5A5A5A)
            a, b = conversation.client, conversation.broker
            if leg:
                # The same ports again would be the same conversation to whoever reads the file.
                a = Endpoint(a.host, a.port ^ 0x8000 or 1)
            composer = Composer(a, b, mss=min(MSS, MAX_MSS), isn=isn)
            conversation.legs[leg] = composer
            for packet in composer.open():
                self._writer.packet(packet, now_ns, interface=leg)
        return composer

    def _close(
        self, number: int, conversation: _Conversation, side: int | None, how: str, now_ns: int
    ) -> int:
        composer = conversation.legs[0]
        assert composer is not None
        packets: list[bytes] = []
        if how == "rst" and not conversation.over and side is not None:
            packets = composer.reset(side)
            conversation.over = True
        else:
            for each in (0, 1) if side is None else (side,):
                if not conversation.closed[each]:
                    conversation.closed[each] = True
                    packets += composer.close(each)
        for packet in packets:
            self._writer.packet(packet, now_ns)
        if side is None or conversation.over:
            other = conversation.legs[1]
            if other is not None:
                for packet in other.close(0) + other.close(1):
                    self._writer.packet(packet, now_ns, interface=1)
            self._conversations.pop(number, None)
        return len(packets)
