"""Batch after batch: the same exchanges as of all files at once, whatever is open in between."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.pipeline import state
from kafkascope.analyzer.pipeline.follow import Rule, catch_up, closed
from kafkascope.analyzer.pipeline.runner import Result
from kafkascope.analyzer.pipeline.tables.collect import Options
from kafkascope.captures.errors import CaptureError
from tests.analyzer.pipeline.kit import exchanges, made, tables
from tests.analyzer.pipeline.traffic import tape
from tests.captures.wires import Tape

NOW = Rule(settle_s=0)
LAST = Rule(last=True)


def rotated(seed: int, folder: Path) -> list[Path]:
    """The packets of a capture in files of some packets each."""
    frames = tape(seed).frames
    random = Random(seed)
    paths = []
    while frames:
        part = Tape()
        count = random.choice([1, 3, 10, 40])
        part.frames, frames = frames[:count], frames[count:]
        path = folder / f"{len(paths):04}.pcap"
        path.write_bytes(part.pcap())
        paths.append(path)
    return paths


def caught(inputs: Path, out: Path, rule: Rule, **how: Any) -> list[Result]:
    return list(catch_up([str(inputs)], out, Options(), rule, **how))


def in_batches(paths: list[Path], spool: Path, out: Path, random: Random) -> int:
    spool.mkdir()
    left = list(paths)
    count = 0
    while left:
        for _ in range(min(len(left), random.choice([1, 2, 5]))):
            shutil.copy(left.pop(0), spool)
        count += len(caught(spool, out, NOW))
    return count + len(caught(spool, out, LAST))


def without(rows: list[dict[str, Any]], *names: str) -> list[Any]:
    return sorted(repr({k: v for k, v in row.items() if k not in names}) for row in rows)


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=settings().max_examples // 14)
def test_batches_together_are_the_whole(seed: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in").mkdir()
        paths = rotated(seed, path / "in")
        expected, _ = made([str(each) for each in paths], path / "whole")
        in_batches(paths, path / "spool", path / "out", Random(seed))
        found = tables(path / "out")
        whole, parts = exchanges(path / "whole"), exchanges(path / "out")
        assert sorted(row["number"] for row in parts) == list(range(1, len(parts) + 1))
        assert without(parts, "number") == without(whole, "number")
        for name in ("connections", "record_batches", "diagnostics", "topic_names"):
            assert sorted(set(found[name])) == sorted(set(expected[name])), name
        assert len(found["connections"]) == len(expected["connections"])


def test_a_batch_that_was_killed_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    paths = rotated(3, tmp_path / "in")
    half = len(paths) // 2
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for path in paths[:half]:
            shutil.copy(path, tmp_path / name)
        caught(tmp_path / name, tmp_path / f"out-{name}", NOW)
        for path in paths[half:]:
            shutil.copy(path, tmp_path / name)
    # As if killed between the tables and the manifest.
    out = tmp_path / "out-one"
    (result,) = caught(tmp_path / "one", out, NOW)
    (out / "_manifest" / f"{result.manifest['batch_id']}.json").unlink()
    (out / "_staging" / "x").mkdir(parents=True)
    again = caught(tmp_path / "one", out, NOW)
    caught(tmp_path / "two", tmp_path / "out-two", NOW)
    assert again[0].manifest["batch_id"] == result.manifest["batch_id"]
    assert tables(out) == {
        name: [row.replace("/two/", "/one/") for row in rows]
        for name, rows in tables(tmp_path / "out-two").items()
    }
    assert not (out / "_staging").exists()


def test_what_is_complete_takes_no_more(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rotated(3, tmp_path / "in")
    assert caught(tmp_path / "in", tmp_path / "out", LAST)
    with pytest.raises(CaptureError, match="complete"):
        caught(tmp_path / "in", tmp_path / "out", LAST)


def test_the_youngest_file_of_a_folder_is_not_taken(tmp_path: Path) -> None:
    import os

    for number in range(3):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(b"")
        os.utime(path, (1000 + number, 1000 + number))
    names = sorted(map(str, tmp_path.iterdir()))
    assert closed(names, Rule(settle_s=10), 1005) == names[:2]
    assert closed(names, Rule(settle_s=10), 1012) == names
    assert closed(names, LAST, 1003) == names


FIELDS = {
    "Connection": "a b bytes duplicates first_ns first_packet gap_bytes handshake handshake_ns"
    " interface_comment keep_alives last_ns number out_of_order packets retransmissions tls",
    "Half": "ack calm closed connection deadline_ns direction fin flow held leap next offset other"
    " queued_ns reset_ns stray top track trouble_at trouble_ns trouble_offset waiting",
    "Track": "connection halves opened over packet settling syn_ns weight",
    "FrameBuffer": "_blocks _cut _first_ns _hunt _kept _last_ns _offset _parts _passed"
    " _sized_by _total sense",
    "Pending": "answer api blind decoded frame header held id notes number session software "
    "undecoded",
    "Phases": "_claimed client_id mechanism software tokens user",
    "InFlight": "_by_id _bytes _count tokens",
    "Handshake": "_answered _changed _client _finished _modern _records _spoke connection result",
    "Records": "_head _skip lost",
    "Waits": "_answered_ns _ends _sent_ns _until_ns",
    "Hunt": "_looked _offset _pieces _sense _starts _wanted held surplus",
}


def test_a_change_of_fields_is_a_change_of_the_version() -> None:
    """Change `state.VERSION` with these."""
    assert state.VERSION == 6
    for name, expected in FIELDS.items():
        assert sorted(state.classes()[name].__slots__) == expected.split(), name


def test_states_of_other_versions_are_refused() -> None:
    from kafkascope.analyzer.conversation.context import Context

    data = state.dump([1, "two"], Context())
    assert state.load(data, Context()) == [1, "two"]
    with pytest.raises(state.OtherState, match="version 99"):
        state.load(data.replace(b"[6, ", b"[99, ", 1), Context())
    with pytest.raises(state.OtherState):
        state.load(b'[6, {"k": "o", "c": "Popen", "n": 0, "v": {}}]', Context())
