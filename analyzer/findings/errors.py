"""Error codes that no other detector explains: storms, and those that mean broken things (question
6); brokers that report full or broken disks; topics that worked and then were no longer there
(question 13)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any, Final

from kafkascope.analyzer.findings.counting import (
    KeyedMeasures,
    Names,
    Occurrences,
    ShortEventLog,
    least,
    most,
    whole,
)
from kafkascope.analyzer.findings.filters import all_of, api_is
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import Client, Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.merging.measures import stretch
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.model import per_second, topic_id_in, topic_key
from kafkascope.dissectors.reference.codes import ERRORS, error_name

ELSEWHERE: Final = frozenset(
    {1, 5, 6, 10, 18, 29, 30, 31, 33, 34, 35, 45, 46, 47, 49}
    | {53, 56, 58, 59, 65, 66, 74, 75, 76, 89, 90}
)
"""Codes with detectors of their own."""
HANDLED: Final = frozenset(
    {3, 14, 15, 16, 22, 25, 27, 36, 51, 69, 70, 71, 79, 82, 94, 100, 103, 110, 111, 117, 122, 123}
)
"""Codes that healthy clients meet now and then and deal with: only storms of them count."""
# CONCURRENT_TRANSACTIONS: brokers complete a transaction after they answered EndTxn, and
# producers retry every 20 ms meanwhile (the KIP-98 design); one that never completes makes that a
# storm.
BUSY: Final = frozenset({51})
BROKEN: Final = frozenset(
    {-1, 2, 7, 12, 19, 20, 21, 23, 24, 26, 37, 38, 40, 41, 42, 43, 44, 50, 60, 63, 67, 81, 87, 112}
)
"""Codes that healthy clusters and clients do not give, or meet."""
ASKED: Final = {
    26: "session_timeout_ms",
    37: "num_partitions",
    38: "replication_factor",
    50: "transaction_timeout_ms",
}
"""Codes that refuse a value -> the field of the request, or of a topic in it."""
DEFAULT: Final = -1
"""A number of partitions or replicas that is left to the broker."""
AMONG_BROKERS: Final = frozenset({41})
"""NOT_CONTROLLER."""
NO_TOPIC: Final = frozenset({3, 17})
"""Errors of Metadata, left to the lookups."""
STORAGE_ERROR: Final = 56


class DiskFailure(Occurrences):
    """Answers of a broker that could not use its disk."""

    apis: Names = whole(Names)
    clients: Names = whole(Names)
    topics: Names = whole(Names)


class ErrorSeen(Occurrences):
    """Responses with an error."""

    values: Names = whole(Names)
    """Values of the request, that were refused."""
    messages: Names = whole(Names)
    """Error messages of the broker."""


class ErrorCodes(Counts):
    """Errors that no statistic counts by topic."""

    seen = ErrorSeen.table(LIMITS.many_keys)
    """By code, API, client and topic."""
    disks = DiskFailure.table(500)
    """By broker."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        found = {(e.code, topic_key(e.topic, e.topic_id)) for e in row.errors}
        for code, topic in found:
            elsewhere = code in ELSEWHERE or row.api == "ApiVersions"
            if not elsewhere and not (row.api == "Metadata" and code in NO_TOPIC):
                seen = self.seen[(code, row.api, *client_of(row), topic)]
                seen.see(row)
                if code in ASKED:
                    seen.values.add(_value(exchange.request_body or {}, ASKED[code], topic))
                for error in row.errors:
                    if error.code == code and error.message:
                        seen.messages.add(error.message)
        topics = {topic for code, topic in found if code == STORAGE_ERROR}
        if topics:
            failed = self.disks[(row.broker_address,)]
            failed.see(row, apis=row.api, clients=client_of(row))
            for topic in filter(None, topics):
                failed.topics.add(topic)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for (code, api, *who, topic), seen in self.seen.items():
            yield from _seen(int(str(code)), api, view.client(*who), topic, seen, view)
        for (broker,), failed in self.disks.items():
            apis = sorted(map(str, failed.apis))
            clients, topics = view.clients(failed.clients), view.topics(failed.topics)
            about = f" for {listed(topics)}" if topics else ""
            yield view.finding(
                "disk-failed",
                f"Broker {spelled(broker)} cannot use its disk: "
                f"{plural(failed.count, 'request')} ({listed(apis)}) from {listed(clients)}{about} "
                "failed with KAFKA_STORAGE_ERROR",
                f'broker == "{broker}" and error == {STORAGE_ERROR}',
                failed,
                about={
                    "broker": spelled(broker),
                    "client": clients,
                    "topic": topics[: LIMITS.listed],
                },
            )


