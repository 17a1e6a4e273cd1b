"""Writes and reads records: Fetch, ListOffsets, OffsetForLeaderEpoch, Produce. Waits for records,
else sans-I/O."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.layout import magic_of
from kafkascope.proxy.serve.captured_cluster import CapturedCluster, Partition, Topic
from kafkascope.proxy.serve.fetch_sessions import (
    Changes,
    FetchSession,
    FetchSessions,
    Key,
    TopicPartition,
)
from kafkascope.proxy.serve.log import Entry, Log
from kafkascope.proxy.serve.request import ENTRY, Code, ErrorResponse, Request, by_partition

LATEST: Final = -1
EARLIEST: Final = -2
NEWEST: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
READ_COMMITTED: Final = 1
# What a Fetch tells of a partition that is not there.
UNKNOWN: Final[Body] = {"high_watermark": -1, "log_start_offset": -1, "records": b""}


# What was read of a partition, and whether it has to be read again, though nothing changes there.
Result: TypeAlias = tuple[Key, Body, bool]


class Partitions:
    """The logs of the served topics, as requests see them."""

    def __init__(self, model: CapturedCluster) -> None:
        self._model = model
        self._limits = model.limits
        self._written_bytes = 0
        self._written = asyncio.Event()
        self._changes = Changes()
        self._sessions = FetchSessions(self._changes, model.limits)
        self._open: dict[int, dict[TopicPartition, None]] = {}
        """Producer id -> the partitions that its transaction wrote to."""

    def find(self, name: str, number: int) -> Partition | None:
        topic = self._model.topics.get(name)
        return None if topic is None else topic.partitions.get(number)

    def _named(self, topic: Body, number: int, **unknown: Any) -> Partition:
        """The partition that a request names; refused where there is none. `unknown`: what the
        response tells then."""
        name = self._model.name_of(topic)
        part = self.find(name, number)
        if part is None:
            by_id = not name and "topic_id" in topic
            error = Code.UNKNOWN_TOPIC_ID if by_id else Code.UNKNOWN_TOPIC_OR_PARTITION
            raise ErrorResponse(error, **unknown)
        return part

    def wake(self) -> None:
        self._written.set()

    def gone(self, topic: Topic) -> None:
        for number in topic.partitions:
            self._changes.note(TopicPartition(topic.name, topic.id, number))
        self.wake()

    async def until(self, moment: float) -> bool:
        """Wait for new records until that moment of the monotonic clock; False when it has come."""
        left = moment - time.monotonic()
        if left <= 0:
            return False
        self._written.clear()
        try:
            await asyncio.wait_for(self._written.wait(), left)
        except TimeoutError:
            return False
        return True

    async def fetch(self, request: Request) -> Body:
        session = self._sessions.of(request.body)
        until = time.monotonic() + min(request.body["max_wait_ms"] / 1000, self._limits.wait_s)
        found, ready = self._read(request.version, request.body, session)
        while not ready and await self._news(session, until):
            found, ready = self._read(request.version, request.body, session)
        return {"session_id": session.id, "responses": _new_parts(session, found)}

    async def _news(self, session: FetchSession, moment: float) -> bool:
        """Wait until a partition of a session changed; False when the moment has come."""
        while await self.until(moment):
            if session.changed(self._changes):
                return True
        return False

    def _read(self, version: int, body: Body, session: FetchSession) -> tuple[list[Result], bool]:
        """Return the results of the partitions that are due, and whether to respond at once."""
        magic = magic_of("FetchResponse", version)
        left = min(body.get("max_bytes", self._limits.fetch_bytes), self._limits.fetch_bytes)
        committed = body.get("isolation_level", 0) == READ_COMMITTED
        found, ready = [], False
        for key in session.due:
            partition = session.partitions[key]
            number = partition.partition["partition"]
            more = left <= 0
            try:
                part = self._named(partition.topic, number, **UNKNOWN)
            except ErrorResponse as refused:
                result = refused.body
            else:
                result = _portion(part.log, partition.partition, left, magic, committed)
                left -= len(result["records"])
            result["partition_index"] = number
            news = bool(result["records"] or result["error_code"])
            ready |= news
            found.append((key, result, news or more))
        return found, ready

    async def list_offsets(self, request: Request) -> Body:
        committed = request.body.get("isolation_level", 0) == READ_COMMITTED

        def listed(topic: Body, partition: Body) -> Body:
            part = self._named(topic, partition["partition_index"])
            offset, stamp = _offset_at(part.log, partition["timestamp"], committed)
            result: Body = {"offset": offset, "timestamp": stamp, "leader_epoch": part.epoch}
            return {**result, "old_style_offsets": [offset] if offset >= 0 else []}

        return {"topics": by_partition(request.body["topics"], listed)}

    async def leader_epoch(self, request: Request) -> Body:
        def found(topic: Body, partition: Body) -> Body:
            part = self._named(topic, partition["partition"])
            return {"leader_epoch": part.epoch, "end_offset": part.log.next}

        return {"topics": by_partition(request.body["topics"], found)}

    async def produce(self, request: Request) -> Body | None:
        topics = by_partition(
            request.body["topic_data"], self._appended, "partition_data", "partition_responses"
        )
        self.wake()
        return None if request.body["acks"] == 0 else {"responses": topics}

    def _appended(self, topic: Body, data: Body) -> Body:
        log = self._named(topic, data["index"], base_offset=-1).log
        if self._written_bytes + len(data["records"] or b"") > self._limits.written_bytes:
            raise ErrorResponse(Code.KAFKA_STORAGE_ERROR, base_offset=-1)
        if not data["records"]:
            return {"base_offset": -1}
        before = log.bytes
        base = log.append(data["records"])
        self._written_bytes += log.bytes - before
        name = self._model.name_of(topic)
        place = TopicPartition(name, self._model.topics[name].id, data["index"])
        self._changes.note(place)
        for producer in log.writers():
            places = self._open.setdefault(producer, {})
            if place not in places:
                places[place] = None
                self._written_bytes += ENTRY
        error = Code.CORRUPT_MESSAGE if base < 0 else Code.NONE
        return {"error_code": error, "base_offset": base, "log_start_offset": log.start}

    def end_transaction(self, producer: int, epoch: int, committed: bool) -> None:
        """Append a marker to every partition where the producer has a transaction open."""
        now = time.time_ns() // 1_000_000
        for place in self._open.pop(producer, ()):
            self._written_bytes -= ENTRY
            part = self.find(place.name, place.number)
            if part is not None:
                part.log.end_transaction(producer, epoch, committed, now)
                self._changes.note(place)
        self.wake()


def _new_parts(session: FetchSession, found: list[Result]) -> list[Body]:
    """Return the topics of a response: of each partition what is new. It counts as sent."""
    topics: dict[str | bytes, Body] = {}
    later: list[Key] = []
    for key, result, more in found:
        partition = session.partitions.get(key)
        if partition is None:
            continue  # another request in the same session took it away meanwhile
        sent = result["high_watermark"], result["log_start_offset"]
        session.due.pop(key, None)
        if more and result["records"]:
            later.append(key)
        elif more:
            session.due[key] = None
        if result["records"] or result["error_code"] or sent != partition.sent:
            topic = topics.setdefault(key[0], {**partition.topic, "partitions": []})
            topic["partitions"].append(result)
        # What failed is sent in full once it no longer does.
        partition.sent = None if result["error_code"] else sent
    # What was read comes after the others: one that is full must not keep them from being read.
    session.due.update(dict.fromkeys(later))
    return list(topics.values())


def _portion(log: Log, partition: Body, left: int, magic: int, committed: bool) -> Body:
    offset = partition["fetch_offset"]
    stable = log.stable
    result: Body = {
        "error_code": 0,
        # Where the capture's clients stood without reading on is an end, too.
        "high_watermark": max(log.end, offset if offset <= log.next else 0),
        "log_start_offset": log.start,
        "aborted_transactions": None,
        "records": b"",
    }
    result["last_stable_offset"] = stable if stable < log.end else result["high_watermark"]
    if not 0 <= offset <= log.next:
        return {**result, "error_code": Code.OFFSET_OUT_OF_RANGE}
    entries: list[Entry] = []
    if left > 0:
        most = min(left, max(partition["partition_max_bytes"], 1))
        read = log.read(offset, most, magic, stable if committed else None)
        result["records"], entries = read
    if committed:
        result["aborted_transactions"] = [
            {"producer_id": producer, "first_offset": first}
            for producer, first in log.aborted_in(entries)
        ]
    return result


def _offset_at(log: Log, timestamp: int, committed: bool) -> tuple[int, int]:
    if timestamp == LATEST:
        return (log.stable if committed else log.end), -1
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.start, -1
    if timestamp == NEWEST:
        return log.newest()
    if timestamp == LATEST_TIERED:
        return -1, -1
    return log.offset_for(timestamp)
