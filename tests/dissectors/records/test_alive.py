"""Batches that expand to much: the newest one is in memory, others are opened again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.records import large, records
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.records.large import Budget
from kafkascope.dissectors.records.records import Batch, Record, batches, open_batch
from kafkascope.dissectors.records.writer import encode_message, encode_message_set, encode_record
from tests.dissectors.records.test_bombs import batch_of

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
    assert isinstance(batch, Batch)
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
    assert isinstance(batch, Batch)
    fields = [open_batch(data, batch).records for _ in range(6)]
    assert budget.alive > LIMITS.opened_bytes - 250 * len(SMALLEST)
    assert budget.alive < LIMITS.opened_bytes + 250 * len(SMALLEST)
    for each in fields:
        assert each[40_000].offset == 40_000
        assert sum(1 for _ in each) == len(SMALLEST)


def test_usual_batches_are_not_counted(budget: Budget) -> None:
    data = of_batch(4, SMALLEST[:1000])
    (batch,) = batches(data)
    assert isinstance(batch, Batch)
    found = open_batch(data, batch).records
    assert isinstance(found, list)
    assert budget.alive == 0
