"""The plain way and the shuffled one make the same tables, and these are what `export` tells."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.analyzer.pipeline.kit import Apart, check_against_export, made
from tests.analyzer.pipeline.traffic import files, overlapping
from tests.matrix import each_nth

SAMPLES = Path(__file__).parents[3] / "captures" / "samples"
MORE = {"frames": True, "segments": True}
ALL = {"full": True, "records": True, **MORE}
READS = Path(__file__).parents[1] / "captures" / "slow-reads.pcap.gz"
"""What earlier answers of a connection tell decides about waits."""
PORTS = (443, 19092)
"""Where a beginning is missing, only its own bytes tell a task what a connection speaks."""


@pytest.mark.parametrize(
    "path", each_nth([*sorted(SAMPLES.glob("*.pcap*")), READS], 3), ids=lambda path: path.name
)
def test_samples(path: Path, tmp_path: Path) -> None:
    expected, _ = made([str(path)], tmp_path / "plain", **ALL)
    check_against_export(tmp_path / "plain", [str(path)])
    found, _ = made([str(path)], tmp_path / "apart", Apart(), size=100_000, **ALL)
    assert found == expected


@given(seed=st.integers(0, 1 << 32), size=st.integers(300, 20_000), tasks=st.integers(1, 5))
@example(seed=116, size=12_252, tasks=5)  # a SYN behind its connection
@example(seed=1292, size=10_000, tasks=1)  # an orphan inside a request
@example(seed=2464, size=10_000, tasks=1)  # holes in both directions
@example(seed=2960, size=300, tasks=1)  # a client id that is no UTF-8
@settings(max_examples=settings().max_examples // 8)
def test_whatever_happens_on_the_network(seed: int, size: int, tasks: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in").mkdir()
        names = files(seed, path / "in")
        options = {**MORE, "decode_as": PORTS}
        expected, result = made(names, path / "plain", size=size, **options)
        check_against_export(path / "plain", names, decode_as=PORTS)
        found, other = made(names, path / "apart", Apart(tasks), size=size, **options)
        assert found == expected
        assert other.damage == result.damage
        assert other.manifest["batch_id"] == result.manifest["batch_id"]


@given(seed=st.integers(0, 1 << 32), size=st.integers(300, 20_000), tasks=st.integers(1, 4))
@settings(max_examples=settings().max_examples // 8)
def test_where_captures_overlap_numbers_are_those_of_ls(seed: int, size: int, tasks: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in").mkdir()
        names = overlapping(seed, path / "in")
        expected, _ = made(names, path / "plain", size=size, decode_as=PORTS)
        check_against_export(path / "plain", names, decode_as=PORTS)
        found, _ = made(names, path / "apart", Apart(tasks), size=size, decode_as=PORTS)
        assert found == expected
