"""Decides what may be sent to a live broker; an API's declaration says what it does there."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkascope.dissectors.registry import APIS
from kafkascope.dissectors.zookeeper.types import is_zookeeper


class Permit(NamedTuple):
    """What the user allowed to be sent."""

    writes: bool = False
    groups: bool = False
    """A prefix for groups was given, or the same groups are wanted."""


def refusal(key: int | None, body: dict[str, Any] | None, permit: Permit) -> str:
    """Why a request is not sent; empty when it is."""
    api = None if key is None else APIS.get(key)
    if is_zookeeper(key):
        return "a ZooKeeper request, not Kafka"
    if api is None:
        return "not a request of a known API"
    if api.effect == "login":
        return "replay authenticates itself"
    if api.effect == "brokers" or _of_replica(body):
        return "sent by brokers only"
    if body is None:
        return "the request cannot be decoded"
    if api.effect == "read":
        return ""
    if not permit.writes:
        return "changes data or state (--allow-writes)"
    if api.effect == "group" and not permit.groups:
        return "changes a group (--group-prefix P or --same-groups)"
    return ""


def _of_replica(body: dict[str, Any] | None) -> bool:
    """Whether it is a Fetch, ListOffsets or OffsetForLeaderEpoch of a follower."""
    if body is None:
        return False
    state = body.get("replica_state")
    replica = state["replica_id"] if isinstance(state, dict) else body.get("replica_id", -1)
    return isinstance(replica, int) and replica >= 0
