"""What journeys keep: columns of produced and fetched batches and of commits, not of records, and
what is known of single records that are asked for."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.analyzer.merging.integer_rows import IntegerRows
from kafkascope.analyzer.merging.measures import Measures, least, most
from kafkascope.analyzer.merging.tables import Keyed, table
from kafkascope.analyzer.statistics.journeys.applications import Applications
from kafkascope.analyzer.statistics.journeys.facts import rows
from kafkascope.analyzer.statistics.limits import LIMITS


class Sent(NamedTuple):
    """Produced records of one request."""

    time_ns: int
    topic: int
    partition: int
    acknowledged_ns: int
    """-1: there is no response."""
    first: int
    """Offset; -1 where the response does not tell it."""
    records: int
    client: int
    producer_id: int
    """Of a transaction, or -1."""
    checksum: int

    @property
    def end(self) -> int:
        return self.first + self.records


class Got(NamedTuple):
    """A fetched batch."""

    time_ns: int
    topic: int
    partition: int
    base: int
    last: int
    asked: int
    """Fetch offset; -1 where the request did not name the partition."""
    records: int
    client: int
    producer_id: int
    """Of a transaction, or -1."""
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
    """Of a transaction, or -1."""


VISIBLE: Final = "visible"
"""A response had a high watermark beyond the record."""
STABLE: Final = "stable"
"""A response had a last stable offset beyond it."""
REPLICATED: Final = "replicated"
"""A follower, whose node id is behind it, asked for what is beyond it."""
CONTENTS: Final = "contents"
"""The record was sent or fetched: behind it are its key, its CreateTime and its `traceparent`."""


class Moment(Measures):
    """When something was first seen of one record that is asked for."""

    time_ns: int | None = least()


class JourneyBatches(Applications):
    """What is counted of journeys, beside that of the map."""

    sent: IntegerRows[Sent] = rows(Sent)
    got: IntegerRows[Got] = rows(Got)
    commits: IntegerRows[Commit] = rows(Commit)
    moments: Keyed[Moment] = table(Moment, LIMITS.journey_moments)
    """By topic, partition, offset, and what was seen of it: one of the constants above, and what is
    behind it."""
    last_ns: int | None = most()
