"""Idempotent and transactional producers: sequences by partition, transactions and how they ended.

Batches are kept as events, the latest ones of each producer; totals count all of them.
`producer_story` finds repeats, gaps and transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from typing import Any, ClassVar, Final

from kafkascope.analyzer.identity import host_of, labels
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.events import Event, Events, Kept
from kafkascope.analyzer.statistics.merging.measures import (
    Measures,
    least,
    measured,
    most,
    stretch,
    total,
    whole,
)
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import OTHERS, Keyed
from kafkascope.analyzer.statistics.model import (
    Accumulator,
    Column,
    Exchange,
    Line,
    Row,
    TopicNames,
    topic_key,
    topic_label,
)
from kafkascope.analyzer.statistics.moved import PRODUCE, Movement, Parts, parts_of
from kafkascope.analyzer.statistics.producers.story import (
    SequenceLane,
    Transaction,
    lanes_of,
    transactions_of,
)
from kafkascope.dissectors.reference.codes import error_name

INIT: Final = 22
ADD_PARTITIONS: Final = 24
ADD_OFFSETS: Final = 25
END: Final = 26
COMMIT_OFFSETS: Final = 28
TRANSACTIONS: Final = frozenset({INIT, ADD_PARTITIONS, ADD_OFFSETS, END, COMMIT_OFFSETS})
MAX_PRODUCERS: Final = 2_000
MAX_LISTED: Final = 100
BATCH_BITS: Final = 20
"""Of an event's part, for the batches of one partition."""


@measured
class Producer(Measures):
    """A producer id."""

    transactional_id: str | None = most()
    epochs: Names = whole(Names)
    clients: Names = whole(Names)
    """(client id, host)"""
    errors: Names = whole(Names)
    """Codes."""
    failed: int = total()
    batches: int = total()
    records: int = total()
    bytes: int = total()
    events: Events = whole(Events)
    first_ns: int | None = least()
    last_ns: int | None = most()


@measured
class Transactional(Measures):
    """A transactional id."""

    events: Events = whole(Events)


