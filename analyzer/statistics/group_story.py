"""The rebalances of a group and their causes, and the lives of its members, from its events.

A rebalance of a classic group is a new generation: from the first JoinGroup that asked for it to
the last SyncGroup answered. In groups without JoinGroup it is a new epoch of the group: from the
heartbeat that caused it to the last member that was told. Who is gone without a word is found by
comparing with the members before.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.statistics.group_members import (
    by_instance,
    fenced_text,
    left_text,
    members_of,
    tell_fates,
)
from analyzer.statistics.group_model import (
    FENCING,
    Cause,
    Mark,
    Member,
    Presence,
    Rebalance,
    Story,
    span_of,
)
from analyzer.statistics.mergeable import Event

__all__ = ["Presence", "Story", "story_of"]

SECOND = 1_000_000_000
MS = 1_000_000


def story_of(
    group: str,
    protocols: Sequence[str],
    events: list[Event],
    presences: dict[tuple[str, int], Presence],
) -> Story:
    """The story of a group; events in order, presences by member and generation."""
    members = members_of(events, presences)
    classic = any(event.kind in ("join", "sync") for event in events)
    rebalances = _Classic(events, members, presences).told() if classic else []
    if any(event.kind == "epoch" for event in events):
        rebalances += _Epochs(events, members, presences).told()
        rebalances.sort(key=lambda each: each.begin_ns)
    tell_fates(events, members)
    joins = [event.about for event in events if event.kind == "join"]
    assignors = [event.about.get("assignor") for event in events]
    times = [event.time_ns for event in events]
    times += [p.first_ns for p in presences.values() if p.first_ns is not None]
    ends = [event.about.get("end_ns") or event.time_ns for event in events]
    ends += [p.last_ns for p in presences.values() if p.last_ns is not None]
    return Story(
        group=group,
        protocol="/".join(protocols),
        type=next((about["type"] for about in joins if about["type"]), ""),
        assignor=next((each for each in reversed(assignors) if each), ""),
        generations=span_of({n for member in members.values() for n in member.epochs}),
        rebalances=rebalances,
        members=sorted(members.values(), key=lambda m: (m.first_ns or 0, m.id)),
        first_ns=min(times, default=0),
        last_ns=max(ends, default=0),
    )


# --- rebalances ---------------------------------------------------------------------------------


class _Rebalances:
    """What both kinds of groups share: who came, who went, and the sentence about it."""

    def __init__(
        self,
        events: list[Event],
        members: dict[str, Member],
        presences: dict[tuple[str, int], Presence],
    ) -> None:
        self.events = events
        self.members = members
        self.presences = presences

    def label(self, name: str) -> str:
        member = self.members.get(name)
        if member is None:
            return name
        same = [m for m in self.members.values() if m.label == member.label]
        return member.label if len(same) == 1 else f"{member.label} ({name[-8:]})"

    def labels(self, names: Sequence[str] | set[str]) -> str:
        shown = sorted(self.label(name) for name in names)
        rest = len(shown) - 3
        return ", ".join(shown[:3]) + (f" and {rest} more" if rest > 0 else "")

    def seen_before(self, name: str, until_ns: int) -> int | None:
        """When a member was heard of last before a moment."""
        return max(
            (
                min(presence.last_ns, until_ns)
                for (member, _), presence in self.presences.items()
                if member == name
                and presence.first_ns is not None
                and presence.last_ns is not None
                and presence.first_ns < until_ns
            ),
            default=None,
        )

    def silent(self, name: str, until_ns: int) -> str:
        """The sentence about a member that is gone without a word, which is now said of it."""
        member = self.members[name]
        seen = self.seen_before(name, until_ns)
        if seen is None:
            return f"{self.label(name)} is gone"
        silence = (until_ns - seen) / SECOND
        limit = (member.session_ms or 0) / 1000
        if limit and silence < limit and member.rebalance_ms:
            text = f"did not rejoin within {member.rebalance_ms / 1000:g} s (rebalance timeout)"
        else:
            session = f" (session {limit:g} s)" if limit else ""
            text = f"no heartbeat for {silence:.1f} s{session}"
        if member.state == "active" and (member.last_ns or 0) <= until_ns:
            member.state, member.text = "expired", text
            member.marks.append(Mark(seen, seen, "x"))
        return f"{self.label(name)}: {text}"

    def departures(self, since_ns: int, until_ns: int) -> dict[str, Event]:
        """Member -> the event with which it left, in a stretch of time."""
        found = {}
        for event in self.events:
            if since_ns <= event.time_ns <= until_ns and event.about.get("error") in (0, None):
                about = event.about
                if event.kind == "leave":
                    member = self.members.get(about["member"]) or by_instance(
                        self.members, about.get("instance")
                    )
                    if member is not None:
                        found[member.id] = event
                elif event.kind == "epoch" and about["before"] < 0:
                    found[about["member"]] = event
        return found

    def fenced(self, since_ns: int, until_ns: int) -> dict[str, int]:
        """Member -> the error with which it was fenced, in a stretch of time."""
        return {
            event.about["member"]: event.about["error"]
            for event in self.events
            if since_ns <= event.time_ns <= until_ns
            and event.about.get("error") in FENCING
            and event.about["member"] in self.members
        }

    def cause(
        self, came: set[str], gone: set[str], since_ns: int, begin_ns: int, end_ns: int
    ) -> tuple[Cause, str] | None:
        """Why, from who came and who went between two generations; None when nobody did."""
        left = self.departures(since_ns, end_ns)
        fenced = self.fenced(since_ns, begin_ns)
        texts: list[str] = []
        causes: list[Cause] = []
        for name in sorted(gone):
            if name in left:
                causes.append("left")
                texts.append(f"{self.label(name)} {left_text(left[name].about)}")
            elif name in fenced:
                causes.append("fenced")
                texts.append(f"{self.label(name)} {fenced_text(fenced[name])}")
            elif name in self.members:
                heir = self._heir(name, came)
                if heir is not None:
                    causes.append("replaced")
                    texts.append(f"{self.label(name)} came back as a new member")
                    came = came - {heir}
                else:
                    causes.append("expired")
                    texts.append(self.silent(name, begin_ns))
        if came:
            causes.append("joined")
            texts.append(f"{self.labels(came)} joined")
        if not causes:
            return None
        # What went wrong is said before what goes on every day.
        order: tuple[Cause, ...] = ("expired", "fenced", "replaced", "left", "joined")
        return min(causes, key=order.index), "; ".join(texts[:4])

    def _heir(self, name: str, came: set[str]) -> str | None:
        """The new member that is the same client, after a restart."""
        gone = self.members[name]
        for other in sorted(came):
            new = self.members.get(other)
            if new is None:
                continue
            static = gone.instance is not None and gone.instance == new.instance
            same = gone.client_id and (gone.client_id, gone.host) == (new.client_id, new.host)
            over = (gone.last_ns or 0) <= (new.last_ns or 0)
            twins = [
                m
                for m in self.members.values()
                if (m.client_id, m.host) == (new.client_id, new.host)
            ]
            # Several members of one client id cannot be told apart: only a restart leaves two.
            if static or (same and over and len(twins) == 2 and not self._together(gone, new)):
                return other
        return None

    def _together(self, one: Member, two: Member) -> bool:
        return (one.last_ns or 0) > (two.first_ns or 0)


class _Classic(_Rebalances):
    """Rebalances by generation of JoinGroup's answers."""

    def told(self) -> list[Rebalance]:
        joins: dict[int, list[Event]] = {}
        syncs: dict[int, list[Event]] = {}
        for event in self.events:
            about = event.about
            if about.get("error") != 0:
                continue
            if event.kind == "join":
                joins.setdefault(about["generation"], []).append(event)
            elif event.kind == "sync":
                syncs.setdefault(about["generation"], []).append(event)
        found: list[Rebalance] = []
        before: set[str] | None = None
        whole = False
        before_ns = 0
        last_topics: dict[str, list[str]] = {}
        for generation in sorted(joins):
            here = joins[generation]
            listed = [name for event in here for name in event.about["members"]]
            now = set(listed) | {event.about["member"] for event in here}
            begin = min(event.time_ns for event in here)
            answers = [e.about["end_ns"] for e in (*here, *syncs.get(generation, ()))]
            end = max((each for each in answers if each is not None), default=None)
            cause, text = self._why(
                here, now, before, whole and bool(listed), before_ns, begin, end, last_topics
            )
            slowest = max(here, key=lambda event: event.time_ns).about["member"]
            found.append(
                Rebalance(
                    generation,
                    begin,
                    end,
                    cause,
                    text,
                    len(now),
                    self.label(slowest) if len(now) > 1 else "",
                    min(here).number,
                )
            )
            for event in here:
                last_topics[event.about["member"]] = event.about["topics"]
            before, whole, before_ns = now, bool(listed), begin
        return found

    def _why(
        self,
        here: list[Event],
        now: set[str],
        before: set[str] | None,
        whole: bool,
        before_ns: int,
        begin_ns: int,
        end_ns: int | None,
        last_topics: dict[str, list[str]],
    ) -> tuple[Cause, str]:
        generation = here[0].about["generation"]
        if before is None:
            if generation == 1:
                return "formed", f"{self.labels(now)} formed the group"
            new = {event.about["member"] for event in here if self._is_new(event)}
            if new:
                return "joined", f"{self.labels(new)} joined"
            return "unknown", "the generation before is not in the capture"
        until = end_ns if end_ns is not None else begin_ns
        came = now - before
        if came == now and before <= set(self.departures(before_ns, begin_ns)):
            return "formed", f"{self.labels(now)} joined after all others had left"
        # Without the leader's list only those who say goodbye are known to be gone.
        gone = before - now if whole else set(self.departures(before_ns, until)) & before
        found = self.cause(came, gone, before_ns, begin_ns, until)
        if found is not None:
            return found
        return self._rejoined(here, last_topics)

    def _is_new(self, event: Event) -> bool:
        """Whether a member joins for the first time: with no id, or with one it was just given."""
        about = event.about
        if about["new"]:
            return True
        return any(
            other.kind == "join"
            and other.about["error"] == 79
            and other.about["member"] == about["member"]
            for other in self.events
        )

    def _rejoined(self, here: list[Event], last_topics: dict[str, list[str]]) -> tuple[Cause, str]:
        """The same members: the first to ask tells why."""
        first = min(here)
        about, who = first.about, self.label(first.about["member"])
        changed = [
            event
            for event in here
            if last_topics.get(event.about["member"], event.about["topics"])
            != event.about["topics"]
        ]
        if changed:
            return (
                "metadata",
                f"{self.label(changed[0].about['member'])} subscribed to other topics",
            )
        reason = about["reason"]
        if reason:
            text = f"{who} rejoined: {reason}"
            known = any(word in reason for word in ("metadata", "topic", "partition"))
            return ("metadata" if known else "rejoined"), text
        if about["leads"]:
            return "metadata", f"the leader {who} rejoined, as it does when its topics change"
        return "rejoined", f"{who} rejoined"


