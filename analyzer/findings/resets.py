"""Offsets that are out of range, and where the client went on (question 14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple

from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Log, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, audit_of, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.delivery.delivery import Reads
from kafkascope.analyzer.statistics.delivery.ends import told_at
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, most
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.analyzer.text import spelled

FETCH: Final = 1
LIST_OFFSETS: Final = 2
OUT_OF_RANGE: Final = 1
MOST_TOLD: Final = 3
MOST_NAMED: Final = 20
"""Partitions of one finding."""
WORDS: Final = {-1: "latest", -2: "earliest"}


@measured
class Outside(Seen):
    """Refused offsets of a partition."""

    asked: tuple[bool, int, int, int, int] | None = most()
    """(whether the offset is known: a fetch of a session may not repeat it, time, offset asked, log
    start, high watermark)"""


class Refused(NamedTuple):
    """What is told of a partition."""

    place: str
    text: str
    lost: int
    """Records that were deleted before they were read."""
    group: str
    seen: Outside


class Resets(Detector):
    """By client and partition."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "offset-out-of-range",
            "warning",
            "fetches from offsets that the partition does not hold",
            "Raise retention or consume faster: the group was away longer than retention keeps "
            "records, or the topic was recreated. auto.offset.reset decides where it continues.",
            "OFFSET_OUT_OF_RANGE",
            brief="{n} offset out of range|{n} offsets out of range",
            limits=("resets.soon", "resets.polled"),
        ),
        Rule(
            "retention-overtook",
            "error",
            "records deleted before a consumer read them",
            "Speed up the consumer, or raise retention.ms and retention.bytes of the topic. "
            "Retention (or DeleteRecords) deletes records faster than it reads; deleted records "
            "are lost for it.",
            "OFFSET_OUT_OF_RANGE",
            limits=("resets.soon", "resets.polled"),
        ),
    )
    KEYS = frozenset({LIST_OFFSETS})
    ODD_KEYS = frozenset({FETCH})

    outside: Keyed[Outside] = table(Outside, 2_000)
    """By client and partition."""
    listed: Keyed[Log] = table(Log, 500)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of refused fetches, offsets that were looked up."""
        asked, response = exchange.request_body, exchange.response_body
        if asked is None or response is None:
            return
        who = client_of(row)
        if row.api_key == FETCH:
            if any(error.code == OUT_OF_RANGE for error in row.errors):
                self._refused(who, asked, response, row)
        else:
            self._looked_up(who, asked, response, row)

    def _refused(
        self, who: tuple[str | None, str], asked: dict[str, Any], response: dict[str, Any], row: Row
    ) -> None:
        offsets = {
            (topic_key(topic.get("topic"), topic.get("topic_id")), each["partition"]): each[
                "fetch_offset"
            ]
            for topic in asked["topics"] or ()
            for each in topic["partitions"]
        }
        for topic in response["responses"]:
            named = topic_key(topic.get("topic"), topic.get("topic_id"))
            for each in topic["partitions"]:
                if each["error_code"] != OUT_OF_RANGE:
                    continue
                number = each["partition_index"]
                outside = self.outside[(*who, named, number)]
                outside.see(row)
                offset = offsets.get((named, number), -1)
                outside.take(
                    asked=(
                        offset >= 0,
                        row.time_ns,
                        offset,
                        each.get("log_start_offset", -1),
                        each.get("high_watermark", -1),
                    )
                )

    def _looked_up(
        self, who: tuple[str | None, str], asked: dict[str, Any], response: dict[str, Any], row: Row
    ) -> None:
        wanted = {
            (topic["name"], each["partition_index"]): each["timestamp"]
            for topic in asked["topics"]
            for each in topic["partitions"]
        }
        for topic in response["topics"]:
            for part, each in enumerate(topic["partitions"][:100]):
                number = each["partition_index"]
                offset = each.get("offset", -1)
                if each["error_code"] or offset < 0:
                    continue
                about = {"timestamp": wanted.get((topic["name"], number), 0), "offset": offset}
                self.listed[(*who, topic["name"], number)].events.note(row, "listed", about, part)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client and topic."""
        audit = audit_of(view)
        places: dict[tuple[str, str, int], AuditedPartition] = {
            (reader, place.topic, place.number): place
            for place in audit.found
            for reader in place.readers
        }
        found: dict[tuple[Any, Any, Any, str], list[Refused]] = {}
        for (client_id, host, topic, number), outside in self.outside.items():
            assert outside.asked is not None
            _, time_ns, offset, begin, end = outside.asked
            named = view.topic(topic)
            known = audit.bounds.get((named, number), ([], []))
            if begin < 0:
                begin = told_at(known[0], time_ns)
            if end < 0:
                end = told_at(known[1], time_ns)
            place = places.get((f"{client_id or ''}@{host}", named, number))
            reset = self._next(client_id, host, named, number, time_ns)
            reads = view.base.delivery.reads.get((topic, number, client_id or "", host))
            before = [
                each.about["to"]
                for each in (reads.events if reads is not None else ())
                if each.about["end_ns"] <= time_ns
            ]
            new = place.none if place is not None else offset == 0
            if new and not before and reset is not None:
                continue  # What it does at its first start: nothing is lost.
            overtaken = begin > offset and offset in before
            name = "retention-overtook" if overtaken else "offset-out-of-range"
            if begin <= offset <= end:
                begin = end = -1  # As it was before records were deleted.
            stopped = reset is None and self._stopped(reads, outside, (client_id, host), view)
            text = _told(f"{named}-{number}", offset, begin, end, reset, stopped=stopped)
            lost = begin - offset if overtaken else 0
            group = place.group if place is not None else ""
            refused = Refused(f"{named}-{number}", text, lost, group, outside)
            found.setdefault((client_id, host, topic, name), []).append(refused)
        for (client_id, host, topic, name), refused_ in found.items():
            yield self._finding(client_id, host, topic, name, refused_, view)

    def _finding(
        self, client_id: Any, host: Any, topic: Any, name: str, found: list[Refused], view: View
    ) -> Finding:
        who = view.client(client_id, host)
        seen = Seen()
        for each in found:
            seen.merge(Seen(each.seen.count, each.seen.first, each.seen.last_ns))
        told = "; ".join(each.text for each in found[:MOST_TOLD])
        more = f"; and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
        if name == "retention-overtook":
            lost = plural(sum(each.lost for each in found), "record")
            text = (
                f"{lost} of {view.topic(topic)} were deleted before {who} read them: it requested"
            )
        else:
            text = f"{who} requested"
        groups = sorted({spelled(each.group) for each in found if each.group})
        return view.finding(
            self.rule(name),
            f"{text} {told}{more}",
            all_of(
                view.of_client(client_id, host),
                "api == Fetch and error == OFFSET_OUT_OF_RANGE",
                view.of_topic(topic),
            ),
            seen,
            about=[
                ("client", who),
                ("topic", view.topic(topic)),
                *(("group", group) for group in groups),
                *(("partition", each.place) for each in found[:MOST_NAMED]),
            ],
        )

    def _stopped(
        self, reads: Reads | None, outside: Outside, who: tuple[Any, Any], view: View
    ) -> bool:
        """Return whether it got nothing of the partition any more, though there was time for it: it
        is gone, or its application must have polled again."""
        time_ns = outside.first[0] if outside.first is not None else 0
        if reads is not None and (reads.last_ns or 0) > time_ns:
            return False
        waited = (view.last_ns or 0) - time_ns
        gone = waited > limit("resets.soon") and not view.has_open(*who)
        return gone or waited > limit("resets.polled")

    def _next(
        self, client_id: Any, host: Any, topic: str, number: Any, time_ns: int
    ) -> dict[str, Any] | None:
        found = self.listed.get((client_id, host, topic, number))
        for event in found.events if found is not None else ():
            if event.time_ns > time_ns:
                return event.about
        return None


def _told(
    place: str, offset: int, begin: int, end: int, reset: dict[str, Any] | None, *, stopped: bool
) -> str:
    """Return what a client asked for, what there was, and where it went on."""
    text = f"offset {offset:,} of {place}" if offset >= 0 else f"an offset of {place}"
    if begin >= 0 and end >= 0:
        text += f", which holds {begin:,} to {end:,}"
    elif begin > offset >= 0:
        text += f", which starts at {begin:,}"
    if reset is not None:
        word = WORDS.get(reset["timestamp"], "by time")
        if offset < 0:
            return f"{text}; it continued at {reset['offset']:,} ({word})"
        skipped = reset["offset"] - offset
        moved = (
            f"{plural(skipped, 'record')} skipped"
            if skipped > 0
            else f"{plural(-skipped, 'offset')} back"
        )
        return f"{text}; it continued at {reset['offset']:,} ({word}): {moved}"
    if stopped:
        text += "; it did not continue, consistent with auto.offset.reset=none"
    return text
