"""The Spark engine makes the tables of the plain one, however the work is cut."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from analyzer.spark.engine import Spark
from tests.analyzer.pipeline.kit import check_against_export, made, tables
from tests.analyzer.pipeline.test_follow import LAST, NOW, caught, rotated
from tests.analyzer.pipeline.traffic import files

pytestmark = pytest.mark.xdist_group("spark")

SAMPLES = Path(__file__).parents[2] / "captures" / "samples"


def test_a_folder_of_samples(spark: Any, tmp_path: Path) -> None:
    """Real brokers, one file compressed."""
    expected, _ = made([str(SAMPLES)], tmp_path / "plain", full=True, records=True)
    found, result = made(
        [str(SAMPLES)], tmp_path / "spark", Spark(spark, 3), 400_000, full=True, records=True
    )
    assert found == expected
    assert result.manifest["engine"] == "spark"
    check_against_export(tmp_path / "spark", [str(SAMPLES)])


@pytest.mark.parametrize(("seed", "size", "tasks"), [(11, 2_000, 1), (12, 9_000, 5)])
def test_bad_networks_and_files(
    spark: Any, tmp_path: Path, seed: int, size: int, tasks: int
) -> None:
    (tmp_path / "in").mkdir()
    names = files(seed, tmp_path / "in")
    expected, _ = made(names, tmp_path / "plain")
    found, _ = made(names, tmp_path / "spark", Spark(spark, tasks), size)
    assert found == expected


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_bad_networks(spark: Any, tmp_path: Path, seed: int) -> None:
    test_bad_networks_and_files(spark, tmp_path, seed, 1000 + 97 * seed, 1 + seed % 7)


def test_tasks_index_files_as_one_process_does(spark: Any) -> None:
    from analyzer.pipeline.job import index_all
    from analyzer.spark.stages import index_files

    names = sorted(map(str, SAMPLES.glob("*.pcap*")))
    assert index_files(spark, names, 100_000) == index_all(names, 100_000)


def test_batches_carry_open_connections(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    paths = rotated(3, tmp_path / "in")
    half = len(paths) // 2
    for name, engine in (("plain", None), ("spark", Spark(spark, 3))):
        spool = tmp_path / "spool" / name
        spool.mkdir(parents=True)
        how = {} if engine is None else {"engine": engine}
        for some, rule in ((paths[:half], NOW), (paths[half:], LAST)):
            for path in some:
                shutil.copy(path, spool)
            caught(spool, tmp_path / name, rule, **how)
    expected, found = tables(tmp_path / "plain"), tables(tmp_path / "spark")
    found["captures"] = [row.replace("/spool/spark/", "/spool/plain/") for row in found["captures"]]
    assert found == expected
