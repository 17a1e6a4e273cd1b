"""Reads requests as Scala classes print them in 0.8 and 0.9 (and ControlledShutdown up to 0.11):

    Name: FetchRequest; Version: 0; CorrelationId: 0; ClientId: x; ReplicaId: 2; ...

DEBUG has scalar fields alone, TRACE topics and partitions as well: `[tape,0] -> 988`.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.requestlog.fields import KEYS, NotUnderstood, int32, layouts_of
from kafkascope.analyzer.requestlog.model import NO_RESPONSES, NOT_UNDERSTOOD, LineHead, LoggedBody
from kafkascope.analyzer.requestlog.textbody import read_text
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError, Malformed
from kafkascope.dissectors.layout import ArrayWire, Layout, StructWire, default_of
from kafkascope.dissectors.registry import write_layout

_NAME: Final = re.compile(r" ?Name: ?(\w+?)(?:Request)?; ?Version: ?(-?\d{1,5})(?=;|$)")
_FIELD: Final = re.compile(
    r"; ?(CorrelationId|ClientId|ReplicaId|MaxWait|MinBytes|MaxBytes|RequestInfo|RequiredAcks"
    r"|AckTimeoutMs|TopicAndPartition|Topics|Controller|ControllerId|ControllerEpoch|Leaders|PartitionState"
    r"|AliveBrokers|DeletePartitions|Partitions|BrokerId|GroupId|GroupGenerationId|MemberId"
    r"|ConsumerId|RetentionMs|Group|Body): ?"
)
_OPTION: Final = re.compile(r"Some\((.*)\)", re.S)
_NUMBER: Final = re.compile(r"(-?\d{1,19})(?: ms| bytes)?")
_PARTITION: Final = re.compile(
    r"\[([^\[\],]{1,300}),(\d{1,9})\]"
    r"(?:(?: -> (?:\[?\w*[\[(])?|,\w+\()(-?\d{1,19})(?:,(-?\d{1,19}))?)?"
)
"""`[tape,0] -> 988`, `-> PartitionFetchInfo(0,1048576)`, `-> [OffsetMetadata[26,]...`; in 0.10.1
`([tape,0],PartitionFetchInfo(0,1048576))`."""


class _Class(NamedTuple):
    """A class: its API, and which fields of the request its fields are."""

    api: str
    fields: str = ""
    """`Theirs=ours`, with blanks between."""
    partitions: str = ""
    """The field with topics and partitions."""
    values: tuple[str, ...] = ()
    """Fields of a partition: its index, then the numbers after the arrow."""


_CONTROLLER: Final = "Controller=controller_id ControllerEpoch=controller_epoch"
_STOP: Final = "ControllerId=controller_id ControllerEpoch=controller_epoch"
_COMMIT: Final = (
    "GroupId=group_id GroupGenerationId=generation_id_or_member_epoch MemberId=member_id "
    "ConsumerId=member_id RetentionMs=retention_time_ms"
)
_FETCH: Final = "ReplicaId=replica_id MaxWait=max_wait_ms MinBytes=min_bytes MaxBytes=max_bytes"
_FETCHED: Final = ("partition", "fetch_offset", "partition_max_bytes")
_LISTED: Final = ("partition_index", "timestamp", "max_num_offsets")
_COMMITTED: Final = ("partition_index", "committed_offset")
_CLASSES: Final = {
    "Producer": _Class(
        "Produce", "RequiredAcks=acks AckTimeoutMs=timeout_ms", "TopicAndPartition", ("index",)
    ),
    "Fetch": _Class("Fetch", _FETCH, "RequestInfo", _FETCHED),
    "Offset": _Class("ListOffsets", "ReplicaId=replica_id", "RequestInfo", _LISTED),
    "TopicMetadata": _Class("Metadata", partitions="Topics"),
    "LeaderAndIsr": _Class("LeaderAndIsr", _CONTROLLER),
    "StopReplica": _Class("StopReplica", f"{_STOP} DeletePartitions=delete_partitions"),
    "UpdateMetadata": _Class("UpdateMetadata", _CONTROLLER),
    "ControlledShutdown": _Class("ControlledShutdown", "BrokerId=broker_id"),
    "OffsetCommit": _Class("OffsetCommit", _COMMIT, "RequestInfo", _COMMITTED),
    "OffsetFetch": _Class("OffsetFetch", "GroupId=group_id", "RequestInfo", ("",)),
    "ConsumerMetadata": _Class("FindCoordinator", "Group=key"),
    "GroupCoordinator": _Class("FindCoordinator", "Group=key"),
}


def read_scala(text: str) -> LineHead | None:
    """Read a request; None where it is in another form. `NotUnderstood` without an API or a
    correlation id."""
    head = _NAME.match(text)
    if head is None:
        return None
    ends = list(_FIELD.finditer(text, head.end()))
    stops = [match.start() for match in ends[1:]] + [len(text)]
    # Texts are not quoted: of two fields of one name the first is the request's.
    fields: dict[str, str] = {}
    for match, stop in zip(ends, stops, strict=False):
        fields.setdefault(match[1], text[match.end() : stop])
    name, version = head[1], int(head[2])
    scala = _CLASSES.get(name, _Class(name))
    key = KEYS.get(scala.api.lower(), -1)
    number = _NUMBER.fullmatch(fields.get("CorrelationId", "").strip())
    if number is None:
        raise NotUnderstood(NOT_UNDERSTOOD)
    client_id: str | None = fields.get("ClientId")
    if name == "ControlledShutdown" and client_id is not None:  # a Scala Option
        client_id = option[1] if (option := _OPTION.fullmatch(client_id)) else None
    layouts = layouts_of(key, version) if key >= 0 else f"unknown API {name}"
    sizes: dict[Any, int] = {}
    if isinstance(layouts, str):
        request = LoggedBody(None, None, layouts)
    else:
        try:
            request, sizes = _body(layouts[0], scala, fields)
        except DissectError as error:
            request = LoggedBody(None, None, error.reason)
    response = LoggedBody(None, None, NO_RESPONSES)
    return LineHead(key, name, version, int32(int(number[1])), client_id, request, response, sizes)


def _body(
    layout: Layout, scala: _Class, fields: dict[str, str]
) -> tuple[LoggedBody, dict[Any, int]]:
    if "Body" in fields:  # of groups in 0.8.2
        return read_text(layout, fields["Body"], 0)[0], {}
    body: Body = {slot.name: default_of(slot) for slot in layout.body.slots}
    unknown = list(body)
    sizes: dict[Any, int] = {}
    for name, ours in (pair.split("=") for pair in scala.fields.split()):
        if ours in body and name in fields:
            body[ours] = _value(body[ours], fields[name])
            unknown.remove(ours)
    if scala.partitions in fields:
        topics = next(slot for slot in layout.body.slots if isinstance(slot.wire, ArrayWire))
        unknown.remove(topics.name)
        items = _PARTITION.findall(fields[scala.partitions])
        if scala.values:
            assert isinstance(topics.wire, ArrayWire)
            body[topics.name], left_out = _topics(topics.wire.element, scala.values, items)
            unknown += [f"{topics.name}.{path}" for path in left_out]
        else:
            names = fields[scala.partitions].split(",")
            body[topics.name] = [{"name": name} for name in names if name]
        if scala.api == "Produce":
            sizes = {(topic, int(index)): int(size or 0) for topic, index, size, _ in items}
    write_layout(layout, body)  # its numbers may be too large
    return LoggedBody(body, layout, "", tuple(unknown)), sizes


def _value(default: Any, text: str) -> Any:
    """Return a value of the kind that the default has."""
    if isinstance(default, bool):
        return text.strip() == "true"
    if not isinstance(default, int):
        return text
    number = _NUMBER.fullmatch(text.strip())
    if number is None:
        raise Malformed("a number of another kind")
    return int(number[1])


def _topics(
    wire: Any, names: tuple[str, ...], items: list[tuple[str, ...]]
) -> tuple[list[Body], list[str]]:
    """Return topics with their partitions, and the paths of fields that the class leaves out."""
    name, partitions = wire.slots
    element = partitions.wire.element
    slots = element.slots if isinstance(element, StructWire) else ()
    topics: dict[str, list[Any]] = {}
    for topic, *numbers in items:
        values = dict(zip(names, (int(number) for number in numbers if number), strict=False))
        fields = {slot.name: values.get(slot.name, default_of(slot)) for slot in slots}
        topics.setdefault(topic, []).append(fields or values[names[0]])
    left_out = [f"{partitions.name}.{slot.name}" for slot in slots if slot.name not in names]
    bodies = [{name.name: topic, partitions.name: parts} for topic, parts in topics.items()]
    return bodies, left_out
