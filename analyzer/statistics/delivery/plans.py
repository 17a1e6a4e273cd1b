"""Computes the assignments of Kafka's assignors, to compare them with captured assignments.

Range and round robin follow from members, subscriptions and partition counts alone (as Kafka's
clients compute them, static members first by their instance). Sticky assignors depend on the
previous assignment, so only their promises are checked: balance, and partitions that keep their
owner.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from typing import Any, NamedTuple, TypeAlias, TypeVar

from kafkascope.analyzer.statistics.limits import LIMITS

PartitionKey: TypeAlias = tuple[str, int]
"""Topic and partition."""
Assignment: TypeAlias = dict[str, set[PartitionKey]]


T = TypeVar("T")


class Subscriber(NamedTuple):
    """A member with its topics."""

    id: str
    instance: str
    topics: tuple[str, ...]


def subscribers(subscribed: tuple[Any, ...]) -> list[Subscriber]:
    """Return `Planned.subscribed` in the order of assignors: static members by instance, then the
    others by id."""
    members = [Subscriber(*fields) for fields in subscribed]
    return sorted(members, key=lambda m: (not m.instance, m.instance or m.id))


def assignment(assigned: tuple[Any, ...]) -> Assignment:
    """Return `Planned.assigned` as the set of partitions of each member."""
    return {
        member: {(topic, number) for topic, numbers in topics for number in numbers}
        for member, topics in assigned
    }


def by_range(members: list[Subscriber], counts: dict[str, int]) -> Assignment:
    """Assign like RangeAssignor: of each topic consecutive partitions, one more to the first
    members. It sorts members as `subscribers` does (static ones since KIP-345)."""
    assigned: Assignment = {member.id: set() for member in members}
    for topic in sorted({topic for member in members for topic in member.topics}):
        subscribed = [member for member in members if topic in member.topics]
        for member, numbers in _ranges(counts.get(topic, 0), subscribed):
            assigned[member.id] |= {(topic, number) for number in numbers}
    return assigned


def _ranges(count: int, owners: list[T]) -> Iterator[tuple[T, range]]:
    """Divide `count` partitions into consecutive ranges; the first owners get one more."""
    size, rest = divmod(count, len(owners))
    for index, owner in enumerate(owners):
        begin = size * index + min(index, rest)
        yield owner, range(begin, begin + size + (index < rest))


def by_round_robin(members: list[Subscriber], counts: dict[str, int]) -> Assignment:
    """Assign like RoundRobinAssignor: all partitions in turn. A member that is not subscribed to a
    topic loses its turn."""
    assigned: Assignment = {member.id: set() for member in members}
    turns = cycle(members)
    for topic in sorted({topic for member in members for topic in member.topics}):
        for number in range(counts.get(topic, 0)):
            owner = next(member for member in turns if topic in member.topics)
            assigned[owner.id].add((topic, number))
    return assigned


class JudgedPlan(NamedTuple):
    """A leader's assignment, compared with those of the assignors."""

    same_as: tuple[str, ...]
    """Names of the assignors that give the same assignment."""
    spread: int
    """Most minus fewest partitions of a member."""
    moved: int | None
    """Partitions that changed their owner although the previous owner is still a member; None if
    the previous assignment is unknown."""
    needless: int | None
    """How many of these moves balance did not require; None if unknown."""
    unassigned: tuple[PartitionKey, ...]
    """Partitions without an owner."""
    twice: tuple[PartitionKey, ...]
    """Partitions with several owners."""
    given_up: tuple[PartitionKey, ...] = ()
    """Those of `unassigned` that had an owner: a cooperative rebalance assigns them in the next
    generation (KIP-429)."""


