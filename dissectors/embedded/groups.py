"""Subscriptions and assignments of classic groups: consumers, their assignors' user data, Connect
workers.

    consumer   int16 version | ConsumerProtocolSubscription or ConsumerProtocolAssignment
    connect    int16 version | ConnectSubscription or ConnectAssignment

A reader takes a newer version for the newest that it knows and ignores what is left (KIP-429).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.embedded import streams
from kafkascope.dissectors.embedded.model import Embedded
from kafkascope.dissectors.embedded.values import describe
from kafkascope.dissectors.errors import DissectError, Malformed, Truncated
from kafkascope.dissectors.layout import resolve
from kafkascope.dissectors.registry import message, read_layout
from kafkascope.dissectors.schema import Array, Bytes, Int16, Int32, Int64, Message, String, data

STICKY_USER_DATA = data("StickyAssignorUserData", versions="0-1").of(
    Array("previous_assignment", "0+").of(
        String("topic", "0+", entity="topicName"),
        Array("partitions", "0+").of(Int32),
    ),
    Int32("generation", "1+", default=-1, doc="the first form lacks it"),
)

COOPERATIVE_USER_DATA = data("CooperativeStickyAssignorUserData", versions="0").of(
    Int32("generation", "0+"),
)

_CONNECTORS = (
    String("connector", "0+", subject="connectorName"),
    Array("tasks", "0+", doc="-1 is the connector itself").of(Int32),
)

CONNECT_ASSIGNMENT = data("ConnectAssignment", versions="0-2").of(
    Int16("error", "0+", enum="ErrorCode"),
    String("leader", "0+", subject="memberId"),
    String("leader_url", "0+", subject="address"),
    Int64("config_offset", "0+"),
    Array("assigned", "0+", nullable="1+").of(*_CONNECTORS),
    Array("revoked", "1+", nullable="1+").of(*_CONNECTORS),
    Int32("delay", "1+", doc="milliseconds until revoked ones may be given to others"),
)

CONNECT_SUBSCRIPTION = data("ConnectSubscription", versions="0-2").of(
    String("url", "0+", subject="address"),
    Int64("config_offset", "0+"),
    Bytes(
        "allocation",
        "1+",
        nullable="1+",
        subject="freeText",
        doc="a version and a ConnectAssignment",
    ),
)

_SHORT: Final = struct.Struct(">h")

CONSUMER: Final = "consumer"
CONNECT: Final = "connect"


def _versioned(declared: Message, value: bytes) -> tuple[int, Body, str]:
    """Return version, body and remark of bytes that begin with an int16 version."""
    if len(value) < 2:
        raise Truncated("the version is missing")
    (stated,) = _SHORT.unpack_from(value)
    if stated < declared.versions.low:
        raise Malformed(f"there is no version {stated}")
    version = min(stated, declared.versions.high)
    body, end = read_layout(resolve(declared, version), value, 2)
    notes = []
    if stated != version:
        notes.append(f"version {stated}, read as {version}")
    if end < len(value):
        notes.append(f"{len(value) - end} bytes left over")
    return stated, body, ", ".join(notes)


def subscription(value: bytes, protocol_type: str, assignor: str) -> Embedded | None:
    """Decode the metadata of a member in JoinGroup; `protocol_type` is empty where it is not
    known."""
    return _by_type(protocol_type, value, assignor, _consumer_subscription, _connect_subscription)


def assignment(value: bytes, protocol_type: str, assignor: str) -> Embedded | None:
    """Decode the assignment of a member in SyncGroup."""
    return _by_type(protocol_type, value, assignor, _consumer_assignment, _connect_assignment)


Reader: TypeAlias = Callable[[bytes, str], Embedded]


def _by_type(
    protocol_type: str, value: bytes, assignor: str, consumer: Reader, connect: Reader
) -> Embedded | None:
    if protocol_type == CONSUMER:
        return consumer(value, assignor)
    if protocol_type == CONNECT:
        return connect(value, assignor)
    if protocol_type:
        return _of_others(value, protocol_type)
    # SyncGroup before version 5 does not say; bytes of the one do not fit the other.
    for read in (consumer, connect):
        try:
            found = read(value, assignor)
        except DissectError:
            continue
        if "left over" not in found.note:
            return found
    return _of_others(value, "group protocol") or consumer(value, assignor)


def fault_of(what: str, value: bytes, protocol_type: str) -> str:
    """Return why members of a protocol type cannot read a subscription or an assignment; empty
    where they can. User data is the assignor's own, and is not judged."""
    declared = {
        (CONSUMER, "subscription"): lambda: message("ConsumerProtocolSubscription"),
        (CONSUMER, "assignment"): lambda: message("ConsumerProtocolAssignment"),
        (CONNECT, "subscription"): lambda: CONNECT_SUBSCRIPTION,
        (CONNECT, "assignment"): lambda: CONNECT_ASSIGNMENT,
    }[protocol_type, what]()
    try:
        _versioned(declared, value)
    except DissectError as error:
        fault = error.reason if not error.path else f"{error.path}: {error.reason}"
    else:
        return ""
    try:
        _, _, note = _versioned(declared, _SHORT.pack(declared.versions.low) + value)
    except DissectError:
        return fault
    return fault if note else "its version is missing"


