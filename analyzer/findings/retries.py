"""Batches that producers without idempotence sent again, and whether both copies can be in the log
(close behind question 18).

A try was appended when it was answered without an error. One that a broker refused was not, nor one
whose connection the broker closed because it does not take the version, or because the SASL session
had expired. For any other unanswered try the offsets decide: a copy takes up room in the log, and
where answers account for every offset between a batch that was answered before the try and the
batch that was answered after it, there is none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar, Final

from kafkascope.analyzer.findings.detector import (
    Detector,
    Exchange,
    Finding,
    Row,
    Rule,
    Seen,
    ShortLog,
)
from kafkascope.analyzer.findings.offers import offered
from kafkascope.analyzer.findings.sessions import expired_at
from kafkascope.analyzer.findings.view import View, listed, once, plural
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.events import Event, Kept
from kafkascope.analyzer.statistics.merging.measures import measured, most, total, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Key, Keyed
from kafkascope.analyzer.statistics.moved import Parts, parts_of
from kafkascope.dissectors.reference.codes import error_name

PRODUCE: Final = 0
DOUBTFUL: Final = frozenset({-1, 7, 13, 20, 56})
"""Errors after which a batch may be in the log: UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT,
NETWORK_EXCEPTION, NOT_ENOUGH_REPLICAS_AFTER_APPEND, KAFKA_STORAGE_ERROR."""
MAX_BATCHES: Final = 5_000
"""A sample by key: copies of a batch are in it together, or none is."""
MAX_PARTITIONS: Final = 300
"""Whose answered offsets are kept."""


_SPREAD: Final = 0x9E3779B97F4A7C15
"""Odd, with bits all over: multiplied by it, numbers that are near come to lie far apart."""


def by_checksum(key: Key) -> int:
    """Return the rank of a batch in the sample, from its checksum and size."""
    *_, crc, size = key
    mixed: int = ((crc << 24) ^ size) * _SPREAD
    return mixed & 0xFFFF_FFFF_FFFF_FFFF


@measured
class Tries(Seen):
    """One batch as its bytes tell it."""

    appended: int = total()
    unsure: Names = whole(Names)
    """(time, version, connection or "", error or 0) of tries without an answer, or with a doubtful
    one; the connection is there when the broker closed it."""
    records: int | None = most()
    landed: tuple[int, int] | None = most()
    """(time, offset) of the last try that was appended."""
    second: int | None = most()
    """Number of the last exchange with it."""

    def land(self, time_ns: int, offset: int) -> None:
        """Take note of a try that was appended; -1 where nobody knows the offset."""
        self.appended += 1
        if self.landed is None or (time_ns, offset) > self.landed:
            self.landed = time_ns, offset


class Retries(Detector):
    """Batches of producers without idempotence."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "batch-twice",
            "warning",
            "batch sent twice by a producer without idempotence",
            "Set enable.idempotence=true, so that brokers drop duplicates. Without it each retry "
            "after a lost response may duplicate records.",
            "DUPLICATE_SEQUENCE_NUMBER",
            brief="{n} batch sent twice|{n} batches sent twice",
        ),
    )
    KEYS = frozenset({PRODUCE})

    batches: Keyed[Tries] = table(Tries, MAX_BATCHES, sample=by_checksum)
    """By batch."""
    logs: Keyed[ShortLog] = table(ShortLog, MAX_PARTITIONS)
    """By partition."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of tries, and the offsets of those that were appended."""
        if row.acks == 0:
            return
        who = row.client_id or "", host_of(row.client_address)
        for begin_ns, end_ns, exchange_, id_, part, *_, each in parts_of(row, exchange)[0]:
            _, named, number, error, answered, _, base, batches, counts = each
            topic, count = named or "", 0
            for batch, records in zip(batches, counts, strict=True):
                # Codec, size and checksum: a retry sends the same bytes.
                key = *who, topic, number, batch.crc, batch.size
                worst = self.batches.worst
                if not row.producer_ids and (worst is None or by_checksum(key) <= worst):
                    tries = self._try(key, begin_ns, exchange_, batch.record_count or 0)
                    if not answered or error in DOUBTFUL:
                        closed = row.reason.endswith("by the broker")
                        place = f"{row.client_address} {row.broker_address}" if closed else ""
                        tries.unsure.add((begin_ns, row.api_version or 0, place, error))
                    elif not error:
                        tries.land(begin_ns, -1 if base is None else base + count)
                count += records
            if base is not None and not error and count:
                head = begin_ns, id_, part, exchange_, _appended
                self.logs[(topic, number)].events.add(
                    (*head, base, base + count, end_ns or begin_ns)
                )

    def add_all(self, alike: Alike) -> None:
        """Take note of usual exchanges."""
        for (topic, number), parts in alike.parts.items():
            if not alike.row.producer_ids:
                self._add_all(alike, (*alike.who, topic or "", number), parts)
            counts, given = parts.sums(parts.counts), parts.given
            events = [
                (begin, id_, at, exchange, _appended, base, base + count, end)
                for begin, id_, at, exchange, base, count, end in zip(
                    *(parts.begins, parts.ids, parts.at, parts.numbers, given, counts, parts.ends),
                    strict=True,
                )
                if base is not None and count
            ]
            if events:
                self.logs[(topic or "", number)].events.add_all(events)

    def _add_all(self, alike: Alike, about: Key, parts: Parts) -> None:
        """Take note of the batches of usual exchanges for a partition."""
        batches = parts.batches
        ranks = [
            ((crc << 24) ^ size) * _SPREAD & 0xFFFF_FFFF_FFFF_FFFF
            for crc, size in zip(batches.crc, batches.size, strict=True)
        ]
        worst = self.batches.worst
        if worst is not None and min(ranks, default=worst + 1) > worst:
            return
        begins, numbers = parts.by_batch(parts.begins), parts.by_batch(parts.numbers)
        answered, given = parts.by_batch(parts.answered), parts.by_batch(parts.given)
        before: Sequence[int] = [0] * len(ranks)
        if not parts.lone:
            found = parts.by_exchange(parts.counts)
            before = [at for each in found if each for at in accumulate(each[:-1], initial=0)]
        for place, rank in enumerate(ranks):
            if worst is not None and rank > worst:
                continue
            batch, begin_ns = parts.found[place], begins[place]
            key = *about, batch.crc, batch.size
            tries = self._try(key, begin_ns, numbers[place], batch.record_count or 0)
            if answered[place]:
                base = given[place]
                tries.land(begin_ns, -1 if base is None else base + before[place])
            else:
                tries.unsure.add((begin_ns, alike.row.api_version or 0, "", 0))
            worst = self.batches.worst

    def _try(self, key: Key, time_ns: int, number: int, records: int) -> Tries:
        """Take note of a try; return what is known of the batch."""
        tries = self.batches[key]
        tries.see_at(time_ns, number)
        if tries.records is None or records > tries.records:
            tries.records = records
        if tries.second is None or number > tries.second:
            tries.second = number
        return tries

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by batch."""
        for (client_id, host, topic, number, _, _), tries in self.batches.items():
            if tries.count < 2 or not len(tries.unsure) or tries.first is None:
                continue
            log = self.logs.get((topic, number))
            unsure = [
                each
                for each in tries.unsure
                if not self._refused(each, (client_id, host), view)
                and not _no_room(each[0], tries.landed, log)
            ]
            if tries.appended + len(unsure) < 2:
                continue
            who, place = view.client(client_id, host), f"{view.topic(topic)}-{number}"
            said = sorted({error_name(each[3]) for each in unsure if each[3]})
            why = f"{listed(said)} leaves it open" if said else "one response was not captured"
            sure = "was written twice" if tries.appended > 1 else f"may be written twice: {why}"
            # Of a connection that began before the capture nobody knows whether it had to
            # authenticate again: the broker closes it then, and appends nothing.
            early = tries.appended < 2 and all(each[2] in _early_places(view) for each in unsure)
            records = f" of {plural(tries.records, 'record')}" if tries.records else ""
            often = "twice" if tries.count == 2 else f"{tries.count} times"
            yield view.finding(
                self.rule("batch-twice"),
                f"{who} sent a batch{records} for {place} {often}; it {sure}",
                f"number in {{{tries.first[1]}, {tries.second}}}",
                tries,
                count=tries.count - 1,
                severity="note" if early else None,
                about=[("client", who), ("partition", place)],
            )

    def _refused(self, each: tuple[Any, ...], who: tuple[Any, Any], view: View) -> bool:
        """Return whether the broker closed the connection instead of appending."""
        time_ns, version, place, _ = each
        if not place:
            return False
        span = offered(view, *who, "Produce")
        if span is not None and not span.takes(version):
            return True
        client, broker = place.split(" ")
        return expired_at(view, client, broker, time_ns)


def _appended(kept: Kept) -> Event:
    time_ns, id_, part, number, _, base, end, end_ns = kept
    about = {"base": base, "end": end, "end_ns": end_ns}
    return Event(time_ns, id_, part, number, "appended", about)


@once
def _early_places(view: View) -> set[str]:
    middle = view.base.connections.midstream()
    return {
        f"{line['client_address']} {line['broker_address']}"
        for line in view.lines()
        # A cut keeps handshakes, and not what was said before its time.
        if line["connection"] in middle or not line["greeted"]
    }


def _no_room(time_ns: int, landed: tuple[int, int] | None, log: ShortLog | None) -> bool:
    """Return whether known batches fill the log between one that was there before a try and the
    batch that was appended after it."""
    if landed is None or log is None or landed[0] <= time_ns or landed[1] < 0:
        return False
    offset = landed[1]
    known = sorted(
        (event.about["end"], event.about["base"], event.about["end_ns"]) for event in log.events
    )
    at = bisect_left(known, (offset + 1,))
    for end, base, end_ns in reversed(known[:at]):
        if base >= offset:
            continue
        if end < offset:
            return False
        if end_ns <= time_ns:
            return True
        offset = base
    return False
