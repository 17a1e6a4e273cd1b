"""What the assignors of consumer groups would give, to hold against what a leader gave.

Range and round robin follow from members, subscriptions and partition counts alone (as Kafka's
clients compute them, static members first by their instance); sticky ones depend on what was
before, so only their promises are checked: balance, and partitions that stay where they were.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

PartitionKey: TypeAlias = tuple[str, int]
Assignment: TypeAlias = dict[str, set[PartitionKey]]


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
    """Return the assignment that a leader sent."""
    return {
        member: {(topic, number) for topic, numbers in topics for number in numbers}
        for member, topics in found
    }


def by_range(members: list[Subscriber], counts: dict[str, int]) -> Assignment:
    """Assign each topic on its own: consecutive partitions, the first members get one more."""
    out: Assignment = {member.id: set() for member in members}
    for topic in sorted({topic for member in members for topic in member.topics}):
        mine = [member for member in members if topic in member.topics]
        share, extra = divmod(counts.get(topic, 0), len(mine))
        at = 0
        for index, member in enumerate(mine):
            size = share + (index < extra)
            out[member.id] |= {(topic, number) for number in range(at, at + size)}
            at += size
    return out


def by_round_robin(members: list[Subscriber], counts: dict[str, int]) -> Assignment:
    """Assign all partitions in a row, dealt in turn to those who subscribe."""
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

    like: tuple[str, ...]
    """Names of those that would have given the same."""
    spread: int
    """Partitions of the fullest member minus those of the emptiest."""
    moved: int | None
    """Partitions that went to another member although the one before is still there; None when the
    assignment before is not known."""
    spare: int | None
    """How many of these moves balance did not need."""
    unassigned: tuple[PartitionKey, ...]
    twice: tuple[PartitionKey, ...]
    given_up: tuple[PartitionKey, ...] = ()
    """Of those without an owner, what had one before: in a cooperative rebalance they get their new
    one in the next generation."""


def judge(
    given: Assignment,
    members: list[Subscriber],
    counts: dict[str, int],
    before: Assignment | None,
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
    """Return the assignment that the next one is held against: what was given up belongs to its
    last owner until somebody else gets it."""
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
