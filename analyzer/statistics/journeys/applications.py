"""The map of applications: who writes to which topics, and who reads them.

Kafka keeps no record of producers; the traffic has them. What is counted is sums by client and
topic; batches are kept only where their transaction decides whether a client sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.bodies.contents import COUNTING_LIMIT
from kafkascope.analyzer.identity import identity_of
from kafkascope.analyzer.merging.measures import stretch
from kafkascope.analyzer.merging.tables import Key
from kafkascope.analyzer.statistics import exchange_batch as exchanges
from kafkascope.analyzer.statistics.delivery.parts import schema_id
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch, PartitionColumns
from kafkascope.analyzer.statistics.journeys import facts
from kafkascope.analyzer.statistics.journeys.clients import MapClients
from kafkascope.analyzer.statistics.journeys.facts import NOWHERE, Edge, Got, number_of
from kafkascope.analyzer.statistics.journeys.model import AppMap, By
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import Line, TopicNames, columns, filled, topic_key
from kafkascope.dissectors.records.batches import CONTROL, TRANSACTIONAL
from kafkascope.dissectors.records.records import Batch, open_batch

FIND_COORDINATOR: Final = 10
INIT_PRODUCER_ID: Final = 22
END_TRANSACTION: Final = 26
OFFSETS_IN_TRANSACTION: Final = 28
OF_GROUPS: Final = frozenset({8, 9, 10, 11, 12, 13, 14, OFFSETS_IN_TRANSACTION, 68, 76, 78, 79, 88})
"""APIs that name the group of their client."""
READ_COMMITTED: Final = 1
# The magic of record batches; message sets have 0 or 1.
RECORD_BATCH: Final = 2
# Bytes of the key of a control record: version and type.
MARKER_KEY: Final = 4

At: TypeAlias = tuple[str | None, int]
"""Topic key and partition."""
FetchedBatch: TypeAlias = tuple[Got, int, int]
"""Parts of a batch, or of a run of single messages: a row, attributes, and bytes."""


class Applications(facts.MapFacts):
    """Edges between clients and topics, and who the clients are."""

    NAME = "map"
    VERSION = 7
    KEYS = OF_GROUPS | exchanges.CARRIERS | {INIT_PRODUCER_ID, END_TRANSACTION}
    SINGLY = frozenset({END_TRANSACTION})
    COLUMNS = columns(
        "application way topic group records bytes (first) (last) peers clients users software "
        "(racks) schemas (rule)",
        kinds=dict.fromkeys(("peers", "users", "software", "racks"), "list"),
    )

    def add(self, batch: ExchangeBatch) -> None:
        who, key = tuple(identity_of(batch.row)), batch.api_key
        for (topic, number, error), parts in batch.parts.items():
            if key == exchanges.PRODUCE:
                self._produced(batch, who, (topic, number), error, parts)
            else:
                self._fetched(batch, who, (topic, number), parts)
        if key in exchanges.CARRIERS and batch.way == "replica":
            return
        for (topic, _), asks in batch.unanswered.items():
            edge = self.reads[(*who, topic)]
            stretch(edge, min(asks)[0], max(asks)[0])
            # Up to 0.11 lines have no responses.
            edge.unread += batch.exchange.sizeless
        if key == exchanges.PRODUCE and batch.exchange.sizeless and not batch.parts:
            self.clients[who].unnamed += len(batch)
        request = batch.request
        if key in exchanges.CARRIERS and (rack := request.get("rack_id")):
            self.clients[who].racks.add(rack)
        if key == END_TRANSACTION:
            if request and not (batch.exchange.response_body or {}).get("error_code"):
                end = request["producer_id"], int(request["committed"])
                self.ends.add(batch.row.time_ns, NOWHERE, NOWHERE, NOWHERE, *end)
        elif name := request.get("transactional_id"):
            self.clients[who].transactional_ids.add(name)
        for group, how, topics in _groups(key, request):
            mine = self.groups[(*who, group)]
            mine.how |= how
            stretch(mine, batch.first_ns, batch.last_ns)
            for each in topics:
                mine.topics.add((each,))

    def _produced(
        self, batch: ExchangeBatch, who: Key, at: At, error: int, parts: PartitionColumns
    ) -> None:
        """Count what a Produce sent to one partition."""
        edge = self.writes[(*who, at[0])]
        stretch(edge, min(parts.begins), max(parts.begins))
        if error:
            return
        taken = parts.answered
        if batch.request.get("acks") == 0:
            taken = [True] * len(taken)
        _count_line(edge, batch, at)
        edge.records += sum(compress(parts.sums(parts.counts), taken))
        edge.bytes += sum(map(len, compress(parts.blobs, taken)))
        pairs = zip(parts.by_batch(parts.blobs), parts.batches, strict=True)
        for schema in {schema_id(*each) for each in compress(pairs, parts.by_batch(taken))}:
            if schema is not None:
                edge.schemas.add(schema)

    def _fetched(self, batch: ExchangeBatch, who: Key, at: At, parts: PartitionColumns) -> None:
        """Count what a Fetch or ShareFetch brought of one partition."""
        place, replica = (number_of(at[0]), at[1]), batch.way == "replica"
        client, judged = number_of(who), batch.request.get("isolation_level") == READ_COMMITTED
        found = _fetched(parts, (*place, client, judged))
        if batch.api_key == exchanges.SHARE_FETCH:
            found = _acquired(_answers(batch.exchange.response_body, at), parts, found)
        if any(bits & (CONTROL | TRANSACTIONAL) for _, bits, _ in found):
            for time_ns, *end in _ends(batch, at, parts):
                self.ends.add(time_ns, *place, *end)
        if replica:
            edge = self.replicas[(exchanges.replica_id(batch.request), at[0])]
        else:
            edge = self.reads[(*who, at[0])]
            found = [each for each in found if not each[1] & CONTROL]
        stretch(edge, min(parts.begins), max(parts.ends))
        _count_line(edge, batch, at)
        rows = [row for row, _, _ in found]
        edge.records += sum(row.records for row in rows)
        edge.bytes += sum(size for _, _, size in found)
        if not replica:
            undecided = [row for row in rows if judged and row.producer_id >= 0]
            edge.records -= sum(row.records for row in undecided)
            self.got.add_rows(self._kept(rows, undecided))

    def _kept(self, rows: list[Got], undecided: list[Got]) -> list[Got]:
        """Return the batches that are kept: those whose transaction decides whether the client sees
        them."""
        return undecided

    def map_of(
        self, names: TopicNames | None = None, by: By = "application", *, brokers: bool = False
    ) -> AppMap:
        """Return the map. `by`: what is in place of applications; with `brokers` that replicate, as
        applications that read."""
        return MapClients(self, names, by).map(brokers=brokers)

    def rows(self, names: TopicNames | None = None, by: By = "application") -> list[Line]:
        """Return one line for each edge."""
        return edge_lines(self.map_of(names, by))


def edge_lines(shown: AppMap) -> list[Line]:
    """Return one line for each edge, with the applications at its topic's other side."""
    writers, readers = shown.sides()
    lines = []
    for each, edge in shown.edges():
        peers = (readers if edge.way == "writes" else writers).get(edge.topic, ())
        about: Line = {name: list(getattr(each, name)) for name in ("users", "software", "racks")}
        about |= {"application": each.name, "clients": list(each.client_ids), "rule": each.rule}
        about |= {"peers": list(dict.fromkeys(other.name for other, _ in peers))}
        about |= {"schemas": list(map(str, edge.schemas))}
        lines.append(filled(Applications.COLUMNS, edge, **about))
    return lines


