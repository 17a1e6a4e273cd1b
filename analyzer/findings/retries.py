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
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.findings.counting import (
    Event,
    Key,
    KeyedMeasures,
    Occurrences,
    ShortEventLog,
    smallest,
    total,
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


NOT_APPENDED: Final = -2
"""In the place of an offset, also where nobody knows."""


class Try(NamedTuple):
    """A request with a batch."""

    time_ns: int
    number: int
    """Number of the exchange."""
    records: int
    offset: int
    """At which the batch was appended, -1 if that is unknown; or `NOT_APPENDED`."""
    unsure: bool
    """It was not answered, or in doubt."""
    version: int
    place: str
    """Both ends of the connection, where the broker closed it."""
    error: int


class Tries(KeyedMeasures):
    """Tries of one batch of equal bytes. Nearly all have one, which makes no finding: it costs as
    little as can be."""

    count: int = total()
    tries: tuple[tuple[Any, ...], ...] = smallest()
    """Fields of `Try`."""


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
        connection = row.api_version or 0, place, error
        for at in places:
            batch = parts.batches[at]
            if worst is not None and batch.crc > worst:
                continue
            # A retry sends the same bytes.
            unsure, offset, base = not answered[at] or error in DOUBTFUL, NOT_APPENDED, bases[at]
            if not unsure and not error:
                offset = -1 if base is None else base + before[at]
            records = batch.record_count or 0
            one = ((begins[at], numbers[at], records, offset, unsure, *connection),)
            known = self.batches[(*about, batch.crc, batch.size)]
            if known.count:
                known.take(count=1, tries=one)
            else:
                known.count, known.tries = 1, one
            worst = self.batches.worst

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for (*who, topic, number, _, _), batch in self.batches.where(_is_repeated):
            tries = sorted(map(Try._make, batch.tries))
            log, client = self.logs.get((topic, number)), view.client(*who)
            appended = [each for each in tries if each.offset != NOT_APPENDED]
            unsure = [
                each
                for each in tries
                if each.unsure
                and not _refused(each, client, view)
                and not _no_room(each, appended, log)
            ]
            if not any(each.unsure for each in tries) or len(appended) + len(unsure) < 2:
                continue
            place = f"{view.topic(topic)}-{number}"
            said = sorted({error_name(each.error) for each in unsure if each.error})
            why = f"{listed(said)} leaves it open" if said else "one response is missing"
            sure = "was written twice" if len(appended) > 1 else f"may be written twice: {why}"
            # Of a connection that began before the capture nobody knows whether it had to
            # authenticate again: the broker closes it then, and appends nothing.
            early = len(appended) < 2 and all(each.place in _early_places(view) for each in unsure)
            size = max(each.records for each in tries)
            records = f" of {plural(size, 'record')}" if size else ""
            often = "twice" if batch.count == 2 else f"{batch.count} times"
            yield view.finding(
                "batch-twice",
                f"{client} sent a batch{records} for {place} {often}; it {sure}",
                f"number in {{{tries[0].number}, {max(each.number for each in tries)}}}",
                Occurrences.of(tries),
                count=batch.count - 1,
                severity="note" if early else None,
                about={"client": client, "partition": place},
            )


def _is_repeated(batch: Tries) -> bool:
    return batch.count > 1


def _refused(each: Try, client: Client, view: DetectorInput) -> bool:
    """Return whether the broker closed the connection instead of appending."""
    if not each.place:
        return False
    span = offered(view, *client.key, "Produce")
    if span is not None and not span.takes(each.version):
        return True
    address, broker = each.place.split(" ")
    return expired_at(view, address, broker, each.time_ns)


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


def _no_room(each: Try, appended: list[Try], log: ShortEventLog | None) -> bool:
    """Return whether known batches fill the log between one that was there before a try and the
    batch that was appended after it."""
    time_ns, offset = each.time_ns, appended[-1].offset if appended else NOT_APPENDED
    if log is None or offset < 0 or appended[-1].time_ns <= time_ns:
        return False
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
