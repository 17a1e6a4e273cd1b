"""Delivery facts of one exchange: commits, offsets to start from, assignments, how records are
encoded; and the periods in which a client polled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from kafkascope.analyzer.identity import ClientKey
from kafkascope.analyzer.statistics.delivery.ends import Periods
from kafkascope.analyzer.statistics.delivery.model import Belongs, Happening
from kafkascope.analyzer.statistics.groups.events import JOIN_GROUP, embedded
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.dissectors.records.batches import CODEC_MASK, HEADER_SIZE, Batch
from kafkascope.dissectors.records.compression import name_of
from kafkascope.kernel.groups import schema_at
from kafkascope.times import MS, SECOND


def commits_of(
    request: dict[str, Any], response: dict[str, Any] | None
) -> Iterator[tuple[str | None, int, dict[str, Any]]]:
    """Yield (topic, partition, what) of OffsetCommit and TxnOffsetCommit."""
    errors: dict[tuple[str | None, int], int] = {}
    for topic in (response or {}).get("topics") or ():
        named = topic_key(topic.get("name"), topic.get("topic_id"))
        for each in topic["partitions"]:
            errors[named, each["partition_index"]] = each["error_code"]
    generation = request.get("generation_id_or_member_epoch", request.get("generation_id", -1))
    for topic in request["topics"]:
        named = topic_key(topic.get("name"), topic.get("topic_id"))
        for each in topic["partitions"]:
            number = each["partition_index"]
            about = {
                "offset": each["committed_offset"],
                "member": request.get("member_id") or "",
                "generation": -1 if generation is None else generation,
                "error": errors.get((named, number)) if response is not None else None,
            }
            yield named, number, about


def offset_in(data: bytes | None) -> int | None:
    """Return the offset that a node of ZooKeeper holds as text; None for anything else."""
    if not data or len(data) > LIMITS.offset_digits or not data.isdigit():
        return None
    return int(data)


def starts_of(
    request: dict[str, Any], response: dict[str, Any] | None
) -> Iterator[tuple[str, str | None, int, int]]:
    """Yield (group, topic, partition, committed offset or -1) of OffsetFetch."""
    if response is None:
        return
    groups = response.get("groups")
    if groups is None:
        groups = [{**response, "group_id": request.get("group_id") or ""}]
    for group in groups:
        for topic in group.get("topics") or ():
            named = topic_key(topic.get("name"), topic.get("topic_id"))
            for each in topic["partitions"]:
                if not each["error_code"]:
                    place = group["group_id"], named, each["partition_index"]
                    yield *place, each["committed_offset"]


def plan_of(key: int, request: dict[str, Any], response: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the leader learned (JoinGroup's answer) or decided (SyncGroup): fields of
    `Planned`, and the generation."""
    if response["error_code"]:
        return None
    if key == JOIN_GROUP:
        kind, name = request["protocol_type"], response["protocol_name"] or ""
        found = []
        for each in response["members"][: LIMITS.plan_members]:
            data = each["metadata"]
            body = embedded("JoinGroupRequest", "metadata", data, protocol_type=kind, name=name)
            if body is None or "topics" not in body:
                return None
            instance = each.get("group_instance_id") or ""
            found.append((each["member_id"], instance, tuple(sorted(body["topics"]))))
        about = {"generation": response["generation_id"], "assignor": name}
        return {**about, "subscribed": tuple(sorted(found))} if found else None
    fields = {
        "protocol_type": response.get("protocol_type") or request.get("protocol_type") or "",
        "protocol_name": response.get("protocol_name") or request.get("protocol_name") or "",
    }
    assigned = []
    for member, data in (
        (each["member_id"], each["assignment"])
        for each in request["assignments"][: LIMITS.plan_members]
    ):
        body = embedded("SyncGroupResponse", "assignment", data, **fields)
        if (data and body is None) or (body is not None and "assigned_partitions" not in body):
            return None
        topics = body["assigned_partitions"] if body else ()
        parts = sorted((each["topic"], tuple(sorted(each["partitions"]))) for each in topics)
        assigned.append((member, tuple(parts)))
    if not assigned:
        return None
    return {"generation": request["generation_id"], "assigned": tuple(sorted(assigned))}


