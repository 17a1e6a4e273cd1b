"""Converts the JSON of Kafka's request log (`XRequestDataJsonConverter`, KIP-673) to the body that
a frame of that version gives.

Kafka's field names are ours in camel case. Bytes are base64, uuids 22 characters, records their
size alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from kafkascope.dissectors.codec.jsonform import Form, body_from_json
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import innermost
from kafkascope.dissectors.errors import Malformed, TooLarge
from kafkascope.dissectors.layout import ArrayWire, BytesWire, Layout, Slot, StructWire, Wire
from kafkascope.dissectors.registry import variants_of


def body_of(layout: Layout, value: Any) -> tuple[Body, Layout, tuple[str, ...]]:
    """Return the body of a JSON value, and the layout that it has: that of some releases if it
    fits and the main one does not. Missing fields get their defaults, and are returned as dotted
    paths; `Malformed` for others."""
    for variant in (layout, *variants_of(layout.message.name, layout.version)):
        try:
            return body_from_json(variant, value, WHOLE), variant, ()
        except TooLarge:
            raise
        except Malformed:
            continue
    body = body_from_json(layout, value, _PARTIAL)
    missing = {*_missing(layout.message.name, layout.body, value, "")}
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


def _names(message: str, slot: Slot) -> tuple[str, ...]:
    names = json_names(message, slot.name)
    if isinstance(slot.wire, BytesWire) and slot.wire.records:
        # ShareFetch has `"records":""` without a size; the generator has both forms.
        return tuple(form for name in names for form in (f"{name}SizeInBytes", name))
    return names


WHOLE: Final = Form(_names, whole=True, records=False)
"""What a broker writes for one of its versions."""
_PARTIAL: Final = WHOLE._replace(whole=False)


def _missing(message: str, wire: Wire, value: Any, path: str) -> Iterator[str]:
    """Yield the paths of fields that a value lacks. `path`: ends with a point."""
    if isinstance(wire, ArrayWire):
        for element in value or ():
            yield from _missing(message, wire.element, element, path)
    elif isinstance(wire, StructWire) and value is not None:
        for slot in (*wire.slots, *wire.tags):
            name = next(filter(value.__contains__, _names(message, slot)), None)
            if name is not None:
                yield from _missing(message, slot.wire, value[name], f"{path}{slot.name}.")
            elif slot.tag is None and not (isinstance(slot.wire, BytesWire) and slot.wire.records):
                yield path + slot.name
