"""Parts of a recording are read alone: each begins with what a reader needs. A recording that is
there is not lost to the next one."""

import asyncio
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkascope.captures.model import Endpoint
from kafkascope.proxy.cli import proxy as command
from kafkascope.proxy.recording import watch
from kafkascope.proxy.recording.packing import KEPT, FrameFollower
from kafkascope.proxy.recording.recorder import Recorder
from tests.kit.proxy import beat, echo, produce, proxied
from tests.kit.samples import exchanges_of
from tests.kit.wire import MS, START

CLIENT, BROKER = Endpoint("10.0.0.4", 40_001), Endpoint("10.0.0.9", 9092)
PIECE = 64 << 10


def recorded(folder: Path, size: int, *, rotate: int, keep: int, count: int = 12) -> Recorder:
    """Record a client whose requests have this size, as they come from a socket."""
    recorder = Recorder(folder / "r.pcapng", rotate_bytes=rotate, keep_bytes=keep)
    recorder.start()
    time_ns = START
    tap = recorder.tap(1, CLIENT, BROKER, time_ns)
    for number in range(count):
        asked = produce(size=size, correlation_id=number)
        answer = echo(0, 7, asked)
        for at in range(0, len(asked), PIECE):
            time_ns += MS
            tap.client(0, asked[at : at + PIECE], time_ns)
            if at % (4 * PIECE) == 0 and (size > 1000 or not number % 50):
                while not recorder.idle:
                    recorder.hurry()
                    time.sleep(0.001)
        time_ns += MS
        tap.client(1, answer, time_ns)
    tap.end(None, "fin", time_ns + MS)
    recorder.stop()
    return recorder


@pytest.mark.parametrize("size", [1_000_000, 3_000_000, 900])
def test_parts_without_the_first_one_show_what_was_produced(tmp_path: Path, size: int) -> None:
    count = 12 if size > 1000 else 3500
    recorder = recorded(tmp_path, size, rotate=1_000_000, keep=3_000_000, count=count)
    files = recorder.files
    assert 1 < len(files) <= 4
    assert not (tmp_path / "r-0001.pcapng").exists()
    found = exchanges_of(*files)
    # As many as the files have room for, and the one that their beginning is inside of.
    assert len(found) >= (3_000_000 // size or 1) * 0.5
    # The first response may be one to a request that is gone.
    assert all(each.api == "Produce" or each.state == "orphan" for each in found)
    assert sum(each.state == "orphan" for each in found) <= 1
    found = [each for each in found if each.state != "orphan"]
    assert all(each.client_id for each in found)
    whole = [each for each in found if each.request.frame.cut == ""]
    assert len(whole) >= len(found) - 1
    numbers = [each.correlation_id for each in found]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert numbers[-1] == count - 1
    for path in files:
        assert "Produce" in {each.api for each in exchanges_of(path)}


def test_all_parts_together_are_the_whole(tmp_path: Path) -> None:
    one, parts = tmp_path / "one", tmp_path / "parts"
    one.mkdir()
    parts.mkdir()
    whole = recorded(one, 400_000, rotate=0, keep=0)
    rotated = recorded(parts, 400_000, rotate=1_000_000, keep=0)
    assert len(rotated.files) > 3
    seen = [
        [
            (each.correlation_id, each.request.frame.cut, each.request.frame.size)
            for each in exchanges_of(*recorder.files)
        ]
        for recorder in (whole, rotated)
    ]
    assert seen[0] == seen[1]
    connections = [each.connection for each in exchanges_of(*rotated.files)]
    connection = connections[-1]
    assert connections[0] is connection
    assert connection.retransmissions == (0, 0)
    assert connection.gap_bytes == (0, 0)
    assert connection.bytes == exchanges_of(*whole.files)[-1].connection.bytes


# --- following frames


def test_frames_are_followed_in_any_pieces() -> None:
    data = b"".join(produce(size=size, correlation_id=size) for size in (10, 5000, 70, 3000))
    ends = [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + 4 + int.from_bytes(data[ends[-1] : ends[-1] + 4], "big"))
    for step in (1, 3, 1000, 4000):
        follower, seq = FrameFollower(), 2**32 - 100
        for at in range(0, len(data), step):
            follower.add((seq + at) % 2**32, data[at : at + step])
            reached = min(at + step, len(data))
            begun = max(end for end in ends if end <= reached)
            assert follower.head == data[begun : min(reached, begun + KEPT)]
            assert not follower.head or follower.seq == (seq + begun) % 2**32
    assert not follower.lost


def test_bytes_that_are_missing() -> None:
    data = produce(size=5000)
    follower = FrameFollower()
    follower.add(0, data[:100])
    follower.skip(1000)
    follower.add(1100, data[1100:2000])
    assert follower.head == data[:100]
    follower.skip(len(data) - 2000)
    assert follower.head == b""
    assert not follower.lost
    follower.add(0, data[:100])
    follower.skip(len(data))
    assert follower.lost
    follower.add(0, data[:100])
    assert follower.lost
    follower.add(0, data)
    assert not follower.lost
    follower.add(0, b"\xff" * 10)
    assert follower.lost


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