class _Epochs(_Rebalances):
    """Rebalances by epoch of the group, as its members' heartbeats tell (KIP-848 and later)."""

    def told(self) -> list[Rebalance]:
        epochs: dict[int, list[Event]] = {}
        for event in self.events:
            if event.kind == "epoch" and event.about["generation"] > 0:
                about = event.about
                if about["generation"] != about["before"] or about["assigned"] is not None:
                    epochs.setdefault(about["generation"], []).append(event)
        found: list[Rebalance] = []
        before_ns: int | None = None
        for epoch in sorted(epochs):
            here = epochs[epoch]
            if all(event.about["generation"] == event.about["before"] for event in here):
                # Partitions that were revoked elsewhere arrive: part of a rebalance told before.
                if found:
                    found[-1].end_ns = max(found[-1].end_ns or 0, _end(here[-1]))
                continue
            begin, number = here[0].time_ns, here[0].number
            since = before_ns if before_ns is not None else 0
            came = {event.about["member"] for event in here if event.about["before"] == 0}
            left = set(self.departures(since, begin))
            gone = left | {
                name
                for name, member in self.members.items()
                if member.last_ns is not None
                and since <= member.last_ns < begin
                and name not in left
                and name not in {event.about["member"] for event in here}
                and self._expired(member, begin)
            }
            if before_ns is None and not gone and epoch <= 2 and came:
                cause: tuple[Cause, str] = "formed", f"{self.labels(came)} formed the group"
            else:
                cause = self.cause(came, gone, since, begin, begin) or self._subscribed(since, here)
            departed = self.departures(since, begin)
            if departed:
                # It began when the first one left.
                first = min(departed.values())
                begin, number = min((begin, number), (first.time_ns, first.number))
            last = max(here, key=_end)
            there = {name for name, m in self.members.items() if epoch in m.epochs} | came
            found.append(
                Rebalance(
                    epoch,
                    begin,
                    _end(last),
                    *cause,
                    len(there),
                    self.label(last.about["member"]) if len(there) > 1 else "",
                    number,
                )
            )
            before_ns = here[0].time_ns
        return found

    def _expired(self, member: Member, until_ns: int) -> bool:
        """Whether it was silent for longer than its own beats were apart."""
        if member.first_ns is None or member.last_ns is None or member.beats < 2:
            return False
        pace = (member.last_ns - member.first_ns) / (member.beats - 1)
        return until_ns - member.last_ns > 3 * pace

    def _subscribed(self, since_ns: int, here: list[Event]) -> tuple[Cause, str]:
        """Nobody came or went: a subscription changed, or the broker saw other topics."""
        end = _end(here[-1])
        for event in self.events:
            if event.kind == "epoch" and since_ns < event.time_ns <= end:
                about = event.about
                if about["before"] > 0 and (about["topics"] is not None or about["pattern"]):
                    return "metadata", f"{self.label(about['member'])} subscribed anew"
        return "unknown", "nobody came or went in the capture; topics may have changed"


def _end(event: Event) -> int:
    return event.about["end_ns"] or event.time_ns
