"""Generates converters of layouts: from the JSON that Kafka's own converters write into its request
log (`XRequestDataJsonConverter`, KIP-673) to the body that a frame of that version gives.

Kafka's field names are ours in camel case. Bytes are base64, uuids 22 characters, records their
size alone. Generated code takes exactly the fields of a version and does not explain: on anything
else it raises one of `REFUSALS`, and `body_of` converts the same value with `jsonform`, which says
what is wrong. Measured on logs of 3.9 to 4.4: 100 to 150 MB/s with generated code, 8 to 13 MB/s
with `jsonform`, orjson itself 160 MB/s: to convert bodies only when they are needed saves little.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias, assert_never

from kafkascope.dissectors.codec.jsonform import body_from_json, json_value
from kafkascope.dissectors.codec.reader import Body, Refusal, literal, too_large, weight
from kafkascope.dissectors.errors import DissectError, Malformed, TooLarge
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
)
from kafkascope.dissectors.limits import LIMITS as DISSECTOR_LIMITS
from kafkascope.dissectors.registry import variants_of, write_layout
from kafkascope.dissectors.values import Uuid, finite
from kafkascope.source import SourceLines, compile_function

REFUSALS: Final = (Refusal, DissectError, KeyError, TypeError, ValueError)
"""Exceptions of generated converters."""

Converter: TypeAlias = Callable[[Any], Body]

_RANGES: Final = {
    code: (-(1 << bits - 1), (1 << bits - 1) - 1) if code.islower() else (0, (1 << bits) - 1)
    for code, bits in (("b", 8), ("h", 16), ("i", 32), ("q", 64), ("H", 16), ("I", 32))
}


def body_of(layout: Layout, value: Any) -> tuple[Body, Layout, tuple[str, ...]]:
    """Return the body of a JSON value, and the layout that it has: that of some releases if it
    fits and the main one does not. Missing fields get their defaults, and are returned as dotted
    paths; `Malformed` for others."""
    try:
        return converter(layout)(value), layout, ()
    except TooLarge:
        raise
    except REFUSALS:
        pass
    for variant in variants_of(layout.message.name, layout.version):
        try:
            return converter(variant)(value), variant, ()
        except REFUSALS:
            continue
    missing: set[str] = set()
    body = body_from_json(layout, _renamed(layout.message.name, layout.body, value, "", missing))
    write_layout(layout, body)  # its numbers may be too large
    return body, layout, tuple(sorted(missing))


@cache
def paths_of_bytes(layout: Layout, *, records: bool = False) -> tuple[str, ...]:
    """Return the dotted paths of fields of bytes, or of those that hold records alone: the log
    leaves out their content, in text forms and in JSON."""
    return tuple(_paths(layout.body, "", records))


def _paths(wire: Wire, path: str, records: bool) -> list[str]:
    match wire:
        case StructWire():
            slots = (*wire.slots, *wire.tags)
            dot = path and path + "."
            return [p for slot in slots for p in _paths(slot.wire, dot + slot.name, records)]
        case ArrayWire():
            return _paths(wire.element, path, records)
        case BytesWire() if wire.records or not records:
            return [path]
        case _:
            return []


_IRREGULAR: Final = {
    "is_kraft_controller": "isKRaftController",
    "kraft_version_feature": "kRaftVersionFeature",
}
_FORMER: Final = {
    "AddPartitionsToTxnRequest.v3_and_below_transactional_id": "transactionalId",
    "AddPartitionsToTxnRequest.v3_and_below_producer_id": "producerId",
    "AddPartitionsToTxnRequest.v3_and_below_producer_epoch": "producerEpoch",
    "AddPartitionsToTxnRequest.v3_and_below_topics": "topics",
    "AddPartitionsToTxnResponse.results_by_topic_v3_and_below": "results",
    "AddPartitionsToTxnResponse.results_by_partition": "results",
    "AddPartitionsToTxnResponse.partition_error_code": "errorCode",
    "AlterPartitionRequest.topic_name": "name",
    "AlterPartitionResponse.topic_name": "name",
    "DescribeLogDirsRequest.partitions": "partitionIndex",
    "ElectLeadersRequest.partitions": "partitionId",
    "FetchResponse.partitions": "partitionResponses",
    "FetchResponse.partition_index": "partition",
    "FetchResponse.records": "recordSet",
    "LeaderAndIsrRequest.partition_epoch": "zkVersion",
    "OffsetCommitRequest.generation_id_or_member_epoch": "generationId",
    "TxnOffsetCommitRequest.generation_id_or_member_epoch": "generationId",
    "VoteRequest.replica_epoch": "candidateEpoch",
    "VoteRequest.replica_id": "candidateId",
    "VoteRequest.replica_directory_id": "candidateDirectoryId",
}
"""Names that fields had in releases from 2.8 on, by message and today's name. Of 2.8.0 to 3.8.0 the
message specifications in Kafka's repository were compared field by field."""


