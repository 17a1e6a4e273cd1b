"""Record batches: damage, old formats (question 18), and timestamps of wrong clocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.bodies.contents import MISPLACED, NULLS, OLDER, RECORD_BATCH
from kafkascope.analyzer.findings.codecs import one_topic
from kafkascope.analyzer.findings.counting import Names, Occurrences, least, most, total, whole
from kafkascope.analyzer.findings.filters import all_of, among
from kafkascope.analyzer.findings.framing import is_damaged, swallowed
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import MS, limit
from kafkascope.analyzer.findings.versions import offered, offers_by_api
from kafkascope.analyzer.findings.view import Client, Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import duration, listed, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.dissectors.layout import MAGICS, magic_of
from kafkascope.dissectors.records.batches import LOG_APPEND_TIME

CARRIES: Final = {"Produce": "ProduceRequest", "Fetch": "FetchResponse"}
"""API -> its message with records."""
LIBRDKAFKA: Final = "rdkafka"
"""In the names of all software that is built on it."""


class Noted(Occurrences):
    """Exchanges of a kind."""

    numbers: Names = whole(Names)


class Nulls(Occurrences):
    """Responses with null in place of records."""

    partitions: int = total()
    failed: int = total()
    """Partitions among these that have an error."""


class Batches(Counts):
    """Notes and errors of batches."""

    seen = Noted.table(LIMITS.keys)
    """By kind and client."""
    formats = Occurrences.table(LIMITS.keys)
    """Batches in formats that do not belong there: by API, version, formats and client."""
    nulls = Nulls.table(LIMITS.keys)
    """Responses with null in place of records: by version, software, broker and client."""

    def add(self, batch: ExchangeBatch) -> None:
        row, exchange = batch.row, batch.exchange
        # Where another request took the place of its end, the batch itself is whole.
        if is_damaged(row) and not (row.api == "Produce" and swallowed(exchange)):
            noted = self.seen[("damaged", row.api, one_topic(row), *client_of(row))]
            noted.see(row)
            noted.numbers.add(row.number)
        for note in row.notes:
            if note.text.startswith(MISPLACED):
                magics = note.text.removeprefix(MISPLACED)
                self.formats[(row.api, row.api_version, magics, *client_of(row))].see(row)
                return
            elif note.text.startswith(NULLS):
                self._null(row, exchange)
            elif note.text.startswith(OLDER):
                self.seen[("old log", row.api, "", *client_of(row))].see(row)
        version, carrier = row.api_version, CARRIES.get(row.api)
        if not carrier or version is None or magic_of(carrier, version) >= RECORD_BATCH:
            return
        for time_ns, number, batches in zip(
            batch.begins, batch.numbers, batch.batches, strict=True
        ):
            if batches:
                self.seen[("old", row.api, "", *client_of(row))].see_at(time_ns, number)

    def _null(self, row: Row, exchange: Exchange) -> None:
        codes = [
            part["error_code"]
            for topic in (exchange.response_body or {}).get("responses") or ()
            for part in topic["partitions"]
            if part["records"] is None
        ]
        nulls = self.nulls[(row.api_version, row.software, row.broker_address, *client_of(row))]
        nulls.see(row)
        nulls.partitions += len(codes)
        nulls.failed += sum(map(bool, codes))

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for (kind, api, topic, *who), seen in self.seen.items():
            client = view.client(*who)
            if kind == "old" and view.is_broker(*who):
                continue  # replicas copy what is in the log, and convert nothing
            if kind == "old" and not _offers_record_batches(view, client, str(api)):
                continue
            what = plural(seen.count, f"{api} exchange")
            name, case, text = "batch-old-format", "", "in the format from before Kafka 0.11"
            if kind == "damaged":
                name = "batch-damaged"
                of = f" of topic {view.topic(topic)}" if topic else ""
                text = f"{what}{of} with {client} carried corrupt batches (wrong CRC or structure)"
                where = among("number", seen.numbers)
                if len(seen.numbers) < seen.count:  # too many to be kept
                    first = seen.first[1] if seen.first else 0
                    where = all_of(client.filter, f"api == {api} and number >= {first}")
            else:
                text = f"{what} with {client} carried records {text}"
                case = "" if kind == "old" else "old-log"
                version = "<" if kind == "old" else ">="
                version += f" {MAGICS[CARRIES[str(api)]][RECORD_BATCH].low}"
                where = all_of(client.filter, _with_batches(api, version))
            about = {"client": client, "topic": view.topic(topic) if topic else ()}
            yield view.finding(name, text, where, seen, case=case, about=about)
        for (api, version, magics, *who), misplaced in self.formats.items():
            yield _misplaced(str(api), version, magics, view.client(*who), misplaced, view)
        for (version, software, broker, *who), nulls in self.nulls.items():
            # Brokers before 4.0 send null in some partitions with an error (KAFKA-18648), which
            # only librdkafka does not read.
            refuses = LIBRDKAFKA in str(software)
            if nulls.partitions == nulls.failed and not refuses:
                continue
            client = view.client(*who)
            yield view.finding(
                "records-null",
                f"{plural(nulls.count, f'Fetch v{version} response')} from {broker} to {client} "
                f"{'has' if nulls.count == 1 else 'have'} null in place of records in "
                f"{plural(nulls.partitions, 'partition')}"
                + (f", which {software} does not accept" if refuses else ""),
                f"api == Fetch and version == {version}",
                nulls,
                client=client,
                severity="error" if refuses else "note" if software else "warning",
                about={"broker": str(broker)},
            )


def _offers_record_batches(view: DetectorInput, client: Client, api: str) -> bool:
    """Return whether the client has a choice: brokers before 0.11 have no newer format. Where it
    sends no ApiVersions, what others were offered counts."""
    least = MAGICS[CARRIES[api]][RECORD_BATCH].low
    offer = offered(view, *client.key, api)
    if offer is not None:
        return offer.last >= least
    known = offers_by_api(view).get(api, ())
    return not known or max(each.last for each in known) >= least


def _with_batches(api: Any, version: str) -> str:
    return f"api == {api} and version {version} and batches > 0"


def _misplaced(
    api: str, version: Any, magics: Any, client: Client, seen: Occurrences, view: DetectorInput
) -> Finding:
    """Return the finding about formats that the version of their message does not carry."""
    formats = MAGICS[CARRIES[api]]
    known, case = "magic 0" if version in formats[0] else "magic 0 and 1", ""
    severity: Severity | None = None
    if api != "Fetch" and version in formats[RECORD_BATCH]:
        known, case = "magic 2", "refused"
    elif api != "Fetch":
        severity, case = "warning", "old-broker"
    return view.finding(
        "batch-format",
        f"{plural(seen.count, f'{api} v{version} exchange')} with {client} carried records of "
        f"magic {magics}, but this version supports {known}",
        _with_batches(api, f"== {version}"),
        seen,
        client=client,
        severity=severity,
        case=case,
        about={"api": api},
    )


INVALID_TIMESTAMP: Final = 32
DAY: Final = 86_400 * 1_000 * MS
# Before 2011 there was no Kafka.
OLDER_THAN_KAFKA: Final = 16 * 365 * DAY


class Stamps(Occurrences):
    """Timestamps of the batches of a producer, whose newest records have a CreateTime."""

    ahead_ns: int | None = most()
    """How far the newest timestamp was ahead of the capture's clock; below 0: behind it."""
    least_ns: int | None = least()
    refused: int = total()
    """Requests that were refused with INVALID_TIMESTAMP."""
    topics: Names = whole(Names)
    """Topics of these, as keys."""
    old: int = total()
    """Requests whose newest record is older than retention keeps it by default."""
    old_topics: Names = whole(Names)

    def stamp(self, ahead_ns: int) -> None:
        """Take note of how far a timestamp is ahead."""
        if self.ahead_ns is None or ahead_ns > self.ahead_ns:
            self.ahead_ns = ahead_ns
        if self.least_ns is None or ahead_ns < self.least_ns:
            self.least_ns = ahead_ns


