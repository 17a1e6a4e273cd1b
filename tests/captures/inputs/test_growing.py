"""Inputs that are still written, and a reader that is stopped."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from kafkascope.captures.inputs import time_order
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.growing import Pace, being_written
from tests.kit.samples import SAMPLES

SAMPLE = SAMPLES / "libraries.pcap"


def _source(paths: list[Path]) -> tuple[Pace, Source]:
    names = [str(path) for path in paths]
    pace = Pace(len(names) - 1)
    source = Source(names)
    source.opener = pace.open
    return pace, source


def _count(source: Source) -> int:
    return sum(len(block.positions) for block in source.blocks())


def test_the_system_tells_who_writes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.write(b"x")
        file.flush()
        assert being_written(str(path))
    past = time.time() - 1000
    import os

    os.utime(path, (past, past))
    assert not being_written(str(path))
    assert not being_written(str(tmp_path / "nothing"))


def test_a_file_that_is_written_is_followed_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    data = SAMPLE.read_bytes()
    pace, source = _source([path])
    counts: list[int] = []
    with path.open("wb") as file:
        file.write(data[:50_001])  # inside a record
        file.flush()
        reader = threading.Thread(target=lambda: counts.append(_count(source)), daemon=True)
        reader.start()
        until = time.monotonic() + 60
        while not pace.following:
            assert time.monotonic() < until
            time.sleep(0.01)
        file.write(data[50_001:])
    reader.join(60)
    assert counts == [_count(Source([str(SAMPLE)]))]
    assert not source.statistics.damage


def test_who_is_stopped_ends_behind_what_was_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_order, "AHEAD_BYTES", 20_000)
    path = tmp_path / "a.pcap"
    path.write_bytes(SAMPLE.read_bytes())
    pace, source = _source([path, path])
    source.block_bytes = 10_000
    blocks = source._blocks()
    seen = len(next(blocks).positions)
    pace.stopped = True
    source.upto = pace.begun
    seen += sum(len(block.positions) for block in blocks)
    assert pace.begun == 1
    assert 0 < seen < _count(Source([str(path)]))
