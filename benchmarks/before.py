"""`kafkascope` against an older commit of itself: user time of whole processes, in turn.

    python benchmarks/before.py /path/to/older/checkout [--rounds 7] [--floor]

The older checkout is a `git worktree` with an environment of its own (`make setup` in it). Runs
what changes of findings or statistics can make slower: starts, small and real captures, many small
messages, large batches. Asserts first that both do the work, and prints the least user time of
each and the ratio (now divided by before). --floor: exit 1 when a ratio is above 1.05, which is
what runs differ by on a machine that has other things to do.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SAMPLES = HERE.parent / "captures" / "samples"
MADE = {
    "small": ("3", "--most", "1", "--connections", "50"),
    "batches": ("40",),
    "encoded": ("25", "--encoded"),
}
"""Captures of `generate.py`: megabytes, options."""
RUNS = (
    ("start", ("--version",)),
    ("ls, tiny", ("ls", "tiny")),
    ("check, tiny", ("check", "tiny")),
    ("ls, real", ("ls", "real")),
    ("check, real", ("check", "real")),
    ("ls, small messages", ("ls", "small")),
    ("check, small messages", ("check", "small")),
    ("check, large batches", ("check", "batches")),
    ("ls, values by schema", ("ls", "encoded")),
    ("check, values by schema", ("check", "encoded")),
)
MOST = 1.05


def run(program: Path, words: list[str]) -> tuple[float, int]:
    """User seconds of a process, and the bytes that it printed."""
    # One order of sets and dicts: else runs of the same code differ.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(
            [program, *words], stdout=out, stderr=subprocess.DEVNULL, env=environment
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 1):
            raise SystemExit(f"{program} {' '.join(words)} ended with {child.returncode}")
        return usage.ru_utime, out.seek(0, os.SEEK_END)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("older", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--floor", action="store_true")
    options = parser.parse_args()
    now = Path(sys.executable).with_name("kafkascope")
    before = options.older / ".venv" / "bin" / "kafkascope"
    missed = []
    print(f"{'run':<24}{'before s':>10}{'now s':>8}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        captures = {"tiny": SAMPLES / "sasl-old.pcap", "real": SAMPLES / "libraries.pcap"}
        for name, (megabytes, *more) in MADE.items():
            captures[name] = Path(folder, f"{name}.pcap")
            command = [sys.executable, HERE / "generate.py", captures[name]]
            command += ["--megabytes", megabytes, *more]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for title, template in RUNS:
            words = [str(captures.get(word, word)) for word in template]
            times: dict[Path, list[float]] = {before: [], now: []}
            # The first round warms caches up and is not counted.
            for turn in range(options.rounds + 1):
                for program in (before, now) if turn % 2 else (now, before):
                    seconds, told = run(program, words)
                    assert told, (program, words)
                    if turn:
                        times[program].append(seconds)
            least = {program: min(each) for program, each in times.items()}
            ratio = least[now] / least[before]
            print(f"{title:<24}{least[before]:>10.3f}{least[now]:>8.3f}{ratio:>8.2f}", flush=True)
            if ratio > MOST:
                missed.append(title)
    print("missed: " + ", ".join(missed) if missed else "all within the target")
    return int(options.floor and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
