"""Topics and partitions: writers, readers and traffic, and what is stored in log segments."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.identity import labels
from kafkascope.analyzer.merging.bounded import Distinct, Names
from kafkascope.analyzer.merging.measures import Measures, least, most, stretch, total, whole
from kafkascope.analyzer.merging.tables import Keyed, sums, table
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch, PartitionColumns, Way
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import (
    Column,
    Line,
    TopicNames,
    columns,
    filled,
    picked,
    share,
)
from kafkascope.analyzer.statistics.simple import ByKey
from kafkascope.dissectors.records.batches import CODEC_MASK
from kafkascope.dissectors.records.compression import name_of
from kafkascope.schemas.model import Namespace, SchemaKey
from kafkascope.times import MS

if TYPE_CHECKING:
    from kafkascope.analyzer.logdir.model import LogBatch
    from kafkascope.analyzer.logdir.records import Place
    from kafkascope.dissectors.records.records import Batch
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.schemas.framing import Side


BYTES: Final = ("produced_bytes", "fetched_bytes", "replicated_bytes")
FETCHING: Final = frozenset({1, 78})
MOVING: Final = FETCHING | {0}


class Flow(Measures):
    """Traffic of a partition."""

    produced_records: int = total()
    produced_bytes: int = total()
    produced_batches: int = total()
    refused_records: int = total()
    fetched_records: int = total()
    fetched_bytes: int = total()
    replicated_bytes: int = total()
    errors: int = total()
    writers: Names = whole(Names)
    """(client id, host)"""
    readers: Names = whole(Names)
    codecs: Names = whole(Names)
    schemas: Names = whole(Names)
    """(key or value, kind of id, id), where requested"""
    unread: int = total()
    """Messages of which the records are not known."""
    least_offset: int | None = least()
    most_offset: int | None = most()
    first_ns: int | None = least()
    last_ns: int | None = most()


class Topics(ByKey[Flow]):
    """Records and bytes by topic and partition, with writers and readers."""

    NAME = "topics"
    KEYS = MOVING
    KEY = ("topic", "partition")
    COLUMNS = columns(
        "topic partitions produced_records produced_bytes batch_records refused_records "
        "fetched_records fetched_bytes (replicated_bytes) failed codecs writers readers (schemas) "
        "(first) (last)"
    )
    PARTITION_COLUMNS = columns(
        "topic partition share",
        *(each for each in COLUMNS if each.name not in ("topic", "partitions")),
        "first_offset last_offset",
    )

    VERSION = 4

    values: Keyed[Flow] = table(Flow)

    payloads: Payloads | None = None
    """Source of the schemas that keys and values name; without it they are not looked for, and no
    batch is opened."""

    def add(self, batch: ExchangeBatch) -> None:
        client, way = batch.client, batch.way
        for (topic, number, error), parts in batch.parts.items():
            flow = self.values[(topic, number)]
            if way == "produce":
                flow.writers.add(client)
            elif way == "fetch":
                flow.readers.add(client)
            stretch(flow, min(parts.begins), max(parts.begins))
            if error:
                flow.errors += len(parts.begins)
            if batch.exchange.sizeless:
                self._add_sizes(flow, way, batch.record_sizes.get((topic, number)), bool(error))
            else:
                self._add_records(flow, way, topic, parts, refused=bool(error))
        for place, fetches in batch.unanswered.items() if way == "fetch" else ():
            flow = self.values[place]
            flow.readers.add(client)
            stretch(flow, min(fetches)[0], max(fetches)[0])

    def _add_sizes(self, flow: Flow, way: Way, size: int | None, refused: bool) -> None:
        """Take in the bytes of records that are not there themselves; None: not even those."""
        flow.unread += 1
        if size is None or refused:
            return
        if way == "replica":
            flow.replicated_bytes += size
        elif way == "fetch":
            flow.fetched_bytes += size
        else:
            flow.produced_bytes += size

    def _add_records(
        self, flow: Flow, way: Way, topic: str | None, parts: PartitionColumns, *, refused: bool
    ) -> None:
        size = sum(map(len, parts.blobs))
        if not size:
            return
        counts, batches = parts.counts, parts.batches
        for codec in {batch.attributes & CODEC_MASK for batch in batches}:
            flow.codecs.add(name_of(codec))
        if self.payloads is not None:
            for blob, batch in zip(parts.by_batch(parts.blobs), batches, strict=True):
                if not batch.control:
                    _name_schemas(flow, self.payloads, topic, blob, batch)
        if way == "replica":
            flow.replicated_bytes += size
        elif way == "fetch":
            flow.fetched_records += sum(counts)
            flow.fetched_bytes += size
            if batches:
                flow.take(
                    least_offset=min([batch.base_offset for batch in batches]),
                    most_offset=max([batch.last_offset for batch in batches]),
                )
        elif refused:
            flow.refused_records += sum(counts)
        else:
            flow.produced_records += sum(counts)
            flow.produced_bytes += size
            flow.produced_batches += len(counts)
            appended = [
                (base, base + count - 1)
                for base, count in zip(parts.base_offsets, parts.sums(counts), strict=True)
                if base is not None and count
            ]
            if appended:
                flow.take(
                    least_offset=min(appended)[0], most_offset=max([last for _, last in appended])
                )

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        titles = self._titles()
        counts: dict[Any, int] = {}
        for key, _ in self.grouped(("topic", "partition"), names):
            counts[key["topic"]] = counts.get(key["topic"], 0) + 1
        found = self.grouped(("topic",), names)
        found.sort(key=_by_bytes)
        return [
            self._line(flow, titles, {**key, "partitions": counts[key["topic"]]})
            for key, flow in found
        ]

    def partitions(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per partition, those of the busiest topic first, with its share of the
        topic."""
        titles = self._titles()
        whole = {key["topic"]: flow for key, flow in self.grouped(("topic",), names)}
        order = sorted(whole, key=lambda topic: _by_bytes(({"topic": topic}, whole[topic])))
        place = {topic: index for index, topic in enumerate(order)}
        found = self.grouped(("topic", "partition"), names)
        found.sort(key=lambda item: (place[item[0]["topic"]], _by_bytes(item)))
        return [
            self._line(
                flow,
                titles,
                {
                    **key,
                    "share": share(_bytes(flow), _bytes(whole[key["topic"]])),
                    "first_offset": flow.least_offset,
                    "last_offset": flow.most_offset,
                },
                self.PARTITION_COLUMNS,
            )
            for key, flow in found
        ]

    def _titles(self) -> dict[tuple[str | None, str], str]:
        flows = [flow for _, flow in self.values.items()]
        if self.values.others is not None:
            flows.append(self.values.others)
        return labels({client for flow in flows for client in (*flow.writers, *flow.readers)})

    def _line(
        self, flow: Flow, titles: dict[Any, str], line: Line, columns: tuple[Column, ...] = COLUMNS
    ) -> Line:
        schemas = None
        if self.payloads is not None:
            schemas = [_schema_text(self.payloads, *each) for each in flow.schemas]
        more = {
            "batch_records": share(flow.produced_records, flow.produced_batches),
            "failed": flow.errors,
            "writers": sorted({titles[client] for client in flow.writers}),
            "readers": sorted({titles[client] for client in flow.readers}),
            "schemas": schemas,
        }
        if flow.unread:
            # Not in the lines of a request log, or not in all.
            unknown = ("produced_records", "fetched_records", "refused_records", *BYTES)
            more |= {name: None for name in unknown if not getattr(flow, name)}
        return filled(columns, flow, **line, **more)


