"""What once took minutes or gigabytes, through the commands; `test_growth` measures everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.record_redaction import redacted_records
from dissectors.record_writer import varint
from dissectors.records import Batch, batches
from tests.explosion.inputs import batch_of, record, write_attack
from tests.explosion.measuring import MEMORY_MB, measured


@pytest.mark.timeout(60)
def test_a_record_with_very_many_headers_is_redacted() -> None:
    # Written header by header into a new text each time it took four minutes.
    count = 1_000_000
    body = b"\0\0\0\x01\x01" + varint(count) + b"\0\x01" * count
    data = batch_of(4, 1, record(body))
    assert len(data) < 2_000
    (batch,) = batches(redacted_records(data, keys=True, names=True))
    assert isinstance(batch, Batch)


@pytest.mark.parametrize("command", [("show", "1"), ("show", "1", "--hex"), ("cut", "--anonymize")])
def test_very_many_empty_topics_take_no_gigabyte(command: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    write_attack("empty topics", path, factor=3)
    name, *options = command
    if name == "cut":
        options += ["-o", str(tmp_path / "b.pcapng")]
    taken = measured([name, path, *options])
    assert not taken.crashed, taken.errors
    assert taken.megabytes < MEMORY_MB
