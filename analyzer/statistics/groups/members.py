"""The lives of a group's members, from its events: when they were there, what they did, how they
ended."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from kafkascope.analyzer.statistics.groups.known import Members
from kafkascope.analyzer.statistics.groups.model import (
    FENCING,
    INSTANCE,
    UNKNOWN_MEMBER,
    UNRELEASED_INSTANCE,
    LaneMark,
    Member,
    Presence,
)
from kafkascope.analyzer.statistics.merging.events import Event


def members_of(
    events: list[Event], presences: dict[tuple[str, int], Presence]
) -> dict[str, Member]:
    """Return the life of each member by its id, without how it ended."""
    found: dict[str, Member] = {}
    for (name, generation), presence in sorted(presences.items()):
        member = found.setdefault(name, Member(name))
        member.client_id = presence.client_id or member.client_id
        member.host = presence.host or member.host
        member.instance = presence.instance or member.instance
        member.session_ms = presence.session_ms or member.session_ms
        member.rebalance_ms = presence.rebalance_ms or member.rebalance_ms
        member.beats += presence.beats
        member.commits += presence.commits
        member.epochs.add(generation)
        if presence.first_ns is not None and presence.last_ns is not None:
            # From one generation to the next it was there, too.
            begin = presence.first_ns if member.last_ns is None else member.last_ns
            _lived(member, presence.first_ns, presence.last_ns)
            member.marks.append(LaneMark(min(begin, presence.first_ns), presence.last_ns, "="))
    for event in events:
        about = event.about
        name = about["member"]
        if not name or (event.kind == "leave" and name not in found):
            continue
        refused = event.kind == "join" and about["error"] not in (0, None)
        if refused and about["error"] not in FENCING and name not in found:
            # It was given an id, or refused: a member only when it comes back. One that another
            # took the place of while it waited was a member before it was fenced (KIP-345).
            continue
        member = found.setdefault(name, Member(name))
        member.client_id = about.get("client_id") or member.client_id
        member.host = about.get("host") or member.host
        member.instance = about.get("instance") or member.instance
        member.topics = tuple(about.get("topics") or member.topics)
        end = about["end_ns"] or event.time_ns
        if event.kind == "join" and (not refused or about["error"] in FENCING):
            _lived(member, event.time_ns, end)
            member.marks.append(LaneMark(event.time_ns, end, "J"))
        elif event.kind == "sync" and about["error"] in (0, None):
            member.marks.append(LaneMark(event.time_ns, end, "S"))
            if about["assigned"] is not None:
                member.assigned = about["assigned"]
        elif event.kind == "epoch" and about["generation"] > 0:
            _lived(member, event.time_ns, end)
            sign = "J" if about["before"] <= 0 else "S"
            member.marks.append(LaneMark(event.time_ns, end, sign))
            if about["assigned"] is not None:
                member.assigned = about["assigned"]
    return found


def fill_silences(member: Member) -> None:
    """Mark what comes between two signs of life: whoever leaves, joins again or is heard of was a
    member until then."""
    found = []
    for mark, after in pairwise(sorted(member.marks)):
        if mark.sign in "JS=" and after.sign in "JS=l" and mark.end_ns < after.begin_ns:
            sign = "." if mark.sign == "J" and after.sign != "=" else "="
            found.append(LaneMark(mark.end_ns, after.begin_ns, sign))
    member.marks += found


def _lived(member: Member, first_ns: int, last_ns: int) -> None:
    member.first_ns = first_ns if member.first_ns is None else min(member.first_ns, first_ns)
    member.last_ns = last_ns if member.last_ns is None else max(member.last_ns, last_ns)


def tell_fates(events: list[Event], members: dict[str, Member]) -> None:
    """Set how each member ended, where it did; `story` has found the expired ones."""
    known = Members(members)
    expired = {name: member.text for name, member in members.items() if member.state == "expired"}
    for event in events:
        about = event.about
        member = members.get(about["member"])
        if member is None and event.kind == "leave":
            member = known.by_instance(about.get("instance"))
        if member is None or (member.last_ns or 0) > (about["end_ns"] or event.time_ns):
            continue
        if event.kind == "leave" and about["error"] in (0, None):
            member.state, member.text = "left", left_text(about)
            member.marks.append(LaneMark(event.time_ns, event.time_ns, "l"))
        elif event.kind == "epoch" and about["before"] < 0 and about["error"] in (0, None):
            member.state = "left"
            member.text = "left temporarily (static member)" if about["before"] == -2 else "left"
            member.marks.append(LaneMark(event.time_ns, event.time_ns, "l"))
        elif about.get("error") in FENCING or (
            event.kind != "join" and about.get("error") == UNKNOWN_MEMBER
        ):
            holder = _holder(event, member, known)
            member.state, member.text = "fenced", fenced_text(about["error"])
            if reason := expired.get(member.id):
                member.text = f"{reason}, then {member.text}"
            if holder is not None:
                member.holder = title_of(holder, known)
                member.text += f": {member.holder} has the same group.instance.id"
            end = (about["end_ns"] if event.kind == "join" else None) or event.time_ns
            member.marks.append(LaneMark(end, end, "x"))


def _holder(event: Event, member: Member, known: Members) -> Member | None:
    """Return the member that has the instance id of a fenced one: the last one that came after it,
    or the last one before it where it was refused because the id was taken (KIP-848)."""
    error = event.about["error"]
    if error not in INSTANCE or member.instance is None or member.first_ns is None:
        return None
    told_ns = event.about["end_ns"] or event.time_ns
    if error == UNRELEASED_INSTANCE:
        return known.last_until(member.instance, min(told_ns, member.first_ns - 1), member)
    found = known.last_until(member.instance, told_ns, member)
    return found if found and (found.first_ns or 0) >= member.first_ns else None


def left_text(about: dict[str, Any]) -> str:
    """Say that a member left, with the reason that it gave."""
    return f"left: {about['reason']}" if about.get("reason") else "left"


def fenced_text(code: int) -> str:
    """Say what a fenced member was told."""
    from kafkascope.dissectors.reference.codes import error_name

    return f"got {error_name(code)}"


def title_of(member: Member, known: Members) -> str:
    """Return the name of a member among others of its client id: with its host, or the end of its
    member id."""
    if known.alone(member):
        return member.label
    alone = known.alone_at_host(member)
    return f"{member.label} at {member.host}" if alone else f"{member.label} ({member.id[-8:]})"
