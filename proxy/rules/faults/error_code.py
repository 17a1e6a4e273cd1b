"""The faults that respond with an error, or stamp one into the broker's response.

An error is put in the right place of any API and version: a request's topics, partitions and groups
are echoed into its response by the declarations of both, by what fields are (entity marks, names of
partitions), not by a list of APIs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Any, ClassVar, Final, Self

from kafkascope.analyzer.conversation.tampering import FAULT
from kafkascope.analyzer.text import suggestion
from kafkascope.dissectors.codec.walk import struct_of, structs
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import (
    ArrayWire,
    Layout,
    NumberWire,
    Slot,
    StructWire,
    implied_default,
)
from kafkascope.dissectors.reference.codes import ERRORS, error_code, error_name
from kafkascope.dissectors.registry import (
    APIS,
    Decoded,
    api_named,
    decode_response,
    encode_response,
    example,
    layout_of,
    write_layout,
)
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Replace, Respond, Verdict

LEVELS: Final = ("top", "group", "topic", "partition")

PARTITIONS: Final = frozenset({"partition", "partition_index", "partition_id", "index"})
# Errors of groups and their coordinators.
GROUP_ERRORS: Final = frozenset({14, 15, 16, 22, 23, 24, 25, 26, 27, 30, 68, 69, 79, 81, 82, 110})
# Errors of sessions, versions, transactions, the cluster.
TOP_ERRORS: Final = frozenset({31, 33, 34, 35, 41, 42, 49, 51, 52, 53, 54, 58, 70, 71, 89, 93})
COPIED: Final = frozenset({"resource_type", "resource_name", "key", "name", "topic_id"})
NEVER_COPIED: Final = frozenset({"error_code", "error_message", "throttle_time_ms"})
SAME: Final = {"user": "name", "coordinator_keys": "key", "groups_names": "groupId", "keys": "key"}


def error_response(request: Decoded, code: int, level: str | None = None) -> bytes | None:
    """The payload of a response to that request with an error; None when there is no place for
    it."""
    api = api_named(request.message.removesuffix("Request"))
    layout = layout_of(f"{api.name}Response", request.version)
    body = _echo(layout.body, request.layout.body, request.body)
    if not stamp(layout, body, code, level):
        return None
    return encode_response(api.key, request.version, request.header["correlation_id"], body)


def stamp(layout: Layout, body: dict[str, Any], code: int, level: str | None = None) -> bool:
    """Put an error into a response, at a level or where it belongs. False when there is no place
    for it."""
    places: dict[str, list[Any]] = {}
    for kind, struct_ in structs(layout, body, _level):
        places.setdefault("top" if struct_ is body else kind, []).append(struct_)
    for place in _order(code, level):
        for struct_ in places.get(place, ()):
            _set(struct_, code)
        if place in places:
            return True
    return False


@cache
def levels(layout: Layout) -> frozenset[str]:
    """The levels on which the responses of a layout have a place for an error."""
    below = (_level(wire) for wire in _structs_in(layout.body))
    return frozenset(filter(None, below)) | ({"top"} if _level(layout.body) else set())


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


def _structs_in(wire: StructWire) -> Iterator[StructWire]:
    for slot in (*wire.slots, *wire.tags):
        if (inner := struct_of(slot.wire)) is not None:
            yield inner
            yield from _structs_in(inner)


def _level(wire: StructWire) -> str | None:
    """The level of an error in a struct inside of a body; None without a place for one."""
    slots = (*wire.slots, *wire.tags)
    names = {slot.name for slot in slots}
    if "error_code" not in names:
        return None
    marks = {slot.field.entity for slot in slots if not isinstance(slot.wire, ArrayWire)}
    if names & PARTITIONS:
        return "partition"
    if "topicName" in marks or "topic_id" in names:
        return "topic"
    return "group" if "groupId" in marks else "part"


# --- echo


def _meaning(slot: Slot) -> str:
    """Return the meaning of a field, in terms that requests and responses share."""
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
    theirs = _plain(request_wire)
    for meaning, name in _plain(wire).items():
        if meaning in theirs and _fits(wire, name, request[theirs[meaning]]):
            body[name] = request[theirs[meaning]]
    for slot in wire.slots:
        if isinstance(slot.wire, ArrayWire) and isinstance(slot.wire.element, StructWire):
            body[slot.name] = _echo_array(slot.wire.element, request_wire, request)
    return body


def _fits(wire: StructWire, name: str, value: Any) -> bool:
    slot = next(s for s in (*wire.slots, *wire.tags) if s.name == name)
    if value is None:
        return bool(getattr(slot.wire, "nullable", False))
    if isinstance(slot.wire, NumberWire):
        return isinstance(value, int)
    return not isinstance(value, int)


def _echo_array(
    element: StructWire, request_wire: StructWire, request: dict[str, Any]
) -> list[dict[str, Any]]:
    ours = set(_plain(element))
    arrays = [
        slot
        for slot in request_wire.slots
        if isinstance(slot.wire, ArrayWire) and request.get(slot.name)
    ]
    source = max(arrays, key=lambda slot: len(ours & _meanings(slot)), default=None)
    if source is not None and ours & _meanings(source):
        inner = struct_of(source.wire)
        if inner is not None:
            return [_echo(element, inner, each) for each in request[source.name]]
        name = _plain(element)[_meaning(source)]
        return [{**implied_default(element), name: value} for value in request[source.name]]
    nested = [(slot, wire) for slot in arrays if (wire := struct_of(slot.wire)) is not None]
    # AlterReplicaLogDirs: asked by folder, answered by topic.
    for slot, wire in nested:
        below = [_echo_array(element, wire, each) for each in request[slot.name]]
        if any(below):
            return list(chain.from_iterable(below))
    # CreateAcls: results in the order of what was asked, without saying what.
    if len(nested) == 1 and _level(element) and not ours:
        return [implied_default(element) for _ in request[nested[0][0].name]]
    return []


def _meanings(slot: Slot) -> set[str]:
    element = struct_of(slot.wire)
    return {_meaning(slot)} if element is None else set(_plain(element))


FETCH, METADATA = 1, 3
FETCH_SESSION_ID_NOT_FOUND = 70


class _ErrorAction(Action):
    whole: ClassVar[bool] = True

    def __init__(self, code: int, level: str | None) -> None:
        self.code = code
        self.level = level
        self.text = error_name(code) + (f" at {level}" if level else "")

    def can_harm(self, key: int, version: int, side: int) -> bool:
        found = levels(layout_of(f"{APIS[key].name}Response", version))
        return self.level in found if self.level else bool(found)

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`NOT_LEADER_OR_FOLLOWER`, `6`, `COORDINATOR_NOT_AVAILABLE at top`."""
        level = None
        rest = list(words)
        if len(rest) >= 2 and rest[-2] == "at":
            level = rest.pop()
            rest.pop()
            if level not in LEVELS:
                raise FaultError(
                    f"the level of an error is one of {', '.join(LEVELS)}, not at {level!r}"
                )
        if len(rest) != 1:
            raise cls.misused(words)
        return cls(_code(rest[0]), level)


