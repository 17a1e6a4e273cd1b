"""Kafka's own files: which file is one, and what is in it.

`open_at_rest` opens a file or the folder of a partition. Its result yields batches, records and
entries one by one, and a verdict for each file. It returns None for captures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kafkascope.analyzer.logdir.files import SmallFile, read_small
from kafkascope.analyzer.logdir.model import Kind, LogBatch, RecoveryVerdict
from kafkascope.analyzer.logdir.records import Place
from kafkascope.analyzer.logdir.releases import family_of, index_stops, sound_at
from kafkascope.analyzer.logdir.segment import LEAST, PREFIX, TO_MAGIC, Segment, SegmentNeighbours

SEGMENT_NAME: Final = re.compile(
    r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)(\.(deleted|cleaned|swap))?\Z"
)
REMOTE_NAME: Final = re.compile(
    r"(\d{1,20})[-_]([\w-]{22})\.(log|index|timeindex|txnindex|snapshot|leader_epoch_checkpoint)"
    r"(\.deleted)?\Z"
)
"""In tiered storage: offset and id of a remote segment, as `LocalTieredStorage` names them, and
with `_` a broker's cache of remote indexes. Other stores have names of their own."""
REMOTE_FOLDER: Final = re.compile(r"(.+)-(\d+)-([\w-]{22})\Z")
"""Topic, partition and the topic's id."""
SNAPSHOT_NAME: Final = re.compile(
    r"(\d{20})-(\d{10})\.checkpoint(\.deleted)?\Z|bootstrap\.checkpoint\Z"
)
FOLDER_NAME: Final = re.compile(r"(.+?)-(\d+)(?:\.[0-9a-f]{32}-(?:delete|future|stray))?\Z")

KINDS: Final[dict[str, Kind]] = {
    "log": "log",
    "index": "index",
    "timeindex": "timeindex",
    "txnindex": "txnindex",
    "snapshot": "producer-snapshot",
    "leader_epoch_checkpoint": "leader-epochs",
}
NAMED: Final[dict[str, Kind]] = {
    "leader-epoch-checkpoint": "leader-epochs",
    "recovery-point-offset-checkpoint": "offsets",
    "replication-offset-checkpoint": "offsets",
    "log-start-offset-checkpoint": "offsets",
    "cleaner-offset-checkpoint": "offsets",
    "meta.properties": "properties",
    "partition.metadata": "properties",
    "quorum-state": "quorum-state",
}

CLUSTER_METADATA: Final = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class AtRest:
    """A file of Kafka's, or all segments of a partition's folder."""

    path: Path
    kind: Kind
    files: tuple[Path, ...]
    """Segments by base offset; of other kinds the one file."""
    topic: str | None
    """As the folder's name has it."""
    partition: int | None
    topic_id: str | None
    """As partition.metadata beside the file has it."""

    @property
    def place(self) -> Place:
        """What its records belong to."""
        return Place(self.topic, self.topic_id, self.partition)

    @property
    def holds_batches(self) -> bool:
        """Whether it has batches and records; entries otherwise."""
        return self.kind in ("log", "snapshot")

    def walk(self) -> Iterator[tuple[LogBatch, bytes] | RecoveryVerdict]:
        """Every batch with its bytes, and after those of each file its verdict."""
        number = 1
        behind = ""
        end: int | None = None
        family = family_of(self.files)
        last = self._is_last()
        for path in self.files:
            begin = base_offset_of(path)
            final = last and path == self.files[-1]
            rebuilt = final and not (path.parent.parent / ".kafka_cleanshutdown").exists()
            stops = index_stops(path, begin, rebuilt=rebuilt)
            neighbours = SegmentNeighbours(family, behind, final, stops)
            segment = Segment(path, self.kind, begin, neighbours, number)
            for batch, data in segment.batches():
                number = batch.number + 1
                yield batch, data
            verdict = segment.verdict()
            if not behind and (remark := _named(begin, verdict.first_offset, end)):
                verdict = replace(verdict, notes=(remark, *verdict.notes))
            yield verdict
            if not behind and verdict.starts and verdict.valid_bytes < verdict.total_bytes:
                behind = path.name
            end = verdict.last_valid_offset if verdict.last_valid_offset is not None else end

    def _is_last(self) -> bool:
        newest = _turn(self.files[-1])
        if self.path.is_dir() or self.kind != "log":
            return True
        return not any(
            is_segment(each.name) and _turn(each) > newest for each in self.path.parent.iterdir()
        )

    def batches(self) -> Iterator[tuple[LogBatch, bytes]]:
        """Every batch with its bytes, file after file."""
        for each in self.walk():
            if not isinstance(each, RecoveryVerdict):
                yield each

    def small(self) -> SmallFile:
        """Entries and verdict of a file without batches."""
        return read_small(self.files[0], self.kind, base_offset_of(self.files[0]))


