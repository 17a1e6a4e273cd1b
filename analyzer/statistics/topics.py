"""Who writes to and reads from which topic and partition, and how much."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kafkascope.analyzer.identity import ClientKey, host_of, labels
from kafkascope.analyzer.payloads.model import Namespace, SchemaKey
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import (
    Measures,
    least,
    measured,
    most,
    stretch,
    total,
    whole,
)
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import (
    Column,
    Exchange,
    Line,
    Row,
    TopicNames,
    share,
    topic_key,
)
from kafkascope.analyzer.statistics.moved import Moved, Parts, moved, replica_id
from kafkascope.analyzer.statistics.simple import ByKey
from kafkascope.dissectors.records.batches import CODEC_MASK
from kafkascope.dissectors.records.compression import name_of

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.payloads.framing import Side
    from kafkascope.dissectors.records.records import Batch

FETCHING: Final = frozenset({1, 78})
MOVING: Final = FETCHING | {0}


@measured
class Flow(Measures):
    """What went through a partition."""

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
    """(key or value, kind of id, id), where somebody wants them"""
    least_offset: int | None = least()
    most_offset: int | None = most()
    first_ns: int | None = least()
    last_ns: int | None = most()


class Topics(ByKey[Flow]):
    """Records and bytes by topic and partition, with writers and readers."""

    NAME = "topics"
    KEYS = MOVING
    KEY = ("topic", "partition")
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("topic"),
        Column("partitions", "count"),
        Column("produced_records", "count"),
        Column("produced_bytes", "size"),
        Column("batch_records", "rate"),
        Column("refused_records", "count"),
        Column("fetched_records", "count"),
        Column("fetched_bytes", "size"),
        Column("replicated_bytes", "size", wide=True),
        Column("failed", "count"),
        Column("codecs", "list"),
        Column("writers", "list"),
        Column("readers", "list"),
        Column("schemas", "list", wide=True),
        Column("first", "time", wide=True),
        Column("last", "time", wide=True),
    )
    PARTITION_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("topic"),
        Column("partition", "count"),
        Column("share", "share"),
        *(each for each in COLUMNS if each.name not in ("topic", "partitions")),
        Column("first_offset", "count"),
        Column("last_offset", "count"),
    )

    VERSION = 2

    values: Keyed[Flow] = table(Flow)

    payloads: Payloads | None = None
    """Knows the schemas that keys and values name; without it these are not looked for, and no
    batch is opened."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Count the records of an exchange."""
        if exchange.api_key not in MOVING:
            return
        client, time_ns = (row.client_id or "", host_of(row.client_address)), row.time_ns
        if exchange.api_key in FETCHING:
            self._asked(client, exchange, row)
        for each in moved(exchange):
            flow = self._flow(client, each.way, each.topic, each.partition)
            stretch(flow, time_ns)
            self._take(flow, each)

    def add_all(self, alike: Alike) -> None:
        """Count usual exchanges."""
        for (topic, number), parts in alike.parts.items():
            flow = self._flow(alike.who, alike.way, topic, number)
            stretch(flow, min(parts.begins))
            stretch(flow, max(parts.begins))
            self._add_all(flow, alike.way, topic, parts)
        for place, asked in alike.unmoved.items() if alike.way == "fetch" else ():
            flow = self.values[place]
            flow.readers.add(alike.who)
            stretch(flow, min(asked)[0])
            stretch(flow, max(asked)[0])

    def _flow(self, client: ClientKey, way: str, topic: str | None, number: int) -> Flow:
        """Return what went through a partition, after somebody moved something there."""
        flow = self.values[(topic, number)]
        if way == "produce":
            flow.writers.add(client)
        elif way == "fetch":
            flow.readers.add(client)
        return flow

    def _add_all(self, flow: Flow, way: str, topic: str | None, parts: Parts) -> None:
        """Take in what usual exchanges moved of one partition."""
        counts, batches = parts.counts, parts.batches
        if not counts:
            return
        for codec in {attributes & CODEC_MASK for attributes in batches.attributes}:
            flow.codecs.add(name_of(codec))
        if self.payloads is not None:
            blobs = parts.by_batch(parts.blobs)
            for blob, batch in zip(blobs, parts.found, strict=True):
                if not batch.control:
                    _name_schemas(flow, self.payloads, topic, blob, batch)
        size = sum(map(len, parts.blobs))
        if way == "replica":
            flow.replicated_bytes += size
        elif way == "fetch":
            flow.fetched_records += sum(counts)
            flow.fetched_bytes += size
            _offsets(flow, min(batches.base_offset), max(batches.last_offset))
        else:
            flow.produced_records += sum(counts)
            flow.produced_bytes += size
            flow.produced_batches += len(counts)
            for base, count in zip(parts.given, parts.sums(counts), strict=True):
                if base is not None and count:
                    _offsets(flow, base, base + count - 1)

    def _take(self, flow: Flow, each: Moved) -> None:
        """Take in what was moved of one partition."""
        way, topic, _, error, _, blob, base, batches, counts = each
        if error:
            flow.errors += 1
        if not blob:
            return
        count = sum(counts)
        for batch in batches:
            flow.codecs.add(name_of(batch.attributes & CODEC_MASK))
            if self.payloads is not None and not batch.control:
                _name_schemas(flow, self.payloads, topic, blob, batch)
        if way == "replica":
            flow.replicated_bytes += len(blob)
        elif way == "fetch":
            flow.fetched_records += count
            flow.fetched_bytes += len(blob)
            for batch in batches:
                _offsets(flow, batch.base_offset, batch.last_offset)
        elif error:
            flow.refused_records += count
        else:
            flow.produced_records += count
            flow.produced_bytes += len(blob)
            flow.produced_batches += len(batches)
            if base is not None and count:
                _offsets(flow, base, base + count - 1)

    def _asked(self, client: tuple[str, str], exchange: Exchange, row: Row) -> None:
        """Take note of readers: those who ask, even if nothing comes."""
        asked = exchange.request_body
        if asked is None or replica_id(asked) >= 0:
            return
        for topic in asked["topics"] or ():
            named = topic_key(topic.get("topic"), topic.get("topic_id"))
            for each in topic["partitions"]:
                number = each["partition"] if "partition" in each else each["partition_index"]
                flow = self.values[(named, number)]
                flow.readers.add(client)
                stretch(flow, row.time_ns)

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per topic, the most bytes first."""
        titles = self._titles()
        counts: dict[Any, int] = {}
        for key, _ in self.grouped(("topic", "partition"), names):
            counts[key["topic"]] = counts.get(key["topic"], 0) + 1
        found = self.grouped(("topic",), names)
        found.sort(key=_by_bytes)
        return [
            {**key, "partitions": counts[key["topic"]], **self._line(flow, titles)}
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
            {
                **key,
                "share": share(_bytes(flow), _bytes(whole[key["topic"]])),
                **self._line(flow, titles),
                "first_offset": flow.least_offset,
                "last_offset": flow.most_offset,
            }
            for key, flow in found
        ]

    def _titles(self) -> dict[tuple[str | None, str], str]:
        flows = [flow for _, flow in self.values.items()]
        if self.values.others is not None:
            flows.append(self.values.others)
        return labels({client for flow in flows for client in (*flow.writers, *flow.readers)})

    def _line(self, flow: Flow, titles: dict[Any, str]) -> Line:
        schemas = None
        if self.payloads is not None:
            schemas = [_schema_text(self.payloads, *each) for each in flow.schemas]
        return {**_line(flow, titles), "schemas": schemas}


def _name_schemas(
    flow: Flow, payloads: Payloads, topic: str | None, blob: bytes, batch: Batch
) -> None:
    """Take note of the schemas that the records of a batch name."""
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


def _offsets(flow: Flow, first: int, last: int) -> None:
    if flow.least_offset is None or first < flow.least_offset:
        flow.least_offset = first
    if flow.most_offset is None or last > flow.most_offset:
        flow.most_offset = last


def _bytes(flow: Flow) -> int:
    return flow.produced_bytes + flow.fetched_bytes


def _by_bytes(item: tuple[Line, Flow]) -> tuple[int, str]:
    key, flow = item
    return -_bytes(flow), repr(tuple(key.values()))


def _called(clients: Iterable[Any], titles: dict[Any, str]) -> list[str]:
    return sorted({titles[client] for client in clients})


def _line(flow: Flow, titles: dict[Any, str]) -> Line:
    return {
        "produced_records": flow.produced_records,
        "produced_bytes": flow.produced_bytes,
        "batch_records": share(flow.produced_records, flow.produced_batches),
        "refused_records": flow.refused_records,
        "fetched_records": flow.fetched_records,
        "fetched_bytes": flow.fetched_bytes,
        "replicated_bytes": flow.replicated_bytes,
        "failed": flow.errors,
        "codecs": list(flow.codecs),
        "writers": _called(flow.writers, titles),
        "readers": _called(flow.readers, titles),
        "first": flow.first_ns,
        "last": flow.last_ns,
    }
