"""Groups that rebalance, and why (question 2); groups whose members do not belong together, or have
nothing to do."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice
from operator import itemgetter
from typing import Final

from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import MS, limit
from kafkascope.analyzer.findings.view import DetectorInput, Finding
from kafkascope.analyzer.findings.words import Spelled, duration, listed, plural, spelled
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.groups.causes import DID_NOT_REJOIN, pace_ns
from kafkascope.analyzer.statistics.groups.model import Member, Rebalance, Story

QUIET: Final = frozenset({"formed", "joined", "left", "handover", "unknown"})
"""Causes of rebalances when members are started and stopped on purpose."""
CAUSES: Final = {
    "joined": "members joined",
    "left": "members left",
    "poll": "members exceeded max.poll.interval.ms",
    "expired": "members timed out",
    "replaced": "members restarted",
    "fenced": "members were fenced",
    "metadata": "topics changed",
    "rejoined": "members rejoined",
}
REBALANCE_IN_PROGRESS: Final = 27
INSTANCE: Final = ("FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID")
MEMBERSHIP: Final = (
    "api in {JoinGroup, SyncGroup, Heartbeat, LeaveGroup, ConsumerGroupHeartbeat, "
    "ShareGroupHeartbeat, StreamsGroupHeartbeat}"
)


def findings(view: DetectorInput) -> Iterator[Finding]:
    """Yield findings of each group."""
    for story in view.stories:
        yield from _fenced(story, view)
        yield from _returned(story, view)
        yield from _evicted(story, view)
        if story.rebalances:
            yield from _causes(story, view)
            yield from _many(story, view)
            yield from _slow(story, view)
        yield from _applications(story, view)
        yield from _idle(story, view)


def _causes(story: Story, view: DetectorInput) -> Iterator[Finding]:
    # Who is fenced went on after its group had moved on without it. Members with one instance id
    # have a finding of their own.
    rule_of = {
        "poll": "rebalance-poll",
        "expired": "rebalance-expired",
        "fenced": "rebalance-expired",
        "replaced": "rebalance-restarts",
    }
    by_rule = by_key(
        (rule_of[_word(each)], each)
        for each in story.rebalances
        if _word(each) in rule_of and not (each.cause == "fenced" and _by_instance(each.text))
    )
    for name, found in by_rule.items():
        case, closed = "", ""
        if name == "rebalance-expired" and _died(story, view):
            case, closed = "ended", "; their connections were closed before"
        elif name == "rebalance-expired":
            rejoined = not all(DID_NOT_REJOIN in each.text for each in found)
            case = "" if rejoined else "did-not-rejoin"
            case = "consumer-protocol" if story.protocol == "consumer" else case
        yield _finding(
            name,
            story,
            found,
            f"{len(found)} of {plural(len(story.rebalances), 'rebalance')} of group "
            f"{spelled(story.group)}: {listed(dict.fromkeys(each.text for each in found), 2)}"
            f"{closed}",
            view,
            case,
        )
    gone = [m for m in story.members if m.state == "left" and "poll" in m.text.lower()]
    if gone and "rebalance-poll" not in by_rule:
        # These were the last of their group: nobody was left to rebalance.
        yield _of_members(
            "rebalance-poll",
            story,
            gone,
            f"{plural(len(gone), 'member')} left group {spelled(story.group)}, which is empty "
            f"then: {listed((f'{m.label} {m.text}' for m in gone), 2)}",
            MEMBERSHIP,
            view,
        )


def _died(story: Story, view: DetectorInput) -> bool:
    """Return whether the clients of all members that timed out had ended their connections before:
    the system does so when a process ends, and not when it is slow or stopped."""
    _, joined = _places(view, story.group)
    closed = _closed(view)
    gone = [member for member in story.members if member.state == "expired"]
    return bool(gone) and all(
        (ended := closed.get(place)) is not None
        and ended - (member.last_ns or 0) < _session_ns(member)
        for member in gone
        for place in joined.get(member.id, {""})
    )


@DetectorInput.once
def _closed(view: DetectorInput) -> dict[str, int]:
    """Return when clients ended their connections, by address."""
    return {
        line["client_address"]: line["ended"]
        for line in view.lines
        if str(line["end"]).startswith("client")
    }


def _fenced(story: Story, view: DetectorInput) -> Iterator[Finding]:
    """Yield findings about static members that share an instance id: no rebalance shows it."""
    fenced = [m for m in story.members if m.state == "fenced" and _by_instance(m.text)]
    if not fenced:
        return
    who = (
        f"{m.label} (instance {m.instance})" + (f" by {m.holder}" if m.holder else "")
        for m in fenced
    )
    were = "was fenced by another" if len(fenced) == 1 else "were fenced by others"
    instances = sorted({m.instance or "" for m in fenced})[: LIMITS.listed - 1]
    yield _of_members(
        "static-conflict",
        story,
        fenced,
        f"{plural(len(fenced), 'member')} of group {spelled(story.group)} {were} with the same "
        f"group.instance.id: {listed(who, 3)}",
        f"error in {{{', '.join(INSTANCE)}}}",
        view,
        instance=list(map(spelled, instances)),
    )


def _returned(story: Story, view: DetectorInput) -> Iterator[Finding]:
    """Yield members that left after their max.poll.interval.ms, gave no reason, and came back
    on the same connection: librdkafka does so when its application does not poll. One that was
    closed and made anew has other connections."""
    found = []
    left, joined = _places(view, story.group)
    by_client = by_key(
        ((each.client_id, each.host), (each.first_ns, each.id))
        for each in sorted(story.members, key=lambda each: (each.first_ns or 0, each.id))
        if each.first_ns is not None
    )
    for gone in story.members:
        if gone.state != "left" or gone.text != "left" or not gone.rebalance_ms:
            continue
        if gone.first_ns is None or gone.gone_ns is None or not gone.client_id:
            continue
        if gone.gone_ns - gone.first_ns >= gone.rebalance_ms * MS:
            beginnings = by_client[gone.client_id, gone.host]
            back = next(_came_back(gone, beginnings, left, joined), None)
            found += [(gone, back)] if back is not None else []
    if not found:
        return
    gone, back = found[0]
    members = [each for each, _ in found]
    yield _of_members(
        "rebalance-poll",
        story,
        members,
        f"{spelled(gone.label)} left group {spelled(story.group)} and rejoined "
        f"{_times(len(found))}, {duration(back)} later on the same connection, consistent with "
        f"exceeding max.poll.interval.ms ({(gone.rebalance_ms or 0) / 1000:g} s)",
        "api in {JoinGroup, LeaveGroup}",
        view,
        client=view.clients((each.client_id, each.host) for each in members)[: LIMITS.listed],
    )


def _evicted(story: Story, view: DetectorInput) -> Iterator[Finding]:
    """Yield members that were silent, and heard later that they had been evicted: a group that
    they were alone in did not rebalance meanwhile."""
    evictions = [each for each in story.rebalances if each.cause in ("expired", "fenced")]
    found = [
        (each, each.gone_ns - each.last_ns)
        for each in story.members
        if each.state == "fenced" and each.instance is None
        if each.gone_ns is not None and each.last_ns is not None
    ]
    found = [(each, silent) for each, silent in found if silent >= _session_ns(each)]
    if not found or evictions:
        return
    late = _rejoin_times(view, story)
    silences = (
        f"{m.label} did not rejoin for {duration(late[m.id])} after "
        f"REBALANCE_IN_PROGRESS and {m.text}"
        if m.id in late
        else f"{m.label} sent no heartbeat for {duration(ns)} and {m.text}"
        for m, ns in found
    )
    case = "did-not-rejoin" if all(m.id in late for m, _ in found) else ""
    yield _of_members(
        "rebalance-expired",
        story,
        [each for each, _ in found],
        f"{plural(len(found), 'member')} of group {spelled(story.group)} timed out: "
        f"{listed(silences, 2)}",
        MEMBERSHIP,
        view,
        case="consumer-protocol" if story.protocol == "consumer" else case,
        client=view.clients((m.client_id, m.host) for m, _ in found)[: LIMITS.listed],
        error=["UNKNOWN_MEMBER_ID"],
    )


def _rejoin_times(view: DetectorInput, story: Story) -> dict[str, int]:
    """Return, by member, how long its heartbeats were answered with REBALANCE_IN_PROGRESS until it
    was evicted: sarama sends heartbeats while the handler of a partition still runs."""
    begun: dict[str, int] = {}
    last: dict[str, int] = {}
    late: dict[str, int] = {}
    sessions = {member.id: _session_ns(member) for member in story.members}
    for event in view.base.groups.events(story.group):
        name = event.about.get("member") or ""
        if event.kind == "join":
            begun.pop(name, None)
        elif event.kind == "error" and event.about["error"] == REBALANCE_IN_PROGRESS:
            begun.setdefault(name, event.time_ns)
            last[name] = event.time_ns
        elif event.kind == "error" and name in begun:
            if event.time_ns - last[name] < sessions.get(name, 0):
                late[name] = event.time_ns - begun[name]
            del begun[name]
    return late


def _many(story: Story, view: DetectorInput) -> Iterator[Finding]:
    usual = {"formed", "handover", "unknown"}
    if story.type == "connect":
        # Each connector that is made or changed is one; workers keep their other tasks.
        usual.add("metadata")
    found = [r for r in story.rebalances if r.cause not in usual]
    if len(found) < limit("rebalances.many"):
        return
    odd = sum(r.cause not in QUIET for r in found)
    returns = _returns(story)
    places = len(story.members) - sum(returns.values())
    span = found[-1].begin_ns - found[0].begin_ns
    restless = (
        max(returns.values(), default=0) >= limit("rebalances.returns")
        and len(found) >= places
        and span <= len(found) * limit("rebalances.every")
    )
    many = odd >= limit("rebalances.many")
    if not (restless or many or len(found) >= limit("rebalances.each") * (len(story.members) + 1)):
        return
    causes = Counter(map(_word, found))
    why = listed(f"{CAUSES[word]} ({count})" for word, count in causes.items())
    often = sorted(returns.items(), key=lambda each: (-each[1], each[0]))
    came = listed((Spelled(f"{view.client(*who)} ({count})") for who, count in often), 3)
    yield _finding(
        "rebalance-storm",
        story,
        found,
        f"Group {spelled(story.group)} rebalanced {_times(len(found))} in {duration(span)} "
        f"with {plural(places, 'member')}: {why}"
        + (f"; clients that left and came back: {came}" if came else ""),
        view,
    )


def _slow(story: Story, view: DetectorInput) -> Iterator[Finding]:
    slow = [r for r in story.rebalances if (r.duration_ns or 0) >= limit("rebalances.slow")]
    if slow:
        worst = max(slow, key=lambda each: each.duration_ns or 0)
        last = f"; {spelled(worst.slowest)} joined last" if worst.slowest else ""
        text = f"Group {spelled(story.group)} rebalanced for {duration(worst.duration_ns)}{last}"
        yield _finding("rebalance-slow", story, slow, text, view)


def _finding(
    name: str,
    story: Story,
    found: list[Rebalance],
    text: str,
    view: DetectorInput,
    case: str = "",
) -> Finding:
    evicted = [each for each in story.members if each.state in ("expired", "fenced")]
    who = evicted if name == "rebalance-expired" else []
    return view.finding(
        name,
        text,
        MEMBERSHIP,
        group=story.group,
        about={
            "client": view.clients((each.client_id, each.host) for each in who)[: LIMITS.listed]
        },
        count=len(found),
        span=(found[0].begin_ns, found[-1].end_ns or found[-1].begin_ns),
        number=found[0].number,
        case=case,
    )


def _of_members(
    name: str,
    story: Story,
    members: Sequence[Member],
    text: str,
    where: str,
    view: DetectorInput,
    case: str = "",
    **about: Sequence[str],
) -> Finding:
    """Return a finding about members that left, in their order."""
    return view.finding(
        name,
        text,
        where,
        group=story.group,
        count=len(members),
        span=(members[0].last_ns, members[-1].last_ns),
        case=case,
        about=about,
    )


def _session_ns(member: Member) -> float:
    """Return the nanoseconds of silence after which brokers evict a member."""
    if member.session_ms:
        return 0.95 * member.session_ms * MS
    # Brokers know it with KIP-848: a member sends three heartbeats in its session at least.
    return 3 * (pace_ns(member) or math.inf)


def _returns(story: Story) -> dict[tuple[str | None, str], int]:
    """Return (client id, host) -> how often such a client came back under a new member id after it
    had left or was gone."""
    clients = by_key(
        ((each.client_id, each.host), each) for each in story.members if each.first_ns is not None
    )
    found = {}
    for who, lives in clients.items():
        ends = sorted(m.last_ns for m in lives if m.state != "active" and m.last_ns is not None)
        used = 0
        for begin in sorted(m.first_ns for m in lives if m.first_ns is not None):
            # Each end is followed by one return; what is left over is another client beside it.
            used += used < len(ends) and ends[used] <= begin
        if used:
            found[who] = used
    return found


def _places(view: DetectorInput, group: str) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return, by member, the address and port from which it left; and those from which it
    joined."""
    left: dict[str, str] = {}
    joined: dict[str, set[str]] = {}
    for event in view.base.groups.events(group):
        about = event.about
        gone = event.kind == "leave" or (event.kind == "epoch" and about["before"] < 0)
        if gone:
            left[about["member"]] = about["place"]
        elif event.kind in ("join", "epoch"):
            joined.setdefault(about["member"], set()).add(about["place"])
    return left, joined


