"""Idempotent and transactional producers: sequences by partition, transactions and how they ended.

Batches are kept as events, the latest ones of each producer; totals count all of them.
`producer_story` finds repeats, gaps and transactions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, repeat
from typing import Any, Final

from kafkascope.analyzer.identity import client_key_of, labels
from kafkascope.analyzer.merging.bounded import Event, Events, Kept, Names
from kafkascope.analyzer.merging.measures import Measures, least, most, stretch, total, whole
from kafkascope.analyzer.merging.tables import OTHERS, Keyed, by_key, table
from kafkascope.analyzer.statistics.exchange_batch import (
    PRODUCE,
    ExchangeBatch,
    Outcome,
    PartitionColumns,
)
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import (
    Accumulator,
    Line,
    Row,
    TopicNames,
    columns,
    filled,
    picked,
    topic_key,
    topic_label,
)
from kafkascope.analyzer.statistics.producers import story
from kafkascope.dissectors.reference.codes import error_name

INIT: Final = 22
ADD_PARTITIONS: Final = 24
ADD_OFFSETS: Final = 25
END: Final = 26
COMMIT_OFFSETS: Final = 28
TRANSACTIONS: Final = frozenset({INIT, ADD_PARTITIONS, ADD_OFFSETS, END, COMMIT_OFFSETS})
# Of an event's part, for the batches of one partition.
BATCH_BITS: Final = 20


class Producer(Measures):
    """A producer id."""

    transactional_id: str | None = most()
    epochs: Names = whole(Names)
    clients: Names = whole(Names)
    """(client id, host)"""
    errors: Names = whole(Names)
    failed: int = total()
    batches: int = total()
    records: int = total()
    bytes: int = total()
    unread: int = total()
    """Lines of request logs, which have no batches."""
    events: Events = whole(Events)
    first_ns: int | None = least()
    last_ns: int | None = most()


class Transactional(Measures):
    """A transactional id."""

    events: Events = whole(Events)


class Producers(Accumulator):
    """Producer ids and transactional ids."""

    NAME = "producers"
    VERSION = 2
    KEYS = TRANSACTIONS | {PRODUCE}
    COLUMNS = columns(
        "producer_id producer_epochs transactional_id clients partitions batches records bytes "
        "repeats missing committed aborted unfinished failed errors (first) (last)"
    )
    LANE_COLUMNS = columns(
        "producer_id producer_epoch topic partition first_sequence last_sequence batches records "
        "repeats missing failed errors repeated gap (repeated_first) (repeated_last) (gap_first)"
    )
    TRANSACTION_COLUMNS = columns(
        "transactional_id producer_id producer_epoch time duration outcome partitions records "
        "groups number text",
        kinds={"partitions": "list"},
    )

    ids: Keyed[Producer] = table(Producer, LIMITS.producers)
    transactional: Keyed[Transactional] = table(Transactional, LIMITS.producers)

    # --- taking in

    def add(self, batch: ExchangeBatch) -> None:
        exchange = batch.exchange
        if batch.api_key == PRODUCE:
            if batch.row.producer_ids:
                for outcome, parts in batch.parts.items():
                    self._produced(batch, outcome, parts)
        elif batch.api_key in TRANSACTIONS and exchange.request_body is not None:
            self._transaction(batch, exchange.request_body, exchange.response_body)

    def _produced(self, batch: ExchangeBatch, outcome: Outcome, parts: PartitionColumns) -> None:
        topic, number, error = outcome
        named, batches = batch.request.get("transactional_id"), parts.batches
        ends = parts.ends if batch.row.latency_ns is not None else [None] * len(parts.ends)
        at = parts.by_batch(parts.at)
        index = [(part << BATCH_BITS) + place for part, place in zip(at, parts.within, strict=True)]
        producers = [(each.producer_id, each.producer_epoch) for each in batches]
        sequences = [each.base_sequence for each in batches]
        begins = parts.by_batch(parts.begins)
        heads = begins, parts.by_batch(parts.ids), index, parts.by_batch(parts.numbers)
        result = repeat(error), parts.by_batch(parts.answered), parts.by_batch(ends)
        rests = repeat(_batch), producers, repeat((topic, number)), sequences, parts.counts, *result
        events: list[Kept] = list(zip(*heads, *rests, strict=False))
        for (producer_id, epoch), its in _places(producers).items():
            if producer_id < 0:
                continue
            times = [begins[at] for at in its]
            producer = self._seen(producer_id, epoch, batch.row, min(times))
            stretch(producer, max(times))
            producer.batches += len(times)
            producer.records += sum([parts.counts[at] for at in its])
            producer.bytes += sum([batches[at].size for at in its])
            if named:
                producer.transactional_id = max(producer.transactional_id or "", named)
            if error:
                producer.failed += len(times)
                producer.errors.add(error)
            producer.events.add_all([events[at] for at in its])
        if named:
            inside = [each.producer_id >= 0 and each.transactional for each in batches]
            if any(inside):
                self.transactional[(named,)].events.add_all(list(compress(events, inside)))

    def _seen(
        self, producer_id: int, epoch: int, row: Row, time_ns: int, *, itself: bool = True
    ) -> Producer:
        """Return the measures of a producer id that was seen. `itself`: the client has this id, and
        is no broker that speaks of it."""
        producer = self.ids[(producer_id,)]
        if itself:
            producer.clients.add(client_key_of(row))
        if epoch >= 0:
            producer.epochs.add(epoch)
        stretch(producer, time_ns)
        return producer

    def _transaction(
        self, batch: ExchangeBatch, request: dict[str, Any], response: dict[str, Any] | None
    ) -> None:
        row, unread = batch.row, batch.exchange.sizeless
        # AddPartitionsToTxn for several: a broker does it for its producers (KIP-890).
        itself = row.api_key != ADD_PARTITIONS or request.get("transactions") is None
        for part, about in enumerate(_parts(row, request, response)):
            named = about.pop("transactional_id")
            about |= {"end_ns": _end(row), "unread": unread}
            if about["producer"] >= 0:
                producer = self._seen(
                    about["producer"], about["epoch"], row, row.time_ns, itself=itself
                )
                producer.unread += unread
                if named:
                    producer.take(transactional_id=named)
                if about["error"]:
                    producer.failed += 1
                    producer.errors.add(about["error"])
            if named:
                self.transactional[(named,)].events.note(row, about.pop("kind"), about, part)

    # --- telling

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        ends: dict[int, Counter[str]] = {}
        for transaction in self._all_transactions():
            ends.setdefault(transaction.producer_id, Counter())[transaction.outcome] += 1
        items = self.ids.items()
        titles = labels(client for _, producer in items for client in producer.clients)
        lines = [
            _line(producer_id, producer, titles, ends.get(producer_id, Counter()))
            for (producer_id,), producer in items
        ]
        rest = self.ids.others
        if rest is not None:
            lines.append({**_line(-1, rest, {}, Counter()), "producer_id": OTHERS})
        return lines

    def lanes(self, names: TopicNames | None = None) -> list[Line]:
        return [
            filled(
                self.LANE_COLUMNS,
                lane,
                topic=topic_label(lane.topic, names),
                topic_key=lane.topic,
                errors=[error_name(code) for code in sorted(lane.errors)],
                **picked(lane, "retried", "refused", "unseen"),
            )
            for _, producer in self.ids.items()
            for lane in story.lanes_of(list(producer.events))
        ]

    def of_clients(self) -> dict[tuple[str, str], set[int]]:
        """Return, by (client id, host), the producer ids that it had."""
        items = self.ids.items()
        found = by_key((client, key[0]) for key, producer in items for client in producer.clients)
        return {client: set(ids) for client, ids in found.items()}

    def transactions(self, names: TopicNames | None = None) -> list[Line]:
        found = sorted(self._all_transactions(), key=lambda each: (each.begin_ns, each.number))
        return [
            filled(
                self.TRANSACTION_COLUMNS,
                each,
                time=each.begin_ns,
                duration=None if each.end_ns is None else each.end_ns - each.begin_ns,
                partitions=sorted(
                    {f"{topic_label(topic, names)}-{number}" for topic, number in each.partitions}
                ),
                groups=sorted(each.groups),
                records=each.records or (None if each.unread else 0),
                **picked(each, "end_number", "timeout_ms"),
            )
            for each in found
        ]

    def _all_transactions(self) -> Iterator[story.Transaction]:
        for (name,), found in self.transactional.items():
            yield from story.transactions_of(name, list(found.events))


def _places(producers: list[tuple[int, int]]) -> Mapping[tuple[int, int], Sequence[int]]:
    """Map each producer to where its batches are in a list."""
    if len(set(producers)) == 1:
        return {producers[0]: range(len(producers))}
    return by_key((producer, at) for at, producer in enumerate(producers))


def _batch(kept: Kept) -> Event:
    time_ns, id_, part, number, _, its, place, sequence, records, error, answered, end_ns = kept
    about = {
        "producer": its[0],
        "epoch": its[1],
        "topic": place[0],
        "partition": place[1],
        "sequence": sequence,
        "records": records,
        "error": error,
        "answered": answered,
        "end_ns": end_ns,
    }
    return Event(time_ns, id_, part, number, "batch", about)


def _end(row: Row) -> int | None:
    return None if row.latency_ns is None else row.time_ns + row.latency_ns


def _parts(
    row: Row, request: dict[str, Any], response: dict[str, Any] | None
) -> Iterator[dict[str, Any]]:
    """Yield what a request of the transaction APIs does, for each transactional id in it."""
    error = None
    if response is not None:
        error = max((each.code for each in row.errors), key=_weight, default=0)
    key = row.api_key
    if key == INIT:
        given = response if response is not None and not error else request
        yield {
            "kind": "init",
            "transactional_id": request["transactional_id"],
            "producer": given.get("producer_id", -1),
            "epoch": given.get("producer_epoch", -1),
            "error": error,
            "timeout_ms": request["transaction_timeout_ms"],
        }
        return
    if key == ADD_PARTITIONS:
        for each in _added(request):
            yield {**each, "kind": "partitions", "error": error}
        return
    about = {
        "transactional_id": request["transactional_id"],
        "producer": request["producer_id"],
        "epoch": request["producer_epoch"],
        "error": error,
    }
    if key == END:
        yield {**about, "kind": "end", "committed": bool(request["committed"])}
    else:
        kind = "offsets" if key == ADD_OFFSETS else "commit"
        yield {**about, "kind": kind, "group": request["group_id"]}


def _weight(code: int) -> int:
    """Return how little an error means: of several the rarest means most; COORDINATOR_LOAD and the
    like come last."""
    return 0 if code in (14, 15, 16, 51) else code


def _added(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of AddPartitionsToTxn: one transaction up to version 3, several (from
    brokers) after."""
    several = request.get("transactions")
    if several is None:
        old = "v3_and_below_"
        names = ("transactional_id", "producer_id", "producer_epoch", "topics")
        several = [{name: request[old + name] for name in names}]
    for each in several:
        if each.get("verify_only"):
            # A broker makes sure that the transaction is open (KIP-890).
            continue
        pairs = [
            [topic_key(topic["name"], None), number]
            for topic in each["topics"]
            for number in topic["partitions"]
        ]
        yield {
            "transactional_id": each["transactional_id"],
            "producer": each["producer_id"],
            "epoch": each["producer_epoch"],
            "partitions": pairs[: LIMITS.transaction_partitions],
        }


def _line(number: int, producer: Producer, titles: dict[Any, str], ends: Counter[str]) -> Line:
    lanes: list[story.SequenceLane] = story.lanes_of(list(producer.events))
    more: Line = {
        "partitions": len({(lane.topic, lane.partition) for lane in lanes}),
        "repeats": sum(lane.repeats for lane in lanes),
        "missing": sum(lane.missing for lane in lanes),
    }
    if producer.unread and not producer.batches:
        more = dict.fromkeys((*more, "batches", "records", "bytes"))
    return filled(
        Producers.COLUMNS,
        producer,
        producer_id=number,
        producer_epochs=list(producer.epochs),
        clients=sorted({titles[client] for client in producer.clients if client in titles}),
        committed=ends["committed"],
        aborted=ends["aborted"],
        unfinished=ends.total() - ends["committed"] - ends["aborted"],
        errors=[error_name(code) for code in producer.errors],
        **more,
    )