def _name_schemas(
    flow: Flow, payloads: Payloads, topic: str | None, blob: bytes, batch: Batch
) -> None:
    from kafkascope.dissectors.embedded.internal import is_internal
    from kafkascope.dissectors.records.records import open_batch

    if is_internal(topic):
        return
    sides: tuple[Side, ...] = ("key", "value")
    for record in open_batch(blob, batch).records:
        for side, data in zip(sides, (record.key, record.value), strict=True):
            named = payloads.named(side, data, record.headers)
            if named is not None:
                key, _ = named
                flow.schemas.add((side, key.namespace, key.value))


def _schema_text(payloads: Payloads, side: str, namespace: Namespace, value: int | str) -> str:
    """Return what names a schema, with its first subject: value id 7 (orders-value)."""
    key = SchemaKey(namespace, value)
    found = payloads.known.find(key)
    names = [name for schema in found for name, _ in schema.subjects]
    more = names[0] if names else found[0].format if found else "unknown"
    return f"{side} {key} ({more})"


def _bytes(flow: Flow) -> int:
    return flow.produced_bytes + flow.fetched_bytes


def _by_bytes(item: tuple[Line, Flow]) -> tuple[int, str]:
    key, flow = item
    return -_bytes(flow), repr(tuple(key.values()))