def _came_back(
    gone: Member,
    beginnings: list[tuple[int, str]],
    left: Mapping[str, str],
    joined: Mapping[str, set[str]],
) -> Iterator[int]:
    """Yield the nanoseconds until a member came back on the connection on which it left, the
    soonest first. `beginnings`: when each member of the client was first seen, in that order."""
    gone_ns = gone.gone_ns or 0
    behind = bisect_right(beginnings, gone_ns, key=itemgetter(0))
    for first_ns, id_ in islice(beginnings, behind, None):
        if first_ns - gone_ns >= limit("rebalances.back"):
            return
        if left.get(gone.id, "") in joined.get(id_, ()):
            yield first_ns - gone_ns


def _by_instance(text: str) -> bool:
    return any(name in text for name in INSTANCE)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _word(each: Rebalance) -> str:
    """Return the cause of a rebalance; `poll` where members left because they did not poll in
    time."""
    return "poll" if each.cause == "left" and "poll" in each.text.lower() else each.cause


# --- members that do not belong together, or have nothing to do


def _applications(story: Story, view: DetectorInput) -> Iterator[Finding]:
    apart = [
        (one, other)
        for one, other in _neighbours(story.members)
        if not set(one.topics) & set(other.topics)
    ]
    if not apart:
        return
    sides = by_key((each.topics, _name(each, view)) for pair in apart for each in pair)
    texts = (
        Spelled(f"{listed(sorted(set(clients)), 2)} to {listed(topics, 2)}")
        for topics, clients in sorted(sides.items())
    )
    clients = sorted({name for names in sides.values() for name in names})
    yield view.finding(
        "two-applications",
        f"Group {spelled(story.group)} has members that subscribe to different topics: "
        f"{listed(texts, 3)}",
        MEMBERSHIP,
        group=story.group,
        count=len(clients),
        span=(max(each.first_ns or 0 for each in apart[0]), story.last_ns),
        about={
            "client": clients,
            "topic": map(spelled, sorted({topic for topics in sides for topic in topics})),
        },
    )


