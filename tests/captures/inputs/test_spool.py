"""The ring gives back what was written, or says that it is gone."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.inputs.spool import NotKept, Spool


@given(
    st.integers(1, 40),
    st.lists(st.binary(max_size=60), max_size=15),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 50)), max_size=10),
)
def test_reads_the_same_bytes_or_refuses(
    capacity: int, writes: list[bytes], reads: list[tuple[int, int]]
) -> None:
    spool, everything = Spool(capacity), b""
    for data in writes:
        assert spool.write(data) == len(everything)
        everything += data
    for at, size in reads:
        kept = len(everything) - capacity <= at and at + size <= len(everything)
        if kept:
            assert spool.read(at, size) == everything[at : at + size]
        else:
            with pytest.raises(NotKept, match="no longer kept"):
                spool.read(at, size)
    spool.close()


def test_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spool = Spool(100)
    spool.write(b"x" * 50)
    assert list(tmp_path.iterdir()) == []
    spool.close()


def test_a_full_disk_costs_the_bytes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(100)
    spool.write(b"before")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        assert spool.write(b"lost") == 6
    assert spool.write(b"after") == 10
    assert spool.read(10, 5) == b"after"
    with pytest.raises(NotKept):
        spool.read(0, 6)
    spool.close()


def test_what_was_released_is_not_read_any_more() -> None:
    spool = Spool(100)
    spool.write(b"before")
    spool.write(b"after")
    spool.release(6)
    spool.release(2)
    assert spool.read(6, 5) == b"after"
    with pytest.raises(NotKept):
        spool.read(0, 6)
    spool.close()