def json_names(message: str, name: str) -> tuple[str, ...]:
    """Return the names that a field has in Kafka's JSON: today's, and a former one."""
    first, *rest = name.split("_")
    camel_case = first + "".join(word[:1].upper() + word[1:] for word in rest)
    former = _FORMER.get(f"{message}.{name}")
    return (_IRREGULAR.get(name, camel_case), *([former] if former else []))


def _renamed(message: str, wire: Wire, value: Any, path: str, missing: set[str]) -> Any:
    """Return a value with our names of fields, without records and their sizes. `missing`: gets
    the paths of fields that it lacks; `path`: ends with a point."""
    if isinstance(wire, ArrayWire) and isinstance(value, list):
        return [_renamed(message, wire.element, element, path, missing) for element in value]
    if not isinstance(wire, StructWire) or not isinstance(value, dict):
        return value
    rest = dict(value)
    body = {}
    for slot in (*wire.slots, *wire.tags):
        for name in json_names(message, slot.name):
            if isinstance(slot.wire, BytesWire) and slot.wire.records:
                rest.pop(name, None)
                rest.pop(f"{name}SizeInBytes", None)
            elif name in rest and slot.name not in body:
                inner = f"{path}{slot.name}."
                body[slot.name] = _renamed(message, slot.wire, rest.pop(name), inner, missing)
    for slot in wire.slots:
        if slot.name not in body and not (isinstance(slot.wire, BytesWire) and slot.wire.records):
            missing.add(path + slot.name)
    return body | rest


@cache
def converter(layout: Layout) -> Converter:
    """Return the converter of a layout, generated once."""
    names: dict[str, Any] = {
        "MISSING": object(),
        "Refusal": Refusal,
        "Uuid": Uuid,
        "binary": _binary,
        "finite": finite,
        "integers": _integers,
        "json_value": json_value,
        "texts": _texts,
        "too_large": too_large,
        "uuid": uuid_of,
    }
    lines = _ConverterSource(layout.message.name, names)
    with lines.block("def convert(value):"):
        lines.add(f"room = {DISSECTOR_LIMITS.body_bytes}")
        lines.add(f"return {lines.struct(layout.body, 'value')}")
    origin = f"converter of {layout.message.name} {layout.version} {layout.message.releases}"
    function: Converter = compile_function("convert", lines.text(), names, origin.strip())
    return function


