"""Makes construct Structs of layouts: the reference codec, whose `parse` and `build` explain
errors."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import Any, BinaryIO, assert_never

import construct

from kafkascope.dissectors.codec import wire as kafka
from kafkascope.dissectors.codec.jsonform import body_from_json
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError
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
    minimum_size,
)


@cache
def struct_of(layout: Layout) -> construct.Construct:
    return _fields(layout.body)


def _fields(wire: StructWire) -> kafka.Fields:
    members = [kafka.Member(slot, construct_of(slot.wire)) for slot in wire.slots]
    tags = kafka.Tags([_tagged(slot) for slot in wire.tags]) if wire.flexible else None
    return kafka.Fields(members, tags)


def _tagged(slot: Slot) -> kafka.Member:
    if isinstance(slot.wire, StructWire) and slot.wire.nullable:
        return kafka.Member(slot, kafka.NullableFields(_fields(slot.wire), tagged=True))
    return kafka.Member(slot, construct_of(slot.wire))


def construct_of(wire: Wire) -> construct.Construct:
    match wire:
        case NumberWire() | BoolWire() | UuidWire():
            return kafka.Plain(wire)
        case StringWire() | BytesWire():
            return kafka.Blob(wire)
        case ArrayWire() if wire.operations:
            assert isinstance(wire.element, StructWire)
            return kafka.Series(wire.element, _fields(wire.element).members)
        case ArrayWire():
            return kafka.Counted(wire, construct_of(wire.element), minimum_size(wire.element))
        case StructWire():
            fields = _fields(wire)
            return kafka.NullableFields(fields, tagged=False) if wire.nullable else fields
        case _:
            assert_never(wire)


def tags_of(wire: StructWire) -> construct.Construct:
    """Return what parses and builds the tagged section of a struct alone."""
    return kafka.Tags([_tagged(slot) for slot in wire.tags])


def build_part(part: construct.Construct, value: Any) -> bytes:
    """Build the bytes of a value, for who puts a message together by its parts."""
    stream = BytesIO()
    part.build_stream(value, stream)
    return stream.getvalue()


def parse_part(part: construct.Construct, data: bytes) -> tuple[Any, int]:
    """Parse the value that the bytes begin with; return it and its size."""
    stream = kafka.Input(data)
    return part.parse_stream(stream), stream.tell()


class Standalone(construct.Construct):
    """The Struct of a layout on streams of others: alone, or inside their own Structs. Fields that
    are missing when it builds get their defaults."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self._layout = layout
        self._fields = struct_of(layout)

    def _parse(self, stream: BinaryIO, context: Any, path: str) -> Body:
        start = stream.tell()
        rest = kafka.Input(stream.read())
        body: Body = self._fields.parse_stream(rest)
        stream.seek(start + rest.tell())
        return body

    def _build(self, obj: Any, stream: BinaryIO, context: Any, path: str) -> Any:
        stream.write(build(self._layout, body_from_json(self._layout, obj)))
        return obj


def parse(
    layout: Layout,
    data: bytes,
    at: int = 0,
    trace: kafka.Trace | None = None,
    *,
    steps: int = kafka.ENDLESS,
) -> tuple[Body, int]:
    """Parse the body that begins at `at`; return it and the offset after it. `DissectError` has
    path and offset; it also comes when there are more values than allowed."""
    stream = kafka.Input(data, steps)
    stream.seek(at)
    body = struct_of(layout).parse_stream(stream, **({"trace": trace} if trace else {}))
    return body, stream.tell()


def build(layout: Layout, body: Body) -> bytes:
    """Build the bytes of a complete body; `DissectError` with the path of what does not fit."""
    stream = BytesIO()
    try:
        struct_of(layout).build_stream(body, stream)
    except DissectError as error:
        error.offset = stream.tell()
        raise
    return stream.getvalue()
