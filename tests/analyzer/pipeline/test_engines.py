"""The plain way and the shuffled one make the same tables, and these are what `export` tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analyzer.pipeline.kit import Apart, check_against_export, made

SAMPLES = Path(__file__).parents[3] / "captures" / "samples"


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.pcap*")), ids=lambda path: path.name)
def test_samples(path: Path, tmp_path: Path) -> None:
    expected, _ = made([str(path)], tmp_path / "plain", full=True, records=True)
    check_against_export(tmp_path / "plain", [str(path)])
    found, _ = made(
        [str(path)], tmp_path / "apart", Apart(), size=100_000, full=True, records=True
    )
    assert found == expected
