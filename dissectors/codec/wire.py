"""construct classes for Kafka's types: the reference of how each is read and written.

Each checks lengths and counts against what is left before it reads, raises `DissectError` with path
and offset, and tells a `Trace` (parse parameter `trace`), when one listens, which bytes were what.
Speed is the business of `reader` and `writer`.
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any, Final

import construct

from kafkascope.dissectors.codec.reader import UNKNOWN_TAG_WEIGHT, too_large, weight
from kafkascope.dissectors.errors import DissectError, Malformed, Truncated
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    NumberWire,
    Slot,
    StringWire,
    StructWire,
    UuidWire,
    default_of,
)
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.values import Uuid, finite, write_uvarint

ENDLESS: Final = 1 << 62


class Trace:
    """Listens to a parse: begins and ends of values, and their leaves. This one ignores them."""

    def begin(self, name: str, start: int, slot: Slot | None) -> None: ...

    def leaf(self, name: str, start: int, end: int, value: Any) -> None:
        """Take bytes of the open value: a length, a count, a tag, its content."""

    def end(self, end: int, value: Any) -> None: ...


SILENCE: Final = Trace()


def trace_of(context: Any) -> Trace:
    """Return the trace that was given to `parse`, or one that ignores everything."""
    trace: Trace = context._params.get("trace", SILENCE)
    return trace


def dotted(path: str) -> str:
    """Turn construct's "(parsing) -> topics[0] -> partition" into "topics[0].partition"."""
    return ".".join(path.split(" -> ")[1:])


class Input(BytesIO):
    """Bytes to be parsed."""

    def __init__(self, data: bytes, steps: int = ENDLESS) -> None:
        super().__init__(data)
        self.limit = len(data)
        """Offset of the end, or of the end of the tagged field around."""
        self.steps = steps
        """Values that may still be read."""
        self.room = LIMITS.body_bytes
        """Memory that the body may still take."""

    def weigh(self, count: int, each: int, path: str) -> None:
        """Count the memory of so many values; `TooLarge` when there is none left."""
        self.room -= count * each
        if self.room < 0:
            raise too_large(self.tell(), dotted(path))


def take(stream: Input, size: int, path: str, what: str = "") -> bytes:
    """Read exactly `size` bytes; `Truncated` at the place where they should begin."""
    at = stream.tell()
    left = stream.limit - at
    stream.steps -= 1
    if stream.steps < 0:
        raise Malformed("the error is after this place", offset=at, path=dotted(path))
    if size > left:
        reason = f"{what or 'the value'} needs {size} bytes, {left} are left"
        raise Truncated(reason, offset=at, path=dotted(path))
    return stream.read(size)


def read_uvarint(stream: Input, context: Any, path: str, role: str) -> int:
    """Read an unsigned varint: at most 5 bytes, at most 32 bits. `role` is what it is for."""
    start, value = stream.tell(), 0
    for shift in range(0, 35, 7):
        byte = take(stream, 1, path, role)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80 and value <= 0xFFFFFFFF:
            trace_of(context).leaf(role, start, stream.tell(), value)
            return value
    raise Malformed("a varint of more than 32 bits", offset=start, path=dotted(path))


class Kafka(construct.Construct):
    """Base of these classes: a leaf reports itself under the name `value`."""

    def refuse(
        self, reason: str, stream: BytesIO | None, path: str, at: int | None = None
    ) -> DissectError:
        """Return the error for a value that the protocol does not allow."""
        offset = at if at is not None else stream.tell() if stream else 0
        return Malformed(reason, offset=offset, path=dotted(path))

    def part(self, body: dict[str, Any], member: Member, stream: BytesIO, path: str) -> Any:
        """Return the value of a field that has to be there."""
        if member.name not in body:
            raise self.refuse(f"{member.name} is missing", stream, path)
        return body[member.name]