def _groups(key: int | None, request: Mapping[str, Any]) -> Iterator[tuple[str, int, list[str]]]:
    """Yield (group, what the client has to do with it, topics) of a request."""
    if key not in OF_GROUPS:
        return
    if key == FIND_COORDINATOR:
        # Of a share group, KIP-932 has the partition after the name.
        names = (request.get("key"), *(request.get("coordinator_keys") or ()))
        yield from (
            (name, facts.LOOKED_UP, []) for name in names if name and not request.get("key_type")
        )
        return
    how = facts.SENDS_OFFSETS if key == OFFSETS_IN_TRANSACTION else facts.MEMBER
    for each in request.get("groups") or (request,):
        if group := each.get("group_id"):
            topics = [topic for topic in each.get("topics") or () if isinstance(topic, dict)]
            keys = [topic_key(topic.get("name"), topic.get("topic_id")) or "" for topic in topics]
            yield group, how, keys


def _count_line(edge: Edge, batch: ExchangeBatch, at: At) -> None:
    """Count the bytes of a partition in a line of a request log."""
    if batch.exchange.sizeless:
        edge.unread += 1
        edge.bytes += batch.record_sizes.get(at, 0)


# --- fetched batches


def _fetched(parts: PartitionColumns, about: tuple[int, int, int, bool]) -> list[FetchedBatch]:
    """Return what was fetched of one partition: a broker sends whole batches, of which the client
    skips what is before the offset it asked for. Single messages of old formats become runs.
    `about`: topic, partition, client, and whether it is read_committed."""
    found: list[FetchedBatch] = []
    of_exchanges = parts.ends, parts.blobs, parts.fetch_offsets, range(len(parts.held))
    (topic, partition, client, judged), run = about, NOWHERE
    for each, count, time_ns, blob, ask, exchange in zip(
        *(parts.batches, parts.counts, *map(parts.by_batch, of_exchanges)), strict=True
    ):
        first, end, start = each.base_offset, each.last_offset + 1, NOWHERE if ask is None else ask
        old, size = each.magic < RECORD_BATCH, each.size
        if old and each.codec:
            # The offset of a compressed message set is that of its last message.
            offsets = [message.offset for message in _opened(each, blob)]
            first, count = min(offsets, default=end - 1), sum(at >= start for at in offsets)
        elif start > first:
            count = _beyond(start, each, count, blob)
        checksum = each.crc
        if old and not each.codec:
            if run == exchange and found[-1][0].end == first and found[-1][0].records:
                before, _, its_size = found.pop()
                first, start, checksum = before.first, before.asked, 0
                count, size = before.records + count, its_size + size
            run = exchange
        else:
            run = NOWHERE
        bits = 0 if old else each.attributes
        producer = each.producer_id if bits & TRANSACTIONAL else NOWHERE
        whose = count, client, producer, checksum, judged
        row = Got(time_ns, topic, partition, first, end, start, *whose)
        found.append((row, bits, size))
    return found


