"""The story of one partition of a group: fetches and commits in the order of time."""

from __future__ import annotations

from heapq import heappop, heappush

from kafkascope.analyzer.statistics.delivery.model import (
    AuditedPartition,
    Happening,
    HappeningKind,
    Stall,
)
from kafkascope.analyzer.statistics.limits import limit
from kafkascope.analyzer.statistics.merging.events import Event
from kafkascope.analyzer.text import plural


class Follow:
    """The story of one partition of a group."""

    def __init__(
        self,
        place: AuditedPartition,
        fetches: list[tuple[Event, str]],
        commits: list[Event],
        stands: list[Event],
    ) -> None:
        self.place = place
        self.position: int | None = None
        """The largest offset that a reader asked for and got nothing from."""
        self.told = 0
        """The largest offset that the group was told to start from."""
        self.away = False
        """The last that is known is that the reader was to go elsewhere."""
        self.events: list[tuple[int, int, str, Event, str]] = [
            (event.about["end_ns"], 1, event.id, event, who) for event, who in fetches
        ]
        # A commit counts when it was sent, a start when it was told.
        self.events += [
            (
                event.time_ns if event.kind == "commit" else event.about["end_ns"],
                0,
                event.id,
                event,
                "",
            )
            for event in (*commits, *stands)
        ]
        self.events.sort(key=lambda each: each[:3])
        self.reader = ""
        self.began = False
        """The group was told where to start, and has not fetched since."""
        self.fetched_ns: int | None = None
        self.kept: int | None = None
        """The end of what was fetched and could reach the application: a consumer that is told
        where to start throws away what it had asked for before."""
        self.kept_before: int | None = None
        """The same before the last fetch."""
        self.started_ns = 0
        """When the group was last told where to start."""
        self.stalls: dict[int, Stall] = {}
        """By offset; those that no commit has passed."""
        self.waiting: list[int] = []
        """The same offsets as a heap."""

    def run(self) -> None:
        """Fill the partition."""
        for time_ns, _, _, event, who in self.events:
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
        if offset >= 0:
            self.told = max(self.told, offset)
            if place.start is None and place.fetched is None:
                place.start = offset
            if place.committed is None:
                place.committed = offset

    def _fetch(self, time_ns: int, event: Event, who: str) -> None:
        place, about = self.place, event.about
        first, to = about["from"], about["to"]
        if self.kept is not None and first < self.kept:
            end = min(to, self.kept)
            moved = self.reader and self.reader != who
            why = f"by {who}, previously by {self.reader}" if moved else f"by {who}"
            place.again += end - first
            self._tell(
                time_ns,
                "again",
                end - first,
                event,
                f"offsets {first:,} to {end - 1:,} were fetched again {why}",
                before_ns=self.fetched_ns if self.began and not place.placed else None,
            )
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
        before = place.committed
        if before is not None and offset < before:
            count = before - offset
            place.back += count
            who = "an admin (no member)" if by_hand else f"member {about['member'][-8:] or '?'}"
            self._tell(
                time_ns,
                "back",
                count,
                event,
                f"{who} committed {offset:,} after {before:,}; {plural(count, 'record')} will be "
                "read again",
                by_hand=by_hand,
            )
        seen = [each for each in (place.fetched, self.position) if each is not None]
        sure = bool(seen) and not by_hand and not self.away and place.dropped == 0
        reached = max(*seen, self.told) if seen else 0
        if sure and offset > reached:
            count = offset - reached
            place.beyond += count
            what = f"only offsets below {reached:,} were fetched"
            if place.fetched is None:
                what = f"nothing from {reached:,} on was fetched"
            self._tell(
                time_ns,
                "beyond",
                count,
                event,
                f"offset {offset:,} was committed, but {what}; {plural(count, 'record')} may "
                "never be read",
            )
        place.committed = offset
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
        """Take note that the group has got beyond offsets."""
        while self.waiting and self.waiting[0] < offset:
            self.stalls.pop(heappop(self.waiting)).over = True

    def _tell(
        self,
        time_ns: int,
        kind: HappeningKind,
        count: int,
        event: Event,
        text: str,
        *,
        by_hand: bool = False,
        before_ns: int | None = None,
    ) -> None:
        place = self.place
        place.happenings.append(
            Happening(
                time_ns,
                kind,
                place.group,
                place.topic,
                place.number,
                count,
                event.number,
                f"{place.topic}-{place.number}: {text}",
                by_hand,
                before_ns,
            )
        )
