"""Records of an exchange as record/1 objects: produced records from the request, fetched records
from the response.

Written for speed: the common parts of all records of a batch are formatted once, so a record costs
little more than the JSON of its key and value.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import compress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import orjson

from kafkascope.analyzer.exchanges.limits import LIMITS
from kafkascope.analyzer.topics import short_id
from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.embedded import embedded_in
from kafkascope.dissectors.embedded.internal import (
    Content,
    decode,
    is_internal,
    masked_content,
    without_secrets,
)
from kafkascope.dissectors.embedded.values import schema_id_of
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.compression import name_of
from kafkascope.dissectors.records.records import (
    CODEC_MASK,
    CONTROL,
    TRANSACTIONAL,
    Batch,
    Opened,
    Partial,
    aligned,
    batches,
    crc_ok,
    open_batch,
)
from kafkascope.dissectors.records.redaction import masked_records
from kafkascope.dissectors.values import Uuid
from kafkascope.times import iso_ms

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.dissectors.records.records import Header, Record
    from kafkascope.schemas.decoding import Payloads

BY_SCHEMA = tuple(
    f"{side}_{what}" for side in ("key", "value") for what in ("schema", "decoded", "error")
)
"""Members of record/1 that only keys and values with a schema have."""
PRODUCE = 0
FETCH = 1
FETCH_SNAPSHOT = 59
SHARE_FETCH = 78
# Bytes of JSON per piece that is yielded: the JSON of a batch may take gigabytes.
PIECE = 1 << 20


Chosen: TypeAlias = Sequence[bool | bytes]
"""A choice among the records of an exchange. For each field of `fields_of`: all or none of its
records, or a byte for each record, 1 or 0."""


class RecordField(NamedTuple):
    """A records field: the records of one partition in one message."""

    source: Literal["produce", "fetch", "log"]
    topic: str | None
    """None for a topic id whose name is unknown."""
    topic_id: bytes | None
    partition: int
    data: bytes
    base_offset: int | None
    """For Produce: the offset that the broker assigned to the first record."""
    aligned: bool = True
    """Whether it begins with a batch; a piece of a snapshot may begin inside one."""

    def batches(self) -> Iterator[Batch | Partial]:
        """Yield the batches of the field; `Malformed` at the first invalid one."""
        return batches(self.data) if self.aligned else aligned(self.data)

    def opened(
        self, data: bytes | None = None, damage: list[DissectError] | None = None
    ) -> Iterator[tuple[Batch, Opened]]:
        """Yield the whole batches of the field with their readable records: of a damaged batch, the
        records before the damage. Ends at the first bytes that are no batch, noted in `damage`.
        `data`: the field's bytes with some of them masked."""
        octets = self.data if data is None else data
        try:
            for batch in self.batches():
                if not isinstance(batch, Partial):
                    yield batch, open_batch(octets, batch)
        except DissectError as error:
            if damage is not None:
                damage.append(error.without_frames())


# Makes a `RecordField` of a tuple without a Python frame.
_field = partial(tuple.__new__, RecordField)


class Problem(NamedTuple):
    """Records that could not be read or are damaged."""

    exchange: int
    topic: str
    partition: int
    text: str

    def __str__(self) -> str:
        return f"exchange {self.exchange}: {self.topic}-{self.partition}: {self.text}"


def fields_of(exchange: Exchange, names: TopicNames) -> Iterator[RecordField]:
    """Return the records fields of an exchange that are not empty."""
    return fields_in(exchange.api_key, exchange.request_body, exchange.response_body, names)


def fields_in(
    api_key: int | None,
    request: dict[str, Any] | None,
    response: dict[str, Any] | None,
    names: TopicNames,
) -> Iterator[RecordField]:
    """Yield the records fields of the bodies of a request and its response."""
    if api_key == PRODUCE and request is not None:
        base_offsets = None
        for topic in request["topic_data"]:
            name, topic_id = _topic(topic, "name", names)
            for partition in topic["partition_data"]:
                if data := partition["records"]:
                    index = partition["index"]
                    if base_offsets is None:
                        base_offsets = _base_offsets(response)
                    base = base_offsets.get((topic.get("name"), topic_id, index))
                    yield _field(("produce", name, topic_id, index, data, base, True))
    elif api_key in (FETCH, SHARE_FETCH) and response is not None:
        for topic in response["responses"]:
            name, topic_id = _topic(topic, "topic", names)
            for partition in topic["partitions"]:
                if data := partition["records"]:
                    index = partition["partition_index"]
                    yield _field(("fetch", name, topic_id, index, data, None, True))
    elif api_key == FETCH_SNAPSHOT and response is not None:
        for topic in response["topics"]:
            for partition in topic["partitions"]:
                if data := partition["unaligned_records"]:
                    yield RecordField(
                        "fetch", topic["name"], None, partition["index"], data, None, False
                    )