class Plain(Kafka):
    """A value of fixed size: a big-endian number, a bool (0 is false, anything else true, written
    as 1), a uuid."""

    def __init__(self, wire: NumberWire | BoolWire | UuidWire) -> None:
        super().__init__()
        self.wire = wire
        match wire:
            case NumberWire():
                code, self.role, self.what = wire.code, wire.name, "a number"
            case BoolWire():
                code, self.role, self.what = "?", "bool", "a bool"
            case UuidWire():
                code, self.role, self.what = "16s", "uuid", "16 bytes"
        self.format = struct.Struct(f">{code}")

    def _parse(self, stream: Input, context: Any, path: str) -> Any:
        start = stream.tell()
        (value,) = self.format.unpack(take(stream, self.format.size, path, self.role))
        if isinstance(value, float):
            value = finite(value)
        elif isinstance(value, bytes):
            value = Uuid(value)
        trace_of(context).leaf("", start, stream.tell(), value)
        return value

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        match self.wire:
            case NumberWire():
                fits = isinstance(obj, int | float) and not isinstance(obj, bool)
            case BoolWire():
                fits = isinstance(obj, int)
            case UuidWire():
                fits = isinstance(obj, bytes) and len(obj) == self.format.size
        if not fits:
            raise self.refuse(f"{obj!r} is not {self.what}", stream, path)
        try:
            stream.write(self.format.pack(obj))
        except (struct.error, OverflowError):
            raise self.refuse(f"{obj} does not fit {self.role}", stream, path) from None
        return obj


class Length(Kafka):
    """A length or count before a value: -1 is null. Compact: an unsigned varint of value + 1."""

    def __init__(self, code: str, *, compact: bool, nullable: bool, role: str) -> None:
        super().__init__()
        self.format = struct.Struct(">" + code)
        self.compact, self.nullable, self.role = compact, nullable, role

    def _parse(self, stream: Input, context: Any, path: str) -> int:
        start = stream.tell()
        if self.compact:
            value = read_uvarint(stream, context, path, self.role) - 1
        else:
            (value,) = self.format.unpack(take(stream, self.format.size, path, self.role))
            trace_of(context).leaf(self.role, start, stream.tell(), value)
        if value < -1 or (value == -1 and not self.nullable):
            what = "null, and may not be" if value == -1 else f"{value}"
            raise self.refuse(f"the {self.role} is {what}", stream, path, start)
        return int(value)

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if obj < 0 and not self.nullable:
            raise self.refuse("may not be null", stream, path)
        if self.compact:
            stream.write(write_uvarint(obj + 1))
            return obj
        try:
            stream.write(self.format.pack(obj))
        except struct.error:
            raise self.refuse(f"a {self.role} of {obj} does not fit", stream, path) from None
        return obj


class Blob(Kafka):
    """A string or bytes after its length; None is null."""

    def __init__(self, wire: StringWire | BytesWire) -> None:
        super().__init__()
        self.text = isinstance(wire, StringWire)
        code = wire.code if isinstance(wire, StringWire) else "i"
        self.length = Length(code, compact=wire.compact, nullable=wire.nullable, role="length")

    def _parse(self, stream: Input, context: Any, path: str) -> str | bytes | None:
        length = self.length._parsereport(stream, context, path)
        if length < 0:
            return None
        start = stream.tell()
        data = take(stream, length, path)
        value = data.decode("utf-8", "surrogateescape") if self.text else data
        if data:
            trace_of(context).leaf("text" if self.text else "data", start, stream.tell(), value)
        return value

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            self.length._build(-1, stream, context, path)
            return None
        if not isinstance(obj, str if self.text else bytes):
            raise self.refuse(f"{obj!r} is no {'text' if self.text else 'bytes'}", stream, path)
        data = obj.encode("utf-8", "surrogateescape") if isinstance(obj, str) else bytes(obj)
        self.length._build(len(data), stream, context, path)
        stream.write(data)
        return obj


