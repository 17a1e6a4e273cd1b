"""Short bodies: of each message only what rows and the state of a connection ask for.

The usual case of dissection: no variants, nothing to be learned of topics or brokers, nothing left
over behind the end. What is not usual, or does not fit, goes the general way (`dissection`), with
the same result. Whole bodies are read when somebody asks for them.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

from kafkascope.analyzer.bodies import facts, nodes
from kafkascope.analyzer.bodies.dissection import PRODUCE
from kafkascope.analyzer.bodies.fetch_sessions import FETCH, KEYS
from kafkascope.analyzer.bodies.waits import WAITING
from kafkascope.analyzer.model import Frame, Later
from kafkascope.dissectors.codec.reader import Body, Reader, reader
from kafkascope.dissectors.layout import ArrayWire, Layout, StructWire
from kafkascope.dissectors.registry import (
    APIS,
    Decoded,
    RequestHeader,
    decode_request,
    decode_response,
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
    whole: bool
    """Whether bodies have all fields."""
    request: Reader | None
    """None: nobody asks for bodies; so the next one."""
    response: Reader | None
    response_at: int
    """Where the body of a response begins, when its header has no tags."""
    collect: facts.Collector | None
    """Returns what both bodies say."""
    asked: Later | None
    """Decodes a request when somebody asks for all of it; `told` its response."""
    told: Later | None


Much: TypeAlias = Literal["whole", "rows", "state", "none"]
"""What is asked for of bodies: all, what rows have of them, what the state of a connection needs,
nothing."""


@cache
def plan_of(key: int, version: int, much: Much) -> Plan | None:
    """Return the plan of a version; None when it goes the general way."""
    api = APIS.get(key)
    if api is None or version not in api.versions or key in (KEYS | WAITING) - {FETCH}:
        return None
    names = f"{api.name}Request", f"{api.name}Response"
    if any(variants_of(name, version) for name in names):
        return None
    asked, answer = (layout_of(name, version) for name in names)
    if any(facts.teaches(each) or nodes.teaches(each) for each in (asked, answer)):
        return None
    told = much in ("whole", "rows")
    return Plan(
        api.name,
        much == "whole",
        _reader(key, asked, much),
        _reader(key, answer, much),
        4 + response_header_version(key, version),
        facts.collector(asked, answer) if told else None,
        Later(asked, _request) if much != "none" else None,
        Later(answer, _response) if much != "none" else None,
    )


def _request(frame: Frame, header: RequestHeader, body: Body | None) -> Decoded:
    return decode_request(frame.payload, header, body)


def _response(frame: Frame, asked: RequestHeader, body: Body | None) -> Decoded:
    return decode_response(frame.payload, asked.api_key, asked.api_version, body)


def _reader(key: int, layout: Layout, much: Much) -> Reader | None:
    if much == "none":
        return None
    if much == "whole":
        return reader(layout)
    wanted = facts.read_by(layout) if much == "rows" else frozenset()
    if key == FETCH:
        wanted |= _named(layout.body, top=True)
    elif key == PRODUCE:
        # Without acks no answer comes.
        wanted |= {id(slot) for slot in layout.body.slots if slot.name == "acks"}
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