def _topic(topic: dict[str, Any], name: str, names: TopicNames) -> tuple[str | None, bytes | None]:
    topic_id = topic.get("topic_id")
    if topic_id is None:
        return topic[name], None
    return names.get(topic_id), topic_id


def _base_offsets(response: dict[str, Any] | None) -> dict[tuple[Any, ...], int]:
    """Return the base offsets by (topic name, id, partition) for the partitions whose records the
    broker accepted."""
    if response is None:
        return {}
    return {
        (topic.get("name"), topic.get("topic_id"), partition["index"]): partition["base_offset"]
        for topic in response["responses"]
        for partition in topic["partition_responses"]
        if partition["error_code"] == 0 and partition["base_offset"] >= 0
    }


CARRIERS: Final = frozenset({PRODUCE, FETCH, FETCH_SNAPSHOT, SHARE_FETCH})
"""Keys of the APIs whose messages have records, see `fields_in`."""


def record_lines(
    exchange: Exchange,
    names: TopicNames,
    problems: list[Problem],
    payloads: Payloads | None = None,
    chosen: Chosen | None = None,
) -> Iterator[bytes]:
    """Yield the record/1 objects of an exchange as JSON lines, with line feeds, several at a time;
    records that cannot be read are added to `problems`. `payloads`: decodes keys and values.
    `chosen`: only these records."""
    for number, field in enumerate(fields_of(exchange, names)):
        mask = True if chosen is None else chosen[number]
        only = None if isinstance(mask, bool) else mask
        if not mask or (only is not None and 1 not in only):
            continue
        for *_, pieces in field_objects(exchange.number, field, problems, b"\n", payloads, only):
            yield from pieces


def field_objects(
    number: int,
    field: RecordField,
    problems: list[Problem],
    separator: bytes,
    payloads: Payloads | None = None,
    only: bytes | None = None,
) -> Iterator[tuple[Batch, bool, Iterator[bytes]]]:
    """Yield each whole batch of a records field, whether its checksum is right, and its records as
    JSON objects, several at a time, each followed by `separator`. `only`: see `Chosen`."""
    data = field.data
    place = 0
    try:
        for batch in field.batches():
            if isinstance(batch, Partial):
                continue
            right = crc_ok(data, batch)
            opened = open_batch(data, batch)
            if opened.error is not None:
                problems.append(_problem(number, field, opened.error.reason))
            elif not right:
                problems.append(_problem(number, field, "a batch has a checksum mismatch"))
            records = opened.records
            offset = None
            if field.base_offset is not None:
                offset = field.base_offset + place
            wanted = None if only is None else only[place : place + len(records)]
            place += len(records)
            pieces = batch_objects(
                number, field, batch, records, offset, separator, payloads, wanted
            )
            yield batch, right, pieces
    except DissectError as error:
        problems.append(_problem(number, field, f"{error.reason} at byte {error.offset}"))


def _problem(number: int, field: RecordField, text: str) -> Problem:
    return Problem(number, topic_text(field), field.partition, text)


def topic_text(field: RecordField) -> str:
    """Return the topic's name, or a placeholder where it is not known."""
    if field.topic is not None:
        return field.topic
    return short_id(field.topic_id) if field.topic_id is not None else ""


