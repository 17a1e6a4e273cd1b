"""The processes of a pool: workers are forked, and send what they found through pipes."""

from __future__ import annotations

import gc
import io
import os
import pickle
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from mmap import mmap
from secrets import randbelow
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kafkascope.analyzer.pool.merging import WorkerMerge, sum_of
from kafkascope.analyzer.pool.messages import (
    Placeholders,
    ShapedBlock,
    Work,
    WorkerBatch,
    WorkerSummary,
)
from kafkascope.analyzer.pool.worker import Worker
from kafkascope.captures.model import BEHIND_ALL
from kafkascope.captures.streams.shares import NeedsSingleProcess, Share

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.offline import OpenInput

_SIZES: Final = struct.Struct("<QQ")
"""Bytes of a message, and of the text after it."""
# About what a worker sends of a block; Linux allows no more to everybody.
PIPE_BYTES: Final = 1 << 20
# Blocks that a worker may begin while it is told to stop.
AHEAD: Final = 2
# Milliseconds that a worker waits to be told where to stop; its parent may be gone.
PATIENCE: Final = 5000
_LOW: Final = 10**16


class _Stop:
    """A word that workers and their parent share: the block at which all of them stop."""

    def __init__(self, count: int) -> None:
        self._memory = mmap(-1, 8 * (count + 1))
        self._words = memoryview(self._memory).cast("q")

    def begins(self, worker: int) -> bool:
        """Note that a worker begins its next block; return whether it is to stop before."""
        for _ in range(PATIENCE):
            if self._words[0] >= 0:
                break
            time.sleep(0.001)
        self._words[worker + 1] += 1
        return 0 < self._words[0] < self._words[worker + 1]

    def now(self) -> None:
        """Let all workers stop at the same block, the first that none has begun."""
        self._words[0] = -1  # On a busy machine they may go far before the next line.
        self._words[0] = max(self._words[1:], default=0) + AHEAD


class _Names:
    """Names of topics that the parent knows, in a file that workers read: a pipe could be full, and
    both wait for each other."""

    def __init__(self) -> None:
        self._descriptor, name = mkstemp()
        os.unlink(name)  # noqa: PTH108
        self._parent = os.getpid()
        self._written = self._read = 0

    def write(self, names: dict[bytes, str], *, end: bool = False) -> None:
        """Add the names that are new; `end`: there will be no more."""
        if len(names) > self._written or end:
            new = dict(list(names.items())[self._written :])
            self._written = len(names)
            data = pickle.dumps((new, end))
            os.write(self._descriptor, struct.pack("<Q", len(data)) + data)

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self, all_: bool) -> dict[bytes, str]:
        """Return the names that came since; with `all_`, wait for the last ones."""
        found: dict[bytes, str] = {}
        descriptor = self._descriptor
        while True:
            head = os.pread(descriptor, 8, self._read)
            size = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
            data = os.pread(descriptor, size, self._read + 8)
            if size and len(data) == size:
                self._read += 8 + size
                new, end = pickle.loads(data)
                found |= new
                if end:
                    return found
            elif not all_:
                return found
            elif os.getppid() != self._parent:
                os._exit(1)
            else:
                time.sleep(0.001)


