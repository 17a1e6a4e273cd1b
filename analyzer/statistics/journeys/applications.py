"""The map of applications: who writes to which topics, and who reads them.

Kafka keeps no record of producers; the traffic has them. What is counted is sums by client and
topic; batches are kept only where their transaction decides whether a client sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final

from kafkascope.analyzer.identity import identity_of
from kafkascope.analyzer.merging.measures import stretch
from kafkascope.analyzer.merging.tables import Key, sums
from kafkascope.analyzer.statistics.delivery.parts import schema_id
from kafkascope.analyzer.statistics.exchange_batch import (
    CARRIERS,
    PRODUCE,
    SHARE_FETCH,
    ExchangeBatch,
    PartitionColumns,
    replica_id,
)
from kafkascope.analyzer.statistics.journeys.carried import SPECIAL, At, Carried, fetched, markers
from kafkascope.analyzer.statistics.journeys.clients import MapClients
from kafkascope.analyzer.statistics.journeys.facts import (
    LOOKED_UP,
    MEMBER,
    SENDS_OFFSETS,
    Edge,
    MapFacts,
    number_of,
)
from kafkascope.analyzer.statistics.journeys.model import Application, AppMap, By, Read, Write
from kafkascope.analyzer.statistics.model import (
    Line,
    TopicNames,
    columns,
    filled,
    topic_key,
    topic_label,
)
from kafkascope.dissectors.records.batches import CONTROL

FIND_COORDINATOR: Final = 10
INIT_PRODUCER_ID: Final = 22
END_TRANSACTION: Final = 26
OFFSETS_IN_TRANSACTION: Final = 28
OF_GROUPS: Final = frozenset({8, 9, 10, 11, 12, 13, 14, OFFSETS_IN_TRANSACTION, 68, 76, 79, 88})
"""APIs that name the group of their client."""
READ_COMMITTED: Final = 1


class Applications(MapFacts):
    """Edges between clients and topics, and who the clients are."""

    NAME = "map"
    VERSION = 6
    KEYS = OF_GROUPS | CARRIERS | {INIT_PRODUCER_ID, END_TRANSACTION}
    SINGLY = frozenset({END_TRANSACTION})
    COLUMNS = columns(
        "application way topic group records bytes (first) (last) peers clients users software "
        "(racks) schemas (rule)",
        kinds=dict.fromkeys(("peers", "users", "software", "racks"), "list"),
    )

    def add(self, batch: ExchangeBatch) -> None:
        who = tuple(identity_of(batch.row))
        if batch.api_key == PRODUCE:
            for (topic, number, error), parts in batch.parts.items():
                self._produced(batch, who, (topic, number), error, parts)
            if batch.exchange.sizeless and not batch.parts:
                self.clients[who].unnamed += len(batch)
        elif batch.api_key in CARRIERS:
            for (topic, number, _), parts in batch.parts.items():
                at = topic, number
                self._fetched(batch, who, at, parts, fetched(batch, at, parts))
            self._waited(batch, who)
        elif batch.api_key == END_TRANSACTION:
            self._ended(batch)
        elif batch.api_key in self.KEYS:
            self._named(batch, who)

    def _produced(
        self, batch: ExchangeBatch, who: Key, at: At, error: int, parts: PartitionColumns
    ) -> None:
        """Count what a Produce sent to one partition."""
        edge = self.writes[(*who, at[0])]
        stretch(edge, min(parts.begins), max(parts.begins))
        if name := batch.request.get("transactional_id"):
            self.clients[who].transactional_ids.add(name)
        if error:
            return
        taken = parts.answered
        if batch.request.get("acks") == 0:
            taken = [True] * len(taken)
        self._count_line(edge, batch, at)
        edge.records += sum(compress(parts.sums(parts.counts), taken))
        edge.bytes += sum(map(len, compress(parts.blobs, taken)))
        pairs = zip(parts.by_batch(parts.blobs), parts.batches, strict=True)
        for schema in {schema_id(*each) for each in compress(pairs, parts.by_batch(taken))}:
            if schema is not None:
                edge.schemas.add(schema)

    def _fetched(
        self,
        batch: ExchangeBatch,
        who: Key,
        at: At,
        parts: PartitionColumns,
        rows: list[Carried],
    ) -> None:
        """Count what a Fetch or ShareFetch brought of one partition."""
        topic, client, replica = number_of(at[0]), number_of(who), batch.way == "replica"
        if any(row.bits & SPECIAL for row in rows):
            for time_ns, *marker in markers(batch, at, parts):
                self.markers.add(time_ns, topic, at[1], *marker)
        if replica:
            edge = self.replicas[(replica_id(batch.request), at[0])]
        else:
            edge = self.reads[(*who, at[0])]
            rows = [row for row in rows if not row.bits & CONTROL]
        stretch(edge, min(parts.begins), max(parts.ends))
        self._count_line(edge, batch, at)
        edge.records += sum(row.records for row in rows)
        edge.bytes += sum(row.size for row in rows)
        if replica:
            return
        judged = batch.request.get("isolation_level") == READ_COMMITTED
        undecided = [row for row in rows if judged and row.producer_id >= 0]
        edge.records -= sum(row.records for row in undecided)
        self.got.add_rows(
            (row.time_ns, topic, at[1], *row[1:5], client, row.producer_id, row.checksum, judged)
            for row in self._kept(at[1], rows, undecided)
        )

    def _count_line(self, edge: Edge, batch: ExchangeBatch, at: At) -> None:
        """Count the bytes of a partition that a line of a request log tells."""
        if batch.exchange.sizeless:
            edge.unread += 1
            edge.bytes += batch.record_sizes.get(at, 0)

    def _kept(self, number: int, rows: list[Carried], undecided: list[Carried]) -> list[Carried]:
        """Return the fetched batches of a partition that are kept: those whose transaction decides
        whether the client sees them."""
        return undecided

    def _waited(self, batch: ExchangeBatch, who: Key) -> None:
        """Take note of partitions that a Fetch asked for and no response had, and of its rack and
        group."""
        if batch.way == "replica":
            return
        for (topic, _), asks in batch.unanswered.items():
            edge = self.reads[(*who, topic)]
            stretch(edge, min(asks)[0], max(asks)[0])
            # Up to 0.11 lines have no responses.
            edge.unread += batch.exchange.sizeless
        if rack := batch.request.get("rack_id"):
            self.clients[who].racks.add(rack)
        if batch.api_key == SHARE_FETCH and (group := batch.request.get("group_id")):
            mine = self.groups[(*who, group)]
            mine.how |= MEMBER
            stretch(mine, min(batch.begins), max(batch.begins))

    def _ended(self, batch: ExchangeBatch) -> None:
        """Take note of how a transaction ends."""
        request, response = batch.exchange.request_body, batch.exchange.response_body or {}
        if request is not None and not response.get("error_code"):
            self.ends.add(batch.row.time_ns, request["producer_id"], int(request["committed"]))

    def _named(self, batch: ExchangeBatch, who: Key) -> None:
        """Take note of the groups and the transactional id that a request names."""
        request, key = batch.exchange.request_body or {}, batch.api_key
        if key in (INIT_PRODUCER_ID, OFFSETS_IN_TRANSACTION) and (
            name := request.get("transactional_id")
        ):
            self.clients[who].transactional_ids.add(name)
        for group, how, topics in _groups(key, request):
            mine = self.groups[(*who, group)]
            mine.how |= how
            stretch(mine, batch.first_ns, batch.last_ns)
            for topic in topics:
                mine.topics.add((topic,))

    def map_of(
        self, names: TopicNames | None = None, by: By = "application", *, brokers: bool = False
    ) -> AppMap:
        """Return the map; with `brokers` that replicate."""
        found = self.applications(names, by) + (self.brokers(names) if brokers else [])
        return AppMap(found, sum(each.unnamed for each in self.clients.values()))

    def applications(
        self, names: TopicNames | None = None, by: By = "application"
    ) -> list[Application]:
        """Return the applications, by name. `by`: what they are in place of applications."""
        return MapClients(self, names, by).applications()

    def brokers(self, names: TopicNames | None = None) -> list[Application]:
        """Return the brokers that replicate, as applications that read."""
        found = sums(
            Edge,
            (
                ((node, str(topic_label(topic, names))), edge)
                for (node, topic), edge in self.replicas.items()
            ),
        )
        reads: dict[int, list[Read]] = {}
        for (node, topic), each in sorted(found.items()):
            of_node = reads.setdefault(node, [])
            if each.bytes:
                of_node.append(Read(topic, None, *each.sums, *each.times))
        about = "node ID of a follower"
        return [
            Application(f"broker {node}", (), about, (), (), (), (), (), tuple(of_node))
            for node, of_node in reads.items()
        ]

    def rows(self, names: TopicNames | None = None, by: By = "application") -> list[Line]:
        """Return one line for each edge."""
        return edge_lines(self.map_of(names, by))


def edge_lines(shown: AppMap) -> list[Line]:
    """Return one line for each edge, with the applications at its topic's other side."""
    writers, readers = shown.sides()
    sides: dict[str, Mapping[str, Sequence[Any]]] = {"writes": readers, "reads": writers}
    lines = []
    for each, edge in shown.edges():
        way = "writes" if isinstance(edge, Write) else "reads"
        peers = dict.fromkeys(other.name for other, _ in sides[way].get(edge.topic, ()))
        lines.append(
            filled(
                Applications.COLUMNS,
                edge,
                application=each.name,
                way=way,
                group=edge.group if isinstance(edge, Read) else None,
                peers=list(peers),
                clients=list(each.client_ids),
                users=list(each.users),
                software=list(each.software),
                racks=list(each.racks),
                schemas=list(map(str, edge.schemas)) if isinstance(edge, Write) else [],
                rule=each.rule,
            )
        )
    return lines


def _groups(key: int | None, request: Mapping[str, Any]) -> Iterator[tuple[str, int, list[str]]]:
    """Yield (group, what the client has to do with it, topics) of a request."""
    if key == FIND_COORDINATOR:
        # Of a share group, KIP-932 has the partition behind the name.
        names = (request.get("key"), *(request.get("coordinator_keys") or ()))
        for name in names if not request.get("key_type") else ():
            if name:
                yield name, LOOKED_UP, []
        return
    how = SENDS_OFFSETS if key == OFFSETS_IN_TRANSACTION else MEMBER
    for each in request.get("groups") or (request,):
        if group := each.get("group_id"):
            topics = (topic for topic in each.get("topics") or () if isinstance(topic, dict))
            yield (
                group,
                how,
                [topic_key(of.get("name"), of.get("topic_id")) or "" for of in topics],
            )
