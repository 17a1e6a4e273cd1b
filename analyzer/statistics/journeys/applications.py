"""The map of applications: who writes to which topics, and who reads them.

Kafka keeps no record of producers; the traffic has them. What is counted is sums by client and
topic; batches are kept only where their transaction decides whether a client sees them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import compress
from typing import Any, Final, TypeAlias

from kafkascope.analyzer.identity import Identity, absorbed, identity_of
from kafkascope.analyzer.merging.bounded import Names
from kafkascope.analyzer.merging.integer_rows import IntegerRows
from kafkascope.analyzer.merging.measures import Measures, bits, least, most, stretch, total, whole
from kafkascope.analyzer.merging.tables import Key, Keyed, by_key, table
from kafkascope.analyzer.ranks import bounded, rank
from kafkascope.analyzer.statistics.delivery.parts import schema_id
from kafkascope.analyzer.statistics.exchange_batch import (
    FETCH,
    PRODUCE,
    SHARE_FETCH,
    ExchangeBatch,
    PartitionColumns,
    replica_id,
)
from kafkascope.analyzer.statistics.journeys.carried import (
    SPECIAL,
    CarriedBatches,
    fetched,
    markers,
)
from kafkascope.analyzer.statistics.journeys.model import (
    Application,
    By,
    Read,
    Write,
    edges_of,
)
from kafkascope.analyzer.statistics.journeys.names import ClientUse, NamedClients, applications
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import (
    Accumulator,
    Line,
    TopicNames,
    columns,
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
TRANSACTIONS: Final = 1
"""Key type of FindCoordinator for transactional ids."""
READ_COMMITTED: Final = 1

LOOKED_UP: Final = 1
MEMBER: Final = 2
SENDS_OFFSETS: Final = 4
"""What a client has to do with a group: looked for its coordinator, joined it or committed for it,
committed for it in transactions."""

Who: TypeAlias = tuple[str | None, str, str, str]
"""Client id, host, library, user: an `Identity` as a key."""


class Edge(Measures):
    """What went between a client and a topic."""

    records: int = total()
    bytes: int = total()
    schemas: Names = whole(Names)
    first_ns: int | None = least()
    last_ns: int | None = most()


class Membership(Measures):
    """A client and a group."""

    how: int = bits()
    topics: Names = whole(Names)
    """(topic key) for which it fetched or committed offsets."""


class ClientFacts(Measures):
    """What else is known of a client."""

    racks: Names = whole(Names)
    transactional_ids: Names = whole(Names)


class PendingBatches(Measures):
    """Batches of transactions that a read_committed client got."""

    rows: IntegerRows = whole(partial(IntegerRows, 5))
    """(time, client, last offset, records, producer id)"""


class Markers(Measures):
    """Ends of transactions in a partition."""

    rows: IntegerRows = whole(partial(IntegerRows, 3))
    """(offset, producer id, 1 where it was committed)"""


def who_of(identity: Identity) -> Who:
    """Return a client as a part of keys, whose text must not say `Identity`."""
    client_id, host, software, user = identity
    return client_id, host, software, user


@lru_cache(4096)
def number_of(who: Who) -> int:
    """Return a client as a number for columns."""
    return rank(bounded(who)) >> 1


class Applications(Accumulator):
    """Edges between clients and topics, and who the clients are."""

    NAME = "map"
    KEYS = OF_GROUPS | {PRODUCE, FETCH, SHARE_FETCH, INIT_PRODUCER_ID, END_TRANSACTION}
    COLUMNS = columns(
        *("application", "way", "topic", "group", "records", "bytes", "first", "last"),
        *("peers", "clients", "users", "software", "racks", "schemas", "rule"),
        wide=("first", "last", "racks", "rule"),
        kinds=dict.fromkeys(("peers", "users", "software", "racks"), "list"),
    )

    writes: Keyed[Edge] = table(Edge, LIMITS.edges)
    reads: Keyed[Edge] = table(Edge, LIMITS.edges)
    """By client (see `Who`) and topic."""
    groups: Keyed[Membership] = table(Membership, LIMITS.edges)
    """By client and group."""
    clients: Keyed[ClientFacts] = table(ClientFacts, LIMITS.edges)
    pending: Keyed[PendingBatches] = table(PendingBatches, LIMITS.journey_partitions)
    markers: Keyed[Markers] = table(Markers, LIMITS.journey_partitions)
    """By topic and partition."""
    ends: IntegerRows = whole(partial(IntegerRows, 3, LIMITS.transaction_ends))
    """Of transactions: (time of EndTxn, producer id, 1 where it commits)"""
    replicas: Keyed[Edge] = table(Edge, LIMITS.edges)
    """By the node id of a follower, and topic."""

    # --- taking in

    def add(self, batch: ExchangeBatch) -> None:
        key = batch.api_key
        if key == PRODUCE:
            who = who_of(identity_of(batch.row))
            for (topic, _, error), parts in batch.parts.items():
                self.produced(batch, who, topic, error, parts)
        elif key in (FETCH, SHARE_FETCH):
            follower = batch.way == "replica"
            who = who_of(identity_of(batch.row))
            for (topic, number, _), parts in batch.parts.items():
                found = fetched(batch, (topic, number), parts)
                self.fetched(batch, who, (topic, number), parts, found, follower=follower)
            self.waited(batch, who)
        else:
            self.take_request(batch)

    def produced(
        self, batch: ExchangeBatch, who: Who, topic: str | None, error: int, parts: PartitionColumns
    ) -> None:
        """Count what a Produce sent to one partition."""
        edge = self.writes[(*who, topic)]
        stretch(edge, min(parts.begins), max(parts.begins))
        if name := batch.request.get("transactional_id"):
            self.clients[who].transactional_ids.add(name)
        if error:
            return
        taken = parts.answered
        if batch.request.get("acks") == 0:
            taken = [True] * len(taken)
        edge.records += sum(compress(parts.sums(parts.counts), taken))
        edge.bytes += sum(map(len, compress(parts.blobs, taken)))
        if parts.batches and any(taken):
            # One of many: the batches of a client have schemas in common.
            schema = schema_id(parts.by_batch(parts.blobs)[0], parts.batches[0])
            if schema is not None:
                edge.schemas.add(schema)

    def fetched(
        self,
        batch: ExchangeBatch,
        who: Who,
        at: tuple[str | None, int],
        parts: PartitionColumns,
        found: CarriedBatches,
        *,
        follower: bool,
    ) -> None:
        """Count what a Fetch or ShareFetch brought of one partition."""
        special = any(map(SPECIAL.__and__, found.bits))
        if special:
            for marker in markers(batch, at, parts):
                self.markers[at].rows.add(*marker)
        if follower:
            edge = self.replicas[(replica_id(batch.request), at[0])]
            stretch(edge, min(parts.begins), max(parts.ends))
            edge.records += sum(found.counts)
            edge.bytes += sum(found.sizes)
            return
        edge = self.reads[(*who, at[0])]
        stretch(edge, min(parts.begins), max(parts.ends))
        if not special:
            edge.records += sum(found.counts)
            edge.bytes += sum(found.sizes)
            return
        judged = batch.request.get("isolation_level") == READ_COMMITTED
        number = number_of(who)
        for end, last, count, producer, attributes, size in zip(
            *(found.ends, found.lasts, found.counts, found.producers, found.bits, found.sizes),
            strict=True,
        ):
            if attributes & CONTROL:
                continue
            edge.bytes += size
            if judged and producer >= 0:
                self.pending[at].rows.add(end, number, last, count, producer)
            else:
                edge.records += count

    def waited(self, batch: ExchangeBatch, who: Who) -> None:
        """Take note of partitions that a Fetch asked for and no response had, and of its rack and
        group."""
        if batch.way == "replica":
            return
        for (topic, _), asks in batch.unanswered.items():
            stretch(self.reads[(*who, topic)], min(asks)[0], max(asks)[0])
        if rack := batch.request.get("rack_id"):
            self.clients[who].racks.add(rack)
        if batch.api_key == SHARE_FETCH and (group := batch.request.get("group_id")):
            self.groups[(*who, group)].how |= MEMBER

    def take_request(self, batch: ExchangeBatch) -> None:
        """Take note of the group or transactional id that a request names, or of how a transaction
        ends."""
        asked, key = batch.exchange.request_body, batch.api_key
        if asked is None or key not in self.KEYS:
            return
        if key == END_TRANSACTION:
            if not (batch.exchange.response_body or {}).get("error_code"):
                row = batch.row.time_ns, asked["producer_id"], int(asked["committed"])
                self.ends.add(*row)
            return
        who = who_of(identity_of(batch.row))
        if key in (INIT_PRODUCER_ID, OFFSETS_IN_TRANSACTION) and (
            name := asked.get("transactional_id")
        ):
            self.clients[who].transactional_ids.add(name)
        for group, how, topics in _groups(key, asked):
            mine = self.groups[(*who, group)]
            mine.how |= how
            for topic in topics:
                mine.topics.add((topic,))

    # --- who is who

    def identities(self) -> dict[Who, Who]:
        """Return each client -> the one that knows more of it, or itself."""
        tables = (self.writes, self.reads, self.groups, self.clients)
        seen = {Identity(*key[:4]) for each in tables for key in each}
        return {who_of(one): who_of(other) for one, other in absorbed(seen).items()}

    def memberships(self, names: TopicNames | None = None) -> Memberships:
        """Return the groups of clients."""
        return Memberships(self, self.identities(), names)

    # --- telling

    def applications(
        self, names: TopicNames | None = None, by: By = "application"
    ) -> list[Application]:
        """Return the applications, by name. `by`: what they are in place of applications."""
        members = self.memberships(names)
        outcomes = Outcomes(self, names)
        settled = self._settled(outcomes, members, names)
        out = []
        for name, named in self.named_by(members, by).items():
            mine = {who_of(use.identity) for use in named.uses}
            out.append(_application(name, named, mine, members, settled))
        return out

    def named_by(self, members: Memberships, by: By = "application") -> dict[str, NamedClients]:
        """Return the clients of each application, or of what is in its place."""
        uses = list(members.uses())
        if by == "application":
            return applications(uses)
        out: dict[str, NamedClients] = {}
        for use in uses:
            if by == "group":
                own = sorted(use.groups) or [use.identity.client_id or use.identity.host]
                label = own[0]
            else:
                label = getattr(use.identity, by) or use.identity.host
            out.setdefault(
                label, NamedClients((label,), f"same {by.replace('_', ' ')}")
            ).uses.append(use)
        return dict(sorted(out.items()))

    def _settled(
        self, outcomes: Outcomes, members: Memberships, names: TopicNames | None
    ) -> dict[tuple[Who, str | None], int]:
        """Return the visible records of transactions by client and topic: those of aborted ones
        are left out."""
        numbers = {number_of(who): target for who, target in members.identities.items()}
        out: dict[tuple[Who, str | None], int] = {}
        for (topic, number), pending in self.pending.items():
            label = topic_label(topic, names)
            for time_ns, client, last, count, producer in pending.rows.rows():
                who = numbers.get(client)
                if who is not None and outcomes.shown(label, number, producer, last, time_ns):
                    out[who, label] = out.get((who, label), 0) + count
        return out

    def brokers(self, names: TopicNames | None = None) -> list[Application]:
        """Return the brokers that replicate, as applications that read."""
        found: dict[int, dict[str, Edge]] = {}
        for (node, topic), edge in self.replicas.items():
            label = str(topic_label(topic, names))
            found.setdefault(node, {}).setdefault(label, Edge()).merge(edge)
        return [
            Application(
                *(f"broker {node}", (), "node ID of a follower", (), (), (), (), ()),
                tuple(
                    Read(topic, None, each.records, each.bytes, *_times(each))
                    for topic, each in sorted(edges.items())
                    if each.records
                ),
            )
            for node, edges in sorted(found.items())
        ]

    def rows(self, names: TopicNames | None = None, by: By = "application") -> list[Line]:
        """Return one line for each edge."""
        return edge_lines(self.applications(names, by))


def _application(
    name: str,
    named: NamedClients,
    mine: set[Who],
    members: Memberships,
    settled: Mapping[tuple[Who, str | None], int],
) -> Application:
    """Return the application of some clients."""
    writes: dict[str, Edge] = {}
    reads: dict[tuple[str, str | None], Edge] = {}
    for who in mine:
        for topic, edge in members.writes.get(who, ()):
            writes.setdefault(topic, Edge()).merge(edge)
        visible = {topic: settled.get((who, topic), 0) for topic, _ in members.reads.get(who, ())}
        for topic, edge in members.reads.get(who, ()):
            total_ = reads.setdefault((topic, members.group_of(who, topic)), Edge())
            total_.merge(edge)
            # Once, where some requests have the topic's name and others its id.
            total_.records += visible.pop(topic, 0)
    identities = [Identity(*who) for who in mine]
    facts = [each for who in mine for each in members.facts.get(who, ())]
    return Application(
        name,
        tuple(sorted({each.client_id or "" for each in identities})),
        named.rule,
        tuple(sorted({each.user for each in identities} - {""})),
        tuple(sorted({each.software for each in identities} - {""})),
        tuple(sorted({each.host for each in identities})),
        tuple(sorted({rack for each in facts for rack in each.racks})),
        tuple(
            Write(topic, each.records, each.bytes, *_times(each), tuple(each.schemas))
            for topic, each in sorted(writes.items())
        ),
        tuple(
            Read(topic, group, each.records, each.bytes, *_times(each))
            for (topic, group), each in sorted(
                reads.items(), key=lambda item: (item[0][0], item[0][1] or "")
            )
        ),
    )


def edge_lines(applications: Sequence[Application]) -> list[Line]:
    """Return one line for each edge, with the applications at its topic's other side."""
    sides: dict[tuple[type, str], dict[str, None]] = {}
    for each in applications:
        for edge in edges_of(each):
            sides.setdefault((type(edge), edge.topic), {})[each.name] = None
    lines = []
    for each in applications:
        about = {
            "application": each.name,
            "clients": list(each.client_ids),
            "users": list(each.users),
            "software": list(each.software),
            "racks": list(each.racks),
            "rule": each.rule,
        }
        for edge in edges_of(each):
            writes = isinstance(edge, Write)
            lines.append(
                {
                    **about,
                    "way": "writes" if writes else "reads",
                    "topic": edge.topic,
                    "group": edge.group if isinstance(edge, Read) else None,
                    "records": edge.records,
                    "bytes": edge.bytes,
                    "first": edge.first_ns,
                    "last": edge.last_ns,
                    "peers": list(sides.get((Read if writes else Write, edge.topic), ())),
                    "schemas": list(map(str, edge.schemas)) if isinstance(edge, Write) else [],
                }
            )
    return lines


