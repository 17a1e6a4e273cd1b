"""Capture files to exchanges."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kafkascope.analyzer import open_capture
from kafkascope.analyzer.exchanges.offline import fingerprint
from kafkascope.captures import NotACapture

SAMPLES = sorted(Path(__file__).parents[3].joinpath("captures", "samples").glob("*.pcap*"))


def sample() -> Path:
    return min(SAMPLES, key=lambda path: path.stat().st_size)


def ids(path: Path) -> list[tuple[int, str, str]]:
    with open_capture([path]) as capture:
        return [(e.number, e.id, e.state) for e in capture.exchanges()]


@pytest.mark.skipif(not SAMPLES, reason="no samples")
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_numbers_are_dense_and_ids_unique(path: Path) -> None:
    found = ids(path)
    assert sorted(number for number, _, _ in found) == list(range(1, len(found) + 1))
    assert len({each for _, each, _ in found}) == len(found)


@pytest.mark.skipif(not SAMPLES, reason="no samples")
def test_ids_do_not_depend_on_where_the_file_lies(tmp_path: Path) -> None:
    copy = tmp_path / "other.cap"
    copy.write_bytes(sample().read_bytes())
    assert ids(copy) == ids(sample())


@pytest.mark.skipif(not SAMPLES, reason="no samples")
def test_a_cut_file_gives_what_is_whole_and_says_so(tmp_path: Path) -> None:
    whole = sample().read_bytes()
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(whole[: len(whole) * 2 // 3 + 1])
    with open_capture([cut]) as capture:
        found = list(capture.exchanges())
        assert capture.damage is not None
    assert 0 < len(found) <= len(ids(sample()))


@pytest.mark.skipif(not SAMPLES, reason="no samples")
def test_compressed_input_has_the_same_exchanges(tmp_path: Path) -> None:
    packed = tmp_path / "x.gz"
    packed.write_bytes(gzip.compress(sample().read_bytes()))
    assert [e[::2] for e in ids(packed)] == [e[::2] for e in ids(sample())]


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "x.txt"
    text.write_text("hello, this is no capture")
    with pytest.raises(NotACapture):
        open_capture([text])


def test_a_pipe_has_no_fingerprint_of_its_own() -> None:
    assert fingerprint("-") == fingerprint("/nowhere/at/all")
