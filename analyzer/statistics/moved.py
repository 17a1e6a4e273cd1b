"""The records fields of an exchange, partition by partition: what Produce, Fetch and ShareFetch
moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from kafkascope.analyzer.bodies.contents import Walk, lone_batch, walk_of
from kafkascope.analyzer.statistics.model import Exchange, Row, topic_key
from kafkascope.dissectors.records.records import Batch

PRODUCE: Final = 0
FETCH: Final = 1
SHARE_FETCH: Final = 78


class Moved(NamedTuple):
    """The records field of one partition."""

    way: Literal["produce", "fetch", "replica"]
    topic: str | None
    """A key: see `topic_key`."""
    partition: int
    error: int
    """Of the partition's answer; 0 when there is none."""
    answered: bool
    records: bytes
    base_offset: int | None
    """That the broker gave to a produced batch."""
    batches: Sequence[Batch]
    """As far as they can be read; the exchange has a note where that is not the end."""
    counts: Sequence[int]
    """Records of each batch."""


class Movement(NamedTuple):
    """What an exchange moved of one partition, with what is asked of the exchange beside it."""

    begin: int
    """Time of the request."""
    end: int | None
    """Time of the answer."""
    number: int
    id: str
    at: int
    """Place among the partitions of the exchange."""
    asked: int | None
    """Offset that a Fetch asked for; None where it did not name the partition."""
    high: int
    """High watermark that a Fetch response tells, last stable offset, and where the log begins; -1
    where it does not."""
    stable: int
    start: int
    elsewhere: bool
    """A Fetch response names another broker to read from."""
    moved: Moved


Place: TypeAlias = tuple[str | None, int]
"""A topic, as a key, and a partition."""

T = TypeVar("T")


class BatchColumns(NamedTuple):
    """The values of many batches: those of a `Batch`, and how many records each holds."""

    at: Sequence[int] = ()
    size: Sequence[int] = ()
    magic: Sequence[int] = ()
    base_offset: Sequence[int] = ()
    last_offset: Sequence[int] = ()
    leader_epoch: Sequence[int] = ()
    crc: Sequence[int] = ()
    attributes: Sequence[int] = ()
    base_timestamp: Sequence[int] = ()
    max_timestamp: Sequence[int] = ()
    producer_id: Sequence[int] = ()
    producer_epoch: Sequence[int] = ()
    base_sequence: Sequence[int] = ()
    record_count: Sequence[int | None] = ()


