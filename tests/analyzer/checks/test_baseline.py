"""Baselines: what is one, what it says, and what it forgets."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.checks import baseline
from kafkascope.analyzer.checks.baseline import WrongBaseline, baseline_lines, gone, read_baseline


def read(folder: Path, data: bytes) -> frozenset[str]:
    path = folder / "known.jsonl"
    path.write_bytes(data)
    return read_baseline(path)


@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]))))
def test_what_is_written_is_read(keys: set[str]) -> None:
    lines = baseline_lines(keys)
    assert lines == baseline_lines(sorted(keys, reverse=True))
    assert [json.loads(line)["key"] for line in lines.splitlines()] == sorted(keys)


def test_a_file_is_read(tmp_path: Path) -> None:
    keys = {"unknown-topic topic=é\n\u202e", "lag group=g"}
    assert read(tmp_path, baseline_lines(keys)) == keys


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"", set()),
        (b"\n\n", set()),
        (b"[]", set()),
        (b'{"key": "a"}\r\n{"schema": "finding/1", "key": "b", "text": "t"}', {"a", "b"}),
        (b' [{"key": "a", "why": "ticket 7"},\n {"key": "a"}]', {"a"}),
    ],
)
def test_forms_of_a_baseline(tmp_path: Path, data: bytes, keys: set[str]) -> None:
    assert read(tmp_path, data) == keys


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "line 1 is no JSON"),
        (b'{"key": "a"}\nhello', "line 2 is no JSON"),
        (b"[1", "the array is no JSON"),
        (b"[1]", "element 1 has no key of a finding"),
        (b'{"key": 3}', "line 1 has no key of a finding"),
        (b'{"key": "a"}\n{"name": "lag"}', "line 2 has no key of a finding"),
        (b'{"schema": "record/1", "key": "a"}', "line 1 is no finding, but record/1"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "line 1 is no JSON"),
        (b"[" * 100_000, "the array is no JSON"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(WrongBaseline, match=said):
        read(tmp_path, data)


def test_huge_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "MOST_BYTES", 10)
    with pytest.raises(WrongBaseline, match="is larger than"):
        read(tmp_path, b'{"key": "a"}')


def test_what_no_longer_occurs() -> None:
    known = ["lag group=a", "lag group=b", "unknown-topic topic=t"]
    assert gone(known, ["lag group=a"], ["lag", "unknown-topic"]) == known[1:]
    # A rule that was not asked could not find anything.
    assert gone(known, ["lag group=a"], ["lag"]) == ["lag group=b"]
