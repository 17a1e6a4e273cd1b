"""What the looks at keys and values of records found, by topic; how much is looked at."""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache, partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.analyzer.findings.counting import (
    Event,
    Events,
    Measures,
    Names,
    least,
    most,
    total,
    whole,
)
from kafkascope.analyzer.findings.limits import LIMITS, FindingLimits
from kafkascope.analyzer.identity import client_key_of
from kafkascope.analyzer.payloads.decoding import PREFIX
from kafkascope.analyzer.ranks import bounded
from kafkascope.analyzer.statistics.exchange_batch import Way
from kafkascope.analyzer.topics import nameless
from kafkascope.dissectors.records.records import open_batch

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.payloads.decoding import Decoded, Payloads
    from kafkascope.analyzer.payloads.framing import Side
    from kafkascope.analyzer.payloads.model import PayloadError, Schema, SchemaKey
    from kafkascope.dissectors.records.records import Batch, Record

SOME_BARE: Final = 64
# One of so many batches, chosen by the exchange's id and the batch's place.
SOME_FRAMED: Final = 16
HIDDEN: Final = "*"
"""In place of what is no name of the schema's: the key of a map, say."""
_PART: Final = re.compile(r"\[\d{1,9}\]|[^.\[\]]+")
_WORD: Final = re.compile(r"[^\W\d][\w-]*")
_QUOTED: Final = re.compile(r"""['"].*['"]""", re.S)
_NAMED: Final = re.compile(
    r"(has no field|has no type|no schema has the type|no one message) .*", re.S
)
"""Texts with something of the payload at their end."""
_TYPE: Final = " is not of type "
_BY_NAME: Final = "required"
"""A keyword of JSON Schema whose message has a name of the schema, and nothing of the value."""


class VerdictTally(Measures):
    """Keys or values with the same verdict."""

    count: int = total()
    first: tuple[int, int] | None = least()
    """(time, number of the exchange)"""
    last_ns: int | None = most()
    record: tuple[Any, ...] | None = least()
    """The first: (time, exchange, place, partition, offset or -1, path, text)."""
    certain: int | None = most()
    """Whether the format proves that there is a schema."""
    exchanges: Events = whole(partial(Events, LIMITS.schema_exchanges))


class SchemaUse(Measures):
    """A schema that was met."""

    subjects: Names = whole(partial(Names, 16))
    sources: Names = whole(Names)


class Uninspected(Measures):
    """Records that were not looked at."""

    count: int = total()


class SchemaVerdict(NamedTuple):
    """The verdict on a key or value: `good` (word: its format), `misfit`, `unknown`, `unread` (its
    schema cannot be used) or `plain`. Namespace and id are of the schema."""

    kind: str
    namespace: str = ""
    id: int | str = ""
    word: str = ""

    @property
    def schema(self) -> tuple[str, int | str]:
        """Namespace and id."""
        return self.namespace, self.id


class Change(Measures):
    """A change of a subject that breaks readers."""

    said: Names = whole(Names)


class WriterVerdict(NamedTuple):
    """Keys or values of one topic with the same verdict, by writer."""

    verdict: SchemaVerdict
    way: str
    client: tuple[str, str]
    judged: VerdictTally


PLAIN: Final = SchemaVerdict("plain")
SIDES: Final[tuple[Side, ...]] = ("value", "key")


class Inspection(NamedTuple):
    """A key or value that was looked at."""

    side: Side
    verdict: SchemaVerdict
    schema: Schema | None
    record: tuple[Any, ...]
    """See `VerdictTally.record`, without time and exchange."""
    certain: bool
    type: str = ""


class SamplingBudget:
    """Decides which batches are looked at. It is of one process, and no part of a state."""

    def __init__(self, limits: FindingLimits) -> None:
        self._limits = limits
        self._seen: dict[tuple[Any, str], int] = {}
        self._framed: set[tuple[Any, str]] = set()
        self._together = 0

    def takes(self, way: str, records: int, topic: Any, checksum: int) -> bool:
        """Return whether to look at a batch, and take note of its records. Of many, its checksum
        decides: that is known, random, and the same for every reader of the batch."""
        topic = bounded(topic)
        about, limits = (topic, way), self._limits
        seen = self._seen.get(about)
        if seen is None:
            if len(self._seen) >= limits.inspected_topics:
                return False
            seen = 0
        much = self._together >= limits.inspected_records
        if much or seen >= limits.plain_records:
            framed = about in self._framed
            if much or not framed or seen >= limits.framed_records:
                return not checksum % (SOME_FRAMED if framed else SOME_BARE)
        self._seen[about] = seen + records
        self._together += records
        return True

    def framed(self, topic: Any, way: str) -> None:
        """Take note that a topic has schemas."""
        if len(self._framed) < self._limits.inspected_topics:
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


class SampledBatch(NamedTuple):
    """A record batch whose keys and values are looked at."""

    topic: str
    """A key: see `topic_key`."""
    name: str | None
    way: Way
    partition: int
    at: int
    """Its place in the partition's records of the exchange."""
    offset: int | None
    """Of its first record, from the response; None without one."""
    blob: bytes
    batch: Batch


