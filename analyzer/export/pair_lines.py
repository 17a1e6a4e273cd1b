"""Lines of exchange/1 with bodies for what the kernel has read: what it asks for to write them.

Bodies with secrets, or with other formats inside their bytes, are the general way's (`full`): they
are few, and need all that is known of a message.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import orjson

from kafkascope.analyzer.conversation.ordinary import layouts_of
from kafkascope.analyzer.exchanges.batch_json import RecordTexts
from kafkascope.analyzer.exchanges.full import marks_of, session_json
from kafkascope.analyzer.exchanges.pairs import is_named
from kafkascope.analyzer.exchanges.row_json import NOT_UTF8
from kafkascope.dissectors.codec.jsonform import plain
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    Layout,
    NumberWire,
    Slot,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
)
from kafkascope.kernel import json_bodies, walker
from kafkascope.kernel.full_lines import FullLines
from kafkascope.kernel.json_bodies import JsonField
from kafkascope.kernel.json_records import JsonRecords

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.fetch_sessions import FetchSession
    from kafkascope.analyzer.exchanges.pairs import Item, Rows
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.kernel.pairs import Plan
    from kafkascope.schemas.decoding import Payloads

RECORDS: Final = frozenset({"ProduceRequest", "FetchResponse"})
"""Messages whose records fields are those of the partitions that the kernel lists."""


class UnwrittenField(Exception):
    """The kernel does not write such a field."""


class PairLines:
    """Writes the lines of one capture, as far as its exchanges are ordinary."""

    def __init__(self, rows: Rows, names: TopicNames, payloads: Payloads | None) -> None:
        self._names, self._rows = names, rows
        self._lines = FullLines(rows.lines, JsonRecords(RecordTexts(payloads)), self)

    def of(self, item: Item) -> bytes | None:
        """Return a line with its line feed; None where the general way has to write it."""
        if not is_named(item, self._names):
            return None
        self._rows.check_names()
        try:
            return self._lines.line(item)
        except NOT_UTF8:
            return None

    # What the kernel asks for.

    @staticmethod
    def fields(plan: Plan) -> tuple[JsonField, JsonField] | None:
        """Return how request and response are written; None where it cannot."""
        return fields_of(plan.key, plan.version)

    def name_of(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id)

    def session(self, session: FetchSession) -> bytes:
        """Return a fetch session as JSON."""
        return orjson.dumps(session_json(session, self._names), default=plain)


@cache
def fields_of(key: int, version: int) -> tuple[JsonField, JsonField] | None:
    layouts = layouts_of(key, version)
    if any(map(any, map(marks_of, layouts))):
        return None
    try:
        request, response = map(json_field_of, layouts)
    except UnwrittenField:
        return None
    return request, response


def json_field_of(layout: Layout) -> JsonField:
    """Return how the kernel writes the bodies of a layout."""
    return _field(layout.body, layout.message.name in RECORDS)


def _field(wire: Wire, partitions: bool) -> JsonField:
    """`partitions`: records fields are those of partitions."""
    match wire:
        case NumberWire():
            if wire.code == "d":
                raise UnwrittenField
            field = JsonField(walker.NUMBER)
            field.size, field.signed = wire.size, wire.code.islower()
        case BoolWire():
            field = JsonField(json_bodies.BOOL)
        case UuidWire():
            field = JsonField(walker.UUID)
        case StringWire():
            field = JsonField(walker.STRING)
            field.compact, field.nullable, field.long = wire.compact, wire.nullable, wire.long
        case BytesWire():
            if wire.records and not partitions:
                raise UnwrittenField
            field = JsonField(json_bodies.RECORDS if wire.records else walker.BYTES)
            field.compact, field.nullable = wire.compact, wire.nullable
        case ArrayWire():
            if wire.operations:
                raise UnwrittenField
            field = JsonField(walker.ARRAY)
            field.compact, field.nullable = wire.compact, wire.nullable
            field.kids = [_field(wire.element, partitions)]
        case StructWire():
            field = JsonField(walker.STRUCT)
            field.flexible, field.nullable = wire.flexible, wire.nullable
            field.kids = [_member(slot, partitions) for slot in wire.slots]
            field.tags = [_member(slot, partitions) for slot in wire.tags]
            for each in (*field.kids, *field.tags)[1:]:
                each.before = b"," + each.before
    return field


def _member(slot: Slot, partitions: bool) -> JsonField:
    field = _field(slot.wire, partitions)
    field.before = b'"%b":' % slot.name.encode()
    if slot.tag is not None:
        field.tag = slot.tag
        field.default = orjson.dumps(slot.default, default=plain)
    return field
