"""The records fields of an exchange, partition by partition: what Produce, Fetch and ShareFetch
moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from analyzer.statistics.model import topic_key
from dissectors.errors import DissectError
from dissectors.records import Batch, Partial, batches

if TYPE_CHECKING:
    from analyzer.model import Exchange

PRODUCE: Final = 0
FETCH: Final = 1
SHARE_FETCH: Final = 78

WALKED: Final = 1000
"""Records fields whose batches are remembered."""


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


_last: tuple[Exchange | None, tuple[Moved, ...]] = (None, ())
_walked: dict[int, tuple[bytes, list[Batch]]] = {}
"""By the identity of records fields of the last exchange: many statistics ask for the same."""


def moved(exchange: Exchange) -> tuple[Moved, ...]:
    """One for each partition of the exchange, empty ones too."""
    global _last
    known, found = _last
    if known is not exchange:
        found = tuple(_moved(exchange))
        _last = exchange, found
        _walked.clear()
    return found


def _moved(exchange: Exchange) -> Iterator[Moved]:
    key = exchange.api_key
    if key == PRODUCE:
        yield from _produced(exchange)
    elif key in (FETCH, SHARE_FETCH) and exchange.response is not None:
        asked = exchange.request.body if exchange.request is not None else None
        answer = exchange.response.body
        if answer is not None:
            way: Literal["fetch", "replica"] = "replica" if replica_id(asked) >= 0 else "fetch"
            for topic in answer["responses"]:
                named = topic_key(topic.get("topic"), topic.get("topic_id"))
                for each in topic["partitions"]:
                    blob = each["records"] or b""
                    yield Moved(
                        way, named, each["partition_index"], each["error_code"], True, blob, None
                    )


def replica_id(asked: dict[str, Any] | None) -> int:
    """The follower that a Fetch is of; -1 for a consumer."""
    if asked is None:
        return -1
    state = asked.get("replica_state")
    if isinstance(state, dict):
        return int(state.get("replica_id", -1))
    return int(asked.get("replica_id", -1))


def _produced(exchange: Exchange) -> Iterator[Moved]:
    asked = exchange.request.body if exchange.request is not None else None
    if asked is None:
        return
    answer = exchange.response.body if exchange.response is not None else None
    results: dict[tuple[str | None, int], dict[str, Any]] = {}
    for topic in (answer or {}).get("responses", ()):
        named = topic_key(topic.get("name"), topic.get("topic_id"))
        for each in topic["partition_responses"]:
            results[named, each["index"]] = each
    for topic in asked["topic_data"]:
        named = topic_key(topic.get("name"), topic.get("topic_id"))
        for each in topic["partition_data"]:
            result = results.get((named, each["index"]))
            error, base = (0, None) if result is None else _result(result)
            yield Moved(
                "produce",
                named,
                each["index"],
                error,
                result is not None,
                each["records"] or b"",
                base,
            )


def _result(result: dict[str, Any]) -> tuple[int, int | None]:
    base = result["base_offset"]
    return result["error_code"], base if base >= 0 else None


def whole_batches(blob: bytes) -> list[Batch]:
    """The batches of a records field, as far as they can be read."""
    known = _walked.get(id(blob))
    if known is not None and known[0] is blob:
        return known[1]
    found: list[Batch] = []
    try:
        for batch in batches(blob):
            if not isinstance(batch, Partial):
                found.append(batch)
    except DissectError:
        # The exchange has a note that says so.
        pass
    if len(_walked) >= WALKED:
        _walked.clear()
    _walked[id(blob)] = blob, found
    return found
