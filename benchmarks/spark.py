"""Captures to tables: the plain engine, Spark on one and two cores, and tshark, on the same records
traffic: `python benchmarks/spark.py [--megabytes 800]`.

Prints, for each, wall time, CPU time and the largest memory of the whole tree of processes (and of
its largest Python worker), and CPU milliseconds per megabyte; then the size from which Spark is
faster on this machine, by the measured start and rates: where `--engine auto` switches. tshark gets
a smaller capture of the same traffic: its cost per megabyte does not change, its memory does.
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
    """A process and all below it: a JVM starts its own from any of its threads."""
    found = [pid]
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            words = path.read_text().split()
        except OSError:
            continue
        found += [each for word in words for each in tree(int(word))]
    return found


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
    options.add_argument("--rival", type=int, default=60, help="megabytes for tshark")
    chosen = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kafkascope-bench-"))
    try:
        compare(folder, generated(folder, chosen.megabytes), generated(folder, chosen.rival))
    finally:
        shutil.rmtree(folder)


def generated(folder: Path, megabytes: int) -> Path:
    path = folder / f"{megabytes}.pcap"
    line = [sys.executable, str(HERE / "generate.py"), str(path), "--megabytes", str(megabytes)]
    subprocess.run([*line, "--connections", "8"], check=True, stdout=subprocess.DEVNULL)
    return path


def compare(folder: Path, path: Path, part: Path) -> None:
    ours = [sys.executable, "-m", "kafkascope.tui.cli", "spark", "-q"]
    fields = [word for each in FIELDS for word in ("-e", each)]
    sample = HERE.parent / "captures" / "samples" / "sasl.pcap"
    lines: dict[str, tuple[Path, list[str]]] = {}
    for name, input_ in (("start", sample), ("", path)):
        out = str(folder / f"plain{name}")
        line = [*ours, str(input_), "-o", out, "--engine", "plain"]
        lines[f"plain {name}".strip()] = input_, line
        for cores in (1, 2):
            out = str(folder / f"spark{name}-{cores}")
            line = [*ours, str(input_), "-o", out, "--engine", "spark"]
            line += ["--master", f"local[{cores}]"]
            lines[f"spark {name} {cores}".replace("  ", " ")] = input_, line
    if shutil.which("tshark"):
        tshark = ["tshark", "-n", "-r", str(part)]
        lines["tshark -T fields"] = part, [*tshark, "-T", "fields", *fields]
        lines["tshark -T json -Y kafka"] = part, [*tshark, "-T", "json", "-Y", "kafka"]
        lines["tshark -T json"] = part, [*tshark, "-T", "json"]
    print(
        f"{'':24}{'MB':>6}{'wall s':>9}{'CPU s':>9}{'ms/MB':>9}{'MB held':>9}{'worker':>9}"
        f"{'load':>6}"
    )
    found: dict[str, Cost] = {}
    for name, (input_, line) in lines.items():
        cost = found[name] = measured(line, PYTHONDONTWRITEBYTECODE="")
        size = input_.stat().st_size / 1e6
        print(
            f"{name:24}{size:6.0f}{cost.wall:9.1f}{cost.cpu:9.1f}{1000 * cost.cpu / size:9.1f}"
            f"{cost.memory / 1e6:9.0f}{cost.worker / 1e6:9.0f}{os.getloadavg()[0]:6.1f}",
            flush=True,
        )
    concluded(found, path.stat().st_size / 1e6, part.stat().st_size / 1e6)
    for cores in (1, 2):
        assert exchanges(folder / f"spark-{cores}") == exchanges(folder / "plain")


def concluded(found: dict[str, Cost], size: float, part: float) -> None:
    """What the targets are about; where both are equally fast: by their starts and their rates."""
    plain, spark = found["plain"], found["spark 2"]
    print(f"Spark's overhead: {1000 * (spark.cpu - plain.cpu) / size:.1f} CPU-ms per MB", end=", ")
    more = spark.cpu - found["spark start 2"].cpu - plain.cpu + found["plain start"].cpu
    print(f"without the starts {1000 * more / size:.1f}")
    for name, cost in found.items():
        if name.startswith("tshark"):
            theirs = cost.cpu / part
            ratios = (theirs / (ours.cpu / size) for ours in (plain, spark))
            print(f"{name}: {' and '.join(f'{ratio:.1f}' for ratio in ratios)} times plain, spark")
    start = found["spark start 2"].wall - found["plain start"].wall
    rates = [
        (found[name].wall - found[begin].wall) / size
        for name, begin in (("plain", "plain start"), ("spark 2", "spark start 2"))
    ]
    if rates[1] < rates[0]:
        print(f"as fast as plain from {start / (rates[0] - rates[1]):.0f} MB on")
    else:
        print("Spark never catches up on this machine")


def exchanges(out: Path) -> int:
    (manifest,) = (out / "_manifest").glob("*.json")
    return int(json.loads(manifest.read_text())["exchanges"])


if __name__ == "__main__":
    main()
