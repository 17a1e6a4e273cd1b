"""A recording that is there is not lost to the next one."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkascope.proxy.cli import proxy as command
from kafkascope.proxy.recording import watch
from kafkascope.proxy.recording.recorder import Recorder
from tests.kit.proxy import beat, proxied


async def one(recorder: Recorder) -> None:
    async with proxied(recorder=recorder) as proxy:
        await proxy.ask(beat())


def test_a_recording_is_not_overwritten_unless_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "r.pcapng"
    path.write_bytes(b"")  # as mktemp makes it
    asyncio.run(one(Recorder(path)))
    before = path.read_bytes()
    assert before
    again = Recorder(path)
    for _ in range(2):
        with pytest.raises(FileExistsError, match="--overwrite"):
            asyncio.run(one(again))
    assert path.read_bytes() == before
    asyncio.run(one(Recorder(path, overwrite=True)))
    assert path.read_bytes() != before


def test_a_row_of_files_goes_on_behind_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "r.pcapng"
    (tmp_path / "r-0041.pcapng").write_bytes(b"kept")
    for number in (42, 43):
        recorder = Recorder(path, rotate_bytes=1_000_000)
        asyncio.run(one(recorder))
        assert recorder.files == [tmp_path / f"r-{number:04}.pcapng"]
    assert (tmp_path / "r-0041.pcapng").read_bytes() == b"kept"


def test_a_command_that_cannot_start_does_not_wait_for_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    class Printing(subprocess.Popen[bytes]):
        """What prints lines: it ends with its input, and the proxy has the other end of that."""

        def wait(self, timeout: float | None = None) -> int:
            done.append(f"wait {timeout}")
            return super().wait(timeout)

        def kill(self) -> None:
            done.append("kill")
            super().kill()

    def start(*arguments: str) -> Any:
        return Printing(["sleep", "1000"], stdin=subprocess.PIPE)

    monkeypatch.setattr(watch, "start", start)
    path = tmp_path / "r.pcapng"
    path.write_bytes(b"kept")
    said = CliRunner().invoke(command, ["--upstream", "127.0.0.1:1", "-w", str(path)])
    sentence = "the recording exists (--overwrite replaces it)"
    assert said.output == f"kafkascope: {path}: {sentence}\n", said.exception
    assert said.exit_code == 3
    assert done == ["wait 0", "kill", "wait None"]


def test_an_address_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        words = ["--upstream", "127.0.0.1:1", "--listen", taken, "--quiet"]
        said = CliRunner().invoke(command, words)
    assert said.output == f"kafkascope: {taken}: Address already in use\n"
    assert said.exit_code == 3
