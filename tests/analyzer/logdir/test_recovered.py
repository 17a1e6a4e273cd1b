"""Damaged log directories of real brokers, with what the same brokers left of them when they
started without a clean-shutdown file. Made by `tests/interop/make_recovered.py`."""

import json
import lzma
import shutil
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.logdir.opening import open_at_rest
from tests.analyzer.logdir.verdicts import compared, family, undecided, verdicts_on

SAMPLES = Path(__file__).with_name("recovered.tar.xz")
RELEASES = ("0.8.0", "0.9.0.1", "1.1.1", "3.9.2", "4.4.0")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recovered")
    with lzma.open(SAMPLES) as file, tarfile.open(fileobj=file) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Since 3.11.4.
        tar.extractall(folder)
    return folder


@pytest.mark.parametrize("release", RELEASES)
def test_verdicts_are_those_of_the_broker(samples: Path, release: str) -> None:
    truth: dict[str, Any] = json.loads((samples / "truth.json").read_text())[release]
    wrong, seen = [], Counter[str]()
    for name, files in truth.items():
        found = open_at_rest(samples / release / name)
        verdicts = list(verdicts_on(found))
        if said := compared(verdicts, family(release), files):
            wrong.append(f"{name}: {said}")
        seen["undecided"] += undecided(verdicts)
        seen["stopped"] += files is None
        seen["cut"] += any(not each.sound for each in verdicts)
        seen["elsewhere"] += any(each.elsewhere for each in verdicts)
    assert not wrong, "\n".join(wrong)
    assert len(truth) > 90
    assert seen["cut"] > 40
    assert seen["undecided"] <= 8
    assert (seen["stopped"] > 0) == (release != "0.9.0.1" and release != "1.1.1")


def test_damage_is_told_for_each_release_that_differs(samples: Path) -> None:
    found = open_at_rest(samples / "0.9.0.1" / "c-none.flip-first-segment-0")
    first, second, *_ = verdicts_on(found)
    assert not first.sound
    assert first.releases == "0.8.1 to 1.1"
    (other,) = first.elsewhere
    assert (other.releases, other.starts, other.valid_bytes) == ("0.8.0", True, first.total_bytes)
    assert "recovers the last segment only" in " ".join(first.lines())
    assert not second.sound
    assert [each.releases for each in second.elsewhere] == ["0.8.0"]


def test_an_offset_outside_its_segment_keeps_new_brokers_from_starting(samples: Path) -> None:
    found = open_at_rest(samples / "4.4.0" / "c-none.flip-offset-0")
    *_, last = verdicts_on(found)
    assert (last.sound, last.starts) == (False, False)
    assert "brokers 2.0 and later do not start with this file" in "\n".join(last.lines())
    assert last.to_json()["starts"] is False


def copied(samples: Path, folder: Path) -> Path:
    """A partition of 0.8.0, beside a checkpoint."""
    copy = folder / "data" / "c-none-0"
    shutil.copytree(samples / "0.8.0" / "c-none.flip-first-segment-0", copy)
    (copy.parent / "replication-offset-checkpoint").write_text("0\n0\n")
    return copy


def test_a_folder_of_0_8_0_is_told_by_its_checkpoints(samples: Path, tmp_path: Path) -> None:
    found = open_at_rest(copied(samples, tmp_path))
    verdicts = list(verdicts_on(found))
    assert all(each.sound and each.valid_bytes == each.total_bytes for each in verdicts)
    assert "which recovers the last segment only, keeps" in verdicts[0].notes[0]
    assert verdicts[0].elsewhere[0].releases == "0.8.1 to 1.1"
    assert not any(batch.lost for batch, _ in found.batches())


@pytest.mark.parametrize(
    ("garbage", "starts", "text"),
    [
        (b"", True, ""),
        (bytes(80), False, "unused space"),
        (b"\xff" * 16, False, "no entry"),
        (b"\x80" + bytes(7), False, "no entry"),
        (b"\xff" * 5, False, "not a multiple of 8"),
        (b"\x00\x00\x7f\xff\x7f\xff\xff\xff", True, ""),
    ],
)
def test_garbage_behind_an_index_keeps_0_8_0_from_starting(
    samples: Path, tmp_path: Path, garbage: bytes, starts: bool, text: str
) -> None:
    """It takes the end of the file for the last entry of any segment but the last, which it
    recovers; what is no whole entry it refuses of all."""
    copy = copied(samples, tmp_path)
    logs = sorted(copy.glob("*.log"))
    for log in (logs[1], logs[-1]):
        index = log.with_suffix(".index")
        index.write_bytes(index.read_bytes() + garbage)
    found = open_at_rest(copy)
    _, second, *_, last = verdicts_on(found)
    assert (second.starts, text in second.problem) == (starts, True)
    assert last.starts == ("multiple" not in text)