def judge(
    given: Assignment, members: list[Subscriber], counts: dict[str, int], before: Assignment | None
) -> JudgedPlan:
    """Compare a captured assignment with those of the assignors. `counts`: partitions by topic, of
    the topics whose metadata was captured. `before`: the assignment of the generation before."""
    topics = {topic for member in members for topic in member.topics}
    known = bool(topics) and topics <= counts.keys()
    same_as = []
    if known:
        if by_range(members, counts) == given:
            same_as.append("range")
        if by_round_robin(members, counts) == given:
            same_as.append("roundrobin")
    sizes = [len(given.get(member.id, ())) for member in members]
    spread = max(sizes) - min(sizes) if sizes else 0
    owners: dict[PartitionKey, list[str]] = {}
    for member, partitions in given.items():
        for partition in partitions:
            owners.setdefault(partition, []).append(member)
    moved = needless = None
    if before is not None:
        moved, needless = _moves(given, before, owners, len(members))
        if len({member.topics for member in members}) > 1:
            # With different subscriptions `_moves` does not know the least number of moves.
            needless = None
        if known and spread <= 1 and needless == 0:
            same_as.append("sticky")
    unassigned = tuple(
        (topic, number)
        for topic in (sorted(topics) if known else ())
        for number in range(counts[topic])
        if (topic, number) not in owners
    )
    twice = tuple(partition for partition, of in sorted(owners.items()) if len(of) > 1)
    owned_before = set().union(*(before or {}).values())
    given_up = tuple(partition for partition in unassigned if partition in owned_before)
    return JudgedPlan(tuple(same_as), spread, moved, needless, unassigned, twice, given_up)


def carried(given: Assignment, before: Assignment | None, judged: JudgedPlan) -> Assignment:
    """Return the assignment to compare the next one with: partitions given up stay with their last
    owner until reassigned."""
    if before is None or not judged.given_up:
        return given
    given_up = set(judged.given_up)
    return {
        member: given.get(member, set()) | (before.get(member, set()) & given_up)
        for member in {*given, *before}
    }


def _moves(
    given: Assignment, before: Assignment, owners: dict[PartitionKey, list[str]], members: int
) -> tuple[int, int]:
    """Return how many partitions moved away from members that stayed, and how many of these moves
    balance did not require."""
    stayed = before.keys() & given.keys()
    moves = sum(
        partition in owners and member not in owners[partition]
        for member in stayed
        for partition in before[member]
    )
    # Balance requires each member to give up what exceeds its share: `share` partitions, or one
    # more for as many members as there are partitions left over.
    share, left_over = divmod(len(owners), members) if members else (0, len(owners))
    surplus = [len(before[member] & owners.keys()) - share for member in stayed]
    over = [count for count in surplus if count > 0]
    return moves, max(0, moves - (sum(over) - min(left_over, len(over))))


def zookeeper_ranges(
    subscriptions: Mapping[str, Mapping[str, int]], partitions: Mapping[str, int]
) -> dict[PartitionKey, str]:
    """Return the thread that owns each partition, by the range assignor of consumers that keep
    their group in ZooKeeper. `subscriptions`: number of threads by member and topic;
    `partitions`: their count by topic."""
    owners: dict[PartitionKey, str] = {}
    for topic, count in partitions.items():
        named = (
            f"{member}-{number}"
            for member, topics in subscriptions.items()
            for number in range(topics.get(topic, 0))
        )
        threads = sorted(islice(named, LIMITS.group_threads + 1))
        if not threads or len(threads) > LIMITS.group_threads:
            continue
        for thread, numbers in _ranges(count, threads):
            owners.update(((topic, number), thread) for number in numbers)
    return owners


def zookeeper_round_robin(
    subscriptions: Mapping[str, Mapping[str, int]], partitions: Mapping[str, int]
) -> dict[PartitionKey, str]:
    """As `zookeeper_ranges`, by the round robin assignor (since 0.8.2): all partitions in the order
    of the hashes of their names, in turn to all threads. Empty where members have different topics
    or numbers of threads, which the assignor refuses."""
    different = {frozenset(topics.items()) for topics in subscriptions.values()}
    counts = {count for topics in different for _, count in topics}
    if len(different) != 1 or len(counts) != 1:
        return {}
    (count,) = counts
    threads = sorted(f"{member}-{number}" for member in subscriptions for number in range(count))
    keys = [(topic, number) for topic, size in partitions.items() for number in range(size)]
    keys.sort(key=lambda key: _java_hash(f"[{key[0]},{key[1]}]"))
    return dict(zip(keys, cycle(threads), strict=False))


def _java_hash(text: str) -> int:
    """Return `String.hashCode()`, an int32."""
    code = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code - (1 << 32) if code >= 1 << 31 else code
