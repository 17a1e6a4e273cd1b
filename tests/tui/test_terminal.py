"""The real program in a real terminal (tmux): keys typed, screens read."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = f"env -u COLUMNS -u LINES {sys.executable} -P -m tui.cli"
DEMO = "captures/samples/demo.pcap"

pytestmark = [
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
    pytest.mark.soak,
]  # waits for a real terminal: too slow for a busy machine


class Terminal:
    """A tmux server of its own."""

    def __init__(self, command: str, width: int, height: int) -> None:
        self.name = f"kafkascope-{uuid.uuid4().hex[:8]}"
        size = ["-x", str(width), "-y", str(height)]
        self.tmux("new-session", "-d", "-s", "t", *size, f"{command}; echo EXIT $?; exec sleep 60")

    def tmux(self, *args: str) -> str:
        command = ["tmux", "-L", self.name, "-f", "/dev/null", *args]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout

    def wait_for(self, text: str, seconds: float = 20.0) -> str:
        until = time.monotonic() + seconds
        while text not in (screen := self.tmux("capture-pane", "-t", "t", "-p")):
            assert time.monotonic() < until, screen
            time.sleep(0.05)
        return screen

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "t", *keys)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    made: list[Terminal] = []
    yield made
    for each in made:
        each.tmux("kill-server")


def test_a_file_on_a_terminal_opens_and_answers_to_keys(terminals: list[Terminal]) -> None:
    terminal = Terminal(f"{PROGRAM} {DEMO}", 160, 50)
    terminals.append(terminal)
    terminal.wait_for("336 exchanges")
    terminal.type("e")
    terminal.wait_for("FindCoordinatorResponse v6")
    terminal.type("/")
    terminal.type("-l", "api == Produce")
    terminal.wait_for("valid, fast")
    terminal.type("Enter")
    terminal.wait_for(" of 336 shown")
    terminal.type("q")
    terminal.wait_for("EXIT 0")


def test_piped_stdin_leaves_the_keyboard_alone(terminals: list[Terminal]) -> None:
    terminal = Terminal(f"cat {DEMO} | {PROGRAM} open -", 80, 24)
    terminals.append(terminal)
    terminal.wait_for("336 exchanges")
    terminal.type("e", "Enter")
    terminal.wait_for("▼ FindCoordinatorResponse v6")
    terminal.type("Q")
    terminal.wait_for("EXIT 0")


def test_an_endless_pipe_is_stopped_by_ctrl_c(terminals: list[Terminal]) -> None:
    terminal = Terminal(f"(cat {DEMO}; sleep 50) | {PROGRAM} open - --plain", 100, 30)
    terminals.append(terminal)
    terminal.wait_for("ctrl+c stops")
    terminal.wait_for("ApiVersions v5")
    terminal.type("C-c")
    terminal.wait_for("stopped")
