"""Groups that begin at the end of a log that holds records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule
from kafkascope.analyzer.findings.view import (
    View,
    about_group,
    all_of,
    among,
    audit_of,
    listed,
    plural,
)
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.delivery.delivery import Reads
from kafkascope.analyzer.statistics.delivery.ends import LATEST, told_at
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import Measures, least, measured
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import topic_label
from kafkascope.analyzer.text import spelled

LIST_OFFSETS: Final = 2


@measured
class EndLookup(Measures):
    """The first time that a client asked for the end of a partition."""

    first: tuple[int, int, int] | None = least()
    """(time, number, offset)"""


class Start(NamedTuple):
    """A partition that a group began at the end of."""

    topic: str
    partition: int
    client: str
    records: int
    """In the log before."""
    time_ns: int
    number: int


class Starts(Detector):
    """By group."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "latest-skips",
            "note",
            "group that started at the end of a log with records",
            "Set auto.offset.reset=earliest to read existing records. latest (the default of most "
            "clients) skips what was written before a group's first start, or before its offsets "
            "expired (offsets.retention.minutes, 7 days).",
        ),
    )
    KEYS = frozenset({LIST_OFFSETS})

    lookups: Keyed[EndLookup] = table(EndLookup, 2_000)
    """By client and partition."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of ends that were looked up."""
        asked, response = exchange.request_body, exchange.response_body
        if asked is None or response is None:
            return
        ends = {
            (topic["name"], each["partition_index"])
            for topic in asked["topics"]
            for each in topic["partitions"]
            if each["timestamp"] == LATEST
        }
        who = row.client_id or "", host_of(row.client_address)
        for topic in response["topics"]:
            for each in topic["partitions"]:
                place = topic["name"], each["partition_index"]
                if place in ends and not each["error_code"] and each.get("offset", -1) >= 0:
                    lookup = self.lookups[(*who, *place)]
                    lookup.take(first=(row.time_ns, row.number, each["offset"]))

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings from one audit of all groups, and where its members read first."""
        audit = audit_of(view)
        new = {
            (reader, place.topic, place.number): place.group
            for place in audit.found
            if place.none
            for reader in place.readers
        }
        if not new:
            return
        found: dict[str, list[Start]] = {}
        for (key, number, client, host), reads in view.base.delivery.reads.items():
            topic = topic_label(key, view.names) or "?"
            group = new.get((f"{client}@{host}", topic, number))
            lookup = self.lookups.get((client, host, topic, number))
            if group is None or lookup is None or lookup.first is None:
                continue
            time_ns, seen, offset = lookup.first
            begins = audit.bounds.get((topic, number), ([], []))[0]
            records = offset - max(0, told_at(begins, time_ns))
            if records > 0 and _first(reads) == offset:
                start = Start(topic, number, view.client(client, host), records, time_ns, seen)
                found.setdefault(group, []).append(start)
        for group, starts in sorted(found.items()):
            yield self._finding(group, starts, view)

    def _finding(self, group: str, starts: list[Start], view: View) -> Finding:
        starts.sort(key=lambda each: (each.topic, each.partition, -each.time_ns))
        # A partition may go from member to member before it has a committed offset.
        places = {(each.topic, each.partition): each for each in starts}
        named = listed(f"{topic}-{number}" for topic, number in places)
        records = sum(each.records for each in places.values())
        return view.finding(
            self.rule("latest-skips"),
            f"Group {spelled(group)} had no committed offset and started at the end of {named} "
            f"(latest), skipping {plural(records, 'record')}",
            f"(api == OffsetFetch and group == {quoted(group)}) or "
            + all_of("api == ListOffsets", among("number", [each.number for each in starts][:100])),
            count=records,
            first_ns=min(each.time_ns for each in starts),
            last_ns=max(each.time_ns for each in starts),
            number=min(each.number for each in starts),
            about=[
                *about_group(group, (each.topic for each in starts)),
                *(("client", name) for name in sorted({each.client for each in starts})[:20]),
            ],
        )


def _first(reads: Reads) -> int | None:
    """Return the offset that a client read first."""
    places = [(event.time_ns, event.about["from"]) for event in reads.events]
    if reads.position is not None:
        places.append(reads.position)
    return min(places)[1] if places else None
