"""Sinks for recorded packets: files and pipes, each with a bounded queue and a thread of its own.

A sink that cannot keep up loses whole packets and counts them; nobody waits for it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from kafkascope.captures.formats.pcapng import ENHANCED_PACKET
from kafkascope.captures.formats.write import dropped_block
from kafkascope.private import PrivateFile, is_special
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.recording.direct import Direct, Part
from kafkascope.proxy.recording.packing import Batch

_log = logging.getLogger("kafkascope.proxy")

# Until a pipe that is full is tried again: then it may be over.
WAIT_MS: Final = 500
# For a reader that takes nothing when it is over; what is left then is for nobody.
LAST_MS: Final = 5000
# Parts in one write; the system allows 1024.
VECTOR: Final = 512
# Of a file's end stays in the page cache. Fresh pages for all of it cost more time than all else
# that recording does, and take them from those who need them.
CACHED: Final = 64 * 1024 * 1024
# Written between two releases of pages.
RELEASE: Final = 8 * 1024 * 1024
# Batches from this size on go past the page cache, while the disk keeps up.
BULK: Final = 256 * 1024

# Errors of a disk, or of a quota, without space.
FULL: Final = {errno.ENOSPC, errno.EDQUOT}

# In a queue: nothing is kept back any longer.
SETTLE: Final = Batch((), 0, 0)


class Sink:
    """Writes blocks of packets in a thread."""

    name = "sink"
    limit = LIMITS.file_queue_bytes
    patience_s = 0.0
    """How long the composing thread may wait for this sink."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.dropped = 0
        """Packets that were lost because this sink was too slow."""
        self.failed = ""
        """Why nothing more is written; empty while all is well."""
        self.full = ""
        """Why nothing is written until there is space again."""
        self.trouble = ""
        self.tell: Callable[[str], None] = _log.warning
        """Called with sentences for people, in the thread of the sink."""
        self.written = 0
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._put = self._done = 0
        """Bytes that were queued, and those that were written or dropped since: one is the
        composer's, one the thread's."""
        self._left_out = 0
        """Bytes that were not queued."""
        self._less = threading.Event()
        self._hangs = False
        self._over = False
        self._thread: threading.Thread | None = None

    def start(self, head: bytes) -> None:
        self._over = False
        self._open(head)
        self._thread = threading.Thread(target=self._run, name=f"{self.name}", daemon=True)
        self._thread.start()

    def put(self, batch: Batch) -> bool:
        if self.patience_s:
            self._wait_for_room(batch.size)
        if self.failed or self._queued + batch.size > self.limit:
            self.dropped += batch.packets
            self._left_out += batch.size
            return False
        self._put += batch.size
        self._queue.put(self._own(batch))
        return True

    def _own(self, batch: Batch) -> Batch:
        return batch

    def _wait_for_room(self, size: int) -> None:
        # What comes waits in the queue before us; but not for a disk that hangs.
        while not (self.failed or self._hangs):
            if self._queued + size <= self.limit:
                return
            self._less.clear()  # before the next look: what is written after it must wake us
            if self._queued + size > self.limit:
                self._hangs = not self._less.wait(self.patience_s)

    @property
    def _queued(self) -> int:
        return self._put - self._done

    @property
    def ended(self) -> bool:
        return self._thread is None

    @property
    def idle(self) -> bool:
        return self._put == self._done and (not self._unsettled or bool(self.failed))

    def hurry(self) -> None:
        """Let the thread write what it keeps back for the next batch."""
        if self._unsettled:
            self._queue.put(SETTLE)

    def stop(self, timeout_s: float) -> None:
        """Write what is queued, then close; wait no longer than that."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._over = True
        if thread.is_alive():
            self._queue.put(None)
            thread.join(timeout_s)

    def _run(self) -> None:
        queue = self._queue
        try:
            while True:
                try:
                    batch = queue.get(timeout=self.limits.settle_s if self._unsettled else None)
                except Empty:
                    self._settle()
                    continue
                if batch is None:
                    return
                if batch is SETTLE:
                    self._settle()
                    continue
                if not self._take(batch):
                    self.dropped += batch.packets
                self._done += batch.size
                self._hangs = False
                self._less.set()
                del batch  # its memory is wanted
        except Exception:  # the outermost guard of the thread: it tells
            _log.exception("internal error, writing stopped")
            self.failed = self.failed or "internal error"
        finally:
            self._settle()
            self._close()
            self._done = self._put

    def _settle(self) -> None:
        try:
            self._finish()
        except OSError as error:
            self._refused(error)

    def _take(self, batch: Batch) -> bool:
        if self.failed:
            return False  # after a packet that was cut nothing can be read
        try:
            self._write(batch)
        except OSError as error:
            self._refused(error)
            return False
        self.written += batch.size
        return True

    def _refused(self, error: OSError) -> None:
        self.failed = self.trouble = self.failed or f"{error.strerror or error}"

    def _open(self, head: bytes) -> None:
        raise NotImplementedError

    def _write(self, batch: Batch) -> None:
        raise NotImplementedError

    @property
    def _unsettled(self) -> bool:
        """Whether bytes are kept back to be written together with what follows."""
        return False

    def _finish(self) -> None:
        """Write the bytes that were kept back."""

    def _close(self) -> None:
        raise NotImplementedError


class FileSink(Sink):
    """Writes a pcapng file, or a row of them: name-0001.pcapng, name-0002.pcapng..."""

    name = "file"
    patience_s = 0.2

    def __init__(
        self,
        path: Path,
        rotate_bytes: int = 0,
        rotate_s: float = 0,
        keep_bytes: int = 0,
        *,
        overwrite: bool = False,
        limits: Limits = LIMITS,
    ) -> None:
        super().__init__(limits)
        self.path = path
        self._overwrite = overwrite
        self._rotate_bytes = rotate_bytes
        self._rotate_s = rotate_s
        self._keep_bytes = keep_bytes
        self._file: PrivateFile | None = None
        self._begun = False
        """The file has no beginning yet, for there was no space."""
        self._number = 0
        self._size = 0
        self._passed = 0
        self._ahead = 0
        """How far the current file is ahead of these."""
        self._taken_back = 0
        """Bytes that were queued, and are in no file."""
        self._sure = 0
        """The file's size up to which all is written."""
        self._ends: list[tuple[int, Batch]] = []
        """Where batches after it end, of which parts may be in memory."""
        self._again_s = self._full_s = 0.0
        """When to try again, and since when there is no space."""
        self._missing = 0
        """Packets that were left out since then."""
        self._since = 0.0
        self._head = b""
        self._released = 0
        self._direct: Direct | None = None
        """Made when there is bulk."""
        self._behind = False
        """The disk does not keep up: the page cache takes what it can."""
        self.files: list[Path] = []
        self._sizes: dict[Path, int] = {}

    @property
    def skew(self) -> int:
        return self._ahead - self._left_out - self._taken_back

    @property
    def rotates(self) -> bool:
        return bool(self._rotate_bytes or self._rotate_s)

    def _open(self, head: bytes) -> None:
        self._head = head
        if self.rotates and not self._number and not self._overwrite:
            self._number = self._last()
        try:
            self._next()
        except OSError:
            self._close()
            raise

    @property
    def _stem(self) -> str:
        return re.sub(r"\.pcapng$", "", self.path.name)

    def _last(self) -> int:
        """The highest number of an earlier row of files, which ours continues."""
        name = re.compile(re.escape(self._stem) + r"-(\d{4,})\.pcapng")
        found = (name.fullmatch(path.name) for path in self.path.absolute().parent.iterdir())
        return max((int(match[1]) for match in found if match is not None), default=0)

    def _next(self, begin: bytes = b"") -> None:
        """Begin a file. `begin`: see `Batch`."""
        self._finish()
        self._close()
        self._number += not self._begun
        self._begun = False
        path = self.path
        if self.rotates:
            path = path.with_name(f"{self._stem}-{self._number:04}.pcapng")
        elif not (self._overwrite or is_special(path)) and path.is_file() and path.stat().st_size:
            raise FileExistsError(
                errno.EEXIST, "the recording exists (--overwrite replaces it)", str(path)
            )
        # Recordings hold what users send: for their owner only. Readers may follow from now on.
        self._file = PrivateFile(path, buffering=0).published()
        descriptor = self._file.file.fileno()
        self._size = self._sure = 0
        self._ends.clear()
        self._released = 0
        self._since = time.monotonic()
        if self.files[-1:] != [path]:
            self.files.append(path)
        if self._direct is not None:
            self._direct.open(descriptor)
        self._begun = True
        self._write_before(self._head + begin)
        self._begun = False
        self._sure = self._size

    def _write_before(self, data: bytes) -> None:
        """Write blocks that are no part of what was composed."""
        if data:
            self._write_plainly((data,))
        self._size += len(data)
        self._ahead = self._size - self._passed

    def _write_plainly(self, parts: tuple[Part, ...]) -> None:
        assert self._file is not None
        descriptor = self._file.file.fileno()
        if self._direct is not None and self._direct.leave():
            os.lseek(descriptor, self._size, os.SEEK_SET)
        write_all(descriptor, parts)

    def _take(self, batch: Batch) -> bool:
        if self.full and time.monotonic() < self._again_s:
            self._leave_out(batch)
            return False
        taken = super()._take(batch)
        if not taken:
            self._leave_out(batch)
        elif self.full:
            self.full = ""
            self.tell(
                f"recording continues at {time.strftime('%H:%M:%S')}: {self._missing} packets "
                f"of {time.monotonic() - self._full_s:.0f} s are missing"
            )
            self._missing = 0
        return taken

    def _leave_out(self, batch: Batch) -> None:
        self._taken_back += batch.size
        self._missing += batch.packets

    def _refused(self, error: OSError) -> None:
        if error.errno not in FULL:
            super()._refused(error)
            self.tell(f"recording stopped: {self.path}: {self.failed}")
            return
        now_s = time.monotonic()
        self._again_s = now_s + self.limits.disk_retry_s
        first = not self.full
        if first:
            self.full = self.trouble = f"{error.strerror}"
            self._full_s = now_s
            self._missing = 0
            self.tell(
                f"recording: {self.path}: {self.full}: paused at {time.strftime('%H:%M:%S')}, "
                "packets are dropped until there is space"
            )
        try:
            self._take_back(whole=not first)
        except OSError as other:
            super()._refused(other)

    def _take_back(self, *, whole: bool) -> None:
        """Let the file end after the last batch that is whole in it, or after the last packet."""
        if self._direct is not None:
            self._direct.close()
        if self._file is None:
            return
        descriptor = self._file.file.fileno()
        written = os.fstat(descriptor).st_size
        while self._ends and self._ends[-1][0] > written:
            _, batch = self._ends.pop()
            self.dropped += batch.packets
            self.written -= batch.size
            self._passed -= batch.size
            self._leave_out(batch)
        self._size = self._ends[-1][0] if self._ends else self._sure
        if not whole:
            size, packets = whole_packets(descriptor, self._size, written)
            self._size += size
            self._passed += size
            self.written += size
            self._taken_back -= size
            self._missing -= packets
            self.dropped -= packets
        self._sure = self._size
        self._ends.clear()
        os.ftruncate(descriptor, self._size)
        os.lseek(descriptor, self._size, os.SEEK_SET)
        self._ahead = self._size - self._passed
        if self._direct is not None:
            self._direct.open(descriptor)

    def _write(self, batch: Batch) -> None:
        if (
            self._begun
            or self._file is None
            or (self._rotate_bytes and self._size + batch.size > self._rotate_bytes)
            or (self._rotate_s and time.monotonic() - self._since >= self._rotate_s)
        ):
            self._next(batch.begin)
            self._prune()
        elif self.full:
            self._write_before(batch.begin)
        assert self._file is not None
        descriptor = self._file.file.fileno()
        if self.full:
            seconds = time.monotonic() - self._full_s
            what = f"{self._missing} packets of {seconds:.0f} s are missing: {self.full}"
            self._write_before(dropped_block(self.dropped, time.time_ns(), what))
        if not (self._past_cache(batch) and self._directly(descriptor, batch)):
            self._write_plainly(batch.parts)
        self._size += batch.size
        self._passed += batch.size
        if self._unsettled:
            self._ends.append((self._size, Batch((), batch.size, batch.packets)))
        else:
            self._sure = self._size
            self._ends.clear()
        self._sizes[self.files[-1]] = self._size
        if self._size - self._released > CACHED + RELEASE:
            self._released = self._size - CACHED
            # Begins to write what is not on the disk yet and lets go what is; does not wait.
            with contextlib.suppress(OSError):
                os.posix_fadvise(descriptor, 0, self._released, os.POSIX_FADV_DONTNEED)

    def _past_cache(self, batch: Batch) -> bool:
        """Whether a batch should go past the page cache: not small ones, and no bursts."""
        if self._queued > self.limit // 2:
            self._behind = True
        elif self._queued <= batch.size:
            self._behind = False
        # An open file that we were given may be in use by others, at an offset of its own.
        ours = self._file is not None and self._file.is_new
        return ours and batch.size >= BULK and not self._behind

    def _directly(self, descriptor: int, batch: Batch) -> bool:
        if self._direct is None:
            self._direct = Direct()
            self._direct.open(descriptor)
        return self._direct.usable and self._direct.write(batch.parts, self._size, batch.starts)

    @property
    def _unsettled(self) -> bool:
        return self._direct is not None and not self._direct.settled

    def _finish(self) -> None:
        if self._direct is not None:
            self._direct.settle()
        self._sure = self._size
        self._ends.clear()

    def _prune(self) -> None:
        while (
            self._keep_bytes
            and len(self.files) > 1
            and sum(self._sizes.values()) + self._rotate_bytes > self._keep_bytes
        ):
            oldest = self.files.pop(0)
            self._sizes.pop(oldest, None)
            oldest.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._direct is not None:
            self._direct.close()
        if self._file is not None:
            self._file.close()
            self._file = None


