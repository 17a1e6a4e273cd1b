"""Bodies for outputs: without secrets, with their records written out."""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson

from kafkascope.analyzer.bodies.fetch_sessions import LISTED, by_topic
from kafkascope.analyzer.exchanges.embedded import embedded_of
from kafkascope.analyzer.exchanges.records import (
    FETCH,
    FETCH_SNAPSHOT,
    PRODUCE,
    SHARE_FETCH,
    Problem,
    RecordField,
    batch_objects,
    field_objects,
    fields_of,
    opened_records,
    shareable,
    topic_text,
)
from kafkascope.analyzer.exchanges.row_json import NOT_UTF8, utf8_of_row
from kafkascope.analyzer.exchanges.rows import to_json
from kafkascope.dissectors.codec.jsonform import plain, without_non_finite
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.dissectors.embedded.masking import masked
from kafkascope.dissectors.embedded.table import has_embedded
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.batches import only_batch
from kafkascope.dissectors.records.records import Batch, Partial, crc_ok

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.fetch_sessions import FetchSession
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange, Request, Response
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.dissectors.codec.reader import Body

RECORDS_LIMIT: Final = 100 << 20
"""Bytes of JSON for the records of one exchange: a line is built in one piece. Clients fetch up to
50 MB at once by default, and kilobytes of compressed batches could expand to gigabytes."""
COLUMN_LIMIT: Final = 32 << 20
"""The same limit for a column of a table: Arrow and Parquet hold a value several times."""
LEFT_OUT: Final = "records are left out: those of the exchange take more than {} MB"

ARRAYS: Final = {
    PRODUCE: ("request", "topic_data", "partition_data", "records"),
    FETCH: ("response", "responses", "partitions", "records"),
    SHARE_FETCH: ("response", "responses", "partitions", "records"),
    FETCH_SNAPSHOT: ("response", "topics", "partitions", "unaligned_records"),
}
"""By API key: the side that has records, the arrays around them, the field."""


class Room:
    """Remaining bytes of JSON that the records of an exchange may take."""

    __slots__ = ("_limit", "left")

    def __init__(self, limit: int) -> None:
        self._limit = self.left = limit

    @property
    def sentence(self) -> str:
        """What is said of records that are left out."""
        return LEFT_OUT.format(self._limit >> 20)


def full_bodies(
    exchange: Exchange,
    names: TopicNames,
    problems: list[Problem],
    limit: int | None = None,
    payloads: Payloads | None = None,
) -> dict[str, Any]:
    """Return `request` and `response`: the bodies in their JSON form, null for one that is missing
    or not decoded. Each records field becomes an object of base64 and batches. `embedded`: decoded
    contents of other bytes fields. `fetch_session`: the state that the request implies."""
    out = {"request": _clean(exchange.request), "response": _clean(exchange.response)}
    if found := _embedded(exchange):
        out["embedded"] = found
    if exchange.fetch_session is not None:
        out["fetch_session"] = _session(exchange.fetch_session, names)
    fields = fields_of(exchange, names)
    room = Room(RECORDS_LIMIT if limit is None else limit)

    def spelled(data: bytes | None) -> dict[str, Any] | None:
        return _spelled(exchange.number, data, fields, problems, room, payloads)

    return _with_records(exchange, out, spelled)


def bodies_without_secrets(
    exchange: Exchange, names: TopicNames
) -> tuple[Body | None, Body | None]:
    """Return the bodies of request and response as they were read, with asterisks for secrets; None
    for one that is missing or not decoded. A records field with secrets that cannot be masked is
    None."""
    out = {"request": _clean(exchange.request), "response": _clean(exchange.response)}
    fields = list(fields_of(exchange, names))
    if any(is_internal(field.topic, field.topic_id) for field in fields):
        clean = map(shareable, fields)
        _with_records(exchange, out, lambda data: next(clean) if data else data)
    return out["request"], out["response"]


def _with_records(
    exchange: Exchange, out: dict[str, Any], changed: Callable[[bytes | None], Any]
) -> dict[str, Any]:
    """Put what `changed` returns of each records field in its place, in bodies by side."""
    place = ARRAYS.get(-1 if exchange.api_key is None else exchange.api_key)
    if place is None or out[place[0]] is None:
        return out
    side, outer, inner, name = place
    body = out[side]
    out[side] = body | {
        outer: [
            topic
            | {inner: [partition | {name: changed(partition[name])} for partition in topic[inner]]}
            for topic in body[outer]
        ]
    }
    return out


def _session(session: FetchSession, names: TopicNames) -> dict[str, Any]:
    implied = session.partitions
    told: dict[str, Any] = {
        "id": session.id,
        "epoch": session.epoch,
        "incremental": session.incremental,
        "partitions": None,
    }
    if implied is not None and len(implied) > LISTED:
        told["partition_count"] = len(implied)
    elif implied is not None:
        told["partitions"] = by_topic(implied, names)
    return told


def _embedded(exchange: Exchange) -> list[dict[str, Any]]:
    return [
        {"side": name, "path": path, "kind": inside.kind, "value": inside.body}
        | ({"note": inside.note} if inside.note else {})
        for name, side in (("request", exchange.request), ("response", exchange.response))
        if side is not None and side.layout is not None and has_embedded(side.layout.message.name)
        for path, inside in embedded_of(exchange, side)
    ]


