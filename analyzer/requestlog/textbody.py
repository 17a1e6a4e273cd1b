"""Reads structs as Java prints them in releases 0.9 to 2.7: `{replica_id=-1,topics=[{...}],...}`.

    struct = "{" [name "=" value {"," name "=" value}] "}"     array = "[" [value {"," value}] "]"

Fields stand in the order of the wire, so a layout says what each one is: names changed over
releases (`max_wait_time`, `max_wait_ms`), the order of a version never did. Nothing is quoted, so
the next field says where a text ends, as well as that can be known. Bytes and records have no
content here, tagged fields seldom a value.
"""

from __future__ import annotations

import re
from typing import Any, Final, assert_never

from kafkascope.analyzer.requestlog.jsonbody import paths_of_bytes
from kafkascope.analyzer.requestlog.model import LoggedBody
from kafkascope.dissectors.codec.jsonform import numbers_of, uuid_of
from kafkascope.dissectors.codec.reader import Body, weight
from kafkascope.dissectors.errors import Malformed, TooLarge
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    Layout,
    NumberWire,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
    default_of,
)
from kafkascope.dissectors.limits import LIMITS as DISSECTOR_LIMITS
from kafkascope.dissectors.registry import variants_of, write_layout
from kafkascope.dissectors.values import finite

_NAME: Final = re.compile(r"(\w+)=")
_NUMBER: Final = re.compile(r"-?\d{1,20}(?![\w.])")
_COUNT: Final = re.compile(r"[0-9]{1,9}")
_BOOL: Final = re.compile("true|false")
_FLOAT: Final = re.compile(r"NaN|-?Infinity|-?\d{1,400}(?:\.\d{1,400})?(?:E-?\d{1,3})?")
_NEXT_FIELD: Final = re.compile(r",[a-z_][a-z0-9_]*=")
_END_OF_BODY: Final = re.compile(r"\}(?=,response:|$)")
_END_OF_ELEMENT: Final = re.compile(r"\}(?=\]|,\{)")
_END_OF_STRUCT: Final = re.compile(r"\}(?=\}|,[a-z_][a-z0-9_]*=)")
"""Where a text ends that is the last field of a body, of an element of an array, of a struct."""
_PLAIN: Final = re.compile(r"[^,\]]*")
_BRACE: Final = re.compile(r"[{}]")
_JAVA_ARRAY: Final = re.compile(r"\[Ljava\.lang\.Object;@[0-9a-f]{1,8}")
"""An array in an array, up to 2.3: the replicas of a new partition."""
_BYTES: Final = re.compile(r"null|java\.nio\.\w+\[[^\]]*\]|\[B@\w+")
_RECORDS: Final = re.compile(
    r"null|\[\]|(?:[\w.$]+@\w+)|MemoryRecords\(size=(\d{1,10}), buffer=[^\]]*\]\)"
    r"|FileRecords\((?:size=(\d{1,10}), )?file=.*?, start=(\d{1,10}), end=(\d{1,10})\)"
    r"|java\.nio\.\w+\[pos=(\d{1,10}) lim=(\d{1,10}) cap=\d{1,10}\]"
)
_CONVERTED: Final = re.compile(r"\]\}")
"""End of a list of records in memory: the last field of its struct, in releases without tags."""
_PRODUCE: Final = re.compile(
    r"\{acks=(-?\d{1,5}),timeout=(-?\d{1,10}),"
    r"(?:numPartitions=\d{1,10}|partitionSizes=\[([^\]]*)\])\}"
)
_WRAPPER: Final = re.compile(r"(?:partition_header|coordinator|owner|new_partitions)=\{")
"""Structs inside of structs that the wire does not show, in releases up to 2.3: of Fetch,
FindCoordinator, delegation tokens and CreatePartitions."""

# The end of `FileRecords` that are no slice.
_WHOLE_FILE: Final = (1 << 31) - 1


def read_text(layout: Layout, text: str, at: int) -> tuple[LoggedBody, int, dict[Any, int]]:
    """Read a struct at an offset; return it, the offset after it, and sizes of records by topic
    and partition. `Malformed` where no layout of that version fits."""
    error = Malformed("")
    for variant in (layout, *variants_of(layout.message.name, layout.version)):
        source = _Source(variant, text, at)
        try:
            body = source.struct(variant.body, "", _END_OF_BODY)
        except TooLarge:
            raise
        except Malformed as refused:
            error = refused
            continue
        unknown = tuple(sorted({*paths_of_bytes(variant), *source.unknown}))
        return LoggedBody(body, variant, "", unknown), source.at, source.sizes
    raise error