def _code(text: str) -> int:
    code = error_code(text)
    if code is None:
        hint = suggestion(text.upper(), (error.name for error in ERRORS.values()))
        raise FaultError(f"unknown error {text!r}{hint}")
    return code


class ErrorAction(_ErrorAction):
    """Responds with an error; the broker is not asked."""

    word = "error"
    usage = "error CODE [at top|group|topic|partition]"
    doc = "answer with the error; the request does not reach the broker"
    sides = (CLIENT,)

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        request = frame.request
        if request is None:
            return None
        try:
            partly = self.level is None and self.code not in TOP_ERRORS
            if frame.key == FETCH and partly and not request.body["topics"]:
                return _full_fetch(frame)
            payload = error_response(request, self.code, self.level)
            if payload is not None and frame.key == METADATA:
                payload = _with_brokers(frame, payload)
        except DissectError:
            return None
        if payload is None:
            return None
        frame.comment = f"{FAULT}{self}, not sent to the broker"
        return Respond(payload)


def _full_fetch(frame: InterceptedFrame) -> Verdict | None:
    """Make a client send a full Fetch: an incremental one names no partition that could fail. The
    next request gets the error."""
    version = frame.version
    if not layout_of("FetchResponse", version).has("session_id"):
        return None
    body = example("FetchResponse", version) | {"error_code": FETCH_SESSION_ID_NOT_FOUND}
    frame.uncounted = True
    frame.comment = f"{FAULT}the client shall name its partitions"
    return Respond(encode_response(FETCH, version, frame.pending.correlation_id, body))


def _with_brokers(frame: InterceptedFrame, payload: bytes) -> bytes:
    """Add the brokers to a Metadata response: without them it would be another fault."""
    endpoints = frame.context.hub.endpoints
    if endpoints is None:
        return payload
    decoded = decode_response(payload, METADATA, frame.version)
    brokers = decoded.body["brokers"]
    for node_id, host, port in endpoints.directory.brokers(frame.context):
        brokers.append({"node_id": node_id, "host": host, "port": port, "rack": None})
    return payload[: decoded.body_at] + write_layout(decoded.layout, decoded.body)


class StampAction(_ErrorAction):
    """Stamps an error into the broker's response."""

    word = "stamp"
    usage = "stamp CODE [at top|group|topic|partition]"
    doc = "put the error into the broker's response"
    sides = (BROKER,)

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        decoded = frame.decoded
        if decoded is None or not stamp(decoded.layout, decoded.body, self.code, self.level):
            return None
        try:
            return Replace(frame.with_body(decoded.body))
        except DissectError:
            return None