class Producers(Accumulator):
    """Producer ids and transactional ids."""

    NAME = "producers"
    KEYS = TRANSACTIONS | {PRODUCE}
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("producer_id", "count"),
        Column("producer_epochs", "list"),
        Column("transactional_id"),
        Column("clients", "list"),
        Column("partitions", "count"),
        Column("batches", "count"),
        Column("records", "count"),
        Column("bytes", "size"),
        Column("repeats", "count"),
        Column("missing", "count"),
        Column("committed", "count"),
        Column("aborted", "count"),
        Column("unfinished", "count"),
        Column("failed", "count"),
        Column("errors", "list"),
        Column("first", "time", wide=True),
        Column("last", "time", wide=True),
    )
    LANE_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("producer_id", "count"),
        Column("producer_epoch", "count"),
        Column("topic"),
        Column("partition", "count"),
        Column("first_sequence", "count"),
        Column("last_sequence", "count"),
        Column("batches", "count"),
        Column("records", "count"),
        Column("repeats", "count"),
        Column("missing", "count"),
        Column("failed", "count"),
        Column("errors", "list"),
        Column("repeated", "count"),
        Column("gap", "count"),
        Column("repeated_first", "time", wide=True),
        Column("repeated_last", "time", wide=True),
        Column("gap_first", "time", wide=True),
    )
    TRANSACTION_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("transactional_id"),
        Column("producer_id", "count"),
        Column("producer_epoch", "count"),
        Column("time", "time"),
        Column("duration", "duration"),
        Column("outcome"),
        Column("partitions", "list"),
        Column("records", "count"),
        Column("groups", "list"),
        Column("number", "count"),
        Column("text"),
    )

    _producers: Keyed[Producer] = table(Producer, MAX_PRODUCERS)
    _transactional: Keyed[Transactional] = table(Transactional, MAX_PRODUCERS)

    # --- taking in

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange."""
        key = row.api_key
        if key == PRODUCE:
            named = (exchange.request_body or {}).get("transactional_id")
            self._produced(row, parts_of(row, exchange)[0], named)
        elif key in TRANSACTIONS and exchange.request_body is not None:
            self._transaction(row, exchange.request_body, exchange.response_body)

    def add_all(self, alike: Alike) -> None:
        """Count usual exchanges."""
        if alike.row.producer_ids:
            for (topic, number), parts in alike.parts.items():
                self._add_all(alike, topic, number, parts)

    def _add_all(self, alike: Alike, topic: str | None, number: int, parts: Parts) -> None:
        """Take in what usual exchanges produced to a partition."""
        named, batches, counts = alike.kept["transactional_id"], parts.batches, parts.counts
        begins, numbers = parts.by_batch(parts.begins), parts.by_batch(parts.numbers)
        ids, at = parts.by_batch(parts.ids), parts.by_batch(parts.at)
        answered, ends = parts.by_batch(parts.answered), parts.by_batch(parts.ends)
        within = [place for held in parts.held for place in range(held)]
        index = [(part << BATCH_BITS) + place for part, place in zip(at, within, strict=True)]
        producers = list(zip(batches.producer_id, batches.producer_epoch, strict=True))
        place, kind, error = repeat((topic, number)), repeat(_batch), repeat(0)
        heads = zip(begins, ids, index, numbers, kind, producers, place, strict=False)
        rests = zip(batches.base_sequence, counts, error, answered, ends, strict=False)
        events: list[Kept] = [(*head, *rest) for head, rest in zip(heads, rests, strict=True)]
        sizes = batches.size
        for (producer_id, epoch), its in _places(producers).items():
            if producer_id < 0:
                continue
            times = [begins[at] for at in its]
            producer = self._seen(producer_id, epoch, alike.row, min(times))
            stretch(producer, max(times))
            producer.batches += len(times)
            producer.records += sum([counts[at] for at in its])
            producer.bytes += sum([sizes[at] for at in its])
            if named:
                producer.transactional_id = max(producer.transactional_id or "", named)
            producer.events.add_all([events[at] for at in its])
        if named:
            inside = [batch.producer_id >= 0 and batch.transactional for batch in parts.found]
            if any(inside):
                self._transactional[(named,)].events.add_all(list(compress(events, inside)))

    def _seen(
        self, producer_id: int, epoch: int, row: Row, time_ns: int, *, itself: bool = True
    ) -> Producer:
        """Return the measures of a producer id that was seen. `itself`: the client has this id, and
        is no broker that speaks of it."""
        producer = self._producers[(producer_id,)]
        if itself:
            producer.clients.add((row.client_id or "", host_of(row.client_address)))
        if epoch >= 0:
            producer.epochs.add(epoch)
        stretch(producer, time_ns)
        return producer

    def _produced(self, row: Row, parts: Iterable[Movement], named: str | None) -> None:
        """Take in what was produced; of the row only who did it."""
        for begin, end, number, id_, index, *_, each in parts:
            for at, (batch, count) in enumerate(zip(each.batches, each.counts, strict=True)):
                if batch.producer_id < 0:
                    continue
                producer = self._seen(batch.producer_id, batch.producer_epoch, row, begin)
                producer.batches += 1
                producer.records += count
                producer.bytes += batch.size
                if named:
                    producer.transactional_id = max(producer.transactional_id or "", named)
                if each.error:
                    producer.failed += 1
                    producer.errors.add(each.error)
                part = (index << BATCH_BITS) + at
                its, place = (batch.producer_id, batch.producer_epoch), (each.topic, each.partition)
                told = each.error, each.answered, end
                head = begin, id_, part, number, _batch, its, place
                event: Kept = (*head, batch.base_sequence, count, *told)
                producer.events.add(event)
                if named and batch.transactional:
                    self._transactional[(named,)].events.add(event)

    def _transaction(
        self, row: Row, asked: dict[str, Any], response: dict[str, Any] | None
    ) -> None:
        # AddPartitionsToTxn for several: a broker does it for its producers (KIP-890).
        itself = row.api_key != ADD_PARTITIONS or asked.get("transactions") is None
        for part, about in enumerate(_parts(row, asked, response)):
            named = about.pop("transactional_id")
            about["end_ns"] = _end(row)
            if about["producer"] >= 0:
                producer = self._seen(
                    about["producer"], about["epoch"], row, row.time_ns, itself=itself
                )
                if named:
                    producer.take(transactional_id=named)
                if about["error"]:
                    producer.failed += 1
                    producer.errors.add(about["error"])
            if named:
                self._transactional[(named,)].events.note(row, about.pop("kind"), about, part)

    # --- telling

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per producer id, in their order."""
        ends: dict[int, dict[str, int]] = {}
        for transaction in self._all_transactions():
            count = ends.setdefault(transaction.producer, {})
            count[transaction.outcome] = count.get(transaction.outcome, 0) + 1
        items = self._producers.items()
        titles = labels(client for _, producer in items for client in producer.clients)
        lines = [
            _line(int(str(key[0])), producer, titles, ends.get(int(str(key[0])), {}))
            for key, producer in items
        ]
        rest = self._producers.others
        if rest is not None:
            lines.append({**_line(-1, rest, {}, {}), "producer_id": OTHERS})
        return lines

    def lanes(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per producer id, epoch and partition."""
        return [
            {
                "producer_id": lane.producer,
                "producer_epoch": lane.epoch,
                "topic": topic_label(lane.topic, names),
                "topic_key": lane.topic,
                "partition": lane.partition,
                "first_sequence": lane.first,
                "last_sequence": lane.last,
                "batches": lane.batches,
                "records": lane.records,
                "repeats": lane.repeats,
                "retried": lane.retried,
                "missing": lane.missing,
                "failed": lane.failed,
                "refused": lane.refused,
                "errors": [error_name(code) for code in sorted(lane.errors)],
                "repeated": lane.repeated,
                "gap": lane.gap,
                "unseen": lane.unseen,
                "repeated_first": lane.repeated_ns,
                "repeated_last": lane.repeated_last_ns,
                "gap_first": lane.gap_ns,
            }
            for _, producer in self._producers.items()
            for lane in lanes_of(list(producer.events))
        ]

    def of_clients(self) -> dict[tuple[str, str], set[int]]:
        """Return, by (client id, host), the producer ids that it had."""
        found: dict[tuple[str, str], set[int]] = {}
        for key, producer in self._producers.items():
            for client_id, host in producer.clients:
                found.setdefault((str(client_id), str(host)), set()).add(int(str(key[0])))
        return found

    def transactions(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per transaction, by its begin."""
        found = sorted(self._all_transactions(), key=lambda each: (each.begin_ns, each.number))
        return [
            {
                "transactional_id": each.transactional_id,
                "producer_id": each.producer,
                "producer_epoch": each.epoch,
                "time": each.begin_ns,
                "duration": None if each.end_ns is None else each.end_ns - each.begin_ns,
                "outcome": each.outcome,
                "partitions": sorted(
                    {f"{topic_label(topic, names)}-{number}" for topic, number in each.partitions}
                ),
                "records": each.records,
                "groups": sorted(each.groups),
                "number": each.number,
                "end_number": each.end_number,
                "text": each.text,
                "timeout_ms": each.timeout_ms,
            }
            for each in found
        ]

    def _all_transactions(self) -> Iterator[Transaction]:
        for key, found in self._transactional.items():
            yield from transactions_of(str(key[0]), list(found.events))


def _places(producers: list[tuple[int, int]]) -> Mapping[tuple[int, int], Sequence[int]]:
    """Map each producer to where its batches are in a list."""
    if len(set(producers)) == 1:
        return {producers[0]: range(len(producers))}
    found: dict[tuple[int, int], list[int]] = {}
    for at, producer in enumerate(producers):
        found.setdefault(producer, []).append(at)
    return found


def _batch(kept: Kept) -> Event:
    """Return the event of a produced batch."""
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
    row: Row, asked: dict[str, Any], response: dict[str, Any] | None
) -> Iterator[dict[str, Any]]:
    """Yield what a request of the transaction APIs does, for each transactional id in it."""
    error = None
    if response is not None:
        error = max((each.code for each in row.errors), key=_weight, default=0)
    key = row.api_key
    if key == INIT:
        given = response if response is not None and not error else asked
        yield {
            "kind": "init",
            "transactional_id": asked["transactional_id"],
            "producer": given.get("producer_id", -1),
            "epoch": given.get("producer_epoch", -1),
            "error": error,
            "timeout_ms": asked["transaction_timeout_ms"],
        }
        return
    if key == ADD_PARTITIONS:
        for each in _added(asked):
            yield {**each, "kind": "partitions", "error": error}
        return
    about = {
        "transactional_id": asked["transactional_id"],
        "producer": asked["producer_id"],
        "epoch": asked["producer_epoch"],
        "error": error,
    }
    if key == END:
        yield {**about, "kind": "end", "committed": bool(asked["committed"])}
    else:
        kind = "offsets" if key == ADD_OFFSETS else "commit"
        yield {**about, "kind": kind, "group": asked["group_id"]}


