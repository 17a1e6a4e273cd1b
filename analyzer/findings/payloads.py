"""Inspection of keys and values by their schemas: which batches are sampled, the verdict on each
key or value, and the tallies of verdicts that `schemas` makes findings of."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from functools import lru_cache, partial
from operator import itemgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.findings.counting import (
    Event,
    Events,
    KeyedMeasures,
    Names,
    least,
    most,
    total,
    whole,
)
from kafkascope.analyzer.findings.limits import LIMITS, FindingLimits
from kafkascope.analyzer.ranks import bounded
from kafkascope.analyzer.statistics.exchange_batch import Way
from kafkascope.analyzer.topics import nameless
from kafkascope.dissectors.records.records import open_batch
from kafkascope.schemas.decoding import PREFIX

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.dissectors.records.records import Batch, Record
    from kafkascope.schemas.decoding import Decoded, Payloads
    from kafkascope.schemas.framing import Side
    from kafkascope.schemas.model import PayloadError, Schema, SchemaKey

Place: TypeAlias = tuple[int, str, int]
"""Time, id and number of an exchange."""

# Beyond the limits one batch of this many is inspected. Topics with schemas get more, because the
# rules look for misfits; a topic without schemas may start to have some.
BATCHES_WITHOUT_SCHEMA: Final = 64
BATCHES_WITH_SCHEMA: Final = 16
HIDDEN: Final = "*"
"""Replaces a part of a path that is no name in the schema, such as the key of a map."""
_PART: Final = re.compile(r"\[\d{1,9}\]|[^.\[\]]+")
_WORD: Final = re.compile(r"[^\W\d][\w-]*")
_QUOTED: Final = re.compile(r"""['"].*['"]""", re.S)
_NAMED: Final = re.compile(
    r"(has no field|has no type|no schema has the type|no one message) .*", re.S
)
"""Matches errors that end with a part of the payload."""
_TYPE: Final = " is not of type "
_BY_NAME: Final = "required"
"""The only keyword of JSON Schema whose message repeats nothing of the value."""


class VerdictTally(KeyedMeasures):
    """Keys or values with the same verdict."""

    count: int = total()
    first: tuple[int, int] | None = least()
    """(time, number of the exchange)"""
    last_ns: int | None = most()
    record: tuple[Any, ...] | None = least()
    """The first one: (time, exchange id, index of the batch in the partition, index of the record
    in the batch, partition, offset or -1, path and text of the error)."""
    certain: int | None = most()
    """Whether the bytes certainly name a schema, as a header does: a zero byte and a number at the
    start of a value may be chance."""
    exchanges: Events = whole(partial(Events, LIMITS.schema_exchanges))

    def see_all(self, seen: Sequence[tuple[Place, Inspection, int]]) -> None:
        """Add keys or values with the same verdict: for each exchange its place, the inspection of
        its first key or value, and their count."""
        (first_ns, first_id, _), inspection, _ = min(seen, key=itemgetter(0))
        self._combine(
            {
                "count": sum(count for _, _, count in seen),
                "first": min((time_ns, number) for (time_ns, _, number), _, _ in seen),
                "last_ns": max(time_ns for (time_ns, _, _), _, _ in seen),
                "record": (first_ns, first_id, *inspection.record),
                "certain": max(int(each.certain) for _, each, _ in seen),
            }
        )
        self.exchanges.add_all(
            [Event(time_ns, id_, 0, number, "", {}) for (time_ns, id_, number), _, _ in seen]
        )


class SchemaUse(KeyedMeasures):
    """A schema that keys or values name."""

    subjects: Names = whole(partial(Names, 16))
    sources: Names = whole(Names)


class Uninspected(KeyedMeasures):
    """Records that were not inspected."""

    count: int = total()


class SchemaVerdict(NamedTuple):
    """The verdict on a key or value, with namespace and id of its schema."""

    kind: str
    """good (`word`: the format), misfit (does not match the schema), unknown (no such schema),
    unread (the schema cannot be used), or plain (no schema)."""
    namespace: str = ""
    id: int | str = ""
    word: str = ""

    @property
    def schema(self) -> tuple[str, int | str]:
        """Namespace and id."""
        return self.namespace, self.id


class Change(KeyedMeasures):
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
    """A key or value that was inspected."""

    side: Side
    verdict: SchemaVerdict
    schema: Schema | None
    record: tuple[Any, ...]
    """As `VerdictTally.record`, without time and exchange."""
    certain: bool
    type: str = ""


class SampledTopic:
    """Which batches of a topic are inspected, on one way."""

    def __init__(self, budget: SamplingBudget) -> None:
        self._budget = budget
        self._seen = 0
        self.framed = False
        """It has schemas."""

    def takes(self, records: int, checksum: int) -> bool:
        """Return whether to inspect a batch, and count its records. Beyond the limits the batch's
        checksum decides: it is known before the batch is expanded, and it is random, but the same
        for all readers of the batch."""
        budget, limits = self._budget, self._budget.limits
        most = limits.framed_records if self.framed else limits.plain_records
        if budget.records >= limits.inspected_records or self._seen >= most:
            return not checksum % (BATCHES_WITH_SCHEMA if self.framed else BATCHES_WITHOUT_SCHEMA)
        self._seen += records
        budget.records += records
        return True


