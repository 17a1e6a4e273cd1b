"""Groups that rebalance, and why (question 2)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import ClassVar, Final, TypeAlias

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import MOST_NAMED, View, all_of, duration, listed, plural
from kafkascope.analyzer.statistics.groups.causes import DID_NOT_REJOIN
from kafkascope.analyzer.statistics.groups.model import Member, Rebalance, Story
from kafkascope.analyzer.text import Spelled, spelled

QUIET: Final = frozenset({"formed", "joined", "left", "handover", "unknown"})
"""What happens when members are started and stopped on purpose."""
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
MS: Final = 1_000_000
_Client: TypeAlias = tuple[str | None, str]
"""A client id, and the host that it is used on."""
REJOIN: Final = frozenset({27, 79})
"""REBALANCE_IN_PROGRESS and MEMBER_ID_REQUIRED: each rebalance has some."""
INSTANCE: Final = ("FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID")
ONE_EACH: Final = (
    "Give each consumer its own group.instance.id (such as the name of its pod), or none. Check "
    "whether an old instance keeps running beside its replacement."
)
BROKERS: Final = (
    "Check the member for long garbage collection pauses, a stopped machine or a blocked consumer. "
    "In the consumer protocol the broker sets the timeout: group.consumer.session.timeout.ms, or "
    "consumer.session.timeout.ms of the group."
)
REJOINING: Final = (
    "Lower max.poll.records, raise max.poll.interval.ms, or process records in other threads. A "
    "member rejoins at its next poll; the rebalance timeout is its max.poll.interval.ms. A process "
    "that ended without leaving the group is evicted in the same way."
)
MEMBERSHIP: Final = (
    "api in {JoinGroup, SyncGroup, Heartbeat, LeaveGroup, ConsumerGroupHeartbeat, "
    "ShareGroupHeartbeat, StreamsGroupHeartbeat}"
)


class Rebalances(Detector):
    """From the stories of the groups."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "rebalance-expired",
            "warning",
            "members evicted after session.timeout.ms",
            "Check the member for long garbage collection pauses, a stopped machine or a blocked "
            "heartbeat thread. Raise session.timeout.ms only if such pauses are expected: the "
            "broker evicts members after session.timeout.ms without a heartbeat.",
            "UNKNOWN_MEMBER_ID",
            brief="group {group} rebalanced",
        ),
        Rule(
            "rebalance-poll",
            "warning",
            "members that exceeded max.poll.interval.ms",
            "Lower max.poll.records, raise max.poll.interval.ms, or process records in other "
            "threads. Processing takes longer than max.poll.interval.ms.",
            brief="group {group} rebalanced",
            limits=("rebalances.back",),
        ),
        Rule(
            "static-conflict",
            "warning",
            "group.instance.id shared by several members",
            ONE_EACH,
            "FENCED_INSTANCE_ID",
            subject=("group",),
        ),
        Rule(
            "rebalance-restarts",
            "warning",
            "members that restarted without leaving the group",
            "Close consumers on shutdown, or set group.instance.id, so that a restart needs no "
            "rebalance.",
            brief="group {group} rebalanced",
        ),
        Rule(
            "rebalance-storm",
            "warning",
            "frequent rebalances",
            "Run `kafkascope groups INPUT GROUP --timeline` to see which members come and go. "
            "Static members, a cooperative assignor or the consumer protocol (KIP-848) make "
            "rebalances cheaper.",
            "REBALANCE_IN_PROGRESS",
            brief="group {group} rebalanced",
            limits=(
                "rebalances.many",
                "rebalances.returns",
                "rebalances.every",
                "rebalances.each",
                "rebalances.handover",
            ),
            errors=REJOIN,
        ),
        Rule(
            "rebalance-slow",
            "warning",
            "slow rebalances",
            "Poll more often, or use a cooperative assignor. All members of an eager group wait "
            "for the last one, which rejoins at its next poll.",
            brief="group {group} rebalanced",
            limits=("rebalances.slow",),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings of each group."""
        for story in view.stories():
            yield from self._fenced(story, view)
            yield from self._returned(story, view)
            if story.rebalances:
                yield from self._causes(story, view)
                yield from self._many(story, view)
                yield from self._slow(story, view)

    def _causes(self, story: Story, view: View) -> Iterator[Finding]:
        polls = [each for each in story.rebalances if _word(each) == "poll"]
        by_cause = {
            "rebalance-poll": polls,
            # Who is fenced went on after its group had moved on without it. Members with one
            # instance id have a finding of their own.
            "rebalance-expired": [
                r
                for r in story.rebalances
                if r.cause == "expired" or (r.cause == "fenced" and not _by_instance(r.text))
            ],
            "rebalance-restarts": [r for r in story.rebalances if r.cause == "replaced"],
        }
        for name, found in by_cause.items():
            if not found:
                continue
            texts = listed(dict.fromkeys(each.text for each in found), 2)
            yield self._finding(
                name,
                story,
                found,
                f"{len(found)} of {plural(len(story.rebalances), 'rebalance')} of group "
                f"{spelled(story.group)}: {texts}",
                view,
                _advice(found, story) if name == "rebalance-expired" else "",
            )
        if not polls:
            yield from self._alone(story, view)

    def _alone(self, story: Story, view: View) -> Iterator[Finding]:
        """Yield members that did not poll in time and were the last of their group: nobody was left
        to rebalance."""
        gone = [m for m in story.members if m.state == "left" and "poll" in m.text.lower()]
        if gone:
            yield view.finding(
                self.rule("rebalance-poll"),
                f"{plural(len(gone), 'member')} left group {spelled(story.group)}, which is empty "
                f"then: {listed((f'{m.label} {m.text}' for m in gone), 2)}",
                all_of(f"group == {quoted(story.group)}", MEMBERSHIP),
                count=len(gone),
                first_ns=gone[0].last_ns,
                last_ns=gone[-1].last_ns,
                about=[("group", spelled(story.group))],
            )

    def _fenced(self, story: Story, view: View) -> Iterator[Finding]:
        """Yield findings about static members that share an instance id: no rebalance tells of
        it."""
        fenced = [m for m in story.members if m.state == "fenced" and _by_instance(m.text)]
        if not fenced:
            return
        who = listed(
            (
                f"{m.label} (instance {m.instance})" + (f" by {m.holder}" if m.holder else "")
                for m in fenced
            ),
            3,
        )
        others = "another" if len(fenced) == 1 else "others"
        yield view.finding(
            self.rule("static-conflict"),
            f"{plural(len(fenced), 'member')} of group {spelled(story.group)} "
            f"{'was' if len(fenced) == 1 else 'were'} fenced by {others} with the same "
            f"group.instance.id: {who}",
            f"group == {quoted(story.group)} and error in {{{', '.join(INSTANCE)}}}",
            count=len(fenced),
            first_ns=fenced[0].last_ns,
            last_ns=fenced[-1].last_ns,
            about=[
                ("group", spelled(story.group)),
                *(
                    ("instance", spelled(each))
                    for each in sorted({m.instance or "" for m in fenced})
                ),
            ][:MOST_NAMED],
        )

    def _returned(self, story: Story, view: View) -> Iterator[Finding]:
        """Yield members that left after their max.poll.interval.ms, gave no reason, and came back
        on the same connection: librdkafka does so when its application does not poll. One that was
        closed and made anew has other connections."""
        found = []
        left, joined = _places(view, story.group)
        by_client: dict[_Client, list[tuple[int, str]]] = {}
        for each in story.members:
            if each.first_ns is not None:
                beginnings = by_client.setdefault((each.client_id, each.host), [])
                beginnings.append((each.first_ns, each.id))
        for beginnings in by_client.values():
            beginnings.sort()
        for gone in story.members:
            if gone.state != "left" or gone.text != "left" or not gone.rebalance_ms:
                continue
            if gone.first_ns is None or gone.last_ns is None or not gone.client_id:
                continue
            if gone.last_ns - gone.first_ns < gone.rebalance_ms * MS:
                continue
            back = next(_came_back(gone, by_client, left, joined), None)
            if back is not None:
                found.append((gone, back))
        if not found:
            return
        gone, back = found[0]
        who = sorted({view.client(each.client_id, each.host) for each, _ in found})[:MOST_NAMED]
        yield view.finding(
            self.rule("rebalance-poll"),
            f"{spelled(gone.label)} left group {spelled(story.group)} and rejoined "
            f"{_times(len(found))}, {duration(back)} later on the same connection, consistent with "
            f"exceeding max.poll.interval.ms ({(gone.rebalance_ms or 0) / 1000:g} s)",
            all_of(f"group == {quoted(story.group)}", "api in {JoinGroup, LeaveGroup}"),
            count=len(found),
            first_ns=gone.last_ns,
            last_ns=found[-1][0].last_ns,
            about=[("group", spelled(story.group)), *(("client", each) for each in who)],
        )

    def _many(self, story: Story, view: View) -> Iterator[Finding]:
        usual = {"formed", "handover", "unknown"}
        if story.type == "connect":
            # Each connector that is made or changed is one; workers keep their other tasks.
            usual.add("metadata")
        found = [r for r in story.rebalances if r.cause not in usual]
        if len(found) < limit("rebalances.many"):
            return
        odd = [r for r in found if r.cause not in QUIET]
        returns = _returns(story)
        places = len(story.members) - sum(returns.values())
        span = found[-1].begin_ns - found[0].begin_ns
        restless = (
            max(returns.values(), default=0) >= limit("rebalances.returns")
            and len(found) >= places
            and span <= len(found) * limit("rebalances.every")
        )
        if not restless and (
            len(odd) < limit("rebalances.many")
            and len(found) < limit("rebalances.each") * (len(story.members) + 1)
        ):
            return
        causes: dict[str, int] = {}
        for each in found:
            word = _word(each)
            causes[word] = causes.get(word, 0) + 1
        why = listed(f"{CAUSES[word]} ({count})" for word, count in causes.items())
        often = sorted(returns.items(), key=lambda each: (-each[1], each[0]))
        came = listed((Spelled(f"{view.client(*who)} ({count})") for who, count in often), 3)
        yield self._finding(
            "rebalance-storm",
            story,
            found,
            f"Group {spelled(story.group)} rebalanced {_times(len(found))} in {duration(span)} "
            f"with {plural(places, 'member')}: {why}"
            + (f"; clients that left and came back: {came}" if came else ""),
            view,
        )

    def _slow(self, story: Story, view: View) -> Iterator[Finding]:
        slow = [r for r in story.rebalances if (r.duration_ns or 0) >= limit("rebalances.slow")]
        if not slow:
            return
        worst = max(slow, key=lambda each: each.duration_ns or 0)
        last = f"; {spelled(worst.slowest)} joined last" if worst.slowest else ""
        text = f"Group {spelled(story.group)} rebalanced for {duration(worst.duration_ns)}{last}"
        yield self._finding("rebalance-slow", story, slow, text, view)

    def _finding(
        self,
        name: str,
        story: Story,
        found: list[Rebalance],
        text: str,
        view: View,
        advice: str = "",
    ) -> Finding:
        return view.finding(
            self.rule(name),
            text,
            all_of(f"group == {quoted(story.group)}", MEMBERSHIP),
            count=len(found),
            first_ns=found[0].begin_ns,
            last_ns=found[-1].end_ns or found[-1].begin_ns,
            number=found[0].number,
            advice=advice,
            about=[("group", spelled(story.group))],
        )


def _returns(story: Story) -> dict[tuple[str | None, str], int]:
    """Return (client id, host) -> how often such a client came back under a new member id after it
    had left or was gone."""
    clients: dict[tuple[str | None, str], list[Member]] = {}
    for each in story.members:
        if each.first_ns is not None:
            clients.setdefault((each.client_id, each.host), []).append(each)
    found = {}
    for who, lives in clients.items():
        ends = sorted(m.last_ns for m in lives if m.state != "active" and m.last_ns is not None)
        used = 0
        for begin in sorted(m.first_ns for m in lives if m.first_ns is not None):
            # Each end is followed by one return; what is left over is another client beside it.
            if used < len(ends) and ends[used] <= begin:
                used += 1
        if used:
            found[who] = used
    return found


def _places(view: View, group: str) -> tuple[dict[str, str], dict[str, set[str]]]:
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
    by_client: Mapping[_Client, list[tuple[int, str]]],
    left: Mapping[str, str],
    joined: Mapping[str, set[str]],
) -> Iterator[int]:
    """Yield after how many nanoseconds a member came back on the connection on which it left, the
    soonest first. `by_client`: when each member of a client was heard first, in that order."""
    assert gone.last_ns is not None
    beginnings, place = by_client.get((gone.client_id, gone.host), []), left.get(gone.id, "")
    behind = bisect_right(beginnings, gone.last_ns, key=itemgetter(0))
    for first_ns, id_ in islice(beginnings, behind, None):
        if first_ns - gone.last_ns >= limit("rebalances.back"):
            return
        if place in joined.get(id_, ()):
            yield first_ns - gone.last_ns


def _by_instance(text: str) -> bool:
    return any(name in text for name in INSTANCE)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _advice(expired: list[Rebalance], story: Story) -> str:
    """Return the fix for members that timed out; empty for that of the rule."""
    if story.protocol == "consumer":
        return BROKERS
    return REJOINING if all(DID_NOT_REJOIN in each.text for each in expired) else ""


def _word(each: Rebalance) -> str:
    """Return the cause of a rebalance; `poll` where members left because they did not poll in
    time."""
    return "poll" if each.cause == "left" and "poll" in each.text.lower() else each.cause