def _turn(path: Path) -> tuple[int, str]:
    """Return what segments are sorted by: names in tiered storage have no leading zeros."""
    return base_offset_of(path) or 0, path.name


def _named(begin: int | None, first: int | None, end: int | None) -> str:
    """Return what is odd about the offset in a segment's name, held against its first batch and the
    end of the segment before; empty where nothing is. Brokers keep such segments."""
    if begin is None or end is None:
        return ""
    found = begin if first is None else min(begin, first)
    if found > end + 1:
        return (
            f"no batch before it has the offsets {end + 1} to {found - 1}: they were compacted,"
            " or a segment is missing"
        )
    if begin <= end:
        return f"its name starts at offset {begin}, but the previous segment ends at {end}"
    return ""


def is_segment(name: str) -> bool:
    """Whether this is the name of a segment that counts: not one that is being deleted."""
    if match := SEGMENT_NAME.match(name):
        return match[2] == "log" and not match[3]
    match = REMOTE_NAME.match(name)
    return match is not None and match[3] == "log" and not match[4]


def base_offset_of(path: Path) -> int | None:
    """The offset in the name of a segment's file."""
    match = SEGMENT_NAME.match(path.name) or REMOTE_NAME.match(path.name)
    return int(match[1]) if match else None


def open_at_rest(path: Path) -> AtRest | None:
    """The file or folder when it is one of Kafka's, else None; `OSError` when it cannot be read."""
    if path.is_dir():
        files = tuple(sorted((each for each in path.iterdir() if is_segment(each.name)), key=_turn))
        return _placed(path, "log", files, path) if files else None
    if not path.is_file():
        return None
    kind = kind_of(path)
    return None if kind is None else _placed(path, kind, (path,), path.parent)


def open_all_at_rest(path: Path) -> list[AtRest]:
    """Return what `open_at_rest` does, or all partitions of a log directory (`log.dirs`), by topic
    and number; nothing for other files."""
    one = open_at_rest(path)
    if one is not None:
        return [one]
    if not path.is_dir():
        return []
    names = (FOLDER_NAME, REMOTE_FOLDER)
    folders = [
        each
        for each in path.iterdir()
        if any(name.match(each.name) for name in names) and each.is_dir()
    ]
    found = [each for each in map(open_at_rest, folders) if each is not None]
    return sorted(found, key=lambda each: (each.topic or "", each.partition or 0, each.path.name))


def kind_of(path: Path) -> Kind | None:
    """The kind of a file, by its name, or else by its first bytes."""
    if match := SEGMENT_NAME.match(path.name):
        return KINDS[match[2]]
    if match := REMOTE_NAME.match(path.name):
        return KINDS[match[3]]
    if SNAPSHOT_NAME.match(path.name):
        return "snapshot"
    if path.name in NAMED:
        return NAMED[path.name]
    with path.open("rb") as file:
        head = file.read(TO_MAGIC)
        if len(head) < TO_MAGIC:
            return None
        offset, length = PREFIX.unpack_from(head)
        if offset < 0 or head[16] not in LEAST or length < LEAST[head[16]]:
            return None
        # A copy under another name: only a right checksum proves a segment.
        return "log" if sound_at(file, 0, 12 + length) else None


def _placed(path: Path, kind: Kind, files: tuple[Path, ...], folder: Path) -> AtRest:
    name, topic_id = folder.resolve().name, _topic_id(folder)
    match = FOLDER_NAME.match(name)
    if match is None and (match := REMOTE_FOLDER.match(name)):
        topic_id = topic_id or match[3]
    topic, partition = (match[1], int(match[2])) if match else (None, None)
    if kind == "snapshot":
        topic, partition = CLUSTER_METADATA, 0
    return AtRest(path, kind, files, topic, partition, topic_id)


def _topic_id(folder: Path) -> str | None:
    path = folder / "partition.metadata"
    try:
        entries = read_small(path, "properties", None).entries
    except OSError:
        return None
    return next((each["value"] for each in entries if each["name"] == "topic_id"), None)
