"""Programs that tests start: run to their end, waited for, ended; tcpdump while something runs."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")


def run(*command: str | Path, seconds: float = 600.0, **how: Any) -> str:
    """Run a program to its end; what it printed. Raises with the end of that when it failed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, **how)
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:]
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{said}")
    return done.stdout


def until(found: Callable[[], Found], seconds: float = 90.0) -> Found:
    """Return what a function returns, as soon as that is true."""
    end = time.monotonic() + seconds
    while not (value := found()):
        if time.monotonic() > end:
            raise TimeoutError(f"nothing for {seconds:.0f} s")
        time.sleep(0.1)
    return value


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Whether somebody accepts connections there."""
    try:
        socket.create_connection((host, port), 0.5).close()
    except OSError:
        return False
    return True


def ready(process: subprocess.Popen[Any], log: Path, done: Callable[[], object]) -> None:
    """Return when a program serves; else kill it, and raise with the end of its log."""
    try:
        until(lambda: process.poll() is not None or done(), 180.0)
    except TimeoutError:
        process.kill()
        process.wait()
    if process.poll() is not None:
        raise RuntimeError(f"{process.args}:\n{log.read_text(errors='replace')[-3000:]}")


def end(
    process: subprocess.Popen[Any], how: signal.Signals = signal.SIGTERM, seconds: float = 30.0
) -> None:
    """Signal a program and wait for its end; kill it when that does not come."""
    process.send_signal(how)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def running(folder: Path) -> list[str]:
    """The command lines of processes that mention a folder."""
    lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(place.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if str(folder) in line]


@contextmanager
def tcpdump(interface: str, condition: str, *options: str) -> Iterator[list[str]]:
    """Capture while something runs; the lines that it prints are there when it has ended. Raises
    when the kernel dropped packets."""
    # Else it gives up the right to write into our folders.
    root = ("-Z", "root") if os.geteuid() == 0 else ()
    command = ("tcpdump", *root, "-i", interface, *options, condition)
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    assert process.stderr is not None
    lines: list[str] = []
    said = ""
    while "listening on" not in said:
        line = process.stderr.readline()
        if not line:
            raise RuntimeError(f"tcpdump does not capture: {said}")
        said += line
    try:
        yield lines
    finally:
        process.send_signal(signal.SIGINT)
        printed, rest = process.communicate(timeout=120)
        lines += printed.splitlines()
    dropped = re.search(r"(\d+) packets? dropped by kernel", said + rest)
    if dropped and int(dropped[1]):
        raise RuntimeError(f"the capture is not whole: {dropped[0]}")