def read_produce(layout: Layout, text: str, at: int) -> tuple[LoggedBody, int, dict[Any, int]]:
    """Read a Produce request, which is no struct: `{acks=-1,timeout=30000,numPartitions=1}`, or at
    TRACE `partitionSizes=[tape-0=988,reel-1=981]` in the place of the number."""
    match = _PRODUCE.match(text, at)
    if match is None:
        if text.find(",topic_data=", at) < 0:
            raise Malformed("not a Produce request")
        return read_text(layout, text, at)  # 0.10.0 prints it as any struct
    body = {slot.name: default_of(slot) for slot in (*layout.body.slots, *layout.body.tags)}
    body |= {"acks": int(match[1]), "timeout_ms": int(match[2])}
    unknown = [name for name in ("transactional_id",) if layout.has(name)]
    if match[3] is None:
        write_layout(layout, body)
        return LoggedBody(body, layout, "", (*unknown, "topic_data")), match.end(), {}
    sizes: dict[Any, int] = {}
    topics: dict[str, list[Body]] = {}
    for item in match[3].split(",") if match[3] else []:
        partition, _, size = item.rpartition("=")
        topic, _, index = partition.rpartition("-")
        if not (_COUNT.fullmatch(index) and _COUNT.fullmatch(size)):
            raise Malformed("not a size of a partition")
        sizes[topic, int(index)] = int(size)
        topics.setdefault(topic, []).append({"index": int(index), "records": None})
    body["topic_data"] = [{"name": name, "partition_data": data} for name, data in topics.items()]
    unknown.append("topic_data.partition_data.records")
    write_layout(layout, body)  # its numbers may be too large
    return LoggedBody(body, layout, "", tuple(unknown)), match.end(), sizes


def name_partitions(request: LoggedBody, response: LoggedBody) -> LoggedBody:
    """Return a Produce request with the partitions that its response names: at DEBUG the line has
    only their number, and a broker answers for exactly those that were sent."""
    if request.body is None or response.body is None or "topic_data" not in request.unknown:
        return request
    data = [
        {
            "name": topic["name"],
            "partition_data": [
                {"index": each["index"], "records": None} for each in topic["partition_responses"]
            ],
        }
        for topic in response.body["responses"]
    ]
    unknown = tuple(path for path in request.unknown if path != "topic_data")
    return LoggedBody(
        request.body | {"topic_data": data},
        request.layout,
        "",
        (*unknown, "topic_data.partition_data.records"),
    )


