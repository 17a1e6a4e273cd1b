"""The records that an exchange carried, as record/1 objects: produced ones from the request, fetched
ones from the response.

Written for speed: what is the same for all records of a batch is formatted once, so a record costs
little more than the JSON of its key and value.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson

from analyzer.rows import short_id
from analyzer.times import iso_ms
from dissectors.errors import DissectError
from dissectors.jsonform import dumps
from dissectors.records import Batch, Partial, batches, crc_ok, open_batch
from dissectors.values import Uuid

if TYPE_CHECKING:
    from analyzer.model import Exchange
    from analyzer.topics import TopicNames
    from dissectors.records import Header, Record

PRODUCE = 0
FETCH = 1
SHARE_FETCH = 78


class Field(NamedTuple):
    """One records field: of a partition, in one message."""

    source: Literal["produce", "fetch"]
    topic: str | None
    """None when the wire names the topic by an id and nothing told its name."""
    topic_id: bytes | None
    partition: int
    data: bytes
    base_offset: int | None
    """Of a Produce: where the broker says it put the first record."""


class Problem(NamedTuple):
    """Records that could not be read, or that are damaged."""

    exchange: int
    topic: str
    partition: int
    text: str

    def __str__(self) -> str:
        return f"exchange {self.exchange}: {self.topic}-{self.partition}: {self.text}"


def fields_of(exchange: Exchange, names: TopicNames) -> Iterator[Field]:
    """The records fields of an exchange that hold anything."""
    request, response = exchange.request, exchange.response
    asked = None if request is None else request.body
    answer = None if response is None else response.body
    if exchange.api_key == PRODUCE and asked is not None:
        given = _given(answer)
        for topic in asked["topic_data"]:
            name, topic_id = _topic(topic, "name", names)
            for partition in topic["partition_data"]:
                if partition["records"]:
                    index = partition["index"]
                    base = given.get((topic.get("name"), topic_id, index))
                    yield Field("produce", name, topic_id, index, partition["records"], base)
    elif exchange.api_key in (FETCH, SHARE_FETCH) and answer is not None:
        for topic in answer["responses"]:
            name, topic_id = _topic(topic, "topic", names)
            for partition in topic["partitions"]:
                if partition["records"]:
                    index = partition["partition_index"]
                    yield Field("fetch", name, topic_id, index, partition["records"], None)


def _topic(
    topic: dict[str, Any], name: str, names: TopicNames
) -> tuple[str | None, bytes | None]:
    topic_id = topic.get("topic_id")
    if topic_id is None:
        return topic[name], None
    return names.get(topic_id), topic_id


def _given(answer: dict[str, Any] | None) -> dict[tuple[Any, ...], int]:
    """(topic name, id, partition) -> base offset, where the broker took the records."""
    if answer is None:
        return {}
    return {
        (topic.get("name"), topic.get("topic_id"), partition["index"]): partition["base_offset"]
        for topic in answer["responses"]
        for partition in topic["partition_responses"]
        if partition["error_code"] == 0 and partition["base_offset"] >= 0
    }


def record_lines(
    exchange: Exchange, names: TopicNames, problems: list[Problem]
) -> Iterator[list[bytes]]:
    """The record/1 objects of an exchange as JSON, a list for each batch; what cannot be read is
    added to `problems`."""
    for field in fields_of(exchange, names):
        for _, objects in field_lines(exchange.number, field, problems):
            yield objects


def field_lines(
    number: int, field: Field, problems: list[Problem]
) -> Iterator[tuple[Batch, list[bytes]]]:
    """Each batch of a records field with its records as JSON objects."""
    data = field.data
    place = 0
    try:
        for batch in batches(data):
            if isinstance(batch, Partial):
                continue
            opened = open_batch(data, batch)
            offset = None
            if field.base_offset is not None:
                offset = field.base_offset + place
            place += len(opened.records)
            if opened.error is not None:
                problems.append(_problem(number, field, opened.error.reason))
            elif not crc_ok(data, batch):
                problems.append(_problem(number, field, "a batch has a wrong checksum"))
            yield batch, _objects(number, field, batch, opened.records, offset)
    except DissectError as error:
        problems.append(_problem(number, field, f"{error.reason} at byte {error.offset}"))


def _problem(number: int, field: Field, text: str) -> Problem:
    return Problem(number, topic_text(field), field.partition, text)


def topic_text(field: Field) -> str:
    """The topic's name, or what stands for it."""
    if field.topic is not None:
        return field.topic
    return short_id(field.topic_id) if field.topic_id is not None else ""


def _objects(
    number: int, field: Field, batch: Batch, records: list[Record], offset: int | None
) -> list[bytes]:
    """The records of a batch as JSON objects; `offset` is the first one's, of a Produce."""
    topic_id = None if field.topic_id is None else str(Uuid(field.topic_id))
    start = {
        "schema": "record/1",
        "exchange": number,
        "source": field.source,
        "topic": topic_text(field),
        "topic_id": topic_id,
        "partition": field.partition,
    }
    known = batch.producer_id >= 0
    end = {
        "codec": batch.codec_name,
        "magic": batch.magic,
        "producer_id": batch.producer_id if known else None,
        "producer_epoch": batch.producer_epoch if known else None,
    }
    rest = {"transactional": batch.transactional, "control": batch.control}
    head = dumps(start)[:-1] + b',"offset":'
    tail = b"," + dumps(end)[1:-1] + b',"sequence":'
    last = b"," + dumps(rest)[1:]
    sequence = batch.base_sequence if known and batch.base_sequence >= 0 else None
    fixed = None if sequence is not None else tail + b"null" + last
    produced = field.source == "produce"
    encode = orjson.dumps
    out: list[bytes] = []
    before: int | None = -1
    time = b',"time":null,"key":'
    for place, (own, stamp, key, value, headers) in enumerate(records):
        if stamp != before:
            before = stamp
            text = iso_ms(stamp)
            time = b',"time":null,"key":' if text is None else f',"time":"{text}","key":'.encode()
        if key is None:
            shown_key = b"null"
        else:
            try:
                shown_key = encode(key.decode())
            except UnicodeDecodeError:
                shown_key = _base64(key)
        if value is None:
            shown = b"null"
        else:
            try:
                shown = encode(value.decode())
            except UnicodeDecodeError:
                shown = _base64(value)
        if produced:
            at = b"null" if offset is None else b"%d" % (offset + place)
        else:
            at = b"%d" % own
        closing = fixed
        if closing is None:
            closing = tail + b"%d" % ((sequence + place) & 0x7FFFFFFF) + last  # type: ignore[operator]
        out.append(
            b"%b%b%b%b,\"value\":%b,\"headers\":%b%b"
            % (head, at, time, shown_key, shown, _headers(headers) if headers else b"[]", closing)
        )
    return out


def _base64(value: bytes) -> bytes:
    return b'{"base64":"' + b64encode(value) + b'"}'


def octets(value: bytes | None) -> bytes:
    """A key or value as JSON: text when it is UTF-8, else base64."""
    if value is None:
        return b"null"
    try:
        return orjson.dumps(value.decode())
    except UnicodeDecodeError:
        return _base64(value)


def _headers(headers: tuple[Header, ...] | list[Header] | Any) -> bytes:
    pairs = [b"[" + dumps(name) + b"," + octets(value) + b"]" for name, value in headers]
    return b"[" + b",".join(pairs) + b"]"
