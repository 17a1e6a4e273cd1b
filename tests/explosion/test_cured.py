"""What once took minutes or gigabytes, through the commands; `test_growth` measures everything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer import records
from analyzer.export import full
from analyzer.fetch_sessions import LISTED
from analyzer.offline import open_capture
from analyzer.records import fields_of, shareable
from analyzer.render_records import BYTES_SHOWN, HEADERS_SHOWN, lines_inside
from dissectors.record_redaction import redacted_records
from dissectors.record_writer import encode_batch, varint
from dissectors.records import Batch, Header, Record, batches
from dissectors.tree import Node
from tests.explosion.inputs import (
    batch_of,
    fetch,
    record,
    scram_records,
    sessions,
    write_attack,
    write_capture,
)
from tests.explosion.measuring import MEMORY_MB, measured
from tui.cli import main


@pytest.mark.timeout(60)
def test_a_record_with_very_many_headers_is_redacted() -> None:
    # Written header by header into a new text each time it took four minutes.
    count = 1_000_000
    body = b"\0\0\0\x01\x01" + varint(count) + b"\0\x01" * count
    data = batch_of(4, 1, record(body))
    assert len(data) < 2_000
    (batch,) = batches(redacted_records(data, keys=True, names=True))
    assert isinstance(batch, Batch)


@pytest.mark.parametrize("command", [("show", "1"), ("show", "1", "--hex"), ("cut", "--anonymize")])
def test_very_many_empty_topics_take_no_gigabyte(command: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    write_attack("empty topics", path, factor=3)
    name, *options = command
    if name == "cut":
        options += ["-o", str(tmp_path / "b.pcapng")]
    taken = measured([name, path, *options])
    assert not taken.crashed, taken.errors
    assert taken.megabytes < MEMORY_MB


@pytest.mark.parametrize("command", ["report", "clients"])
def test_more_clients_than_are_kept_are_judged_together(command: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    write_attack("clients", path)
    options = ["-o", str(tmp_path / "a.md")] if command == "report" else ["--for", "4.0"]
    taken = measured([command, path, *options])
    assert taken.code == 0, taken.errors


def test_a_large_session_is_counted_not_listed_with_each_request(tmp_path: Path) -> None:
    for count, listed in ((LISTED, True), (LISTED + 1, False)):
        path, out = tmp_path / f"{count}.pcapng", tmp_path / f"{count}.jsonl"
        write_capture(path, iter([sessions(count)[:8]]))
        result = CliRunner().invoke(main, ["export", str(path), "--full", "-o", str(out)])
        assert result.exit_code == 0, result.output
        *_, last = map(json.loads, out.read_text().splitlines())
        told = last["fetch_session"]
        assert (told["partitions"] is not None) == listed
        assert told.get("partition_count") == (None if listed else count)
        shown = CliRunner().invoke(main, ["show", str(path), "3"]).output
        assert (f"{count:,} partitions, not listed" in shown) != listed


def test_very_large_values_are_shown_in_part() -> None:
    whole = "ü" * (BYTES_SHOWN // 2)
    (line,) = _lines(whole.encode())
    assert line.endswith(f'"{whole}"')
    (line,) = _lines(b"x" + whole.encode())
    assert line.endswith('ü"... 2 bytes more (records --json has all)')
    (line,) = _lines(b"", [("h", None)] * (HEADERS_SHOWN + 5))
    assert line.endswith("... 5 more}")


def _lines(value: bytes, headers: list[Header] | None = None) -> list[str]:
    data = encode_batch([Record(0, 1, None, value, headers or [])])
    return list(lines_inside(Node("records", 0, len(data), data)))[1:]


def test_very_many_secrets_are_not_searched_for_one_by_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "a.pcapng"
    write_capture(path, iter([scram_records(20)]))
    with open_capture([path]) as capture:
        (exchange,) = capture.exchanges()
        names = capture.context.names
    (field,) = fields_of(exchange, names)
    clean = shareable(field)
    assert clean is not None
    assert clean != field.data
    monkeypatch.setattr(records, "SEARCHED", 10 * len(field.data))
    assert shareable(field) is None


def test_records_of_an_exchange_beyond_the_limit_are_left_out_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(full, "RECORDS_LIMIT", 5 << 20)
    path, out = tmp_path / "a.pcapng", tmp_path / "a.jsonl"
    value = batch_of(4, 1, record(b"\0\0\0\x01" + varint(2 << 20) + b"x" * (2 << 20) + b"\0"))
    write_capture(path, iter([fetch(1, *[value] * 5)]))
    result = CliRunner().invoke(main, ["export", str(path), "--full", "-o", str(out)])
    assert "records are left out" in result.output
    (line,) = map(json.loads, out.read_text().splitlines())
    parts = [each["records"] for each in line["response"]["responses"][0]["partitions"]]
    assert [len(each["batches"]) for each in parts] == [1, 1, 1, 0, 0]
    assert ["left_out" in each for each in parts] == [False] * 3 + [True] * 2
    assert all(each["base64"] for each in parts)
