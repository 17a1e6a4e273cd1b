"""The rebalances of a group and their causes, and the lives of its members, from its events.

A rebalance of a classic group is a new generation: from the first JoinGroup for it to the last
SyncGroup answered. In groups without JoinGroup it is a new epoch of the group: from the heartbeat
that caused it to the last member that got it. Members that vanish without a request are found by
comparing with the members before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.groups.causes import Causes, pace_ns
from kafkascope.analyzer.statistics.groups.members import (
    Timed,
    fill_silences,
    members_of,
    note_fates,
)
from kafkascope.analyzer.statistics.groups.model import (
    Member,
    Presence,
    Reason,
    Rebalance,
    Story,
    span_of,
)
from kafkascope.analyzer.statistics.thresholds import limit


def story_of(
    group: str,
    protocols: Sequence[str],
    events: list[Event],
    presences: dict[tuple[str, int], Presence],
    dropped: int = 0,
) -> Story:
    """Return the story of a group; events in order, presences by member and generation. `dropped`:
    older events that are left out."""
    members = members_of(events, presences)
    classic = any(event.kind in ("join", "sync") for event in events)
    rebalances = _Classic(events, members, presences).rebalances() if classic else []
    evictions: list[tuple[str, int, int]] = []
    if any(event.kind == "epoch" for event in events):
        epochs = _Epochs(events, members, presences)
        rebalances += epochs.rebalances()
        evictions = epochs.evictions
        rebalances.sort(key=lambda each: each.begin_ns)
    note_fates(events, members)
    for member in members.values():
        fill_silences(member)
    joins = [event.about for event in events if event.kind == "join"]
    assignors = [event.about.get("assignor") for event in events]
    times = [event.time_ns for event in events]
    times += [p.first_ns for p in presences.values() if p.first_ns is not None]
    ends = [event.end_ns for event in events]
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
        dropped=dropped,
        evictions=evictions,
    )


class _Classic(Causes):
    """Rebalances by generation of JoinGroup's answers."""

    def rebalances(self) -> list[Rebalance]:
        found: list[Rebalance] = []
        before: set[str] | None = None
        whole = False
        before_ns = before_end_ns = 0
        last_topics: dict[str, list[str]] = {}
        for generation, here, synced in self._generations():
            listed = [name for event in here for name in event.about["members"]]
            now = set(listed) | {event.about["member"] for event in here}
            begin = min(event.time_ns for event in here)
            answers = [e.about["end_ns"] for e in (*here, *synced)]
            end = max((each for each in answers if each is not None), default=None)
            since, known = (before_ns, before_end_ns), whole and bool(listed)
            why = self._why(here, now, before, known, since, begin, end, last_topics)
            slowest = max(here, key=lambda event: event.time_ns).about["member"]
            last = self.label(slowest) if len(now) > 1 else ""
            number = min(here).number
            found.append(Rebalance(generation, begin, end, *why, self.persons(now), last, number))
            for event in here:
                last_topics[event.about["member"]] = event.about["topics"]
            before, whole, before_ns, before_end_ns = now, bool(listed), begin, end or begin
        return found

    def _generations(self) -> Iterator[tuple[int, list[Event], list[Event]]]:
        """Yield (number, joins, syncs) of each generation, in the order of time."""
        done = [event for event in self.events if event.about.get("error") == 0]
        joins, syncs = (
            by_key((event.about["generation"], event) for event in done if event.kind == kind)
            for kind in ("join", "sync")
        )
        lives: list[tuple[int, list[Event], int | None]] = []
        for number, here in joins.items():
            runs = list(_split(sorted(here)))
            ends = [run[0].time_ns for run in runs[1:]]
            lives += [(number, run, end) for run, end in zip(runs, [*ends, None], strict=True)]
        for number, run, end in sorted(lives, key=lambda each: each[1][0].time_ns):
            synced = [
                event
                for event in syncs.get(number, ())
                if run[0].time_ns <= event.time_ns and (end is None or event.time_ns < end)
            ]
            yield number, run, synced

    def _why(
        self,
        here: list[Event],
        now: set[str],
        before: set[str] | None,
        whole: bool,
        since: tuple[int, int],
        begin_ns: int,
        end_ns: int | None,
        last_topics: dict[str, list[str]],
    ) -> Reason:
        before_ns, before_end_ns = since
        generation = here[0].about["generation"]
        if before is None:
            if generation == 1:
                return "formed", f"{self.labels(now)} formed the group"
            # With no id, or with one that it was just given.
            ids = self.given_ids
            new = {
                event.about["member"]
                for event in here
                if event.about["new"] or event.about["member"] in ids
            }
            if new:
                return "joined", f"{self.labels(new)} joined"
            return "unknown", "the previous generation was not captured"
        until = end_ns if end_ns is not None else begin_ns
        came = now - before
        if came == now and before <= set(self.departures(before_ns, begin_ns)):
            return "formed", f"{self.labels(now)} joined after all other members had left"
        # Without the leader's list only those who say goodbye are known to be gone.
        gone = before - now if whole else set(self.departures(before_ns, until)) & before
        found = self.cause(came, gone, before_ns, begin_ns, until)
        if found is not None:
            return found
        return self._rejoined(here, last_topics, begin_ns - before_end_ns)

    def _rejoined(
        self, here: list[Event], last_topics: dict[str, list[str]], pause_ns: int
    ) -> Reason:
        """Return why the same members rebalanced, from the first to join. `pause_ns`: since the
        rebalance before."""
        first = min(here)
        about, who = first.about, self.label(first.about["member"])
        if about["new"] and about["instance"]:
            # Else the broker would have answered it without a rebalance.
            return "rejoined", f"static member {who} rejoined with another subscription"
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
        soon = pause_ns < limit("rebalances.handover")
        given_up = "cooperative" in (about["assignor"] or "") and soon
        if "revoke" in reason or (given_up and not reason):
            return "handover", f"{who} rejoined, after releasing partitions for others"
        if reason:
            text = f"{who} rejoined: {reason}"
            known = any(word in reason for word in ("metadata", "topic", "partition"))
            return ("metadata" if known else "rejoined"), text
        if about["leads"] and about["type"] == "connect":
            return "metadata", f"the leader {who} rejoined, as on a connector change"
        if about["leads"]:
            return "metadata", f"the leader {who} rejoined, as on a topic change"
        return "rejoined", f"{who} rejoined"


