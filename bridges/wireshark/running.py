"""Captures into Wireshark's pipe until Wireshark wants no more.

A child process writes the packets; this one watches both ends. It goes when the reader of the pipe
has gone, when it is told to (SIGTERM, as Wireshark stops a capture), or when the child ends.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

LOOK_MS: Final = 200
"""Between two looks at the child and the pipe."""
PATIENCE_S: Final = 8.0
"""For what the child has to do at its end; longer than a proxy waits for answers."""
MOST_WORDS: Final = 64 * 1024
STOPPED: Final = frozenset({0, -signal.SIGTERM, -signal.SIGINT, 130, 141})


class _Stopped(Exception):
    """A signal came."""


def _stop(number: int, frame: object) -> None:
    raise _Stopped


def capture(words: Sequence[str], fifo: str) -> int:
    """Run `kafkascope` with these words, its packets into a pipe; return the exit code. What the
    child said is told only where it failed: Wireshark shows all of it as an error."""
    target = os.open(fifo, os.O_WRONLY)
    # Held open by nobody but us: the child ends with us, however we end.
    own, other = os.pipe()
    command = [sys.executable, "-P", "-m", "kafkascope", *words, "-w", "/dev/stdout"]
    child = subprocess.Popen(command, stdin=own, stdout=target, stderr=subprocess.PIPE)
    os.close(own)
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, _stop)
    said = b""
    asked = False
    try:
        said = _watch(child, target)
    except _Stopped:
        asked = True
    finally:
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        asked |= child.poll() is None
        said += _end(child)
        os.close(other)
        os.close(target)
    code = child.returncode
    if asked or code in STOPPED:
        return 0
    sys.stderr.buffer.write(said[-MOST_WORDS:])
    return code if code > 0 else 1


def refuse(fifo: str) -> None:
    """Close a pipe without a packet: who reads it would wait for ever if nobody opened it."""
    os.close(os.open(fifo, os.O_WRONLY))


def _watch(child: subprocess.Popen[bytes], target: int) -> bytes:
    """Wait until the child ends or nobody reads the pipe; return what the child said."""
    assert child.stderr is not None
    errors = child.stderr.fileno()
    poll = select.poll()
    poll.register(errors, select.POLLIN)
    poll.register(target, 0)  # POLLERR: its reader has gone
    said = b""
    while True:
        for descriptor, event in poll.poll(LOOK_MS):
            if descriptor == target and event & (select.POLLERR | select.POLLHUP):
                return said
            if descriptor == errors:
                data = os.read(errors, 1 << 16)
                if not data:
                    return said
                said = (said + data)[-MOST_WORDS:]


def _end(child: subprocess.Popen[bytes]) -> bytes:
    """End the child, with the time that it needs, and return its last words."""
    if child.poll() is None and not _ends(child, 0.0):
        # One that captures ends as it does for people, with what it had not written yet.
        child.send_signal(signal.SIGINT)
        if not _ends(child, PATIENCE_S):
            child.kill()
    _, said = child.communicate()
    return said or b""


def _ends(child: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
