"""Group facts of one exchange: that a member was alive, and what happened.

They come from the exchange alone, so neither order nor division matters; `story` makes sense of
them. Classic groups join and sync (JoinGroup, SyncGroup, Heartbeat, LeaveGroup); those of KIP-848,
KIP-932 and KIP-1071 only have heartbeats with epochs.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import Exchange, Row, topic_key

OFFSET_COMMIT: Final = 8
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
PROTOCOLS: Final = {68: "consumer", 76: "share", 88: "streams"}
"""Keys of the heartbeats of groups without JoinGroup."""
TXN_OFFSET_COMMIT: Final = 28
KEYS: Final = frozenset({8, 11, 12, 13, 14, TXN_OFFSET_COMMIT, *PROTOCOLS})

MEMBER_ID_REQUIRED: Final = 79
EXPECTED: Final = frozenset({0, MEMBER_ID_REQUIRED})


class Alive(NamedTuple):
    """A member took part in a generation (or epoch)."""

    member: str
    generation: int
    instance: str | None = None
    session_ms: int | None = None
    rebalance_ms: int | None = None


class Observation(NamedTuple):
    """About one group."""

    group: str
    protocol: str
    """classic, consumer, share, streams; empty where it is not clear."""
    alive: Alive | None
    events: tuple[Event, ...]


def observed(row: Row, exchange: Exchange) -> Observation | None:
    """Return the group facts of an exchange; None when it is about no group or cannot be read."""
    key = exchange.api_key
    request, response = exchange.request_body, exchange.response_body
    if key not in KEYS or request is None:
        return None
    group: str = request.get("group_id") or ""
    if not group:
        return None
    if key == TXN_OFFSET_COMMIT:
        # By a producer in the name of a member: no sign of life of it.
        return Observation(group, "", None, ())
    if key in PROTOCOLS:
        return _heartbeat(PROTOCOLS[key], group, request, response, row)
    read = {JOIN_GROUP: _join, SYNC_GROUP: _sync, LEAVE_GROUP: _leave}.get(key, _beat)
    return read(group, request, response, row)


def embedded(message: str, field: str, data: bytes, **fields: Any) -> dict[str, Any] | None:
    """Return what a client wrote into a field; None where it is no known format. `fields`: what
    surrounds it."""
    from kafkascope.dissectors.embedded import Around, decode

    found = decode(message, field, data, Around(fields)) if data else None
    return found.body if found is not None and isinstance(found.body, dict) else None


def _event(row: Row, kind: str, about: dict[str, Any], part: int = 0) -> Event:
    end = None if row.latency_ns is None else row.time_ns + row.latency_ns
    return Event(row.time_ns, row.id, part, row.number, kind, {**about, "end_ns": end})


def _client(row: Row) -> dict[str, Any]:
    host = host_of(row.client_address)
    return {"client_id": row.client_id, "host": host, "place": row.client_address}


def _code(response: dict[str, Any] | None) -> int | None:
    return None if response is None else int(response.get("error_code", 0))


def _join(
    group: str, request: dict[str, Any], response: dict[str, Any] | None, row: Row
) -> Observation:
    error = _code(response)
    member = (response or {}).get("member_id") or request["member_id"]
    generation = -1 if response is None or error else response["generation_id"]
    members = (response or {}).get("members") or ()
    names = [each["name"] for each in request["protocols"]]
    about = {
        "member": member,
        "new": not request["member_id"],
        "instance": request.get("group_instance_id"),
        **_client(row),
        "error": error,
        "generation": generation,
        "leads": not error and (response or {}).get("leader") == member,
        "assignor": None if not response or error else response["protocol_name"],
        "assignors": names[: LIMITS.event_members],
        "type": request["protocol_type"],
        "members": sorted(each["member_id"] for each in members)[: LIMITS.event_members],
        "reason": request.get("reason") or "",
        "session_ms": request["session_timeout_ms"],
        "rebalance_ms": request.get("rebalance_timeout_ms", -1),
        "topics": _topics(request),
    }
    alive = None
    if error in EXPECTED and generation >= 0:
        limit = about["rebalance_ms"]
        alive = Alive(
            member, generation, about["instance"], about["session_ms"], limit if limit > 0 else None
        )
    return Observation(group, "classic", alive, (_event(row, "join", about),))


def _topics(request: dict[str, Any]) -> list[str]:
    kind = request["protocol_type"]
    for name, data in ((each["name"], each["metadata"]) for each in request["protocols"]):
        body = embedded("JoinGroupRequest", "metadata", data, protocol_type=kind, name=name)
        if body is not None and "topics" in body:
            return sorted(body["topics"])[: LIMITS.event_members]
    return []


def _sync(
    group: str, request: dict[str, Any], response: dict[str, Any] | None, row: Row
) -> Observation:
    error = _code(response)
    member, generation = request["member_id"], request["generation_id"]
    about = {
        "member": member,
        "generation": generation,
        "error": error,
        "assigned": _assigned(request, response) if response is not None and not error else None,
    }
    alive = Alive(member, generation, request.get("group_instance_id")) if error == 0 else None
    return Observation(group, "classic", alive, (_event(row, "sync", about),))


def _assigned(request: dict[str, Any], response: dict[str, Any]) -> list[list[Any]] | None:
    """Return the member's own assignment as [topic, partitions]; None when it is of no consumer."""
    data, names = response["assignment"], ("protocol_type", "protocol_name")
    fields = {name: response.get(name) or request.get(name) or "" for name in names}
    body = embedded("SyncGroupResponse", "assignment", data, **fields)
    if body is None or "assigned_partitions" not in body:
        return None if data else []
    return [
        [each["topic"], list(each["partitions"])[: LIMITS.event_members]]
        for each in body["assigned_partitions"][: LIMITS.event_members]
    ]


