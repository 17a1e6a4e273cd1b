"""Segments of a partition, written by hand."""

from pathlib import Path

from kafkascope.analyzer.logdir.opening import AtRest, open_at_rest
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch

SEGMENT = "00000000000000000000.log"


TIME = 1_700_000_000_000


def batch(offset: int, count: int = 3, **options: int) -> bytes:
    records = [
        Record(offset + i, TIME + i, b"k%d" % i, b"value %d" % (offset + i), ())
        for i in range(count)
    ]
    return encode_batch(records, **{"leader_epoch": 0, **options})


def log(folder: Path, *parts: bytes, name: str = SEGMENT) -> AtRest:
    path = folder / name
    path.write_bytes(b"".join(parts))
    return open_at_rest(path)
