"""Types of Kafka's own files: batches with positions, entries of small files, and a recovering
broker's verdict on a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from kafkascope.times import iso_ms

Kind = Literal[
    "log",
    "snapshot",
    "index",
    "timeindex",
    "txnindex",
    "producer-snapshot",
    "leader-epochs",
    "offsets",
    "properties",
    "quorum-state",
]
"""`log` a segment, `snapshot` a KRaft checkpoint (the same format), `offsets` one of the
checkpoints of offsets by partition, `properties` meta.properties and partition.metadata."""


class LogBatch(NamedTuple):
    """A record batch in a segment, or one entry of an old message set."""

    number: int
    """Counted from 1 over the files of a partition."""
    file: str
    position: int
    """Bytes from the start of the file."""
    size: int
    base_offset: int
    last_offset: int
    records: int | None
    """None when an old compressed entry could not be opened."""
    magic: int
    codec: str
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    delete_horizon: bool
    log_append_time: bool
    base_timestamp: int
    max_timestamp: int
    crc: int
    crc_ok: bool
    lost: bool
    """A recovering broker would cut it off: it is damaged, or stands after damage."""
    problem: str
    """Empty when nothing is wrong with it."""

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; wraps around at 2**31, -1 without one."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) & 0x7FFFFFFF

    def to_json(self) -> dict[str, Any]:
        """The batch as `batch/1`."""
        return {
            "schema": "batch/1",
            "number": self.number,
            "file": self.file,
            "position": self.position,
            "size": self.size,
            "base_offset": self.base_offset,
            "last_offset": self.last_offset,
            "records": self.records,
            "magic": self.magic,
            "codec": self.codec,
            "leader_epoch": _or_none(self.leader_epoch),
            "producer_id": _or_none(self.producer_id),
            "producer_epoch": _or_none(self.producer_epoch),
            "base_sequence": _or_none(self.base_sequence),
            "last_sequence": _or_none(self.last_sequence),
            "transactional": self.transactional,
            "control": self.control,
            "delete_horizon": iso_ms(self.base_timestamp) if self.delete_horizon else None,
            "time_type": "append" if self.log_append_time else "create",
            "base_time": iso_ms(self.base_timestamp),
            "max_time": iso_ms(self.max_timestamp),
            "crc": f"{self.crc & 0xFFFFFFFF:08x}",
            "crc_ok": self.crc_ok,
            "lost": self.lost,
            "problem": self.problem or None,
        }


def _or_none(number: int) -> int | None:
    return None if number < 0 else number


class OtherVerdict(NamedTuple):
    """Verdict of brokers of other releases on a file, if it differs."""

    releases: str
    """`0.8.0`, `0.8.1 to 1.1`, `2.0 and later`."""
    starts: bool
    """Whether such a broker starts with the file."""
    valid_bytes: int | None
    """Bytes that the broker keeps; None if it does not start."""
    text: str


@dataclass(slots=True)
class RecoveryVerdict:
    """The verdict on a file, as of a broker of its release that recovers it."""

    file: str
    kind: Kind
    total_bytes: int = 0
    valid_bytes: int = 0
    """What a recovering broker keeps; equal to `total_bytes` but for zeros at the end when nothing
    is wrong."""
    batches: int = 0
    """Valid ones, or entries of the file."""
    records: int = 0
    first_offset: int | None = None
    last_valid_offset: int | None = None
    problem: str = ""
    """The first thing wrong with the bytes, with its position; empty when they are sound."""
    padding: int = 0
    """Zero bytes at the end: space set aside, which is no damage; recovery cuts it off."""
    lost_batches: int = 0
    """Sound batches after the damage, which a recovering broker cuts off with it."""
    lost_first: int | None = None
    lost_last: int | None = None
    notes: tuple[str, ...] = ()
    """Oddities that are no damage: offsets that go back, entries that point nowhere."""
    starts: bool = True
    """Whether a broker of these releases starts with the file."""
    releases: str = ""
    """The releases whose verdict this is, where it is known that they differ."""
    elsewhere: tuple[OtherVerdict, ...] = ()
    """Verdicts of other releases, if they differ."""

    @property
    def sound(self) -> bool:
        """Nothing would be cut."""
        return not self.problem

    def lines(self) -> list[str]:
        """The verdict in words."""
        noun = "batch" if self.batches == 1 else "batches"
        if self.kind not in ("log", "snapshot"):
            noun = "entry" if self.batches == 1 else "entries"
        head = f"{self.file}: {self.batches} {noun}"
        if self.records:
            head += f", {self.records} records"
        if self.last_valid_offset is not None:
            head += f", offsets {self.first_offset} to {self.last_valid_offset}"
        if self.padding:
            head += f", {self.padding} preallocated zero bytes at the end, truncated on recovery"
        rest = [f"  {each.releases}: {each.text}" for each in self.elsewhere]
        rest += [f"  note: {note}" for note in self.notes]
        if self.sound:
            return [f"{head}; sound", *rest]
        found = [f"{head}; damaged", f"  {self.problem}"]
        if not self.starts:
            found.append(f"  brokers {self.releases} do not start with this file")
        elif self.kind in ("log", "snapshot"):
            cut = self.total_bytes - self.valid_bytes
            last = self.last_valid_offset
            keeps = "nothing" if last is None else f"records up to offset {last}"
            found.append(
                f"  a broker that recovers this file keeps {keeps} ({self.valid_bytes} bytes)"
                f" and truncates {cut} bytes"
            )
            if self.lost_batches:
                found.append(
                    f"  including {self.lost_batches} intact batches after the damage,"
                    f" offsets {self.lost_first} to {self.lost_last}"
                )
        return found + rest

    def to_json(self) -> dict[str, Any]:
        """The verdict as `verdict/1`."""
        return {
            "schema": "verdict/1",
            "file": self.file,
            "kind": self.kind,
            "sound": self.sound,
            "total_bytes": self.total_bytes,
            "valid_bytes": self.valid_bytes,
            "batches": self.batches,
            "records": self.records,
            "first_offset": self.first_offset,
            "last_valid_offset": self.last_valid_offset,
            "problem": self.problem or None,
            "padding": self.padding,
            "lost_batches": self.lost_batches,
            "lost_offsets": None if self.lost_first is None else [self.lost_first, self.lost_last],
            "notes": list(self.notes),
            "starts": self.starts,
            "releases": self.releases or None,
            "elsewhere": [each._asdict() for each in self.elsewhere],
        }
