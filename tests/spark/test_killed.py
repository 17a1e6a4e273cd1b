"""Killed at any moment and run again: the same tables, nothing twice, nothing left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.analyzer.pipeline.kit import made, tables
from tests.interop.needs import need
from tests.interop.processes import until
from tests.kit.samples import ROOT
from tests.spark.conftest import SETTINGS
from tests.spark.environments import stand

SAMPLES = ROOT / "captures" / "samples"


def command(out: Path, temporary: Path, engine: str) -> list[str]:
    """The command line as users have it; run where their folders have the names of ours."""
    settings = [f"--conf={name}={value}" for name, value in SETTINGS.items()]
    spark = ["--master", "local[2]", "--temp-dir", str(temporary), *settings]
    return [
        *(sys.executable, "-P", "-m", "kafkascope.tui.cli", "spark", str(SAMPLES), "-o", str(out)),
        *("--engine", engine, "-q", "--replace"),
        *(spark if engine == "spark" else ()),
    ]


def gone(mark: str) -> bool:
    """Whether no process has that in its environment: a list of children made before the kill would
    miss those that were started meanwhile."""
    return not any(_has(path, mark.encode()) for path in Path("/proc").glob("[0-9]*/environ"))


def _has(environ: Path, mark: bytes) -> bool:
    try:
        return mark in environ.read_bytes()  # nothing is there when it is dead
    except OSError:
        return False


def kill_and_run_again(tmp_path: Path, engine: str, moments: list[float]) -> None:
    expected, _ = made([str(SAMPLES)], tmp_path / "expected")
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    temporary.mkdir()
    here = stand(tmp_path / "stand")
    mark = f"{tmp_path}/mark"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "STARTED_BY": mark}
    line = command(out, temporary, engine)
    for moment in moments:
        run = subprocess.Popen(
            line, cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            run.wait(moment)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGKILL)
            run.wait()
            until(lambda: gone(mark))
        if run.stdout is not None:
            run.stdout.close()
    done = subprocess.run(line, cwd=here, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert tables(out) == expected
    assert {path.name for path in out.iterdir() if path.name.startswith("_")} == {
        "_lock",
        "_manifest",
    }
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_the_plain_engine_at_several_moments(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    kill_and_run_again(tmp_path, "plain", [random.uniform(0.3, 4) for _ in range(3)])


@pytest.mark.slow
def test_the_spark_engine_once(tmp_path: Path) -> None:
    need("java")
    kill_and_run_again(tmp_path, "spark", [Random().uniform(8, 25)])


@pytest.mark.soak
def test_the_spark_engine_twenty_times(tmp_path: Path) -> None:
    need("java")
    random = Random()
    kill_and_run_again(tmp_path, "spark", [random.uniform(1, 40) for _ in range(20)])
