"""Child processes that run `kafkascope proxy` and `serve`; they end with this process, too."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import IO, Final

from kafkascope.library.errors import NotStarted

START_S: Final = 90.0
"""Ten times what it takes on two busy cores; so the other."""
END_S: Final = 30.0
REMEMBERED: Final = 200
"""Lines of its stderr."""


class Child:
    """A `kafkascope` of this environment with some arguments, which prints an address when it
    serves. Ends when its stdin does: with `stop`, with this process, or when it is forgotten."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kafkascope", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # ctrl+c is for the program, which then ends us in order
        )
        self._stderr: deque[str] = deque(maxlen=REMEMBERED)
        self._served: Future[str] = Future()
        for pipe, out in ((self._process.stderr, False), (self._process.stdout, True)):
            arguments_ = (pipe, out, self._stderr, self._served)
            threading.Thread(target=_read, args=arguments_, daemon=True).start()
        self._end = weakref.finalize(self, _end, self._process)

    @property
    def stderr(self) -> str:
        """The last lines of its stderr."""
        return "\n".join(self._stderr)

    def address(self) -> str:
        """Return host:port, when it serves; `NotStarted` with what it said instead."""
        address = ""
        with suppress(TimeoutError):
            address = self._served.result(START_S)
        if not address:
            self.stop()
            raise NotStarted(f"it did not start:\n{self.stderr}")
        return address

    def stop(self) -> None:
        """End it, in order if possible; return when it is gone."""
        self._end()


def _read(pipe: IO[str], out: bool, said: deque[str], served: Future[str]) -> None:
    for line in pipe:
        if not out:
            said.append(line.rstrip())
            if " bootstrap.servers " not in line:
                continue
            line = line.rpartition(" ")[2]
        with suppress(InvalidStateError):  # both pipes may say it
            served.set_result(line.strip())
    if out:
        with suppress(InvalidStateError):
            served.set_result("")  # it is over: nobody has to wait for an address any more
    pipe.close()


def _end(process: subprocess.Popen[str]) -> None:
    """End a process: by its stdin first, which lets it write what it has."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    for how in (process.terminate, process.kill):
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S if process.poll() is None else 0)
            return
        how()
    process.wait(END_S)
