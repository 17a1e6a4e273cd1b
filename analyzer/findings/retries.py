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
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kafkascope.analyzer.findings.counting import (
    Event,
    Key,
    Names,
    Occurrences,
    ShortEventLog,
    most,
    total,
    whole,
)
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.security import expired_at
from kafkascope.analyzer.findings.versions import offered
from kafkascope.analyzer.findings.view import Client, Counts, DetectorInput, Finding, Row
from kafkascope.analyzer.findings.words import listed, plural
from kafkascope.analyzer.merging.bounded import Kept
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch, PartitionColumns
from kafkascope.dissectors.reference.codes import error_name

DOUBTFUL: Final = frozenset({-1, 7, 13, 20, 56})
"""Errors after which a batch may be in the log: UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT,
NETWORK_EXCEPTION, NOT_ENOUGH_REPLICAS_AFTER_APPEND, KAFKA_STORAGE_ERROR."""


def by_checksum(key: Key) -> int:
    """Return the rank of a batch in the sample: its checksum, which is as good as random, and equal
    in all tries."""
    checksum: int = key[-2]
    return checksum


class Tries(Occurrences):
    """Tries of one batch of equal bytes."""

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
        """Take note of a try that was appended; -1 where the offset is unknown."""
        self.appended += 1
        if self.landed is None or (time_ns, offset) > self.landed:
            self.landed = time_ns, offset


class Retries(Counts):
    """Batches of producers without idempotence."""

    batches = Tries.table(LIMITS.retried_batches, sample=by_checksum)
    """By batch."""
    logs = ShortEventLog.table(LIMITS.event_keys)
    """By partition."""

    def add(self, batch: ExchangeBatch) -> None:
        if batch.row.acks == 0:
            return
        for (topic, number, error), parts in batch.parts.items():
            if not batch.row.producer_ids:
                self._add_tries(batch.row, (*batch.client, topic or "", number), error, parts)
            counts, bases = parts.sums(parts.counts), parts.base_offsets
            events = [
                (begin, id_, at, exchange, _appended, base, base + count, end)
                for begin, id_, at, exchange, base, count, end in zip(
                    *(parts.begins, parts.ids, parts.at, parts.numbers, bases, counts, parts.ends),
                    strict=True,
                )
                if base is not None and count
            ]
            if events and not error:
                self.logs[(topic or "", number)].events.add_all(events)

    def _add_tries(self, row: Row, about: Key, error: int, parts: PartitionColumns) -> None:
        """Take note of the batches for a partition."""
        worst = self.batches.worst
        places: Iterable[int] = range(len(parts.batches))
        if worst is not None:
            places = [at for at, each in enumerate(parts.batches) if each.crc <= worst]
        if not places:
            return
        begins, numbers = parts.by_batch(parts.begins), parts.by_batch(parts.numbers)
        answered, bases = parts.by_batch(parts.answered), parts.by_batch(parts.base_offsets)
        before = parts.before
        closed = row.reason.endswith("by the broker")
        place = f"{row.client_address} {row.broker_address}" if closed else ""
        for at in places:
            batch, begin_ns = parts.batches[at], begins[at]
            if worst is not None and batch.crc > worst:
                continue
            # A retry sends the same bytes.
            key = *about, batch.crc, batch.size
            tries = self._try(key, begin_ns, numbers[at], batch.record_count or 0)
            if not answered[at] or error in DOUBTFUL:
                tries.unsure.add((begin_ns, row.api_version or 0, place, error))
            elif not error:
                base = bases[at]
                tries.land(begin_ns, -1 if base is None else base + before[at])
            worst = self.batches.worst

    def _try(self, key: Key, time_ns: int, number: int, records: int) -> Tries:
        tries = self.batches[key]
        tries.see_at(time_ns, number)
        if tries.records is None or records > tries.records:
            tries.records = records
        if tries.second is None or number > tries.second:
            tries.second = number
        return tries

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for (*who, topic, number, _, _), tries in self.batches.items():
            if tries.count < 2 or not len(tries.unsure) or tries.first is None:
                continue
            log, client = self.logs.get((topic, number)), view.client(*who)
            unsure = [
                each
                for each in tries.unsure
                if not _refused(each, client, view) and not _no_room(each[0], tries.landed, log)
            ]
            if tries.appended + len(unsure) < 2:
                continue
            place = f"{view.topic(topic)}-{number}"
            said = sorted({error_name(each[3]) for each in unsure if each[3]})
            why = f"{listed(said)} leaves it open" if said else "one response is missing"
            sure = "was written twice" if tries.appended > 1 else f"may be written twice: {why}"
            # Of a connection that began before the capture nobody knows whether it had to
            # authenticate again: the broker closes it then, and appends nothing.
            early = tries.appended < 2 and all(each[2] in _early_places(view) for each in unsure)
            records = f" of {plural(tries.records, 'record')}" if tries.records else ""
            often = "twice" if tries.count == 2 else f"{tries.count} times"
            yield view.finding(
                "batch-twice",
                f"{client} sent a batch{records} for {place} {often}; it {sure}",
                f"number in {{{tries.first[1]}, {tries.second}}}",
                tries,
                count=tries.count - 1,
                severity="note" if early else None,
                about={"client": client, "partition": place},
            )


def _refused(each: tuple[Any, ...], client: Client, view: DetectorInput) -> bool:
    """Return whether the broker closed the connection instead of appending."""
    time_ns, version, place, _ = each
    if not place:
        return False
    span = offered(view, *client.key, "Produce")
    if span is not None and not span.takes(version):
        return True
    address, broker = place.split(" ")
    return expired_at(view, address, broker, time_ns)


def _appended(kept: Kept) -> Event:
    time_ns, id_, part, number, _, base, end, end_ns = kept
    about = {"base": base, "end": end, "end_ns": end_ns}
    return Event(time_ns, id_, part, number, "appended", about)


@DetectorInput.once
def _early_places(view: DetectorInput) -> set[str]:
    middle = view.base.connections.midstream()
    return {
        f"{line['client_address']} {line['broker_address']}"
        for line in view.lines
        # A cut keeps handshakes, and not what was said before its time.
        if line["connection"] in middle or not line["greeted"]
    }


def _no_room(time_ns: int, landed: tuple[int, int] | None, log: ShortEventLog | None) -> bool:
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
