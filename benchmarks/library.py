"""Iterating over exchanges with their bodies, as a library, against pyshark on the same capture.

    python -m venv /tmp/pyshark && /tmp/pyshark/bin/pip install pyshark
    python benchmarks/library.py --pyshark /tmp/pyshark/bin/python [--megabytes 10] [--floor]

Both are Python programs of a few lines that look at fields of every request and response: ours at
the decoded bodies of both, pyshark's at the layer's fields. Processes run in turn, medians of three
rounds. --floor: exit 1 when the target is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Final

import generate
from reader import run

FASTER: Final = 10.0
OURS: Final = """
import sys
import kafkascope as ks
count = topics = 0
for exchange in ks.open(sys.argv[1]):
    count += (exchange.request is not None) + (exchange.response is not None)
    request = exchange.request or {}
    topics += len(request.get("topic_data", request.get("topics", ())))
print(count, topics)
"""
THEIRS: Final = """
import sys
import pyshark
count = topics = 0
for packet in pyshark.FileCapture(sys.argv[1], display_filter="kafka"):
    for layer in packet.layers:
        if layer.layer_name == "kafka":
            count += 1
            topics += hasattr(layer, "topic_name")
print(count, topics)
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pyshark", required=True, help="a Python that has pyshark")
    options.add_argument("--megabytes", type=float, default=10)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--floor", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture = folder / "records.pcap"
        sizes = ["--megabytes", str(given.megabytes), str(capture)]
        generate.write(capture, generate.options_of(sizes))
        commands = {
            "kafkascope": [sys.executable, "-c", OURS, str(capture)],
            "pyshark": [given.pyshark, "-c", THEIRS, str(capture)],
        }
        times: dict[str, list[float]] = {who: [] for who in commands}
        memory: dict[str, float] = {}
        counted: dict[str, int] = {}
        for _ in range(given.rounds):
            for who, command in commands.items():
                out = folder / who
                wall, _, most = run(command, out)
                times[who].append(wall)
                memory[who] = max(most, memory.get(who, 0.0))
                counted[who] = int(out.read_text().split()[0])
    if counted["kafkascope"] < counted["pyshark"]:
        raise SystemExit(f"messages: {counted}")
    ours, theirs = (statistics.median(times[who]) for who in ("kafkascope", "pyshark"))
    print(f"{counted['kafkascope']} messages; {given.megabytes:.0f} MB")
    print(f"kafkascope {ours:.2f} s, {memory['kafkascope']:.0f} MB")
    print(f"pyshark    {theirs:.2f} s, {memory['pyshark']:.0f} MB (its tshark apart)")
    print(f"ratio      {theirs / ours:.1f}")
    if given.floor and theirs < FASTER * ours:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
