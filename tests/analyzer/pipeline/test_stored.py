"""Tables in the place of captures; and `export` to Parquet."""

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafkascope.analyzer.pipeline.tables.schemas import EXCHANGES, RECORDS
from kafkascope.analyzer.statistics.journeys.applications import Applications
from tests.analyzer.pipeline.kit import COMMANDS, made, rows_of
from tests.kit.run import lines_of, run
from tests.kit.samples import CAUSES, SAMPLES

FEW = ("rebalance.pcap", "sasl-old.pcap", "transactions.pcap", "zookeeper.pcap")
"""Some samples that are read fast and have what the commands tell of."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("stored")
    made([str(SAMPLES / "sasl-old.pcap")], out)
    return out


@pytest.fixture(
    scope="module",
    params=[pytest.param(FEW, id="few"), pytest.param((), id="all", marks=pytest.mark.slow)],
)
def captured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A folder of samples, and one of their tables."""
    folder, out = (tmp_path_factory.mktemp(name) for name in ("samples", "tables"))
    for path in SAMPLES.glob("*.pcap*"):
        if not request.param or path.name in request.param:
            (folder / path.name).symlink_to(path)
    made([str(folder)], out)
    return folder, out


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_say_the_same_of_tables(
    words: tuple[str, ...], captured: tuple[Path, Path]
) -> None:
    folder, tables = captured
    theirs = run(*words, str(folder), "--json")
    ours = run(*words, str(tables), "--json")
    assert ours.exit_code == theirs.exit_code == 0
    assert lines_of(ours) == lines_of(theirs)
    assert ours.stdout


def test_causes_and_consequences_of_tables_are_those_of_the_capture(tmp_path: Path) -> None:
    source, out = CAUSES / "broker-down-java.pcap.gz", tmp_path / "tables"
    made([str(source)], out)
    told = [run("check", str(each), "--fail-on", "never", "--json") for each in (source, out)]
    theirs, ours = map(lines_of, told)
    assert ours == theirs
    cause, *consequences = ours
    assert (cause["name"], cause["because"]) == ("broker-down", [])
    assert cause["key"] == "broker-down broker=127.0.0.1 node=1"
    assert [each["because"] for each in consequences] == [[cause["id"]]]
    blocks = [run("check", str(each), "--fail-on", "never").stdout for each in (source, out)]
    assert "consequences: 1 request without response" in blocks[0]
    assert blocks[0].replace(str(source), "INPUT") == blocks[1].replace(str(out), "INPUT")


def test_the_report_of_tables_is_that_of_the_capture(tmp_path: Path) -> None:
    source, out = SAMPLES / "sasl.pcap", tmp_path / "made-of-sasl"
    made([str(source)], out)
    reports = []
    for name in (source, out):
        path = tmp_path / "report.md"
        assert run("report", str(name), "-o", str(path)).exit_code == 0
        reports.append(path.read_text().replace(name.name, "INPUT"))
    assert reports[0] == reports[1]


def test_a_report_of_tables_cannot_hide_names_that_are_in_their_sums(
    tables: Path, tmp_path: Path
) -> None:
    path = tmp_path / "report.md"
    result = run("report", str(tables), "--redact", "all", "-o", str(path))
    assert result.exit_code == 2
    assert "needs captures" in result.stderr
    assert not path.exists()


def test_what_only_captures_can_tell_is_refused(tables: Path) -> None:
    assert "holds no messages" in run("groups", str(tables), "-Y", "error").output
    assert "holds tables" in run("ls", str(tables), "-d", "tcp.port==1,kafka").output
    listing = run("records", str(tables))
    assert listing.exit_code == 3
    assert "holds tables" in listing.output
    every = run("stats", "rates", str(tables), "--every", "10s")
    assert every.exit_code == 3
    assert "widths" in every.output


@pytest.mark.parametrize(
    "words",
    [
        *(("cut", "-o", "x.pcapng"), ("export", "-o", "x.csv"), ("show", "-Y", "error")),
        *(("records",), ("schemas",), ("serve",), ("replay", "--to", "127.0.0.1:1")),
        ("fixture", "-o", "x.jsonl"),
    ],
    ids=lambda words: words[0],
)
def test_what_needs_messages_names_the_tables(tables: Path, words: tuple[str, ...]) -> None:
    done = run(words[0], tables, *words[1:], codes=[3])
    assert "holds tables: query them (docs/spark.md), or name the captures" in done.stderr


def test_tables_of_another_version_are_to_be_written_again(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Applications, "VERSION", Applications.VERSION + 1)
    done = run("map", tables, codes=[3])
    assert "another version of kafkascope (state of map)" in done.stderr
    assert "kafkascope spark --replace" in done.stderr


def test_damage_goes_with_the_tables(tmp_path: Path) -> None:
    """Exit code 4 and the same sentence; a row says where; all else is complete."""
    whole = (SAMPLES / "libraries.pcap").read_bytes()
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(whole[: len(whole) * 2 // 3 + 1])
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(gzip.compress((SAMPLES / "sasl.pcap").read_bytes())[:-2000])
    out = tmp_path / "out"
    made_by = run("spark", str(bad), str(cut), "-o", str(out))
    assert made_by.exit_code == 4
    assert made_by.stderr.count("cut short") == 2
    assert run("spark", str(bad), "-o", str(tmp_path / "strict"), "--strict").exit_code == 1
    stated = run("stats", "apis", str(out))
    assert stated.exit_code == 4
    assert stated.stderr.count("cut short") == 2
    damage = [row for row in rows_of(out, "diagnostics") if row["code"] == "damaged"]
    assert len(damage) == 2
    assert any(row["record_offset"] and str(bad) in row["message"] for row in damage)


def test_a_missing_input_is_said_with_3(tmp_path: Path) -> None:
    found = run("spark", str(tmp_path / "none.pcap"), "-o", str(tmp_path / "out"))
    assert found.exit_code == 3
    assert "no such file" in found.stderr


def test_export_to_parquet(tmp_path: Path) -> None:
    source = str(SAMPLES / "libraries.pcap")
    lines = tmp_path / "x.jsonl"
    run("export", source, "-o", str(lines))
    expected = [json.loads(line) for line in lines.read_text().splitlines()]
    path = tmp_path / "x.parquet"
    assert run("export", source, "-o", str(path), "--full").exit_code == 0
    read = pq.ParquetFile(path).read()
    assert read.schema.equals(EXCHANGES.schema)
    rows = read.to_pylist()
    for name in ("exchange_id", "number", "topics", "implied_topics", "latency_ns", "state"):
        assert [row[name] for row in rows] == [row[name] for row in expected], name
    bodies = [json.loads(row["request_json"]) for row in rows if row["request_json"]]
    assert any(bodies)
    assert run("export", source, "-o", str(path), "--table", "records").exit_code == 0
    assert pq.ParquetFile(path).read().schema.equals(RECORDS.schema)


def test_a_second_run_is_in_the_place_of_the_first(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first, _ = made([str(SAMPLES / "libraries.pcap")], out)
    made([str(SAMPLES / "sasl.pcap")], out)
    again, _ = made([str(SAMPLES / "libraries.pcap")], out)
    assert again == first
    assert len(list((out / "_manifest").iterdir())) == 1


def test_auto_says_what_it_took_and_why(tmp_path: Path) -> None:
    made_by = run("spark", str(SAMPLES / "sasl-old.pcap"), "-o", str(tmp_path))
    assert "engine plain: " in made_by.stderr
