"""The speed and memory that kafkascope has to reach, measured: one table.

    python benchmarks/speed.py [--rounds 5] [--only chatty,reader,tls,start,ui,spark] [--floor]

One process, beside tshark where the goal is a ratio (tshark's CPU seconds divided by ours). Takes
half an hour; numbers count on idle cores and in full size: --scale 0.2 is a quick look. --floor:
exit 1 when a goal is missed.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import chatty
import reader
import tls
from measuring import ONE_PROCESS, ROOT, Arguments, kafkascope, run
from spark import measured

RATIOS: Final = {"ls": 5.0, "latency": 7.0, "check": 4.5, "export": 4.5}
"""Of tshark's speed, for messages with one record."""
BATCHES: Final = {"ls": 5.0, "export": 3.5}
DECRYPTED: Final = 3.5
STARTS: Final = {"ls": 0.15, "check": 0.2}
"""Seconds for a capture of 20 KB."""
UI_S: Final = 10.0
SPARK_MS: Final = 80.0
MEMORY_MB: Final = 80.0


class Line(NamedTuple):
    """What was measured, beside its goal."""

    what: str
    value: float
    unit: str
    goal: float
    at_least: bool = False
    """A ratio, of which more is better."""
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.value >= self.goal if self.at_least else self.value <= self.goal


def _small(rounds: int, scale: float) -> Iterator[Line]:
    for count in (16, 1):
        for work, goal in RATIOS.items():
            (found,) = chatty.results(40 * scale, count, rounds, kinds=[work])
            what = f"small messages, {count} connection{'s' * (count > 1)}: {work}"
            note = f"wall {found.tshark.wall / found.ours.wall:.2f}, {found.ours.cpu:.2f} s of CPU"
            yield Line(what, found.cpu_ratio, "x tshark", goal, True, note)
            note = f"tshark {found.tshark.memory:.0f} MB"
            yield Line(f"{what}, memory", found.ours.memory, "MB", MEMORY_MB, note=note)


def _batches(rounds: int, scale: float) -> Iterator[Line]:
    for found in reader.results(100 * scale, rounds):
        what = f"batches, {found.capture}: {found.work}"
        note = f"{found.ours.cpu:.2f} s of CPU, {found.ours.memory:.0f} MB"
        yield Line(what, found.cpu_ratio, "x tshark", BATCHES[found.work], True, note)


def _decrypted(rounds: int, scale: float) -> Iterator[Line]:
    for found in tls.results(60 * scale, 10 * scale, rounds):
        if found.work != "plain":
            what = f"{found.work}, {found.capture} messages: ls"
            note = f"{found.ours.cpu:.2f} s of CPU, {found.ours.memory:.0f} MB"
            yield Line(what, found.cpu_ratio, "x tshark", DECRYPTED, True, note)


def _starts(rounds: int, scale: float) -> Iterator[Line]:
    sample = str(ROOT / "captures/samples/sasl-old.pcap")
    for word, goal in STARTS.items():
        with tempfile.TemporaryDirectory() as folder:
            costs = [
                run(kafkascope(word, sample, *ONE_PROCESS), Path(folder, "out"), (0, 1))
                for _ in range(4 * rounds)
            ]
        cpu = statistics.median(cost.cpu for cost in costs)
        note = f"wall {statistics.median(cost.wall for cost in costs):.2f} s"
        yield Line(f"start: {word} of 20 KB, CPU", cpu, "s", goal, note=note)


def _ui(rounds: int, scale: float) -> Iterator[Line]:
    count = int(1_000_000 * scale)
    line = [sys.executable, str(Path(__file__).with_name("ui.py")), "--any-python"]
    line += ["--exchanges", str(count)]
    text = subprocess.run(line, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    row = re.search(r"all rows +([\d.]+) s +(.*)", text)
    assert row, text
    what = f"UI: {count:,} exchanges with bodies"
    yield Line(what, float(row[1]), "s", UI_S * scale, note=row[2])


def _spark(rounds: int, scale: float) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = ROOT / "captures/samples/sasl.pcap"
        for count in (16, 1):
            capture = folder / f"{count}.pcap"
            chatty.write(capture, 40 * scale, count)
            spent = []
            for input_ in (start, capture):
                line = kafkascope("spark", "-q", str(input_), "--engine", "spark", "-o")
                spent.append(measured([*line, str(folder / f"{count}-{input_.stem}")]).cpu)
            value = 1000 * (spent[1] - spent[0]) / (capture.stat().st_size / 1e6)
            what = f"Spark, small messages, {count} connection{'s' * (count > 1)}, without start"
            yield Line(what, value, "CPU-ms/MB", SPARK_MS)


PARTS: Final[dict[str, Callable[[int, float], Iterator[Line]]]] = {
    "chatty": _small,
    "reader": _batches,
    "tls": _decrypted,
    "start": _starts,
    "ui": _ui,
    "spark": _spark,
}


def main() -> int:
    parser = Arguments(__doc__, rounds=5, floor=False)
    parser.add_argument("--scale", type=float, default=1, help="of the captures' sizes")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    options = parser.parse_args()
    print("| what | measured | goal | | |\n| --- | --- | --- | --- | --- |")
    missed = 0
    for name in options.only.split(","):
        for line in PARTS[name](options.rounds, options.scale):
            missed += not line.met
            print(f"| {line.what} | {line.value:.2f} {line.unit} | {line.goal:g}", end="")
            print(f" | {'met' if line.met else 'missed'} | {line.note} |", flush=True)
    print(f"{missed} goals missed" if missed else "all goals met")
    return int(options.floor and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
