"""Subscriptions and assignments of classic groups: consumers, their assignors' user data, Connect
workers.

    consumer   int16 version | ConsumerProtocolSubscription or ConsumerProtocolAssignment
    connect    int16 version | ConnectSubscription or ConnectAssignment

A reader takes a newer version for the newest that it knows and ignores what is left (KIP-429).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.embedded.model import Embedded
from kafkascope.dissectors.embedded.values import json_or_text
from kafkascope.dissectors.errors import DissectError, Malformed, Truncated
from kafkascope.dissectors.layout import resolve
from kafkascope.dissectors.registry import decode_body, message, read_layout
from kafkascope.dissectors.schema import Array, Bytes, Int16, Int32, Int64, Message, String, data

STICKY_USER_DATA = data("StickyAssignorUserData", versions="0-1").of(
    Array("previous_assignment", "0+").of(
        String("topic", "0+", entity="topicName"), Array("partitions", "0+").of(Int32)
    ),
    Int32("generation", "1+", default=-1, doc="the first form lacks it"),
)

COOPERATIVE_USER_DATA = data("CooperativeStickyAssignorUserData", versions="0").of(
    Int32("generation", "0+")
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

STREAMS: Final = "stream"
"""What Streams members call their assignor."""

# Assignment versions whose layout is known; newer ones are shown by their version only.
NEWEST_STREAMS: Final = 11

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


def _as_oldest(declared: Message, value: bytes) -> tuple[int, Body, str] | None:
    """Return what bytes hold that have the layout of the first version and the number of a later
    one, as kafka-go writes them; None where they have not."""
    if len(value) < _SHORT.size:
        return None
    (stated,), lowest = _SHORT.unpack_from(value), declared.versions.low
    try:
        _, body, note = _versioned(declared, _SHORT.pack(lowest) + value[_SHORT.size :])
    except DissectError:
        return None
    if note or stated <= lowest:
        return None
    return stated, body, f"version {stated}, in the layout of version {lowest}"


def subscription(value: bytes, protocol_type: str, assignor: str) -> Embedded | None:
    """Decode the metadata of a member in JoinGroup; `protocol_type` is empty where it is not
    known."""
    return _by_type("subscription", protocol_type, value, assignor)


def assignment(value: bytes, protocol_type: str, assignor: str) -> Embedded | None:
    """Decode the assignment of a member in SyncGroup."""
    return _by_type("assignment", protocol_type, value, assignor)


def _by_type(what: str, protocol_type: str, value: bytes, assignor: str) -> Embedded | None:
    if protocol_type in (CONSUMER, CONNECT):
        return _read(protocol_type, what, value, assignor)
    if protocol_type:
        return _of_others(value, protocol_type)
    # SyncGroup before version 5 does not say; bytes of the one do not fit the other.
    for each in (CONSUMER, CONNECT):
        try:
            found = _read(each, what, value, assignor)
        except DissectError:
            continue
        if "left over" not in found.note:
            return found
    return _of_others(value, "group protocol") or _read(CONSUMER, what, value, assignor)


def _declared(protocol_type: str, what: str) -> Message:
    if protocol_type == CONSUMER:
        return message(f"ConsumerProtocol{what.capitalize()}")
    return CONNECT_SUBSCRIPTION if what == "subscription" else CONNECT_ASSIGNMENT


def fault_of(what: str, value: bytes, protocol_type: str) -> str:
    """Return why members of a protocol type cannot read a subscription or an assignment; empty
    where they can. User data is the assignor's own, and is not judged."""
    declared = _declared(protocol_type, what)
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
    content = json_or_text(value)
    return None if content is None else Embedded(kind, content)


def _read(protocol_type: str, what: str, value: bytes, assignor: str) -> Embedded:
    declared = _declared(protocol_type, what)
    try:
        version, body, note = _versioned(declared, value)
    except DissectError:
        found = _as_oldest(declared, value)
        if found is None:
            raise
        version, body, note = found
    if protocol_type == CONSUMER:
        of_streams = _streams_subscription if what == "subscription" else _streams_assignment
        note = _open_user_data(body, assignor, note, of_streams)
    elif body.get("allocation"):
        try:
            stated, inner, _ = _versioned(CONNECT_ASSIGNMENT, body["allocation"])
            body["allocation"] = {"version": stated, **inner}
        except DissectError as error:
            note = ", ".join(filter(None, (note, f"allocation: {error.reason}")))
    return Embedded(declared.name, {"version": version, **body}, note)


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
        elif assignor in (STREAMS, "streams", ""):
            # Of Kafka's own assignors only this one puts user data into assignments, so its form
            # is tried where the assignor is unknown.
            found = of_streams(raw)
    except DissectError:
        pass
    if found is None:
        found = json_or_text(raw)
        if found is None:
            remark = f"user data of {assignor or 'an assignor'} that cannot be read"
            return ", ".join(filter(None, (note, remark)))
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


