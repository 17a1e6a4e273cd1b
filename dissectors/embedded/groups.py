"""Subscriptions and assignments of classic groups: consumers, their assignors' user data, Connect
workers.

    consumer   int16 version | ConsumerProtocolSubscription or ConsumerProtocolAssignment
    connect    int16 version | ConnectSubscription or ConnectAssignment

A reader takes a newer version for the newest that it knows and ignores what is left (KIP-429).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from dissectors.embedded import streams
from dissectors.embedded.model import Embedded
from dissectors.errors import DissectError, Truncated
from dissectors.layout import resolve
from dissectors.reader import Body
from dissectors.registry import message, read_layout
from dissectors.schema import Array, Bytes, Int16, Int32, Int64, Message, String, data

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
    String("connector", "0+"),
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
    Bytes("allocation", "1+", nullable="1+", doc="a version and a ConnectAssignment"),
)

_SHORT: Final = struct.Struct(">h")


def _versioned(declared: Message, value: bytes) -> tuple[int, Body, str]:
    """Version, body and remark of bytes that begin with an int16 version."""
    if len(value) < 2:
        raise Truncated("the version is missing")
    (stated,) = _SHORT.unpack_from(value)
    if stated < declared.versions.low:
        raise Truncated(f"there is no version {stated}")
    version = min(stated, declared.versions.high)
    body, end = read_layout(resolve(declared, version), value, 2)
    notes = []
    if stated != version:
        notes.append(f"version {stated}, read as {version}")
    if end < len(value):
        notes.append(f"{len(value) - end} bytes left over")
    return stated, body, ", ".join(notes)


def subscription(value: bytes, protocol_type: str, assignor: str) -> Embedded:
    """What a member offers in JoinGroup."""
    if protocol_type == "connect":
        version, body, note = _versioned(CONNECT_SUBSCRIPTION, value)
        if body.get("allocation"):
            body["allocation"] = _versioned(CONNECT_ASSIGNMENT, body["allocation"])[1]
        return Embedded("ConnectSubscription", {"version": version, **body}, note)
    version, body, note = _versioned(message("ConsumerProtocolSubscription"), value)
    _open_user_data(body, assignor, streams.subscription)
    return Embedded("ConsumerProtocolSubscription", {"version": version, **body}, note)


def assignment(value: bytes, protocol_type: str, assignor: str) -> Embedded:
    """What the leader gives a member in SyncGroup."""
    if protocol_type == "connect":
        version, body, note = _versioned(CONNECT_ASSIGNMENT, value)
        return Embedded("ConnectAssignment", {"version": version, **body}, note)
    version, body, note = _versioned(message("ConsumerProtocolAssignment"), value)
    _open_user_data(body, assignor, streams.assignment)
    return Embedded("ConsumerProtocolAssignment", {"version": version, **body}, note)


def _open_user_data(body: Body, assignor: str, of_streams: Callable[[bytes], Body]) -> None:
    """Replace user data that an assignor of Kafka's own wrote by what it says; leave it where it
    does not fit."""
    raw = body.get("user_data")
    if not raw:
        return
    try:
        if assignor in ("sticky", "cooperative-sticky"):
            found = _sticky(raw, assignor)
        elif assignor in ("stream", "streams"):
            found = of_streams(raw)
        else:
            return
    except DissectError:
        return
    if found is not None:
        body["user_data"] = found


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
