"""What is asked of a group's members and events again and again, for each of thousands of
rebalances: looked up, never searched for. State, no sentences."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import accumulate, pairwise
from typing import Final, Generic, TypeVar

from kafkascope.analyzer.statistics.groups.model import FENCING, Member, Presence
from kafkascope.analyzer.statistics.merging.events import Event

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

    def __init__(self, members: dict[str, Member]) -> None:
        self.all = members
        self._alike = Counter(member.label for member in members.values())
        self._at: Counter[tuple[str, str]] = Counter(
            (member.label, member.host) for member in members.values()
        )
        self._instances: dict[str, list[Member]] = {}
        self._latest: dict[str, Member] = {}
        clients: dict[tuple[str, str], list[Member]] = {}
        for member in members.values():
            if member.client_id:
                clients.setdefault((member.client_id, member.host), []).append(member)
            instance = member.instance
            if instance is not None:
                self._instances.setdefault(instance, []).append(member)
                latest = self._latest.setdefault(instance, member)
                if (member.last_ns or 0) > (latest.last_ns or 0):
                    self._latest[instance] = member
        for same in self._instances.values():
            same.sort(key=_came)
        self._next: dict[str, str] = {}
        for lives in clients.values():
            lives.sort(key=_came)
            # Members of one client id that live at the same time cannot be told apart.
            if all((one.last_ns or 0) <= (two.first_ns or 0) for one, two in pairwise(lives)):
                self._next.update((one.id, two.id) for one, two in pairwise(lives))

    def alone(self, member: Member) -> bool:
        """Return whether no other one is called the same."""
        return self._alike[member.label] == 1

    def alone_at_host(self, member: Member) -> bool:
        """Return whether no other one at its host is called the same."""
        return self._at[member.label, member.host] == 1

    def by_instance(self, instance: str | None) -> Member | None:
        """Return the member with an instance id, the last one that was heard of: admins remove
        static members by it."""
        return None if instance is None else self._latest.get(instance)

    def last_until(self, instance: str, until_ns: int, but: Member) -> Member | None:
        """Return the member with an instance id that came last until a moment, but for one."""
        same = self._instances.get(instance, [])
        at = bisect_right(same, until_ns, key=lambda member: member.first_ns or 0)
        for other in reversed(same[max(0, at - 2) : at]):
            if other is not but and other.first_ns is not None:
                return other
        return None

    def of_instance(self, member: Member) -> list[Member]:
        """Return all members with its instance id, by when they came, itself among them; none
        without one."""
        return [] if member.instance is None else self._instances[member.instance]

    def next_life(self, name: str) -> str | None:
        """Return the member that is the same client, after a restart."""
        return self._next.get(name)


class GroupIndex(Members):
    """The same, and what happened to them and when."""

    def __init__(
        self,
        events: list[Event],
        members: dict[str, Member],
        presences: dict[tuple[str, int], Presence],
    ) -> None:
        super().__init__(members)
        heard: dict[str, list[tuple[int, int]]] = {}
        for (name, _), each in presences.items():
            if each.first_ns is not None and each.last_ns is not None:
                heard.setdefault(name, []).append((each.first_ns, each.last_ns))
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
                if event.about.get("error") in FENCING and event.about["member"] in members
            ]
        )
        self.beats = Timed([(event.time_ns, event) for event in events if event.kind == "epoch"])
        self.given_ids = {
            event.about["member"]
            for event in events
            if event.kind == "join" and event.about["error"] == MEMBER_ID_REQUIRED
        }
        """Members that were told the id with which they had to ask again."""
        self._joined_ns: dict[str, int] = {}
        """Member of a group without JoinGroup -> when it joined last."""
        for event in events:
            if event.kind == "epoch" and event.about["before"] == 0:
                last = self._joined_ns.get(event.about["member"], event.time_ns)
                self._joined_ns[event.about["member"]] = max(last, event.time_ns)

    def _departed(self, events: list[Event]) -> list[tuple[int, tuple[str, Event]]]:
        found = []
        for event in events:
            about = event.about
            if about.get("error") not in (0, None):
                continue
            if event.kind == "leave":
                member = self.all.get(about["member"]) or self.by_instance(about.get("instance"))
                if member is not None:
                    found.append((event.time_ns, (member.id, event)))
            elif event.kind == "epoch" and about["before"] < 0:
                found.append((event.time_ns, (about["member"], event)))
        return found

    def heard_before(self, name: str, until_ns: int) -> int | None:
        """Return when a member was heard of last before a moment."""
        begins, ends = self._heard.get(name, ([], []))
        at = bisect_left(begins, until_ns)
        return min(ends[at - 1], until_ns) if at else None

    def joins_after(self, name: str, time_ns: int) -> bool:
        """Return whether a member of a group without JoinGroup joins behind a moment."""
        return self._joined_ns.get(name, 0) > time_ns


def _came(member: Member) -> tuple[int, str]:
    return member.first_ns or 0, member.id
