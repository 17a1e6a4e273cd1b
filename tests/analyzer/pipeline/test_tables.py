"""Tables that are made on request: messages on the wire, and TCP segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from click.testing import CliRunner

from kafkascope.captures import Source
from kafkascope.captures.packets.tcp import Segment, segment_of
from kafkascope.tui.cli import main

SAMPLES = Path(__file__).parents[3] / "captures" / "samples"
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
    assert rows(tmp_path, "segments") == []


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
    assert rows(tmp_path, "frames") == []


def test_other_tables_are_refused(tmp_path: Path) -> None:
    assert run(str(SAMPLE), "-o", str(tmp_path), "--tables", "frames,packets") == 2
