"""What the answers to Fetch of one connection tell about the ends of logs: whether a later answer
could be given at once, or only when data came.

A broker serves a connection in order, so what an earlier answer told was so when a later request
was taken up. What began before the capture is unknown. Sans-I/O.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.bodies.contents import walk_of
from kafkascope.analyzer.bodies.fetch_sessions import (
    FETCH,
    SHARE_FETCH,
    FetchSession,
    Partition,
    listed,
    topic_of,
)
from kafkascope.captures.resumable import Resumable

MAX_PARTITIONS: Final = 100_000
"""Per connection; when there are more, all are forgotten and learned anew."""

WAITS_FOR_DATA: Final = frozenset({FETCH, SHARE_FETCH})
"""Keys of the APIs whose answers wait for data."""
READ_COMMITTED: Final = 1
DENIED: Final = 29
"""TOPIC_AUTHORIZATION_FAILED is found before anything is read; brokers wait for the other
partitions. All other errors may come up while a broker waits."""


class LogEnd(NamedTuple):
    """The end of a partition's log for readers."""

    told_ns: int
    """When the answer began that tells it."""
    high_watermark: int
    """-1 where it is not told, as in ShareFetch."""
    last_stable: int


_log_end = partial(tuple.__new__, LogEnd)
"""`LogEnd` from a tuple without a Python frame."""


class LogEnds(Resumable):
    """Of the partitions that one connection fetched, as their last answers told them."""

    STATE = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Partition, LogEnd] = {}

    def response(
        self,
        asked: dict[str, Any],
        sent_ns: int,
        answer: dict[str, Any],
        told_ns: int,
        session: FetchSession | None,
    ) -> bool:
        """Follow an answer to Fetch or ShareFetch; whether the broker had no reason to wait with
        it: min_bytes of it were in the log before the request was sent, or all was denied.

        Other errors may have come up while the broker waited: leaders move, topics go. Brokers of
        2.8 and 3.6 told FENCED_LEADER_EPOCH after exactly max_wait_ms, and did so again.
        """
        # Comparisons rather than `min` and `max`: this is done for every answer.
        wanted = asked["min_bytes"]
        most = asked.get("max_bytes", wanted)
        if most < wanted:
            wanted = most
        if wanted < 1:
            wanted = 1
        committed = asked.get("isolation_level") == READ_COMMITTED
        # A leader also holds answers to followers back to keep to a replication quota.
        provable = not is_follower(asked)
        known = self._known
        had = denied = 0
        for topic in answer["responses"]:
            name = topic_of(topic)
            for partition in topic["partitions"]:
                place = name, partition["partition_index"]
                end = known.get(place)
                code = partition["error_code"]
                if code:
                    denied += code == DENIED
                    known.pop(place, None)
                    continue
                records = partition["records"]
                if (
                    records
                    and had < wanted
                    and provable
                    and end is not None
                    and end.told_ns <= sent_ns
                ):
                    offset = end.last_stable if committed else end.high_watermark
                    had += _bytes_before(records, offset, wanted - had)
                high = partition.get("high_watermark", -1)
                stable = partition.get("last_stable_offset", -1)
                if end is None and len(known) >= MAX_PARTITIONS:
                    # One by one, the oldest first, would look through the gaps of the others.
                    known.clear()
                known[place] = _log_end((told_ns, high, stable))
        return had >= wanted or (denied > 0 and denied >= _count(asked, session))


def is_follower(asked: dict[str, Any]) -> bool:
    """Whether a broker or controller copies the log for itself."""
    if "replica_state" in asked:
        return bool(asked["replica_state"]["replica_id"] >= 0)
    return bool(asked.get("replica_id", -1) >= 0)


def _count(asked: dict[str, Any], session: FetchSession | None) -> int | float:
    """How many partitions are fetched; more than any answer has where that is unknown."""
    partitions = listed(asked) if session is None else session.partitions
    return float("inf") if partitions is None else len(partitions)


def _bytes_before(records: bytes, end: int, wanted: int) -> int:
    """Bytes of the batches that lie before an offset; counts no further than `wanted`."""
    found = 0
    for batch in walk_of(records).batches:
        if batch.last_offset >= end:
            break
        found += batch.size
        if found >= wanted:
            break
    return found