def _acquired(
    answers: Iterator[Any], parts: PartitionColumns, found: list[FetchedBatch]
) -> list[FetchedBatch]:
    """Return the rows of the records that a member of a share group may process: a broker sends
    whole batches, of which others may hold some records (KIP-932)."""
    ranges = [
        (each["first_offset"], each["last_offset"] + 1)
        for part in answers
        for each in part.get("acquired_records") or ()
    ][: LIMITS.acquired_ranges]
    taken = []
    # Only hostile responses of this API hold message sets, whose runs are fewer rows.
    blobs = parts.by_batch(parts.blobs)
    for each, blob, (row, bits, size) in zip(parts.batches, blobs, found, strict=False):
        for first, end in ranges:
            low, high = max(first, row.first), min(end, row.end)
            if low < high:
                some, more = (_beyond(at, each, row.records, blob) for at in (low, high))
                part = row._replace(first=low, end=high, records=some - more)
                taken.append((part, bits, size))
    return taken


def _beyond(offset: int, batch: Batch, count: int, blob: bytes) -> int:
    """Return how many records of a batch are at an offset or beyond. Only compaction makes it
    necessary to open the batch: it leaves out offsets."""
    if offset > batch.last_offset:
        return 0
    if count == batch.last_offset - batch.base_offset + 1:
        return batch.last_offset - offset + 1
    return sum(record.offset >= offset for record in _opened(batch, blob))


def _opened(batch: Batch, blob: bytes) -> Sequence[Any]:
    return open_batch(blob, batch, COUNTING_LIMIT).records


def _answers(body: Mapping[str, Any] | None, at: At) -> Iterator[dict[str, Any]]:
    """Yield what a response says of a partition."""
    for topic in (body or {}).get("responses") or ():
        if topic_key(topic.get("topic"), topic.get("topic_id")) == at[0]:
            yield from (each for each in topic["partitions"] if each["partition_index"] == at[1])


def _ends(
    batch: ExchangeBatch, at: At, parts: PartitionColumns
) -> Iterator[tuple[int, int, int, bool]]:
    """Yield the ends of transactions in what was fetched of a partition, as (time of the response,
    offset, producer id, whether it was committed); where the response lists a transaction as
    aborted whose end is not in it, the end is after its last record there."""
    for number, end, blob, batches in zip(
        *(parts.numbers, parts.ends, parts.blobs, parts.by_exchange(parts.batches)), strict=True
    ):
        last: dict[int, int] = {}
        for each in batches:
            if each.control:
                for record in open_batch(blob, each).records:
                    key = record.key or b""
                    kind = int.from_bytes(key[2:MARKER_KEY])
                    if len(key) >= MARKER_KEY and kind < 2:
                        yield end, record.offset, each.producer_id, bool(kind)
                last.pop(each.producer_id, None)
            elif each.transactional:
                last[each.producer_id] = each.last_offset
        if last:
            aborted = {
                each["producer_id"]
                for part in _answers(batch.exchange_of(number).response_body, at)
                for each in part.get("aborted_transactions") or ()
            }
            yield from ((end, last[each] + 1, each, False) for each in aborted & last.keys())
