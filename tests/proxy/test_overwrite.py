"""A recording that is there is not lost to the next one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from proxy import KafkaProxy, Recorder
from tests.proxy.kit import HEARTBEAT, broker, connect, echo, read_frame, request


async def one(recorder: Recorder) -> None:
    async with broker(echo) as up, KafkaProxy(str(up), recorder=recorder) as proxy:
        reader, writer = await connect(proxy.bootstrap)
        writer.write(request(HEARTBEAT, 4))
        await read_frame(reader)
        writer.close()


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
