"""What is kept of clients, topics, groups and transactions; of journeys columns of batches and of
commits, not of records, and what is known of single records that are asked for."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.merging.bounded import Names
from kafkascope.analyzer.merging.integer_rows import IntegerRows
from kafkascope.analyzer.merging.measures import Measures, bits, least, most, total, whole
from kafkascope.analyzer.merging.tables import Keyed, table
from kafkascope.analyzer.ranks import bounded, rank
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import Accumulator, TopicNames, topic_label

# What a client has to do with a group: looked for its coordinator, joined it or committed for it,
# committed for it in transactions.
LOOKED_UP: Final = 1
MEMBER: Final = 2
SENDS_OFFSETS: Final = 4
# An offset, a time or a producer id that is not known; a producer id that is of no transaction.
NOWHERE: Final = -1


class Edge(Measures):
    """What went between a client, or a follower, and a topic."""

    records: int = total()
    bytes: int = total()
    unread: int = total()
    """Messages of which the records are not known: lines of request logs."""
    schemas: Names = whole(Names)
    first_ns: int | None = least()
    last_ns: int | None = most()

    @property
    def values(self) -> tuple[int | None, int | None, int, int]:
        """Records and bytes, None for what is not known; the first and the last time."""
        none = None if self.unread else 0
        return self.records or none, self.bytes or none, self.first_ns or 0, self.last_ns or 0


class Membership(Measures):
    """A client and a group."""

    how: int = bits()
    topics: Names = whole(Names)
    """(topic key) for which it fetched or committed offsets."""
    first_ns: int | None = least()
    last_ns: int | None = most()


class ClientFacts(Measures):
    """What else is known of a client."""

    unnamed: int = total()
    """Produce requests of which a request log does not have the topics."""
    racks: Names = whole(Names)
    transactional_ids: Names = whole(Names)


class Sent(NamedTuple):
    """Produced records of one request."""

    time_ns: int
    topic: int
    partition: int
    acknowledged_ns: int
    first: int
    end: int
    client: int
    producer_id: int
    checksum: int


class Got(NamedTuple):
    """A fetched batch, or a run of single messages of an old format."""

    time_ns: int
    """Time of the last byte of the response."""
    topic: int
    partition: int
    first: int
    end: int
    asked: int
    """Fetch offset; -1 where the request did not name the partition."""
    records: int
    """At or beyond that."""
    client: int
    producer_id: int
    checksum: int
    judged: int
    """1 where the client is read_committed."""


class Commit(NamedTuple):
    """What a group has processed of a partition, by a commit or a member of a share group."""

    time_ns: int
    group: int
    topic: int
    partition: int
    first: int
    end: int
    producer_id: int


class TransactionEnd(NamedTuple):
    """The end of a transaction: a marker in a partition, or the request (no topic, -1, -1)."""

    time_ns: int
    topic: int
    partition: int
    offset: int
    producer_id: int
    committed: int


# What is known of single records that are asked for, each with the earliest time: a response had a
# high watermark beyond it, or a last stable offset; a follower, whose node id comes next, asked for
# what is after it; the response at the time that comes next had a batch around it, but not the
# record; it was sent or fetched with the key, CreateTime and `traceparent` that come next.
VISIBLE: Final = "visible"
STABLE: Final = "stable"
REPLICATED: Final = "replicated"
COMPACTED: Final = "compacted"
CONTENTS: Final = "contents"


class Moment(Measures):
    """When something was first seen of one record that is asked for."""

    time_ns: int | None = least()


def rows(kind: type[NamedTuple], *limit: int) -> Any:
    """Declare a field of rows. Clients, topics and groups are numbers there: see `number_of`."""
    return whole(partial(IntegerRows, kind, *limit))


@lru_cache(1 << 14)
def number_of(key: Any) -> int:
    """Return a client, a topic key or a group as a number for columns."""
    return rank(bounded(key)) >> 1


class MapFacts(Accumulator):
    """What is counted for the map and for journeys. A client is a part of keys as a tuple: the
    fields of an `Identity`, whose text would say so."""

    writes: Keyed[Edge] = table(Edge, LIMITS.edges)
    reads: Keyed[Edge] = table(Edge, LIMITS.edges)
    """By client and topic."""
    groups: Keyed[Membership] = table(Membership, LIMITS.edges)
    """By client and group."""
    clients: Keyed[ClientFacts] = table(ClientFacts, LIMITS.edges)
    replicas: Keyed[Edge] = table(Edge, LIMITS.edges)
    """By the node id of a follower, and topic."""
    got: IntegerRows[Got] = rows(Got)
    """For the map only what a transaction decides about: whether clients see it."""
    ends: IntegerRows[TransactionEnd] = rows(TransactionEnd)

    # Of journeys alone.
    sent: IntegerRows[Sent] = rows(Sent)
    commits: IntegerRows[Commit] = rows(Commit)
    moments: Keyed[Moment] = table(Moment, LIMITS.journey_moments)
    """By topic, partition, offset, and what was seen of it."""
    last_ns: int | None = most()

    def labels(self, names: TopicNames | None) -> dict[int, str]:
        """Return the names of topics by their numbers: some messages have the name of a topic,
        others its id, and both are one topic. A group that fetches by id may commit by name."""
        tables = self.writes, self.reads, self.replicas
        known = {key[-1]: str(topic_label(key[-1], names)) for each in tables for key in each}
        known |= {label: label for label in known.values()}
        return {number_of(key): label for key, label in known.items()}