def batch_objects(
    number: int | None,
    field: RecordField,
    batch: Batch,
    records: Sequence[Record],
    offset: int | None,
    separator: bytes,
    payloads: Payloads | None = None,
    only: bytes | None = None,
) -> Iterator[bytes]:
    """Yield the records of a batch as JSON objects, several at a time. `number`: of the exchange,
    None for Kafka's own files. `offset`: of the first record of a Produce. `only`: see `Chosen`."""
    known = batch.producer_id >= 0
    topic = topic_text(field)
    frame = frame_of if len(topic) <= LIMITS.topic_chars else frame_of.__wrapped__
    head, tail, last, closing = frame(
        *(field.source, topic, field.topic_id, field.partition, batch.magic),
        *(batch.attributes, batch.producer_id, batch.producer_epoch, separator),
    )
    head = head % (b"null" if number is None else b"%d" % number)
    internal = batch.control or is_internal(field.topic, field.topic_id)
    sequence = batch.base_sequence if known else -1
    # Kafka counts sequence numbers by offset: compaction leaves gaps in both.
    first = batch.base_offset
    produced = field.source == "produce"
    encode = orjson.dumps
    longest, part = LIMITS.record_bytes, LIMITS.long_record_part_bytes
    parts: list[bytes] = []
    made = 0
    second_ms = 0
    clock = None
    places = enumerate(records)
    wanted = places if only is None else compress(places, only)
    for place, (own, stamp, key, value, headers) in wanted:
        # The second is formatted once; records of a batch differ in the milliseconds.
        if clock is not None and stamp is not None and 0 <= stamp - second_ms < 1000:
            time = b'%b%03dZ","key":' % (clock, stamp - second_ms)
        else:
            text = iso_ms(stamp)
            if text is None or stamp is None:
                time = b',"time":null,"key":'
            else:
                clock = b',"time":"' + text[:-4].encode()
                second_ms = stamp - stamp % 1000
                time = b',"time":"' + text.encode() + b'","key":'
        if produced:
            at = b"null" if offset is None else b"%d" % (offset + place)
        else:
            at = b"%d" % own
        in_headers = sum([len(name) + len(data or b"") for name, data in headers]) if headers else 0
        size = len(key or b"") + len(value or b"") + in_headers
        kept = longest if size <= longest else part
        if key is None:
            shown_key = b"null"
        elif len(key) > part:
            shown_key = _left_out(len(key)) if len(key) > kept else _long(key)
        else:
            try:
                shown_key = encode(key.decode())
            except UnicodeDecodeError:
                shown_key = _base64(key)
        meaning = b""
        if internal:
            value, meaning = _meaning(field, batch, key, value)
        else:
            decoder = payloads if size <= longest else None
            meaning = schema_members(field.topic, key, value, headers, decoder)
        if value is None:
            shown = b"null"
        elif len(value) > part:
            shown = _left_out(len(value)) if len(value) > kept else _long(value)
        else:
            try:
                shown = encode(value.decode())
            except UnicodeDecodeError:
                shown = _base64(value)
        if headers or sequence >= 0:
            numbered = b"null"
            if sequence >= 0:
                numbered = b"%d" % ((sequence + own - first) & 0x7FFFFFFF)
            some = _headers(headers) if in_headers <= kept else _left_out(in_headers)
            ending = b"".join((b',"headers":', some, tail, numbered, last))
        else:
            ending = closing
        if meaning:
            ending = b"".join((ending[: -1 - len(separator)], b",", meaning, b"}", separator))
        # Joined at once: orjson returns a short text at the start of a 4 kB buffer, which stays
        # allocated.
        line = b"".join((head, at, time, shown_key, b',"value":', shown, ending))
        del shown
        parts.append(line)
        made += len(line)
        if made > PIECE:
            line = b""
            yield parts.pop() if len(parts) == 1 else b"".join(parts)
            parts.clear()
            made = 0
    if parts:
        yield b"".join(parts)


