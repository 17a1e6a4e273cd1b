"""The processes of a pool: workers are forked, and tell what they found through pipes."""

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
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kafkascope.analyzer.pool.gathering import Gathering, sums_of
from kafkascope.analyzer.pool.messages import Alone, BlockReport, Marks, ShapedBlock, Sums, Work
from kafkascope.analyzer.pool.worker import Worker
from kafkascope.captures.streams.shares import Share, busiest

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.offline import Capture

_SIZES: Final = struct.Struct("<QQ")
"""Bytes of a message, and of the text behind it."""
PIPE_BYTES: Final = 1 << 20
"""About what a worker tells of a block; Linux allows no more to everybody."""
AHEAD: Final = 2
"""Blocks that a worker may begin while it is told to stop."""
PATIENCE: Final = 5000
"""Milliseconds that a worker waits to be told where to stop; its parent may be gone."""
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


class Pool:
    """Several workers on one input. A context manager: workers end with it. At ctrl+c they end the
    input where they are, as one process does (`interrupted`); at the second one it is raised."""

    def __init__(
        self, count: int, names: list[str], open_: Callable[[], Capture], work: Work
    ) -> None:
        """`names`: the files; `open_` opens them, in each worker anew."""
        marks = Marks(_LOW + randbelow(8 * _LOW), f"{_LOW + randbelow(8 * _LOW)}-")
        self.gathering = Gathering(count, marks, work.reshape)
        self.sums: Sums | None = None
        """What all have counted, at the end."""
        self.interrupted = False
        self._stop = _Stop(count)
        self._pipes: list[BinaryIO] = []
        self._children: list[int] = []
        common = busiest(names, count)
        gc.freeze()
        self._before: Any = signal.getsignal(signal.SIGINT)
        if self._before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._interrupt)
        try:
            for number in range(count):
                share = Share(number, count, common)
                self._start(lambda share: Worker(open_(), share, marks, work), share)
        except OSError:
            self.__exit__()
            raise Alone from None

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
            sys.stderr = said = io.StringIO()
            worker = made(share)
            worker.stop = lambda: self._stop.begins(share.mine)
            with os.fdopen(writer, "wb") as out:
                for told in worker.run():
                    if isinstance(told, Sums):
                        told.said = said.getvalue().splitlines()
                    _send(out, told)
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
        self.stop()

    def stop(self) -> None:
        """Let all workers end the input where they are."""
        self.interrupted = True
        self._stop.now()

    def run(self, tick: Callable[[], None]) -> Iterator[ShapedBlock]:
        """Yield what was made of all exchanges, block by block, in order; raise `Alone`. `tick`:
        called behind each block."""
        for told in self.reports():
            yield self.gathering.take(told)
            tick()

    def reports(self) -> Iterator[list[BlockReport]]:
        """Yield what all workers tell of each block; raise `Alone`."""
        while True:
            found = [_received(pipe) for pipe in self._pipes]
            told = [each for each in found if isinstance(each, BlockReport)]
            sums = [each for each in found if isinstance(each, Sums)]
            if len(told) == len(found):
                yield told
            elif len(sums) == len(found):
                self.sums = sums_of(sums)
                return
            else:
                raise Alone

    def conclude(self, capture: Capture) -> Sums:
        """Let an open capture tell what all workers counted, as if it had been read; return it."""
        gathered, sums, context = self.gathering, self.sums, capture.context
        assert sums is not None
        capture.source.statistics, capture.damage = sums.statistics, sums.damage
        context.numbers, context.skipped_bytes = gathered.exchanges, sums.skipped_bytes
        context.opaque, context.brokers = sums.opaque, sums.brokers
        context.beyond |= sums.beyond
        context.encrypted.extend(sums.encrypted)
        if sums.key_log and context.keys.log is None:
            # What is inside the input, the workers have read.
            from kafkascope.captures.tls.keys.keylog import KeyLog
            from kafkascope.captures.tls.sources import KeySources

            context.keys = KeySources(KeyLog())
        context.names.learn_all(gathered.names.all())
        return sums


def _send(out: BinaryIO, told: BlockReport | Sums) -> None:
    """Write a message. The text of a block, which is most of it, is not copied into the rest."""
    text = b""
    if isinstance(told, BlockReport):
        text, told.text = told.text, text
    data = pickle.dumps(told, 5)
    out.write(_SIZES.pack(len(data), len(text)) + data)
    out.write(text)
    out.flush()


def _received(pipe: BinaryIO) -> object:
    """Return the next message; `Alone` from a worker that is gone."""
    head = pipe.read(_SIZES.size)
    if len(head) < _SIZES.size:
        raise Alone
    size, text_size = _SIZES.unpack(head)
    data, text = pipe.read(size), pipe.read(text_size)
    if len(data) < size or len(text) < text_size:
        raise Alone
    told = pickle.loads(data)
    if isinstance(told, BlockReport):
        told.text = text
    return told