class Parts:
    """What usual exchanges moved of one partition: columns of what differs, one value for each
    exchange, and those of all batches. None of them is an error."""

    __slots__ = (
        *("answered", "asked", "at", "batches", "begins", "blobs", "counts", "elsewhere", "ends"),
        *("found", "given", "held", "highs", "ids", "lone", "numbers", "rows", "stables"),
        "starts",
    )
    # As the fields of `Movement`, and those of `Moved` that it holds.
    begins: Sequence[int]
    ends: Sequence[int]
    numbers: Sequence[int]
    ids: Sequence[str]
    at: Sequence[int]
    asked: Sequence[int | None]
    highs: Sequence[int]
    stables: Sequence[int]
    starts: Sequence[int]
    elsewhere: Sequence[bool]
    answered: Sequence[bool]
    given: Sequence[int | None]
    """`base_offset`."""
    blobs: Sequence[bytes]
    held: Sequence[int]
    """How many batches there are in each."""
    batches: BatchColumns
    lone: bool
    """Whether there is one batch in each, so that columns of both kinds are beside each other."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        """Until `settle`."""
        self.found: list[Batch] = []
        self.counts: list[int] = []
        """Records of each batch."""

    @classmethod
    def of(cls, part: Movement) -> Parts:
        """Return what one exchange moved."""
        made = cls()
        made.take(part)
        made.settle()
        return made

    def take(self, part: Movement) -> None:
        """Take in what an exchange moved."""
        moved = part.moved
        batches = moved.batches
        rest = moved.answered, moved.base_offset, moved.records, len(batches)
        self.rows.append((*part[:10], *rest))
        self.found += batches
        self.counts += moved.counts

    def settle(self) -> None:
        """Make the columns."""
        (
            self.begins,
            self.ends,
            self.numbers,
            self.ids,
            self.at,
            self.asked,
            self.highs,
            self.stables,
            self.starts,
            self.elsewhere,
            self.answered,
            self.given,
            self.blobs,
            self.held,
        ) = zip(*self.rows, strict=True)
        self.batches = BatchColumns(*zip(*self.found, strict=True))
        self.lone = self.held == (1,) * len(self.found)

    def by_batch(self, column: Sequence[T]) -> Sequence[T]:
        """Return a column of exchanges with one value for each of their batches."""
        if self.lone:
            return column
        pairs = zip(column, self.held, strict=True)
        return [value for value, held in pairs for _ in range(held)]

    def by_exchange(self, column: Sequence[T]) -> Iterator[Sequence[T]]:
        """Return the values of a column of batches exchange by exchange."""
        if self.lone:
            return zip(column, strict=True)
        ends = list(accumulate(self.held))
        return (column[end - held : end] for end, held in zip(ends, self.held, strict=True))

    def sums(self, column: Sequence[int]) -> Sequence[int]:
        """Return the sum of a column of batches for each exchange."""
        return column if self.lone else [sum(each) for each in self.by_exchange(column)]


_one = partial(tuple.__new__, Moved)
"""`Moved` from a tuple without a Python frame; `_movement` does the same for `Movement`."""
_movement = partial(tuple.__new__, Movement)

NOTHING: Final = Walk(b"", [], [], None)

_last: tuple[Exchange | None, tuple[Moved, ...]] = (None, ())


def moved(exchange: Exchange) -> tuple[Moved, ...]:
    """Return one `Moved` for each partition of the exchange, empty ones too."""
    global _last
    known, found = _last
    if known is not exchange:
        found = tuple(_moved(exchange))
        _last = exchange, found
    return found


def _moved(exchange: Exchange) -> list[Moved]:
    key = exchange.api_key
    if key == PRODUCE:
        return _produced(exchange)
    response = exchange.response_body
    if key not in (FETCH, SHARE_FETCH) or response is None:
        return []
    way: Literal["fetch", "replica"]
    way = "replica" if replica_id(exchange.request_body) >= 0 else "fetch"
    found: list[Moved] = []
    for topic in response["responses"]:
        named = _named(topic, "topic")
        for each in topic["partitions"]:
            blob = each["records"] or b""
            _, batches, counts, _ = walk_of(blob) if blob else NOTHING
            number, error = each["partition_index"], each["error_code"]
            found.append(_one((way, named, number, error, True, blob, None, batches, counts)))
    return found


def parts_of(row: Row, exchange: Exchange) -> tuple[list[Movement], dict[Place, int]]:
    """Return what an exchange moved of each partition, and the offsets that a Fetch asked for where
    no answer was about the partition."""
    begin, latency, number, id_ = row.time_ns, row.latency_ns, row.number, row.id
    end = None if latency is None else begin + latency
    found, parts, index = moved(exchange), [], 0
    if exchange.api_key != FETCH:
        for each in found:
            parts.append(_movement((begin, end, number, id_, index, None, -1, -1, -1, False, each)))
            index += 1
        return parts, {}
    asked, response = exchange.request_body, exchange.response_body
    wanted: dict[Place, int] = {}
    for topic in (asked["topics"] or ()) if asked is not None else ():
        named = _named(topic, "topic")
        for answer in topic["partitions"]:
            wanted[named, answer["partition"]] = answer["fetch_offset"]
    for topic in response["responses"] if response is not None else ():
        for answer in topic["partitions"]:
            each = found[index]
            offset = wanted.pop(each[1:3], None) if wanted else None
            high, told = answer["high_watermark"], answer.get
            stable, start = told("last_stable_offset", -1), told("log_start_offset", -1)
            elsewhere = told("preferred_read_replica", -1) >= 0
            head = begin, end, number, id_, index, offset
            parts.append(_movement((*head, high, stable, start, elsewhere, each)))
            index += 1
    return parts, wanted


def lone_part(
    key: int, asked: dict[str, Any], told: dict[str, Any]
) -> tuple[Place, tuple[Any, ...], Batch] | None:
    """Return what a usual Produce or Fetch moved when that is one batch of one partition, as it is
    of most with small messages: the place, what stands behind `at` in a row of `Parts`, and the
    batch. None for all others."""
    topics, answers = asked["topics" if key == FETCH else "topic_data"], told["responses"]
    if len(answers) != 1:
        return None
    answer = answers[0]
    offset = None
    if key == FETCH:
        results = answer["partitions"]
        if len(results) != 1:
            return None
        result = results[0]
        named, number, blob = _named(answer, "topic"), result["partition_index"], result["records"]
        if topics:
            # Within a session, a request may name none.
            parts = topics[0]["partitions"]
            if len(topics) != 1 or len(parts) != 1 or parts[0]["partition"] != number:
                return None
            if _named(topics[0], "topic") != named:
                return None
            offset = parts[0]["fetch_offset"]
        batch = lone_batch(blob) if blob else None
        if batch is None:
            return None
        more = result.get
        stable, start = more("last_stable_offset", -1), more("log_start_offset", -1)
        elsewhere = more("preferred_read_replica", -1) >= 0
        high = result["high_watermark"]
        return (
            (named, number),
            (offset, high, stable, start, elsewhere, True, None, blob, 1),
            batch,
        )
    results = answer["partition_responses"]
    if len(topics) != 1 or len(results) != 1:
        return None
    parts, result = topics[0]["partition_data"], results[0]
    if len(parts) != 1:
        return None
    named, number, blob = _named(topics[0], "name"), parts[0]["index"], parts[0]["records"]
    if result["index"] != number or _named(answer, "name") != named:
        return None
    batch = lone_batch(blob) if blob else None
    if batch is None:
        return None
    base = result["base_offset"]
    given = base if base >= 0 else None
    return (named, number), (None, -1, -1, -1, False, True, given, blob, 1), batch


def _named(topic: dict[str, Any], name: str) -> str | None:
    """Return what stands for a topic of a message in keys."""
    if "topic_id" not in topic:
        return topic[name] or None
    return topic_key(topic.get(name), topic["topic_id"])


def replica_id(asked: dict[str, Any] | None) -> int:
    """Return the id of the follower that a Fetch is of; -1 for a consumer."""
    if asked is None:
        return -1
    state = asked.get("replica_state")
    if isinstance(state, dict):
        return int(state.get("replica_id", -1))
    return int(asked.get("replica_id", -1))


def _produced(exchange: Exchange) -> list[Moved]:
    asked, response = exchange.request_body, exchange.response_body
    if asked is None:
        return []
    results: dict[Place, dict[str, Any]] = {}
    for topic in response["responses"] if response is not None else ():
        named = _named(topic, "name")
        for each in topic["partition_responses"]:
            results[named, each["index"]] = each
    found: list[Moved] = []
    for topic in asked["topic_data"]:
        named = _named(topic, "name")
        for each in topic["partition_data"]:
            number, blob = each["index"], each["records"] or b""
            result, error, base = results.get((named, number)), 0, None
            if result is not None:
                error, base = result["error_code"], result["base_offset"]
                if base < 0:
                    base = None
            _, batches, counts, _ = walk_of(blob) if blob else NOTHING
            answered = result is not None
            found.append(
                _one(("produce", named, number, error, answered, blob, base, batches, counts))
            )
    return found
