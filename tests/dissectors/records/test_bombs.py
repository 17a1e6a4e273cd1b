"""Small fields that would expand to very much: time and memory stay bounded, the first records are
there. Each runs in a process of its own, for only that tells its peak memory."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cramjam
import pytest
import zstandard

from kafkascope.dissectors.errors import Truncated
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.records import large, records, writer
from kafkascope.dissectors.records.compression import compress, decompress
from kafkascope.dissectors.records.large import Budget, read_body
from kafkascope.dissectors.records.records import Record, batches, open_batch, read_records
from kafkascope.dissectors.records.writer import encode_message, encode_message_set, encode_record
from tests.kit.batches import batch_of
from tests.kit.samples import ROOT

RUN = """
import resource, sys, time
from kafkascope.dissectors.records.compression import decompress
from kafkascope.dissectors.records.records import batches, open_batch
data = open(sys.argv[1], "rb").read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
for batch in batches(data):
    opened = open_batch(data, batch)
    print(opened.error.word, len(opened.records))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(time.process_time() - start, grown // 1024)
"""


def opened(data: bytes, folder: Path) -> tuple[str, int, float, int]:
    """Word of the error, records, seconds, MB of growth."""
    file = folder / "field"
    file.write_bytes(data)
    command = [sys.executable, "-c", RUN, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    word, count, seconds, grown = done.stdout.split()
    return word, int(count), float(seconds), int(grown)


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
    count = 9 << 20
    data = batch_of(4, count, compress(4, smallest * count))
    assert len(data) < 20_000
    word, found, seconds, grown = opened(data, tmp_path)
    assert (word, found) == ("too-large", LIMITS.records)
    assert seconds < 30
    assert grown < 200


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
    # The limit of 64 MB and a piece over it, which is there before it is counted.
    assert grown < 150


def smallest_headers(count: int) -> bytes:
    """A record with headers of two bytes."""
    body = b"\0\0\0\x01\x01" + writer.varint(count) + b"\0\0" * count
    return writer.varint(len(body)) + body


@pytest.mark.parametrize(
    ("count", "record"),
    [
        (60, encode_record(Record(0, 1, None, bytes(1 << 20), ()), 0, 1)),
        (1, encode_record(Record(0, 1, None, bytes(60 << 20), ()), 0, 1)),
        pytest.param(1500, smallest_headers(16_000), marks=pytest.mark.slow),
    ],
    ids=["values", "one value", "headers"],
)
def test_a_batch_below_the_limit_takes_little_more_than_its_bytes(
    count: int, record: bytes, tmp_path: Path
) -> None:
    data = batch_of(4, count + 1, compress(4, record * count))
    word, found, _, grown = opened(data, tmp_path)
    assert (word, found) == ("truncated", count)
    # The bytes, and the first records while they are read for the first time.
    assert grown < 190


def test_large_batches_have_the_same_records_as_small_ones() -> None:
    record = encode_record(Record(3, 5, b"k", bytes(2000), [("h", b"v")]), 1, 2)
    one = read_records(record, 1, 1, 2).records[0]
    # A list, one that may be evicted, and records that are read again.
    for count in (20, 500, 2000, 20_000):
        found = read_body(partial(bytes, record * count + b"\x80"), count + 1, 1, 2)
        assert isinstance(found.error, Truncated)
        assert found.error.path == f"records[{count}]"
        assert f"{count + 1} records are stated" in found.error.reason
        assert f"at {count}" in found.error.reason
        assert len(found.records) == count
        assert all(each == one for each in found.records)
        assert found.records[-1] == found.records[17] == one
        assert found.records[3:5] == [one, one]
        assert isinstance(found.records, list) == (count == 20)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_large_outputs_are_those_of_small_ones(codec: int) -> None:
    data = b"".join(b"%09d" % number for number in range(4 << 20))
    assert decompress(codec, compress(codec, data)) == data
    if codec == 2:
        raw = bytes(cramjam.snappy.compress_raw(data))
        assert decompress(codec, raw) == data
    else:
        assert decompress(codec, compress(codec, data) * 2, 128 << 20) == data * 2


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_an_error_keeps_nothing_that_was_expanded(codec: int) -> None:
    data = batch_of(codec, 1, compress(codec, bytes(1 << 20)))
    (batch,) = batches(data)
    for limit in (1 << 18, 1 << 21):  # beyond the limit; no record of zeros
        error = open_batch(data, batch, limit).error
        assert error.__traceback__ is error.__context__ is error.__cause__ is None


# --- batches that expand to much: the newest one is in memory, others are opened agai -------------


COUNT = 40
RECORDS = [Record(number, 1, b"%d" % number, bytes(1 << 20), ()) for number in range(COUNT)]
SMALLEST = [Record(number, 1, None, None, ()) for number in range(50_000)]


def of_batch(codec: int, records: list[Record]) -> bytes:
    body = b"".join(encode_record(each, 0, 1) for each in records)
    return batch_of(codec, len(records), compress(codec, body))


def of_set(records: list[Record]) -> bytes:
    inner = compress(1, encode_message_set(1, records))
    return encode_message(1, Record(records[-1].offset, 1, None, inner, ()), 1)


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> Budget:
    """A budget of this test alone."""
    made = Budget()
    for module in (large, records):
        monkeypatch.setattr(module, "BUDGET", made)
    return made


@pytest.mark.parametrize(
    "made",
    [
        partial(of_batch, 4),
        pytest.param(partial(of_batch, 1), marks=pytest.mark.slow),
        pytest.param(of_set, marks=pytest.mark.slow),
    ],
    ids=["zstd", "gzip", "message set"],
)
def test_iterators_in_many_batches_keep_the_newest_alive(
    made: Callable[[list[Record]], bytes], budget: Budget
) -> None:
    data = made(RECORDS)
    (batch,) = batches(data)
    fields = [open_batch(data, batch).records for _ in range(4)]
    assert LIMITS.opened_bytes < budget.alive < 2 * LIMITS.opened_bytes + (16 << 20)
    turns = zip(*fields, strict=True)
    for number, turn in enumerate(turns):
        assert budget.alive < 2 * LIMITS.opened_bytes + (16 << 20)
        assert turn == (RECORDS[number],) * len(fields)
        if number == 2:
            break
    assert [each.offset for each in fields[0]] == [each.offset for each in RECORDS]
    assert fields[1][-1] == RECORDS[-1]
    del turns, turn, fields
    assert budget.alive == 0


def test_lists_of_records_are_counted_with_what_they_take(budget: Budget) -> None:
    data = of_batch(4, SMALLEST)
    (batch,) = batches(data)
    fields = [open_batch(data, batch).records for _ in range(6)]
    assert budget.alive > LIMITS.opened_bytes - 250 * len(SMALLEST)
    assert budget.alive < LIMITS.opened_bytes + 250 * len(SMALLEST)
    for each in fields:
        assert each[40_000].offset == 40_000
        assert sum(1 for _ in each) == len(SMALLEST)


def test_usual_batches_are_not_counted(budget: Budget) -> None:
    data = of_batch(4, SMALLEST[:1000])
    (batch,) = batches(data)
    assert isinstance(open_batch(data, batch).records, list)
    assert budget.alive == 0
