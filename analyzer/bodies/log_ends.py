"""Log ends of partitions as the Fetch responses of one connection gave them: they tell whether a
later response could be sent at once, or only when data came.

A broker serves a connection in order, so what an earlier response said was true when the broker
began with a later request. What began before the capture is unknown. Sans-I/O.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.bodies.contents import walk_of
from kafkascope.analyzer.bodies.fetch_sessions import (
    FETCH,
    SHARE_FETCH,
    FetchSession,
    Ledger,
    Partition,
    listed,
    topic_of,
)
from kafkascope.analyzer.bodies.limits import LIMITS, BodyLimits
from kafkascope.captures.resumable import Resumable
from kafkascope.dissectors.records.batches import only_batch
from kafkascope.kernel.pairs import DENIED

# Memory of what is known of a partition.
LOG_END_BYTES: Final = 400

WAITS_FOR_DATA: Final = frozenset({FETCH, SHARE_FETCH})
"""Keys of the APIs whose responses wait for data."""
READ_COMMITTED: Final = 1


class LogEnd(NamedTuple):
    """The end of a partition's log for readers."""

    told_ns: int
    """When the response that gave it began."""
    high_watermark: int
    """-1 where the response lacks it, as in ShareFetch."""
    last_stable: int


# Makes a `LogEnd` from a tuple without a Python frame.
_log_end = partial(tuple.__new__, LogEnd)


class LogEnds(Resumable):
    """Log ends of the partitions that one connection fetched, from their last responses."""

    STATE = ("known",)

    def __init__(self, ledger: Ledger | None = None, limits: BodyLimits = LIMITS) -> None:
        self._ledger = ledger
        self.most = limits.log_ends
        self.known: dict[Partition, LogEnd] = {}
        """By topic, by name or id, and partition number."""

    @property
    def held(self) -> int:
        """Memory that they take."""
        return len(self.known) * LOG_END_BYTES

    def evict(self) -> None:
        """Forget them, to be learned again: others need the memory."""
        self.known.clear()

    def response(
        self,
        request: dict[str, Any],
        sent_ns: int,
        answer: dict[str, Any],
        told_ns: int,
        session: FetchSession | None,
    ) -> bool:
        """Process a response to Fetch or ShareFetch; return whether the broker had no reason to
        wait: min_bytes of it were in the log before the request was sent, or all was denied.

        Other errors may have occurred while the broker waited: leaders move, topics are deleted.
        Brokers of 2.8 and 3.6 returned FENCED_LEADER_EPOCH after exactly max_wait_ms, repeatedly.
        """
        # Comparisons rather than `min` and `max`: this runs for every response.
        wanted = request["min_bytes"]
        most = request.get("max_bytes", wanted)
        if most < wanted:
            wanted = most
        if wanted < 1:
            wanted = 1
        committed = request.get("isolation_level") == READ_COMMITTED
        # A leader also delays responses to followers to keep to a replication quota.
        provable = not is_follower(request)
        known = self.known
        before = len(known)
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
                    had += bytes_before(records, offset, wanted - had)
                high = partition.get("high_watermark", -1)
                stable = partition.get("last_stable_offset", -1)
                if end is None and len(known) >= self.most:
                    # Removal one by one, oldest first, would scan the gaps that earlier removals
                    # left.
                    known.clear()
                    if self._ledger is not None:
                        self._ledger.forgotten += 1
                known[place] = _log_end((told_ns, high, stable))
        if self._ledger is not None and len(known) > before:
            self._ledger.buffered_bytes += (len(known) - before) * LOG_END_BYTES
        return had >= wanted or (denied > 0 and denied >= _count(request, session))


def is_follower(request: dict[str, Any]) -> bool:
    """Return whether a broker or controller fetches to replicate the log."""
    if "replica_state" in request:
        return bool(request["replica_state"]["replica_id"] >= 0)
    return bool(request.get("replica_id", -1) >= 0)


def _count(request: dict[str, Any], session: FetchSession | None) -> int | float:
    """Return the number of partitions fetched; infinity where it is unknown."""
    if session is None:
        return len(listed(request))
    return float("inf") if session.implied is None else session.implied.size


def bytes_before(records: bytes, end: int, wanted: int) -> int:
    """Return the bytes of the batches that lie before an offset, counted only up to `wanted`."""
    lone = only_batch(records)
    if lone is not None:
        return lone.size if lone.last_offset < end else 0
    found = 0
    for batch in walk_of(records).batches:
        if batch.last_offset >= end:
            break
        found += batch.size
        if found >= wanted:
            break
    return found
