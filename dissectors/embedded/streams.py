"""User data of Kafka Streams members inside consumer subscriptions and assignments.

The subscription is declared (SubscriptionInfoData); the assignment was never declared by anybody:
Kafka writes it by hand, with another layout in nearly every version.

    int32 version | 3+ int32 common version | active tasks | standby tasks | partitions by host | 4+
    int32 error | 7+ int64 next
"""

from __future__ import annotations

import struct
from typing import Any, Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import Malformed, Truncated
from kafkascope.dissectors.registry import decode_body, message

ASSIGNOR: Final = "stream"
"""What Streams members call their assignor."""

NEWEST: Final = 11
"""Assignment versions whose layout is known; newer ones are shown by their version only."""


def subscription(raw: bytes) -> Body:
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
    """Reads big-endian values from bytes, none beyond their end."""

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


def assignment(raw: bytes) -> Body:
    """Decode the user data of an assignment; of a version that is not known only the number."""
    cursor = _Cursor(raw)
    version = cursor.number()
    body: Body = {"version": version}
    if version < 1:
        raise Malformed(f"there is no version {version}")
    if version > NEWEST:
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
