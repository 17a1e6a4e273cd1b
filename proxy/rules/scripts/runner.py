"""Runs functions of scripts in a thread, each for a second at most."""

from __future__ import annotations

import asyncio
import ctypes
import queue
import threading
from collections.abc import Callable
from typing import Any, Final

MOST_S: Final = 1.0


class TooLong(Exception):
    """A function took too long, and was interrupted."""


class _Interrupt(BaseException):
    """Raised inside of the function that takes too long."""


class Runner:
    """One thread for functions of scripts; another one when a function does not come back."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Any, Any] | None] | None = None
        self._thread: threading.Thread | None = None

    async def run(self, function: Callable[[], Any]) -> Any:
        """Return what a function returns; `TooLong`."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        if self._jobs is None:
            self._jobs = queue.SimpleQueue()
            self._thread = threading.Thread(target=_work, args=(self._jobs,), daemon=True)
            self._thread.start()
        self._jobs.put((function, loop, done))
        try:
            return await asyncio.wait_for(asyncio.shield(done), MOST_S)
        except TimeoutError:
            self._abandon()
            done.add_done_callback(lambda each: each.cancelled() or each.exception())
            raise TooLong from None

    def _abandon(self) -> None:
        """Interrupt the thread at its next step of Python, and leave it."""
        jobs, thread = self._jobs, self._thread
        self._jobs = self._thread = None
        if jobs is None or thread is None or thread.ident is None:
            return
        jobs.put(None)
        number = ctypes.c_ulong(thread.ident)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(_Interrupt))

    def close(self) -> None:
        """Run no more."""
        if self._jobs is not None:
            self._jobs.put(None)
            self._jobs = self._thread = None


def _work(jobs: queue.SimpleQueue[Any]) -> None:
    try:
        while (job := jobs.get()) is not None:
            function, loop, done = job
            try:
                result, error = function(), None
            except Exception as raised:
                result, error = None, raised
            _tell(loop, done, result, error)
    except _Interrupt:
        return  # Whoever waited has gone.


def _tell(loop: Any, done: Any, result: Any, error: Exception | None) -> None:
    def settle() -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        pass  # The loop has ended.