def _split(joins: list[Event]) -> Iterator[list[Event]]:
    """Yield the joins of one generation, by life of the group: brokers forget a group without
    members and offsets, and its generations begin at 1 again."""
    # The leader's list has all members of a generation, but for a static one that restarted: that
    # gets the same generation under a new id.
    run: list[Event] = []
    there: set[str] = set()
    listed = False
    for event in joins:
        about = event.about
        mine = {about["member"], *about["members"]}
        listed = listed or bool(about["members"])
        if run and listed and not mine & there and not about["instance"]:
            yield run
            run, there, listed = [], set(), bool(about["members"])
        run.append(event)
        there |= mine
    if run:
        yield run


class _Epochs(Causes):
    """Rebalances by epoch of the group, from its members' heartbeats (KIP-848 and later)."""

    def rebalances(self) -> list[Rebalance]:
        there_in: dict[int, set[str]] = {}
        ended: list[tuple[int, str]] = []
        for name, member in self.members.items():
            for number in member.epochs:
                there_in.setdefault(number, set()).add(name)
            if member.last_ns is not None:
                ended.append((member.last_ns, name))
        silent = Timed(ended)
        changes = self._changes()
        epochs = by_key((event.about["generation"], event) for event in self._changing())
        found: list[Rebalance] = []
        before_ns: int | None = None
        gone_before: set[tuple[str, int]] = set()
        lives = (run for here in epochs.values() for run in self._lives(here))
        for here in sorted(lives, key=lambda run: run[0].time_ns):
            epoch = here[0].about["generation"]
            if all(event.about["generation"] == event.about["before"] for event in here):
                # Partitions that were revoked elsewhere arrive: part of an earlier rebalance.
                if found:
                    found[-1].end_ns = max(found[-1].end_ns or 0, here[-1].end_ns)
                continue
            begin, number = here[0].time_ns, here[0].number
            since = before_ns if before_ns is not None else 0
            came = {event.about["member"] for event in here if event.about["before"] == 0}
            left = set(self.departures(since, begin))
            present = {event.about["member"] for event in here}
            gone = left | {
                name
                for name in silent.between(since, begin - 1)
                if name not in left
                and name not in present
                and self._expired(self.members[name], begin)
            }
            for name, since_ns, told_ns in self.evictions:
                # One that came back under its id was there before and after.
                silent_long = begin - since_ns > 2 * (pace_ns(self.members[name]) or 0)
                new = (name, since_ns) not in gone_before and name not in present
                if since_ns < begin < told_ns and silent_long and new:
                    gone.add(name)
                    gone_before.add((name, since_ns))
            changed = changes.between(since + 1, here[-1].end_ns)
            subscribed: Reason | None = None
            if changed:
                subscribed = "metadata", f"{self.label(changed[0])} changed its subscription"
            if before_ns is None and not gone and epoch <= 2 and came:
                cause: Reason = "formed", f"{self.labels(came)} formed the group"
            else:
                cause = (
                    self.cause(came, gone, since, begin, begin)
                    or subscribed
                    or self._waited(found, since, begin)
                    or (
                        "unknown",
                        "no member joined or left in the capture; topics may have changed",
                    )
                )
            departed = self.departures(since, begin)
            if departed:
                # It began when the first one left.
                first = min(departed.values())
                begin, number = min((begin, number), (first.time_ns, first.number))
            last = max(here, key=attrgetter("end_ns"))
            there = there_in.get(epoch, set()) | came
            slowest = self.label(last.about["member"]) if len(there) > 1 else ""
            persons = self.persons(there)
            found.append(Rebalance(epoch, begin, last.end_ns, *cause, persons, slowest, number))
            before_ns = here[0].time_ns
        return found

    def _changing(self) -> Iterator[Event]:
        """Yield heartbeats with a new epoch, or other partitions than before: a member that sends
        all it knows, as after an error, gets the same ones again."""
        assigned: dict[str, object] = {}
        for event in self.events:
            about = event.about
            if event.kind != "epoch" or about["generation"] <= 0:
                continue
            repeated = about["assigned"] in (None, assigned.get(about["member"]))
            if about["generation"] != about["before"] or not repeated:
                yield event
            if about["assigned"] is not None:
                assigned[about["member"]] = about["assigned"]

    def _lives(self, here: list[Event]) -> Iterator[list[Event]]:
        """Yield the events of one epoch by life of the group: a member that left and joined again
        in the same epoch was the last one, and the broker had forgotten the group."""
        run: list[Event] = []
        for event in here:
            about = event.about
            again = run and about["before"] == 0
            if again and about["member"] in self.departures(run[0].time_ns, event.time_ns):
                yield run
                run = []
            run.append(event)
        if run:
            yield run

    def _expired(self, member: Member, until_ns: int) -> bool:
        """Return whether it was silent for longer than its own beats were apart."""
        pace = pace_ns(member)
        return pace is not None and until_ns - (member.last_ns or 0) > 3 * pace

    def _waited(self, found: list[Rebalance], since_ns: int, begin_ns: int) -> Reason | None:
        """Return members that joined before, in an epoch without partitions: brokers wait for more
        members (group.streams.initial.rebalance.delay.ms), for internal topics, or assign at
        intervals."""
        if [each.cause for each in found[:2]] == ["formed"] and not any(
            event.about["assigned"]
            for event in self.events
            if event.kind == "epoch" and event.end_ns < begin_ns
        ):
            return ("formed", "the first assignment: until then no member had partitions")
        waiting: set[str] = set()
        for event in self.beats.between(since_ns, begin_ns):
            about = event.about
            if event.end_ns >= begin_ns:
                continue
            if about["assigned"] or about["before"] <= 0:
                waiting.discard(about["member"])
            if about["before"] == 0 and not about["error"] and not about["assigned"]:
                waiting.add(about["member"])
        if not waiting:
            return None
        return "joined", f"{self.labels(waiting)} had joined and waited for partitions"

    def _changes(self) -> Timed[str]:
        found: list[tuple[int, str]] = []
        wanted: dict[str, object] = {}
        for event in self.events:
            about = event.about
            if event.kind != "epoch" or (about["topics"] is None and not about["pattern"]):
                continue
            # Some clients say it with each heartbeat until they are given partitions.
            member, here_too = about["member"], (about["topics"], about["pattern"])
            changed = wanted.get(member, here_too) != here_too
            wanted[member] = here_too
            if changed and about["before"] > 0:
                found.append((event.time_ns, member))
        return Timed(found)
