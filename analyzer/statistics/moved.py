"""The records fields of an exchange, partition by partition: what Produce, Fetch and ShareFetch
moved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from kafkascope.analyzer.bodies.contents import Walk, walk_of
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
