"""Journeys of records as spans: one for each leg, in the trace that the record's `traceparent`
names, or in a trace of the record's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, TypeAlias

from kafkascope.analyzer.export.otlp import CLIENT, CONSUMER, PRODUCER, TraceSpan, Value
from kafkascope.analyzer.statistics.journeys.model import Fetched, Journey, Produced

KINDS: Final = {"send": PRODUCER, "receive": CONSUMER, "commit": CLIENT}
Values: TypeAlias = dict[str, Value]

# W3C Trace Context, level 1: version 00 has these four parts; later versions may append others.
_TRACE_PARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?"
)


def trace_parent(text: str) -> tuple[bytes, bytes] | None:
    """Return the ids of the trace and the span that a header names; None where it is none."""
    found = _TRACE_PARENT.fullmatch(text)
    return None if found is None else (bytes.fromhex(found[1]), bytes.fromhex(found[2]))


def spans_of(journey: Journey, parent: tuple[bytes, bytes] | None) -> Iterator[TraceSpan]:
    """Yield the legs: sent to acknowledged; sent to fetched by each client; that to committed. Ids
    are hashes of the record, so that two exports of a capture have the same ones."""
    record = f"{journey.topic}-{journey.partition}@{journey.offset}"
    produced = journey.produced
    trace_id, root = parent or (_id(record, 16), b"")
    common: Values = {
        "messaging.system": "kafka",
        "messaging.destination.name": journey.topic,
        "messaging.destination.partition.id": str(journey.partition),
        "messaging.kafka.offset": journey.offset,
        **({"kafka.transaction": journey.transaction} if journey.transaction else {}),
    }

    def span(
        who: Fetched | Produced, verb: str, begin_ns: int, end_ns: int, above: bytes, more: Values
    ) -> TraceSpan:
        about = {"messaging.operation.name": verb, "messaging.client.id": who.client_id}
        # Clocks of two capturing hosts may disagree: no span ends before it begins.
        skew = {"kafkascope.clock_skew_ns": begin_ns - end_ns} if end_ns < begin_ns else {}
        group = who.group if isinstance(who, Fetched) else None
        of_group = {} if group is None else {"messaging.consumer.group.name": group}
        return TraceSpan(
            who.application,
            trace_id,
            _id(f"{record} {verb} {who.application} {who.client_id} {group}", 8),
            above,
            f"{verb} {journey.topic}",
            KINDS[verb],
            min(begin_ns, end_ns),
            end_ns,
            {**common, **about, **of_group, **more, **skew},
        )

    if produced is not None:
        created = journey.created_ms
        clock: Values = {} if created is None else {"kafka.create_time_ms": created}
        end_ns = produced.acknowledged_ns or produced.sent_ns
        sent = span(produced, "send", produced.sent_ns, end_ns, root, clock)
        yield sent
        root = sent.span_id
    for each in journey.fetched:
        begin_ns = each.time_ns if produced is None else produced.sent_ns
        again: Values = {"kafka.fetched_again": each.again} if each.again else {}
        fetched = span(each, "receive", begin_ns, each.time_ns, root, again)
        yield fetched
        if each.committed_ns is not None:
            yield span(each, "commit", each.time_ns, each.committed_ns, fetched.span_id, {})


def _id(text: str, size: int) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).digest()
