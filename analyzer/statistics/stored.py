"""What a broker keeps of topics and partitions: numbers of their batches in log segments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from kafkascope.analyzer.statistics.model import Column, Line, share

if TYPE_CHECKING:
    from kafkascope.analyzer.logdir.model import LogBatch
    from kafkascope.analyzer.logdir.records import Place

MOST_PRODUCERS: Final = 10_000
"""Producer ids of a partition that are told apart."""
NS_PER_MS: Final = 1_000_000


@dataclass(slots=True)
class StoredPartition:
    """The batches of a partition."""

    records: int = 0
    bytes: int = 0
    batches: int = 0
    lost_batches: int = 0
    codecs: set[str] = field(default_factory=set)
    magics: set[int] = field(default_factory=set)
    producers: set[int] = field(default_factory=set)
    least_offset: int | None = None
    most_offset: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None

    def add(self, batch: LogBatch) -> None:
        """Count a batch."""
        if batch.lost:
            self.lost_batches += 1
        if not batch.crc_ok:
            return  # What its head says may be part of the damage.
        self.records += 0 if batch.control else max(0, batch.records or 0)
        self.bytes += batch.size
        self.batches += 1
        self.codecs.add(batch.codec)
        self.magics.add(batch.magic)
        if batch.producer_id >= 0 and len(self.producers) < MOST_PRODUCERS:
            self.producers.add(batch.producer_id)
        self._stretch(batch.base_offset, batch.last_offset, batch.base_timestamp)
        self._stretch(batch.base_offset, batch.last_offset, batch.max_timestamp)

    def merge(self, other: StoredPartition) -> None:
        """Take in the batches of another partition."""
        self.records += other.records
        self.bytes += other.bytes
        self.batches += other.batches
        self.lost_batches += other.lost_batches
        self.codecs |= other.codecs
        self.magics |= other.magics
        self.producers |= other.producers
        for stamp in (other.first_ms, other.last_ms):
            if stamp is not None:
                self._stretch(0, 0, stamp)

    def _stretch(self, least: int, most: int, stamp: int) -> None:
        self.least_offset = least if self.least_offset is None else min(self.least_offset, least)
        self.most_offset = most if self.most_offset is None else max(self.most_offset, most)
        if stamp >= 0:
            self.first_ms = stamp if self.first_ms is None else min(self.first_ms, stamp)
            self.last_ms = stamp if self.last_ms is None else max(self.last_ms, stamp)


class StoredTopics:
    """Records and bytes by topic and partition, of Kafka's own files."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("topic"),
        Column("partitions", "count"),
        Column("records", "count"),
        Column("bytes", "size"),
        Column("batches", "count"),
        Column("batch_records", "rate"),
        Column("lost_batches", "count"),
        Column("codecs", "list"),
        Column("magics", "list"),
        Column("producers", "count"),
        Column("first", "time"),
        Column("last", "time"),
    )
    PARTITION_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("topic"),
        Column("partition", "count"),
        Column("share", "share"),
        *(each for each in COLUMNS if each.name not in ("topic", "partitions")),
        Column("first_offset", "count"),
        Column("last_offset", "count"),
    )

    def __init__(self) -> None:
        self._values: dict[tuple[str, int], StoredPartition] = {}

    def add(self, batch: LogBatch, place: Place) -> None:
        """Count a batch."""
        key = (place.topic or "", place.partition)
        self._values.setdefault(key, StoredPartition()).add(batch)

    def rows(self) -> list[Line]:
        """Return one line per topic, the most bytes first."""
        found = sorted(self._by_topic().items(), key=lambda item: (-item[1][1].bytes, item[0]))
        return [
            {"topic": topic, "partitions": count, **_line(whole)} for topic, (count, whole) in found
        ]

    def partitions(self) -> list[Line]:
        """Return one line per partition, those of the largest topic first."""
        whole = self._by_topic()
        order = sorted(self._values, key=lambda key: (-whole[key[0]][1].bytes, *key))
        return [
            {
                "topic": topic,
                "partition": None if number < 0 else number,
                "share": share(each.bytes, whole[topic][1].bytes),
                **_line(each),
                "first_offset": each.least_offset,
                "last_offset": each.most_offset,
            }
            for topic, number in order
            for each in [self._values[topic, number]]
        ]

    def _by_topic(self) -> dict[str, tuple[int, StoredPartition]]:
        found: dict[str, tuple[int, StoredPartition]] = {}
        for (topic, _), each in self._values.items():
            count, whole = found.get(topic, (0, StoredPartition()))
            whole.merge(each)
            found[topic] = (count + 1, whole)
        return found


def _line(part: StoredPartition) -> Line:
    return {
        "records": part.records,
        "bytes": part.bytes,
        "batches": part.batches,
        "batch_records": share(part.records, part.batches),
        "lost_batches": part.lost_batches,
        "codecs": sorted(part.codecs),
        "magics": [str(each) for each in sorted(part.magics)],
        "producers": len(part.producers),
        "first": None if part.first_ms is None else part.first_ms * NS_PER_MS,
        "last": None if part.last_ms is None else part.last_ms * NS_PER_MS,
    }
