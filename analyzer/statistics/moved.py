"""The records fields of an exchange, partition by partition: what Produce, Fetch and ShareFetch
moved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from kafkascope.analyzer.bodies.contents import Walk, walk_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.model import topic_key
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


_one = partial(tuple.__new__, Moved)
"""`Moved` from a tuple without a Python frame."""

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
        named = topic_key(topic.get("topic"), topic.get("topic_id"))
        for each in topic["partitions"]:
            blob = each["records"] or b""
            _, batches, counts, _ = walk_of(blob) if blob else NOTHING
            number, error = each["partition_index"], each["error_code"]
            found.append(_one((way, named, number, error, True, blob, None, batches, counts)))
    return found


def replica_id(asked: dict[str, Any] | None) -> int:
    """Return the id of the follower that a Fetch is of; -1 for a consumer."""
    if asked is None:
        return -1
    state = asked.get("replica_state")
    if isinstance(state, dict):
        return int(state.get("replica_id", -1))
    return int(asked.get("replica_id", -1))


def _produced(exchange: Exchange) -> list[Moved]:
    asked = exchange.request_body
    if asked is None:
        return []
    response = exchange.response_body
    results: dict[tuple[str | None, int], dict[str, Any]] = {}
    for topic in response["responses"] if response is not None else ():
        named = topic_key(topic.get("name"), topic.get("topic_id"))
        for each in topic["partition_responses"]:
            results[named, each["index"]] = each
    found: list[Moved] = []
    for topic in asked["topic_data"]:
        named = topic_key(topic.get("name"), topic.get("topic_id"))
        for each in topic["partition_data"]:
            number = each["index"]
            result = results.get((named, number))
            error, base = (0, None) if result is None else _result(result)
            blob = each["records"] or b""
            _, batches, counts, _ = walk_of(blob) if blob else NOTHING
            answered = result is not None
            found.append(
                _one(("produce", named, number, error, answered, blob, base, batches, counts))
            )
    return found


def _result(result: dict[str, Any]) -> tuple[int, int | None]:
    base = result["base_offset"]
    return result["error_code"], base if base >= 0 else None
