"""The plain way and the shuffled one make the same tables, and these are what `export` tells."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.pipeline import flows
from tests.analyzer.pipeline.kit import Apart, check_against_export, made
from tests.analyzer.pipeline.traffic import files, overlapping
from tests.matrix import each_nth

SAMPLES = Path(__file__).parents[3] / "captures" / "samples"
MORE = {"frames": True, "segments": True}
ALL = {"full": True, "records": True, **MORE}
READS = Path(__file__).parents[1] / "captures" / "slow-reads.pcap.gz"
"""What earlier answers of a connection tell decides about waits."""
SPREAD = ("sasl-old.pcap", "rebalance.pcap", "transactions.pcap", READS.name)


@pytest.mark.parametrize(
    "path", each_nth([*sorted(SAMPLES.glob("*.pcap*")), READS], 3), ids=lambda path: path.name
)
def test_samples(path: Path, tmp_path: Path) -> None:
    expected, _ = made([str(path)], tmp_path / "plain", **ALL)
    check_against_export(tmp_path / "plain", [str(path)])
    apart = Apart(spread=2) if path.name in SPREAD else Apart()
    found, _ = made([str(path)], tmp_path / "apart", apart, size=100_000, **ALL)
    assert found == expected


@given(
    seed=st.integers(0, 1 << 32),
    size=st.integers(300, 20_000),
    tasks=st.integers(1, 4),
    spread=st.sampled_from([0, 0, 1, 3]),
    few=st.sampled_from([2, flows.FEW]),
)
@example(seed=116, size=12_252, tasks=5, spread=0, few=flows.FEW)  # a SYN behind its connection
@example(seed=1292, size=10_000, tasks=1, spread=0, few=flows.FEW)  # an orphan inside a request
@example(seed=2464, size=10_000, tasks=1, spread=0, few=flows.FEW)  # holes in both directions
@example(seed=2960, size=300, tasks=1, spread=0, few=2)  # a client id that is no UTF-8
@settings(max_examples=settings().max_examples // 8)
def test_whatever_happens_on_the_network(
    seed: int, size: int, tasks: int, spread: int, few: int
) -> None:
    with TemporaryDirectory() as folder, mock.patch.object(flows, "FEW", few):
        path = Path(folder)
        (path / "in").mkdir()
        names = files(seed, path / "in")
        expected, result = made(names, path / "plain", size=size, **MORE)
        check_against_export(path / "plain", names)
        found, other = made(names, path / "apart", Apart(tasks, spread=spread), size=size, **MORE)
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
        expected, _ = made(names, path / "plain", size=size)
        check_against_export(path / "plain", names)
        found, _ = made(names, path / "apart", Apart(tasks, spread=seed % 3), size=size)
        assert found == expected