class _ConverterSource(SourceLines):
    def __init__(self, message: str, names: dict[str, Any]) -> None:
        super().__init__()
        self.message = message
        self.names = names

    def constant(self, value: Any) -> str:
        """Return the name of a global of the generated code."""
        self.names[name := self.fresh("constant")] = value
        return name

    def struct(self, wire: StructWire, source: str) -> str:
        """Emit the conversion of a struct that is not null; return the expression of its value."""
        self.add(f"if type({source}) is not dict:", "    raise Refusal")
        count = self.fresh("n")
        self.add(f"{count} = len({source}) - {len(wire.slots)}")
        items = []
        for slot in wire.slots:
            names = json_names(self.message, slot.name)
            if isinstance(slot.wire, BytesWire) and slot.wire.records:
                # ShareFetch has `"records":""` without a size; the generator has both forms.
                forms = {form for name in names for form in (name, f"{name}SizeInBytes")}
                self.add(f"if {self.constant(forms)}.isdisjoint({source}):", "    raise Refusal")
                items.append(f"{slot.name!r}: {None if slot.wire.nullable else b''!r}")
                continue
            variable = self.fresh()
            self.add(f"{variable} = {self.entry(source, names)}")
            items.append(f"{slot.name!r}: {self.value(slot.wire, variable)}")
        for slot in wire.tags:
            variable, result = self.fresh(), self.fresh()
            name = json_names(self.message, slot.name)[0]
            self.add(f"{variable} = {source}.get({name!r}, MISSING)")
            with self.block(f"if {variable} is MISSING:"):
                self.add(f"{result} = {literal(slot.default)}")
            with self.block("else:"):
                self.add(f"{count} -= 1")
                self.add(f"{result} = {self.value(slot.wire, variable)}")
            items.append(f"{slot.name!r}: {result}")
        self.add(f"if {count}:", "    raise Refusal")
        return "{" + ", ".join(items) + "}"

    @staticmethod
    def entry(source: str, names: tuple[str, ...]) -> str:
        """Return the expression of a field, which has one of two names."""
        first, *rest = names
        former = f" if {first!r} in {source} else {source}[{rest[0]!r}]" if rest else ""
        return f"{source}[{first!r}]{former}"

    def value(self, wire: Wire, source: str) -> str:
        """Emit the checks of a value; return the expression of what the body has."""
        match wire:
            case NumberWire() if wire.code == "d":
                return f"json_value({self.constant(wire)}, {source})"
            case NumberWire():
                low, high = _RANGES[wire.code]
                self.add(f"if type({source}) is not int or not {low} <= {source} <= {high}:")
                self.add("    raise Refusal")
                return source
            case BoolWire():
                self.add(f"if type({source}) is not bool:", "    raise Refusal")
                return source
            case UuidWire():
                return f"uuid({source})"
            case StringWire():
                null = f" and {source} is not None" if wire.nullable else ""
                self.add(f"if type({source}) is not str{null}:", "    raise Refusal")
                return source
            case BytesWire():
                null = f"None if {source} is None else " if wire.nullable else ""
                return f"({null}binary({source}))"
            case ArrayWire() | StructWire() if wire.nullable:
                result = self.fresh("a")
                with self.block(f"if {source} is None:"):
                    self.add(f"{result} = None")
                with self.block("else:"):
                    self.add(f"{result} = {self.filled(wire, source)}")
                return result
            case ArrayWire() | StructWire():
                return self.filled(wire, source)
            case _:
                assert_never(wire)

    def filled(self, wire: ArrayWire | StructWire, source: str) -> str:
        """Emit the conversion of an array or struct that is not null."""
        if isinstance(wire, StructWire):
            return self.struct(wire, source)
        match wire.element:
            case NumberWire(code=code) if code != "d":
                return f"integers({source}, {_RANGES[code][0]}, {_RANGES[code][1]})"
            case StringWire(nullable=False):
                return f"texts({source})"
        result, element = self.fresh("a"), self.fresh("e")
        self.add(f"if type({source}) is not list:", "    raise Refusal")
        # An element `{}` of three characters may be a dict of defaults.
        self.add(f"room -= len({source}) * {8 + weight(wire.element)}")
        self.add("if room < 0:", "    raise too_large(0)")
        with self.block(f"{result} = []", f"for {element} in {source}:"):
            self.add(f"{result}.append({self.value(wire.element, element)})")
        return result


def _integers(value: Any, low: int, high: int) -> list[int]:
    if type(value) is not list:
        raise Refusal
    if value and (set(map(type, value)) != {int} or min(value) < low or max(value) > high):
        raise Refusal
    return value


def _texts(value: Any) -> list[str]:
    if type(value) is not list or set(map(type, value)) - {str}:
        raise Refusal
    return value


def _binary(value: Any) -> bytes:
    if type(value) is not str:
        raise Refusal
    return binascii.a2b_base64(value, strict_mode=True)


@lru_cache(4096)
def uuid_of(value: str) -> Uuid:
    """Return the uuid of Kafka's text; `Malformed`."""
    try:
        return Uuid.parse(value)
    except (ValueError, AttributeError):
        raise Malformed("not a uuid") from None
