"""Starting Spark: what is said when it cannot be, and what is swept."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafkascope.analyzer.spark import session
from kafkascope.analyzer.spark.progress import line_of
from kafkascope.captures.errors import CaptureError
from tests.interop.needs import need


def java(folder: Path, version: str) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize("version", ["1.8.0_202", "11.0.2"])
def test_an_old_java_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(session.NoSpark, match=r"JAVA_HOME.*Java \d+: .*17 or newer.*plain"):
        session.check()


def test_no_java_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(session.NoSpark, match="no java on the PATH"):
        session.check()


def test_folders_of_dead_runs_are_swept(tmp_path: Path) -> None:
    dead = tmp_path / f"{session.PREFIX}{(1 << 22) + 1}-x"
    mine = tmp_path / f"{session.PREFIX}{os.getpid()}-x"
    for each in (dead, mine, tmp_path / "other"):
        each.mkdir()
    session.sweep(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, "other"])


def test_the_disk_is_looked_at_before_the_shuffle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("java")
    sql = pytest.importorskip("pyspark.sql")
    # Other tests of this process may have left theirs running, which would be taken as it is.
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: None)
    found = session.session(temporary=str(tmp_path), shuffle_bytes=1 << 60)
    with pytest.raises(CaptureError, match="--temp-dir"), found:
        pass


def test_errors_of_workers_are_said_by_their_last_line() -> None:
    kind = type("PythonException", (Exception,), {"__module__": "pyspark.errors"})
    text = (
        "Job aborted due to stage failure: Task 0 failed\n  File x.py, line 3\n"
        "kafkascope.captures.errors.NotACapture: /x may not be read\n"
        "\tat org.apache.spark.Something"
    )
    told = session.spoken(kind(text))
    assert str(told) == (
        "Spark: kafkascope.captures.errors.NotACapture: /x may not be read (--debug shows all)"
    )
    assert session.spoken(ValueError("ours")) is None


def test_progress_says_rate_and_time_left() -> None:
    stage = SimpleNamespace(stageId=3, numTasks=8, numCompletedTasks=2)
    assert line_of(stage, 10, 800_000_000) == "stage 3: 2 of 8 tasks, 20 MB/s, 30 s left"
