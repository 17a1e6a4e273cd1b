"""Offsets out of range, and where the client continued (question 14); groups that start at the end
of a log with records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.findings.counting import (
    EventLog,
    Key,
    KeyedMeasures,
    Occurrences,
    least,
    most,
)
from kafkascope.analyzer.findings.filters import all_of, among, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import (
    Client,
    Counts,
    DetectorInput,
    Exchange,
    Finding,
    Row,
    client_key,
)
from kafkascope.analyzer.findings.words import listed, plural, spelled
from kafkascope.analyzer.identity import ClientKey, client_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.delivery.ends import LATEST, value_at
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition, Reads
from kafkascope.analyzer.statistics.model import topic_key, topic_label

OUT_OF_RANGE: Final = 1
WORDS: Final = {-1: "latest", -2: "earliest"}


class OffsetOutOfRange(Occurrences):
    """Refused offsets of a partition."""

    asked: tuple[bool, int, int, int, int] | None = most()
    """(whether the offset is known, because a Fetch in a session may omit it; time, requested
    offset, log start, high watermark)"""


class EndLookup(KeyedMeasures):
    """A client's first lookup of the end of a partition."""

    first: tuple[int, int, int] | None = least()
    """(time, number, offset)"""


class Refused(NamedTuple):
    """A refused fetch offset."""

    place: str
    text: str
    lost: int
    """Count of records that were deleted before they were read."""
    group: str
    seen: OffsetOutOfRange


class Start(NamedTuple):
    """A partition that a group started to read at its end."""

    topic: str
    partition: int
    client: Client
    records: int
    """Count of records in the log before."""
    time_ns: int
    number: int


