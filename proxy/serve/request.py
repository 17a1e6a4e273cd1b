"""Requests as handlers see them, error codes, and parts that the responses of many APIs share.
Stateless."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.dissectors.codec.reader import Body

LONGEST_WAIT_S: Final = 60.0
"""Whatever a request asks for: no wait for records is longer."""


class Request(NamedTuple):
    """A request as handlers see it."""

    version: int
    body: Body
    client_id: str | None = None


Handler: TypeAlias = Callable[[Request], Awaitable[Body | None]]
"""The body of the response, complete or not; None when none is due."""


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
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
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


def naming(each: Body) -> Body:
    """The fields of a request's element that name its topic."""
    return {name: each[name] for name in ("name", "topic", "topic_id") if name in each}


def by_partition(
    topics: list[Body],
    result: Callable[[Body, Any], Body],
    wanted: str = "partitions",
    given: str = "partitions",
) -> list[Body]:
    """The topics of a request with a result for each partition, which `result` makes from topic
    and partition. `wanted` and `given`: the fields that hold partitions there and here."""
    return [
        {**naming(topic), given: [result(topic, part) for part in topic[wanted]]}
        for topic in topics
    ]
