"""Records as JSON take the memory of some of them, however many a batch holds. It runs in a
process of its own, for only that tells its peak memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUN = """
import resource
from kafkascope.analyzer.exchanges.records import RecordField, batch_objects
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.records.records import Record, batches, open_batch
records = [Record(n, 1, b"k", b"v" * 20, ()) for n in range(100_000)]
field = RecordField("produce", "t", None, 0, encode_batch(records), None)
del records
for batch in batches(field.data):
    opened = open_batch(field.data, batch)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = sum(map(len, batch_objects(1, field, batch, opened.records, None, b"\\n")))
print(made >> 20, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_a_batch_of_many_records_takes_less_than_its_text() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, check=True, cwd=root
    )
    text, grown = map(int, done.stdout.split())
    assert text > 20
    assert grown < text / 2