class Resets(Counts):
    """Offsets that brokers refused, and offsets that clients looked up."""

    outside = OffsetOutOfRange.table(LIMITS.keys)
    listed = EventLog.table(500)
    lookups = EndLookup.table(LIMITS.keys)

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        request, response = exchange.request_body, exchange.response_body
        if request is None or response is None:
            return
        who = client_of(row)
        if row.api != "Fetch":
            self._looked_up(who, request, response, row)
        elif any(error.code == OUT_OF_RANGE for error in row.errors):
            self._refused(who, request, response, row)

    def _refused(
        self, who: Key, request: dict[str, Any], response: dict[str, Any], row: Row
    ) -> None:
        offsets = {
            (_key_of(topic), each["partition"]): each["fetch_offset"]
            for topic in request["topics"] or ()
            for each in topic["partitions"]
        }
        for topic in response["responses"]:
            for each in topic["partitions"]:
                if each["error_code"] == OUT_OF_RANGE:
                    place = _key_of(topic), each["partition_index"]
                    offset = offsets.get(place, -1)
                    bounds = each.get("log_start_offset", -1), each.get("high_watermark", -1)
                    asked_at = offset >= 0, row.time_ns, offset, *bounds
                    self.outside[(*who, *place)].see(row, asked=asked_at)

    def _looked_up(
        self, who: Key, request: dict[str, Any], response: dict[str, Any], row: Row
    ) -> None:
        wanted = {
            (topic["name"], each["partition_index"]): each["timestamp"]
            for topic in request["topics"]
            for each in topic["partitions"]
        }
        for topic in response["topics"]:
            for part, each in enumerate(topic["partitions"]):
                place, offset = (topic["name"], each["partition_index"]), each.get("offset", -1)
                if each["error_code"] or offset < 0:
                    continue
                about = {"timestamp": wanted.get(place, 0), "offset": offset}
                if part < LIMITS.entities:
                    self.listed[(*who, *place)].events.note(row, "listed", about, part)
                if wanted.get(place) == LATEST:
                    lookup = self.lookups[(who[0] or "", who[1], *place)]
                    lookup.take(first=(row.time_ns, row.number, offset))

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        refusals = [
            (key, found)
            for (*who, topic, number), outside in self.outside.items()
            for key, found in self._refusals(who, topic, number, outside, view)
        ]
        for (*who, topic, name), found in by_key(refusals).items():
            yield _outside(view.client(*who), topic, name, found, view)
        yield from _began_at_log_start({key for key, _ in self.outside.items()}, view)
        for group, starts in sorted(by_key(self._starts(view)).items()):
            if not view.has_gaps(group):  # records may have been read in a gap
                yield _latest(group, starts, view)

    def _refusals(
        self,
        who: list[Any],
        topic: Any,
        number: int,
        outside: OffsetOutOfRange,
        view: DetectorInput,
    ) -> Iterator[tuple[Key, Refused]]:
        """Yield refused fetch offsets of a partition, with client, topic and rule. A client's first
        start is left out: it loses nothing."""
        assert outside.asked is not None
        _, time_ns, offset, begin, end = outside.asked
        named, client = view.topic(topic), view.client(*who)
        begins, ends = view.audit.bounds.get((named, number), ([], []))
        begin = begin if begin >= 0 else value_at(begins, time_ns)
        end = end if end >= 0 else value_at(ends, time_ns)
        place = _places(view).get(("@".join(client.key), named, number))
        log = self.listed.get((*who, named, number), EventLog())
        reset = next((event.about for event in log.events if event.time_ns > time_ns), None)
        reads = view.base.delivery.reads.get((topic, number, *client.key))
        events = reads.events if reads is not None else ()
        before = [each.about["to"] for each in events if each.about["end_ns"] <= time_ns]
        new = place.none if place is not None else offset == 0
        if new and not before and reset is not None:
            return
        overtaken = begin > offset and offset in before
        name = "retention-overtook" if overtaken else "offset-out-of-range"
        if begin <= offset <= end:
            begin = end = -1  # these bounds are from before records were deleted
        stopped = reset is None and _stopped(reads, outside, client, view)
        text = _described(f"{named}-{number}", offset, begin, end, reset, stopped=stopped)
        lost = begin - offset if overtaken else 0
        group = place.group if place is not None else ""
        yield (*who, topic, name), Refused(f"{named}-{number}", text, lost, group, outside)

    def _starts(self, view: DetectorInput) -> Iterator[tuple[str, Start]]:
        """Yield (group, start) for partitions that a group without committed offsets read first at
        the end."""
        bounds = view.audit.bounds
        for (_, number, *who), place, reads in _readers(view):
            topic = place.topic
            lookup = self.lookups.get((*who, topic, number))
            if not place.none or lookup is None or lookup.first is None:
                continue
            time_ns, seen, offset = lookup.first
            records = offset - max(0, value_at(bounds.get((topic, number), ([], []))[0], time_ns))
            if records > 0 and _first(reads) == offset:
                yield place.group, Start(topic, number, view.client(*who), records, time_ns, seen)


def _began_at_log_start(refused: set[Any], view: DetectorInput) -> Iterator[Finding]:
    """Yield readers that began at the log start, which is after their committed offset: sarama
    compares both, and sends no Fetch that the broker would refuse. `refused`: client, topic and
    partition of refused Fetch requests."""
    for (key, number, *who), place, reads in _readers(view):
        topic, first, event = place.topic, _first(reads), next(iter(reads.events), None)
        if place.start is None or first is None or event is None:
            continue
        if len(place.readers) > 1 or (*who, key, number) in refused:
            continue
        begin = value_at(view.audit.bounds[topic, number][0], event.about["end_ns"])
        if 0 <= place.start < first == begin:
            lost = plural(first - place.start, "record")
            client = view.client(*who)
            yield view.finding(
                "offset-out-of-range",
                f"{client} continued at offset {first:,} of {topic}-{number}, the first that it "
                f"holds, and not at the committed offset {place.start:,}: {lost} skipped",
                "api == Fetch",
                client=client,
                topic=key,
                span=(event.time_ns, event.time_ns),
                number=event.number,
                about={"group": spelled(place.group), "partition": f"{topic}-{number}"},
            )