def _who(key: Key) -> Who:
    return key[0], key[1], key[2], key[3]


def _times(edge: Edge) -> tuple[int, int]:
    return edge.first_ns or 0, edge.last_ns or 0


def _groups(key: int | None, asked: Mapping[str, Any]) -> Iterator[tuple[str, int, list[str]]]:
    """Yield (group, what the client has to do with it, topics) of a request."""
    if key == FIND_COORDINATOR:
        if asked.get("key_type", 0) != TRANSACTIONS:
            for name in (asked.get("key"), *(asked.get("coordinator_keys") or ())):
                # Of a share group, KIP-932 has the partition behind the name.
                if name and not asked.get("key_type"):
                    yield name, LOOKED_UP, []
        return
    how = SENDS_OFFSETS if key == OFFSETS_IN_TRANSACTION else MEMBER
    for each in asked.get("groups") or (asked,):
        topics = each.get("topics") or ()
        if group := each.get("group_id"):
            yield group, how, [_key(topic) for topic in topics if isinstance(topic, dict)]


def _key(topic: Mapping[str, Any]) -> str:
    return topic_key(topic.get("name"), topic.get("topic_id")) or ""


class Memberships:
    """What is known of each client, and which group it reads a topic for."""

    def __init__(
        self, counted: Applications, identities: dict[Who, Who], names: TopicNames | None
    ) -> None:
        self.identities = identities
        self._names = names
        self.writes, self.reads = self._edges(counted.writes), self._edges(counted.reads)
        """By client: (topic, what went)"""
        self.facts = by_key((identities[_who(key)], each) for key, each in counted.clients.items())
        self._groups: dict[Who, dict[str, tuple[int, set[str]]]] = {}
        for key, each in counted.groups.items():
            mine = self._groups.setdefault(identities[_who(key)], {})
            how, topics = mine.get(key[4], (0, set()))
            labels = {str(topic_label(topic, names)) for (topic,) in each.topics}
            mine[key[4]] = how | each.how, topics | labels

    def group_of(self, who: Who, topic: str) -> str | None:
        """Return the group; None for a consumer without one, or one of several that cannot be told
        apart."""
        mine = self._groups.get(who, {})
        for how in (MEMBER, LOOKED_UP):
            groups = [name for name, (its, _) in mine.items() if its & how]
            if len(groups) == 1:
                return groups[0]
            of_topic = [name for name in groups if topic in mine[name][1]]
            if len(of_topic) == 1:
                return of_topic[0]
            if groups:
                return None
        return None

    def _edges(self, edges: Keyed[Edge]) -> dict[Who, list[tuple[str, Edge]]]:
        return by_key(
            (self.identities[_who(key)], (str(topic_label(key[4], self._names)), edge))
            for key, edge in edges.items()
        )

    def uses(self) -> Iterator[ClientUse]:
        """Yield the clients that write or read."""
        for who in {**self.writes, **self.reads}:
            yield ClientUse(
                Identity(*who),
                set(self._groups.get(who, ())),
                {name for each in self.facts.get(who, ()) for name in each.transactional_ids},
                {topic for topic, _ in self.writes.get(who, ())},
                {topic for topic, _ in self.reads.get(who, ())},
            )


