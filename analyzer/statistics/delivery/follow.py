"""The story of one partition of a group: fetches and commits in the order of time."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.statistics.delivery.model import (
    AuditedPartition,
    Happening,
    HappeningKind,
    Stall,
)
from kafkascope.analyzer.statistics.thresholds import limit
from kafkascope.analyzer.text import plural


class Follow:
    """The story of one partition of a group."""

    def __init__(self, place: AuditedPartition) -> None:
        self.place = place
        self.events: list[tuple[int, bool, str, Event, str]] = []
        """Time, whether it is a fetch, id, event and reader."""
        self.position: int | None = None
        """The largest offset of a fetch without records."""
        self.told = 0
        """The largest start offset that the group got."""
        self.away = False
        """The last that is known is that the reader was to go elsewhere."""
        self.confirmed: int | None = None
        """The last offset that the group got, or whose commit was answered."""
        self.doubted = False
        """The last commit got no response."""
        self.reader = ""
        self.began = False
        """The group got a start offset, and has not fetched since."""
        self.fetched_ns: int | None = None
        self.kept: int | None = None
        """The end of what was fetched and could reach the application: a consumer that gets a start
        offset throws away what it had requested before."""
        self.kept_before: int | None = None
        """The same before the last fetch."""
        self.started_ns = 0
        """When the group last got a start offset."""
        self.stalls: dict[int, Stall] = {}
        """By offset; those that no commit has passed."""
        self.waiting: list[int] = []
        """The same offsets as a heap."""

    def take(self, events: Iterable[Event], reader: str = "") -> None:
        """Take in fetches and positions of a reader, or commits and starts of the group."""
        for event in events:
            # A commit counts when it was sent, a start when the response arrived.
            time_ns = event.time_ns if event.kind == "commit" else event.about["end_ns"]
            self.events.append((time_ns, event.kind == "fetch", event.id, event, reader))
            if late_ns := event.about.get("late_ns"):
                # Lines are late, so that a commit of their records may seem to come before them.
                known = event._replace(kind="stand", about={"offset": event.about["to"]})
                self.events.append((event.time_ns - late_ns, False, event.id, known, reader))

    def run(self) -> None:
        for time_ns, _, _, event, who in sorted(self.events, key=itemgetter(0, 1, 2)):
            if event.kind == "start":
                self._start(event)
            elif event.kind == "commit":
                self._commit(time_ns, event)
            elif event.kind == "stand":
                self.position = max(self.position or 0, event.about["offset"])
                self.away = False
            elif event.kind == "away":
                self.away = True
            else:
                self._fetch(time_ns, event, who)

    def _start(self, event: Event) -> None:
        place = self.place
        offset = event.about["offset"]
        # Asked while the last records were on their way.
        if self.fetched_ns is not None and self.fetched_ns > event.time_ns:
            self.kept = self.kept_before
        self.started_ns = event.about["end_ns"]
        place.none |= offset < 0 and place.fetched is None
        self.began = place.fetched is not None and offset < place.fetched
        self._passed(offset)
        if offset < 0 and self.confirmed is not None:
            text = f"no committed offset any more, {self.confirmed:,} before"
            self._append(event.about["end_ns"], "gone", 1, event, text)
            self.confirmed = None
        if offset >= 0:
            self.told = max(self.told, offset)
            if place.start is None and place.fetched is None:
                place.start = offset
            if place.committed is None:
                place.committed = self.confirmed = offset

    def _fetch(self, time_ns: int, event: Event, who: str) -> None:
        place, about = self.place, event.about
        first, to = about["from"], about["to"]
        data, end = max(first, about.get("data", first)), min(to, self.kept or 0)
        if data < end:
            moved = self.reader and self.reader != who
            why = f"by {who}, previously by {self.reader}" if moved else f"by {who}"
            one = (
                f"offset {data:,} was"
                if end == data + 1
                else f"offsets {data:,} to {end - 1:,} were"
            )
            text = f"{one} fetched again {why}"
            before_ns = self.fetched_ns if self.began and not place.placed else None
            self._append(time_ns, "again", end - data, event, text, before_ns=before_ns)
        high, read = about["high"], place.fetched
        # Without a high watermark (-1) the end of the log is unknown.
        if read is not None and 0 <= high < read and first < read:
            text = f"the log ends at {high:,}, and offset {read - 1:,} was read before"
            self._append(time_ns, "lost", read - high, event, text)
            place.fetched = first
        self.began, self.fetched_ns = False, time_ns
        self.kept_before = self.kept
        if event.time_ns >= self.started_ns:
            self.kept = to if self.kept is None else max(self.kept, to)
        self._stalled(first, time_ns, event, who)
        place.fetched = to if place.fetched is None else max(place.fetched, to)
        self.reader = who
        self.away = False
        place.points.append((time_ns, place.fetched, place.committed, about["high"]))

    def _commit(self, time_ns: int, event: Event) -> None:
        place, about = self.place, event.about
        offset, error = about["offset"], about["error"]
        if error:
            return
        by_hand = about["generation"] < 0 and not about["member"]
        # A commit that was lost may not have been carried out: clients send older ones again first.
        # Those of transactions may be aborted.
        answered = error is not None and not about.get("txn")
        before = self.confirmed if answered and self.doubted else place.committed
        if before is not None and offset < before:
            count = before - offset
            who = "an admin (no member)" if by_hand else f"member {about['member'][-8:] or '?'}"
            text = f"{who} committed {offset:,} after {before:,}; "
            text += f"{plural(count, 'record')} will be read again"
            self._append(time_ns, "back", count, event, text, by_hand=by_hand)
        seen = [each for each in (place.fetched, self.position) if each is not None]
        sure = bool(seen) and not by_hand and not self.away and place.dropped == 0
        reached = max(*seen, self.told) if seen else 0
        if sure and offset > reached:
            count = offset - reached
            what = f"only offsets below {reached:,} were fetched"
            if place.fetched is None:
                what = f"nothing from {reached:,} on was fetched"
            text = f"offset {offset:,} was committed, but {what}; "
            text += f"{plural(count, 'record')} may never be read"
            self._append(time_ns, "beyond", count, event, text)
        place.committed = offset
        self.doubted = not answered
        self.confirmed = offset if answered else self.confirmed
        place.placed.append((time_ns, offset))
        self._passed(offset)
        if place.end is not None:
            known_end = place.points[-1][3] if place.points else place.end
            place.points.append((time_ns, place.fetched, offset, max(known_end, offset)))

    def _stalled(self, first: int, time_ns: int, event: Event, who: str) -> None:
        """Count how often records are read from one offset. Reading ahead of the last commit is no
        progress, for reading comes back to it."""
        stall = self.stalls.get(first)
        if stall is None:
            stall = self.stalls[first] = Stall(first)
            heappush(self.waiting, first)
        stall.fetches.append((time_ns, event.number))
        stall.clients.add(who)
        if len(stall.fetches) == limit("stuck.fetches"):
            self.place.stalls.append(stall)

    def _passed(self, offset: int) -> None:
        while self.waiting and self.waiting[0] < offset:
            self.stalls.pop(heappop(self.waiting)).over = True

    def _append(
        self, time_ns: int, kind: HappeningKind, count: int, event: Event, text: str, **more: Any
    ) -> None:
        place = self.place
        setattr(place, kind, getattr(place, kind) + count)
        where, text = (
            (place.group, place.topic, place.number),
            f"{place.topic}-{place.number}: {text}",
        )
        happening = Happening(time_ns, kind, *where, count, event.number, text, **more)
        place.happenings.append(happening)