def whole_packets(descriptor: int, start: int, end: int) -> tuple[int, int]:
    """Return the bytes and the number of the packets that are whole between two offsets of a
    file."""
    at, packets = start, 0
    with contextlib.suppress(OSError):
        reader = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)
        try:
            while len(head := os.pread(reader, 8, at)) == 8:
                size = int.from_bytes(head[4:], "little")
                if not size or at + size > end:
                    break
                at += size
                packets += head[0] == ENHANCED_PACKET
        finally:
            os.close(reader)
    return at - start, packets


class PipeSink(Sink):
    """Writes to a process that reads the packets while they come."""

    name = "pipe"
    limit = LIMITS.pipe_queue_bytes

    def __init__(self, fd: int, name: str = "pipe") -> None:
        super().__init__()
        self.name = name
        self._fd = fd

    def _own(self, batch: Batch) -> Batch:
        # A reader that takes nothing must not keep the memory that all sinks are fed from.
        return Batch((b"".join(batch.parts),), batch.size, batch.packets)

    def _open(self, head: bytes) -> None:
        os.set_blocking(self._fd, False)
        self.put(Batch((head,), len(head), 0))

    def _write(self, batch: Batch) -> None:
        write_all(self._fd, batch.parts, self._wait)

    def _wait(self) -> None:
        poll = select.poll()  # select() knows the first 1024 descriptors only
        poll.register(self._fd, select.POLLOUT)
        if self._over and not poll.poll(LAST_MS):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        poll.poll(WAIT_MS)

    def _close(self) -> None:
        os.close(self._fd)


def write_all(
    descriptor: int, parts: tuple[Part, ...], wait: Callable[[], None] | None = None
) -> None:
    """Write all parts; `wait` when a descriptor that does not block takes no more."""
    at, rest = 0, list(parts)
    while at < len(rest):
        group = rest[at : at + VECTOR]
        try:
            written = os.writev(descriptor, group)
        except BlockingIOError:
            if wait is None:
                raise
            wait()
            continue
        for part in group:
            if written < len(part):
                rest[at] = memoryview(part)[written:]
                break
            written -= len(part)
            at += 1
