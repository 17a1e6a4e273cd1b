"""Consumers that own partitions and never fetch, that read more slowly than others write, commits
that skip or go back (questions 10 and 14): from the delivery audit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkascope.analyzer.findings.filters import all_of, among, one_of, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.versions import FETCH_OF_4, offered
from kafkascope.analyzer.findings.view import DetectorInput, Finding, client_key
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import ClientKey
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.delivery.ends import at
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition, Happening
from kafkascope.analyzer.statistics.groups.model import Member, Story

REACHED: Final = frozenset({"yes", "likely"})
COMMITS: Final = "api in {OffsetCommit, TxnOffsetCommit}"
HAPPENINGS: Final = {
    "beyond": ("commit-ahead", COMMITS, "skipped {records}"),
    "back": ("commit-back", COMMITS, "committed offsets that are {records} smaller"),
    "gone": ("commits-lost", "api == OffsetFetch", "lost the committed offsets of {partitions}"),
    "lost": ("log-truncated", "api == Fetch", "found at least {records} gone"),
    "again": ("redelivered", "api == Fetch", "fetched {records} again"),
    "twice": ("owned-twice", "", "assigned {partitions} to two members"),
    "none": ("owned-by-none", "", "left {last} without an owner"),
    "pause": ("consumer-silent", "", "had {pauses} in fetching"),
}
"""Kind -> rule, filter, what the group did."""


class LagGrowth(NamedTuple):
    """A partition whose lag grows."""

    place: AuditedPartition
    first_ns: int
    last_ns: int
    before: int
    """Records behind the end at first."""
    now: int
    read: int
    written: int


def findings(view: DetectorInput) -> Iterator[Finding]:
    """Yield findings by member, and from one audit of all groups."""
    for story in view.stories:
        for member in story.members:
            # Members of Connect own connectors.
            if story.type in ("", "consumer") and _is_fetchless(story, member, view):
                yield _fetchless(story, member, view)
    for group, partitions in view.audited:
        yield from _uncommitted(group, partitions, view)
        known = view.base.groups.story(group)
        members = known.members if known is not None else ()
        last_ns = max((each.gone_ns or 0 for each in members), default=0)
        found = (_growth(each, last_ns) for each in partitions)
        growing = [growth for growth in found if growth is not None]
        if growing:
            yield _lag(group, growing, view)
    happened = by_key(((each.group, each.kind), each) for each in view.audit.happenings())
    for (group, kind), here in sorted(happened.items()):
        if kind == "beyond" and view.has_gaps(group):
            continue  # the fetches of these records may be missing
        if kind == "pause":
            least = limit("consumer.silence")
            here = [each for each in here if "more than" in each.text or each.count >= least]
        if here:
            yield _happened(group, kind, here, view)


def _happened(group: str, kind: str, here: list[Happening], view: DetectorInput) -> Finding:
    name, where, words = HAPPENINGS[kind]
    count = sum(each.count for each in here)
    did = words.format(
        records=plural(count, "record"),
        partitions=plural(count, "partition"),
        last=plural(here[-1].count, "partition"),
        pauses=plural(len(here), "pause"),
    )
    numbers = sorted({each.number for each in here if each.number is not None})[: LIMITS.entities]
    more = f" (and {len(here) - 1} more)" if len(here) > 1 else ""
    by_hand = all(each.by_hand for each in here)
    return view.finding(
        name,
        f"Group {spelled(group)} {did}: {spelled(here[0].text)}{more}",
        f"group == {quoted(group)}" if kind == "pause" else all_of(where, among("number", numbers)),
        count=len(here),
        span=(here[0].time_ns, here[-1].time_ns),
        severity="note" if by_hand else None,
        case="by-hand" if by_hand and kind == "back" else kind if kind == "gone" else "",
        number=numbers[0] if numbers else None,
        about={
            **view.about_group(group, [each.topic for each in here if each.topic]),
            "client": view.clients({each.client for each in here if each.client}),
        },
    )


def _uncommitted(
    group: str, partitions: list[AuditedPartition], view: DetectorInput
) -> Iterator[Finding]:
    """Yield groups that read for long without a commit, or read again what they had read before
    a restart. Where a commit from before the capture is known, the group does commit: its
    members may have failed before the next one."""
    if any(each.placed for each in partitions):
        return
    again = [
        (each, here)
        for each in partitions
        for here in each.happenings
        if here.before_ns is not None and each.committed is None and _restarted(here, view)
    ]
    story = view.base.groups.story(group)
    slow = story is not None and any(member.returned for member in story.members)
    idle = [
        each
        for each in partitions
        if not slow  # who is evicted each time gets to no commit
        and each.records
        and (each.last_ns or 0) - (each.first_ns or 0) >= limit("commits.none")
    ]
    found = list({id(each): each for each, _ in again}.values()) if again else idle
    if not found:
        return
    failed = sum(each.failed for each in partitions)
    all_failed = f"all its {plural(failed, 'commit')} failed" if failed else ""
    first_ns = min(each.first_ns or 0 for each in found)
    last_ns = max(each.last_ns or 0 for each in found)
    if again:
        records = sum(here.count for _, here in again)
        places = listed(f"{each.topic}-{each.number}" for each in found)
        text = f"read {plural(records, 'record')} of {places} twice, because "
        text += all_failed or "it committed nothing"
    else:
        records = sum(each.records for each in idle)
        text = (
            f"fetched {plural(records, 'record')} of {plural(len(idle), 'partition')} within "
            f"{duration(last_ns - first_ns)} and {all_failed or 'committed nothing'}"
        )
    yield view.finding(
        "commits-lost",
        f"Group {spelled(group)} {text}",
        group=group,
        count=records,
        span=(first_ns, last_ns),
        about=view.about_group(group, [each.topic for each in found]),
    )


def _restarted(again: Happening, view: DetectorInput) -> bool:
    """Return whether all members that had fetched before were gone when records were fetched
    again: in a rebalance some stay, and a group that forms has several. Members that were evicted
    and came back did not restart."""
    before_ns = again.before_ns or 0
    story = view.base.groups.story(again.group)
    return again.time_ns - before_ns >= limit("commits.restart") and not any(
        (member.first_ns or 0) <= before_ns
        and (member.returned or (member.gone_ns or 0) >= again.time_ns)
        for member in (story.members if story is not None else ())
    )


# --- members that never fetch


def _fetchless(story: Story, member: Member, view: DetectorInput) -> Finding:
    client = view.client(member.client_id, member.host)
    assigned = member.assigned or []
    parts = [f"{topic}-{number}" for topic, numbers in assigned for number in numbers]
    span = offered(view, *client.key, "Fetch")
    offer = f"; the broker offers Fetch v{span.first} to v{span.last}" if span else ""
    return view.finding(
        "fetches-nothing",
        f"{client} owned {plural(len(parts), 'partition')} of group {spelled(story.group)} for "
        f"{duration(_owned_ns(story, member))} and sent no Fetch ({listed(parts)}){offer}",
        f"group == {quoted(story.group)}",
        count=len(parts),
        span=(member.first_ns, member.gone_ns),
        about={
            "client": client,
            **view.about_group(story.group, (str(topic) for topic, _ in assigned)),
        },
    )


def _owned_ns(story: Story, member: Member) -> int:
    """Return for how long a member may have owned partitions: from the first rebalance that ended
    after it had joined."""
    first = member.first_ns or 0
    ends = (each.end_ns for each in story.rebalances if each.end_ns is not None)
    return (member.gone_ns or 0) - min((end for end in ends if end >= first), default=first)


def _is_fetchless(story: Story, member: Member, view: DetectorInput) -> bool:
    """Return whether a member owned partitions and sent no Fetch where the capture would show one:
    it saw the client start, and all its brokers."""
    who = member.client_id or "", member.host
    if not any(numbers for _, numbers in member.assigned or ()):
        return False
    if _owned_ns(story, member) < limit("fetchless.time"):
        return False
    apis = _apis(view).get(who, set())
    if {"Fetch", "ShareFetch"} & apis or who in _partly_seen(view):
        return False
    span = offered(view, *who, "Fetch")
    gone = span is not None and span.first >= FETCH_OF_4
    # Else it learned of the brokers elsewhere.
    return "Metadata" in apis or (gone and "FindCoordinator" in apis)


@DetectorInput.once
def _apis(view: DetectorInput) -> dict[ClientKey, set[str]]:
    usages = view.base.clients.usages()
    found = by_key((usage.identity.key, usage.versions) for usage in usages)
    return {who: set().union(*versions) for who, versions in found.items()}


@DetectorInput.once
def _partly_seen(view: DetectorInput) -> set[ClientKey]:
    """Return the clients with connections from before the capture, and those that learned of a
    broker whose answers the capture may lack."""
    middle = view.base.connections.midstream()
    unreached = {
        client
        for line in view.base.cluster.rows(view.names)
        if line["node"] is not None and line["contacted"] not in REACHED
        for client in line["told_to"]
    }
    return unreached | {client_key(line) for line in view.lines if line["connection"] in middle}


# --- lag


def _lag(group: str, found: list[LagGrowth], view: DetectorInput) -> Finding:
    begin, end = min(each.first_ns for each in found), max(each.last_ns for each in found)
    before, now, read, written = map(sum, zip(*(each[3:] for each in found), strict=True))
    places = listed(f"{each.place.topic}-{each.place.number}" for each in found)
    named = [quoted(topic) for topic in sorted({each.place.topic for each in found})]
    return view.finding(
        "lag",
        f"Lag of group {spelled(group)} grew from {before:,} to {plural(now, 'record')} within "
        f"{duration(end - begin)} on {places}: {written * 1e9 / (end - begin):,.1f} records/s "
        f"written, {read * 1e9 / (end - begin):,.1f} records/s read",
        f"group == {quoted(group)} or (api == Fetch and {one_of('topic', named)})",
        count=len(found),
        span=(begin, end),
        about=view.about_group(group, (each.place.topic for each in found)),
    )


def _growth(place: AuditedPartition, last_ns: int) -> LagGrowth | None:
    """Return how the lag of a partition grows; None where it does not, or is not known. `last_ns`:
    when a member was heard of last. One that goes on without a fetch stands still until then."""
    # Between two commits the position seems to stand still: lag is what it is at commits.
    read = place.placed
    if len(read) < limit("lag.points"):
        read = [(time_ns, to) for time_ns, to, _, _ in place.points if to is not None]
    if read and place.last_ns is not None and last_ns - place.last_ns >= limit("lag.span"):
        read = [*read, (last_ns, read[-1][1])]
    ends = ((time_ns, offset, at(place.ends, time_ns)) for time_ns, offset in read)
    lags = [(time_ns, to, max(end, to)) for time_ns, to, end in ends if end is not None]
    if len(lags) < limit("lag.points"):
        return None
    (first_ns, from_, first_end), (last_ns, to, last_end) = lags[0], lags[-1]
    now, before, span = last_end - to, first_end - from_, last_ns - first_ns
    moved, written = max(0, to - from_), last_end - first_end
    least = limit("lag.many" if span < limit("lag.span") else "lag.records")
    if span <= 0 or now < least:
        return None
    slow = 100 * moved <= limit("lag.share") * written
    # Records that wait, at the speed at which they are read.
    behind = now * span >= limit("lag.time") * moved
    if slow and behind and _rises(lags, first_ns, span):
        return LagGrowth(place, first_ns, last_ns, before, now, moved, written)
    return None


def _rises(lags: list[tuple[int, int, int]], first_ns: int, span: int) -> bool:
    """Return whether the least lag of each third of the time is more than that of the one before: a
    burst that is read soon after does not count."""
    thirds = by_key(
        (min(2, 3 * (time_ns - first_ns) // span), end - offset) for time_ns, offset, end in lags
    )
    one, two, three = (min(thirds.get(third, ()), default=None) for third in range(3))
    if one is None or three is None:
        return False
    middle = (one + three) // 2 if two is None else two
    return one < middle < three and three >= limit("lag.grown") * one
