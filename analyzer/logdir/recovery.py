"""What a recovering broker does beside holding checksums: entries of an index made anew, and magics
that no release has. Stateless.

A broker makes the index of a segment anew while it walks, with an entry for a batch behind each
`index.interval.bytes`. An entry whose offset is not above the one before is refused
(InvalidOffsetException), and the segment begins empty again; offsets that go back between two
entries are not noticed. From 2.0 on an offset that does not fit the segment makes the broker split
it, which it can only do where the last one does not fit: it does not start otherwise.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from kafkascope.analyzer.logdir.limits import LIMITS
from kafkascope.analyzer.logdir.records import batch_of
from kafkascope.analyzer.logdir.releases import (
    MAGIC_AT,
    NEWEST,
    BatchHead,
    Family,
    entries_beside,
    heads,
    sound_at,
)
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import open_batch

# `index.interval.bytes` as it comes.
INTERVAL: Final = 4096
# What an old compressed entry may expand to only to learn its first offset.
OPENED: Final = 16 << 20
# Intervals that are tried, where several can have been.
PROBES: Final = 9


def known_magic(data: bytes) -> bytes:
    """Return a batch with a magic that readers know: brokers since 0.11 take all above 2 for 2,
    whose checksum does not cover it."""
    if NEWEST < data[MAGIC_AT] <= 127:
        return data[:MAGIC_AT] + bytes((NEWEST,)) + data[MAGIC_AT + 1 :]
    return data


class RefusedOffset(NamedTuple):
    """Why a broker does not keep a segment whose checksums are right."""

    text: str
    starts: bool
    """Whether it starts, with the segment emptied."""
    splits: bool = False
    """Whether it splits the segment, of which all is kept."""


class Refusals(NamedTuple):
    """What brokers refuse of a segment: of the releases that wrote it, of others, and with an index
    interval that may have been theirs."""

    own: RefusedOffset | None
    of: dict[Family, RefusedOffset | None]
    remark: str
    """What depends on the interval, where it is not known well enough."""


def refusals(
    file: BinaryIO, path: Path, base: int | None, family: Family, others: tuple[Family, ...]
) -> Refusals:
    """Return what brokers refuse, beside batches that are damaged."""
    if not _suspicious(file, base):
        return Refusals(None, dict.fromkeys(others), "")
    least, most = _interval(file, path)
    walk = _Looking(file, base)
    own = walk.refusal(family, most)
    if own is not None and own.splits:
        return Refusals(None, _kept(walk, others, most), own.text)
    remark = ""
    for part in range(PROBES if least < most else 0):
        other = walk.refusal(family, least + (most - least) * part // PROBES)
        if (other is None) != (own is None):
            said = own or other
            assert said is not None
            remark = f"{said.text}; but that depends on index.interval.bytes"
            break
    return Refusals(own, _kept(walk, others, most), remark)


def _kept(
    walk: _Looking, families: tuple[Family, ...], interval: int
) -> dict[Family, RefusedOffset | None]:
    found = {each: walk.refusal(each, interval) for each in families}
    return {each: None if told is None or told.splits else told for each, told in found.items()}


def _suspicious(file: BinaryIO, base: int | None) -> bool:
    """Whether offsets go back, or leave the segment: in sound ones they do not."""
    last = -1
    for head in heads(file):
        if head.last_offset <= last or head.base_offset <= last:
            return True
        if base is not None and not _fits(head, base):
            return True
        last = head.last_offset
    return False


def _fits(head: BatchHead, base: int) -> bool:
    return 0 <= head.last_offset - base <= LIMITS.relative_offset


class _Looking:
    def __init__(self, file: BinaryIO, base: int | None) -> None:
        self._file = file
        self._base = base
        self._opened = 0

    def refusal(self, family: Family, interval: int) -> RefusedOffset | None:
        """Return what brokers refuse, None when they cut or keep the segment."""
        entry_at = entry = 0
        first = True
        last: BatchHead | None = None
        wrong: RefusedOffset | None = None
        for head in heads(self._file):
            last = head
            if wrong is not None:
                continue
            if not sound_at(self._file, head.at, head.size):
                break  # The broker cuts before it could come to more.
            base = self._base
            if family == "2.0 and later" and base is not None and not _fits(head, base):
                wrong = RefusedOffset(
                    f"offset {head.last_offset} at position {head.at} is out of range for a segment"
                    f" that starts at {base}",
                    False,
                )
            if wrong is None and head.at - entry_at > interval:
                offset = self._entry(head, family)
                if not first and offset <= entry:
                    return RefusedOffset(
                        f"offset {offset} is not greater than {entry} in the previous index entry,"
                        f" at position {head.at}: recovery truncates the file to 0 bytes",
                        True,
                    )
                first, entry_at, entry = False, head.at, offset
        if family == "0.8.0" and not first and self._base is not None and entry <= self._base:
            return RefusedOffset(
                f"the rebuilt index would end with offset {entry}, the base offset of the segment",
                False,
            )
        if wrong is None or last is None or self._base is None:
            return None
        if last.last_offset >= self._base and not _fits(last, self._base):
            return wrong._replace(text=f"{wrong.text}: brokers split the file", splits=True)
        return wrong

    def _entry(self, head: BatchHead, family: Family) -> int:
        if family == "2.0 and later":
            return head.last_offset
        if head.magic >= NEWEST or not head.compressed:
            return head.base_offset
        self._opened += 1
        if self._opened > LIMITS.opened_entries:
            return head.last_offset
        self._file.seek(head.at)
        data = known_magic(self._file.read(head.size))
        try:
            opened = open_batch(data, batch_of(data), OPENED)
        except DissectError:
            return head.last_offset
        return opened.records[0].offset if opened.records else head.last_offset


def _interval(file: BinaryIO, path: Path) -> tuple[int, int]:
    """Return the least and the most that `index.interval.bytes` can have been, as the indexes of
    the partition show it: less than the bytes between any two entries, no less than the way from an
    entry to the last batch that got none."""
    most = INTERVAL
    for each in (path, *islice(sorted(path.parent.glob("*.log")), LIMITS.indexes)):
        before = 0
        for _, position in entries_beside(each):
            most = min(most, position - before - 1)
            before = position
    marked = {position for _, position in entries_beside(path)}
    end = max(marked, default=0)
    least = entry = 0
    for head in heads(file):
        if head.at > end:
            break
        if head.at in marked:
            entry = head.at
        elif head.magic >= NEWEST:  # Old ones were appended several at a time.
            least = max(least, head.at - entry)
    return min(least, most), most