def _leave(
    group: str, request: dict[str, Any], response: dict[str, Any] | None, row: Row
) -> Observation:
    error = _code(response)
    results = (response or {}).get("members") or ()
    members = request.get("members") or ()
    if not members and request.get("member_id"):
        members = ({"member_id": request["member_id"]},)
    events = []
    for part, each in enumerate(members[: LIMITS.event_members]):
        code = results[part]["error_code"] if part < len(results) and not error else error
        about = {
            "member": each["member_id"],
            "instance": each.get("group_instance_id"),
            **_client(row),
            "reason": each.get("reason") or "",
            "error": code,
        }
        events.append(_event(row, "leave", about, part))
    return Observation(group, "classic", None, tuple(events))


def _beat(
    group: str, request: dict[str, Any], response: dict[str, Any] | None, row: Row
) -> Observation:
    """Read Heartbeat and OffsetCommit: the member is alive, or gets an error."""
    member = request.get("member_id") or ""
    generation = request.get("generation_id", request.get("generation_id_or_member_epoch", -1))
    codes = sorted({error.code for error in row.errors})
    # OffsetCommit serves groups of both kinds; Heartbeat, classic ones only.
    protocol = "classic" if row.api_key == HEARTBEAT else ""
    if not member or generation is None or generation < 0:
        return Observation(group, protocol, None, ())
    if (codes and row.api_key == HEARTBEAT) or _GROUP_ERRORS & set(codes):
        about = {"member": member, "generation": generation, "error": codes[0], "api": row.api}
        return Observation(group, protocol, None, (_event(row, "error", about),))
    alive = None
    if response is not None:
        alive = Alive(member, generation, request.get("group_instance_id"))
    return Observation(group, protocol, alive, ())


_GROUP_ERRORS: Final = frozenset({22, 25, 27, 69, 82, 110, 113})
"""Errors of commits: the group has moved on without the member."""


def _heartbeat(
    protocol: str, group: str, request: dict[str, Any], response: dict[str, Any] | None, row: Row
) -> Observation:
    error, before = _code(response), request["member_epoch"]
    epoch = -1 if response is None or error else response["member_epoch"]
    member = request["member_id"] or (response or {}).get("member_id") or ""
    assigned = _given(response) if response is not None and not error else None
    topics = request.get("subscribed_topic_names")
    pattern = request.get("subscribed_topic_regex")
    limit = request.get("rebalance_timeout_ms", -1)
    instance = request.get("instance_id")
    alive = None
    if epoch > 0 and before >= 0:
        alive = Alive(member, epoch, instance, None, limit if limit > 0 else None)
    quiet = before > 0 and epoch == before and assigned is None and topics is None and not pattern
    if quiet:
        return Observation(group, protocol, alive, ())
    about = {
        "member": member,
        "instance": instance,
        **_client(row),
        "before": before,
        "generation": epoch,
        "error": error,
        "assigned": assigned,
        "topics": None if topics is None else sorted(topics)[: LIMITS.event_members],
        "pattern": pattern,
        "assignor": request.get("server_assignor"),
        "rebalance_ms": limit,
    }
    return Observation(group, protocol, alive, (_event(row, "epoch", about),))


def _given(response: dict[str, Any]) -> list[list[Any]] | None:
    """Return an assignment as [topic or its id as a key, partitions]; None when the heartbeat has
    none."""
    tasks = response.get("active_tasks")
    if tasks is not None:
        return [[each["subtopology_id"], list(each["partitions"])] for each in tasks]
    found = response.get("assignment")
    if found is None:
        return None
    pairs = found.get("topic_partitions", found.get("assigned_topic_partitions")) or ()
    return [
        [topic_key(None, each["topic_id"]), list(each["partitions"])[: LIMITS.event_members]]
        for each in pairs[: LIMITS.event_members]
    ]
