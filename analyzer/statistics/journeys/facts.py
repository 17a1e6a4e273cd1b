"""What is kept of produced and fetched batches, of commits, and of single records."""

from __future__ import annotations

from functools import partial

from kafkascope.analyzer.merging.integer_rows import IntegerRows
from kafkascope.analyzer.merging.measures import Measures, least, most, whole
from kafkascope.analyzer.merging.tables import Keyed, table
from kafkascope.analyzer.statistics.journeys.applications import Applications
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import Accumulator


class Produces(Measures):
    """What was produced to a partition."""

    rows: IntegerRows = whole(partial(IntegerRows, 7))
    """(sent, acknowledged or -1, first offset or -1, records, client, producer id of a transaction
    or -1, checksum)"""


class Fetches(Measures):
    """What was fetched of a partition."""

    rows: IntegerRows = whole(partial(IntegerRows, 9))
    """(time, base offset, last offset, fetch offset or -1, records, client, producer id of a
    transaction or -1, checksum, 1 where the client is read_committed)"""


class GroupCommits(Measures):
    """Commits of a group for a partition, and what members of a share group accepted."""

    rows: IntegerRows = whole(partial(IntegerRows, 4))
    """(time, first offset, offset behind the last, producer id of a transaction or -1)"""


class RecordFacts(Measures):
    """What else is known of one record that is asked for."""

    visible_ns: int | None = least()
    stable_ns: int | None = least()
    created_ms: int | None = least()
    key: str | None = most()
    traceparent: str | None = most()


class Replication(Measures):
    """When a follower first asked for what is behind a record."""

    time_ns: int | None = least()


class JourneyFacts(Accumulator):
    """What is counted of journeys."""

    produces: Keyed[Produces] = table(Produces, LIMITS.journey_partitions)
    fetches: Keyed[Fetches] = table(Fetches, LIMITS.journey_partitions)
    """By topic and partition."""
    commits: Keyed[GroupCommits] = table(GroupCommits, LIMITS.journey_groups)
    """By group, topic and partition."""
    records: Keyed[RecordFacts] = table(RecordFacts, LIMITS.journey_records)
    """By topic, partition and offset."""
    replications: Keyed[Replication] = table(Replication, LIMITS.journey_records)
    """By topic, partition, offset and follower."""
    last_ns: int | None = most()
    map: Applications = whole(Applications)
