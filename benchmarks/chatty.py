"""Small messages: `ls --json`, `stats latency`, `check` and `export --full` against tshark.

    python benchmarks/chatty.py [--megabytes 40] [--connections 16] [--rounds 5] [--jobs 1]
    python benchmarks/chatty.py --make OUT.pcap [--megabytes 40] [--connections 16]

Makes a capture of what debugging mostly sees: Produce 7 and Fetch 10 in turn, one record of 200
bytes each, codecs none, none, gzip, MTU 1500. Runs whole processes in turn, and asserts first that
our output holds every exchange (and every record, with `export`). Prints medians: wall and CPU
seconds, tshark's divided by ours, and the largest sum of PSS of all processes of a run, which a run
of its own measures; targets are about CPU. `--make` only writes the capture. --floor: exit 1 when a
target is missed.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import generate
from measuring import (
    Arguments,
    Compared,
    Report,
    in_turn,
    kafkascope,
    looks,
    megabytes,
    tshark,
    tshark_json,
)

CODECS = (0, 0, 1)
VALUE_BYTES = 200
FIELDS = ("frame.number", "frame.time_epoch", "ip.src", "kafka.api_key", "kafka.api_version")
FIELDS += ("kafka.correlation_id", "kafka.topic_name", "kafka.error")
CPU = {"ls": 1.2, "latency": 1.2, "check": 0.9, "export": 3.5}
WORDS = {
    "ls": ("ls", "--json"),
    "latency": ("stats", "latency"),
    "check": ("check",),
    "export": ("export", "--full", "-o", "-", "--format", "jsonl"),
}


def write(path: Path, size: float, connections: int) -> generate.Truth:
    """Write a capture of so many megabytes."""
    random_ = random.Random(7)
    letters = b"abcdefghijklmnopqrstuvwxyz0123456789"
    words = b'","'.join(bytes(random_.choices(letters, k=7)) for _ in range(500))

    def turn(number: int, now: int) -> generate.Turn:
        start = random_.randrange(len(words) - VALUE_BYTES)
        key, value = b"k%d" % (number % 7), words[start : start + VALUE_BYTES]
        record = generate.record(0, key, value)
        batch = generate.sealed(CODECS[number % len(CODECS)], number * 1000, 1, record, now)
        # A client produces and fetches: pairs of requests stay on one connection.
        kind = generate.fetch if number % 2 else generate.produce
        return generate.Turn(number // 2 % connections, *kind(number, batch), (VALUE_BYTES,))

    return generate.traffic(path, turn, connections, size=int(size * 1e6))


def memory(command: list[str]) -> float:
    """The largest sum of PSS of a process and its children, in megabytes."""
    return max(map(megabytes, looks(command)), default=0.0)


def proven(name: str, output: Path, truth: generate.Truth) -> None:
    """Assert that the work was done."""
    text = output.read_bytes()
    if name in ("ls", "export"):
        assert text.count(b"\n") == truth.exchanges, (name, text.count(b"\n"), truth.exchanges)
        if name == "export":
            records = text.count(b'"schema":"record/1"')
            assert records == truth.records, (records, truth.records)
    else:
        assert text, name


def results(
    size: float, connections: int, rounds: int, jobs: int = 1, kinds: Iterable[str] = CPU
) -> Iterator[Compared]:
    """Yield the cost of each kind of work; memory is that of all processes of a run of its own."""
    with tempfile.TemporaryDirectory() as folder:
        capture, out = Path(folder, "chatty.pcap"), Path(folder, "out")
        truth = write(capture, size, connections)
        for name in kinds:
            ours = kafkascope(*WORDS[name], str(capture), "--jobs", str(jobs))
            theirs = tshark_json(capture) if name == "export" else tshark(capture, FIELDS)

            def proven_of(who: str, name: str = name) -> None:
                if who == "ours":
                    proven(name, out, truth)

            costs = in_turn({"ours": ours, "tshark": theirs}, rounds, out, proven_of)
            mine = costs["ours"]._replace(memory=memory(ours))
            rival = costs["tshark"]._replace(memory=memory(theirs))
            yield Compared(str(connections), name, mine, rival)


def main() -> int:
    parser = Arguments(__doc__, megabytes=40.0, rounds=5, floor=False)
    parser.add_argument("--connections", type=int, action="append", help="default: 16, then 1")
    parser.add_argument("--jobs", type=int, default=1, help="our processes; 0: as many as cores")
    parser.add_argument("--only", action="append", choices=CPU, help="of the four kinds of work")
    parser.add_argument("--make", type=Path)
    options = parser.parse_args()
    counts = options.connections or [16, 1]
    if options.make is not None:
        print(json.dumps(vars(write(options.make, options.megabytes, counts[0]))))
        return 0
    report = Report(
        "connections|<12 work|<9 ours s|8.2f CPU|7.2f tshark s|10.2f CPU|7.2f wall|7.2f CPU|7.2f"
        " ours MB|9.0f tshark MB|11.0f"
    )
    how = (options.rounds, options.jobs, options.only or CPU)
    for count in counts:
        for found in results(options.megabytes, count, *how):
            a, b, name = found.ours, found.tshark, found.work
            report.line(
                *(found.capture, name, a.wall, a.cpu, b.wall, b.cpu, found.wall_ratio),
                *(found.cpu_ratio, a.memory, b.memory),
                missed=found.cpu_ratio < CPU[name] or a.memory > b.memory,
            )
    return report.end(options.floor)


if __name__ == "__main__":
    sys.exit(main())
