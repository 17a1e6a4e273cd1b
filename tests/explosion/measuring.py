"""CPU time and peak memory of a command in a process of its own, under limits."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.kit.samples import ROOT

MEMORY_MB: Final = 500
"""What a command may take for any input."""
ADDRESS_BYTES: Final = 8 << 30
"""Protects the machine that measures; far above what is allowed."""
WALL_FACTOR: Final = 8


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


LAUNCHER: Final = """
import json, os, resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]),) * 2)
os.nice(5)
child = subprocess.Popen(sys.argv[3:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
took = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss
os.write(int(os.environ["TOLD"]), json.dumps(took).encode())
"""
"""Between the tests and the command: a process takes over the peak of the one that starts it, and
that of a process with many tests is large."""


def measured(
    arguments: Sequence[str | Path], timeout: int = 120, *, program: str = "kafkascope.tui.cli"
) -> Taken:
    """Run `kafkascope` with these arguments, or another module; its output goes nowhere. The
    limit is CPU time, which a busy machine does not take away; the clock ends what only waits."""
    command = [sys.executable, "-m", program, *map(str, arguments)]
    told, tell = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(ADDRESS_BYTES), str(timeout), *command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(tell,),
        env={**os.environ, "TOLD": str(tell)},
        start_new_session=True,
    )
    os.close(tell)
    timer = threading.Timer(WALL_FACTOR * timeout, lambda: os.killpg(child.pid, signal.SIGKILL))
    timer.start()
    try:
        with os.fdopen(told, "rb") as pipe:
            _, errors = child.communicate()
            took = pipe.read()
    finally:
        timer.cancel()
    code, seconds, kilobytes = json.loads(took) if took else (-signal.SIGKILL, timeout, 0)
    return Taken(code, seconds, kilobytes >> 10, errors.decode("utf-8", "replace"))


def assert_fits(
    arguments: Sequence[str | Path],
    timeout: int = 120,
    *,
    codes: Container[int] = (0,),
    megabytes: int = MEMORY_MB,
) -> Taken:
    """Measure a command, which has to end well and to take little memory."""
    taken = measured(arguments, timeout)
    assert taken.code in codes, taken.errors
    assert taken.megabytes < megabytes
    return taken
