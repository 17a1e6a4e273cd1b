"""What one exchange says about delivery: commits, offsets to start from, assignments, how records
are encoded; and the periods in which a client polled."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, Self

from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.batches import CODEC_MASK, HEADER_SIZE, Batch
from kafkascope.dissectors.records.compression import name_of
from kafkascope.dissectors.values import read_uvarint

JOIN_GROUP: Final = 11
APART: Final = 2_000_000_000
"""Fetches no further apart than this (ns) are one period: long polls end twice a second."""
MAX_PERIODS: Final = 500
MAX_POSITIONS: Final = 100
"""Of a reader in a partition. One who waits at the end of a log has a new one after each record."""
MOST_DIGITS: Final = 19
"""Of an offset as text."""
MAX_LISTED: Final = 2_000
"""Members or partitions of a plan."""


class Periods:
    """Stretches of time with polls, joined where they are near. Whatever the order in which polls
    come, the stretches are the same; of too many the latest are kept."""

    __slots__ = ("_begins", "_ends")

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []

    def add(self, begin_ns: int, end_ns: int) -> None:
        """Take in a poll."""
        begins, ends = self._begins, self._ends
        if begins and begins[-1] <= begin_ns <= ends[-1] + APART:
            # The usual case: polls come in their order.
            if end_ns > ends[-1]:
                ends[-1] = end_ns
            return
        at = bisect_right(begins, begin_ns)
        first = at - 1 if at and ends[at - 1] + APART >= begin_ns else at
        last = first
        while last < len(begins) and begins[last] <= end_ns + APART:
            begin_ns, end_ns = min(begin_ns, begins[last]), max(end_ns, ends[last])
            last += 1
        begins[first:last] = [begin_ns]
        ends[first:last] = [end_ns]
        if len(begins) > MAX_PERIODS:
            del begins[0], ends[0]

    def add_all(self, begins: Sequence[int], ends: Sequence[int]) -> None:
        """Take in polls."""
        pairs = iter(sorted(zip(begins, ends, strict=True)))
        first, last = next(pairs)
        for begin, end in pairs:
            if begin > last + APART:
                self.add(first, last)
                first, last = begin, end
            elif end > last:
                last = end
        self.add(first, last)

    def merge(self, other: Self) -> None:
        """Take in the polls of another one."""
        for begin, end in zip(other._begins, other._ends, strict=True):
            self.add(begin, end)

    def pauses(self) -> list[tuple[int, int]]:
        """Return (from, to) of the time between stretches."""
        return list(zip(self._ends, self._begins[1:], strict=False))

    @property
    def last_ns(self) -> int | None:
        """The end of the last one."""
        return self._ends[-1] if self._ends else None

    def dump(self) -> list[list[int]]:
        """Return the state as JSON."""
        return [list(self._begins), list(self._ends)]

    def load(self, state: list[list[int]]) -> Self:
        """Take over what `dump` gave."""
        self._begins, self._ends = (list(each) for each in state)
        return self


class Positions:
    """Offsets that a reader asked for and got nothing from, each with the first time. Of too many
    the largest are kept, so that parts merge to the same as the whole."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: dict[int, int] = {}

    def add(self, offset: int, time_ns: int) -> None:
        """Take in a request for an offset."""
        times = self._times
        known = times.get(offset)
        if known is not None:
            times[offset] = min(known, time_ns)
            return
        times[offset] = time_ns
        if len(times) > MAX_POSITIONS:
            del times[min(times)]

    def merge(self, other: Self) -> None:
        """Take in the requests of another one."""
        for offset, time_ns in other._times.items():
            self.add(offset, time_ns)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Return the offsets as (time, offset), in the order of time."""
        return iter(sorted((time_ns, offset) for offset, time_ns in self._times.items()))

    def dump(self) -> list[list[int]]:
        """Return the state as JSON."""
        return [[offset, time_ns] for offset, time_ns in sorted(self._times.items())]

    def load(self, state: list[list[int]]) -> Self:
        """Take over what `dump` gave."""
        self._times.update((offset, time_ns) for offset, time_ns in state)
        return self


def commits_of(
    asked: dict[str, Any], response: dict[str, Any] | None
) -> Iterator[tuple[str | None, int, dict[str, Any]]]:
    """Yield (topic, partition, what) of OffsetCommit and TxnOffsetCommit."""
    errors: dict[tuple[str | None, int], int] = {}
    for topic in (response or {}).get("topics") or ():
        named = topic_key(topic.get("name"), topic.get("topic_id"))
        for each in topic["partitions"]:
            errors[named, each["partition_index"]] = each["error_code"]
    generation = asked.get("generation_id_or_member_epoch", asked.get("generation_id", -1))
    for topic in asked["topics"]:
        named = topic_key(topic.get("name"), topic.get("topic_id"))
        for each in topic["partitions"]:
            number = each["partition_index"]
            yield (
                named,
                number,
                {
                    "offset": each["committed_offset"],
                    "member": asked.get("member_id") or "",
                    "generation": -1 if generation is None else generation,
                    "error": errors.get((named, number)) if response is not None else None,
                },
            )


def offset_in(data: bytes | None) -> int | None:
    """Return the offset that a node of ZooKeeper holds as text; None for anything else."""
    if not data or len(data) > MOST_DIGITS or not data.isdigit():
        return None
    return int(data)


def starts_of(
    asked: dict[str, Any], response: dict[str, Any] | None
) -> Iterator[tuple[str, str | None, int, int]]:
    """Yield (group, topic, partition, committed offset or -1) of OffsetFetch."""
    if response is None:
        return
    groups = response.get("groups")
    if groups is None:
        groups = [{**response, "group_id": asked.get("group_id") or ""}]
    for group in groups:
        for topic in group.get("topics") or ():
            named = topic_key(topic.get("name"), topic.get("topic_id"))
            for each in topic["partitions"]:
                if not each["error_code"]:
                    yield (
                        group["group_id"],
                        named,
                        each["partition_index"],
                        each["committed_offset"],
                    )


def plan_of(key: int, asked: dict[str, Any], response: dict[str, Any]) -> dict[str, Any] | None:
    """Return what the leader learned (JoinGroup's answer) or decided (SyncGroup): fields of
    `Planned`, and the generation."""
    if response["error_code"]:
        return None
    if key == JOIN_GROUP:
        if not response["members"]:
            return None
        kind, name = asked["protocol_type"], response["protocol_name"] or ""
        found = []
        for each in response["members"][:MAX_LISTED]:
            fields = {"protocol_type": kind, "name": name}
            body = _body("JoinGroupRequest", "metadata", each["metadata"], fields)
            if body is None or "topics" not in body:
                return None
            instance = each.get("group_instance_id") or ""
            found.append((each["member_id"], instance, tuple(sorted(body["topics"]))))
        return {
            "generation": response["generation_id"],
            "assignor": name,
            "subscribed": tuple(sorted(found)),
        }
    if not asked["assignments"]:
        return None
    assigned = []
    fields = {
        "protocol_type": response.get("protocol_type") or asked.get("protocol_type") or "",
        "protocol_name": response.get("protocol_name") or asked.get("protocol_name") or "",
    }
    for each in asked["assignments"][:MAX_LISTED]:
        body = _body("SyncGroupResponse", "assignment", each["assignment"], fields)
        if body is None or "assigned_partitions" not in body:
            return None
        topics = tuple(
            sorted(
                (t["topic"], tuple(sorted(t["partitions"]))) for t in body["assigned_partitions"]
            )
        )
        assigned.append((each["member_id"], topics))
    return {"generation": asked["generation_id"], "assigned": tuple(sorted(assigned))}


def _body(message: str, field: str, data: bytes, fields: dict[str, Any]) -> dict[str, Any] | None:
    if not data:
        return {"assigned_partitions": ()} if field == "assignment" else None
    from kafkascope.dissectors.embedded import Around, decode

    found = decode(message, field, data, Around(fields))
    return found.body if found is not None and isinstance(found.body, dict) else None


MAGIC: Final = 2
"""Of record batches."""
MORE: Final = 0x80
"""A byte of a varint from here on is not its last."""
PLAIN: Final = frozenset({0})
NO_ENCODING: Final[dict[str, Any]] = {}
PREFIX: Final = 5
MAX_ID: Final = 10_000_000
"""Registries count from 1; larger numbers are another format that begins with a zero."""


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
def _compressed(codec: int) -> dict[str, Any]:
    return {"codecs": [name_of(codec)]}


def schema_id(blob: bytes, batch: Batch) -> int | None:
    """Return the schema id of the first record; None where it has none, or is compressed or of an
    older format."""
    if batch.magic < MAGIC or batch.attributes & CODEC_MASK:
        return None
    at = batch.at + HEADER_SIZE
    try:
        # The size of the record, its attributes, its timestamp, its offset; most are one byte.
        at = at + 1 if blob[at] < MORE else read_uvarint(blob, at)[1]
        at = at + 2 if blob[at + 1] < MORE else read_uvarint(blob, at + 1)[1]
        at = at + 1 if blob[at] < MORE else read_uvarint(blob, at)[1]
        key, at = (blob[at], at + 1) if blob[at] < MORE else read_uvarint(blob, at)
        size, at = read_uvarint(blob, at + _signed(key))
    except (DissectError, IndexError):
        return None
    value = blob[at : at + PREFIX]
    if _signed(size) <= PREFIX or len(value) < PREFIX or value[0]:
        return None
    found = int.from_bytes(value[1:])
    return found if 0 < found < MAX_ID else None


def _signed(value: int) -> int:
    """Return the length that a zigzag varint stands for; none for null."""
    return max(0, (value >> 1) ^ -(value & 1))
