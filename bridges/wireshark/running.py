"""Captures into Wireshark's pipe until Wireshark wants no more.

A child process writes the packets; this one watches both ends. It goes when the reader of the pipe
has gone, when it gets SIGTERM (Wireshark stops a capture so), or when the child ends.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from kafkascope.analyzer.terminal import say

# For what the child has to do at its end; longer than a proxy waits for answers.
PATIENCE_S: Final = 8.0
MOST_WORDS: Final = 64 * 1024
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
STOPPED: Final = frozenset({0, -signal.SIGTERM, -signal.SIGINT, 130, 141})


class _Stopped(Exception):
    """A signal came."""


def _stop(number: int, frame: object) -> None:
    raise _Stopped


def capture(words: Sequence[str], fifo: str) -> int:
    """Run `kafkascope` with these words, its packets into a pipe; return the exit code. The child's
    stderr is printed only where it failed: Wireshark shows all of it as an error."""
    target = os.open(fifo, os.O_WRONLY)
    # Held open by nobody but us: the child ends with us, however we end.
    own, other = os.pipe()
    command = [sys.executable, "-P", "-m", "kafkascope", *words, "-w", "/dev/stdout"]
    early: list[int] = []
    """Signals that came before there was a child to end."""
    for each in SIGNALS:
        signal.signal(each, lambda number, _: early.append(number))
    child = subprocess.Popen(command, stdin=own, stdout=target, stderr=subprocess.PIPE)
    os.close(own)
    said = bytearray()
    try:
        for each in SIGNALS:
            signal.signal(each, _stop)
        stopped = bool(early) or _watch(child, target, said)
    except _Stopped:
        stopped = True
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    said += _end(child, stopped)
    code = child.returncode
    failed = not stopped and code not in STOPPED
    if failed:
        # Before the pipe is closed: then nobody listens any more.
        say(said[-MOST_WORDS:].decode(errors="replace").strip(), bare=True)
    os.close(other)
    os.close(target)
    return max(code, 1) if failed else 0


def refuse(fifo: str) -> None:
    """Close a pipe without a packet: without a writer its reader would wait for ever."""
    os.close(os.open(fifo, os.O_WRONLY))


def _watch(child: subprocess.Popen[bytes], target: int, said: bytearray) -> bool:
    """Wait until the pipe has no reader (true) or the child ends (false); collect the child's
    stderr."""
    assert child.stderr is not None
    errors = child.stderr.fileno()
    poll = select.poll()
    poll.register(errors, select.POLLIN)
    poll.register(target, 0)  # POLLERR: its reader has gone
    while True:
        ready = dict(poll.poll())
        if errors in ready:
            data = os.read(errors, 1 << 16)
            if not data:
                return False
            said += data
            del said[:-MOST_WORDS]
        elif target in ready:
            return True


def _end(child: subprocess.Popen[bytes], stopped: bool) -> bytes:
    """Wait for the end of the child, and ask for it where it has not come by itself; return its
    last words."""
    if stopped and not _ends(child, 0.0):
        # One that captures ends as it does for people, with what it had not written yet.
        child.send_signal(signal.SIGINT)
    if not _ends(child, PATIENCE_S):
        child.kill()
    _, words = child.communicate()
    return words or b""


def _ends(child: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
