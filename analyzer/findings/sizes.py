"""Messages that are too large (question 11), fetches that bring nothing (question 12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.conversation.pending import partial_response
from kafkascope.analyzer.findings.counting import (
    KeyedMeasures,
    Names,
    Occurrences,
    most,
    total,
    whole,
)
from kafkascope.analyzer.findings.filters import all_of, api_is, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import MS, SECOND, limit
from kafkascope.analyzer.findings.view import Client, Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import plural, size
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.model import per_second, topic_key
from kafkascope.analyzer.statistics.traffic import Traffic
from kafkascope.dissectors.reference.codes import error_name

TOO_LARGE: Final = frozenset({10, 18})


class Large(Occurrences):
    """Requests that were too large."""

    bytes: int | None = most()
    """Size of a message; None where only request logs have it."""
    records: int | None = most()
    """Bytes of the records of a request, from a request log."""
    arrived: int | None = most()
    """Bytes of a message that came before its connection was closed."""
    ended_ns: int | None = most()
    resets: int = total()
    """Clients that reset the connection while most of a response was outstanding."""
    connections: Names = whole(Names)


class Early(KeyedMeasures):
    """Fetches that got nothing, long before the time that they allowed."""

    count: int = total()
    unread: int = total()
    """Lines of request logs, which have no records, whose Fetch got some, or may have."""
    wait_ms: int | None = most()


class Sizes(Counts):
    """Errors of size; batch sizes and rates from statistics."""

    large = Large.table(LIMITS.keys)
    """By client and topic."""
    cut = Large.table(LIMITS.keys)
    """Messages that came in part, by side, client, API and broker."""
    early = Early.table(LIMITS.keys)

    def add(self, batch: ExchangeBatch) -> None:
        row, exchange = batch.row, batch.exchange
        if row.api == "Fetch" and exchange.sizeless and _may_have_records(batch):
            self.early[(*client_of(row), row.broker_address)].unread += 1
        elif row.api == "Fetch" and batch.request and any(batch.waits):
            wait_ms = batch.request["max_wait_ms"]
            columns = batch.waits, batch.records, batch.latencies
            for wait, records, latency in zip(*columns, strict=True):
                if wait and not records:
                    self._see_early(row, wait_ms, latency)
        if row.errors and row.api == "Produce":
            for error in row.errors:
                if error.code in TOO_LARGE:
                    self._see(row, exchange, error.code, topic_key(error.topic, error.topic_id))
        elif row.state == "lost" and (row.request_bytes or 0) > limit("large.frame"):
            self._see(row, exchange, 0, None)
        elif row.state == "lost" and exchange.ended_ns is not None:
            waits = (batch.request or {}).get("max_wait_ms") or 0
            self._see_cut(row, exchange, exchange.ended_ns - row.time_ns - waits * MS)

    def _see_cut(self, row: Row, exchange: Exchange, after_ns: int) -> None:
        """Take a message that came in part. `after_ns`: from the time at which the response was due
        to the end of the connection. Who refuses a size does so at once."""
        partial = partial_response(row.notes)
        if partial is not None and row.reason.endswith("by the client"):
            if after_ns > limit("partial.soon"):
                return
            side, (arrived, whole_size) = "response", partial
        elif exchange.request is not None and row.reason.endswith("by the broker"):
            frame = exchange.request.frame
            if frame.cut != "end":
                return
            side, arrived, whole_size = "request", len(frame.payload) + 4, frame.wire_bytes
        else:
            return
        if side == "response" and whole_size < limit("partial.size"):
            return
        large = self.cut[(side, *client_of(row), row.api, row.broker_address)]
        large.see(row)
        large.take(bytes=whole_size, arrived=arrived, ended_ns=exchange.ended_ns)
        outstanding = 100 * (whole_size - arrived) // whole_size
        if row.reason.startswith("reset") and outstanding >= limit("partial.outstanding"):
            large.resets += 1
        large.connections.add(row.connection)

    def _see_early(self, row: Row, wait_ms: int, latency: int) -> None:
        if wait_ms >= limit("fetches.waits") and latency * 2 < wait_ms * MS:
            self.early[(*client_of(row), row.broker_address)].take(count=1, wait_ms=wait_ms)

    def _see(self, row: Row, exchange: Exchange, code: int, topic: str | None) -> None:
        large = self.large[(*client_of(row), row.api, code, topic)]
        large.see(row)
        sizes = exchange.logged.record_sizes if exchange.logged is not None else {}
        large.take(bytes=row.request_bytes, records=sum(sizes.values()) or None)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for (*who, api, code, topic), large in self.large.items():
            client, most = view.client(*who), size(large.bytes)
            if code:
                largest = ""
                if large.bytes is not None:
                    largest = f"; largest request: {most}"
                elif large.records is not None:
                    largest = f"; most bytes of records in a request: {size(large.records)}"
                was = "was" if large.count == 1 else "were"
                yield view.finding(
                    "message-too-large",
                    f"{plural(large.count, 'batch', 'batches')} from {client} for topic "
                    f"{view.topic(topic)} {was} refused with {error_name(code)}{largest}",
                    all_of(api_is(api), f"error == {code}"),
                    large,
                    client=client,
                    topic=topic,
                    link=error_name(code),
                )
            else:
                upto = "up to " if large.count > 1 else ""
                yield view.finding(
                    "request-too-large",
                    f"{plural(large.count, f'{api} request')} from {client} of {upto}{most} ended "
                    "the connection: larger than socket.request.max.bytes (100 MiB by default)",
                    all_of(api_is(api), f"lost and request.bytes > {limit('large.frame')}"),
                    large,
                    client=client,
                )
        for (side, *who, api, broker), large in self.cut.items():
            yield from _cut_off(side, api, broker, view.client(*who), large, view)
        for key, sizes in view.base.sizes.grouped(("what", "api", "client_id", "host", "topic")):
            if key["what"] != "batch" or key["api"] != "Produce" or sizes.largest is None:
                continue
            if (sizes.bytes.most or 0) >= limit("large.batch"):
                client, topic = view.client(key["client_id"], key["host"]), view.topic(key["topic"])
                yield view.finding(
                    "large-batches",
                    f"{client} sent batches of up to {size(sizes.bytes.most)} to topic {topic}",
                    f"number == {-sizes.largest[1]}",
                    number=-sizes.largest[1],
                    about={"client": client, "topic": topic},
                )
        for key, traffic in view.base.apis.grouped(("api", "client_id", "host", "broker")):
            rate = per_second(traffic.count, traffic.first_ns, traffic.last_ns) or 0
            if key["api"] != "Fetch" or traffic.count < limit("fetches.least"):
                continue
            early = self.early.get((key["client_id"], key["host"], key["broker"]))
            records = traffic.records + (early.unread if early else 0)
            empty = 100 * records < limit("fetches.empty") * traffic.count
            if empty and rate >= limit("fetches.rate"):
                client = view.client(key["client_id"], key["host"])
                yield from _eager(client, key["broker"], traffic, records, rate, early, view)


def _may_have_records(batch: ExchangeBatch) -> bool:
    """Return whether a line of a request log leaves open that its Fetch got records."""
    known = batch.exchange.response_body is not None
    return not known or any(batch.record_sizes.get(place[:2], True) for place in batch.parts)


def _cut_off(
    side: str, api: Any, broker: Any, client: Client, large: Large, view: DetectorInput
) -> Iterator[Finding]:
    of = f"of {'up to ' if large.count > 1 else ''}{size(large.bytes)}"
    messages, after = plural(large.count, f"{api} {side}"), f"after at most {size(large.arrived)}"
    rule, advice, case = "response-too-large", "", ""
    severity: Severity | None = None
    verb, skip = "closed", large.count < limit("partial.responses")
    if skip and large.resets:
        # A process that is killed resets its connections, too, if bytes are unread.
        verb, skip, severity, case = "reset", False, "note", "once"
    text = f"{client} {verb} the connection during {messages} {of} from {broker}, {after}"
    if side == "request":
        skip = large.count == 1 and _closes_others(view, str(broker), large)
        rule, severity, case = "request-too-large", None, ""
        text = (
            f"{broker} closed the connection during {messages} {of} from {client}, {after}: larger "
            "than the broker's socket.request.max.bytes"
        )
        advice = (
            f"Lower max.request.size of the producer below {large.bytes:,} bytes, or raise "
            "socket.request.max.bytes of the broker above it. The broker reads the size "
            "first, and closes the connection without an error."
        )
    if not skip:
        where = all_of(client.filter, api_is(api), f"broker == {quoted(str(broker))}", "lost")
        about = {"client": client, "broker": str(broker)}
        yield view.finding(
            rule, text, where, large, severity=severity, advice=advice, case=case, about=about
        )


def _eager(
    client: Client,
    broker: Any,
    traffic: Traffic,
    records: int,
    rate: float,
    early: Early | None,
    view: DetectorInput,
) -> Iterator[Finding]:
    span = (traffic.last_ns or 0) - (traffic.first_ns or 0)
    behind = early is not None and early.count * 2 > traffic.count
    if behind and span < limit("fetches.early"):
        return
    waited = f"; fetch.max.wait.ms is {early.wait_ms} ms" if early and behind else ""
    yield view.finding(
        "eager-fetches",
        f"{client} fetches {rate:.0f} times per second from {broker} and got "
        f"{plural(records, 'record')} for {plural(traffic.count, 'request')}{waited}",
        f"api == Fetch and broker == {quoted(str(broker))}",
        client=client,
        count=traffic.count,
        span=(traffic.first_ns, traffic.last_ns),
        case="behind" if behind else "",
        about={"broker": str(broker)},
    )


def _closes_others(view: DetectorInput, broker: str, large: Large) -> bool:
    """Return whether a broker closed other connections at that time, as one that stops."""
    return any(
        line["broker_address"] == broker
        and line["end"].startswith("broker")
        and line["connection"] not in large.connections
        and abs(line["ended"] - (large.ended_ns or 0)) < SECOND
        for line in view.lines
    )
