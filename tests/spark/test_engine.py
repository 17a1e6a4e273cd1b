"""The Spark engine makes the tables of the plain one, however the work is cut."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.seen_schemas import seen_in
from kafkascope.analyzer.spark.engine import Spark
from kafkascope.schemas.known import KnownSchemas
from tests.analyzer.pipeline import kit
from tests.analyzer.pipeline.decoded import records, run, table
from tests.kit.samples import SAMPLES
from tests.kit.schemas import capture, folder
from tests.kit.traffic import files


def test_a_folder_of_samples(spark: Any, tmp_path: Path) -> None:
    """Real brokers, one file compressed."""
    expected, _ = kit.made([str(SAMPLES)], tmp_path / "plain", **kit.ALL)
    engine = Spark(spark, 3, few=0)
    found, result = kit.made([str(SAMPLES)], tmp_path / "spark", engine, 400_000, **kit.ALL)
    assert found == expected
    assert result.manifest["engine"] == "spark"
    kit.check_against_export(tmp_path / "spark", [str(SAMPLES)])


@pytest.mark.parametrize(
    "few",
    [pytest.param(0, id="on Spark"), pytest.param(1 << 20, id="here", marks=pytest.mark.soak)],
)
def test_a_selection(spark: Any, tmp_path: Path, few: int) -> None:
    wanted = {**kit.ALL, "filter": 'topic contains "o" or error'}
    expected, _ = kit.made([str(SAMPLES)], tmp_path / "plain", **wanted)
    found, _ = kit.made(
        [str(SAMPLES)], tmp_path / "spark", Spark(spark, 3, few=few), 400_000, **wanted
    )
    assert found == expected


@pytest.mark.parametrize(("seed", "size", "tasks"), [(11, 2_000, 1), (12, 9_000, 5)])
def test_bad_networks_and_files(
    spark: Any, tmp_path: Path, seed: int, size: int, tasks: int
) -> None:
    (tmp_path / "in").mkdir()
    names = files(seed, tmp_path / "in")
    options = {**kit.MORE, "decode_as": kit.PORTS}
    expected, _ = kit.made(names, tmp_path / "plain", **options)
    found, _ = kit.made(names, tmp_path / "spark", Spark(spark, tasks, few=0), size, **options)
    assert found == expected


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_bad_networks(spark: Any, tmp_path: Path, seed: int) -> None:
    test_bad_networks_and_files(spark, tmp_path, seed, 1000 + 97 * seed, 1 + seed % 7)


def test_tasks_index_files_as_one_process_does(spark: Any) -> None:
    from kafkascope.analyzer.pipeline.job import Engine
    from kafkascope.analyzer.spark.stages import STRETCHES, index_files

    names = sorted(map(str, SAMPLES.glob("*.pcap*")))
    part = 30_000
    one, many = Engine().index(names, part), index_files(spark, names, part)
    walked = 0
    for name, mine, theirs in zip(names, one, many, strict=True):
        size = Path(name).stat().st_size
        if mine.compressed or size < STRETCHES * part:
            assert mine == theirs
            continue
        # Many walk at once, and cut where they begin.
        walked += 1
        assert replace(mine, splits=[]) == replace(theirs, splits=[])
        assert len(theirs.splits) == -(-size // part)
    assert walked


def test_batches_carry_open_connections(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    paths = kit.rotated(3, tmp_path / "in")
    half = len(paths) // 2
    for name, engine in (("plain", None), ("spark", Spark(spark, 3, few=0))):
        spool = tmp_path / "spool" / name
        spool.mkdir(parents=True)
        how = {} if engine is None else {"engine": engine}
        for some, rule in ((paths[:half], kit.NOW), (paths[half:], kit.LAST)):
            for path in some:
                shutil.copy(path, spool)
            kit.caught(spool, tmp_path / name, rule, **how)
    expected, found = kit.tables(tmp_path / "plain"), kit.tables(tmp_path / "spark")
    found["captures"] = [row.replace("/spool/spark/", "/spool/plain/") for row in found["captures"]]
    assert found == expected


# --- workers decode keys and values by schemas that the driver sends them -------------------------


def test_schemas_of_a_folder(spark: Any, tmp_path: Path) -> None:
    path, schemas = capture("bad-schemas"), folder("bad-schemas")
    run(path, tmp_path / "out", KnownSchemas(schemas), Spark(spark, 3))
    assert table(tmp_path / "out") == records(path, KnownSchemas(schemas))


def test_schemas_of_the_capture_itself(spark: Any, tmp_path: Path) -> None:
    path = capture("protobuf-json-schemas-topic")

    def known() -> KnownSchemas:
        return KnownSchemas(complete=lambda: seen_in([path]).schemas())

    run(path, tmp_path / "out", known(), Spark(spark, 3))
    found = table(tmp_path / "out")
    assert found == records(path, known())
    assert any(row[8] for row in found)