def _value(request: dict[str, Any], field: str, topic: Any) -> str:
    """Return a value of a request, or of a topic in it, with its name; empty where it has none."""
    named = (
        each for each in request.get("topics") or () if topic_key(each.get("name"), None) == topic
    )
    value = next(named, request).get(field)
    return "" if value is None or value == DEFAULT else f"{field} {value:,}"


def _reasons(seen: ErrorSeen) -> str:
    """Return the values that were refused, and the first reason that the broker gave."""
    values = sorted(filter(None, seen.values))
    given = f" ({listed(values, 2)})" if values else ""
    said = spelled(min(seen.messages, default=""))
    return given + (f": {said.removesuffix('.')}" if said else "")


def _seen(
    code: int, api: Any, client: Client, topic: Any, seen: ErrorSeen, view: DetectorInput
) -> Iterator[Finding]:
    from kafkascope.dissectors.reference.help import help_of

    first = seen.first[0] if seen.first else None
    rate = per_second(seen.count, first, seen.last_ns) or 0
    least = limit("errors.storm-busy" if code in BUSY else "errors.storm-rate")
    storm = seen.count >= limit("errors.storm") and rate >= least
    if code in HANDLED and not storm:
        return
    # Controllers move and epochs go stale while a cluster lives; brokers try again.
    daily = not storm and (code not in BROKEN or code in AMONG_BROKERS)
    if daily and view.is_broker(*client.key):
        return
    error, help_ = error_name(code), help_of(code)
    about = f" for topic {view.topic(topic)}" if topic else ""
    span = duration(seen.span_ns)
    often = f" within {span} ({rate:.0f} per second)" if storm else ""
    retry = ERRORS[code].retriable if code in ERRORS else False
    again = "; the error is not retriable" if storm and not retry else ""
    why = f"Check the usual causes: {'; '.join(help_.causes)}. {help_.meaning}"
    yield view.finding(
        "error-storm" if storm else "error-broken" if code in BROKEN else "error-seen",
        f"{plural(seen.count, f'{api} response')} to {client}{about} returned "
        f"{error}{often}{again}{_reasons(seen)}",
        all_of(api_is(api), f"error == {code}", view.of_topic(topic)),
        seen,
        client=client,
        severity="error" if storm and code in BROKEN else None,
        advice=why if help_.causes else "",
        link=error,
        about={"error": error, "topic": view.topic(topic) if topic else ()},
    )


GONE: Final = frozenset({3, 100, 103})
"""UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID."""


class TopicLife(KeyedMeasures):
    """When a topic existed, as answers show."""

    first_ns: int | None = least()
    last_ns: int | None = most()
    deleted: tuple[int, str] | None = least()
    """(time, client) of a DeleteTopics that was done."""
    users: Names = whole(Names)
    """(client id, host) of its writers and readers."""


