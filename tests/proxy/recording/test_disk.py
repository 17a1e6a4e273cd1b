"""A disk that fills while the proxy records: traffic goes on, and what was lost is said."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proxy.kit import broker, connect, echo, produce, read_frame, until

SIZE = 300_000
COUNT = 40


def mountable(folder: Path) -> bool:
    """Whether we may mount a small disk in a namespace of our own."""
    if shutil.which("unshare") is None:
        return False
    script = f"mount -t tmpfs -o size=64k none {folder}"
    return (
        subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True).returncode == 0
    )


def test_a_full_disk_is_said_at_once_and_recording_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mountable(folder):
        pytest.skip("needs the right to mount")
    ready, copied, free = tmp_path / "ready", tmp_path / "copied.pcapng", tmp_path / "free"
    command = f"{sys.executable} -m kafkascope.proxy.cli --listen 127.0.0.1:0 -q --until-eof "
    script = (
        f"mount -t tmpfs -o size=8m none {folder}; head -c 7m /dev/zero > {folder}/filler; "
        f"(until [ -e {free} ]; do sleep 0.1; done; rm {folder}/filler) & "
        f"{command} --control none --upstream $0 -w {folder}/r.pcapng --ready-file {ready}; "
        f"cp {folder}/r.pcapng {copied}"
    )

    async def main() -> str:
        async with broker(echo) as up:
            process = await asyncio.create_subprocess_exec(
                *("unshare", "-m", "sh", "-c", script, str(up)),
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            assert process.stderr is not None
            await until(lambda: ready.exists() and ready.read_text())
            reader, writer = await connect(ready.read_text().strip())
            number, said = 0, ""
            line = asyncio.ensure_future(process.stderr.readline())
            for words in ("No space left on device", "recording continues"):
                while words not in said:
                    writer.write(produce(size=SIZE // 3, correlation_id=number))
                    await read_frame(reader)
                    number += 1
                    done, _ = await asyncio.wait([line], timeout=0.05)
                    if done:
                        said += line.result().decode()
                        line = asyncio.ensure_future(process.stderr.readline())
                free.touch()
            writer.close()
            assert process.stdin is not None
            process.stdin.close()
            said += (await line).decode() + (await process.stderr.read()).decode()
            await process.wait()
            return said

    said = asyncio.run(asyncio.wait_for(main(), 300))
    assert "packets are missing" in said
    done = subprocess.run(
        [sys.executable, "-m", "kafkascope.tui.cli", "ls", str(copied)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "dropped" in done.stderr
    assert done.stdout.count("Produce") > 5


def test_a_disk_that_fills_in_the_middle_loses_packets_not_traffic(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mountable(folder):
        pytest.skip("needs the right to mount")
    ready, copied = tmp_path / "ready", tmp_path / "copied.pcapng"
    command = f"{sys.executable} -m kafkascope.proxy.cli --listen 127.0.0.1:0 -q --until-eof "
    command += "--control none"
    script = (
        f"mount -t tmpfs -o size=1m none {folder}; "
        f"{command} --upstream $0 -w {folder}/r.pcapng --ready-file {ready}; "
        f"cp {folder}/r.pcapng {copied}"
    )

    async def main() -> str:
        async with broker(echo) as up:
            process = await asyncio.create_subprocess_exec(
                *("unshare", "-m", "sh", "-c", script, str(up)),
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            await until(lambda: ready.exists() and ready.read_text())
            reader, writer = await connect(ready.read_text().strip())
            for number in range(COUNT):
                writer.write(produce(size=SIZE, correlation_id=number))
                await read_frame(reader)
            writer.close()
            return (await process.communicate(b""))[1].decode()

    said = asyncio.run(asyncio.wait_for(main(), 300))
    assert "No space left on device" in said
    assert "packets are missing" in said
    # What fitted is there and can be read; only its end is cut.
    done = subprocess.run(
        [sys.executable, "-m", "kafkascope.tui.cli", "ls", str(copied), "--json"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode in (0, 4), done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert 0 < len(found) < COUNT
    assert {exchange["api"] for exchange in found} == {"Produce"}