def _key_of(topic: dict[str, Any]) -> str | None:
    return topic_key(topic.get("topic"), topic.get("topic_id"))


def _readers(view: DetectorInput) -> Iterator[tuple[Key, AuditedPartition, Reads]]:
    """Yield (key of topic, number and client; partition; reads) for partitions that clients read
    for a group."""
    places = _places(view)
    for key, reads in view.base.delivery.reads.items() if places else ():
        topic, number, *who = key
        place = places.get((f"{who[0]}@{who[1]}", topic_label(topic, view.names) or "?", number))
        if place is not None:
            yield key, place, reads


@DetectorInput.once
def _places(view: DetectorInput) -> dict[tuple[str, str, int], AuditedPartition]:
    return {
        (reader, place.topic, place.number): place
        for place in view.audit.found
        for reader in place.readers
    }


def _outside(
    client: Client, topic: Any, name: str, found: list[Refused], view: DetectorInput
) -> Finding:
    text = f"{client} requested"
    if name == "retention-overtook":
        lost = plural(sum(each.lost for each in found), "record")
        text = f"{lost} of {view.topic(topic)} were deleted before {client} read them: it requested"
    texts = "; ".join(each.text for each in found[: LIMITS.resets])
    more = f"; and {len(found) - LIMITS.resets} more" if len(found) > LIMITS.resets else ""
    return view.finding(
        name,
        f"{text} {texts}{more}",
        "api == Fetch and error == OFFSET_OUT_OF_RANGE",
        Occurrences.summed(each.seen for each in found),
        client=client,
        topic=topic,
        about={
            "group": sorted({spelled(each.group) for each in found if each.group}),
            "partition": [each.place for each in found[: LIMITS.topics]],
        },
    )


def _stopped(
    reads: Reads | None, outside: OffsetOutOfRange, client: Client, view: DetectorInput
) -> bool:
    """Return whether a client got no more of the partition although there was time: it is gone, or
    its application must have polled again."""
    time_ns = outside.first[0] if outside.first is not None else 0
    if reads is not None and (reads.last_ns or 0) > time_ns:
        return False
    waited = (view.last_ns or 0) - time_ns
    gone = waited > limit("resets.soon") and client.key not in _open(view)
    return gone or waited > limit("resets.polled")


@DetectorInput.once
def _open(view: DetectorInput) -> set[ClientKey]:
    return {client_key(line) for line in view.lines if line["state"] == "open"}


def _described(
    place: str, offset: int, begin: int, end: int, reset: dict[str, Any] | None, *, stopped: bool
) -> str:
    """Return a text with the requested offset, the log's bounds, and where the client continued."""
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


def _latest(group: str, starts: list[Start], view: DetectorInput) -> Finding:
    starts.sort(key=lambda each: (each.topic, each.partition, -each.time_ns))
    # A partition may move from member to member before it has a committed offset.
    places = {(each.topic, each.partition): each for each in starts}
    named = listed(f"{topic}-{number}" for topic, number in places)
    records = sum(each.records for each in places.values())
    numbers = [each.number for each in starts]
    return view.finding(
        "latest-skips",
        f"Group {spelled(group)} had no committed offset and started at the end of {named} "
        f"(latest), skipping {plural(records, 'record')}",
        f"(api == OffsetFetch and group == {quoted(group)}) or "
        + all_of("api == ListOffsets", among("number", numbers[: LIMITS.entities])),
        Occurrences.of(starts),
        count=records,
        about={
            **view.about_group(group, (each.topic for each in starts)),
            "client": sorted({each.client for each in starts})[: LIMITS.topics],
        },
    )


def _first(reads: Reads) -> int | None:
    places = [(event.time_ns, event.about["from"]) for event in reads.events]
    places += [reads.position] if reads.position is not None else []
    return min(places)[1] if places else None