class Clocks(Counts):
    """CreateTime of records next to the clock of the capture."""

    clients = Stamps.table(LIMITS.keys)

    def add(self, batch: ExchangeBatch) -> None:
        newest: dict[tuple[int, int], int] = {}
        refused = []
        for (topic, _, error), parts in batch.parts.items():
            if error == INVALID_TIMESTAMP:
                refused.append(topic)
            begins, numbers = parts.by_batch(parts.begins), parts.by_batch(parts.numbers)
            for place, each in zip(zip(begins, numbers, strict=True), parts.batches, strict=True):
                stamp = each.max_timestamp
                if stamp > newest.get(place, 0) and not each.attributes & LOG_APPEND_TIME:
                    newest[place] = stamp
        if not newest and not refused:
            return
        stamps = self.clients[client_of(batch.row)]
        stamps.see_all(newest or [(batch.first_ns, batch.numbers[0])])
        if newest:
            ahead = [stamp * MS - time_ns for (time_ns, _), stamp in newest.items()]
            stamps.stamp(min(ahead))
            stamps.stamp(max(ahead))
            behind = -limit("clock.behind")
            if min(ahead) <= behind:
                stamps.old += sum(each <= behind for each in ahead)
                for topic, _, _ in batch.parts:
                    stamps.old_topics.add(topic or "")
        if refused:
            stamps.refused += 1
            for topic in refused:
                stamps.topics.add(topic or "")

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        far = limit("clock.ahead")
        seen = [each.ahead_ns for _, each in self.clients.items() if each.ahead_ns is not None]
        right = any(abs(each) < far for each in seen)
        # Of a capture whose own clock is wrong, or was moved, all clients are as far away.
        moved_clock = len(seen) > 1 and max(seen) - min(seen) < far
        for who, stamps in self.clients.items():
            client, ahead = view.client(*who), stamps.ahead_ns
            future = ahead is not None and ahead >= far and right
            future |= ahead is not None and ahead >= limit("clock.alone") and not moved_clock
            if stamps.refused or future:
                yield _wrong(client, stamps, view)
            elif stamps.old and not moved_clock:
                yield _old(client, stamps, view)


