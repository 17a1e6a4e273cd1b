"""Converts the JSON of Kafka's request log (`XRequestDataJsonConverter`, KIP-673) to the body that
a frame of that version gives.

Kafka's field names are ours in camel case. Bytes are base64, uuids 22 characters, records their
size alone. Converters of layouts take exactly the fields of a version and do not explain: on
anything else they raise one of `REFUSALS`, and `body_of` converts the same value with `jsonform`,
which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache, partial
from typing import Any, Final

from kafkascope.dissectors.codec.jsonform import Converter, body_from_json, or_null, value_converter
from kafkascope.dissectors.codec.reader import Body, Refusal, too_large, weight
from kafkascope.dissectors.codec.walk import innermost
from kafkascope.dissectors.errors import DissectError, Malformed, TooLarge
from kafkascope.dissectors.layout import (
    SIZES,
    ArrayWire,
    BytesWire,
    Layout,
    NumberWire,
    StructWire,
    UuidWire,
    Wire,
    default_of,
)
from kafkascope.dissectors.limits import LIMITS as DISSECTOR_LIMITS
from kafkascope.dissectors.registry import variants_of, write_layout
from kafkascope.dissectors.values import Uuid

REFUSALS: Final = (Refusal, DissectError, KeyError, TypeError, ValueError)
"""Exceptions of converters."""


def body_of(layout: Layout, value: Any) -> tuple[Body, Layout, tuple[str, ...]]:
    """Return the body of a JSON value, and the layout that it has: that of some releases if it
    fits and the main one does not. Missing fields get their defaults, and are returned as dotted
    paths; `Malformed` for others."""
    for variant in (layout, *variants_of(layout.message.name, layout.version)):
        try:
            return converter(variant)(value), variant, ()
        except TooLarge:
            raise
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


def _paths(wire: StructWire, path: str, records: bool) -> Iterator[str]:
    for slot in (*wire.slots, *wire.tags):
        _, inner = innermost(slot.wire)
        if isinstance(inner, StructWire):
            yield from _paths(inner, f"{path}{slot.name}.", records)
        elif isinstance(inner, BytesWire) and (inner.records or not records):
            yield path + slot.name


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
    """Return the converter of a layout, made once."""
    return _of_struct(layout.message.name, layout.body)


def _converter_of(message: str, wire: Wire) -> Converter:
    match wire:
        case NumberWire(code=code) if code != "d":
            return _of_integer(int_range(code))
        case UuidWire():
            return uuid_of
        case ArrayWire():
            return or_null(_of_array(wire, _converter_of(message, wire.element)), wire.nullable)
        case StructWire():
            return or_null(_of_struct(message, wire), wire.nullable)
        case BytesWire(records=True):
            return partial(_without_records, None if wire.nullable else b"")
        case _:
            return value_converter(wire)


def int_range(code: str) -> range:
    """Return the numbers of a kind."""
    bits = 8 * SIZES[code]
    low = 0 if code.isupper() else -(1 << bits - 1)
    return range(low, low + (1 << bits))


def _of_integer(numbers: range) -> Converter:
    low, high = numbers[0], numbers[-1]

    def convert(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise Refusal
        return value

    return convert


def _without_records(empty: bytes | None, _: Any) -> bytes | None:
    return empty


def _of_array(wire: ArrayWire, element: Converter) -> Converter:
    # An element `{}` of three characters may be a dict of defaults.
    cost = 8 + weight(wire.element)

    def convert(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Refusal
        if len(value) * cost > DISSECTOR_LIMITS.body_bytes:
            raise too_large(0)
        return list(map(element, value))

    return convert


def _of_struct(message: str, wire: StructWire) -> Converter:
    slots = []
    for slot in wire.slots:
        theirs, *others = json_names(message, slot.name)
        if isinstance(slot.wire, BytesWire) and slot.wire.records:
            # ShareFetch has `"records":""` without a size; the generator has both forms.
            others = [theirs, *(form for name in others for form in (f"{name}SizeInBytes", name))]
            theirs += "SizeInBytes"
        slots.append((slot.name, theirs, others, _converter_of(message, slot.wire)))
    tags = [
        (slot, json_names(message, slot.name)[0], _converter_of(message, slot.wire))
        for slot in wire.tags
    ]

    def convert(value: Any) -> Body:
        if type(value) is not dict:
            raise Refusal
        body: Body = {}
        for name, theirs, others, field in slots:
            if theirs not in value:
                theirs = next(filter(value.__contains__, others), "")
            body[name] = field(value[theirs])
        unread = len(value) - len(slots)
        for slot, theirs, field in tags:
            unread -= theirs in value
            body[slot.name] = field(value[theirs]) if theirs in value else default_of(slot)
        if unread:
            raise Refusal
        return body

    return convert


@lru_cache(4096)
def uuid_of(value: str) -> Uuid:
    """Return the uuid of Kafka's text; `Malformed`."""
    try:
        return Uuid.parse(value)
    except (ValueError, AttributeError):
        raise Malformed("not a uuid") from None
