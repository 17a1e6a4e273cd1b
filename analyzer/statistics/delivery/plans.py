"""What assignors of consumer groups would give, to hold against what a leader, or ZooKeeper's
consumers, gave.

Range and round robin follow from members, subscriptions and partition counts alone (as Kafka's
clients compute them, static members first by their instance); sticky ones depend on what was
before, so only their promises are checked: balance, and partitions that stay where they were.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Mapping
from itertools import islice
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


def subscribers(found: tuple[Any, ...]) -> list[Subscriber]:
    """Return the members in the order in which assignors take them: static members by instance,
    then the others."""
    members = [Subscriber(*each) for each in found]
    return sorted(members, key=lambda m: (not m.instance, m.instance or m.id))


def assignment(found: tuple[Any, ...]) -> Assignment:
    return {
        member: {(topic, number) for topic, numbers in topics for number in numbers}
        for member, topics in found
    }


def by_range(members: list[Subscriber], counts: dict[str, int]) -> Assignment:
    """Assign each topic on its own: consecutive partitions, the first members get one more."""
    # As RangeAssignor, which also sorts members as `subscribers` does (static ones since KIP-345).
    out: Assignment = {member.id: set() for member in members}
    for topic in sorted({topic for member in members for topic in member.topics}):
        mine = [member for member in members if topic in member.topics]
        for member, numbers in _blocks(counts.get(topic, 0), mine):
            out[member.id] |= {(topic, number) for number in numbers}
    return out


def _blocks(count: int, owners: list[T]) -> Iterator[tuple[T, range]]:
    """Yield the consecutive partitions of each owner; the first ones get one more."""
    # Consumers of 0.8 divide in the same way, among their threads.
    each, more = divmod(count, len(owners))
    for at, owner in enumerate(owners):
        begin = each * at + min(at, more)
        yield owner, range(begin, begin + each + (at < more))


def by_round_robin(members: list[Subscriber], counts: dict[str, int]) -> Assignment:
    """Assign all partitions in a row, dealt in turn to the subscribed members."""
    # As RoundRobinAssignor: a member that is not subscribed is passed over, and the turn is not
    # made up for.
    out: Assignment = {member.id: set() for member in members}
    at = 0
    for topic in sorted({topic for member in members for topic in member.topics}):
        for number in range(counts.get(topic, 0)):
            while topic not in members[at % len(members)].topics:
                at += 1
            out[members[at % len(members)].id].add((topic, number))
            at += 1
    return out


class JudgedPlan(NamedTuple):
    """A leader's assignment held against the assignors."""

    same_as: tuple[str, ...]
    """Names of those that would have given the same."""
    spread: int
    """Partitions of the fullest member minus those of the emptiest."""
    moved: int | None
    """Partitions that went to another member although the one before is still there; None when the
    assignment before is not known."""
    needless: int | None
    """How many of these moves balance did not need."""
    unassigned: tuple[PartitionKey, ...]
    twice: tuple[PartitionKey, ...]
    given_up: tuple[PartitionKey, ...] = ()
    """Of those without an owner, what had one before: in a cooperative rebalance they get their new
    one in the next generation."""


def judge(
    given: Assignment, members: list[Subscriber], counts: dict[str, int], before: Assignment | None
) -> JudgedPlan:
    """Compare an assignment with those of known assignors; `counts` are partitions by topic, as far
    as they are known."""
    topics = {topic for member in members for topic in member.topics}
    known = bool(topics) and all(topic in counts for topic in topics)
    like = []
    if known:
        if by_range(members, counts) == given:
            like.append("range")
        if by_round_robin(members, counts) == given:
            like.append("roundrobin")
    sizes = [len(given.get(member.id, ())) for member in members]
    spread = max(sizes) - min(sizes) if sizes else 0
    owners: dict[PartitionKey, list[str]] = {}
    for member, places in given.items():
        for place in places:
            owners.setdefault(place, []).append(member)
    moved = spare = None
    if before is not None:
        moved, spare = _moves(given, before, owners, len(members))
        if len({member.topics for member in members}) > 1:
            # Who may take what differs: the least number of moves is not that simple.
            spare = None
        if known and spread <= 1 and spare == 0:
            like.append("sticky")
    missing = (
        [
            (topic, number)
            for topic in sorted(topics)
            for number in range(counts[topic])
            if (topic, number) not in owners
        ]
        if known
        else []
    )
    twice = [place for place, found in sorted(owners.items()) if len(found) > 1]
    had = {place for places in (before or {}).values() for place in places}
    given_up = tuple(place for place in missing if place in had)
    return JudgedPlan(tuple(like), spread, moved, spare, tuple(missing), tuple(twice), given_up)


def carried(given: Assignment, before: Assignment | None, judged: JudgedPlan) -> Assignment:
    """Return the assignment to compare the next one with: partitions given up stay with their last
    owner until reassigned."""
    if before is None or not judged.given_up:
        return given
    up = set(judged.given_up)
    return {
        member: given.get(member, set()) | (before.get(member, set()) & up)
        for member in {*given, *before}
    }


def _moves(
    given: Assignment, before: Assignment, owners: dict[PartitionKey, list[str]], members: int
) -> tuple[int, int]:
    stay = {name for name in before if name in given}
    moves = [
        (name, place)
        for name in stay
        for place in before[name]
        if place in owners and name not in owners[place]
    ]
    # Who had more than its share has to give the surplus away; some may keep one more than others.
    floor = len(owners) // members if members else 0
    held = [len(before[name] & owners.keys()) for name in stay]
    over = sum(count > floor for count in held)
    extra = len(owners) - floor * members
    needed = sum(max(0, count - floor) for count in held) - min(extra, over)
    return len(moves), max(0, len(moves) - max(0, needed))


def ranges(
    subscriptions: Mapping[str, Mapping[str, int]], partitions: Mapping[str, int]
) -> dict[PartitionKey, str]:
    """Return the thread that each partition belongs to, as consumers of 0.8 compute it."""
    found: dict[PartitionKey, str] = {}
    for topic, count in partitions.items():
        every = (
            f"{member}-{number}"
            for member, topics in subscriptions.items()
            for number in range(topics.get(topic, 0))
        )
        threads = sorted(islice(every, LIMITS.group_threads + 1))
        if not threads or len(threads) > LIMITS.group_threads:
            continue
        for thread, numbers in _blocks(count, threads):
            found.update(((topic, number), thread) for number in numbers)
    return found


def round_robin(
    subscriptions: Mapping[str, Mapping[str, int]], partitions: Mapping[str, int]
) -> dict[PartitionKey, str]:
    """Return the thread that each partition belongs to, by the other assignor (since 0.8.2): all
    partitions in the order of the hashes of their names, one after the other to all threads. Empty
    where members are not alike, which it refuses."""
    alike = list(subscriptions.values())
    if not alike or any(each != alike[0] for each in alike) or len(set(alike[0].values())) != 1:
        return {}
    (streams,) = set(alike[0].values())
    threads = sorted(f"{member}-{number}" for member in subscriptions for number in range(streams))
    parts = [(topic, number) for topic, count in partitions.items() for number in range(count)]
    parts.sort(key=lambda part: _hash(f"[{part[0]},{part[1]}]"))
    return dict(zip(parts, itertools.cycle(threads), strict=False)) if threads else {}


def _hash(text: str) -> int:
    """Return the hash that Java gives a text."""
    found = 0
    for unit in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        found = (31 * found + unit[0]) & 0xFFFFFFFF
    return found - (1 << 32) if found >= 1 << 31 else found
