"""Two readers of one input, and inputs that are still written."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from kafkascope.captures import Source
from kafkascope.captures.inputs.growing import Pace, being_written

SAMPLE = Path(__file__).parents[3] / "captures" / "samples" / "libraries.pcap"


def _sources(paths: list[Path]) -> tuple[Pace, Source, Source]:
    names = [str(path) for path in paths]
    pace = Pace(len(names) - 1)
    first, second = Source(names), Source(names)
    first.opener, second.opener = pace.first, pace.second
    return pace, first, second


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


def test_both_read_the_same_though_the_file_grows_between_them(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    data = SAMPLE.read_bytes()
    path.write_bytes(data)
    pace, first, second = _sources([path])
    count = _count(first)
    pace.through()
    with path.open("ab") as file:
        file.write(data[24:])
    assert _count(second) == count > 300


def test_a_file_that_is_written_is_followed_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    data = SAMPLE.read_bytes()
    pace, first, second = _sources([path])
    counts: list[int] = []
    with path.open("wb") as file:
        file.write(data[:50_001])  # inside a record
        file.flush()
        reader = threading.Thread(target=lambda: counts.append(_count(first)), daemon=True)
        reader.start()
        again = threading.Thread(target=lambda: counts.append(_count(second)), daemon=True)
        again.start()
        until = time.monotonic() + 60
        while not pace.following:
            assert time.monotonic() < until
            time.sleep(0.01)
        file.write(data[50_001:])
    reader.join(60)
    pace.through()
    again.join(60)
    assert counts[0] == counts[1] == _count(Source([str(SAMPLE)]))
    assert not first.statistics.damage


def test_who_stops_the_first_reader_ends_both_at_the_same_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(SAMPLE.read_bytes())
    pace, first, second = _sources([path, path])
    first.block_bytes = second.block_bytes = 10_000
    blocks = first._blocks()
    seen = len(next(blocks).positions)
    pace.stopped = True
    first.upto = second.upto = pace.begun
    seen += sum(len(block.positions) for block in blocks)
    pace.through()
    found = sum(len(block.positions) for block in second._blocks())
    assert found == seen
    assert 0 < seen < _count(Source([str(path)]))