def inspect_batch(payloads: Payloads, sample: SampledBatch) -> list[tuple[Inspection, int]]:
    """Return what the keys and values of a batch are, with their numbers: of those without a
    schema, and of those that fit the same, the first one."""
    opened = open_batch(sample.blob, sample.batch, LIMITS.expanded_bytes)
    decode, name = payloads.decode, sample.name
    found: dict[Any, Inspection] = {}
    counts: dict[Any, int] = {}
    for number, record in enumerate(opened.records):
        for side, data in zip(SIDES, (record.value, record.key), strict=True):
            if data is None or len(data) > LIMITS.payload_bytes:
                continue
            decoded = decode(name, side, data, record.headers)
            about = side if decoded is None else _repeat_key(side, data, record, decoded)
            key = (number, side) if about is None else about
            if key in counts:
                counts[key] += 1
                continue
            offset = -1 if sample.way == "produce" else record.offset
            if sample.way == "produce" and sample.offset is not None:
                offset = sample.offset + number
            place_in = (sample.at, number, sample.partition, offset)
            found[key] = (
                Inspection(side, PLAIN, None, (*place_in, "", ""), False)
                if decoded is None
                else _look(payloads, side, data, record, decoded, place_in)
            )
            counts[key] = 1
    return [(look, counts[key]) for key, look in found.items()]


def _repeat_key(side: Side, data: bytes, record: Record, decoded: Decoded) -> Any:
    """Return what is equal for keys or values with the same verdict; None where each has its
    own."""
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
) -> Inspection:
    schema, key = _schema_of(payloads, decoded)
    namespace, id_ = ("file", "") if key is None else (key.namespace, key.value)
    if key is None and schema is not None:
        id_ = PurePath(schema.origin).name
    certain = decoded.found is None or decoded.found.at != PREFIX
    error = decoded.error
    if error is None:
        word = "" if schema is None else schema.format
        verdict, type_ = SchemaVerdict("good", namespace, id_, word), ""
        if decoded.found is not None:
            type_ = decoded.found.codec.type_name
        return Inspection(side, verdict, schema, (*place, "", ""), certain, type_)
    words: tuple[str, str] = ("", "")
    if error.reason == "unknown-schema":
        kind, schema = "unknown", None
        certain = bool(record.headers) or data[:1] != b"\0"
    elif error.reason == "bad-schema":
        # Of the schema, or of this installation, and nothing that is wrong with the record.
        kind, certain = "unread", False
    else:
        kind, words = "misfit", complaint(error, schema)
        certain = decoded.found is not None and not decoded.found.at
    verdict = SchemaVerdict(kind, namespace, id_)
    return Inspection(side, verdict, schema, (*place, *words), certain)


def _schema_of(payloads: Payloads, decoded: Decoded) -> tuple[Schema | None, SchemaKey | None]:
    if decoded.found is not None:
        return decoded.found.schema, decoded.found.key
    key = decoded.key
    if key is None or not payloads.known.knows(key):
        return None, key
    return payloads.known.find(key)[0], key


def take(judged: VerdictTally, row: Row, look: Inspection, count: int) -> None:
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
    return client_key_of(row) if way == "produce" else ("", "")


def internal(name: str | None) -> bool:
    """Return whether a topic is one of Kafka's own."""
    if name is None or not name.startswith("__"):
        return False
    from kafkascope.dissectors.embedded.internal import is_internal

    return is_internal(name)


# --- why a key or value does not fit, without what it holds: reports tell no values of records


def complaint(error: PayloadError, schema: Schema | None) -> tuple[str, str]:
    """Return the path and the text of an error."""
    path = error.path
    if path:
        known = _words(schema.text) if schema is not None else frozenset[str]()
        path = _PART.sub(
            lambda part: part[0] if part[0][0] == "[" or part[0] in known else HIDDEN, path
        )
    if schema is not None and schema.format == "json":
        return path, _of_json(error.text)
    return path, _NAMED.sub(rf"\1 {HIDDEN}", _QUOTED.sub(HIDDEN, error.text))


@lru_cache(maxsize=64)
def _words(text: str) -> frozenset[str]:
    """Return the words of a schema, among them all names of fields."""
    if len(text) > LIMITS.schema_chars:
        return frozenset()
    words = set(_WORD.findall(text))
    try:
        words |= {*_WORD.findall(base64.b64decode(text, validate=True).decode("latin-1"))}
    except (binascii.Error, ValueError):
        pass  # no descriptor of Protobuf, but source text or JSON
    return frozenset(words)


def _of_json(text: str) -> str:
    """Return the keyword that a value breaks: the library's message behind it repeats the value."""
    keyword, colon, message = text.partition(": ")
    if not colon or " " in keyword or keyword == _BY_NAME:
        return text
    if keyword == "type" and _TYPE in message:
        return f"type: not {message.rpartition(_TYPE)[2]}"
    return f"violates {keyword}"
