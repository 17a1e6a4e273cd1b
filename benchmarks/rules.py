"""What rules cost the forwarding path while there are none, against an older commit of itself.

    python benchmarks/rules.py /path/to/older/checkout [--rounds 25] [--floor]

The older checkout is a `git worktree` with an environment of its own (`make setup` in it). A
connection of each, without sockets, is fed the same frames in turn: heartbeats, Produce requests of
64 KB and Fetch answers of 500 KB, in pieces as sockets give them. Printed is the least CPU time of
a request with its answer, and the ratio (now divided by before); beside it what a rule about
another API costs now. --floor: exit 1 when a ratio without rules is above 1.05, which is what runs
differ by on a machine that has other things to do.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from measuring import Arguments, Report

HERE = Path(__file__).resolve()
MOST = 1.05
RULE = "api == Metadata and topic == nobody -> drop"
COUNTS = {"heartbeats": 2000, "produce 64 KB": 2000, "fetch 500 KB": 2000}
READ_BYTES = 64 * 1024


def serve(rule: str) -> None:
    """Measure, with the code of the working directory, what is asked for by lines of stdin."""
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


class Measured:
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
        """Microseconds of CPU of a request with its answer."""

    def measure(self, name: str) -> None:
        """Take one more measurement."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        print(name, file=self._child.stdin, flush=True)
        self.least[name] = min(self.least[name], float(self._child.stdout.readline()))

    def close(self) -> None:
        """End it."""
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
    runs = before, plain, ruled = Measured(options.older), Measured(now), Measured(now, RULE)
    for turn in range(options.rounds + 1):
        for name in COUNTS:
            for each in runs if turn % 2 else reversed(runs):
                each.measure(name)
        if not turn:  # it warmed caches up
            for each in runs:
                each.least = dict.fromkeys(COUNTS, float("inf"))
    report = Report("frames|<16 before µs|10.2f now µs|8.2f ratio|7.2f a rule for others µs|22.2f")
    for name in COUNTS:
        least = [each.least[name] for each in (before, plain)]
        ratio = least[1] / least[0]
        report.line(name, *least, ratio, ruled.least[name], missed=ratio > MOST)
    for each in runs:
        each.close()
    return report.end(options.floor)


if __name__ == "__main__":
    sys.exit(main())