class _Source:
    """One struct of a line, read from left to right."""

    def __init__(self, layout: Layout, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.unknown: set[str] = set()
        self.sizes: dict[Any, int] = {}
        self.sized = layout.message.name in ("FetchResponse", "ProduceRequest")
        self._end = _END_OF_BODY
        """End of the struct that is read."""
        self._room = DISSECTOR_LIMITS.body_bytes
        self._topic: Any = ""
        self._partition = 0

    def expect(self, token: str) -> None:
        if not self.take(token):
            self.refuse(f"{token!r} is missing")

    def take(self, token: str) -> bool:
        """Skip a token if it is next."""
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def refuse(self, reason: str) -> None:
        raise Malformed(reason, offset=self.at)

    def struct(self, wire: StructWire, path: str, end: re.Pattern[str]) -> Body:
        """Read a struct that is not null."""
        outer, self._end = self._end, end
        self.expect("{")
        body: Body = {}
        inside = False
        dot = path and path + "."
        for index, slot in enumerate(wire.slots):
            if inside and self.take("}"):
                inside = False
            if index:
                self.expect(",")
            if wrapper := _WRAPPER.match(self.text, self.at):
                self.at = wrapper.end()
                inside, self._end = True, _END_OF_STRUCT
            name = _NAME.match(self.text, self.at)
            if name is None:
                self.refuse(f"{slot.name} is missing")
            else:
                self.at = name.end()
            following = self.next_name(wire, index + 1)
            body[slot.name] = self.value(slot.wire, dot + slot.name, following)
            if self.sized:
                self.note_sizes(slot.name, body[slot.name])
        if inside:
            self.expect("}")
        body.update((slot.name, default_of(slot)) for slot in wire.tags)
        if wire.flexible and self.take(",_tagged_fields=" if wire.slots else "_tagged_fields="):
            self.tagged_fields(wire, dot)
        self.expect("}")
        self._end = outer
        return body

    @staticmethod
    def next_name(wire: StructWire, index: int) -> str:
        if index < len(wire.slots):
            return wire.slots[index].name
        return "_tagged_fields" if wire.flexible else ""

    def note_sizes(self, name: str, value: Any) -> None:
        """Remember which partition comes next: records are its last field."""
        if name in ("topic", "name"):
            self._topic = value
        elif name in ("partition_index", "index"):
            self._partition = value

    def tagged_fields(self, wire: StructWire, dot: str) -> None:
        """Skip the tagged fields, which are a map of Java objects: `{1=0, 2=[Ljava.lang...}`."""
        if self.take("{}"):
            return
        self.unknown.update(dot + slot.name for slot in wire.tags)
        depth = 0
        for brace in _BRACE.finditer(self.text, self.at):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                self.at = brace.end()
                return
        self.refuse("tagged fields have no end")

    def value(self, wire: Wire, path: str, following: str) -> Any:
        """Read the value of a field. `following`: today's name of the field after it, "" for the
        last one."""
        match wire:
            case NumberWire() if wire.code == "d":
                return finite(float(self.matched(_FLOAT).replace("Infinity", "inf")))
            case NumberWire():
                return self.number(wire)
            case BoolWire():
                return self.matched(_BOOL) == "true"
            case StringWire():
                text = self.string(following)
                return None if wire.nullable and text == "null" else text
            case UuidWire():
                return uuid_of(self.string(following))
            case BytesWire() if wire.records:
                return self.records()
            case BytesWire():
                null = self.matched(_BYTES) == "null"
                return None if null and wire.nullable else b""
            case ArrayWire():
                return self.array(wire, path)
            case StructWire():
                if wire.nullable and self.take("null"):
                    return None
                return self.struct(wire, path, _END_OF_STRUCT)
            case _:
                assert_never(wire)

    def matched(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise Malformed("a value of another kind", offset=self.at)
        self.at = match.end()
        return match[0]

    def number(self, wire: NumberWire) -> int:
        value = int(self.matched(_NUMBER))
        if value not in numbers_of(wire):
            self.refuse("a number that does not fit")
        return value

    def string(self, following: str) -> str:
        """Read a text up to where the next field begins, or its struct ends."""
        start = self.at
        if not following:
            match = self._end.search(self.text, start)
        else:
            match = _NEXT_FIELD.search(self.text, start)
            # A text may hold what looks like a field; today's name of the next one is better, if
            # it comes before the struct can end.
            if match is not None and match[0] != f",{following}=":
                named = self.text.find(f",{following}=", start, self.text.find("}", start))
                if named >= 0:
                    self.at = named
                    return self.text[start:named]
        if match is None:
            raise Malformed("a text has no end", offset=start)
        self.at = match.start()
        # The struct inside may end here, whose text is the last one: `owner={...,name=alice}`.
        if following and self._end is _END_OF_STRUCT and self.text[self.at - 1] == "}":
            self.at -= 1
        return self.text[start : self.at]

    def records(self) -> None:
        """Skip records, whose size is in some releases' lines."""
        match = _RECORDS.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            in_memory, in_file, start, end, first, behind = match.groups()
            size = in_memory or in_file
            if size is not None:
                self.sizes[self._topic, self._partition] = int(size)
            elif end is not None and int(end) != _WHOLE_FILE:
                self.sizes[self._topic, self._partition] = max(0, int(end) - int(start))
            elif behind is not None:
                self.sizes[self._topic, self._partition] = max(0, int(behind) - int(first))
            elif match[0] == "[]":
                self.sizes[self._topic, self._partition] = 0
            return
        # `[(record=DefaultRecord(offset=0, ...)), ...]`: converted down in memory (1.x).
        if self.text.startswith("[(record=", self.at):
            end_of_list = _CONVERTED.search(self.text, self.at)
            if end_of_list is not None:
                self.at = end_of_list.start() + 1
                return
        self.refuse("records of another kind")

    def array(self, wire: ArrayWire, path: str) -> list[Any] | None:
        if wire.nullable and self.take("null"):
            return None
        values: list[Any] = []
        if java_array := _JAVA_ARRAY.match(self.text, self.at):
            self.at = java_array.end()
            self.unknown.add(path)
            return values
        self.expect("[")
        if self.take("]"):
            return values
        element = wire.element
        cost = 8 + weight(element)
        while True:
            self._room -= cost
            if self._room < 0:
                raise TooLarge("too many elements", offset=self.at)
            values.append(self.element(element, path))
            if not self.take(","):
                self.expect("]")
                return values

    def element(self, wire: Wire, path: str) -> Any:
        """Read an element. A struct of one field was a plain value in some releases, and the other
        way round: `topics=[tape]`, `partitions=[{partition=1}]`."""
        braced = self.text.startswith("{", self.at)
        if isinstance(wire, StructWire):
            if not braced and len(wire.slots) == 1:
                slot = wire.slots[0]
                body: Body = {slot.name: self.plain(slot.wire, f"{path}.{slot.name}")}
                body.update((tag.name, default_of(tag)) for tag in wire.tags)
                return body
            return self.struct(wire, path, _END_OF_ELEMENT)
        if braced:
            self.at += 1
            self.matched(_NAME)
            value = self.value(wire, path, "")
            self.take(",_tagged_fields={}")
            self.expect("}")
            return value
        return self.plain(wire, path)

    def plain(self, wire: Wire, path: str) -> Any:
        """Read a plain value in an array."""
        if isinstance(wire, StringWire):
            return self.matched(_PLAIN)
        if isinstance(wire, UuidWire):
            return uuid_of(self.matched(_PLAIN))
        return self.value(wire, path, "")
