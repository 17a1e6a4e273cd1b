"""Folders of tables: what a run does with those that are there, whatever kills it in between."""

import errno
import gc
import os
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq
import pytest

from kafkascope.analyzer.pipeline.store import LOCK, MANIFEST, Store
from tests.analyzer.pipeline.kit import check_against_export, exchanges, tables
from tests.kit.run import run as kit_run
from tests.kit.samples import SAMPLES
from tests.matrix import each_nth

ONE, OTHER = str(SAMPLES / "sasl-old.pcap"), str(SAMPLES / "sasl.pcap")


run = partial(kit_run, "spark", "--engine", "plain", "-q")


def files_of(out: Path) -> list[str]:
    return [file["path"] for each in Store(out).manifests() for file in each["files"]]


def test_tables_that_are_there_stay_unless_somebody_says_so(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(ONE, "-o", str(out)).exit_code == 0
    before = tables(out)
    refused = run(OTHER, "-o", str(out))
    assert refused.exit_code == 3
    assert "--append" in refused.stderr
    assert "--replace" in refused.stderr
    assert tables(out) == before
    for _ in range(2):
        # The same ones again, too.
        assert run(ONE, "-o", str(out), "--replace").exit_code == 0
        assert tables(out) == before
    assert run(OTHER, "-o", str(out), "--replace").exit_code == 0
    assert files_of(out) == [OTHER]
    check_against_export(out, [OTHER])


def test_tables_are_added_to_others(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(ONE, "-o", str(out)).exit_code == 0
    first = exchanges(out)
    assert run(OTHER, "-o", str(out), "--append").exit_code == 0
    assert files_of(out) == [ONE, OTHER]
    both = exchanges(out)
    assert sorted(row["number"] for row in both) == list(range(1, len(both) + 1))
    assert [row for row in both if row["number"] <= len(first)] == first
    again = run(OTHER, "-o", str(out), "--append")
    assert again.exit_code == 3
    assert "already" in again.stderr
    assert len(exchanges(out)) == len(both)
    kit_run("stats", "apis", out, codes=[0])


def test_what_is_no_capture_leaves_no_folder(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no packets here, but many words about them")
    out = tmp_path / "out"
    assert run(str(text), "-o", str(out)).exit_code == 3
    assert not out.exists()
    out.mkdir()
    assert run(str(text), "-o", str(out)).exit_code == 3
    assert list(out.iterdir()) == []


def test_a_second_run_at_once_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with Store(tmp_path).locked():
        refused = run(ONE, "-o", str(tmp_path))
    assert refused.exit_code == 3
    assert refused.stderr.strip().endswith("another run is writing there")
    assert "Traceback" not in refused.output


def test_a_lock_that_went_with_its_folder_is_no_lock(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing"), Store(tmp_path).locked():
        raise ValueError("nothing is written")
    assert not (tmp_path / LOCK).exists()
    with Store(tmp_path).locked():
        pass


def test_a_full_disk_is_said_with_a_sentence(tmp_path: Path) -> None:
    """And nothing behind it: writers that are collected would write their ends."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    out = tmp_path / "out"
    with (
        mock.patch.object(pq.ParquetWriter, "write_table", full),
        mock.patch.object(pq.ParquetWriter, "close", full),
    ):
        refused = run(ONE, "-o", str(out))
        gc.collect()
    assert refused.exit_code == 3
    assert refused.stderr == f"kafkascope: no space left on the disk of {out}\n"
    assert not out.exists()


def _copy_of(out: Path, made: Path) -> dict[str, Any]:
    """Take a batch out of a folder, as an engine leaves it; return its manifest."""
    (manifest,) = Store(out).manifests()
    for path in out.glob("*/batch_id=*"):
        shutil.copytree(path, made / path.parent.name)
    return manifest


@pytest.mark.parametrize("same", each_nth([False, True], 2), ids=["other", "same"])
def test_a_run_that_is_killed_leaves_the_old_tables_or_the_new_ones(
    same: bool, tmp_path: Path
) -> None:
    """SIGKILL before each step that changes the folder."""
    old, new, store = tmp_path / "old", tmp_path / "new", Store(tmp_path / "store")
    assert run(ONE, "-o", str(old)).exit_code == 0
    assert run(ONE if same else OTHER, "-o", str(new)).exit_code == 0
    expected = {"old": tables(old), "new": tables(new)}
    seen = []
    for step in range(200):
        shutil.rmtree(store.path, ignore_errors=True)
        shutil.copytree(old, store.path)
        (before,) = store.manifests()
        made = tmp_path / "made"
        shutil.rmtree(made, ignore_errors=True)
        manifest = _copy_of(new, made) | {"replaces": [before["batch_id"]]}
        batch = store.name("another")
        manifest["batch_id"] = batch
        child = os.fork()
        if not child:
            _commit_until(step, store, batch, made, manifest)
        _, status = os.waitpid(child, 0)
        (counts,) = store.manifests()
        which = "new" if counts["batch_id"] == batch else "old"
        store.begin("next")
        assert tables(store.path) == expected[which]
        assert [each.stem for each in (store.path / MANIFEST).glob("*.json")] == [
            counts["batch_id"]
        ]
        seen.append(which)
        if not status:
            break
    assert seen[0] == "old"
    assert seen[-1] == "new"
    assert seen == sorted(seen, reverse=True)
    assert len(seen) > 20


def _commit_until(
    step: int, store: Store, batch: str, made: Path, manifest: dict[str, Any]
) -> None:
    """Replace a batch, and die before a step."""
    steps = 0

    def counted(what: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal steps
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)
            steps += 1
            return what(*arguments, **named)

        return call

    names = ("rename", "unlink", "mkdir", "rmdir")
    with mock.patch.multiple(Path, **{name: counted(getattr(Path, name)) for name in names}):
        store.commit(batch, made, manifest)
    os._exit(0)