def _of_others(value: bytes, kind: str) -> Embedded | None:
    """Members of other protocols mostly write JSON, as those of Schema Registry (`sr`) do."""
    shown = describe(value)
    return Embedded(kind, shown.value) if shown.kind in ("json", "text") else None


def _consumer_subscription(value: bytes, assignor: str) -> Embedded:
    version, body, note = _versioned(message("ConsumerProtocolSubscription"), value)
    note = _open_user_data(body, assignor, note, streams.subscription)
    return Embedded("ConsumerProtocolSubscription", {"version": version, **body}, note)


def _consumer_assignment(value: bytes, assignor: str) -> Embedded:
    version, body, note = _versioned(message("ConsumerProtocolAssignment"), value)
    note = _open_user_data(body, assignor, note, streams.assignment)
    return Embedded("ConsumerProtocolAssignment", {"version": version, **body}, note)


def _connect_subscription(value: bytes, assignor: str) -> Embedded:
    version, body, note = _versioned(CONNECT_SUBSCRIPTION, value)
    if body.get("allocation"):
        try:
            stated, inner, _ = _versioned(CONNECT_ASSIGNMENT, body["allocation"])
            body["allocation"] = {"version": stated, **inner}
        except DissectError as error:
            note = ", ".join(filter(None, (note, f"allocation: {error.reason}")))
    return Embedded("ConnectSubscription", {"version": version, **body}, note)


def _connect_assignment(value: bytes, assignor: str) -> Embedded:
    version, body, note = _versioned(CONNECT_ASSIGNMENT, value)
    return Embedded("ConnectAssignment", {"version": version, **body}, note)


def _open_user_data(
    body: Body, assignor: str, note: str, of_streams: Callable[[bytes], Body]
) -> str:
    """Decode user data in place if its assignor is one of Kafka's own; return the note, with a
    remark when it does not fit."""
    raw = body.get("user_data")
    if not raw:
        return note
    found: Any = None
    try:
        if assignor in ("sticky", "cooperative-sticky"):
            found = _sticky(raw, assignor)
        elif assignor in (streams.ASSIGNOR, "streams", ""):
            # Of Kafka's own assignors only this one puts user data into assignments, so its form
            # is tried where the assignor is not told.
            found = of_streams(raw)
    except DissectError:
        pass
    if found is None:
        shown = describe(raw)
        if shown.kind not in ("json", "text"):
            remark = f"user data of {assignor or 'an assignor'} that cannot be read"
            return ", ".join(filter(None, (note, remark)))
        found = shown.value
    body["user_data"] = found
    return note


def _sticky(raw: bytes, assignor: str) -> Body | None:
    if assignor == "cooperative-sticky" and len(raw) == 4:
        return read_layout(resolve(COOPERATIVE_USER_DATA, 0), raw)[0]
    for version in (1, 0):
        try:
            body, end = read_layout(resolve(STICKY_USER_DATA, version), raw)
        except DissectError:
            continue
        if end == len(raw):
            return body
    return None
