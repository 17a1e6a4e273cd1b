"""What the looks at keys and values of records found, by topic; how much is looked at."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

from kafkascope.analyzer.findings.complaints import complaint
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.payloads.decoding import PREFIX
from kafkascope.analyzer.ranks import bounded
from kafkascope.analyzer.statistics.merging.events import Event, Events
from kafkascope.analyzer.statistics.merging.measures import (
    Measures,
    least,
    measured,
    most,
    total,
    whole,
)
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.moved import Moved
from kafkascope.analyzer.topics import nameless
from kafkascope.dissectors.records.records import open_batch

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.payloads.decoding import Decoded, Payloads
    from kafkascope.analyzer.payloads.framing import Side
    from kafkascope.analyzer.payloads.model import Schema, SchemaKey
    from kafkascope.dissectors.records.records import Record

MOST_BARE: Final = 2_000
"""Records of a topic without any schema, before only some of its batches are looked at."""
MOST_FRAMED: Final = 20_000
"""As MOST_BARE, of a topic with schemas."""
MOST_TOGETHER: Final = 200_000
"""Records of all topics, before only some batches of each are looked at."""
SOME_BARE: Final = 64
SOME_FRAMED: Final = 16
"""One of so many batches, chosen by the exchange's id and the batch's place."""
MOST_TOPICS: Final = 10_000
MOST_EXPANDED: Final = 4 << 20
"""Bytes that a batch is expanded to."""
MOST_LONG: Final = 1 << 20
"""Bytes of a key or value that is looked at."""
MOST_SHOWN: Final = 20
"""Exchanges that a finding's filter names, besides the first."""


@measured
class Judged(Measures):
    """Keys or values of which the same is to be said."""

    count: int = total()
    first: tuple[int, int] | None = least()
    """(time, number of the exchange)"""
    last_ns: int | None = most()
    record: tuple[Any, ...] | None = least()
    """The first: (time, exchange, place, partition, offset or -1, path, text)."""
    certain: int | None = most()
    """Whether the format says beyond doubt that there is a schema."""
    exchanges: Events = whole(partial(Events, MOST_SHOWN))


@measured
class Described(Measures):
    """A schema that was met."""

    subjects: Names = whole(partial(Names, 16))
    sources: Names = whole(Names)


@measured
class Left(Measures):
    """Records that were not looked at."""

    count: int = total()


class Sort(NamedTuple):
    """What is said of a key or value: `good` (word: its format), `misfit`, `unknown`, `unread` (its
    schema cannot be used) or `plain`. Namespace and id are of the schema."""

    kind: str
    namespace: str = ""
    id: int | str = ""
    word: str = ""

    @property
    def schema(self) -> tuple[str, int | str]:
        """Namespace and id."""
        return self.namespace, self.id


PLAIN: Final = Sort("plain")
SIDES: Final[tuple[Side, ...]] = ("value", "key")


class Look(NamedTuple):
    """A key or value that was looked at."""

    side: Side
    verdict: Sort
    schema: Schema | None
    record: tuple[Any, ...]
    """See `Judged.record`, without time and exchange."""
    certain: bool
    type: str = ""
    """The name of what the schema describes."""


@lru_cache(4096)
def _behind(topic: Any, partition: int, at: int) -> bytes:
    """Return what stands behind an exchange's id in the name of a batch."""
    return f" {topic} {partition} {at}".encode("utf-8", "surrogatepass")