def _weight(code: int) -> int:
    """Return how little an error tells: of several the rarest tells most; COORDINATOR_LOAD and the
    like come last."""
    return 0 if code in (14, 15, 16, 51) else code


def _added(asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parts of AddPartitionsToTxn: one transaction up to version 3, several (from
    brokers) after."""
    several = asked.get("transactions")
    if several is None:
        old = "v3_and_below_"
        names = ("transactional_id", "producer_id", "producer_epoch", "topics")
        several = [{name: asked[old + name] for name in names}]
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
            "partitions": pairs[:MAX_LISTED],
        }


def _line(number: int, producer: Producer, titles: dict[Any, str], ends: dict[str, int]) -> Line:
    lanes: list[SequenceLane] = lanes_of(list(producer.events))
    return {
        "producer_id": number,
        "producer_epochs": list(producer.epochs),
        "transactional_id": producer.transactional_id,
        "clients": sorted({titles[client] for client in producer.clients if client in titles}),
        "partitions": len({(lane.topic, lane.partition) for lane in lanes}),
        "batches": producer.batches,
        "records": producer.records,
        "bytes": producer.bytes,
        "repeats": sum(lane.repeats for lane in lanes),
        "missing": sum(lane.missing for lane in lanes),
        "committed": ends.get("committed", 0),
        "aborted": ends.get("aborted", 0),
        "unfinished": sum(ends.values()) - ends.get("committed", 0) - ends.get("aborted", 0),
        "failed": producer.failed,
        "errors": [error_name(code) for code in producer.errors],
        "first": producer.first_ns,
        "last": producer.last_ns,
    }