class Counted(Kafka):
    """An array after its count; None is null. `smallest`: bytes that an element takes at least."""

    def __init__(self, wire: ArrayWire, element: construct.Construct, smallest: int) -> None:
        super().__init__()
        self.element, self.smallest = element, max(1, smallest)
        self.each = 8 + weight(wire.element)
        self.count = Length("i", compact=wire.compact, nullable=wire.nullable, role="count")

    def _parse(self, stream: Input, context: Any, path: str) -> list[Any] | None:
        start = stream.tell()
        count = self.count._parsereport(stream, context, path)
        if count < 0:
            return None
        left = stream.limit - stream.tell()
        if count * self.smallest > left:
            reason = (
                f"{count} elements need at least {count * self.smallest} bytes, {left} are left"
            )
            raise Truncated(reason, offset=start, path=dotted(path))
        stream.weigh(count, self.each, path)
        trace, values = trace_of(context), []
        for index in range(count):
            trace.begin(f"[{index}]", stream.tell(), None)
            values.append(self.element._parsereport(stream, context, f"{path}[{index}]"))
            trace.end(stream.tell(), values[-1])
        return values

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if obj is not None and not isinstance(obj, list | tuple):
            raise self.refuse(f"{obj!r:.60} is no array", stream, path)
        self.count._build(-1 if obj is None else len(obj), stream, context, path)
        for index, each in enumerate(obj or ()):
            self.element._build(each, stream, context, f"{path}[{index}]")
        return obj


class Series(Kafka):
    """Operations one after the other, up to a head that says it is after the last."""

    def __init__(self, wire: StructWire, members: list[Member]) -> None:
        super().__init__()
        self.head, self.members = struct.Struct(">i?i"), members
        self.types = frozenset().union(*(slot.only for slot in wire.slots))
        self.each = 8 + weight(wire)

    def _parse(self, stream: Input, context: Any, path: str) -> list[Any]:
        trace = trace_of(context)
        values: list[Any] = []
        while True:
            start, here = stream.tell(), f"{path}[{len(values)}]"
            kind, last, err = self.head.unpack(take(stream, self.head.size, here, "a head"))
            if not last and kind not in self.types:
                raise self.refuse(f"{kind} is no type of an operation", stream, here, start)
            stream.weigh(1, self.each, path)
            if last:
                trace.leaf("marker", start, stream.tell(), kind)
                return values
            trace.begin(f"[{len(values)}]", start, None)
            trace.begin("type", start, self.members[0].slot)
            trace.end(start + 4, kind)
            trace.leaf("marker", start + 4, start + 5, last)
            trace.begin("err", start + 5, self.members[1].slot)
            trace.end(stream.tell(), err)
            body = {"type": kind, "err": err}
            for member in self.members[2:]:
                there = kind in member.slot.only
                body[member.name] = member._parsereport(stream, context, here) if there else None
            values.append(body)
            trace.end(stream.tell(), body)

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if not isinstance(obj, list | tuple):
            raise self.refuse(f"{obj!r:.60} is no array", stream, path)
        for index, each in enumerate(obj):
            here = f"{path}[{index}]"
            kind = each.get("type") if isinstance(each, dict) else None
            if kind not in self.types:
                raise self.refuse(f"{kind!r:.60} is no type of an operation", stream, here)
            try:
                stream.write(self.head.pack(kind, False, each.get("err")))
            except struct.error:
                raise self.refuse("err does not fit int32", stream, here) from None
            for member in self.members[2:]:
                if kind in member.slot.only:
                    member._build(self.part(each, member, stream, here), stream, context, here)
        stream.write(self.head.pack(-1, True, -1))
        return obj


class Member(construct.Subconstruct):
    """A named field: adds its name to the path and reports where it begins and ends."""

    def __init__(self, slot: Slot, subcon: construct.Construct) -> None:
        super().__init__(subcon)
        self.name, self.slot = slot.name, slot

    def _parse(self, stream: Input, context: Any, path: str) -> Any:
        trace = trace_of(context)
        trace.begin(self.name, stream.tell(), self.slot)
        value = self.subcon._parsereport(stream, context, f"{path} -> {self.name}")
        trace.end(stream.tell(), value)
        return value

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        return self.subcon._build(obj, stream, context, f"{path} -> {self.name}")


class Fields(Kafka):
    """A struct: its members one after the other, then a tagged section when `tags` is not None.

    Not construct.Struct, because tagged fields are members of the same dict and a body is a plain
    dict.
    """

    def __init__(self, members: list[Member], tags: Tags | None) -> None:
        super().__init__()
        self.members, self.tags = members, tags

    def _parse(self, stream: Input, context: Any, path: str) -> dict[str, Any]:
        body = {member.name: member._parsereport(stream, context, path) for member in self.members}
        if self.tags is not None:
            body.update(self.tags._parsereport(stream, context, path))
        return body

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if not isinstance(obj, dict):
            raise self.refuse(f"{obj!r:.60} is no struct", stream, path)
        for member in self.members:
            member._build(self.part(obj, member, stream, path), stream, context, path)
        if self.tags is not None:
            self.tags._build(obj, stream, context, path)
        return obj


