"""Captures to tables: the plain engine, Spark on one and two cores, and tshark, on the same records
traffic: `python benchmarks/spark.py [--megabytes 800]`.

Prints, for each, wall time, CPU time and the largest memory of the whole tree of processes (and of
its largest Python worker), and CPU milliseconds per megabyte; then the size from which Spark is
faster on this machine, by the measured start and rates: where `--engine auto` switches.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
FIELDS = (
    *("frame.number", "frame.time_epoch", "tcp.stream", "ip.src", "ip.dst"),
    *("kafka.api_key", "kafka.api_version", "kafka.correlation_id", "kafka.client_id"),
    *("kafka.topic_name", "kafka.partition_id", "kafka.error", "kafka.batch_codec"),
)


class Cost(NamedTuple):
    """What a command took."""

    wall: float
    cpu: float
    memory: int
    worker: int
    """Largest Python process."""


def tree(pid: int) -> list[int]:
    try:
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(each for word in words for each in tree(int(word)))]


def measured(line: list[str], **environment: str) -> Cost:
    """Run a command and watch its processes, for children of a JVM are never waited for."""
    begun = time.monotonic()
    with Path(os.devnull).open("w") as null:
        run = subprocess.Popen(line, stdout=null, stderr=null, env=os.environ | environment)
    cpu: dict[int, float] = {}
    memory = worker = 0
    while run.poll() is None:
        held = 0
        for pid in tree(run.pid):
            try:
                words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                name = Path(f"/proc/{pid}/comm").read_text()
            except OSError:
                continue
            cpu[pid] = sum(map(int, words[11:13])) / TICKS
            here = int(words[21]) * PAGE
            held += here
            if name.startswith("python") and pid != run.pid:
                worker = max(worker, here)
        memory = max(memory, held)
        time.sleep(0.1)
    if run.returncode:
        raise SystemExit(f"{' '.join(line)} ended with {run.returncode}")
    return Cost(time.monotonic() - begun, sum(cpu.values()), memory, worker)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=800)
    options.add_argument("--capture", type=Path, help="In the place of a generated one.")
    chosen = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kafkascope-bench-"))
    try:
        compare(folder, chosen.capture or generated(folder, chosen.megabytes))
    finally:
        shutil.rmtree(folder)


def generated(folder: Path, megabytes: int) -> Path:
    path = folder / "bench.pcap"
    line = [sys.executable, str(HERE / "generate.py"), str(path), "--megabytes", str(megabytes)]
    subprocess.run([*line, "--connections", "8"], check=True, stdout=subprocess.DEVNULL)
    return path


def compare(folder: Path, path: Path) -> None:
    size = path.stat().st_size / 1e6
    ours = [sys.executable, "-m", "tui.cli", "spark", str(path), "-q"]
    fields = [word for each in FIELDS for word in ("-e", each)]
    lines = {
        "plain": [*ours, "-o", str(folder / "plain"), "--engine", "plain"],
        **{
            f"spark, {cores} cores": [
                *(*ours, "-o", str(folder / f"spark-{cores}"), "--engine", "spark"),
                *("--master", f"local[{cores}]"),
            ]
            for cores in (1, 2)
        },
    }
    if shutil.which("tshark"):
        lines["tshark -T fields"] = ["tshark", "-n", "-r", str(path), "-T", "fields", *fields]
    print(f"{size:.0f} MB")
    print(f"{'':18}{'wall s':>9}{'CPU s':>9}{'CPU ms/MB':>11}{'MB held':>9}{'MB worker':>11}")
    found: dict[str, Cost] = {}
    for name, line in lines.items():
        cost = found[name] = measured(line, PYTHONDONTWRITEBYTECODE="")
        print(
            f"{name:18}{cost.wall:9.1f}{cost.cpu:9.1f}{1000 * cost.cpu / size:11.1f}"
            f"{cost.memory / 1e6:9.0f}{cost.worker / 1e6:11.0f}",
            flush=True,
        )
    switch(folder, found, size)
    for name in ("spark-1", "spark-2"):
        assert exchanges(folder / name) == exchanges(folder / "plain")


def exchanges(out: Path) -> int:
    (manifest,) = (out / "_manifest").glob("*.json")
    return int(json.loads(manifest.read_text())["exchanges"])


def switch(folder: Path, found: dict[str, Cost], size: float) -> None:
    """Where both are equally fast: Spark's start, then its rate against the plain one's."""
    sample = HERE.parent / "captures" / "samples" / "sasl.pcap"
    line = [sys.executable, "-m", "tui.cli", "spark", str(sample), "-q"]
    line += ["-o", str(folder / "start"), "--engine", "spark", "--master", "local[2]"]
    start = measured(line).wall
    plain, spark = found["plain"].wall / size, (found["spark, 2 cores"].wall - start) / size
    print(f"Spark's start: {start:.1f} s")
    if spark < plain:
        print(f"auto switches at {start / (plain - spark):.0f} MB on this machine")
    else:
        print("Spark never catches up on this machine")


if __name__ == "__main__":
    main()
