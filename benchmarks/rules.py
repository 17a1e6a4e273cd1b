"""Measures the proxy's forwarding path without rules, against an older commit.

    python benchmarks/rules.py /path/to/older/checkout [--rounds 25] [--floor]

The older checkout is a `git worktree` with its own environment (`make setup` in it). Both get the
same frames in turn, without sockets: heartbeats, Produce requests of 64 KB, and Fetch responses of
500 KB, in pieces as sockets return them. The table has the least CPU time of a request with its
response, the ratio (now divided by before), and the time with a rule about another API. --floor:
exit 1 if a ratio without rules exceeds 1.05, the difference between runs on a busy machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from measuring import Arguments, Report

HERE = Path(__file__).resolve()
MAX_RATIO = 1.05
RULE = "api == Metadata and topic == nobody -> drop"
COUNTS = {"heartbeats": 2000, "produce 64 KB": 2000, "fetch 500 KB": 2000}
READ_BYTES = 64 * 1024


def serve(rule: str) -> None:
    """Measure the code of the working directory: each line of stdin names the frames."""
    sys.path.insert(0, str(Path.cwd()))
    from kafkascope.proxy.rules.faults import parse_fault
    from kafkascope.proxy.rules.rules import Chain
    from tests.kit.proxy import (
        FETCH,
        HEARTBEAT,
        PRODUCE,
        Bench,
        fetched,
        produce,
        request,
        response,
    )

    frames = {
        "heartbeats": (request(HEARTBEAT, 4), response(HEARTBEAT, 4)),
        "produce 64 KB": (produce(size=64 * 1024), response(PRODUCE, 9)),
        "fetch 500 KB": (request(FETCH, 12), fetched(12, [], records=500_000)),
    }
    for line in sys.stdin:
        name = line.strip()
        bench = Bench()
        if rule:
            Chain([parse_fault(rule)]).attach(bench.hub)
        feed, count, now = bench.relay.feed, COUNTS[name], 1_000_000_000
        pieces = [
            (side, memoryview(frame)[begin : begin + READ_BYTES])
            for side, frame in enumerate(frames[name])
            for begin in range(0, len(frame), READ_BYTES)
        ]
        began = time.process_time_ns()
        for _ in range(count):
            for side, piece in pieces:
                now += 1000
                feed(side, piece, now)
        print((time.process_time_ns() - began) / count / 1000, flush=True)


class Checkout:
    """A process that measures one checkout."""

    def __init__(self, folder: Path, rule: str = "") -> None:
        python = folder / ".venv" / "bin" / "python"
        self._child = subprocess.Popen(
            [python, HERE, "--serve", rule, "-"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.least = dict.fromkeys(COUNTS, float("inf"))
        """Microseconds of CPU for a request with its response, by name of the frames."""

    def measure(self, name: str) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        print(name, file=self._child.stdin, flush=True)
        self.least[name] = min(self.least[name], float(self._child.stdout.readline()))

    def close(self) -> None:
        self._child.communicate()


def main() -> int:
    parser = Arguments(__doc__, any_python=True, rounds=25, floor=False)
    parser.add_argument("older", type=Path, help="a checkout with an environment")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return 0
    now = HERE.parent.parent
    runs = before, plain, ruled = Checkout(options.older), Checkout(now), Checkout(now, RULE)
    for turn in range(options.rounds + 1):
        for name in COUNTS:
            for run in runs if turn % 2 else reversed(runs):
                run.measure(name)
        if not turn:  # the first round warms caches up
            for run in runs:
                run.least = dict.fromkeys(COUNTS, float("inf"))
    report = Report("frames|<16 before µs|10.2f now µs|8.2f ratio|7.2f a rule for others µs|22.2f")
    for name in COUNTS:
        least = [run.least[name] for run in (before, plain)]
        ratio = least[1] / least[0]
        report.line(name, *least, ratio, ruled.least[name], missed=ratio > MAX_RATIO)
    for run in runs:
        run.close()
    return report.end(options.floor)


if __name__ == "__main__":
    sys.exit(main())
