"""Builds responses that no broker gave: an error in the right place, for any API and version.

A request's topics, partitions and groups are echoed into its response by the declarations of both,
by what fields are (entity marks, names of partitions), not by a list of APIs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from kafkascope.dissectors.layout import (
    ArrayWire,
    BytesWire,
    Layout,
    NumberWire,
    Slot,
    StructWire,
    Wire,
    implied_default,
)
from kafkascope.dissectors.registry import layout_of, response_header_version, write_layout

if TYPE_CHECKING:
    from kafkascope.dissectors.registry import Decoded

Level = Literal["top", "group", "topic", "partition", "part"]
LEVELS: Final = ("top", "group", "topic", "partition")

PARTITIONS: Final = frozenset({"partition", "partition_index", "partition_id", "index"})
GROUP_ERRORS: Final = frozenset({14, 15, 16, 22, 23, 24, 25, 26, 27, 30, 68, 69, 79, 81, 82, 110})
"""Errors of groups and their coordinators."""
TOP_ERRORS: Final = frozenset({31, 33, 34, 35, 41, 42, 49, 51, 52, 53, 54, 58, 70, 71, 89, 93})
"""Errors of sessions, versions, transactions, the cluster."""
COPIED: Final = frozenset({"resource_type", "resource_name", "key", "name", "topic_id"})
NEVER_COPIED: Final = frozenset({"error_code", "error_message", "throttle_time_ms"})
SAME: Final = {"user": "name", "coordinator_keys": "key", "groups_names": "groupId", "keys": "key"}


def error_response(request: Decoded, code: int, level: str | None = None) -> bytes | None:
    """The payload of a response to that request with an error; None when there is no place for
    it."""
    from kafkascope.dissectors.registry import api_named

    api = api_named(request.message.removesuffix("Request"))
    layout = layout_of(f"{api.name}Response", request.version)
    body = _echo(layout.body, request.layout.body, request.body)
    if not stamp(layout, body, code, level):
        return None
    head = struct.pack(">i", request.header["correlation_id"])
    if response_header_version(api.key, request.version):
        head += b"\0"
    return head + write_layout(layout, body)


def stamp(layout: Layout, body: dict[str, Any], code: int, level: str | None = None) -> bool:
    """Put an error into a response, at a level or where it belongs. False when there is no place
    for it."""
    places: dict[str, list[dict[str, Any]]] = {}
    for kind, struct_ in _places(layout.body, body, True):
        places.setdefault(kind, []).append(struct_)
    for kind in _order(code, level):
        if places.get(kind):
            for struct_ in places[kind]:
                _set(struct_, code)
            return True
    return False


@cache
def levels(layout: Layout) -> frozenset[str]:
    """The levels on which the responses of a layout have a place for an error."""
    return frozenset(_levels(layout.body, True))


def _levels(wire: StructWire, top: bool) -> Iterator[str]:
    slots = (*wire.slots, *wire.tags)
    if any(slot.name == "error_code" for slot in slots):
        yield "top" if top else _kind(slots)
    for slot in slots:
        inner = slot.wire.element if isinstance(slot.wire, ArrayWire) else slot.wire
        if isinstance(inner, StructWire):
            yield from _levels(inner, False)


def _order(code: int, level: str | None) -> tuple[str, ...]:
    if level is not None:
        return (level,)
    if code in GROUP_ERRORS:
        return "group", "top", "partition", "topic", "part"
    if code in TOP_ERRORS:
        return "top", "group", "partition", "topic", "part"
    return "partition", "topic", "group", "part", "top"


def _set(struct_: dict[str, Any], code: int) -> None:
    struct_["error_code"] = code
    if "base_offset" in struct_:
        struct_["base_offset"] = -1
    if "records" in struct_:
        struct_["records"] = b""


def _places(
    wire: StructWire, value: dict[str, Any], top: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    slots = (*wire.slots, *wire.tags)
    if any(slot.name == "error_code" for slot in slots):
        yield ("top" if top else _kind(slots)), value
    for slot in slots:
        inner, got = slot.wire, value.get(slot.name)
        if isinstance(inner, ArrayWire) and isinstance(inner.element, StructWire):
            for each in got or ():
                yield from _places(inner.element, each, False)
        elif isinstance(inner, StructWire) and got is not None:
            yield from _places(inner, got, False)


def _kind(slots: tuple[Slot, ...]) -> str:
    names = {slot.name for slot in slots}
    marks = {slot.field.entity for slot in slots if not isinstance(slot.wire, ArrayWire)}
    if names & PARTITIONS:
        return "partition"
    if "topicName" in marks or "topic_id" in names:
        return "topic"
    return "group" if "groupId" in marks else "part"


# --- echo


def _meaning(slot: Slot) -> str:
    """What a field stands for, in terms that requests and responses share."""
    if slot.field.entity and slot.field.entity not in ("brokerId",):
        return slot.field.entity
    if slot.name in PARTITIONS or slot.name in ("partitions", "partition_indexes"):
        return "partition"
    if slot.name == "topic_ids":
        return "topic_id"
    return SAME.get(slot.name, slot.name)


def _plain(wire: StructWire) -> dict[str, str]:
    """Meaning -> name of the fields that are no structs."""
    out = {}
    for slot in (*wire.slots, *wire.tags):
        if isinstance(slot.wire, StructWire | ArrayWire) or slot.name in NEVER_COPIED:
            continue
        meaning = _meaning(slot)
        if slot.field.entity or meaning in COPIED or meaning == "partition":
            out[meaning] = slot.name
    return out


def _echo(wire: StructWire, request_wire: StructWire, request: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = implied_default(wire)
    for slot in wire.slots:
        if isinstance(slot.wire, BytesWire) and not slot.wire.nullable:
            body[slot.name] = b""
    theirs = _plain(request_wire)
    for meaning, name in _plain(wire).items():
        if meaning in theirs and _fits(wire, name, request[theirs[meaning]]):
            body[name] = request[theirs[meaning]]
    for slot in wire.slots:
        if isinstance(slot.wire, ArrayWire) and isinstance(slot.wire.element, StructWire):
            body[slot.name] = _echo_array(slot, slot.wire.element, request_wire, request)
    return body


def _fits(wire: StructWire, name: str, value: Any) -> bool:
    slot = next(s for s in (*wire.slots, *wire.tags) if s.name == name)
    if value is None:
        return bool(getattr(slot.wire, "nullable", False))
    if isinstance(slot.wire, NumberWire):
        return isinstance(value, int)
    return not isinstance(value, int)


def _echo_array(
    slot: Slot, element: StructWire, request_wire: StructWire, request: dict[str, Any]
) -> list[dict[str, Any]]:
    ours = set(_plain(element))
    best: tuple[int, Slot] | None = None
    arrays = [
        s for s in request_wire.slots if isinstance(s.wire, ArrayWire) and request.get(s.name)
    ]
    for source in arrays:
        shared = len(ours & _meanings(source))
        if shared and (best is None or shared > best[0]):
            best = shared, source
    if best is None:
        # AlterReplicaLogDirs: asked by folder, answered by topic.
        for source in arrays:
            inner = _element(source.wire)
            if isinstance(inner, StructWire):
                below = [_echo_array(slot, element, inner, e) for e in request[source.name]]
                if any(below):
                    return [each for part in below for each in part]
        structs = [s for s in arrays if isinstance(_element(s.wire), StructWire)]
        names = {s.name for s in element.slots}
        # CreateAcls: results in the order of what was asked, without saying what.
        if len(structs) == 1 and "error_code" in names and not ours:
            return [implied_default(element) for _ in request[structs[0].name]]
        return []
    source = best[1]
    inner = _element(source.wire)
    if isinstance(inner, StructWire):
        return [_echo(element, inner, each) for each in request[source.name]]
    name = _plain(element)[_meaning(source)]
    out = []
    for value in request[source.name]:
        made = implied_default(element)
        made[name] = value
        out.append(made)
    return out


def _element(wire: Wire) -> Wire | None:
    return wire.element if isinstance(wire, ArrayWire) else None


def _meanings(slot: Slot) -> set[str]:
    element = _element(slot.wire)
    if isinstance(element, StructWire):
        return set(_plain(element))
    return {_meaning(slot)}
