"""Small messages: `ls --json`, `stats latency`, `check` and `export --full` against tshark.

    python benchmarks/chatty.py [--megabytes 40] [--connections 16] [--rounds 3] [--jobs 1]
    python benchmarks/chatty.py --make OUT.pcap [--megabytes 40] [--connections 16]

Makes a capture of what debugging mostly sees: Produce 7 and Fetch 10 in turn, one record of 200
bytes each, codecs none, none, gzip, MTU 1500. Runs whole processes in turn, ours with its modules
compiled, as an installed program has them. Asserts first that our output holds every exchange (and
every record, with `export`), and prints medians: wall and CPU seconds, tshark's divided by ours,
and the largest sum of PSS of all processes of a run, which a run of its own measures. `--make` only
writes the capture. --floor: exit 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import generate
from reader import kafkascope, run
from spark import tree

CODECS = (0, 0, 1)
VALUE_BYTES = 200
FIELDS = ("frame.number", "frame.time_epoch", "ip.src", "kafka.api_key", "kafka.api_version")
FIELDS += ("kafka.correlation_id", "kafka.topic_name", "kafka.error")
WALL = {16: {"ls": 2.0, "latency": 2.0, "check": 1.6, "export": 3.0}}
WALL |= {1: {"ls": 1.3, "latency": 1.3, "check": 1.0, "export": 2.0}}
CPU = {"ls": 1.2, "latency": 1.2, "check": 0.9, "export": 1.8}


def batch(turn: int, now: int, random_: random.Random, words: bytes) -> bytes:
    """A batch of magic 2 with one record."""
    start = random_.randrange(len(words) - VALUE_BYTES)
    value = words[start : start + VALUE_BYTES]
    key = b"k%d" % (turn % 7)
    body = b"\0\0\0" + generate.varint(len(key)) + key + generate.varint(len(value)) + value + b"\0"
    record = generate.varint(len(body)) + body
    return generate.sealed(CODECS[turn % len(CODECS)], turn * 1000, 1, record, now)


def write(path: Path, megabytes: float, connections: int) -> generate.Truth:
    random_, truth = random.Random(7), generate.Truth()
    letters = b"abcdefghijklmnopqrstuvwxyz0123456789"
    words = b'","'.join(bytes(random_.choices(letters, k=7)) for _ in range(500))
    now, turn = generate.START_NS, 0
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        all_ = [generate.Tcp(out, number, 1448, truth) for number in range(connections)]
        for connection in all_:
            connection.open(now)
            now += 10_000
        while out.tell() < megabytes * 1e6:
            # A client produces and fetches: pairs of requests stay on one connection.
            connection = all_[turn // 2 % connections]
            ask, answer = (generate.fetch if turn % 2 else generate.produce)(
                turn, batch(turn, now, random_, words)
            )
            now = connection.send(0, ask, now) + 200_000
            now = connection.send(1, answer, now) + 50_000
            truth.exchanges += 1
            truth.records += 1
            truth.value_bytes += VALUE_BYTES
            turn += 1
    return truth


def memory(command: list[str]) -> float:
    """The largest sum of PSS of a process and its children, in megabytes."""
    most = 0
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while child.poll() is None:
        held = 0
        for pid in tree(child.pid):
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:
                continue
            held += next((int(x.split()[1]) for x in text.splitlines() if x.startswith("Pss:")), 0)
        most = max(most, held)
        time.sleep(0.1)
    return most / 1024


def proven(name: str, output: Path, truth: generate.Truth) -> None:
    """Assert that the work was done."""
    text = output.read_bytes()
    if name in ("ls", "export"):
        lines = text.splitlines()
        assert len(lines) == truth.exchanges, (name, len(lines), truth.exchanges)
        if name == "export":
            records = sum(line.count(b'"schema":"record/1"') for line in lines)
            assert records == truth.records, (records, truth.records)
    else:
        assert text, name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=40)
    parser.add_argument("--connections", type=int, action="append", help="default: 16, then 1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, help="our processes; default: as many as cores")
    parser.add_argument("--only", action="append", choices=CPU, help="of the four kinds of work")
    parser.add_argument("--make", type=Path)
    parser.add_argument("--floor", action="store_true")
    options = parser.parse_args()
    counts = options.connections or [16, 1]
    if options.make is not None:
        print(json.dumps(vars(write(options.make, options.megabytes, counts[0]))))
        return 0
    missed = []
    print(
        f"{'connections':<12}{'work':<9}{'ours s':>8}{'CPU':>7}{'tshark s':>10}{'CPU':>7}", end=""
    )
    print(f"{'wall':>7}{'CPU':>7}{'ours MB':>9}{'tshark MB':>11}")
    with tempfile.TemporaryDirectory() as folder:
        capture, out = Path(folder, "chatty.pcap"), Path(folder, "out")
        # What installing a program does, a checkout does at the first run, unless it may not.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(folder, "compiled"))
        for count in counts:
            truth = write(capture, options.megabytes, count)
            for name in options.only or CPU:
                ours, theirs = commands(capture, options.jobs)[name]
                held, theirs_held = memory(ours), memory(theirs)
                mine, rival = [], []
                for _ in range(options.rounds):
                    mine.append(run(ours, out, may_end_with=(0, 1)))
                    proven(name, out, truth)
                    rival.append(run(theirs, out))
                a = [statistics.median(column) for column in zip(*mine, strict=True)]
                b = [statistics.median(column) for column in zip(*rival, strict=True)]
                wall, cpu = b[0] / a[0], b[1] / a[1]
                print(
                    f"{count:<12}{name:<9}{a[0]:>8.2f}{a[1]:>7.2f}{b[0]:>10.2f}{b[1]:>7.2f}", end=""
                )
                print(f"{wall:>7.2f}{cpu:>7.2f}{held:>9.0f}{theirs_held:>11.0f}", flush=True)
                if cpu < CPU[name] or wall < WALL.get(count, WALL[1])[name] or held > theirs_held:
                    missed.append(f"{count} {name}")
    print("missed: " + ", ".join(missed) if missed else "all targets met")
    return int(options.floor and bool(missed))


def commands(capture: Path, jobs: int | None) -> dict[str, tuple[list[str], list[str]]]:
    """For each kind of work our command and tshark's."""
    program = kafkascope()
    many = [] if jobs is None else ["--jobs", str(jobs)]
    tshark = ["tshark", "-n", "-r", str(capture), "-Y", "kafka"]
    fields = [*tshark, "-T", "fields", *(word for each in FIELDS for word in ("-e", each))]
    export = ["export", str(capture), "--full", "-o", "-", "--format", "jsonl"]
    return {
        "ls": ([program, "ls", str(capture), "--json", *many], fields),
        "latency": ([program, "stats", "latency", str(capture), *many], fields),
        "check": ([program, "check", str(capture), *many], fields),
        "export": ([program, *export, *many], [*tshark, "-T", "json", "-J", "kafka"]),
    }


if __name__ == "__main__":
    os.environ["PYTHONHASHSEED"] = "0"  # One order of sets: else runs of the same code differ.
    sys.exit(main())