@lru_cache(256)
def frame_of(
    source: str,
    topic: str,
    topic_id: bytes | None,
    partition: int,
    magic: int,
    attributes: int,
    producer_id: int,
    producer_epoch: int,
    separator: bytes,
) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the JSON that all records of a batch share: before the offset, with a place for the
    number of the exchange; after the headers; after the sequence; and after the value of a record
    without headers and sequence."""
    start = {
        "source": source,
        "topic": topic,
        "topic_id": None if topic_id is None else str(Uuid(topic_id)),
        "partition": partition,
    }
    known, second = producer_id >= 0, magic == 2
    end = {
        "codec": name_of(attributes & CODEC_MASK),
        "magic": magic,
        "producer_id": producer_id if known else None,
        "producer_epoch": producer_epoch if known else None,
    }
    rest = {
        "transactional": second and bool(attributes & TRANSACTIONAL),
        "control": second and bool(attributes & CONTROL),
    }
    partition_json = dumps(start)[1:-1].replace(b"%", b"%%")
    head = b'{"schema":"record/1","exchange":%b,' + partition_json + b',"offset":'
    tail = b"," + dumps(end)[1:-1] + b',"sequence":'
    last = b"," + dumps(rest)[1:] + separator
    return head, tail, last, b',"headers":[]' + tail + b"null" + last


def _left_out(size: int) -> bytes:
    """Return the placeholder of a key, a value or headers that are too long."""
    return b'{"left_out":"%d bytes of a record with more than %d MB"}' % (
        size,
        LIMITS.record_bytes >> 20,
    )


def schema_members(
    topic: str | None,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header],
    payloads: Payloads | None,
) -> bytes:
    """Return the members of a record for the schemas of key and value: ids, and values decoded by
    `payloads`. Empty for most records."""
    ids = _schema_ids(key, value) if (value and not value[0]) or (key and not key[0]) else b""
    decoded = b"" if payloads is None else payloads.members(topic, key, value, headers)
    return ids + b"," + decoded if ids and decoded else ids or decoded


def _schema_ids(key: bytes | None, value: bytes | None) -> bytes:
    """Return the members of the object for schema ids in Schema Registry's framing."""
    ids = {"key_schema_id": key, "value_schema_id": value}
    found = {name: schema_id_of(data) for name, data in ids.items() if data}
    shown = {name: number for name, number in found.items() if number is not None}
    return dumps(shown)[1:-1] if shown else b""


def _meaning(
    field: RecordField, batch: Batch, key: bytes | None, value: bytes | None
) -> tuple[bytes | None, bytes]:
    value, shown = internal_of(field, key, value, control=batch.control)
    return value, b"" if shown is None else b'"decoded":' + dumps(shown)


def internal_of(
    field: RecordField, key: bytes | None, value: bytes | None, *, control: bool
) -> tuple[bytes | None, dict[str, Any] | None]:
    """Return the value without secrets, and the member `decoded` of record/1: key and value of a
    record of Kafka's internal topics or of a `control` batch. None for other records."""
    found = decode(field.topic, key, value, topic_id=field.topic_id, control=control)
    if found is None:
        return value, None
    shown: dict[str, Any] = {"key": _content(found.key), "value": _content(found.value)}
    if found.error is not None:
        shown["error"] = str(found.error)
    return without_secrets(found, value), shown


def shareable(field: RecordField) -> bytes | None:
    """Return the field's bytes with secrets in Kafka's internal records masked, and checksums
    unchanged; None if masking would change the size, as in a compressed batch."""
    data, topic, topic_id = field.data, field.topic, field.topic_id
    if not is_internal(topic, topic_id):
        return data
    clean = masked_records(data, topic, topic_id, seals=False, unaligned=not field.aligned)
    return clean if len(clean) == len(data) else None


def _content(content: Content | None) -> dict[str, Any] | None:
    if content is None:
        return None
    out: dict[str, Any] = {"message": content.message, "version": content.version}
    out["body"] = masked_content(content)
    if content.layout is not None:
        inside = [
            {"path": path, "kind": each.kind, "value": each.body}
            | ({"note": each.note} if each.note else {})
            for path, each in embedded_in(content.layout, content.body)
        ]
        if inside:
            out["embedded"] = inside
    if content.note:
        out["note"] = content.note
    if content.surplus:
        out["surplus"] = content.surplus
    return out


def _base64(value: bytes) -> bytes:
    return b'{"base64":"' + b64encode(value) + b'"}'


def _long(value: bytes) -> bytes:
    """Return a long key or value as JSON: as base64 if text would be mostly escapes, which take six
    bytes for each control character."""
    text = octets(value)
    return text if len(text) <= 2 * len(value) else _base64(value)


def octets(value: bytes | None) -> bytes:
    """Return a key or value as JSON: text when it is UTF-8, else base64."""
    if value is None:
        return b"null"
    try:
        return orjson.dumps(value.decode())
    except UnicodeDecodeError:
        return _base64(value)


def _headers(headers: Sequence[Header]) -> bytes:
    pairs = [b"[" + dumps(name) + b"," + octets(value) + b"]" for name, value in headers]
    return b"[" + b",".join(pairs) + b"]"
