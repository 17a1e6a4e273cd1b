"""Captures to tables: the plain engine, Spark on one and two cores, and tshark, on the same records
traffic: `python benchmarks/spark.py [--megabytes 800]`.

Prints, for each, wall time, CPU time and the largest memory of the whole tree of processes (and of
its largest Python worker), and CPU milliseconds per megabyte; then the size from which Spark is
faster on this machine, by the measured start and rates: where `--engine auto` switches. tshark gets
a smaller capture of the same traffic: its cost per megabyte does not change, its memory does.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import generate
from measuring import Arguments, Report, cpu_s, kafkascope, looks, stat

HERE = Path(__file__).parent
PAGE = os.sysconf("SC_PAGE_SIZE")
FIELDS = (
    *("frame.number", "frame.time_epoch", "tcp.stream", "ip.src", "ip.dst"),
    *("kafka.api_key", "kafka.api_version", "kafka.correlation_id", "kafka.client_id"),
    *("kafka.topic_name", "kafka.partition_id", "kafka.error", "kafka.batch_codec"),
)


class Watched(NamedTuple):
    """What a command took, its processes together."""

    wall: float
    cpu: float
    memory: float
    """Megabytes that all held at once, at most."""
    worker: float
    """Those of the largest Python process below it."""


def measured(line: list[str], **environment: str) -> Watched:
    """Run a command and watch its processes, for children of a JVM are never waited for."""
    begun = time.monotonic()
    cpu: dict[int, float] = {}
    memory = worker = 0.0
    for first, *others in looks(line, **environment):
        fields = {pid: stat(pid) for pid in (first, *others)}
        held = {pid: int(each[21]) * PAGE / 1e6 for pid, each in fields.items() if each}
        cpu.update({pid: cpu_s([pid]) for pid in held})
        memory = max(memory, sum(held.values()))
        for pid in others:
            if pid in held and name_of(pid).startswith("python"):
                worker = max(worker, held[pid])
    return Watched(time.monotonic() - begun, sum(cpu.values()), memory, worker)


def name_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text()
    return ""


def main() -> None:
    parser = Arguments(__doc__, megabytes=800)
    parser.add_argument("--rival", type=int, default=60, help="megabytes for tshark")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafkascope-bench-") as name:
        path, part = Path(name, "all.pcap"), Path(name, "part.pcap")
        generate.made(path, chosen.megabytes, connections=8)
        generate.made(part, chosen.rival, connections=8)
        compare(Path(name), path, part)


def compare(folder: Path, path: Path, part: Path) -> None:
    ours = kafkascope("spark", "-q")
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
    report = Report(
        "|<24 MB|6.0f wall s|9.1f CPU s|9.1f ms/MB|9.1f MB held|9.0f worker|9.0f load|6.1f"
    )
    found: dict[str, Watched] = {}
    for name, (input_, line) in lines.items():
        cost = found[name] = measured(line, PYTHONDONTWRITEBYTECODE="")
        size = input_.stat().st_size / 1e6
        rate = 1000 * cost.cpu / size
        report.line(name, size, cost.wall, cost.cpu, rate, *cost[2:], os.getloadavg()[0])
    concluded(found, path.stat().st_size / 1e6, part.stat().st_size / 1e6)
    for cores in (1, 2):
        assert exchanges(folder / f"spark-{cores}") == exchanges(folder / "plain")


def concluded(found: dict[str, Watched], size: float, part: float) -> None:
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