def _idle(story: Story, view: DetectorInput) -> Iterator[Finding]:
    last = max((max(each.epochs) for each in story.members if each.epochs), default=None)
    there = [each for each in story.members if last in each.epochs]
    known = [each for each in there if each.assigned is not None]
    idle = [each for each in known if not any(numbers for _, numbers in each.assigned or ())]
    given = sum(len(numbers) for each in known for _, numbers in each.assigned or ())
    if story.type not in ("", "consumer") or len(known) < len(there):
        return
    if not idle or not given or given >= len(there):
        return
    topics = sorted({topic for each in there for topic in each.topics})
    of = f" of {listed(topics, 2)}" if topics else ""
    are = "is" if len(idle) == 1 else "are"
    yield view.finding(
        "idle-members",
        f"{len(idle)} of {plural(len(there), 'member')} of group {spelled(story.group)} {are} "
        f"idle (no partition): the group has {plural(given, 'partition')}{of}",
        MEMBERSHIP,
        group=story.group,
        count=len(idle),
        span=(min(each.first_ns or story.first_ns for each in idle), story.last_ns),
        about={"client": sorted({_name(e, view) for e in idle})},
    )


def _neighbours(members: list[Member]) -> Iterator[tuple[Member, Member]]:
    """Yield pairs of members with subscriptions that were there at the same time: each member with
    one of every other subscription."""
    by_topics = by_key(
        (each.topics, each)
        for each in members
        if each.topics and each.first_ns is not None and each.last_ns is not None
    )
    for topics, others in combinations(sorted(by_topics)[: LIMITS.compared_subscriptions], 2):
        for one in by_topics[topics]:
            for other in by_topics[others]:
                if _overlap(one, other):
                    yield one, other
                    break


def _overlap(one: Member, other: Member) -> bool:
    return (one.first_ns or 0) < (other.last_ns or 0) and (other.first_ns or 0) < (one.last_ns or 0)


def _name(member: Member, view: DetectorInput) -> str:
    return view.client(member.client_id, member.host) if member.client_id else spelled(member.label)
