"""Short bodies: of each message only what rows and the state of a connection ask for.

The usual case of dissection: no variants, nothing to be learned of topics or brokers, nothing left
over behind the end. What is not usual, or does not fit, goes the general way (`dissection`), with
the same result. Whole bodies are read when somebody asks for them.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from kafkascope.analyzer.bodies import facts, nodes
from kafkascope.analyzer.bodies.fetch_sessions import FETCH, KEYS
from kafkascope.analyzer.bodies.waits import WAITING
from kafkascope.dissectors.codec.reader import Reader, reader
from kafkascope.dissectors.layout import ArrayWire, Layout, StructWire
from kafkascope.dissectors.registry import (
    APIS,
    layout_of,
    response_header_version,
    variants_of,
)

FETCHED: Final = frozenset(
    {
        *("replica_id", "replica_state", "max_wait_ms", "min_bytes", "max_bytes"),
        *("isolation_level", "session_id", "session_epoch", "topics", "topic", "topic_id"),
        *("partitions", "partition", "forgotten_topics_data", "error_code", "responses"),
        *("partition_index", "records", "high_watermark", "last_stable_offset"),
    }
)
"""Fields of Fetch that its sessions, its waits and the ends of logs are known by."""
INNER: Final = frozenset({"max_bytes"})
"""Those of them that count only at the top of the message."""


class Plan(NamedTuple):
    """How both sides of a version are read; to a plan for whole bodies these are no shorter."""

    api: str
    request: Reader
    response: Reader
    response_at: int
    """Where the body of a response begins, when its header has no tags."""
    collect_request: facts.Collector | None
    collect_response: facts.Collector | None


@cache
def plan_of(key: int, version: int, *, whole: bool) -> Plan | None:
    """Return the plan of a version; None when it goes the general way. `whole`: bodies have all
    their fields, as somebody will ask for them."""
    api = APIS.get(key)
    if api is None or version not in api.versions or key in (KEYS | WAITING) - {FETCH}:
        return None
    names = f"{api.name}Request", f"{api.name}Response"
    if any(variants_of(name, version) for name in names):
        return None
    asked, answer = (layout_of(name, version) for name in names)
    if any(facts.teaches(each) or nodes.teaches(each) for each in (asked, answer)):
        return None
    return Plan(
        api.name,
        reader(asked) if whole else _reader(key, asked),
        reader(answer) if whole else _reader(key, answer),
        4 + response_header_version(key, version),
        facts.collector(asked),
        facts.collector(answer),
    )


def _reader(key: int, layout: Layout) -> Reader:
    wanted = facts.read_by(layout)
    if key == FETCH:
        wanted |= _named(layout.body, top=True)
    return reader(layout, wanted)


def _named(wire: StructWire, *, top: bool = False) -> frozenset[int]:
    """Return the slots that Fetch's state wants, as `reader` wants them."""
    found: frozenset[int] = frozenset()
    for slot in (*wire.slots, *wire.tags):
        if slot.name in FETCHED and (top or slot.name not in INNER):
            found |= {id(slot)}
            inner = slot.wire.element if isinstance(slot.wire, ArrayWire) else slot.wire
            if isinstance(inner, StructWire):
                found |= _named(inner)
    return found
