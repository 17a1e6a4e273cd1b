"""Causes of rebalances: members that joined and left, and the sentence about it. Base of the two
kinds of stories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.statistics.groups.members import GroupIndex, fenced_text, left_text
from kafkascope.analyzer.statistics.groups.model import LaneMark, Member, Reason, RebalanceCause
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.times import SECOND

# Nanoseconds for each millisecond of a timeout: a shorter silence is no timeout.
NEARLY: Final = 950_000
# Brokers take no shorter one by default (group.min.session.timeout.ms).
SHORTEST_SESSION_S: Final = 6

DID_NOT_REJOIN: Final = "did not rejoin"
BACK: Final = "left and rejoined as the same member, consistent with max.poll.interval.ms"


class Causes(GroupIndex):
    """Common part of both kinds of groups: members that joined and left, and the sentence."""

    def label(self, name: str) -> str:
        member = self.members.get(name)
        if member is None:
            return name
        return member.label if self.has_unique_label(member) else f"{member.label} ({name[-8:]})"

    def labels(self, names: Sequence[str] | set[str]) -> str:
        shown = sorted(self.label(name) for name in names)
        rest = len(shown) - 3
        return ", ".join(shown[:3]) + (f" and {rest} more" if rest > 0 else "")

    def silent(self, name: str, until_ns: int, end_ns: int) -> Reason:
        """Return what became of a member that disappeared without a request between the start of a
        rebalance and its end. It expired when its session or the rebalance timeout had passed; else
        it left where the capture did not see it."""
        member = self.members[name]
        seen = self.seen_before(name, until_ns)
        if seen is None:
            return "expired", f"{self.label(name)} disappeared"
        silence = (until_ns - seen) / SECOND
        limit = NEARLY * (member.session_ms or 0) / SECOND
        # A broker waits for former members until the rebalance timeout is over (KIP-62).
        waited = bool(member.rebalance_ms and end_ns - until_ns >= NEARLY * member.rebalance_ms)
        if limit and silence < limit and not waited:
            # The others had not to wait for the whole rebalance timeout: its session ended.
            silence = max(silence, (end_ns - seen) / SECOND)
        if silence < (limit or _patience(member)) and not waited:
            return "left", f"{self.label(name)} disappeared (cause not captured)"
        if limit and silence < limit and member.rebalance_ms:
            text = f"{DID_NOT_REJOIN} within {member.rebalance_ms / 1000:g} s (rebalance timeout)"
        else:
            session = f" (session {(member.session_ms or 0) / 1000:g} s)" if limit else ""
            text = f"no heartbeat for {silence:.1f} s{session}"
        if member.state == "active" and (member.last_ns or 0) <= until_ns:
            member.state, member.text = "expired", text
            member.marks.append(LaneMark(seen, seen, "x"))
        return "expired", f"{self.label(name)} timed out: {text}"

    def departures(self, since_ns: int, until_ns: int) -> dict[str, Event]:
        """Return, by member, the event with which it left, in a stretch of time."""
        return dict(self.departed.between(since_ns, until_ns))

    def cause(
        self, came: set[str], gone: set[str], since_ns: int, begin_ns: int, end_ns: int
    ) -> Reason | None:
        """Return why a group rebalanced, from members that joined and left between two generations;
        None when none did."""
        left = self.departures(since_ns, end_ns)
        fenced = dict(self.fenced.between(since_ns, begin_ns))
        # A static member takes the place of its old id (KIP-345): it neither came nor went.
        taken = Counter(self._instance(name) for name in came)
        gone = {
            name
            for name in gone
            if name in left
            or (instance := self._instance(name)) is None
            or taken[instance] <= (name in came)
        }
        came = {name for name in came if not self._returns(name, left)}
        texts: list[str] = []
        causes: list[RebalanceCause] = []
        for name in sorted(gone):
            if name in left:
                causes.append("left")
                event = left[name]
                # A member without JoinGroup has an id that lives as long as its consumer does.
                back = event.kind == "epoch" and self.joined_ns.get(name, 0) > event.time_ns
                if back:
                    came.discard(name)
                if len(texts) < LIMITS.named_members:
                    how = BACK if back else left_text(event.about)
                    texts.append(f"{self.label(name)} {how}")
            elif name in fenced:
                causes.append("fenced")
                texts.append(f"{self.label(name)} {fenced_text(fenced[name])}")
            elif name in self.members:
                heir = self.next_lives.get(name)
                back = heir is not None and heir in came
                came.discard(heir or "")
                if back and name not in self.evicted:
                    causes.append("replaced")
                    texts.append(f"{self.label(name)} rejoined as a new member")
                else:
                    cause, text = self.silent(name, begin_ns, end_ns)
                    causes.append(cause)
                    texts.append(text)
        if came:
            causes.append("joined")
            texts.append(f"{self.labels(came)} joined")
        if not causes:
            return None
        # What went wrong is said before what goes on every day.
        order: tuple[RebalanceCause, ...] = ("expired", "fenced", "replaced", "left", "joined")
        return min(causes, key=order.index), "; ".join(texts[: LIMITS.named_members])

    def persons(self, names: set[str]) -> int:
        """Count the clients behind members: a static one that came back has two ids."""
        found = [self.members.get(name) for name in names]
        unknown = sum(member is None for member in found)
        return unknown + len({member.instance or member.id for member in found if member})

    def _instance(self, name: str) -> str | None:
        member = self.members.get(name)
        return None if member is None else member.instance

    def _returns(self, name: str, left: dict[str, Event]) -> bool:
        """Return whether it is a static member that was there before, under another id."""
        member = self.members.get(name)
        if member is None:
            return False
        for other in self.instances[member.instance] if member.instance is not None else ():
            if (other.first_ns or 0) >= (member.first_ns or 0):
                return False
            if other.id not in left:
                return True
        return False


def pace_ns(member: Member) -> float | None:
    """Return the mean time between heartbeats of a member; None for fewer than two."""
    if member.first_ns is None or member.last_ns is None or member.beats < 2:
        return None
    return (member.last_ns - member.first_ns) / (member.beats - 1)


def _patience(member: Member) -> float:
    """Return the seconds of silence after which a member of unknown session is not between
    heartbeats: sessions are three of these or more, and brokers allow none that are very short."""
    # Who is given partitions says so at once: two heartbeats are no pace.
    pace = pace_ns(member) if member.beats > 3 else None
    return min(SHORTEST_SESSION_S, 3 * pace / SECOND) if pace else SHORTEST_SESSION_S
