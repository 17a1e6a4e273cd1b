"""What tables hold, each by itself; those that are made on request too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from click.testing import CliRunner

from kafkascope.captures.inputs.files import Source
from kafkascope.captures.packets.tcp import Segment, segment_of
from kafkascope.tui.cli import main
from tests.analyzer.pipeline.kit import Apart, made
from tests.kit.samples import SAMPLES

SAMPLE = SAMPLES / "sasl-old.pcap"


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in (out / table).glob("*/*.parquet"):
        found += pq.ParquetFile(path).read().to_pylist()
    return found


def run(*words: str) -> int:
    return CliRunner().invoke(main, ["spark", *words]).exit_code


def test_messages_have_their_places(tmp_path: Path) -> None:
    """Each side of an exchange, with what the exchange says of it."""
    assert run(str(SAMPLE), "-o", str(tmp_path), "--tables", "frames") == 0
    found = rows(tmp_path, "frames")
    sides = {(row["exchange_id"], row["kind"] == "response"): row for row in found}
    assert {row["kind"] for row in found} >= {"request", "response", "token"}
    for each in rows(tmp_path, "exchanges"):
        mine = [row for row in found if row["exchange_id"] == each["exchange_id"]]
        assert sorted(row["packet"] for row in mine) == sorted(each["frames"])
        assert all(row["connection_id"] == each["connection_id"] for row in mine)
        assert min(row["first_ns"] for row in mine) == each["time_ns"]
        if each["state"] != "answered" or each["api"] == "SaslToken":
            continue
        asked, answer = sides[each["exchange_id"], False], sides[each["exchange_id"], True]
        assert (asked["size_bytes"], answer["size_bytes"]) == (
            each["request_bytes"],
            each["response_bytes"],
        )
        assert answer["last_ns"] == each["response_end_ns"]
        assert (asked["file_id"], asked["record_offset"]) == (
            each["file_id"],
            each["record_offset"],
        )
    assert not (tmp_path / "segments").exists()


def test_segments_are_those_of_the_capture(tmp_path: Path) -> None:
    words = ("--tables", "segments, records", "--split-size", "20KB")
    assert run(str(SAMPLE), "-o", str(tmp_path), *words) == 0
    with Source([str(SAMPLE)]) as source:
        expected = {
            segment.packet: (segment.seq, segment.ack, segment.flags, segment.length, segment.at)
            for segment in map(segment_of, source.packets())
            if isinstance(segment, Segment)
        }
    names = ("seq", "ack", "flags", "payload_bytes", "record_offset")
    found = rows(tmp_path, "segments")
    assert {row["packet"]: tuple(row[name] for name in names) for row in found} == expected
    assert len(found) == len(expected)
    ends = {frozenset((row["source_address"], row["target_address"])) for row in found}
    assert len({row["flow_id"] for row in found}) == len(ends)
    assert not (tmp_path / "frames").exists()


def lines(*words: str) -> list[dict[str, Any]]:
    found = CliRunner().invoke(main, [*words, "--json"])
    return [json.loads(line) for line in found.stdout.splitlines()]


def test_rebalances_are_those_of_groups(tmp_path: Path) -> None:
    sample = str(SAMPLES / "rebalance.pcap")
    for engine in (None, Apart()):
        out = tmp_path / str(engine is None)
        made([sample], out, engine)
        found = {
            (row["group"], row["generation"], row["number"]): row for row in rows(out, "rebalances")
        }
        told = lines("groups", sample, "--rebalances")
        assert {(row["group"], row["generation"], row["number"]) for row in told} == found.keys()
        for row in told:
            mine = found[row["group"], row["generation"], row["number"]]
            assert [mine[name] for name in ("cause", "members", "text")] == [
                row[name] for name in ("cause", "members", "text")
            ]
        assert told


def test_verdicts_are_those_of_clients(tmp_path: Path) -> None:
    sample = str(SAMPLES / "java-old.pcap")
    assert run(sample, "-o", str(tmp_path)) == 0
    for release in ("2.8.0", "4.0.0"):
        told = lines("clients", sample, "--for", release)
        mine = [row for row in rows(tmp_path, "verdicts") if row["release"] == release]
        assert sorted(row["verdict"] for row in mine) == sorted(row["verdict"] for row in told)
    assert {row["verdict"] for row in rows(tmp_path, "verdicts")} >= {"ok", "breaks"}


def test_batches_of_records_name_their_topics(tmp_path: Path) -> None:
    assert run(str(SAMPLES), "-o", str(tmp_path), "--records") == 0
    around = {row["exchange_id"]: row for row in rows(tmp_path, "exchanges")}
    batches = rows(tmp_path, "record_batches")
    for each in batches:
        whole = around[each["exchange_id"]]
        assert each["topic"] in whole["topics"]
        assert each["topic_id"] is None or each["topic_id"] in whole["topic_ids"]
        assert each["ts"] == whole["ts"]
    assert any(each["topic_id"] for each in batches)
    keys = {row["key"] for row in rows(tmp_path, "records")}
    assert any(key and key.isalnum() for key in keys)


def test_captures_and_request_logs_are_converted_apart(tmp_path: Path) -> None:
    words = [
        "spark",
        str(SAMPLE),
        str(SAMPLES.parent / "logs" / "demo.log.zst"),
        "-o",
        str(tmp_path),
    ]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 3
    assert "captures and request logs are converted to tables apart" in result.output
    assert not list(tmp_path.rglob("*.parquet"))


def test_other_tables_are_refused(tmp_path: Path) -> None:
    assert run(str(SAMPLE), "-o", str(tmp_path), "--tables", "frames,packets") == 2
