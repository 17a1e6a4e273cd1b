"""Work that does not divide well: one connection with most of the bytes, and connections without
end. Memory of workers stays bounded, and the tables are the same."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.analyzer.pipeline.kit import tables
from tests.interop.needs import need
from tests.kit.samples import ROOT
from tests.spark.environments import children

pytestmark = pytest.mark.soak

MOST_KB = 400_000
"""Of a Python worker."""


def generated(path: Path, *words: str) -> dict[str, int]:
    line = [sys.executable, str(ROOT / "benchmarks" / "generate.py"), str(path), *words]
    told: dict[str, int] = json.loads(subprocess.check_output(line))
    return told


def run(capture: Path, out: Path, *words: str) -> dict[int, int]:
    """Make the tables; the largest memory of each Python worker, in KB."""
    line = [
        sys.executable,
        "-P",
        "-m",
        "kafkascope.tui.cli",
        "spark",
        str(capture),
        "-o",
        str(out),
        "-q",
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    started = subprocess.Popen([*line, *words], env=environment, stderr=subprocess.PIPE, text=True)
    largest: dict[int, int] = {}
    while started.poll() is None:
        for pid in children(started.pid):
            try:
                name = Path(f"/proc/{pid}/comm").read_text()
                held = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
            except OSError:
                continue
            if held and name.startswith("python"):
                largest[pid] = max(largest.get(pid, 0), int(held[1]))
        time.sleep(0.2)
    assert started.stderr is not None
    said = started.stderr.read()
    started.stderr.close()
    assert started.returncode == 0, said
    return largest


SPARK = ("--engine", "spark", "--master", "local[2]", "--conf", "spark.driver.memory=1g")


@pytest.mark.timeout(3600)
def test_one_connection_with_most_of_the_bytes(tmp_path: Path) -> None:
    """More than half of more than a gigabyte."""
    need("java")
    path = tmp_path / "one.pcap"
    truth = generated(path, "--megabytes", "1100", "--connections", "8", "--first", "0.6")
    run(path, tmp_path / "plain", "--engine", "plain")
    expected = tables(tmp_path / "plain")
    assert len(expected["exchanges"]) == truth["exchanges"]
    sent = [
        int(count)
        for row in expected["connections"]
        for count in re.findall(r"'(?:client|broker)_bytes': (\d+)", row)
    ]
    assert max(sent[at] + sent[at + 1] for at in range(0, len(sent), 2)) > 0.5 * truth["bytes"]
    out = tmp_path / "spark"
    workers = run(path, out, *SPARK)
    print(sorted(workers.values()))
    assert workers
    assert max(workers.values()) < MOST_KB, workers
    assert tables(out) == expected


@pytest.mark.timeout(3600)
def test_twenty_thousand_connections(tmp_path: Path) -> None:
    need("java")
    path = tmp_path / "many.pcap"
    truth = generated(path, "--megabytes", "60", "--connections", "20000", "--most", "2")
    assert truth["exchanges"] >= 20_000
    run(path, tmp_path / "plain", "--engine", "plain")
    expected = tables(tmp_path / "plain")
    assert len(expected["connections"]) == 20_000
    workers = run(path, tmp_path / "spark", *SPARK)
    print(sorted(workers.values()))
    assert max(workers.values()) < MOST_KB, workers
    assert tables(tmp_path / "spark") == expected
