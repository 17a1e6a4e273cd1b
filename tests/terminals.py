"""The real program in a real terminal (tmux): keys typed, screens read."""

import subprocess
import sys
import time
import uuid
from typing import Self

from tests.interop.needs import need
from tests.kit.samples import ROOT

PROGRAM = f"env -u COLUMNS -u LINES {sys.executable} -P -m kafkascope.tui.cli"
LONG = 120.0
"""Seconds: a busy machine is slow, and nothing is lost by waiting for what comes."""


class Terminal:
    """A tmux server of its own, as long as the block lasts."""

    def __init__(self, command: str, width: int = 160, height: int = 50) -> None:
        need("tmux")
        self._name = f"kafkascope-{uuid.uuid4().hex[:8]}"
        self._command = f"{command}; echo EXIT $?; exec sleep 600"
        self._size = ["-x", str(width), "-y", str(height)]

    def __enter__(self) -> Self:
        self.tmux("new-session", "-d", "-s", "t", *self._size, self._command)
        return self

    def __exit__(self, *failure: object) -> None:
        self.tmux("kill-server")

    def tmux(self, *args: str) -> str:
        """What tmux says to a command."""
        command = ["tmux", "-L", self._name, "-f", "/dev/null", *args]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout

    def screen(self) -> str:
        """What is seen now."""
        return self.tmux("capture-pane", "-t", "t", "-p")

    def wait_for(self, *texts: str, without: str = "\0") -> str:
        """The screen once it has all of these."""
        until = time.monotonic() + LONG
        while True:
            screen = self.screen()
            if all(text in screen for text in texts) and without not in screen:
                return screen
            assert time.monotonic() < until, f"{texts} not in\n{screen}"
            time.sleep(0.1)

    def type(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self.tmux("send-keys", "-t", "t", *keys)

    def write(self, text: str) -> None:
        """Type a text."""
        self.tmux("send-keys", "-t", "t", "-l", text)

    def resize(self, width: int, height: int) -> None:
        """Another size."""
        self.tmux("resize-window", "-t", "t", "-x", str(width), "-y", str(height))