class Tags(Kafka):
    """A tagged section: known fields by tag, unknown ones kept as bytes in `_tagged_fields`."""

    def __init__(self, members: list[Member]) -> None:
        super().__init__()
        self.members = {member.slot.tag: member for member in members}

    def _parse(self, stream: Input, context: Any, path: str) -> dict[str, Any]:
        trace, start = trace_of(context), stream.tell()
        trace.begin("_tagged_fields", start, None)
        body: dict[str, Any] = {m.name: default_of(m.slot) for m in self.members.values()}
        # What is wrong with the section itself is not wrong with the struct around it.
        section = f"{path} -> _tagged_fields"
        count, last, unknown = read_uvarint(stream, context, section, "count"), -1, []
        stream.weigh(min(count, stream.limit - stream.tell()), UNKNOWN_TAG_WEIGHT, section)
        for _ in range(count):
            at = stream.tell()
            tag = read_uvarint(stream, context, section, "tag")
            size = read_uvarint(stream, context, section, "size")
            if tag <= last:
                raise self.refuse(f"tag {tag} stands after tag {last}", stream, section, at)
            last, begin = tag, stream.tell()
            member = self.members.get(tag)
            if member is None:
                unknown.append({"tag": tag, "data": take(stream, size, section, f"tag {tag}")})
                trace.leaf("data", begin, stream.tell(), unknown[-1]["data"])
                continue
            take(stream, size, f"{path} -> {member.name}", f"tag {tag}")
            # The value may not read past its own size, nor leave bytes behind.
            stream.seek(begin)
            around, stream.limit = stream.limit, begin + size
            body[member.name] = member._parsereport(stream, context, path)
            stream.limit = around
            if stream.tell() != begin + size:
                left = begin + size - stream.tell()
                path = f"{path} -> {member.name}"
                raise self.refuse(f"{left} bytes are left of tag {tag}", stream, path)
        trace.end(stream.tell(), None)
        if unknown:
            body["_tagged_fields"] = unknown
        return body

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        fields: dict[int, bytes] = {}
        for tag, member in self.members.items():
            value = self.part(obj, member, stream, path)
            if value != member.slot.default:
                part = BytesIO()
                member._build(value, part, context, path)
                fields[tag or 0] = part.getvalue()
        for field in obj.get("_tagged_fields") or ():
            if field["tag"] in fields:
                raise self.refuse(f"tag {field['tag']} stands twice", stream, path)
            fields[field["tag"]] = field["data"]
        stream.write(write_uvarint(len(fields)))
        for tag, data in sorted(fields.items()):
            stream.write(write_uvarint(tag) + write_uvarint(len(data)) + data)
        return obj


class NullableFields(Kafka):
    """A struct that may be null: after an int8 marker (-1, 1), or a uvarint one (0, 1) when
    tagged."""

    def __init__(self, fields: Fields, *, tagged: bool) -> None:
        super().__init__()
        self.fields, self.tagged = fields, tagged

    def _parse(self, stream: Input, context: Any, path: str) -> dict[str, Any] | None:
        start = stream.tell()
        if self.tagged:
            marker = read_uvarint(stream, context, path, "marker")
        else:
            marker = int.from_bytes(take(stream, 1, path, "marker"), "big", signed=True)
            trace_of(context).leaf("marker", start, stream.tell(), marker)
        if marker == (0 if self.tagged else -1):
            return None
        if marker != 1:
            raise self.refuse(f"the marker is {marker}", stream, path, start)
        body: dict[str, Any] = self.fields._parsereport(stream, context, path)
        return body

    def _build(self, obj: Any, stream: BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            stream.write(b"\0" if self.tagged else b"\xff")
            return None
        stream.write(b"\1")
        return self.fields._build(obj, stream, context, path)