class LookBudget:
    """Decides which batches are looked at. It is of one process, and no part of a state."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Any, str], int] = {}
        self._framed: set[tuple[Any, str]] = set()
        self._together = 0

    def takes(self, way: str, records: int, place: tuple[str, Any, int, int]) -> bool:
        """Return whether to look at a batch, and take note of its records. `place`: the exchange's
        id, the topic, the partition, the number of the batch there."""
        id_, topic, partition, at = place
        topic = bounded(topic)
        about = topic, way
        seen = self._seen.get(about)
        if seen is None:
            if len(self._seen) >= MOST_TOPICS:
                return False
            seen = 0
        if seen >= MOST_BARE or self._together >= MOST_TOGETHER:
            framed = about in self._framed
            if not framed or seen >= MOST_FRAMED or self._together >= MOST_TOGETHER:
                number = crc32(_behind(topic, partition, at), crc32(id_.encode()))
                return not number % (SOME_FRAMED if framed else SOME_BARE)
        self._seen[about] = seen + records
        self._together += records
        return True

    def framed(self, topic: Any, way: str) -> None:
        """Take note that a topic has schemas."""
        if len(self._framed) < MOST_TOPICS:
            self._framed.add((bounded(topic), way))


def name_in(row: Row, topic: Any) -> str | None:
    """Return the name of the topic with a key, where the row has it."""
    if isinstance(topic, str) and not topic.startswith("\0"):
        return topic
    # Those with ids stand behind those with names, in the order of the ids.
    if len(row.topics) == len(row.topic_ids):
        for name, topic_id in zip(row.topics, row.topic_ids, strict=True):
            if topic == f"\0{topic_id.hex()}":
                return None if nameless(name) else name
    return None


def looks(payloads: Payloads, moved: Moved, at: int, name: str | None) -> list[tuple[Look, int]]:
    """Return what the keys and values of a batch are, with their numbers: of those without a
    schema, and of those that fit the same, the first one."""
    batch = moved.batches[at]
    opened = open_batch(moved.records, batch, MOST_EXPANDED)
    place = sum(moved.counts[:at])
    decode = payloads.decode
    found: list[Look] = []
    counts: list[int] = []
    same: dict[Any, int] = {}
    """Places of these in both lists."""
    for number, record in enumerate(opened.records):
        for side, data in zip(SIDES, (record.value, record.key), strict=True):
            if data is None or len(data) > MOST_LONG:
                continue
            decoded = decode(name, side, data, record.headers)
            about = side if decoded is None else _alike(side, data, record, decoded)
            index = same.get(about) if about is not None else None
            if index is not None:
                counts[index] += 1
                continue
            if about is not None:
                same[about] = len(found)
            offset = -1 if moved.way == "produce" else record.offset
            if moved.way == "produce" and moved.base_offset is not None:
                offset = moved.base_offset + place + number
            place_in = (at, number, moved.partition, offset)
            if decoded is None:
                found.append(Look(side, PLAIN, None, (*place_in, "", ""), False))
            else:
                found.append(_look(payloads, side, data, record, decoded, place_in))
            counts.append(1)
    return list(zip(found, counts, strict=True))


def _alike(side: Side, data: bytes, record: Record, decoded: Decoded) -> Any:
    """Return what is equal where the same is to be said of keys or values; None for what is said
    of each."""
    found, error = decoded.found, decoded.error
    if error is None and found is not None:
        return side, id(found.schema), found.codec.type_name, found.key, found.at
    if error is not None and error.reason == "unknown-schema":
        return side, decoded.key, bool(record.headers), data[:1]
    return None


def _look(
    payloads: Payloads,
    side: Side,
    data: bytes,
    record: Record,
    decoded: Decoded,
    place: tuple[int, ...],
) -> Look:
    schema, key = _schema_of(payloads, decoded)
    namespace, id_ = ("file", "") if key is None else (key.namespace, key.value)
    if key is None and schema is not None:
        id_ = PurePath(schema.origin).name
    certain = decoded.found is None or decoded.found.at != PREFIX
    error = decoded.error
    if error is None:
        word = "" if schema is None else schema.format
        verdict, type_ = Sort("good", namespace, id_, word), ""
        if decoded.found is not None:
            type_ = decoded.found.codec.type_name
        return Look(side, verdict, schema, (*place, "", ""), certain, type_)
    if error.reason == "unknown-schema":
        sure = bool(record.headers) or data[:1] != b"\0"
        return Look(side, Sort("unknown", namespace, id_), None, (*place, "", ""), sure)
    if error.reason == "bad-schema":
        # Of the schema, or of this installation, and nothing that is wrong with the record.
        return Look(side, Sort("unread", namespace, id_), schema, (*place, "", ""), False)
    verdict = Sort("misfit", namespace, id_)
    certain = decoded.found is not None and not decoded.found.at
    return Look(side, verdict, schema, (*place, *complaint(error, schema)), certain)


def _schema_of(payloads: Payloads, decoded: Decoded) -> tuple[Schema | None, SchemaKey | None]:
    if decoded.found is not None:
        return decoded.found.schema, decoded.found.key
    key = decoded.key
    if key is None or not payloads.known.knows(key):
        return None, key
    return payloads.known.find(key)[0], key


def take(judged: Judged, row: Row, look: Look, count: int) -> None:
    """Add keys or values of one exchange, once for each exchange; `look` is the first of them."""
    judged.count += count
    first, record = (row.time_ns, row.number), (row.time_ns, row.id, *look.record)
    if judged.first is None or first < judged.first:
        judged.first = first
    if judged.record is None or record < judged.record:
        judged.record = record
    if judged.last_ns is None or row.time_ns > judged.last_ns:
        judged.last_ns = row.time_ns
    judged.certain = max(judged.certain or 0, int(look.certain))
    judged.exchanges.add(Event(row.time_ns, row.id, 0, row.number, "", {}))


def writer(row: Row, way: str) -> tuple[str, str]:
    """Return the client that wrote; of fetched records it is not known."""
    return (row.client_id or "", host_of(row.client_address)) if way == "produce" else ("", "")


def internal(name: str | None) -> bool:
    """Return whether a topic is one of Kafka's own."""
    if name is None or not name.startswith("__"):
        return False
    from kafkascope.dissectors.embedded.internal import is_internal

    return is_internal(name)
