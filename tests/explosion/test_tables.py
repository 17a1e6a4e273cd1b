"""Tables of what is little in a capture and much in a table."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from kafkascope.analyzer.export import parquet
from kafkascope.analyzer.pipeline.tables import arrow, collect
from kafkascope.tui.cli import main
from tests.explosion.attacks import write_attack
from tests.explosion.measuring import MEMORY_MB, measured
from tests.explosion.records import fetched_records, large_record
from tests.explosion.turns import write_capture


def test_records_that_are_too_many_for_a_column_are_left_out(tmp_path: Path) -> None:
    # 1 KB of a capture took 1150 MB: a value of a column is held several times.
    path, out = tmp_path / "a.pcapng", tmp_path / "a.parquet"
    write_attack("fetched records", path, factor=2)
    taken = measured(["export", path, "--full", "-o", out])
    assert taken.code == 0, taken.errors
    assert taken.megabytes < MEMORY_MB
    (body,) = pq.read_table(out, columns=["response_json"]).column(0).to_pylist()
    (part,) = json.loads(body)["responses"][0]["partitions"]
    assert "more than 32 MB" in part["records"]["left_out"]


@pytest.mark.parametrize(
    "command", ["export -o OUT --full", "spark -o OUT --engine plain --full --records"]
)
def test_records_that_just_fit_a_column_take_little(command: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    write_capture(path, iter([fetched_records(200_000)]))
    name, *options = command.replace("OUT", str(tmp_path / "out.parquet")).split()
    taken = measured([name, path, *options])
    assert taken.code == 0, taken.errors
    assert taken.megabytes < MEMORY_MB


def test_rows_with_large_bodies_are_written_before_they_are_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(parquet, "BODY_BYTES", 100_000)
    path, out = tmp_path / "a.pcapng", tmp_path / "a.parquet"
    write_capture(path, iter([large_record(50_000)] * 10))
    result = CliRunner().invoke(main, ["export", str(path), "--full", "-o", str(out)])
    assert result.exit_code == 0, result.output
    found = pq.ParquetFile(out)
    assert found.metadata.num_rows == 10
    assert found.metadata.num_row_groups >= 5


def test_records_of_one_exchange_become_columns_before_they_are_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "a.pcapng"
    write_capture(path, iter([fetched_records(5_000)]))
    made = arrow.record_batch
    sizes: list[int] = []

    def noted(rows: list[tuple[object, ...]], schema: object) -> object:
        sizes.append(len(rows))
        return made(rows, schema)

    monkeypatch.setattr(collect, "record_batch", noted)
    out = tmp_path / "out"
    arguments = ["spark", str(path), "-o", str(out), "--engine", "plain", "--records"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert max(sizes) <= collect.ROWS
    files = list((out / "records").rglob("*.parquet"))
    offsets = [n for each in files for n in pq.read_table(each).column("offset").to_pylist()]
    assert len(offsets) == 5_000
