"""`kafkascope ls` and `export` against tshark, on the same capture in the same run.

    python benchmarks/reader.py [--megabytes 100] [--rounds 3] [--floor]

Makes the captures (MTU 1500 and 64 KB segments), times whole processes in turn, and asserts first
that our output holds exactly the
records and value bytes that the generator wrote. Prints a table of ratios (tshark divided by ours,
median of the rounds) and peak
memory. --floor: exit 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
FIELDS = [
    "frame.number",
    "frame.time_epoch",
    "ip.src",
    "ip.dst",
    "kafka.api_key",
    "kafka.api_version",
]
FIELDS += ["kafka.correlation_id", "kafka.client_id"]
TARGETS = {"ls": 1.5, "export": 3.0}


def kafkascope() -> str:
    beside = Path(sys.executable).with_name("kafkascope")
    return str(beside) if beside.exists() else shutil.which("kafkascope") or "kafkascope"


def run(
    command: list[str], output: Path, may_end_with: tuple[int, ...] = (0,)
) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak megabytes of a process; its stdout goes to `output`."""
    start = time.perf_counter()
    with output.open("wb") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in may_end_with:
        raise SystemExit(f"{command[0]} ended with {child.returncode}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def check(export: Path, truth: dict[str, int]) -> None:
    """The export holds what the generator wrote: exchanges, records, value bytes."""
    exchanges = records = value_bytes = 0
    with export.open("rb") as lines:
        for line in lines:
            exchanges += 1
            for found in _records(json.loads(line)):
                records += 1
                value_bytes += len(found["value"].encode())
    assert (exchanges, records, value_bytes) == (
        truth["exchanges"],
        truth["records"],
        truth["value_bytes"],
    ), (exchanges, records, value_bytes, truth)


def _records(value: object) -> list[dict[str, str]]:
    """All records of the `batches` anywhere in a row."""
    if isinstance(value, list):
        return [found for each in value for found in _records(each)]
    if isinstance(value, dict):
        if isinstance(value.get("batches"), list):
            return [record for batch in value["batches"] for record in batch["records"]]
        return [found for each in value.values() for found in _records(each)]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--floor", action="store_true")
    options = parser.parse_args()
    program, missed = kafkascope(), []
    print(f"{'capture':<10}{'run':<8}{'ours s':>9}{'tshark s':>10}{'ratio':>7}", end="")
    print(f"{'cpu ratio':>11}{'ours MB':>9}{'tshark MB':>11}")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        for name, mss in (("mtu1500", 1448), ("64k", 65000)):
            capture = Path(folder, f"{name}.pcap")
            made = subprocess.run(
                [
                    sys.executable,
                    HERE / "generate.py",
                    capture,
                    "--mss",
                    str(mss),
                    "--megabytes",
                    str(options.megabytes),
                ],
                capture_output=True,
                check=True,
            )
            truth = json.loads(made.stdout)
            tshark = ["tshark", "-n", "-r", str(capture), "-Y", "kafka"]
            pairs = {
                "ls": (
                    [program, "ls", str(capture)],
                    [*tshark, "-T", "fields", *(w for f in FIELDS for w in ("-e", f))],
                ),
                "export": (
                    [
                        program,
                        "export",
                        str(capture),
                        "--full",
                        "-o",
                        "/dev/stdout",
                        "--format",
                        "jsonl",
                    ],
                    [*tshark, "-T", "json", "-J", "kafka"],
                ),
            }
            for word, (ours, theirs) in pairs.items():
                mine, rival = [], []
                for _ in range(options.rounds):
                    mine.append(run(ours, out))
                    if word == "export":
                        check(out, truth)
                    rival.append(run(theirs, out))
                a = [statistics.median(column) for column in zip(*mine, strict=True)]
                b = [statistics.median(column) for column in zip(*rival, strict=True)]
                print(f"{name:<10}{word:<8}{a[0]:>9.2f}{b[0]:>10.2f}{b[0] / a[0]:>7.2f}", end="")
                print(f"{b[1] / a[1]:>11.2f}{a[2]:>9.0f}{b[2]:>11.0f}", flush=True)
                if b[0] / a[0] < TARGETS[word] or a[2] > b[2] / 2:
                    missed.append(f"{name} {word}")
    print("missed: " + ", ".join(missed) if missed else "all targets met")
    return int(options.floor and bool(missed))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
