"""Messages that are too large (question 11), fetches that bring nothing (question 12)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.conversation.pending import partial_response
from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import SECOND, limit
from kafkascope.analyzer.findings.view import View, all_of, api_is, plural, size
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import Measures, measured, most, total, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import per_second, topic_key
from kafkascope.dissectors.reference.codes import error_name

TOO_LARGE: Final = frozenset({10, 18})
PRODUCE: Final = 0
FETCH: Final = 1
MS: Final = 1_000_000
UNDER_WAY: Final = (
    "Check for followers that are down or behind (min.insync.replicas not met: producers get "
    "NOT_ENOUGH_REPLICAS and REQUEST_TIMED_OUT). The client allows a long poll, but the broker "
    "answers at once: it has records above the high watermark, which consumers may not read yet."
)


@measured
class Large(Seen):
    """Requests that were too large."""

    bytes: int | None = most()
    arrived: int | None = most()
    """Bytes of a message that came before its connection was closed."""
    ended_ns: int | None = most()
    connections: Names = whole(Names)


@measured
class Early(Measures):
    """Fetches that got nothing, long before the time that they allowed."""

    count: int = total()
    wait_ms: int | None = most()


class Sizes(Detector):
    """Errors of size; batch sizes and rates from statistics."""

    TOUCHABLE = False
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "message-too-large",
            "error",
            "batches refused because of their size",
            "Raise max.message.bytes of the topic (message.max.bytes of the broker) and the fetch "
            "limits of consumers and replicas. Or lower batch.size and max.request.size, or "
            "compress.",
            "MESSAGE_TOO_LARGE",
        ),
        Rule(
            "request-too-large",
            "error",
            "request larger than socket.request.max.bytes",
            "Lower max.request.size of the producer, or raise socket.request.max.bytes of the "
            "broker.",
            "MESSAGE_TOO_LARGE",
            brief="{n} request that was refused for its size|{n} requests refused for their size",
            limits=("large.frame",),
        ),
        Rule(
            "response-too-large",
            "error",
            "response that its client did not read to the end",
            "Raise the client's limit for responses (receive.message.max.bytes in librdkafka, "
            "MaxResponseSize in sarama, kgo.BrokerMaxReadBytes in franz-go), or lower "
            "fetch.max.bytes and max.partition.fetch.bytes. A client closes the connection when "
            "the size of a response is above its limit, and fetches the same again.",
            brief="{n} response that was not read|{n} responses that were not read",
            limits=("partial.responses", "partial.size"),
        ),
        Rule(
            "large-batches",
            "note",
            "batches close to message.max.bytes",
            "Check how much room is left: message.max.bytes is 1,048,588 by default and applies "
            "after compression.",
            "MESSAGE_TOO_LARGE",
            brief="{n} large batch|{n} large batches",
            limits=("large.batch",),
        ),
        Rule(
            "eager-fetches",
            "warning",
            "frequent fetches that return no records",
            "Raise fetch.max.wait.ms and fetch.min.bytes: a waiting long poll costs the broker "
            "nothing.",
            brief="{n} frequent fetch|{n} frequent fetches",
            limits=(
                "fetches.rate",
                "fetches.least",
                "fetches.empty",
                "fetches.waits",
                "fetches.early",
            ),
        ),
    )
    KEYS = None

    large: Keyed[Large] = table(Large, 2_000)
    """By client and topic."""
    cut: Keyed[Large] = table(Large, 2_000)
    """Messages that came in part, by side, client, API and broker."""
    early: Keyed[Early] = table(Early, 2_000)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of refused sizes, and of fetches that the broker did not let wait."""
        if row.wait_ns and row.api_key == FETCH and not row.records:
            asked = exchange.request_body
            if asked is not None:
                self._see_early(row, asked["max_wait_ms"], row.latency_ns or 0)
        if row.errors and row.api_key == PRODUCE:
            for error in row.errors:
                if error.code in TOO_LARGE:
                    self._see(row, error.code, topic_key(error.topic, error.topic_id))
        elif row.state == "lost" and (row.request_bytes or 0) > limit("large.frame"):
            self._see(row, 0, None)
        elif row.state == "lost" and exchange.ended_ns is not None:
            self._see_cut(row, exchange)

    def _see_cut(self, row: Row, exchange: Exchange) -> None:
        """Take note of a message during which its receiver closed the connection."""
        partial = partial_response(row.notes)
        if partial is not None and row.reason.endswith("by the client"):
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
        large.connections.add(row.connection)

    def add_all(self, alike: Alike) -> None:
        """Take note of usual exchanges."""
        if alike.row.api_key == FETCH:
            wait_ms = alike.kept["max_wait_ms"]
            waited = zip(alike.waits, alike.records, alike.latencies, strict=True)
            for wait, records, latency in waited:
                if wait and not records:
                    self._see_early(alike.row, wait_ms, latency)

    def _see_early(self, row: Row, wait_ms: int, latency: int) -> None:
        if wait_ms >= limit("fetches.waits") and latency * 2 < wait_ms * MS:
            self.early[(*client_of(row), row.broker_address)].take(count=1, wait_ms=wait_ms)

    def _see(self, row: Row, code: int, topic: str | None) -> None:
        large = self.large[(*client_of(row), row.api, code, topic)]
        large.see(row)
        large.take(bytes=row.request_bytes or 0)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings about refused batches, large ones, and fetches that bring nothing."""
        for (client_id, host, api, code, topic), large in self.large.items():
            who = view.client(client_id, host)
            mine = all_of(view.of_client(client_id, host), api_is(api))
            if code:
                error = error_name(code)
                was = "was" if large.count == 1 else "were"
                yield view.finding(
                    self.rule("message-too-large"),
                    f"{plural(large.count, 'batch', 'batches')} from {who} for topic "
                    f"{view.topic(topic)} {was} refused with {error}; largest request: "
                    f"{size(large.bytes)}",
                    all_of(mine, f"error == {code}", view.of_topic(topic)),
                    large,
                    link=error,
                    about=[("client", who), ("topic", view.topic(topic))],
                )
            else:
                yield view.finding(
                    self.rule("request-too-large"),
                    f"{plural(large.count, f'{api} request')} from {who} of "
                    f"{'up to ' if large.count > 1 else ''}{size(large.bytes)} ended the "
                    "connection: larger than socket.request.max.bytes (100 MiB by default)",
                    all_of(mine, f"lost and request.bytes > {limit('large.frame')}"),
                    large,
                    about=[("client", who)],
                )
        yield from self._cut_off(view)
        yield from self._near(view)
        yield from self._eager(view)

    def _cut_off(self, view: View) -> Iterator[Finding]:
        for (side, client_id, host, api, broker), large in self.cut.items():
            who = view.client(client_id, host)
            of = f"of {'up to ' if large.count > 1 else ''}{size(large.bytes)}"
            messages = plural(large.count, f"{api} {side}")
            rule, advice = "response-too-large", ""
            text = (
                f"{who} closed the connection during {messages} {of} "
                f"from {broker}, after at most {size(large.arrived)}"
            )
            if side == "request":
                if large.count == 1 and _closes_others(view, str(broker), large):
                    continue
                rule = "request-too-large"
                text = (
                    f"{broker} closed the connection during {messages} "
                    f"{of} from {who}, after at most {size(large.arrived)}: larger than the "
                    "broker's socket.request.max.bytes"
                )
                advice = (
                    f"Lower max.request.size of the producer below {large.bytes:,} bytes, or raise "
                    "socket.request.max.bytes of the broker above it. The broker reads the size "
                    "first, and closes the connection without an error."
                )
            elif large.count < limit("partial.responses"):
                continue
            yield view.finding(
                self.rule(rule),
                text,
                all_of(
                    view.of_client(client_id, host),
                    api_is(api),
                    f"broker == {quoted(str(broker))} and lost",
                ),
                large,
                advice=advice,
                about=[("client", who), ("broker", str(broker))],
            )

    def _near(self, view: View) -> Iterator[Finding]:
        by = ("what", "api", "client_id", "host", "topic")
        for key, sizes in view.base.sizes.grouped(by):
            if key["what"] != "batch" or key["api"] != "Produce" or sizes.largest is None:
                continue
            if (sizes.bytes.most or 0) >= limit("large.batch"):
                who = view.client(key["client_id"], key["host"])
                yield view.finding(
                    self.rule("large-batches"),
                    f"{who} sent batches of up to {size(sizes.bytes.most)} to topic "
                    f"{view.topic(key['topic'])}",
                    f"number == {-sizes.largest[1]}",
                    count=1,
                    number=-sizes.largest[1],
                    about=[("client", who), ("topic", view.topic(key["topic"]))],
                )

    def _eager(self, view: View) -> Iterator[Finding]:
        for key, traffic in view.base.apis.grouped(("api", "client_id", "host", "broker")):
            if key["api"] != "Fetch" or traffic.count < limit("fetches.least"):
                continue
            rate = per_second(traffic.count, traffic.first_ns, traffic.last_ns) or 0
            if (
                rate >= limit("fetches.rate")
                and 100 * traffic.records < limit("fetches.empty") * traffic.count
            ):
                who = view.client(key["client_id"], key["host"])
                early = self.early.get((key["client_id"], key["host"], key["broker"]))
                broker = early is not None and early.count * 2 > traffic.count
                span = (traffic.last_ns or 0) - (traffic.first_ns or 0)
                if broker and span < limit("fetches.early"):
                    continue
                asked = f"; fetch.max.wait.ms is {early.wait_ms} ms" if early and broker else ""
                yield view.finding(
                    self.rule("eager-fetches"),
                    f"{who} fetches {rate:.0f} times per second from {key['broker']} and got "
                    f"{plural(traffic.records, 'record')} for {plural(traffic.count, 'request')}"
                    f"{asked}",
                    all_of(
                        view.of_client(key["client_id"], key["host"]),
                        f"api == Fetch and broker == {quoted(str(key['broker']))}",
                    ),
                    count=traffic.count,
                    first_ns=traffic.first_ns,
                    last_ns=traffic.last_ns,
                    advice=UNDER_WAY if broker else "",
                    about=[("client", who), ("broker", str(key["broker"]))],
                )


def _closes_others(view: View, broker: str, large: Large) -> bool:
    """Return whether a broker closed other connections at that time, as one that stops."""
    return any(
        line["broker_address"] == broker
        and line["end"].startswith("broker")
        and line["connection"] not in large.connections
        and abs(line["ended"] - (large.ended_ns or 0)) < SECOND
        for line in view.lines()
    )
