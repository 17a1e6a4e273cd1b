"""Bodies for outputs: without secrets, with their records written out."""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from kafkascope.analyzer.bodies.fetch_sessions import by_topic
from kafkascope.analyzer.exchanges import records
from kafkascope.analyzer.exchanges.batch_json import BATCH, RecordTexts, header_values
from kafkascope.analyzer.exchanges.embedded import embedded_of
from kafkascope.analyzer.exchanges.limits import LIMITS
from kafkascope.analyzer.exchanges.row_json import NOT_UTF8, utf8_of_row
from kafkascope.analyzer.exchanges.rows import to_json
from kafkascope.analyzer.exchanges.spool import HELD, Spool
from kafkascope.dissectors.codec.jsonform import plain, without_non_finite
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.dissectors.embedded.masking import has_secrets, masked
from kafkascope.dissectors.embedded.table import has_embedded
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Batch, Partial
from kafkascope.kernel.json_records import JsonRecords
from kafkascope.kernel.walker import Refused

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.fetch_sessions import FetchSession
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange, Request, Response
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.dissectors.codec.reader import Body
    from kafkascope.dissectors.layout import Layout
    from kafkascope.schemas.decoding import Payloads

# Bytes of JSON for the records of one exchange. Clients fetch up to 50 MB at once by default, and
# kilobytes of compressed batches could expand to gigabytes.
RECORDS_LIMIT: Final = 100 << 20
# The same limit for a column of a table: Arrow and Parquet hold a value several times.
COLUMN_LIMIT: Final = 32 << 20
NO_BATCHES: Final = {"base64": "", "batches": []}
"""Stands for an empty records field."""
LEFT_OUT: Final = "records omitted: those of the exchange exceed {} MB"

ARRAYS: Final = {
    records.PRODUCE: ("request", "topic_data", "partition_data", "records"),
    records.FETCH: ("response", "responses", "partitions", "records"),
    records.SHARE_FETCH: ("response", "responses", "partitions", "records"),
    records.FETCH_SNAPSHOT: ("response", "topics", "partitions", "unaligned_records"),
}
"""By API key: the side that has records, the arrays around them, the field."""


class Room:
    """Remaining bytes of JSON that the records of an exchange may take, and those of them that may
    be held in memory: all, unless they are `spooled`."""

    __slots__ = ("_limit", "held", "left", "spool")

    def __init__(self, limit: int | None, *, spooled: bool = False) -> None:
        self._limit = self.left = RECORDS_LIMIT if limit is None else limit
        self.held = HELD if spooled else self._limit
        self.spool: Spool | None = None

    @property
    def sentence(self) -> str:
        """The note about records that are left out."""
        return LEFT_OUT.format(self._limit >> 20)


def full_bodies(
    exchange: Exchange,
    names: TopicNames,
    problems: list[records.Problem],
    limit: int | None = None,
    payloads: Payloads | None = None,
) -> dict[str, Any]:
    """Return `request` and `response`: the bodies in their JSON form, null for one that is missing
    or not decoded. Each records field becomes an object of base64 and batches. `embedded`: decoded
    contents of other bytes fields. `fetch_session`: the state that the request implies."""
    return _full_bodies(exchange, names, problems, Room(limit), payloads)


def _full_bodies(
    exchange: Exchange,
    names: TopicNames,
    problems: list[records.Problem],
    room: Room,
    payloads: Payloads | None,
) -> dict[str, Any]:
    fields = records.fields_of(exchange, names)

    def spelled(data: bytes | None) -> Any:
        if not data:
            return data if data is None else NO_BATCHES
        return _spelled(exchange.number, next(fields), problems, room, payloads)

    return _with_records(exchange, _bodies(exchange, names), spelled)


def _bodies(exchange: Exchange, names: TopicNames) -> dict[str, Any]:
    """Return the same with records as bytes."""
    out: dict[str, Any] = {}
    inside = False
    for name, side in (("request", exchange.request), ("response", exchange.response)):
        layout = None if side is None else side.layout
        if side is None or layout is None or (body := side.body) is None:
            out[name] = None
            continue
        secret, embedding = marks_of(layout)
        out[name] = masked(layout, body) if secret else body
        inside |= embedding
    if inside and (found := _embedded(exchange)):
        out["embedded"] = found
    if exchange.fetch_session is not None:
        out["fetch_session"] = session_json(exchange.fetch_session, names)
    return out


@cache
def marks_of(layout: Layout) -> tuple[bool, bool]:
    """Return whether bodies have secrets, and whether other formats may be inside them."""
    return has_secrets(layout), has_embedded(layout.message.name)