def _clean(side: Request | Response | None) -> Any:
    layout = None if side is None else side.layout
    if side is None or layout is None or side.body is None:
        return None
    return masked(layout, side.body)


def _spelled(
    number: int,
    data: bytes | None,
    fields: Any,
    problems: list[Problem],
    room: Room,
    payloads: Payloads | None,
) -> dict[str, Any] | None:
    """Return the JSON form of a records field; `fields` yields the fields that are not empty, in
    the same order. `room`: what is left of the exchange's limit."""
    if data is None:
        return None
    if not data:
        return {"base64": "", "batches": []}
    field: RecordField = next(fields)
    only = only_batch(data) if field.aligned and room.left > 0 else None
    if only is not None:
        return _spelled_only(number, field, only, problems, room, payloads)
    batches: list[dict[str, Any]] = []
    left_out = {}
    objects_of = field_objects(number, field, problems, b",", payloads)
    while True:
        objects = None
        # The generator would expand the next batch.
        if room.left > 0 or not _holds_more(field, len(batches)):
            found = next(objects_of, None)
            if found is None:
                break
            batch, pieces = found
            objects = _array(pieces, room)
        if objects is None:
            left_out = {"left_out": room.sentence}
            problems.append(Problem(number, topic_text(field), field.partition, room.sentence))
            break
        batches.append(_batch_object(batch, crc_ok(data, batch), objects))
    return {"base64": _octets(field), "batches": batches, **left_out}


def _spelled_only(
    number: int,
    field: RecordField,
    batch: Batch,
    problems: list[Problem],
    room: Room,
    payloads: Payloads | None,
) -> dict[str, Any]:
    """Return the JSON form of a records field that is one batch of magic 2: what `_spelled` makes
    of it, without looking for others."""
    right = crc_ok(field.data, batch)
    records = opened_records(number, field, batch, problems, right=right)
    pieces = batch_objects(number, field, batch, records, field.base_offset, b",", payloads)
    objects = _array(pieces, room)
    if objects is None:
        problems.append(Problem(number, topic_text(field), field.partition, room.sentence))
        return {"base64": _octets(field), "batches": [], "left_out": room.sentence}
    return {"base64": _octets(field), "batches": [_batch_object(batch, right, objects)]}


def _batch_object(batch: Batch, right: bool, objects: bytes) -> dict[str, Any]:
    return {
        "at": batch.at,
        "size": batch.size,
        "magic": batch.magic,
        "codec": batch.codec_name,
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "leader_epoch": batch.leader_epoch,
        "crc": batch.crc,
        "crc_ok": right,
        "attributes": batch.attributes,
        "base_timestamp": batch.base_timestamp,
        "max_timestamp": batch.max_timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "record_count": batch.record_count,
        "records": orjson.Fragment(objects),
    }


def _octets(field: RecordField) -> orjson.Fragment | None:
    """Return the bytes of a records field; None where secrets in it cannot be masked."""
    clean = shareable(field)
    return None if clean is None else orjson.Fragment(b'"%b"' % b2a_base64(clean, newline=False))


def _array(pieces: Iterator[bytes], room: Room) -> bytes | None:
    """Return objects, each followed by a comma, as an array; None when there is too little room,
    which is then used up."""
    parts = [b"["]
    for piece in pieces:
        room.left -= len(piece)
        if room.left < 0:
            room.left = 0
            return None
        parts.append(piece)
    if len(parts) > 1:
        parts[-1] = parts[-1][:-1]
    return b"".join((*parts, b"]"))


def _holds_more(field: RecordField, spelled: int) -> bool:
    """Return whether the field has whole batches after those written so far; expands nothing."""
    try:
        return sum(not isinstance(each, Partial) for each in field.batches()) > spelled
    except DissectError:
        return True


def line_of(value: dict[str, Any]) -> bytes:
    """Return a line of JSON with its line feed; takes the result of `full_bodies`."""
    return json_of(value, orjson.OPT_APPEND_NEWLINE)


def json_of(value: dict[str, Any], option: int = 0) -> bytes:
    """Return the same without a line feed."""
    try:
        return orjson.dumps(value, default=plain, option=option)
    except TypeError:
        # A string that is not UTF-8; rare enough for the slow path.
        text = json.dumps(without_non_finite(value), default=_slow, separators=(",", ":"))
        return text.encode("ascii") + (b"\n" if option else b"")


def _slow(value: Any) -> Any:
    return json.loads(orjson.dumps(value)) if isinstance(value, orjson.Fragment) else plain(value)


def full_line(
    row: Row,
    exchange: Exchange,
    names: TopicNames,
    problems: list[Problem] | None = None,
    payloads: Payloads | None = None,
) -> bytes:
    """Return an exchange/1 line with `request` and `response`, line feed included."""
    problems = [] if problems is None else problems
    bodies = full_bodies(exchange, names, problems, payloads=payloads)
    try:
        told = orjson.dumps(bodies, default=plain, option=orjson.OPT_APPEND_NEWLINE)
        return b"%b,%b" % (utf8_of_row(row)[:-1], told[1:])
    except NOT_UTF8:
        return line_of(to_json(row) | bodies)
