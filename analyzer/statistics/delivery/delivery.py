"""What groups did with their partitions: fetched, committed, how far the ends were.

State only: ranges that were fetched, commits, offsets that groups started from, how members poll,
and what leaders assigned. `audit` reads it together with groups and cluster.
"""

from __future__ import annotations

from itertools import compress
from typing import Any, Final

from kafkascope.analyzer.identity import client_key_of
from kafkascope.analyzer.merging.bounded import Event, Kept
from kafkascope.analyzer.merging.measures import stretch
from kafkascope.analyzer.statistics import exchange_batch
from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.delivery.ends import Bounds, listed, written
from kafkascope.analyzer.statistics.delivery.model import DeliveryFacts, Planned, Reads
from kafkascope.analyzer.statistics.delivery.parts import (
    commits_of,
    encoding,
    logged_at,
    offset_in,
    plan_of,
    starts_of,
)
from kafkascope.analyzer.statistics.groups.events import (
    HEARTBEAT,
    JOIN_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
)
from kafkascope.analyzer.statistics.model import Line, Row, TopicNames, columns
from kafkascope.dissectors.zookeeper.paths import KEPT_OFFSET, place_of
from kafkascope.dissectors.zookeeper.types import BASE

LIST_OFFSETS: Final = 2
OFFSET_FETCH: Final = 9
TXN_COMMIT: Final = 28
# Heartbeats of share groups are not here: their members commit nothing.
KEYS: Final = frozenset(
    {exchange_batch.PRODUCE, exchange_batch.FETCH, 2, 8, 9, 11, HEARTBEAT, 14, TXN_COMMIT, 68, 88}
)
KEPT_CREATE, KEPT_GET, KEPT_SET = (BASE + number for number in (1, 4, 5))
# Requests to ZooKeeper, where consumers before 0.9 keep their offsets.
KEPT: Final = frozenset({KEPT_CREATE, KEPT_GET, KEPT_SET})
# Isolation level of a Fetch.
READ_COMMITTED: Final = 1


def _fetch_event(kept: Kept) -> Event:
    time_ns, id_, part, number, _, first, last, high, end_ns, how = kept
    about = {"from": first, "to": last, "high": high, "end_ns": end_ns, **how}
    return Event(time_ns, id_, part, number, "fetch", about)


def _is_stuck(reads: Reads, parts: exchange_batch.PartitionColumns) -> None:
    """Take note of answers to a read_committed reader that stays at the last stable offset."""
    columns = parts.ends, parts.highs, parts.stables, parts.fetch_offsets
    for end, high, stable, fetch_offset, found in zip(
        *columns, parts.by_exchange(parts.batches), strict=True
    ):
        position = found[-1].last_offset + 1 if found else fetch_offset
        if 0 <= stable < high and position == stable:
            # Within a session responses omit the partition until something changes.
            reads.at_stable += not found
            reads.take(stuck=(stable, -end))