def bodies_without_secrets(
    exchange: Exchange, names: TopicNames
) -> tuple[Body | None, Body | None]:
    """Return the bodies of request and response as they were read, with asterisks for secrets; None
    for one that is missing or not decoded. A records field with secrets that cannot be masked is
    None."""
    out = {"request": _clean(exchange.request), "response": _clean(exchange.response)}
    fields = list(records.fields_of(exchange, names))
    if any(is_internal(field.topic, field.topic_id) for field in fields):
        clean = map(records.shareable, fields)
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


def session_json(session: FetchSession, names: TopicNames) -> dict[str, Any]:
    implied = session.implied
    members: dict[str, Any] = {
        "id": session.id,
        "epoch": session.epoch,
        "incremental": session.incremental,
        "partitions": None,
    }
    if implied is None:
        return members
    if implied.partitions is None:
        members["partition_count"] = implied.size
    else:
        members["partitions"] = by_topic(implied.partitions, names)
    return members


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
    field: records.RecordField,
    problems: list[records.Problem],
    room: Room,
    payloads: Payloads | None,
) -> dict[str, Any] | orjson.Fragment:
    """Return the JSON form of a records field that is not empty. `room`: what is left of the
    exchange's limit."""
    data = field.data
    if field.aligned and room.left > LIMITS.record_bytes and room.held > 0:
        # Most fields are small and intact.
        try:
            octets = JsonRecords(RecordTexts(payloads)).of(
                *(b"%d" % number, field.source, field.topic, field.topic_id, field.partition),
                *(data, field.base_offset, False),
            )
        except Refused:
            pass
        else:
            # Base64 takes none of the room, as below.
            size = len(octets) - len(data) * 4 // 3
            room.left -= size
            room.held -= size
            return orjson.Fragment(octets)
    batches: list[orjson.Fragment] = []
    left_out = {}
    objects_of = records.field_objects(number, field, problems, b",", payloads)
    while True:
        objects = None
        # The generator would expand the next batch.
        if room.left > 0 or not _holds_more(field, len(batches)):
            found = next(objects_of, None)
            if found is None:
                break
            objects = _object(*found, room)
        if objects is None:
            left_out = {"left_out": room.sentence}
            problems.append(
                records.Problem(number, records.topic_text(field), field.partition, room.sentence)
            )
            break
        batches.append(objects)
    return {"base64": _octets(field), "batches": batches, **left_out}


def _octets(field: records.RecordField) -> orjson.Fragment | None:
    """Return the bytes of a records field; None where secrets in it cannot be masked."""
    clean = records.shareable(field)
    return None if clean is None else orjson.Fragment(b'"%b"' % b2a_base64(clean, newline=False))


def _object(
    batch: Batch, right: bool, pieces: Iterator[bytes], room: Room
) -> orjson.Fragment | None:
    """Return a batch with its records, each followed by a comma; None when there is too little
    room, which is then used up. `right`: its checksum is."""
    parts = [BATCH % header_values(batch, right)]
    mark = None
    for piece in pieces:
        room.left -= len(piece)
        if room.left < 0:
            room.left = 0
            return None
        room.held -= len(piece)
        if room.held < 0:
            room.spool = spool = room.spool or Spool()
            mark = mark or spool.begin()
            spool.add(parts)
            parts.clear()
        parts.append(piece)
    if mark is not None or len(parts) > 1:
        parts[-1] = parts[-1][:-1]
    parts.append(b"]}")
    if mark is not None and room.spool is not None:
        room.spool.add(parts)
        return orjson.Fragment(mark)
    return orjson.Fragment(b"".join(parts))


def _holds_more(field: records.RecordField, spelled: int) -> bool:
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
    problems: list[records.Problem] | None = None,
    payloads: Payloads | None = None,
    limit: int | None = None,
) -> bytes:
    """Return an exchange/1 line with `request` and `response`, line feed included. `limit`: bytes
    of JSON for records, `RECORDS_LIMIT` unless given; the others are left out, and `problems` says
    so."""
    problems = [] if problems is None else problems
    return b"".join(full_pieces(row, exchange, names, problems, payloads, limit))


def full_pieces(
    row: Row,
    exchange: Exchange,
    names: TopicNames,
    problems: list[records.Problem],
    payloads: Payloads | None = None,
    limit: int | None = None,
) -> Iterable[bytes]:
    """Return the same in pieces, of which a few are in memory at a time; none ends inside a
    character."""
    room = Room(limit, spooled=True)
    bodies = _full_bodies(exchange, names, problems, room, payloads)
    try:
        begin = utf8_of_row(row)
        end = orjson.dumps(bodies, default=plain, option=orjson.OPT_APPEND_NEWLINE)
    except NOT_UTF8:
        line = line_of(to_json(row) | bodies)
    else:
        bodies.clear()  # may be as long as the line
        line = b"".join((begin[:-1], b",", memoryview(end)[1:]))
        del end
    return (line,) if room.spool is None else room.spool.line(line)
