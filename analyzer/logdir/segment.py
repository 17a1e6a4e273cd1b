"""A log segment (or KRaft snapshot) batch by batch, and where a recovering broker would cut it.

A broker that was not shut down cleanly walks the batches of a segment and keeps all before the
first one that is cut short, smaller than any batch can be, or has a wrong checksum; it takes
unknown magics for 2, empties a segment whose offsets go back where its index gets an entry (see
`recovery`), and deletes the segments after one that it cut. 0.8.0 recovers the last segment alone,
and keeps those before it. So does `Segment`; it then goes on, to report what is sound after the
damage. One batch at a time is held.
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
from kafkascope.analyzer.logdir.releases import FAMILIES, SIGNED, Family, heads, others, sound_at
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Batch, crc_ok, open_batch

PREFIX: Final = struct.Struct(">qi")
"""Base offset and length of the rest."""

# Bytes up to the magic byte: a broker takes fewer for the end of the file.
TO_MAGIC: Final = 17

LEAST: Final = {0: 14, 1: 22, 2: 49}
"""Magic -> the least that the length can be."""
NEWEST: Final = 2
# A batch of more bytes is only read where its checksum is right: brokers take 1 MB by default.
LARGE: Final = 32 << 20

# What an old compressed entry may expand to only to learn its first offset.
COUNTING_LIMIT: Final = 128 << 20

SCAN_WINDOW: Final = 1 << 20
# Bytes behind nonsense that are searched for the next batch.
SCAN_LIMIT: Final = 256 << 20


class Standing(NamedTuple):
    """Where a segment stands among those of its partition."""

    family: Family = FAMILIES[-1]
    """The releases that wrote it."""
    behind: str = ""
    """Name of an earlier segment that a recovering broker cuts, to delete this one then; but 0.8.0
    does not."""
    last: bool = True
    """Whether no segment of the partition follows."""
    stops: str = ""
    """Why 0.8.0 does not start with the index of this segment."""


class Segment:
    """One walk over a file of batches; `verdict` sums up what it saw."""

    def __init__(
        self, path: Path, kind: Kind, base_offset: int | None, place: Standing, first_number: int
    ) -> None:
        """`base_offset`: of the file's name; None when the name has none."""
        self.path = path
        self.place = place
        self.kind: Kind = kind
        self.base_offset = base_offset
        self.number = first_number
        self.at = 0
        self.size = 0
        self.found = RecoveryVerdict(path.name, kind)
        self.notes: dict[str, int] = {}
        self.epoch = -1
        self.alone = place.family == "0.8.0" and not place.last
        """Whether brokers of its release leave it as it is."""
        self.damage = ""
        """The first thing wrong with the bytes; `problem` may stand in other files, too."""
        self.damaged_at: int | None = None
        self.refused = Refusals(None, {}, "")
        self.others: tuple[Family, ...] = ()
        self.budget = 0
        """Bytes that may still be summed up to tell a batch from chance: made-up bytes could look
        like the head of a long batch everywhere, and the work is to stay linear."""

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
                self._hurt(f"{wrong} at position {self.at}")
                found = self._search(file, self.at + 1)
                if found is None:
                    break
                self.at = found
                continue
            data = self._read(file, self.at, 12 + self.length)
            magic, data = data[16], known_magic(data)
            row = self._take(data, magic)
            yield row, data
            self.at = self._next_of(file, row)

    def _next_of(self, file: BinaryIO, row: LogBatch) -> int:
        """Where the batch behind this one begins. The length of a damaged one may be part of the
        damage: when nothing begins behind it, the next sound batch may stand inside it."""
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
        """Why no batch begins here; empty when one does, and `length` is then its own."""
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
        # Brokers before 0.11 knew no batch of such a magic, and the checksum of theirs covers it.
        if magic > NEWEST and not sound_at(file, self.at, 12 + self.length):
            return f"magic {magic}, which no release writes,"
        if self.length > LARGE and not sound_at(file, self.at, 12 + self.length):
            return f"a batch of {12 + self.length} bytes with a checksum mismatch"
        return ""

    def _zeros_to_the_end(self, file: BinaryIO) -> bool:
        """Whether nothing but zeros follow: a segment that was set aside in full. A few may just
        be the head of a cut batch, whose offset begins with zeros."""
        if self.size - self.at < TO_MAGIC:
            return False
        at = self.at
        while at < self.size:
            window = self._read(file, at, SCAN_WINDOW)
            if not window or window.count(0) != len(window):
                return False
            at += len(window)
        self.found.padding = self.size - self.at
        return True

    def _judge(self, file: BinaryIO) -> None:
        """What decides before the first batch is looked at."""
        place, first = self.place, next(heads(file), None)
        self.others = others(place.family, [2 if first is None else first.magic])
        self.refused = refusals(file, self.path, self.base_offset, place.family, self.others)
        own = self.refused.own
        if place.family == "0.8.0" and place.stops:
            self._blame(place.stops)
            self.found.starts = False
        elif place.behind and place.family != "0.8.0":
            self._blame(f"it follows {place.behind}, which recovery truncates: deleted then")
        elif own is not None and not self.alone:
            self._blame(own.text)
            self.found.starts = own.starts
        if self.refused.remark:
            self.notes.setdefault(self.refused.remark, 0)

    def _blame(self, problem: str) -> None:
        """The first problem decides where a broker cuts."""
        if not self.found.problem:
            self.found.problem = problem

    def _hurt(self, problem: str) -> None:
        if self.damaged_at is None:
            self.damage, self.damaged_at = problem, self.at
        self._blame(problem)

    def _search(self, file: BinaryIO, start: int) -> int | None:
        """Position of the next sound batch of magic 2 behind nonsense."""
        last = self.found.last_valid_offset
        least = (self.base_offset or 0) - 1 if last is None else last
        at, stop = start, min(self.size, start + SCAN_LIMIT)
        while at < stop:
            window = self._read(file, at, SCAN_WINDOW + TO_MAGIC - 1)
            place = window.find(b"\2", 16)
            while place >= 0:
                offset, length = PREFIX.unpack_from(window, place - 16)
                position = at + place - 16
                whole = LEAST[2] <= length <= self.size - position - 12
                if whole and least < offset <= least + LIMITS.relative_offset and self.budget > 0:
                    self.budget -= length
                    if sound_at(file, position, 12 + length):
                        return position
                place = window.find(b"\2", place + 1)
            at += SCAN_WINDOW
        return None

    def _take(self, data: bytes, magic: int) -> LogBatch:
        """The row of a whole batch, and what it means for the verdict. `magic`: as the file has
        it."""
        batch, found = batch_of(data), self.found
        right = crc_ok(data, batch)
        base, count, problem = batch.base_offset, batch.record_count, ""
        if batch.magic < 2 and batch.codec:
            base, count, problem = _inside(data, batch)
        if not right:
            problem = "checksum mismatch"
            self._hurt(f"a batch with a checksum mismatch at position {self.at}")
        lost = bool(found.problem) and not self.alone
        if right and not problem:
            problem = self._anomalies(batch, base, magic)
        if not lost:
            found.valid_bytes = self.at + batch.size
            found.batches += 1
            found.records += max(0, count or 0)
            found.first_offset = base if found.first_offset is None else found.first_offset
            found.last_valid_offset = batch.last_offset
        elif right:
            found.lost_batches += 1
            found.lost_first = base if found.lost_first is None else found.lost_first
            found.lost_last = batch.last_offset
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
        """What no broker writes, though the bytes are sound; noted, not cut."""
        named = self.base_offset if self.kind == "log" else None
        words = []
        if self.found.last_valid_offset is not None and base <= self.found.last_valid_offset:
            words.append(f"its base offset {base} is not after {self.found.last_valid_offset}")
        if magic > NEWEST:
            words.append(f"magic {magic}, which no release writes: brokers read it as {NEWEST}")
        elsewhere = named is not None and not (
            named <= base and batch.last_offset - named <= LIMITS.relative_offset
        )
        if elsewhere:
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
        found, notes = self.found, list(self.notes)
        found.total_bytes = self.size
        if self.alone and self.damage and found.starts:
            notes.insert(0, f"0.8.0, which recovers the last segment only, keeps {self.damage}")
        if self.alone and found.starts:
            found.problem, found.valid_bytes = "", self.size
        elif not found.problem:
            found.valid_bytes = self.size - found.padding
        if self.kind == "log":
            found.elsewhere = tuple(self._elsewhere(found.valid_bytes))
        if len(notes) > LIMITS.notes:
            notes = [*notes[: LIMITS.notes], f"and {len(notes) - LIMITS.notes} more of this kind"]
        found.notes = tuple(notes)
        if found.elsewhere or not found.starts:
            found.releases = self.place.family
        return found

    def _elsewhere(self, own: int) -> Iterator[OtherVerdict]:
        """What other releases make of it, where that is something else. `own`: what those that
        wrote it keep."""
        for family in self.others:
            other = self._of(family)
            if (other.starts, other.valid_bytes) != (
                self.found.starts,
                own if self.found.starts else None,
            ):
                yield other

    def _of(self, family: Family) -> OtherVerdict:
        place = self.place
        refused = self.refused.of.get(family)
        if family == "0.8.0" and place.stops:
            return OtherVerdict(family, False, None, f"does not start: {place.stops}")
        if family == "0.8.0" and not place.last:
            text = "recovers the last segment only, and leaves this one unchanged"
            return OtherVerdict(family, True, self.size, text)
        if family != "0.8.0" and place.behind:
            return OtherVerdict(family, True, 0, f"deletes it: it follows {place.behind}")
        if refused is not None:
            kept = 0 if refused.starts else None
            text = refused.text if refused.starts else f"does not start: {refused.text}"
            return OtherVerdict(family, refused.starts, kept, text)
        kept = self.size - self.found.padding if self.damaged_at is None else self.damaged_at
        return OtherVerdict(family, True, kept, f"keeps {kept} bytes")


def _inside(data: bytes, batch: Batch) -> tuple[int, int | None, str]:
    """First offset and count of an old compressed entry: only its last offset is in its header."""
    try:
        opened = open_batch(data, batch, COUNTING_LIMIT)
    except DissectError as error:
        return batch.base_offset, None, error.reason
    if opened.error is not None or not opened.records:
        reason = opened.error.reason if opened.error else "it is empty"
        return batch.base_offset, None, f"its messages cannot be read: {reason}"
    return opened.records[0].offset, len(opened.records), ""
