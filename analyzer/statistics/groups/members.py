"""The members of a group: lookups of them and of their events, for each of thousands of rebalances;
and their lives: when they were there, what they did, how they ended.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any, Final, Generic, TypeVar

from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.groups import model

T = TypeVar("T")

MEMBER_ID_REQUIRED: Final = 79


class Timed(Generic[T]):
    """Values by their times."""

    def __init__(self, pairs: list[tuple[int, T]]) -> None:
        pairs = sorted(pairs, key=lambda pair: pair[0])
        self._times = [time for time, _ in pairs]
        self._values = [value for _, value in pairs]

    def between(self, since_ns: int, until_ns: int) -> list[T]:
        """Return the values of a stretch of time, both ends included, in order."""
        return self._values[
            bisect_left(self._times, since_ns) : bisect_right(self._times, until_ns)
        ]


class Members:
    """Members by their instance id, their label, their client."""

    def __init__(self, members: dict[str, model.Member]) -> None:
        self.members = members
        self._alike = Counter(member.label for member in members.values())
        self.at_hosts = Counter((member.label, member.host) for member in members.values())
        """How many have a label at a host."""
        self.instances: dict[str, list[model.Member]] = {}
        """Members by instance id, by when they came."""
        self._latest: dict[str, model.Member] = {}
        clients: dict[tuple[str, str], list[model.Member]] = {}
        for member in members.values():
            if member.client_id:
                clients.setdefault((member.client_id, member.host), []).append(member)
            instance = member.instance
            # Static members (KIP-345): a new member id takes over the place of the old one.
            if instance is not None:
                self.instances.setdefault(instance, []).append(member)
                latest = self._latest.setdefault(instance, member)
                if (member.last_ns or 0) > (latest.last_ns or 0):
                    self._latest[instance] = member
        for same in self.instances.values():
            same.sort(key=_came)
        self.next_lives: dict[str, str] = {}
        """Member -> the one that is the same client, after a restart."""
        for lives in clients.values():
            lives.sort(key=_came)
            # Members of one client id that live at the same time cannot be told apart.
            if all((one.last_ns or 0) <= (two.first_ns or 0) for one, two in pairwise(lives)):
                self.next_lives.update((one.id, two.id) for one, two in pairwise(lives))

    def has_unique_label(self, member: model.Member) -> bool:
        return self._alike[member.label] == 1

    def by_instance(self, instance: str | None) -> model.Member | None:
        """Return the last seen member with an instance id: admins remove static members by it."""
        return None if instance is None else self._latest.get(instance)

    def last_until(self, instance: str, until_ns: int, but: model.Member) -> model.Member | None:
        """Return the member with an instance id that came last until a moment, but for one."""
        same = self.instances.get(instance, [])
        at = bisect_right(same, until_ns, key=lambda member: member.first_ns or 0)
        for other in reversed(same[max(0, at - 2) : at]):
            if other is not but and other.first_ns is not None:
                return other
        return None


class GroupIndex(Members):
    """The same, and what happened to them and when."""

    def __init__(
        self,
        events: list[Event],
        members: dict[str, model.Member],
        presences: dict[tuple[str, int], model.Presence],
    ) -> None:
        super().__init__(members)
        self.events = events
        heard = by_key(
            (name, (each.first_ns, each.last_ns))
            for (name, _), each in presences.items()
            if each.first_ns is not None and each.last_ns is not None
        )
        self._heard: dict[str, tuple[list[int], list[int]]] = {}
        """Member -> when its presences began, and the latest end of those until there."""
        for name, times in heard.items():
            times.sort()
            self._heard[name] = (
                [first for first, _ in times],
                list(accumulate((last for _, last in times), max)),
            )
        self.departed = Timed(list(self._departed(events)))
        self.fenced = Timed(
            [
                (event.time_ns, (event.about["member"], event.about["error"]))
                for event in events
                if event.about.get("error") in model.FENCING and event.about["member"] in members
            ]
        )
        self.beats = Timed([(event.time_ns, event) for event in events if event.kind == "epoch"])
        self.evictions = list(self._evictions(events))
        """For groups without JoinGroup, (member, when it was last there, when it heard that it is
        none any more): its id lives on, as an answer to a heartbeat after a silence."""
        self.given_ids = {
            event.about["member"]
            for event in events
            if event.kind == "join" and event.about["error"] == MEMBER_ID_REQUIRED
        }
        """Members that got the id with which they had to rejoin."""
        self.evicted = {
            event.about["member"]
            for event in events
            if event.kind != "join" and event.about.get("error") in model.EVICTED
        }
        """Members that heard that they are none any more: they did not restart."""
        self.joined_ns: dict[str, int] = {}
        """Member of a group without JoinGroup -> when it joined last."""
        for event in events:
            if event.kind == "epoch" and event.about["before"] == 0:
                last = self.joined_ns.get(event.about["member"], event.time_ns)
                self.joined_ns[event.about["member"]] = max(last, event.time_ns)

    def _evictions(self, events: list[Event]) -> Iterator[tuple[str, int, int]]:
        for event in events:
            name = event.about["member"]
            if event.kind == "epoch" and event.about["error"] in model.EVICTED | model.FENCING:
                since_ns = self.seen_before(name, event.time_ns)
                if since_ns is not None:
                    yield name, since_ns, event.time_ns

    def _departed(self, events: list[Event]) -> list[tuple[int, tuple[str, Event]]]:
        found = []
        for event in events:
            about = event.about
            if about.get("error") not in (0, None):
                continue
            if event.kind == "leave":
                member = self.members.get(about["member"]) or self.by_instance(
                    about.get("instance")
                )
                if member is not None:
                    found.append((event.time_ns, (member.id, event)))
            elif event.kind == "epoch" and about["before"] < 0:
                found.append((event.time_ns, (about["member"], event)))
        return found

    def seen_before(self, name: str, until_ns: int) -> int | None:
        begins, ends = self._heard.get(name, ([], []))
        at = bisect_left(begins, until_ns)
        return min(ends[at - 1], until_ns) if at else None


def _came(member: model.Member) -> tuple[int, str]:
    return member.first_ns or 0, member.id


def members_of(
    events: list[Event], presences: dict[tuple[str, int], model.Presence]
) -> dict[str, model.Member]:
    """Return the life of each member by its id, without how it ended."""
    found: dict[str, model.Member] = {}
    for (name, generation), presence in sorted(presences.items()):
        member = found.setdefault(name, model.Member(name))
        for field in ("client_id", "host", "instance", "session_ms", "rebalance_ms"):
            setattr(member, field, getattr(presence, field) or getattr(member, field))
        member.beats += presence.beats
        member.commits += presence.commits
        member.epochs.add(generation)
        if presence.first_ns is not None and presence.last_ns is not None:
            # From one generation to the next it was there, too.
            begin = presence.first_ns if member.last_ns is None else member.last_ns
            _lived(member, presence.first_ns, presence.last_ns)
            member.marks.append(
                model.LaneMark(min(begin, presence.first_ns), presence.last_ns, "=")
            )
    for event in events:
        about = event.about
        name = about["member"]
        if not name or (event.kind == "leave" and name not in found):
            continue
        refused = event.kind == "join" and about["error"] not in (0, None)
        if refused and about["error"] not in model.FENCING and name not in found:
            # It was given an id, or refused: a member only when it comes back. One that another
            # took the place of while it waited was a member before it was fenced (KIP-345).
            continue
        member = found.setdefault(name, model.Member(name))
        for field in ("client_id", "host", "instance"):
            setattr(member, field, about.get(field) or getattr(member, field))
        member.topics = tuple(about.get("topics") or member.topics)
        end = event.end_ns
        if event.kind == "join" and (not refused or about["error"] in model.FENCING):
            _lived(member, event.time_ns, end)
            member.marks.append(model.LaneMark(event.time_ns, end, "J"))
        elif event.kind == "sync" and about["error"] in (0, None):
            member.marks.append(model.LaneMark(event.time_ns, end, "S"))
            if about["assigned"] is not None:
                member.assigned = about["assigned"]
        elif event.kind == "epoch" and about["generation"] > 0:
            _lived(member, event.time_ns, end)
            sign = "J" if about["before"] <= 0 else "S"
            member.marks.append(model.LaneMark(event.time_ns, end, sign))
            if about["assigned"] is not None:
                member.assigned = about["assigned"]
    return found


def fill_silences(member: model.Member) -> None:
    """Mark the time between two signs of life: a member that leaves, rejoins or is seen again was a
    member until then."""
    found = []
    for mark, after in pairwise(sorted(member.marks)):
        if mark.sign in "JS=" and after.sign in "JS=l" and mark.end_ns < after.begin_ns:
            sign = "." if mark.sign == "J" and after.sign != "=" else "="
            found.append(model.LaneMark(mark.end_ns, after.begin_ns, sign))
    member.marks += found


def _lived(member: model.Member, first_ns: int, last_ns: int) -> None:
    member.first_ns = first_ns if member.first_ns is None else min(member.first_ns, first_ns)
    member.last_ns = last_ns if member.last_ns is None else max(member.last_ns, last_ns)


def note_fates(events: list[Event], members: dict[str, model.Member]) -> None:
    """Set how each member ended, where it did; `story` has found the expired ones."""
    known = Members(members)
    expired = {name: member.text for name, member in members.items() if member.state == "expired"}
    for event in events:
        about = event.about
        member = members.get(about["member"])
        if member is None and event.kind == "leave":
            member = known.by_instance(about.get("instance"))
        if member is None or (member.last_ns or 0) > event.end_ns:
            continue
        if event.kind == "leave" and about["error"] in (0, None):
            member.state, member.text = "left", left_text(about)
            member.marks.append(model.LaneMark(event.time_ns, event.time_ns, "l"))
        elif event.kind == "epoch" and about["before"] < 0 and about["error"] in (0, None):
            member.state = "left"
            member.text = "left temporarily (static member)" if about["before"] == -2 else "left"
            member.marks.append(model.LaneMark(event.time_ns, event.time_ns, "l"))
        elif about.get("error") in model.FENCING or (
            event.kind != "join" and about.get("error") in model.EVICTED
        ):
            holder = _holder(event, member, known)
            member.state, member.text = "fenced", fenced_text(about["error"])
            if reason := expired.get(member.id):
                member.text = f"{reason}, then {member.text}"
            if holder is not None:
                member.holder = title_of(holder, known)
                member.text += f": {member.holder} has the same group.instance.id"
            end = event.end_ns if event.kind == "join" else event.time_ns
            member.marks.append(model.LaneMark(end, end, "x"))


def _holder(event: Event, member: model.Member, known: Members) -> model.Member | None:
    """Return the member that has the instance id of a fenced one: the last one that came after it,
    or the last one before it where it was refused because the id was taken (KIP-848)."""
    error = event.about["error"]
    if error not in model.INSTANCE or member.instance is None or member.first_ns is None:
        return None
    told_ns = event.end_ns
    if error == model.UNRELEASED_INSTANCE:
        return known.last_until(member.instance, min(told_ns, member.first_ns - 1), member)
    found = known.last_until(member.instance, told_ns, member)
    return found if found and (found.first_ns or 0) >= member.first_ns else None


def left_text(about: dict[str, Any]) -> str:
    return f"left: {about['reason']}" if about.get("reason") else "left"


def fenced_text(code: int) -> str:
    from kafkascope.dissectors.reference.codes import error_name

    return f"got {error_name(code)}"


def title_of(member: model.Member, known: Members) -> str:
    """Return the name of a member among others of its client id: with its host, or the end of its
    member id."""
    if known.has_unique_label(member):
        return member.label
    alone = known.at_hosts[member.label, member.host] == 1
    return f"{member.label} at {member.host}" if alone else f"{member.label} ({member.id[-8:]})"
