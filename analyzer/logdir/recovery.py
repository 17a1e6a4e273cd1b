"""What a recovering broker does beside holding checksums: entries of an index made anew, and magics
that no release has. Stateless."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Partial, batches, crc_ok

INTERVAL: Final = 4096
"""`index.interval.bytes` as it comes."""
MAGIC_AT: Final = 16
NEWEST: Final = 2
_HEAD: Final = struct.Struct(">qiib")
"""Base offset, length of the rest, epoch (or checksum), magic."""
_DELTA_AT: Final = 23
HEAD_BYTES: Final = 27
_ENTRY: Final = struct.Struct(">ii")
LEAST_LENGTH: Final = 14
MOST_ENTRIES: Final = 10 << 20
"""Bytes of an index that are read; brokers limit them to 10 MB."""


def known_magic(data: bytes) -> bytes:
    """Return a batch with a magic that readers know: brokers since 0.11 take all above 2 for 2,
    whose checksum does not cover it."""
    if NEWEST < data[MAGIC_AT] <= 127:
        return data[:MAGIC_AT] + bytes((NEWEST,)) + data[MAGIC_AT + 1 :]
    return data


class _Head(NamedTuple):
    at: int
    size: int
    last_offset: int


def offsets_back(file: BinaryIO, path: Path) -> str:
    """Return why a broker empties a segment, in words; empty when it does not.

    It makes the index anew while it walks, with an entry for the last offset of the first batch
    behind each `index.interval.bytes`. An entry whose offset is not above the one before is refused
    (InvalidOffsetException), and the segment begins empty again. Offsets that go back between two
    entries are not noticed. The interval is learned from the index beside the file.
    """
    interval = 0
    entry_at, entry_offset = 0, -1
    last = -1
    first: list[_Head] = []
    suspicious = False
    for head in _heads(file):
        suspicious = suspicious or head.last_offset <= last
        last = head.last_offset
        first.append(head)
        if len(first) > MOST_HEADS:
            break
    if not suspicious:
        return ""
    interval = _interval(path)
    for head in first:
        if not _sound(file, head):
            return ""  # The broker cuts before it could come to that.
        if head.at - entry_at <= interval:
            continue
        if head.last_offset <= entry_offset:
            return (
                f"offsets go back to {head.last_offset}, not behind {entry_offset}, where the index"
                f" gets an entry, at position {head.at}: recovery empties the file"
            )
        entry_at, entry_offset = head.at, head.last_offset
    return ""


MOST_HEADS: Final = 1_000_000
"""Batches of a segment that are looked at: a gigabyte of them, of a thousand bytes each."""


def _heads(file: BinaryIO) -> Iterator[_Head]:
    """Yield where batches stand, up to the first nonsense."""
    at = 0
    size = file.seek(0, 2)
    while at + HEAD_BYTES <= size:
        file.seek(at)
        data = file.read(HEAD_BYTES)
        base, length, _, magic = _HEAD.unpack_from(data)
        if length < LEAST_LENGTH or magic < 0 or at + 12 + length > size:
            return
        delta = struct.unpack_from(">i", data, _DELTA_AT)[0] if magic >= NEWEST else 0
        yield _Head(at, 12 + length, base + delta)
        at += 12 + length


def _sound(file: BinaryIO, head: _Head) -> bool:
    file.seek(head.at)
    data = known_magic(file.read(head.size))
    try:
        batch = next(batches(data))
    except DissectError:
        return False
    return not isinstance(batch, Partial) and crc_ok(data, batch)


def _interval(path: Path) -> int:
    """Return the interval of entries, as the index beside a segment shows it: less than the bytes
    between any two of them."""
    try:
        with path.with_suffix(".index").open("rb") as file:
            data = file.read(MOST_ENTRIES)
    except OSError:
        return INTERVAL
    found = INTERVAL
    before, offset = 0, -1
    for at in range(0, len(data) - _ENTRY.size + 1, _ENTRY.size):
        relative, position = _ENTRY.unpack_from(data, at)
        if not relative and not position and at:
            break  # space set aside
        if position <= before or relative <= offset:
            break  # damaged, or made of offsets that go back
        found = min(found, position - before - 1)
        before, offset = position, relative
    return found