def _old(client: Client, stamps: Stamps, view: DetectorInput) -> Finding:
    """Return the finding about records that retention deletes at once."""
    oldest, topics = stamps.least_ns or 0, view.topics(stamps.old_topics)
    was = "was" if stamps.old == 1 else "were"
    return view.finding(
        "clock-skew",
        f"{plural(stamps.old, 'Produce request')} from {client} to {listed(topics)} {was} up to "
        f"{_age(-oldest)} old by CreateTime{_unit(stamps, oldest)}: brokers delete such "
        "records at the next check of retention.ms (7 days by default)",
        "api == Produce",
        stamps,
        client=client,
        count=stamps.old,
        # Copies and tests keep timestamps of the past; no record is older than Kafka.
        severity=None if -oldest >= OLDER_THAN_KAFKA else "note",
        about={"topic": topics},
    )


def _wrong(client: Client, stamps: Stamps, view: DetectorInput) -> Finding:
    ahead, topics = stamps.ahead_ns or 0, view.topics(stamps.topics)
    refused = (
        f"; {plural(stamps.refused, 'request')} for {listed(topics)} "
        f"{'was' if stamps.refused == 1 else 'were'} refused with INVALID_TIMESTAMP"
    )
    kept = ": retention.ms does not delete their segments until that time has passed"
    return view.finding(
        "clock-skew",
        f"Timestamps from {client} are up to {_age(abs(ahead))} "
        f"{'ahead of' if ahead >= 0 else 'behind'} the clock of the capture"
        f"{_unit(stamps, ahead)}{kept if ahead >= limit('clock.alone') else ''}"
        f"{refused if stamps.refused else ''}",
        all_of("api == Produce", "error == 32" if stamps.refused else ""),
        stamps,
        client=client,
        count=stamps.refused or stamps.count,
        severity="error" if stamps.refused else None,
        about={"topic": topics},
    )


def _age(ns: int) -> str:
    """Return a duration, from two days on in days."""
    days = round(ns / DAY)
    return duration(ns) if days < 2 else f"{days:,} days"


def _unit(stamps: Stamps, ahead_ns: int) -> str:
    """Return the apparent unit of timestamps, where it is not Kafka's milliseconds."""
    now = stamps.first[0] if stamps.first else 0
    ratio = (now + ahead_ns) / max(1, now)
    units = ((0.001, "seconds"), (1_000, "microseconds"), (1_000_000, "nanoseconds"))
    for factor, unit in units:
        if 0.9 < ratio / factor < 1.1:
            return f", as if they were {unit}"
    return ""
