"""The story of one partition of a group: fetches and commits in the order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.statistics.delivery_model import Happening, Kind, Partition

if TYPE_CHECKING:
    from analyzer.statistics.mergeable import Event


class Follow:
    """The story of one partition of a group."""

    def __init__(
        self, place: Partition, fetches: list[tuple[Event, str]], commits: list[Event]
    ) -> None:
        self.place = place
        self.known = False
        """Whether the position is known: a start or a fetch was seen."""
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
            for event in commits
        ]
        self.events.sort(key=lambda each: each[:3])
        self.reader = ""
        self.member = ""

    def run(self) -> None:
        """Fill the partition."""
        for time_ns, _, _, event, who in self.events:
            if event.kind == "start":
                self._start(event)
            elif event.kind == "commit":
                self._commit(time_ns, event)
            else:
                self._fetch(time_ns, event, who)

    def _start(self, event: Event) -> None:
        place = self.place
        offset = event.about["offset"]
        place.none |= offset < 0 and place.fetched is None
        if offset >= 0:
            if place.start is None and place.fetched is None:
                place.start = offset
            if place.committed is None:
                place.committed = offset

    def _fetch(self, time_ns: int, event: Event, who: str) -> None:
        place, about = self.place, event.about
        first, to = about["from"], about["to"]
        if place.fetched is not None and first < place.fetched:
            count = min(to, place.fetched) - first
            moved = self.reader and self.reader != who
            why = f"by {who}, after {self.reader}" if moved else f"by {who}"
            place.again += count
            self._tell(
                time_ns,
                "again",
                count,
                event,
                f"offsets {first:,} to {min(to, place.fetched) - 1:,} were fetched again {why}",
            )
        place.fetched = to if place.fetched is None else max(place.fetched, to)
        self.reader = who
        self.known = True
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
                f"{who} committed {offset:,} after {before:,}: {count:,} records will be read "
                "again",
                by_hand=by_hand,
            )
        reached = place.fetched
        if reached is not None and offset > reached and not by_hand and place.dropped == 0:
            count = offset - reached
            place.beyond += count
            self._tell(
                time_ns,
                "beyond",
                count,
                event,
                f"{offset:,} was committed, and only offsets below {reached:,} were fetched: "
                f"{count:,} records may never be read",
            )
        place.committed = offset
        if place.end is not None:
            known_end = place.points[-1][3] if place.points else place.end
            place.points.append((time_ns, place.fetched, offset, max(known_end, offset)))

    def _tell(
        self,
        time_ns: int,
        kind: Kind,
        count: int,
        event: Event,
        text: str,
        *,
        by_hand: bool = False,
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
            )
        )


def _moment(event: Event) -> int:
    """A commit counts when it was sent, a start when it was told."""
    end: int = event.about["end_ns"]
    return event.time_ns if event.kind == "commit" else end