class Delivery(DeliveryFacts):
    """Fetches, commits, members and plans."""

    NAME = "delivery"
    KEYS = KEYS | KEPT
    SINGLY = KEYS - {HEARTBEAT}
    VERSION = 6
    COLUMNS = columns(
        "group topic partition commits failed committed_offset fetched_offset end_offset lag"
    )

    # --- taking in

    def add(self, batch: exchange_batch.ExchangeBatch) -> None:
        if batch.api_key == exchange_batch.FETCH:
            if batch.request and batch.way == "fetch":
                self._fetch(batch)
        elif batch.api_key == exchange_batch.PRODUCE:
            for (topic, number, error), parts in batch.parts.items():
                ends = written(parts, sizeless=batch.exchange.sizeless)
                if not error and max(ends) >= 0:
                    self.bounds[(topic, number)].ends.add_all(parts.ends, ends)
        else:
            self._add_other(batch)

    def _add_other(self, batch: exchange_batch.ExchangeBatch) -> None:
        row, exchange = batch.row, batch.exchange
        key, end_ns = row.api_key, row.time_ns + (row.latency_ns or 0)
        request, response = exchange.request_body, exchange.response_body
        if key in KEPT and row.zookeeper is not None:
            self._kept(row, request, response)
            return
        if key not in KEYS or request is None:
            return
        if key == LIST_OFFSETS:
            for named, number, begin, end in listed(request, response):
                self.bounds[(named, number)].see(end_ns, begin, end)
            return
        if key == OFFSET_FETCH:
            for part, (named, topic, number, offset) in enumerate(starts_of(request, response)):
                about = {"offset": offset, "end_ns": end_ns}
                self._event((named, topic, number), "start", about, row, part)
            return
        group = request.get("group_id") or ""
        if not group:
            return
        here = self.belongs[(group, *client_key_of(row))]
        stretch(here, batch.first_ns, batch.last_ns)
        for name in ("session", "rebalance"):
            if (limit_ms := request.get(f"{name}_timeout_ms") or 0) > 0:
                here.take(**{f"{name}_ms": limit_ms})
        if key in (OFFSET_COMMIT, TXN_COMMIT):
            for part, (topic, number, about) in enumerate(commits_of(request, response)):
                about |= {"end_ns": end_ns, "txn": key == TXN_COMMIT}
                self._event((group, topic, number), "commit", about, row, part)
        elif key in (JOIN_GROUP, SYNC_GROUP) and response is not None:
            found = plan_of(key, request, response)
            if found is not None:
                at = (row.time_ns, row.number) if "assigned" in found else None
                self.plans[(group, found.pop("generation"))].merge(Planned(**found, sync=at))

    def _kept(
        self, row: Row, request: dict[str, Any] | None, response: dict[str, Any] | None
    ) -> None:
        """Take in an offset that a consumer before 0.9 keeps in ZooKeeper, or reads there."""
        path = row.zookeeper.path if row.zookeeper is not None else None
        place = place_of(path) if path else None
        if place is None or place.what != KEPT_OFFSET or request is None:
            return
        group, topic = place.first("groupId") or "", place.first("topicName") or ""
        number = offset_in((place.first("partition") or "").encode())
        start = row.api_key == KEPT_GET
        data = (response or {}).get("data") if start else request.get("data")
        offset = offset_in(data)
        # Without a node there is nothing committed, and a client creates it then.
        if number is None or offset is None or row.errors:
            return
        about: dict[str, Any] = {"offset": offset, "end_ns": row.time_ns + (row.latency_ns or 0)}
        if not start:
            about |= {"member": "", "generation": -1, "error": None if response is None else 0}
        self._event((group, topic, number), "start" if start else "commit", about, row, 0)

    def _event(
        self,
        key: tuple[str, str | None, int],
        kind: str,
        about: dict[str, Any],
        row: Row,
        part: int,
    ) -> None:
        commits = self.commits[key]
        if kind == "commit":
            commits.count += 1
            commits.failed += bool(about["error"])
        commits.events.note(row, kind, about, part)

    def _fetch(self, batch: exchange_batch.ExchangeBatch) -> None:
        client = batch.client
        self.polls[client].add_all(batch.begins, batch.ends)
        committed = batch.request.get("isolation_level") == READ_COMMITTED
        for (topic, number, error), parts in batch.parts.items():
            reads = self.reads[(topic, number, *client)]
            offsets = [offset for offset in parts.fetch_offsets if offset is not None]
            reads.take(asked=max(offsets, default=None))
            if error:
                reads.take(away_ns=max(parts.ends))
            else:
                read, logged = batch.reads.get((topic, number)), batch.exchange.logged
                bounds = self.bounds[(topic, number)]
                late_ns = 0 if logged is None else logged.late_ns
                self._fetched(reads, bounds, parts, read, late_ns, committed=committed)
        for place, fetches in batch.unanswered.items():
            reads = self.reads[(*place, *client)]
            reads.take(asked=max(offset for _, _, offset in fetches))
            # Within a session, partitions without news are left out of the answer.
            reads.stand([(begin, end, offset) for begin, end, offset in fetches if end is not None])

    def _fetched(
        self,
        reads: Reads,
        bounds: Bounds,
        parts: exchange_batch.PartitionColumns,
        read: tuple[int, int | None] | None,
        late_ns: int,
        *,
        committed: bool,
    ) -> None:
        """Take note of partitions in Fetch responses, none of them an error. `committed`: the
        reader requested read_committed. `read`: what is known where records are not."""
        ends, highs = parts.ends, parts.highs
        stretch(reads, min(parts.begins), max(ends))
        reads.take(
            end=max(zip(ends, highs, parts.stables, parts.starts, strict=True)),
            away_ns=max(compress(ends, parts.elsewhere), default=None),
        )
        bounds.begins.add_all(ends, parts.starts)
        bounds.ends.add_all(ends, highs)
        if committed:
            _is_stuck(reads, parts)
        events: list[Kept] = []
        stands = []
        requests = parts.begins, ends, parts.numbers, parts.ids, parts.at, parts.fetch_offsets
        responses = highs, parts.elsewhere, parts.blobs, parts.by_exchange(parts.batches)
        for begin, end, number, id_, at, fetch_offset, high, elsewhere, blob, found in zip(
            *requests, *responses, strict=True
        ):
            if found:
                first = found[0].base_offset if fetch_offset is None else fetch_offset
                last = max(first, found[-1].last_offset + 1)
                reads.records += last - first
                how = encoding(blob, found)
                if found[0].control:
                    # kafkajs asks for the marker after a transaction again: that is no record.
                    how = {
                        **how,
                        "data": next((b.base_offset for b in found if not b.control), last),
                    }
                events.append((begin, id_, at, number, _fetch_event, first, last, high, end, how))
            elif read is not None and read[1] is not None:
                reads.records += read[1] - read[0]
                to = (_fetch_event, *read, high, end, logged_at(late_ns))
                events.append((begin, id_, at, number, *to))
            elif read is not None:
                # Only the end of the log shows how far.
                stands.append((begin, end, max(read[0], high)))
                reads.positions.add(max(read[0], high), begin - late_ns)
            elif fetch_offset is not None and not elsewhere:
                stands.append((begin, end, fetch_offset))
        reads.stand(stands)
        reads.events.add_all(events)

    # --- telling

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        return Audit(self, None, None, names).partitions()
