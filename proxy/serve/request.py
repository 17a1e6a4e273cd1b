"""Requests as handlers see them, their errors, parts that the responses of many APIs share, and the
account of the memory that clients may fill."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import fitted
from kafkascope.dissectors.registry import layout_of
from kafkascope.proxy.limits import LIMITS, Limits

# Bytes that a small object takes beside its texts, with its place in a dict.
ENTRY: Final = 400


class MemoryBudget:
    """Admits what clients want to be kept, up to a limit for all groups, offsets and producers.

    Sizes are estimates. What is freed is not paid back one by one: when the account seems full,
    everybody who holds something counts anew."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self._taken = 0
        self._holders: list[Callable[[], int]] = []
        self._counted = float("-inf")
        self.refusals = 0
        """How often there was no room."""

    def holds(self, holder: Callable[[], int]) -> None:
        """Register a function that returns the bytes its owner holds."""
        self._holders.append(holder)

    def admit(self, size: int) -> bool:
        """Whether so many bytes more may be kept; if so they are accounted for."""
        if self._taken + size > self.limits.state_bytes and not self._recounted(size):
            self.refusals += 1
            return False
        self._taken += size
        return True

    def _recounted(self, size: int) -> bool:
        now = time.monotonic()
        if now - self._counted < self.limits.recount_s:
            return False
        self._counted = now
        self._taken = sum(holder() for holder in self._holders)
        return self._taken + size <= self.limits.state_bytes


def size_of(*texts: str | bytes | None) -> int:
    return ENTRY + sum(2 * len(each) for each in texts if each)


def size_of_names(names: Iterable[str]) -> int:
    return sum(100 + 2 * len(name) for name in names)


def size_of_protocols(protocols: list[Body]) -> int:
    """Bytes of what a member of a classic group says about itself."""
    return sum(size_of(each["name"], each["metadata"]) for each in protocols)


def has_place(groups: dict[str, Any], name: str, most: int) -> bool:
    """Whether a group is known or may be added: an empty one makes room when there are too many."""
    if name in groups or len(groups) < most:
        return True
    empty = next((other for other, each in groups.items() if not each.members), None)
    if empty is None:
        return False
    del groups[empty]
    return True


class Request(NamedTuple):
    """A request as handlers see it."""

    version: int
    body: Body
    client_id: str | None = None


# The body of the response; what it lacks gets its default. None when no response is due.
Handler: TypeAlias = Callable[[Request], Awaitable[Body | None]]


class ErrorResponse(Exception):
    """A request, or what it says of a partition, is refused with an error."""

    def __init__(self, code: Code, **fields: Any) -> None:
        """`fields`: what the response tells besides."""
        super().__init__(code)
        self.body: Body = {"error_code": code, **fields}


async def respond(handler: Handler, api: str, request: Request) -> Body | None:
    """Return a complete response, or a refusal; None when no response is due."""
    try:
        body = await handler(request)
    except ErrorResponse as refused:
        body = refused.body
    layout = layout_of(f"{api}Response", request.version)
    return None if body is None else fitted(layout, body)


class Code(IntEnum):
    """Error codes, by their names in the protocol."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    OFFSET_METADATA_TOO_LARGE = 12
    INVALID_TOPIC_EXCEPTION = 17
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    UNKNOWN_MEMBER_ID = 25
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    UNSUPPORTED_SASL_MECHANISM = 33
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    POLICY_VIOLATION = 44
    INVALID_PRODUCER_EPOCH = 47
    INVALID_PRODUCER_ID_MAPPING = 49
    KAFKA_STORAGE_ERROR = 56
    SASL_AUTHENTICATION_FAILED = 58
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    PRODUCER_FENCED = 90
    UNKNOWN_TOPIC_ID = 100
    FENCED_MEMBER_EPOCH = 110
    STALE_MEMBER_EPOCH = 113
    INVALID_REGULAR_EXPRESSION = 128
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123


def listed(name: str, protocol: str, state: str, kind: str) -> Body:
    """A group as ListGroups shows it."""
    return {
        "group_id": name,
        "protocol_type": protocol,
        "group_state": state,
        "group_type": kind,
    }


# Fields by which requests and responses name a topic, and number a partition.
TOPIC: Final = ("name", "topic", "topic_id")
PARTITION: Final = ("partition_index", "partition", "index")


def naming(each: Body, fields: tuple[str, ...] = TOPIC) -> Body:
    return {name: each[name] for name in fields if name in each}


def by_partition(
    topics: list[Body],
    result: Callable[[Body, Any], Body],
    source: str = "partitions",
    target: str = "partitions",
) -> list[Body]:
    """The topics of a request with a result for each partition, which `result` makes from topic
    and partition, or refuses. `source` and `target`: the fields that hold partitions there and
    here."""

    def of(topic: Body, part: Any) -> Body:
        number = naming(part, PARTITION) if isinstance(part, dict) else {"partition_index": part}
        try:
            return {**number, **result(topic, part)}
        except ErrorResponse as refused:
            return {**number, **refused.body}

    return [
        {**naming(topic), target: [of(topic, part) for part in topic[source]]} for topic in topics
    ]
