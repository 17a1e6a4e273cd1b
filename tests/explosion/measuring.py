"""CPU time and peak memory of a command in a process of its own, under limits."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["MEMORY_MB", "Taken", "measured"]

ROOT: Final = Path(__file__).parents[2]
MEMORY_MB: Final = 500
"""What a command may take for any input."""
ADDRESS_BYTES: Final = 8 << 30
"""Protects the machine that measures; far above what is allowed."""


class Taken(NamedTuple):
    """What a process and its children took."""

    code: int
    seconds: float
    """CPU time."""
    megabytes: int
    """Peak resident memory."""
    errors: str

    @property
    def crashed(self) -> bool:
        return "Traceback" in self.errors or self.code < 0


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    os.nice(5)


def measured(arguments: Sequence[str | Path], timeout: float = 120.0) -> Taken:
    """Run `kafkascope` with these arguments; its output goes nowhere."""
    command = [sys.executable, "-m", "tui.cli", *map(str, arguments)]
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=_limited,
    )
    timer = threading.Timer(timeout, child.kill)
    timer.start()
    try:
        assert child.stderr is not None
        with child.stderr as pipe:
            errors = pipe.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    finally:
        timer.cancel()
    seconds = usage.ru_utime + usage.ru_stime
    text = errors.decode("utf-8", "replace")
    return Taken(child.returncode, seconds, usage.ru_maxrss >> 10, text)