# --- user data of Kafka Streams
#
# The subscription is declared (SubscriptionInfoData); the assignment was never declared by anybody:
# Kafka writes it by hand, with another layout in nearly every version.
#
#     int32 version | 3+ int32 common version | active tasks | standby tasks | partitions by host |
#     4+ int32 error | 7+ int64 next


def _streams_subscription(raw: bytes) -> Body:
    """Decode the user data of a subscription: its version is its first field."""
    if len(raw) < 4:
        raise Truncated("the version is missing")
    (version,) = struct.unpack_from(">i", raw)
    versions = message("SubscriptionInfoData").versions
    if version < versions.low:
        raise Malformed(f"there is no version {version}")
    if version > versions.high:
        return {"version": version}
    body, end = decode_body("SubscriptionInfoData", version, raw)
    if end < len(raw):
        raise Malformed(f"{len(raw) - end} bytes left over", offset=end)
    endpoint = body.get("user_end_point")
    if endpoint:
        body["user_end_point"] = endpoint.decode("utf-8", "replace")
    for tag in body.get("client_tags") or ():
        tag.update({name: tag[name].decode("utf-8", "replace") for name in ("key", "value")})
    return body


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: str = ">i") -> int:
        size = struct.calcsize(form)
        if self.at + size > len(self.data):
            raise Truncated("the bytes end inside a number", offset=self.at)
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return int(value)

    def count(self, least: int) -> range:
        value = self.number()
        left = len(self.data) - self.at
        if value < 0 or value * least > left:
            raise Malformed(f"{value} elements in {left} bytes", offset=self.at - 4)
        return range(value)

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise Truncated("the bytes end inside a text", offset=self.at)
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> str:
        return self.take(self.number(">H")).decode("utf-8", "surrogateescape")


def _task(cursor: _Cursor, version: int) -> Body:
    task: Body = {"subtopology": cursor.number(), "partition": cursor.number()}
    if version >= 10:
        name = cursor.take(2 * cursor.number()).decode("utf-16-be", "surrogatepass")
        if name:
            task["named_topology"] = name
    return task


def _hosts(cursor: _Cursor, topics: dict[int, str] | None) -> list[Body]:
    hosts = []
    for _ in cursor.count(10):
        host: Body = {"host": cursor.text(), "port": cursor.number(), "partitions": []}
        for _ in cursor.count(6 if topics is None else 8):
            topic: Any = cursor.text() if topics is None else cursor.number()
            if topics is not None:
                topic = topics.get(topic, topic)
            host["partitions"].append({"topic": topic, "partition": cursor.number()})
        hosts.append(host)
    return hosts


def _streams_assignment(raw: bytes) -> Body:
    """Decode the user data of an assignment; of a version that is not known only the number."""
    cursor = _Cursor(raw)
    version = cursor.number()
    body: Body = {"version": version}
    if version < 1:
        raise Malformed(f"there is no version {version}")
    if version > NEWEST_STREAMS:
        return body
    if version >= 3:
        body["common_version"] = cursor.number()
    body["active_tasks"] = [_task(cursor, version) for _ in cursor.count(8)]
    body["standby_tasks"] = []
    for _ in cursor.count(12):
        task = _task(cursor, version)
        task["partitions"] = [
            {"topic": cursor.text(), "partition": cursor.number()} for _ in cursor.count(6)
        ]
        body["standby_tasks"].append(task)
    if version >= 2:
        topics = None
        if version >= 5:
            topics = {cursor.number(): cursor.text() for _ in cursor.count(6)}
        body["partitions_by_host"] = _hosts(cursor, topics)
        if version >= 6:
            body["standby_partitions_by_host"] = _hosts(cursor, topics)
    if version >= 4:
        body["error"] = cursor.number()
    if version >= 7:
        body["next_rebalance_ms"] = cursor.number(">q")
    if cursor.at < len(raw):
        raise Malformed(f"{len(raw) - cursor.at} bytes left over", offset=cursor.at)
    return body
