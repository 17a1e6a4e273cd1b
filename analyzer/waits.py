"""The part of a latency that the client asked for: long polls, and groups that form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from analyzer.model import Exchange

FETCH: Final = 1
JOIN_GROUP: Final = 11
SYNC_GROUP: Final = 14
SHARE_FETCH: Final = 78

WAITING: Final = frozenset({FETCH, JOIN_GROUP, SYNC_GROUP, SHARE_FETCH})
"""Keys of the APIs that wait on purpose."""


def wait_of(exchange: Exchange) -> int:
    """Nanoseconds of deliberate waiting; 0 when there was none or nobody can tell.

    Fetch and ShareFetch: up to max_wait_ms when fewer than min_bytes came. JoinGroup and SyncGroup:
    all the time that the broker took, for it answers when the group is complete.
    """
    latency, server = exchange.latency_ns, exchange.server_ns
    if latency is None or server is None or exchange.request is None or exchange.response is None:
        return 0
    asked, answer = exchange.request.body, exchange.response.body
    if asked is None or answer is None or answer.get("error_code"):
        return 0
    if exchange.api_key in (JOIN_GROUP, SYNC_GROUP):
        return max(0, min(server, latency))
    if _bytes_of(answer) >= asked["min_bytes"] or _failed(answer):
        return 0
    most: int = asked["max_wait_ms"] * 1_000_000
    return max(0, min(latency, most))


def _bytes_of(answer: dict[str, Any]) -> int:
    return sum(
        len(partition["records"] or b"")
        for topic in answer["responses"]
        for partition in topic["partitions"]
    )


def _failed(answer: dict[str, Any]) -> bool:
    """A broker does not wait when a partition has an error."""
    return any(
        partition["error_code"]
        for topic in answer["responses"]
        for partition in topic["partitions"]
    )