class SamplingBudget:
    """Decides which batches are inspected. Belongs to one process; is not stored."""

    def __init__(self, limits: FindingLimits) -> None:
        self.limits = limits
        self.records = 0
        """Inspected records of all topics."""
        self._topics: dict[tuple[str, Way], SampledTopic] = {}

    def of(self, topic: str, way: Way) -> SampledTopic | None:
        """Return the sampling of a topic; None beyond the limit of topics."""
        key = bounded(topic), way
        sampled = self._topics.get(key)
        if sampled is None and len(self._topics) < self.limits.inspected_topics:
            sampled = self._topics[key] = SampledTopic(self)
        return sampled


def name_in(row: Row, topic: Any) -> str | None:
    """Return the name of a topic, given by name or marked id; None where the row lacks it."""
    if isinstance(topic, str) and not topic.startswith("\0"):
        return topic
    # Topics that the bodies give as ids come last in `topics`, in the order of `topic_ids`: the two
    # lists correspond only if all topics are given as ids.
    if len(row.topics) == len(row.topic_ids):
        for name, topic_id in zip(row.topics, row.topic_ids, strict=True):
            if topic == f"\0{topic_id.hex()}":
                return None if nameless(name) else name
    return None


class SampledBatch(NamedTuple):
    """A record batch whose keys and values are inspected."""

    topic: str
    """Name or marked id: see `topic_key`."""
    budget: SampledTopic
    name: str | None
    way: Way
    partition: int
    batch_index: int
    """Index among the batches of the partition in the exchange."""
    offset: int | None
    """Offset of its first record, from the response; None without one."""
    blob: bytes
    batch: Batch


def inspect_batch(payloads: Payloads, sample: SampledBatch) -> list[tuple[Inspection, int]]:
    """Inspect the keys and values of a batch. Those with the same verdict for the same reason have
    one inspection, of the first, with their count."""
    opened = open_batch(sample.blob, sample.batch, LIMITS.expanded_bytes)
    decode, name = payloads.decode, sample.name
    inspections: dict[Any, Inspection] = {}
    counts: dict[Any, int] = {}
    for number, record in enumerate(opened.records):
        for side, data in zip(SIDES, (record.value, record.key), strict=True):
            if data is None or len(data) > LIMITS.payload_bytes:
                continue
            decoded = decode(name, side, data, record.headers)
            repeat_key = side if decoded is None else _repeat_key(side, data, record, decoded)
            key = (number, side) if repeat_key is None else repeat_key
            if key in counts:
                counts[key] += 1
                continue
            offset = -1 if sample.way == "produce" else record.offset
            if sample.way == "produce" and sample.offset is not None:
                offset = sample.offset + number
            position = (sample.batch_index, number, sample.partition, offset)
            inspections[key] = (
                Inspection(side, PLAIN, None, (*position, "", ""), False)
                if decoded is None
                else _inspect(payloads, side, data, record, decoded, position)
            )
            counts[key] = 1
    return [(inspection, counts[key]) for key, inspection in inspections.items()]


def _repeat_key(side: Side, data: bytes, record: Record, decoded: Decoded) -> Any:
    """Return a value that keys or values with the same verdict share; None for errors in the
    payload, which get a verdict each."""
    reference, error = decoded.found, decoded.error
    if error is None and reference is not None:
        schema, type_name = id(reference.schema), reference.codec.type_name
        return side, schema, type_name, reference.key, reference.at
    if error is not None and error.reason == "unknown-schema":
        return side, decoded.key, bool(record.headers), data[:1]
    return None


def _inspect(
    payloads: Payloads,
    side: Side,
    data: bytes,
    record: Record,
    decoded: Decoded,
    position: tuple[int, ...],
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
        return Inspection(side, verdict, schema, (*position, "", ""), certain, type_)
    words: tuple[str, str] = ("", "")
    if error.reason == "unknown-schema":
        kind, schema = "unknown", None
        certain = bool(record.headers) or data[:1] != b"\0"
    elif error.reason == "bad-schema":
        # A fault of the schema, or of this installation; nothing is wrong with the record.
        kind, certain = "unread", False
    else:
        kind, words = "misfit", complaint(error, schema)
        certain = decoded.found is not None and not decoded.found.at
    verdict = SchemaVerdict(kind, namespace, id_)
    return Inspection(side, verdict, schema, (*position, *words), certain)


def _schema_of(payloads: Payloads, decoded: Decoded) -> tuple[Schema | None, SchemaKey | None]:
    if decoded.found is not None:
        return decoded.found.schema, decoded.found.key
    key = decoded.key
    if key is None or not payloads.known.knows(key):
        return None, key
    return payloads.known.find(key)[0], key


def internal(name: str | None) -> bool:
    """Return whether a topic is one of Kafka's own."""
    if name is None or not name.startswith("__"):
        return False
    from kafkascope.dissectors.embedded.internal import is_internal

    return is_internal(name)


# --- errors without contents: outputs of `check` never show values of records


def complaint(error: PayloadError, schema: Schema | None) -> tuple[str, str]:
    """Return the path and the text of an error."""
    path = error.path
    if path:
        names = _words(schema.text) if schema is not None else frozenset[str]()
        path = _PART.sub(
            lambda part: part[0] if part[0][0] == "[" or part[0] in names else HIDDEN, path
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
    """Return the keyword that a value violates; the message of the library repeats the value."""
    keyword, colon, message = text.partition(": ")
    if not colon or " " in keyword or keyword == _BY_NAME:
        return text
    if keyword == "type" and _TYPE in message:
        return f"type: not {message.rpartition(_TYPE)[2]}"
    return f"violates {keyword}"
