"""Iterating over exchanges with their bodies, as a library, against pyshark on the same capture.

    python -m venv /tmp/pyshark && /tmp/pyshark/bin/pip install pyshark
    python benchmarks/library.py --pyshark /tmp/pyshark/bin/python [--megabytes 10] [--floor]

Both are Python programs of a few lines that look at fields of every request and response: ours at
the decoded bodies of both, pyshark's at the layer's fields. Processes run in turn, medians of three
rounds. --floor: exit 1 when the target is missed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

import generate
from measuring import Arguments, Report, in_turn

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


def main() -> int:
    parser = Arguments(__doc__, megabytes=10.0, rounds=3, floor=False)
    parser.add_argument("--pyshark", required=True, help="a Python that has pyshark")
    options = parser.parse_args()
    counted: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        capture, out = Path(folder, "records.pcap"), Path(folder, "out")
        generate.made(capture, options.megabytes)
        programs = {"kafkascope": (sys.executable, OURS), "pyshark": (options.pyshark, THEIRS)}
        costs = in_turn(
            {who: [python, "-c", text, str(capture)] for who, (python, text) in programs.items()},
            options.rounds,
            out,
            lambda who: counted.update({who: int(out.read_text().split()[0])}),
        )
    if counted["kafkascope"] < counted["pyshark"]:
        raise SystemExit(f"messages: {counted}")
    print(f"{counted['kafkascope']} messages; {options.megabytes:.0f} MB; pyshark's tshark apart")
    report = Report("|<12 wall s|8.2f MB|7.0f ratio|7.1f")
    theirs = costs["pyshark"].wall
    for who, cost in costs.items():
        ratio = theirs / cost.wall
        missed = who == "kafkascope" and ratio < FASTER
        report.line(who, cost.wall, cost.memory, ratio, missed=missed)
    return report.end(options.floor)


if __name__ == "__main__":
    sys.exit(main())
