"""Filters over the columns of many exchanges: milliseconds each.

    python benchmarks/filter.py [--rows 1000000] [--floor]

The rows are those of a sample, again and again. --floor: exit 1 when a filter that needs no message
takes longer than `TARGET_MS`.
"""

from __future__ import annotations

import sys
from array import array
from pathlib import Path

from measuring import Arguments, Report, calls_in_turn

from kafkascope.analyzer.exchanges.offline import open_capture
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
    for name, column in session.columns.items():
        if isinstance(column, array) and len(column) == size:
            session.columns[name] = array(column.typecode, column.tobytes() * times)
    return len(session)


def main() -> int:
    options = Arguments(__doc__, rows=1_000_000, floor=False).parse_args()
    with open_capture([SAMPLE]) as capture:
        session = session_of(capture)
        print(f"{many(session, options.rows)} rows")
        report = Report("filter|<62 ms|8.1f found|10")
        for text in FILTERS:
            query = compile_query(text)
            found = int(query.mask(session).sum())
            taken = min(calls_in_turn({text: lambda query=query: query.mask(session)}, 3)[text])
            report.line(text, taken / 1000, found, missed=taken / 1000 > TARGET_MS)
    return report.end(options.floor)


if __name__ == "__main__":
    sys.exit(main())