class Outcomes:
    """How transactions ended: by their markers in the logs, or else by the requests to end them."""

    def __init__(self, counted: Applications, names: TopicNames | None) -> None:
        pairs = (
            ((topic_label(topic, names), number, producer), (offset, committed))
            for (topic, number), each in counted.markers.items()
            for offset, producer, committed in each.rows.rows()
        )
        self._markers = {key: sorted(set(ends)) for key, ends in by_key(pairs).items()}
        self._ends = by_key((row[1], (row[0], row[2])) for row in counted.ends.ordered())

    def of(self, topic: str, number: int, producer: int, offset: int) -> bool | None:
        """Return whether the transaction of a record was committed; None where no marker of its
        producer follows."""
        ends = self._markers.get((topic, number, producer), [])
        at = bisect_right(ends, (offset, 2))
        return bool(ends[at][1]) if at < len(ends) else None

    def ended(self, producer: int, time_ns: int) -> bool | None:
        """Return whether a producer commits the transaction that it has at a time; None where it
        does not end it."""
        ends = self._ends.get(producer, [])
        at = bisect_left(ends, (time_ns, 0))
        return bool(ends[at][1]) if at < len(ends) else None

    def shown(self, topic: str, number: int, producer: int, offset: int, time_ns: int) -> bool:
        """Return whether a read_committed client that fetched a record at a time gives it to the
        application: brokers send it no transaction that has not ended."""
        committed = self.of(topic, number, producer, offset)
        if committed is None:
            ends = self._ends.get(producer, [])
            at = bisect_left(ends, (time_ns, 0))
            committed = bool(ends[at - 1][1]) if at else None
        return committed is not False
