"""A disk that fills while the proxy records: traffic goes on, and what was lost is said."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.captures.model import Endpoint
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.recording import direct, sinks
from kafkascope.proxy.recording.recorder import ConnectionTap, Recorder
from tests.kit import proxy as kit
from tests.kit.proxy import echo, produce
from tests.kit.run import run
from tests.kit.wire import MS, START

SIZE = 300_000
COUNT = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder on which a small disk can be mounted, in a namespace of our own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if shutil.which("unshare") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    return folder


def recording(folder: Path, before: str, copied: Path) -> tuple[str, ...]:
    """A program that records to a small disk, and copies what is there in the end."""
    script = (
        f'{before}; {sys.executable} -m kafkascope.proxy.cli "$@" -q --until-eof --control none '
        f"-w {folder}/r.pcapng; cp {folder}/r.pcapng {copied}"
    )
    return ("unshare", "-m", "sh", "-c", script, "sh")


async def test_a_full_disk_is_said_at_once_and_recording_goes_on(
    folder: Path, tmp_path: Path
) -> None:
    copied, free = tmp_path / "copied.pcapng", tmp_path / "free"
    before = (
        f"mount -t tmpfs -o size=8m none {folder}; head -c 7m /dev/zero > {folder}/filler; "
        f"(until [ -e {free} ]; do sleep 0.1; done; rm {folder}/filler) & true"
    )
    program = recording(folder, before, copied)
    async with (
        kit.broker(echo) as up,
        kit.started(tmp_path, "--upstream", up, program=program) as child,
    ):
        stderr = child.process.stderr
        client = await kit.Link.to(child.bootstrap)
        number, said = 0, ""
        line = asyncio.ensure_future(stderr.readline())
        for words in ("No space left on device", "recording continues"):
            while words not in said:
                await client.ask(produce(size=SIZE // 3, correlation_id=number))
                number += 1
                done, _ = await asyncio.wait([line], timeout=0.05)
                if done:
                    said += line.result().decode()
                    line = asyncio.ensure_future(stderr.readline())
            free.touch()
        await client.leave()
        child.process.stdin.close()
        said += (await line).decode() + (await stderr.read()).decode()
        await child.process.wait()
    assert "packets are missing" in said
    listed = run("ls", copied, codes=[0])
    assert "dropped" in listed.stderr
    assert listed.stdout.count("Produce") > 5


# --- A disk without space: it is said at once, recording goes on when there is space  -------------


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SmallDisk:
    return SmallDisk(monkeypatch)


AT_ONCE = Limits(disk_retry_s=0.0)


class Session:
    """A recording of one client."""

    def __init__(self, recorder: Recorder, said: list[str]) -> None:
        self.recorder = recorder
        recorder.start()
        file = recorder.sinks[0]
        file.tell = said.append
        self.said = said
        self._time_ns = START
        tap = recorder.tap(1, Endpoint("10.0.0.4", 40_001), Endpoint("10.0.0.9", 9092), START)
        self._tap: ConnectionTap = tap
        self._number = 0

    def send(self, count: int, size: int) -> None:
        """Record requests with their responses, a few at a time."""
        for _ in range(count):
            asked = produce(size=size, correlation_id=self._number)
            for side, data in ((0, asked), (1, echo(0, 7, asked))):
                self._time_ns += MS
                self._tap.client(side, data, self._time_ns)
            self._number += 1
            self.wait()

    def wait(self) -> None:
        """Wait until all is written or left out."""
        until = time.monotonic() + 20
        while not self.recorder.idle and time.monotonic() < until:
            self.recorder.hurry()
            time.sleep(0.001)

    def end(self) -> list[Any]:
        """End the recording; return its exchanges."""
        self._tap.end(None, "fin", self._time_ns + MS)
        self.recorder.stop()
        with open_capture(self.recorder.files) as capture:
            found = list(capture.exchanges())
            assert capture.damage is None
            self.dropped = capture.source.statistics.dropped
        return found


@pytest.mark.parametrize("size", [400_000, 9000])
@pytest.mark.parametrize("rotate", [0, 1_500_000])
def test_recording_goes_on_when_there_is_space_again(
    disk: SmallDisk, tmp_path: Path, size: int, rotate: int
) -> None:
    session = Session(Recorder(tmp_path / "r.pcapng", rotate_bytes=rotate, limits=AT_ONCE), [])
    file = session.recorder.sinks[0]
    session.send(8, size)
    assert session.said == []
    disk.room = size // 2
    session.send(6, size)
    (sentence,) = session.said
    assert "No space left on device" in sentence
    assert file.full
    missing = file.dropped
    assert 0 < missing < 6 * 2 * -(-size // 65_000) + 12
    assert missing
    disk.room = 1 << 40
    session.send(8, size)
    assert not file.full
    assert "continues" in session.said[1]
    assert f"{missing} packets" in session.said[1]
    found = session.end()
    # The first 8 and the last 8, but for those at the edges.
    numbers = [each.correlation_id for each in found if each.state == "answered"]
    assert set(range(8)) <= set(numbers)
    assert set(range(15, 22)) <= set(numbers)
    assert session.dropped >= missing
    text = b"".join(path.read_bytes() for path in session.recorder.files)
    assert f"{missing} packets of 0 s are missing".encode() in text


def test_a_disk_that_is_full_twice_is_said_twice(disk: SmallDisk, tmp_path: Path) -> None:
    disk.errno = errno.EDQUOT
    session = Session(Recorder(tmp_path / "r.pcapng", limits=AT_ONCE), [])
    for _ in range(2):
        session.send(2, 50_000)
        disk.room = 1000
        session.send(2, 50_000)
        disk.room = 1 << 40
    session.send(2, 50_000)
    assert ["continues" in each for each in session.said] == [False, True, False, True]
    assert session.end()


def test_a_part_that_cannot_be_begun_is_begun_later(disk: SmallDisk, tmp_path: Path) -> None:
    session = Session(Recorder(tmp_path / "r.pcapng", rotate_bytes=300_000, limits=AT_ONCE), [])
    session.send(2, 120_000)
    disk.room = 10
    session.send(3, 120_000)
    disk.room = 1 << 40
    session.send(3, 120_000)
    assert len(session.said) == 2
    numbers = [each.correlation_id for each in session.end() if each.state == "answered"]
    assert {0, 1, 6, 7} <= set(numbers)
    assert [path.name for path in session.recorder.files] == [
        f"r-{number + 1:04}.pcapng" for number in range(len(session.recorder.files))
    ]


def test_another_error_ends_the_recording_and_is_said(disk: SmallDisk, tmp_path: Path) -> None:
    disk.errno = errno.EIO
    session = Session(Recorder(tmp_path / "r.pcapng", limits=AT_ONCE), [])
    session.send(2, 50_000)
    disk.room = 1000
    session.send(2, 50_000)
    disk.room = 1 << 40
    session.send(2, 50_000)
    (sentence,) = session.said
    assert "recording stopped" in sentence
    assert session.recorder.sinks[0].failed
    session.recorder.stop()


class SmallDisk:
    """A disk that takes so many bytes of all files together."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.room = 1 << 40
        self.errno = errno.ENOSPC
        self._writev, self._pwrite, self._pwritev = os.writev, os.pwrite, os.pwritev
        self._truncate = os.ftruncate
        patch.setattr(sinks.os, "writev", lambda fd, parts: self._take(parts, fd, self._writev))
        patch.setattr(direct.os, "pwrite", self._at)
        patch.setattr(direct.os, "pwritev", self._many_at)
        patch.setattr(sinks.os, "ftruncate", self._cut)

    def _some(self, parts: Any) -> bytes:
        data = b"".join(bytes(part) for part in parts)[: self.room]
        if not data:
            raise OSError(self.errno, os.strerror(self.errno))
        self.room -= len(data)
        return data

    def _take(self, parts: Any, descriptor: int, write: Callable[..., int]) -> int:
        return write(descriptor, [self._some(parts)])

    def _at(self, descriptor: int, data: Any, at: int) -> int:
        return self._pwrite(descriptor, self._some([data]), at)

    def _many_at(self, descriptor: int, parts: Any, at: int) -> int:
        return self._pwrite(descriptor, self._some(parts), at)

    def _cut(self, descriptor: int, size: int) -> None:
        self.room += os.fstat(descriptor).st_size - size
        self._truncate(descriptor, size)
