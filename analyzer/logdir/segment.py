"""A log segment (or KRaft snapshot) batch by batch, and where a recovering broker would cut it.

A broker that was not shut down cleanly walks the batches of a segment and keeps all before the
first one that is cut short, smaller than any batch can be, or has a wrong checksum. It takes
unknown magics for 2, empties a segment whose offsets go back where its index gets an entry (see
`recovery`), and deletes the segments after one that it truncated. 0.8.0 recovers the last segment
alone, and keeps those before it. `Segment` does the same, and then continues, to report batches
that are sound after the damage. One batch at a time is in memory.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from kafkascope.analyzer.logdir.limits import LIMITS
from kafkascope.analyzer.logdir.model import Kind, LogBatch, OtherVerdict, RecoveryVerdict
from kafkascope.analyzer.logdir.records import batch_of
from kafkascope.analyzer.logdir.recovery import Refusals, known_magic, refusals
from kafkascope.analyzer.logdir.releases import (
    FAMILIES,
    NEWEST,
    SIGNED,
    Family,
    heads,
    others,
    sound_at,
)
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Batch, crc_ok, open_batch

PREFIX: Final = struct.Struct(">qi")
"""Base offset and length of the rest."""

# Size of a batch up to its magic byte. A broker takes fewer bytes for the end of the file.
TO_MAGIC: Final = 17

LEAST: Final = {0: 14, 1: 22, 2: 49}
"""Minimum of the length field, by magic."""
# A larger batch is read only when its checksum is right: brokers accept 1 MB by default, so that a
# larger length is probably damage.
LARGE: Final = 32 << 20

# Expanded size of an old compressed entry that is opened only for its first offset and count.
COUNTING_LIMIT: Final = 128 << 20

SCAN_WINDOW: Final = 1 << 20
# Bytes after damage that are searched for the next batch.
SCAN_LIMIT: Final = 256 << 20


class SegmentNeighbours(NamedTuple):
    """The segments of the partition around one, as far as they decide about its recovery."""

    family: Family = FAMILIES[-1]
    """The releases that wrote it."""
    behind: str = ""
    """Name of an earlier segment that a recovering broker truncates, after which it deletes this
    one (0.8.0 does not); empty without one."""
    last: bool = True
    """Whether no segment of the partition follows."""
    stops: str = ""
    """Why 0.8.0 does not start with the index of this segment; empty where it does."""


class Segment:
    """One walk over a file of batches; `verdict` sums up what it saw."""

    def __init__(
        self,
        path: Path,
        kind: Kind,
        base_offset: int | None,
        neighbours: SegmentNeighbours,
        first_number: int,
    ) -> None:
        """`base_offset`: of the file's name; None when the name has none."""
        self.path = path
        self.neighbours = neighbours
        self.kind: Kind = kind
        self.base_offset = base_offset
        self.number = first_number
        self.at = 0
        self.size = 0
        self.result = RecoveryVerdict(path.name, kind)
        self.notes: dict[str, int] = {}
        self.epoch = -1
        self.alone = neighbours.family == "0.8.0" and not neighbours.last
        """Whether brokers of its release do not recover it."""
        self.damage = ""
        """The first damage of the bytes; the verdict's `problem` may also come from other files."""
        self.damaged_at: int | None = None
        self.refused = Refusals(None, {}, "")
        self.others: tuple[Family, ...] = ()
        # Hostile bytes can look like the head of a long batch at every offset: computing each
        # checksum would take quadratic time.
        self.budget = 0
        """Bytes whose checksums may still be computed in searches for the next batch."""

    def batches(self) -> Iterator[tuple[LogBatch, bytes]]:
        """Yield every batch with a readable frame, damaged ones too, with its bytes."""
        with self.path.open("rb") as file:
            yield from self._walk(file)

    def _walk(self, file: BinaryIO) -> Iterator[tuple[LogBatch, bytes]]:
        self.size = os.fstat(file.fileno()).st_size
        self.budget = SCAN_LIMIT + 2 * self.size
        if self.kind == "log" and self.size:
            self._judge(file)
        while self.at < self.size:
            wrong = self._framing(file)
            if wrong:
                if self._zeros_to_the_end(file):
                    break
                self._note_damage(f"{wrong} at position {self.at}")
                position = self._search(file, self.at + 1)
                if position is None:
                    break
                self.at = position
                continue
            data = self._read(file, self.at, 12 + self.length)
            magic, data = data[16], known_magic(data)
            row = self._take(data, magic)
            yield row, data
            self.at = self._next_of(file, row)

    def _next_of(self, file: BinaryIO, row: LogBatch) -> int:
        """Return the position of the next batch. The length of a damaged one may be part of the
        damage: when no batch begins at its end, the next sound one may be inside it."""
        start, end = row.position, row.position + row.size
        if row.crc_ok:
            return end
        self.at = end
        if end < self.size and not self._framing(file):
            return end
        return self._search(file, start + 1) or end

    def _read(self, file: BinaryIO, at: int, size: int) -> bytes:
        file.seek(at)
        return file.read(size)

    def _framing(self, file: BinaryIO) -> str:
        """Return why no batch begins at `at`; empty when one does, whose length is then
        `length`."""
        head = self._read(file, self.at, TO_MAGIC)
        left = self.size - self.at
        if len(head) < TO_MAGIC:
            return f"{left} bytes, fewer than a batch header,"
        _, self.length = PREFIX.unpack_from(head)
        magic = head[16]
        if self.length < LEAST[0]:
            return f"a batch that claims {self.length} bytes"
        if magic > SIGNED:
            return f"magic {magic - 256}, which no release writes,"
        if self.length < LEAST[min(magic, NEWEST)]:
            return f"a batch of magic {magic} that claims {self.length} bytes"
        if 12 + self.length > left:
            return f"a batch of {12 + self.length} bytes, of which {left} are present"
        # A larger magic is a damaged byte of a batch of magic 2, whose checksum does not cover it.
        # The checksums of magics 0 and 1, all that brokers before 0.11 have, cover the magic.
        if magic > NEWEST and not sound_at(file, self.at, 12 + self.length):
            return f"magic {magic}, which no release writes,"
        if self.length > LARGE and not sound_at(file, self.at, 12 + self.length):
            return f"a batch of {12 + self.length} bytes with a checksum mismatch"
        return ""

    def _zeros_to_the_end(self, file: BinaryIO) -> bool:
        """Return whether only zeros follow: the rest of a preallocated segment. A few zeros may be
        the head of a batch that is cut short, whose offset begins with zeros."""
        if self.size - self.at < TO_MAGIC:
            return False
        at = self.at
        while at < self.size:
            window = self._read(file, at, SCAN_WINDOW)
            if not window or window.count(0) != len(window):
                return False
            at += len(window)
        self.result.padding = self.size - self.at
        return True

    def _judge(self, file: BinaryIO) -> None:
        """Note what decides about the segment before its first batch is read."""
        neighbours, first = self.neighbours, next(heads(file), None)
        self.others = others(neighbours.family, [2 if first is None else first.magic])
        self.refused = refusals(file, self.path, self.base_offset, neighbours.family, self.others)
        own = self.refused.own
        if neighbours.family == "0.8.0" and neighbours.stops:
            self._note_problem(neighbours.stops)
            self.result.starts = False
        elif neighbours.behind and neighbours.family != "0.8.0":
            self._note_problem(
                f"it follows {neighbours.behind}, which recovery truncates: deleted then"
            )
        elif own is not None and not self.alone:
            self._note_problem(own.text)
            self.result.starts = own.starts
        if self.refused.remark:
            self.notes.setdefault(self.refused.remark, 0)

    def _note_problem(self, problem: str) -> None:
        """Note a problem unless there is one: the first decides where a broker truncates."""
        if not self.result.problem:
            self.result.problem = problem

    def _note_damage(self, problem: str) -> None:
        if self.damaged_at is None:
            self.damage, self.damaged_at = problem, self.at
        self._note_problem(problem)

    def _search(self, file: BinaryIO, start: int) -> int | None:
        """Return the position of the next sound batch of magic 2 after damage."""
        last = self.result.last_valid_offset
        least = (self.base_offset or 0) - 1 if last is None else last
        at, stop = start, min(self.size, start + SCAN_LIMIT)
        while at < stop:
            window = self._read(file, at, SCAN_WINDOW + TO_MAGIC - 1)
            magic_at = window.find(b"\2", 16)
            while magic_at >= 0:
                offset, length = PREFIX.unpack_from(window, magic_at - 16)
                position = at + magic_at - 16
                whole = LEAST[2] <= length <= self.size - position - 12
                if whole and least < offset <= least + LIMITS.relative_offset and self.budget > 0:
                    self.budget -= length
                    if sound_at(file, position, 12 + length):
                        return position
                magic_at = window.find(b"\2", magic_at + 1)
            at += SCAN_WINDOW
        return None

    def _take(self, data: bytes, magic: int) -> LogBatch:
        """Return the row of a whole batch, and update the verdict. `magic`: as in the file."""
        batch, verdict = batch_of(data), self.result
        right = crc_ok(data, batch)
        base, count, problem = batch.base_offset, batch.record_count, ""
        if batch.magic < 2 and batch.codec:
            base, count, problem = _inside(data, batch)
        if not right:
            problem = "checksum mismatch"
            self._note_damage(f"a batch with a checksum mismatch at position {self.at}")
        lost = bool(verdict.problem) and not self.alone
        if right and not problem:
            problem = self._anomalies(batch, base, magic)
        if not lost:
            verdict.valid_bytes = self.at + batch.size
            verdict.batches += 1
            verdict.records += max(0, count or 0)
            verdict.first_offset = base if verdict.first_offset is None else verdict.first_offset
            verdict.last_valid_offset = batch.last_offset
        elif right:
            verdict.lost_batches += 1
            verdict.lost_first = base if verdict.lost_first is None else verdict.lost_first
            verdict.lost_last = batch.last_offset
        self.number += 1
        return LogBatch(
            number=self.number - 1,
            file=self.path.name,
            position=self.at,
            size=batch.size,
            base_offset=base,
            last_offset=batch.last_offset,
            records=count,
            magic=magic,
            codec=batch.codec_name,
            leader_epoch=batch.leader_epoch,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=batch.transactional,
            control=batch.control,
            delete_horizon=batch.delete_horizon,
            log_append_time=batch.log_append_time,
            base_timestamp=batch.base_timestamp,
            max_timestamp=batch.max_timestamp,
            crc=batch.crc,
            crc_ok=right,
            lost=lost,
            problem=problem,
        )

    def _anomalies(self, batch: Batch, base: int, magic: int) -> str:
        """Return and note what no broker writes, though the bytes are sound: it truncates
        nothing."""
        named = self.base_offset if self.kind == "log" else None
        words = []
        if self.result.last_valid_offset is not None and base <= self.result.last_valid_offset:
            words.append(f"its base offset {base} is not after {self.result.last_valid_offset}")
        if magic > NEWEST:
            words.append(f"magic {magic}, which no release writes: brokers read it as {NEWEST}")
        in_range = named is None or (
            named <= base and batch.last_offset - named <= LIMITS.relative_offset
        )
        if not in_range:
            words.append(f"its offsets are out of range for a segment that starts at {named}")
        if batch.last_offset < base:
            words.append(f"its last offset {batch.last_offset} is less than its base offset {base}")
        if 0 <= batch.leader_epoch < self.epoch:
            words.append(f"leader epoch {batch.leader_epoch} follows {self.epoch}")
        self.epoch = max(self.epoch, batch.leader_epoch)
        for word in words:
            self.notes.setdefault(f"batch at position {self.at}: {word}", 0)
        return "; ".join(words)

    def verdict(self) -> RecoveryVerdict:
        """Return a recovering broker's verdict, once the walk is over."""
        result, notes = self.result, list(self.notes)
        result.total_bytes = self.size
        if self.alone and self.damage and result.starts:
            notes.insert(0, f"0.8.0, which recovers the last segment only, keeps {self.damage}")
        if self.alone and result.starts:
            result.problem, result.valid_bytes = "", self.size
        elif not result.problem:
            result.valid_bytes = self.size - result.padding
        if self.kind == "log":
            result.elsewhere = tuple(self._elsewhere(result.valid_bytes))
        if len(notes) > LIMITS.notes:
            notes = [*notes[: LIMITS.notes], f"and {len(notes) - LIMITS.notes} more of this kind"]
        result.notes = tuple(notes)
        if result.elsewhere or not result.starts:
            result.releases = self.neighbours.family
        return result

    def _elsewhere(self, own: int) -> Iterator[OtherVerdict]:
        """Yield the verdicts of other releases that differ. `own`: bytes that the releases that
        wrote the segment keep."""
        for family in self.others:
            other = self._of(family)
            if (other.starts, other.valid_bytes) != (
                self.result.starts,
                own if self.result.starts else None,
            ):
                yield other

    def _of(self, family: Family) -> OtherVerdict:
        neighbours = self.neighbours
        refused = self.refused.of.get(family)
        if family == "0.8.0" and neighbours.stops:
            return OtherVerdict(family, False, None, f"does not start: {neighbours.stops}")
        if family == "0.8.0" and not neighbours.last:
            text = "recovers the last segment only, and leaves this one unchanged"
            return OtherVerdict(family, True, self.size, text)
        if family != "0.8.0" and neighbours.behind:
            return OtherVerdict(family, True, 0, f"deletes it: it follows {neighbours.behind}")
        if refused is not None:
            kept = 0 if refused.starts else None
            text = refused.text if refused.starts else f"does not start: {refused.text}"
            return OtherVerdict(family, refused.starts, kept, text)
        kept = self.size - self.result.padding if self.damaged_at is None else self.damaged_at
        return OtherVerdict(family, True, kept, f"keeps {kept} bytes")


def _inside(data: bytes, batch: Batch) -> tuple[int, int | None, str]:
    """Return first offset, count and problem of an old compressed entry, whose header has only its
    last offset."""
    try:
        opened = open_batch(data, batch, COUNTING_LIMIT)
    except DissectError as error:
        return batch.base_offset, None, error.reason
    if opened.error is not None or not opened.records:
        reason = opened.error.reason if opened.error else "it is empty"
        return batch.base_offset, None, f"its messages cannot be read: {reason}"
    return opened.records[0].offset, len(opened.records), ""