class Deleted(Counts):
    """When topics worked, and later errors about missing ones."""

    lives = TopicLife.table(LIMITS.few_keys)
    """By topic."""
    refused = ShortEventLog.table(LIMITS.few_keys)

    def add(self, batch: ExchangeBatch) -> None:
        row = batch.row
        if row.latency_ns is None:
            return
        if row.api in ("Metadata", "DeleteTopics"):
            self._note_topics(row, batch.exchange, batch.ends[0])
        for (topic, _, error), parts in batch.parts.items():
            if not error:
                life = self.lives[(topic,)]
                stretch(life, min(parts.ends), max(parts.ends))
                life.users.add(batch.client)
        if not row.errors or row.api == "DeleteTopics":
            return
        keys = {topic_key(e.topic, e.topic_id): e.code for e in row.errors if e.code in GONE}
        for part, (key, code) in enumerate(sorted(keys.items(), key=str)):
            if key is not None:
                about = {"client": list(batch.client), "code": code}
                self.refused[(key,)].events.note(row, "gone", about, part)

    def _note_topics(self, row: Row, exchange: Exchange, end_ns: int) -> None:
        """Take note of topics in Metadata and DeleteTopics."""
        is_metadata = row.api == "Metadata"
        response = exchange.response_body or {}
        for each in response.get("topics" if is_metadata else "responses", ()):
            key = topic_key(each["name"], each.get("topic_id"))
            if each["error_code"] or key is None:
                continue
            life = self.lives[(key,)]
            if is_metadata:
                stretch(life, end_ns)
            else:
                life.take(deleted=(end_ns, row.client_id or ""))

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        lives: dict[str, TopicLife] = {}
        created: dict[str, list[TopicLife]] = {}
        refused: dict[str, tuple[Any, ShortEventLog]] = {}
        for (key,), life in self.lives.items():
            name = view.topic(key)
            lives.setdefault(name, TopicLife()).merge(life)
            if topic_id_in(key) is not None:
                created.setdefault(name, []).append(life)
        for (key,), each in self.refused.items():
            name = view.topic(key)
            _, refusals = refused.get(name, (None, ShortEventLog()))
            refusals.merge(each)
            refused[name] = key, refusals
        for name, (key, refusals) in refused.items():
            if name in lives:
                again = _follow(created.get(name, ()))
                yield from _gone(name, key, lives[name], again, refusals, view)


def _follow(lives: Collection[TopicLife]) -> bool:
    """Return whether a topic had several ids, one after the other: those of one name in several
    clusters are there at the same time."""
    spans = sorted((life.first_ns or 0, life.last_ns or 0) for life in lives)
    return len(spans) > 1 and all(one[1] <= two[0] for one, two in pairwise(spans))


def _gone(
    name: str,
    key: Any,
    life: TopicLife,
    again: bool,
    refusals: ShortEventLog,
    view: DetectorInput,
) -> Iterator[Finding]:
    since = life.first_ns if again else life.last_ns
    since = life.deleted[0] if life.deleted is not None else since
    if since is None or life.first_ns is None or life.first_ns > since:
        return
    after = [event for event in refusals.events if event.time_ns > since]
    if not {tuple(event.about["client"]) for event in after} & set(life.users):
        return
    span = after[-1].time_ns - after[0].time_ns
    few = len(after) < limit("deleted.count") or (span < limit("deleted.span") and not again)
    if few and life.deleted is None and not again:
        return
    clients = view.clients(event.about["client"] for event in after)
    codes = sorted({int(event.about["code"]) for event in after})
    was = f"no longer exists, after {duration(since - life.first_ns)} of use"
    if life.deleted is not None:
        was = f"was deleted by {spelled(life.deleted[1]) or 'a client'}"
    elif again:
        was = "was deleted"
    if again:
        was += " and created again with another id"
    yield view.finding(
        "topic-deleted",
        f"Topic {name} {was}: {plural(len(after), 'request')} from {listed(clients)} failed "
        f"with {listed(map(error_name, codes))}",
        all_of(
            f"error in {{{', '.join(map(str, codes))}}}",
            view.of_topic(key),
            f"number >= {min(event.number for event in after)}",
        ),
        Occurrences.of(after),
        number=after[0].number,
        severity="note" if few else None,
        about={"topic": name, "client": clients},
    )
