"""Small fields that would expand to very much: time and memory stay bounded, the first records are
there. Each runs in a process of its own, for only that tells its peak memory."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.records.records import RECORD_LIMIT, Record
from kafkascope.dissectors.records.writer import encode_batch, encode_message, encode_message_set

RUN = """
import resource, sys, time
from kafkascope.dissectors.records.compression import decompress
from kafkascope.dissectors.records.records import batches, open_batch
data = open(sys.argv[1], "rb").read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
for batch in batches(data):
    opened = open_batch(data, batch)
    assert opened.error is not None
    print(opened.error.word, len(opened.records))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(time.process_time() - start, grown // 1024)
"""


def opened(data: bytes, folder: Path) -> tuple[str, int, float, int]:
    """Word of the error, records, seconds, MB of growth."""
    file = folder / "field"
    file.write_bytes(data)
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", RUN, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    word, count, seconds, grown = done.stdout.split()
    return word, int(count), float(seconds), int(grown)


def batch_of(codec: int, count: int, body: bytes) -> bytes:
    """A batch with a body that its header knows nothing of."""
    head = bytearray(encode_batch([Record(0, 1, None, None, ())])[:61])
    head[8:12] = struct.pack(">i", 49 + len(body))
    head[22] = codec
    head[57:61] = struct.pack(">i", count)
    return bytes(head) + body


def test_message_sets_within_a_message_set_share_one_limit(tmp_path: Path) -> None:
    inner = encode_message_set(1, [Record(0, 1, None, bytes(4 << 20), ())], codec=1)
    data = encode_message(1, Record(499, 1, None, compress(1, inner * 500), ()), 1)
    assert len(data) < 4000
    word, count, seconds, grown = opened(data, tmp_path)
    assert word == "too-large"
    assert 0 < count < 40
    assert seconds < 10
    assert grown < 400


def test_millions_of_smallest_records_are_cut_off(tmp_path: Path) -> None:
    smallest = b"\x0c\0\0\0\x01\x01\0"
    count = 18 << 20
    data = batch_of(4, count, compress(4, smallest * count))
    assert len(data) < 20_000
    word, found, seconds, grown = opened(data, tmp_path)
    assert (word, found) == ("too-large", RECORD_LIMIT)
    assert seconds < 30
    assert grown < 600


@pytest.mark.parametrize("codec", [1, 3, 4])
def test_a_member_in_every_few_bytes_takes_linear_time(codec: int, tmp_path: Path) -> None:
    nothing = zstandard.ZstdCompressor().compress(b"") if codec == 4 else compress(codec, b"")
    data = batch_of(codec, 1, nothing * 200_000)
    word, found, seconds, grown = opened(data, tmp_path)
    assert (word, found) == ("truncated", 0)
    assert seconds < 10
    assert grown < 100


@pytest.mark.slow
@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_of_zeros(codec: int, tmp_path: Path) -> None:
    zeros = bytes(300 << 20)
    data = batch_of(codec, 1, compress(codec, zeros))
    word, found, _, grown = opened(data, tmp_path)
    assert (word, found) == ("too-large", 0)
    # Twice the limit of 128 MB and the step over it: the last piece is there before it is counted.
    assert grown < 340
