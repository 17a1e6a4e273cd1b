"""Offsets that are out of range, and where the client went on (question 14)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from analyzer.findings.detector import Detector, Seen
from analyzer.findings.model import Finding, Rule
from analyzer.findings.view import View, all_of, plural
from analyzer.identity import host_of
from analyzer.statistics.mergeable import EVENTS, Event, Events, Measures, most
from analyzer.statistics.model import topic_key

if TYPE_CHECKING:
    from analyzer.model import Exchange
    from analyzer.rows import Row

FETCH: Final = 1
LIST_OFFSETS: Final = 2
OUT_OF_RANGE: Final = 1
SOON: Final = 1_000_000_000
"""Within this time (ns) a client that resets its position reads on."""
WORDS: Final = {-1: "latest", -2: "earliest"}


@dataclass(slots=True)
class Outside(Seen):
    """Refused offsets of a partition."""

    asked: tuple[int, int, int, int] | None = most()
    """(time, offset asked, log start, high watermark)"""


@dataclass(slots=True)
class Listed(Measures):
    """Answers of ListOffsets for a partition."""

    events: Events = field(default_factory=Events, metadata=EVENTS)


class Resets(Detector):
    """By client and partition."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "offset-out-of-range",
            "warning",
            "a consumer asked for an offset that the partition does not hold",
            "The group was away longer than retention keeps data (or its topic was made anew): "
            "raise retention or consume faster; auto.offset.reset decides what is read next.",
            "OFFSET_OUT_OF_RANGE",
        ),
    )
    KEYS = frozenset({FETCH, LIST_OFFSETS})

    def prepare(self) -> None:
        """By client and partition."""
        self.outside = self.table(Outside, 2_000)
        self.listed = self.table(Listed, 500)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Refused fetches, offsets that were looked up."""
        asked = exchange.request.body if exchange.request is not None else None
        answer = exchange.response.body if exchange.response is not None else None
        if asked is None or answer is None:
            return
        who = (row.client_id, host_of(row.client_address))
        if row.api_key == FETCH:
            if any(error.code == OUT_OF_RANGE for error in row.errors):
                self._refused(who, asked, answer, row)
        else:
            self._looked_up(who, asked, answer, row)

    def _refused(
        self, who: tuple[str | None, str], asked: dict[str, Any], answer: dict[str, Any], row: Row
    ) -> None:
        offsets = {
            (topic_key(topic.get("topic"), topic.get("topic_id")), each["partition"]): each[
                "fetch_offset"
            ]
            for topic in asked["topics"] or ()
            for each in topic["partitions"]
        }
        for topic in answer["responses"]:
            named = topic_key(topic.get("topic"), topic.get("topic_id"))
            for each in topic["partitions"]:
                if each["error_code"] != OUT_OF_RANGE:
                    continue
                number = each["partition_index"]
                outside = self.outside[(*who, named, number)]
                outside.see(row)
                here = (
                    row.time_ns,
                    offsets.get((named, number), -1),
                    each.get("log_start_offset", -1),
                    each.get("high_watermark", -1),
                )
                outside.asked = here if outside.asked is None else max(outside.asked, here)

    def _looked_up(
        self, who: tuple[str | None, str], asked: dict[str, Any], answer: dict[str, Any], row: Row
    ) -> None:
        wanted = {
            (topic["name"], each["partition_index"]): each["timestamp"]
            for topic in asked["topics"]
            for each in topic["partitions"]
        }
        for topic in answer["topics"]:
            for part, each in enumerate(topic["partitions"][:100]):
                number = each["partition_index"]
                offset = each.get("offset", -1)
                if each["error_code"] or offset < 0:
                    continue
                about = {"timestamp": wanted.get((topic["name"], number), 0), "offset": offset}
                event = Event(row.time_ns, row.id, part, row.number, "listed", about)
                self.listed[(*who, topic["name"], number)].events.add(event)

    def told(self, view: View) -> Iterator[Finding]:
        """By client and partition."""
        for (client_id, host, topic, number), outside in self.outside.items():
            assert outside.asked is not None
            time_ns, offset, start, high = outside.asked
            place = f"{view.topic(topic)}-{number}"
            who = view.client(client_id, host)
            holds = f", which holds {start:,} to {high:,}" if start >= 0 and high >= 0 else ""
            text = f"{who} asked for offset {offset:,} of {place}{holds}"
            reset = self._next(client_id, host, view.topic(topic), number, time_ns)
            if reset is not None:
                word = WORDS.get(reset["timestamp"], "a time")
                skipped = reset["offset"] - offset
                told = (
                    f"{plural(skipped, 'record')} skipped"
                    if skipped > 0
                    else f"{plural(-skipped, 'offset')} back"
                )
                text += f"; it went on at {reset['offset']:,} ({word}): {told}"
            elif outside.first is not None and self._stopped(
                (topic, number, client_id or "", host), outside.first[0], view
            ):
                text += "; it did not read on, as with auto.offset.reset=none"
            yield view.finding(
                self.rule("offset-out-of-range"),
                text,
                all_of(
                    view.of_client(client_id, host),
                    "api == Fetch and error == OFFSET_OUT_OF_RANGE",
                    view.of_topic(topic),
                ),
                outside,
                about=[("client", who), ("topic", view.topic(topic)), ("partition", place)],
            )

    def _stopped(self, key: tuple[Any, ...], time_ns: int, view: View) -> bool:
        """Whether it got nothing of the partition any more, though there was time for it."""
        reads = view.base.delivery.reads.get(key)
        if reads is not None and (reads.last_ns or 0) > time_ns:
            return False
        return (view.last_ns or 0) - time_ns > SOON

    def _next(
        self, client_id: Any, host: Any, topic: str, number: Any, time_ns: int
    ) -> dict[str, Any] | None:
        found = self.listed.get((client_id, host, topic, number))
        for event in found.events if found is not None else ():
            if event.time_ns > time_ns:
                return event.about
        return None
