"""Copies of a capture that complete each other make the tables of the whole, in every engine."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures.inputs.files import Source
from tests.analyzer.pipeline.kit import MORE, exchanges, made, made_alike
from tests.kit.captures import Tape
from tests.kit.samples import SAMPLES
from tests.kit.traffic import bursts, files, in_order, tape, written
from tests.kit.wire import MS

OTHER = {"exchange_id", "file_id", "record_offset", "batch_id"}
"""Columns that tell which file an exchange came from."""


def copies(rng: Random, frames: list[tuple[int, bytes]], folder: Path, shift_ns: int) -> list[str]:
    """Two captures of the frames, of which each lacks some that the other one has."""
    parts = Tape(), Tape()
    for time_ns, frame in frames:
        kept = rng.choices(("both", 0, 1), (9, 1, 1))[0]
        for number, part in enumerate(parts):
            if kept in ("both", number):
                part.frames.append((time_ns + number * shift_ns, frame))
    names = []
    for name, part in zip("ab", parts, strict=True):
        path = folder / f"{name}.pcap"
        path.write_bytes(part.pcap())
        names.append(str(path))
    return names


def rows(out: Path) -> list[dict[str, Any]]:
    found = sorted(exchanges(out), key=lambda row: row["number"])
    return [{name: each for name, each in row.items() if name not in OTHER} for row in found]


@given(
    seed=st.integers(0, 1 << 32),
    shift_ns=st.integers(-3_000 * MS, 3_000 * MS),
    size=st.integers(300, 20_000),
    tasks=st.integers(1, 4),
)
@settings(max_examples=settings().max_examples // 8)
def test_whatever_happens_on_the_network(seed: int, shift_ns: int, size: int, tasks: int) -> None:
    """The engines agree about any copies, whatever these lack."""
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in").mkdir()
        names = copies(Random(seed), tape(seed).frames, path / "in", shift_ns)
        more = files(seed + 1, path / "in") if seed % 3 == 0 else []
        made_alike([*names, *more], path, tasks, size=size, **MORE)


@pytest.mark.parametrize("name", ["aiokafka.pcap", "rebalance.pcap", "transactions.pcap"])
@pytest.mark.parametrize("shift_ns", [0, 3 * MS, -4_000 * MS])
def test_copies_have_the_rows_of_the_whole(name: str, shift_ns: int, tmp_path: Path) -> None:
    with Source([str(SAMPLES / name)]) as source:
        frames = [(each.time_ns, each.data) for each in source.packets()]
        link_type = source.interfaces()[0].link_type
    whole = Tape()
    whole.frames = frames
    (tmp_path / "whole.pcap").write_bytes(whole.pcap(link_type=link_type))
    made([str(tmp_path / "whole.pcap")], tmp_path / "expected")
    names = copies(Random(name), frames, tmp_path, shift_ns)
    for path in map(Path, names):
        data = path.read_bytes()
        path.write_bytes(data[:20] + link_type.to_bytes(4, "little") + data[24:])
    made_alike(names, tmp_path)
    for how in ("plain", "apart"):
        assert rows(tmp_path / how) == rows(tmp_path / "expected")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_files_that_are_not_in_the_order_of_time(seed: int, tmp_path: Path) -> None:
    """The engines agree, and what is read is what the file in order holds."""
    (tmp_path / "in").mkdir()
    frames = in_order(seed)
    shuffled = written(bursts(frames, 400 * MS), tmp_path / "in" / "a.pcap")
    second = written(
        [(at + 60_000 * MS, frame) for at, frame in frames], tmp_path / "in" / "b.pcap"
    )
    names = [shuffled, second]
    made_alike(names, tmp_path, size=3_000, **MORE)
