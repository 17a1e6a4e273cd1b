"""The part of a latency that the client asked for: long polls, and groups that form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from analyzer.fetch_sessions import FETCH
from analyzer.log_ends import WAITS_FOR_DATA, is_follower

if TYPE_CHECKING:
    from analyzer.model import Exchange

JOIN_GROUP: Final = 11
SYNC_GROUP: Final = 14

WAITING: Final = WAITS_FOR_DATA | {JOIN_GROUP, SYNC_GROUP}
"""Keys of the APIs that wait on purpose."""


def wait_of(exchange: Exchange) -> int:
    """Nanoseconds of deliberate waiting; 0 when there was none or nobody can tell.

    JoinGroup and SyncGroup: all the time that the broker took, for it answers when the group is
    complete. Fetch and ShareFetch: up to max_wait_ms, also when data came in that time: nobody can
    tell that from waiting for it, unless earlier answers say that the broker had no reason to.
    """
    latency, server = exchange.latency_ns, exchange.server_ns
    if latency is None or server is None or exchange.request is None or exchange.response is None:
        return 0
    asked, answer = exchange.request.body, exchange.response.body
    if asked is None or answer is None or answer.get("error_code"):
        return 0
    if exchange.api_key in (JOIN_GROUP, SYNC_GROUP):
        return max(0, min(server, latency))
    if exchange.prompt or (exchange.api_key == FETCH and _takes_anything(asked)):
        return 0
    most: int = asked["max_wait_ms"] * 1_000_000
    return max(0, min(latency, most))


def _takes_anything(asked: dict[str, Any]) -> bool:
    """Whether no bytes are enough for a Fetch. KRaft's voters and observers ask for 0 bytes, too,
    and are made to wait; so is a share consumer, whatever it asks for."""
    return bool(asked["min_bytes"] <= 0) and not is_follower(asked)
