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
