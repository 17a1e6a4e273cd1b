"""Live traffic -> capture files: pcapng with TCP around what the clients sent and got.

The event loop only appends to a queue. A thread composes packets and hands them to sinks; each sink
has a bounded queue of its own, so a slow disk or a slow reader loses packets (counted, and seen as
a gap by whoever reads the file), never time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kafkascope.captures.model import Endpoint
from kafkascope.proxy.hub import Hub
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.recording.direct import Part
from kafkascope.proxy.recording.packing import CLOSE, LARGE, OPEN, Packing, TapEvent, preamble
from kafkascope.proxy.recording.sinks import FileSink, PipeSink, Sink

_log = logging.getLogger("kafkascope.proxy")

# With so much in the queue the thread does not wait for more.
HURRY: Final = 2 * 1024 * 1024
BATCH: Final = 1024 * 1024
# Small events after which the thread lets the event loop have the interpreter.
BREATH: Final = 16
BREATH_S: Final = 5e-5


class ConnectionTap:
    """Records one connection; called in the event loop."""

    __slots__ = ("_lost", "_recorder", "number")

    def __init__(self, recorder: Recorder, number: int) -> None:
        self._recorder = recorder
        self._lost: dict[tuple[int, int], int] = {}
        """Leg and side -> bytes that were dropped, which the queue does not know yet."""
        self.number = number

    def client(self, side: int, data: Part, now_ns: int, comment: str = "") -> None:
        """Record bytes of the client's leg, from that side."""
        hub, lease = self._recorder.hub, None
        if len(data) >= LARGE and hub is not None and type(data) is memoryview:
            # Large reads are not copied, but kept where they are.
            lease = hub.lease(data)
        self._put(0, side, data, now_ns, comment, lease)

    def broker(self, side: int, data: bytes, now_ns: int, comment: str = "") -> None:
        """Record a frame of the broker's leg, from that side, where it differs from the
        client's."""
        self._put(1, side, data, now_ns, comment)

    def end(self, side: int | None, how: str, now_ns: int) -> None:
        """Record that a side of the client's leg ended; None: the connection is over."""
        if self._lost:
            self._queue_losses(now_ns)
        self._recorder.put(TapEvent(self.number, CLOSE, side, how, now_ns), 0)

    def _put(
        self, leg: int, side: int, data: Part, now_ns: int, comment: str, lease: Any = None
    ) -> None:
        recorder, size = self._recorder, len(data)
        if lease is None and recorder.full:
            recorder.unqueued += 1
            self._lost[leg, side] = self._lost.get((leg, side), 0) + size
            return
        if self._lost:
            self._queue_losses(now_ns)
        # A frame that was buffered is bytes: no copy is made of it.
        stored = bytes(data) if lease is None else data
        recorder.put(TapEvent(self.number, leg, side, stored, now_ns, comment, lease), size)

    def _queue_losses(self, now_ns: int) -> None:
        lost, self._lost = self._lost, {}
        for (leg, side), size in lost.items():
            self._recorder.put(TapEvent(self.number, leg, side, size, now_ns), 0)


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
        limits: Limits = LIMITS,
    ) -> None:
        """`rotate_*`: begin a new file then; 0: never. `keep_bytes`: of all files together, the
        oldest are deleted; 0: all. A file that is there is not replaced unless `overwrite` (an
        empty one is); a row of files goes on after an earlier one. Without a path only sinks that
        are added get anything."""
        self.limits = limits
        self.path = path
        self.secrets = secrets
        self.hub: Hub | None = None
        self._file: FileSink | None = None
        if path is not None:
            sizes = rotate_bytes, rotate_s, keep_bytes
            self._file = FileSink(path, *sizes, overwrite=overwrite, limits=limits)
        self.sinks: list[Sink] = [] if self._file is None else [self._file]
        """The files and pipes that packets go to; replaced, never changed, once it runs."""
        self._queue: deque[TapEvent] = deque()
        self._put = self._taken = 0
        """Bytes that went into the queue and out of it: one is the loop's, one the thread's."""
        self._copies_put = self._copies_taken = 0
        """Copies among these."""
        self.unqueued = 0
        """Reads, and whole connections, that did not get into the queue."""
        self._filled = threading.Event()
        self._hurry = threading.Event()
        self._over = False
        self._composing = False
        self._broken = False
        """The thread has failed: nobody takes anything out of the queue."""
        self._thread: threading.Thread | None = None
        self._packing = Packing()

    # --- in the event loop

    def tap(
        self, number: int, client: Endpoint, broker: Endpoint, now_ns: int
    ) -> ConnectionTap | None:
        """The tap of a new connection; None while too much is queued."""
        if self.full:
            self.unqueued += 1
            return None
        self.put(TapEvent(number, OPEN, client, broker, now_ns), 0)
        return ConnectionTap(self, number)

    def put(self, event: TapEvent, size: int) -> None:
        if self._broken:
            return
        self._queue.append(event)
        if size:
            self._put += size
            if event.lease is None:
                self._copies_put += size
            if self._put - self._taken > HURRY and not self._hurry.is_set():
                self._hurry.set()
        if not self._filled.is_set():
            self._filled.set()

    @property
    def copies(self) -> int:
        """Bytes in the queue that are copies of what was read."""
        return self._copies_put - self._copies_taken

    @property
    def full(self) -> bool:
        """Whether nothing more is queued until the thread has taken something out."""
        return (
            self.copies > self.limits.queued_bytes or len(self._queue) >= self.limits.queued_events
        )

    @property
    def dropped(self) -> int:
        """Reads that were left out, for what was read before still waits to be written."""
        return self.unqueued + self._packing.lost

    def add_pipe(self, fd: int, name: str = "pipe") -> PipeSink:
        """Also write everything into a pipe, however slow its reader is."""
        sink = PipeSink(fd, name)
        self.sinks = [*self.sinks, sink]
        if self._thread is not None:
            sink.start(preamble())
        return sink

    def remove(self, sink: Sink) -> None:
        """Stop writing into a sink; its owner stops the sink itself."""
        self.sinks = [each for each in self.sinks if each is not sink]

    def hurry(self) -> None:
        """Let the threads write what they have, without waiting for more."""
        self._hurry.set()
        for sink in self.sinks:
            sink.hurry()

    @property
    def idle(self) -> bool:
        written = self._file is None or self._file.idle
        return not (self._queue or self._composing) and written

    @property
    def files(self) -> list[Path]:
        return [] if self._file is None else list(self._file.files)

    def start(self) -> None:
        head = preamble()
        self._packing = Packing()
        if self._file is not None:
            self._file.tell = self._reporter()
        for sink in self.sinks:
            sink.start(head)
        if self._file is not None:
            self._packing.skew = self._file.skew
            self._packing.follows = self._file.rotates
        self._over = self._broken = False
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def _reporter(self) -> Callable[[str], None]:
        """Return what tells people something, at once and from any thread."""
        hub = self.hub
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return _log.warning
        if hub is None:
            return _log.warning

        def report(sentence: str) -> None:
            try:
                loop.call_soon_threadsafe(hub.say, sentence)
            except RuntimeError:  # the loop has ended
                _log.warning("%s", sentence)

        return report

    def stop(self, timeout_s: float = 5.0) -> None:
        """Write what is queued and close the files; not longer than that."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._over = True
        self._filled.set()
        self._hurry.set()
        thread.join(timeout_s)
        for sink in self.sinks:
            sink.stop(timeout_s)

    # --- in the thread

    def _run(self) -> None:
        try:
            self._work()
        except Exception:  # the outermost guard of the thread: it tells
            _log.exception("internal error, recording stopped")
            self._broken, self._composing = True, False
            self._queue.clear()
            for sink in self.sinks:
                sink.failed = sink.failed or "internal error"

    def _work(self) -> None:
        while True:
            self._filled.wait()
            over = self._over
            self._filled.clear()
            self._composing = True
            self._compose()
            self._composing = False
            if over and not self._queue:
                return
            # Gather a little: a write per read would cost more than the composing.
            if not self._over and self._hurry.wait(self.limits.collect_s):
                self._hurry.clear()

    def _compose(self) -> None:
        queue, packing = self._queue, self._packing
        while queue:
            small = 0
            while queue and packing.size < BATCH:
                event = queue.popleft()
                size = len(event.data) if isinstance(event.data, bytes | memoryview) else 0
                self._taken += size
                if event.lease is None:
                    self._copies_taken += size
                packing.add(event)
                del event  # its memory is wanted
                if size < LARGE:
                    small += 1
                    if small % BREATH == 0 and len(queue) < self.limits.queued_events // 2:
                        time.sleep(BREATH_S)
            batch = packing.take()
            if batch.packets:
                for sink in self.sinks:
                    sink.put(batch)
                if self._file is not None:
                    packing.skew = self._file.skew
                if self.hub is not None:
                    self.hub.metrics.add("recorder_bytes_total", "", batch.size)
