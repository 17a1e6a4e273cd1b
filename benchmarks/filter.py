"""Filters over the columns of many exchanges: milliseconds each.

    python benchmarks/filter.py [--rows 1000000] [--floor]

The rows are those of a sample, again and again. --floor: exit 1 when a filter that needs no message
takes longer than `TARGET_MS`.
"""

from __future__ import annotations

import argparse
import sys
import time
from array import array
from pathlib import Path

from kafkascope.analyzer import open_capture
from kafkascope.analyzer.filter.language import compile_query
from kafkascope.analyzer.session.session import Session, session_of

SAMPLE = Path(__file__).parents[1] / "captures" / "samples" / "cluster.pcap.gz"
TARGET_MS = 150
"""Of the terminal UI: filters apply while somebody types."""
FILTERS = (
    "api == Fetch",
    'api in {Produce, Fetch} and client == "orders-svc"',
    "error != 0",
    "excess > 250ms",
    "latency > 1s and not wait",
    "topic == orders and partition in {0, 3..5}",
    'topic contains ".dlq"',
    "group ~ ^orders and api in {JoinGroup, SyncGroup, LeaveGroup}",
    "removed_in <= 4.0.0",
    "software ~ librdkafka and software.version < 2.3",
    "client.ip == 10.0.0.0/24 and not answered",
    "time >= 12:03:00 and time < 12:03:10",
    "time.delta > 1s",
    "codec == zstd and api == Fetch and version < 10",
    "frame == 12",
)


def many(session: Session, rows: int) -> int:
    """Repeat the rows of a session; how many there are then."""
    size = len(session)
    times = -(-rows // size)
    for name, column in vars(session).items():
        if isinstance(column, array) and len(column) == size:
            setattr(session, name, array(column.typecode, column.tobytes() * times))
    return len(session)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--floor", action="store_true")
    options = parser.parse_args()
    missed = 0
    with open_capture([SAMPLE]) as capture:
        session = session_of(capture)
        print(f"{many(session, options.rows)} rows")
        for text in FILTERS:
            taken = []
            for _ in range(3):
                begun = time.perf_counter()
                found = compile_query(text).mask(session)
                taken.append(1000 * (time.perf_counter() - begun))
            missed += min(taken) > TARGET_MS
            print(f"{min(taken):7.1f} ms {int(found.sum()):9} found   {text}")
    return 1 if missed and options.floor else 0


if __name__ == "__main__":
    sys.exit(main())
