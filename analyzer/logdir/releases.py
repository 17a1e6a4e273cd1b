"""Which releases wrote a folder of segments: they recover it in three ways.

Held against brokers 0.8.0 to 4.4.0, see `tests/interop/test_recovery.py`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple

from kafkascope.analyzer.logdir.limits import LIMITS
from kafkascope.dissectors.records.batches import CODEC_MASK

Family = Literal["0.8.0", "0.8.1 to 1.1", "2.0 and later"]
"""Releases that recover alike. 0.8.0 recovers the last segment alone. Up to 1.1 an index gets an
entry for the first offset of a batch, from 2.0 on for the last one, and an offset that does not fit
its segment is refused."""

FAMILIES: Final[tuple[Family, ...]] = ("0.8.0", "0.8.1 to 1.1", "2.0 and later")
ENTRY: Final = struct.Struct(">ii")
# Entries of an index that are held against the batches they point to.
LOOKED_AT: Final = 64


def entries_beside(path: Path) -> Iterator[tuple[int, int]]:
    """Yield (offset within the segment, position) of the index beside a segment, up to the space
    set aside after them, or to what is damaged."""
    try:
        with path.with_suffix(".index").open("rb") as file:
            data = file.read(LIMITS.index_bytes)
    except OSError:
        return
    before, last = 0, -1
    for at in range(0, len(data) - ENTRY.size + 1, ENTRY.size):
        relative, position = ENTRY.unpack_from(data, at)
        if position <= before or relative <= last:
            return
        yield relative, position
        before, last = position, relative


def family_of(files: Sequence[Path]) -> Family:
    """Return the releases that wrote a folder's segments, by the files beside them: entries of
    indexes, and files that only some releases have."""
    if not files:
        return FAMILIES[-1]
    folder = files[0].parent
    release = _by_entries(files)
    if release is not None:
        return release
    if any(map(_new_format, files[:1])) or (folder / "leader-epoch-checkpoint").exists():
        return "2.0 and later"
    has_times = any(path.with_suffix(".timeindex").exists() for path in files)
    beside = folder.parent
    copied = (beside / "replication-offset-checkpoint").exists()
    if not has_times and copied and not (beside / "recovery-point-offset-checkpoint").exists():
        return "0.8.0"
    return "0.8.1 to 1.1"


def others(family: Family, magics: Sequence[int]) -> tuple[Family, ...]:
    """Return the other releases that can read batches of these formats."""
    oldest = 0 if set(magics) <= {0} else 1
    return tuple(each for each in FAMILIES[oldest:] if each != family)


def _by_entries(files: Sequence[Path]) -> Family | None:
    """Return the releases by the first index entry for the first or the last offset of a batch of
    several; None when there is none."""
    for path in files[:8]:
        name = path.name.partition(".")[0]
        if not name.isdecimal():
            continue
        try:
            file = path.open("rb")
        except OSError:
            continue
        with file:
            size = file.seek(0, 2)
            for number, (relative, position) in enumerate(entries_beside(path)):
                head = head_at(file, position, size)
                if head is None or number >= LOOKED_AT:
                    break
                found = _family_of(head, int(name) + relative)
                if found is not None:
                    return found
    return None


def _family_of(head: BatchHead, offset: int) -> Family | None:
    if head.magic < 2:
        # Such a batch has its last offset in its head; alone, it is its first one too.
        several = head.compressed and 0 < head.last_offset - offset < LIMITS.entry_records
        return "0.8.1 to 1.1" if several else None
    if head.base_offset == head.last_offset:
        return None
    if offset == head.base_offset:
        return "0.8.1 to 1.1"
    return "2.0 and later" if offset == head.last_offset else None


def _new_format(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(MAGIC_AT + 1)
    except OSError:
        return False
    return len(head) > MAGIC_AT and head[MAGIC_AT] == 2


def index_stops(path: Path, base_offset: int | None = None, *, rebuilt: bool = True) -> str:
    """Return why 0.8.0 does not start with the index of a segment; empty where it does. Later
    releases make such indexes anew. `rebuilt`: recovery does so, of the last segment; of others the
    last entry has to be above `base_offset` (`Log.loadSegments`), and 0.8.0 takes whatever stands
    at the end of the file for that entry."""
    index = path.with_suffix(".index")
    try:
        with index.open("rb") as file:
            size = file.seek(0, SEEK_END)
            file.seek(max(0, size - ENTRY.size))
            end = file.read(ENTRY.size)
    except OSError:
        return f"{index.name} is missing"
    if size % ENTRY.size:
        return f"{index.name} has {size} bytes, not a multiple of {ENTRY.size}"
    if size and not rebuilt and base_offset is not None and len(end) == ENTRY.size:
        relative, position = ENTRY.unpack(end)
        if relative <= 0:
            what = "unused space" if not (relative or position) else "no entry of an index"
            return (
                f"{index.name} ends with {what}: offset {base_offset + relative} is not above the "
                f"base offset {base_offset}"
            )
    return ""


MAGIC_AT: Final = 16
NEWEST: Final = 2
_HEAD: Final = struct.Struct(">qiibb")
"""Base offset, length of the rest, epoch (or checksum), magic, attributes of the old formats."""
_NEW: Final = struct.Struct(">hi")
_ATTRIBUTES_AT: Final = 21
_HEAD_BYTES: Final = 27
LEAST_LENGTH: Final = 14
WINDOW: Final = 1 << 16
# Bytes that are summed up at a time.
CHECKED: Final = 1 << 20
# Magic bytes above are negative, which brokers take for the old formats.
SIGNED: Final = 127
_CHECKSUM: Final = struct.Struct(">I")


class BatchHead(NamedTuple):
    """A batch, or an entry of an old message set."""

    at: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    compressed: bool


def head_at(file: BinaryIO, at: int, size: int) -> BatchHead | None:
    """Return the head of the batch there; None when none begins there."""
    file.seek(at)
    return _head(file.read(_HEAD_BYTES), 0, at, size)


def sound_at(file: BinaryIO, at: int, size: int) -> bool:
    """Return whether the checksum of what begins there is right: of a batch of `size` bytes, of
    which a window at a time is read. Damaged lengths may reach over a gigabyte."""
    import google_crc32c

    file.seek(at)
    data = file.read(min(size, CHECKED))
    if len(data) <= MAGIC_AT or data[MAGIC_AT] > SIGNED:
        return False
    new = data[MAGIC_AT] >= NEWEST
    begin, place = (_ATTRIBUTES_AT, 17) if new else (MAGIC_AT, 12)
    if size < begin:
        return False
    (stated,) = _CHECKSUM.unpack_from(data, place)
    found, left, data = 0, size - len(data), data[begin:]
    while True:
        found = google_crc32c.extend(found, data) if new else zlib.crc32(data, found)
        if left <= 0:
            return bool(found == stated)
        if not (data := file.read(min(left, CHECKED))):
            return False
        left -= len(data)


def heads(file: BinaryIO) -> Iterator[BatchHead]:
    """Yield where batches stand, up to the first nonsense. Heads of small ones are read many at a
    time."""
    size = file.seek(0, 2)
    at = begin = 0
    window = b""
    while True:
        if at + _HEAD_BYTES > begin + len(window):
            file.seek(at)
            begin, window = at, file.read(WINDOW)
        head = _head(window, at - begin, at, size)
        if head is None:
            return
        yield head
        at += head.size


def _head(data: bytes, place: int, at: int, size: int) -> BatchHead | None:
    if len(data) - place < _HEAD_BYTES:
        # An entry of 26 bytes holds nothing: no key and no value.
        return None
    base, length, _, magic, attributes = _HEAD.unpack_from(data, place)
    if length < LEAST_LENGTH or magic < 0 or at + 12 + length > size:
        return None
    delta = 0
    if magic >= NEWEST:
        attributes, delta = _NEW.unpack_from(data, place + _ATTRIBUTES_AT)
    return BatchHead(at, 12 + length, magic, base, base + delta, bool(attributes & CODEC_MASK))
