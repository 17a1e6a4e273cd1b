"""Tables of what is little in a capture and much in a table."""

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafkascope.analyzer.pipeline import plain
from kafkascope.analyzer.pipeline.tables import arrow, buffers, collect
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.explosion.attacks import write_attack
from tests.explosion.many import clients, growing_sessions
from tests.explosion.measuring import assert_fits
from tests.explosion.records import fetched_records, large_record
from tests.explosion.turns import fetch, write_capture
from tests.kit.run import run


@pytest.mark.slow
def test_records_that_are_too_many_for_a_column_are_left_out(tmp_path: Path) -> None:
    # 1 KB of a capture took 1150 MB: a value of a column is held several times.
    path, out = tmp_path / "a.pcapng", tmp_path / "a.parquet"
    write_attack("fetched records", path, factor=2)
    assert_fits(["export", path, "--full", "-o", out])
    (body,) = pq.read_table(out, columns=["response_json"]).column(0).to_pylist()
    (part,) = json.loads(body)["responses"][0]["partitions"]
    assert "exceed 32 MB" in part["records"]["left_out"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["export -o OUT --full", "spark -o OUT --engine plain --full --records"]
)
def test_records_that_just_fit_a_column_take_little(command: str, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "a.pcapng", [fetched_records(200_000)])
    name, *options = command.replace("OUT", str(tmp_path / "out.parquet")).split()
    assert_fits([name, path, *options])


def test_rows_with_large_bodies_are_written_before_they_are_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(buffers, "MOST_BYTES", 100_000)
    path, out = tmp_path / "a.pcapng", tmp_path / "a.parquet"
    write_capture(path, [large_record(50_000)] * 10)
    run("export", path, "--full", "-o", out, codes=(0,))
    found = pq.ParquetFile(out)
    assert found.metadata.num_rows == 10
    assert found.metadata.num_row_groups >= 5


def test_records_of_one_exchange_become_columns_before_they_are_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = write_capture(tmp_path / "a.pcapng", [fetched_records(5_000)])
    sizes, out = made_of(monkeypatch, len), tmp_path / "out"
    tabled(path, out, "--records")
    assert 100 < max(sizes) <= collect.ROWS
    files = list((out / "records").rglob("*.parquet"))
    offsets = [n for each in files for n in pq.read_table(each).column("offset").to_pylist()]
    assert len(offsets) == 5_000


def tabled(path: Path, out: Path, *options: str) -> None:
    run("spark", path, "-o", out, "--engine", "plain", *options, codes=(0,))


Rows = list[tuple[object, ...]]


def made_of(monkeypatch: pytest.MonkeyPatch, size: Callable[[Rows], int]) -> list[int]:
    """The size of the rows of each batch of columns, from now on."""
    made, sizes = arrow.record_batch, list[int]()

    def noted(rows: Rows, schema: object) -> object:
        sizes.append(size(rows))
        return made(rows, schema)

    monkeypatch.setattr(buffers, "record_batch", noted)
    return sizes


def test_large_records_of_one_exchange_become_columns_before_they_are_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # 20 records of 10 MB took 1600 MB.
    value = encode_batch([Record(n, 1, None, b"x" * 50_000, ()) for n in range(10)])
    path = write_capture(tmp_path / "a.pcapng", [fetch(1, *[value] * 10)])
    monkeypatch.setattr(buffers, "MOST_BYTES", 100_000)
    sizes = made_of(
        monkeypatch, lambda rows: sum(len(each) for each in chain(*rows) if isinstance(each, str))
    )
    tabled(path, tmp_path / "out", "--records")
    assert sum(sizes) > 5_000_000
    assert max(sizes) < 300_000


def test_row_groups_hold_no_more_bytes_than_a_writer_should(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(buffers, "MOST_BYTES", 100_000)
    monkeypatch.setattr(plain, "GROUP_BYTES", 400_000)
    path = write_capture(tmp_path / "a.pcapng", [large_record(50_000)] * 40)
    tabled(path, tmp_path / "out", "--full")
    (file,) = (tmp_path / "out" / "exchanges").rglob("*.parquet")
    about = pq.ParquetFile(file)
    assert about.metadata.num_rows == 40
    assert 4 <= about.metadata.num_row_groups <= 20
    assert about.read(["number"]).column(0).to_pylist() == list(range(1, 41))


def test_rows_with_long_lists_are_written_before_they_are_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As do texts: each of 16,384 rows may name 2,000 topics."""
    monkeypatch.setattr(buffers, "MOST_BYTES", 100_000)
    monkeypatch.setattr(plain, "GROUP_BYTES", 100_000)
    path, out = tmp_path / "a.pcapng", tmp_path / "a.parquet"
    write_capture(path, [growing_sessions(300)])
    assert run("export", path, "-o", out).exit_code == 0
    tabled(path, tmp_path / "out")
    (file,) = (tmp_path / "out" / "exchanges").rglob("*.parquet")
    for each in map(pq.ParquetFile, (out, file)):
        assert each.metadata.num_row_groups >= 5
        implied = each.read(["implied_topics"]).column(0).to_pylist()
        assert [len(topics) for topics in implied] == [0, *range(1, 300)]


def test_cells_are_added_up_some_of_them_at_a_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = write_capture(tmp_path / "a.pcapng", [clients(300), clients(200)])

    def cells(out: Path) -> list[str]:
        tabled(path, out)
        (file,) = (out / "latency_histogram").rglob("*.parquet")
        return sorted(map(str, pq.read_table(file).to_pylist()))

    whole = cells(tmp_path / "whole")
    assert len(whole) >= 300
    monkeypatch.setattr(collect, "CELLS", 64)
    monkeypatch.setattr(plain, "SUM_ROWS", 50)
    assert cells(tmp_path / "parts") == whole
    (file,) = (tmp_path / "parts" / "latency_histogram").rglob("*.parquet")
    assert pq.ParquetFile(file).metadata.num_row_groups > 5