class StoredPartition(Measures):
    """The batches of a partition."""

    records: int = total()
    bytes: int = total()
    batches: int = total()
    lost_batches: int = total()
    codecs: Names = whole(Names)
    magics: Names = whole(Names)
    producers: Distinct = whole(partial(Distinct, LIMITS.topic_producers))
    least_offset: int | None = least()
    most_offset: int | None = most()
    first_ms: int | None = least()
    last_ms: int | None = most()

    def add(self, batch: LogBatch) -> None:
        self.lost_batches += batch.lost
        if not batch.crc_ok:
            return  # What its head says may be part of the damage.
        self.records += 0 if batch.control else max(0, batch.records or 0)
        self.bytes += batch.size
        self.batches += 1
        self.codecs.add(batch.codec)
        self.magics.add(batch.magic)
        if batch.producer_id >= 0:
            self.producers.add(batch.producer_id)
        self.take(least_offset=batch.base_offset, most_offset=batch.last_offset)
        for stamp in (batch.base_timestamp, batch.max_timestamp):
            if stamp >= 0:
                self.take(first_ms=stamp, last_ms=stamp)


class StoredTopics:
    """Records and bytes by topic and partition, of Kafka's own files."""

    COLUMNS = columns(
        "topic partitions records bytes batches batch_records lost_batches codecs magics "
        "producers first last"
    )
    PARTITION_COLUMNS = columns(
        "topic partition share",
        *(each for each in COLUMNS if each.name not in ("topic", "partitions")),
        "first_offset last_offset",
    )

    def __init__(self) -> None:
        self._values = defaultdict[tuple[str, int], StoredPartition](StoredPartition)

    def add(self, batch: LogBatch, place: Place) -> None:
        self._values[place.topic or "", place.partition].add(batch)

    def rows(self) -> list[Line]:
        counts = Counter(topic for topic, _ in self._values)
        found = sorted(self._by_topic().items(), key=lambda item: (-item[1].bytes, item[0]))
        return [
            {"topic": topic, "partitions": counts[topic], **_line(each)} for topic, each in found
        ]

    def partitions(self) -> list[Line]:
        topics = self._by_topic()
        order = sorted(self._values, key=lambda key: (-topics[key[0]].bytes, *key))
        return [
            {
                "topic": topic,
                "partition": None if number < 0 else number,
                "share": share(each.bytes, topics[topic].bytes),
                **_line(each),
                "first_offset": each.least_offset,
                "last_offset": each.most_offset,
            }
            for topic, number in order
            for each in [self._values[topic, number]]
        ]

    def _by_topic(self) -> dict[str, StoredPartition]:
        return sums(StoredPartition, ((topic, each) for (topic, _), each in self._values.items()))


def _line(part: StoredPartition) -> Line:
    return {
        **picked(part, "records", "bytes", "batches", "lost_batches"),
        "batch_records": share(part.records, part.batches),
        "codecs": list(part.codecs),
        "magics": list(map(str, part.magics)),
        "producers": len(part.producers),
        "first": None if part.first_ms is None else part.first_ms * MS,
        "last": None if part.last_ms is None else part.last_ms * MS,
    }