# Of record batches.
MAGIC: Final = 2
PLAIN: Final = frozenset({0})
NO_ENCODING: Final[dict[str, Any]] = {}


def encoding(blob: bytes, batches: Sequence[Batch]) -> dict[str, Any]:
    """Return `codecs` and `schema`, where there are any."""
    first = batches[0]
    codecs = {batch.attributes & CODEC_MASK for batch in batches} if len(batches) > 1 else None
    if codecs is None:
        codec = first.attributes & CODEC_MASK
        if codec and first.magic == MAGIC:
            return _compressed(codec)
        codecs = {codec}
    found: dict[str, Any] = {}
    if codecs != PLAIN:
        found["codecs"] = sorted(map(name_of, codecs - PLAIN))
    schema = schema_id(blob, first)
    if schema is not None:
        found["schema"] = schema
    return found or NO_ENCODING


@cache
def logged_at(late_ns: int) -> dict[str, Any]:
    """Return what events tell of records that a line of a request log lacks: how late the line may
    be."""
    return {"late_ns": late_ns}


@cache
def _compressed(codec: int) -> dict[str, Any]:
    return {"codecs": [name_of(codec)]}


def schema_id(blob: bytes, batch: Batch) -> int | None:
    """Return the schema id of the first record; None where it has none, or is compressed or of an
    older format."""
    if batch.magic < MAGIC or batch.attributes & CODEC_MASK:
        return None
    found = schema_at(blob, batch.at + HEADER_SIZE)
    return found if 0 < found < LIMITS.schema_id else None


# --- pauses of members: times without a fetch that exceed a limit, or come near it

LEAST_PAUSE: Final = 5 * SECOND
"""Shortest pause that is listed when no limit is known."""


def pauses(
    group: str, client: ClientKey, belongs: Belongs, periods: Periods, lives: list[tuple[int, int]]
) -> Iterator[Happening]:
    """Yield the pauses of a client. `lives`: (first, last) time of each member that it was."""
    # Since KIP-62 the rebalance timeout is max.poll.interval.ms, but in aiokafka and kafkajs;
    # before, the session was.
    limit_ms = belongs.rebalance_ms or belongs.session_ms
    what = "rebalance timeout" if belongs.rebalance_ms else "session.timeout.ms"
    name = "; max.poll.interval.ms in most clients" if belongs.rebalance_ms else ""
    for begin, end in periods.pauses():
        length = end - begin
        if belongs.last_ns is not None and begin > belongs.last_ns:
            continue
        if _between_lives(lives, begin, end, limit_ms):
            continue
        if limit_ms is None:
            if length < LEAST_PAUSE:
                continue
            why = "; its timeouts are unknown (it joined before the capture)"
        elif length * 2 < limit_ms * MS:
            continue
        else:
            over = "more than" if length > limit_ms * MS else "near"
            why = f", {over} its {what} ({limit_ms / 1000:g} s{name})"
        text = f"{client[0] or client[1]} did not fetch for {length / SECOND:.1f} s{why}"
        yield Happening(begin, "pause", group, "", None, length, None, text, client=client)


def _between_lives(
    lives: list[tuple[int, int]], begin: int, end: int, limit_ms: int | None
) -> bool:
    """Return whether a client ended in a pause and started again: its last member was silent, too,
    long before it had exceeded a limit."""
    least = (end - begin if limit_ms is None else limit_ms * MS) // 2
    born = [first for first, _ in lives if begin < first <= end]
    heard = [min(last, end) for first, last in lives if first <= begin]
    return bool(born and heard) and max(heard) < begin + least