class Pool:
    """Several workers on one input. A context manager: workers end with it. At ctrl+c they end the
    input where they are, as one process does (`interrupted`); at the second one it is raised."""

    def __init__(self, count: int, open_: Callable[[], OpenInput], work: Work) -> None:
        """`open_` opens the input, in each worker anew."""
        placeholders = Placeholders(_LOW + randbelow(_LOW), 2 * _LOW + randbelow(_LOW))
        self.merge = WorkerMerge(count, placeholders, prints=work.shape is not None)
        self.summary: WorkerSummary | None = None
        """Counts of all workers, at the end."""
        self.interrupted = False
        self._stop = _Stop(count)
        self._names = _Names()
        self._pipes: list[BinaryIO] = []
        self._children: list[int] = []
        gc.freeze()
        self._before: Any = signal.getsignal(signal.SIGINT)
        if self._before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._interrupt)
        try:
            for number in range(count):
                share = Share(number, count)
                self._start(lambda share: Worker(open_(), share, placeholders, work), share)
        except OSError:
            self.__exit__()
            raise NeedsSingleProcess from None

    def _start(self, made: Callable[[Share], Worker], share: Share) -> None:
        reader, writer = os.pipe()
        with suppress(ImportError, OSError, AttributeError):
            import fcntl

            # A worker that is ahead goes on while its parent reads from another.
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        child = os.fork()
        if child:
            os.close(writer)
            self._pipes.append(os.fdopen(reader, "rb", 1 << 20))
            self._children.append(child)
            return
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.close(reader)
            for pipe in self._pipes:
                os.close(pipe.fileno())
            # What several would say is said once, by their parent.
            sys.stderr = messages = io.StringIO()
            worker = made(share)
            worker.stop = lambda: self._stop.begins(share.mine)
            worker.learn = self._names.read
            with os.fdopen(writer, "wb") as out:
                for each in worker.run():
                    if isinstance(each, WorkerSummary):
                        each.messages = messages.getvalue().splitlines()
                    _send(out, each)
            code = 0
        finally:
            # Without what the command would do at its end: this is not its process. An exception
            # is told by the one process that reads then.
            os._exit(code)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        gc.unfreeze()
        self._names.close()
        for pipe in self._pipes:
            pipe.close()
        for child in self._children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)

    def _interrupt(self, *_: object) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        self._stop.now()

    def run(self, tick: Callable[[], None]) -> Iterator[ShapedBlock]:
        """Yield what was made of all exchanges, in order; raise `NeedsSingleProcess`. `tick`:
        called after each block."""
        for batches in self._batches():
            yield self.merge.take(batches)
            tick()
        yield self.merge.finish()

    def _batches(self) -> Iterator[list[WorkerBatch]]:
        """Yield what all workers send of each block, to be taken before the next; raise
        `NeedsSingleProcess`."""
        while True:
            found = [_received(pipe) for pipe in self._pipes]
            batches = [each for each in found if isinstance(each, WorkerBatch)]
            summaries = [each for each in found if isinstance(each, WorkerSummary)]
            if len(batches) == len(found):
                yield batches
                end = all(each.watermark == BEHIND_ALL for each in batches)
                self._names.write(self.merge.names.all(), end=end)
            elif len(summaries) == len(found):
                self.summary = sum_of(summaries)
                return
            else:
                raise NeedsSingleProcess

    def conclude(self, capture: OpenInput) -> WorkerSummary:
        """Give an open capture what all workers counted, as if it had been read; return it."""
        merge, summary, context = self.merge, self.summary, capture.context
        assert summary is not None
        capture.source.statistics, capture.damage = summary.statistics, summary.damage
        context.exchanges, context.skipped_bytes = merge.exchanges, summary.skipped_bytes
        context.opaque, context.brokers = summary.opaque, summary.brokers
        context.truncations |= summary.left_out
        context.encrypted.extend(summary.encrypted)
        if summary.key_log and context.keys.log is None:
            # What is inside the input, the workers have read.
            from kafkascope.captures.tls.keys.keylog import KeyLog
            from kafkascope.captures.tls.sources import KeySources

            context.keys = KeySources(KeyLog())
        context.names.learn_all(merge.names.all())
        return summary


def _send(out: BinaryIO, message: WorkerBatch | WorkerSummary) -> None:
    """Write a message. The text of a block, which is most of it, is not copied into the rest."""
    text = b""
    if isinstance(message, WorkerBatch):
        text, message.text = message.text, text
    data = pickle.dumps(message, 5)
    out.write(_SIZES.pack(len(data), len(text)) + data)
    out.write(text)
    out.flush()


def _received(pipe: BinaryIO) -> WorkerBatch | WorkerSummary:
    """Return the next message; raise `NeedsSingleProcess` where a worker is gone."""
    head = pipe.read(_SIZES.size)
    size, text_size = _SIZES.unpack(head) if len(head) == _SIZES.size else (0, 0)
    data, text = pipe.read(size), pipe.read(text_size)
    if not size or len(data) < size or len(text) < text_size:
        raise NeedsSingleProcess
    message: WorkerBatch | WorkerSummary = pickle.loads(data)
    if isinstance(message, WorkerBatch):
        message.text = text
    return message
