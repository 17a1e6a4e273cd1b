"""How clients send: in small pieces that wait for acknowledgements, and single records although
more are waiting (question 12).

A trickle of single records is healthy: there is nothing to batch. Batching helps a producer that is
busy, and whose requests wait for each other: several are in flight at once, or each is sent as soon
as the one before is answered (`send().get()`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import compress, repeat
from typing import Final, NamedTuple

from kafkascope.analyzer.exchanges.stages import CLIENT
from kafkascope.analyzer.findings.counting import (
    Event,
    Events,
    Occurrences,
    ShortEventLog,
    least,
    most,
    total,
)
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import SECOND, limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import duration, plural, size
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.merging.bounded import Kept
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch

# A request of this size fits into the window that TCP sends at once (RFC 6928: ten segments), and
# such a response into one segment: what lies between the first and the last byte of the request is
# neither the network's nor the broker's time.
MAX_REQUEST: Final = 14_600
MAX_RESPONSE: Final = 1_448
# Full segments that come one after the other are paced by a slow link: Nagle's algorithm holds
# back only what fills no segment. 536 bytes is the least that TCP fills (RFC 9293).
LEAST_SEGMENT: Final = 536
# RFC 1122: an acknowledgement is delayed by less than 500 ms.
LONGEST: Final = 500_000_000


class Sending(Occurrences):
    """Requests that took long to send."""

    time_ns: int = total()
    shortest: int | None = least()
    longest: int | None = most()
    server_ns: int = total()
    """From the last byte of the request to the first one of the response."""


class PiecewiseSending(Counts):
    """Requests that were sent in pieces."""

    clients = Sending.table(LIMITS.keys)
    """By client, API and broker."""

    def add(self, batch: ExchangeBatch) -> None:
        row, gap = batch.row, limit("pieces.gap")
        if row.latency_ns is None or row.server_ns is None:
            return
        if row.rtt_ns is not None:
            # Its segments tell whether it was the client that waited between them.
            took = row.request_transfer_ns or 0
            if row.stalled_by == CLIENT and took >= max(gap, row.response_transfer_ns or 0):
                self._see(row, row.time_ns, row.number, took, row.server_ns)
            return
        columns = batch.begins, batch.numbers, batch.latencies, batch.servers
        sizes = batch.request_bytes, batch.response_bytes
        for begin, number, latency, server, octets, answer in zip(*columns, *sizes, strict=True):
            took = latency - server
            small = octets <= MAX_REQUEST and answer <= MAX_RESPONSE
            if gap <= took <= LONGEST and small and not _paced(batch.exchange_of(number)):
                self._see(row, begin, number, took, server)

    def _see(self, row: Row, begin: int, number: int, took: int, server: int) -> None:
        sending = self.clients[(*client_of(row), row.api, row.broker_address)]
        sending.see_at(begin, number)
        sending.take(time_ns=took, shortest=took, longest=took, server_ns=server)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        by = ("client_id", "host", "api", "broker")
        for key, traffic in view.base.apis.grouped(by):
            client_id, host, api, broker = (key[name] for name in by)
            sending = self.clients.get((client_id or "", host, api, broker))
            if sending is None or sending.count < limit("pieces.least"):
                continue
            if sending.count * 100 < traffic.answered * limit("pieces.share"):
                continue
            client, span = view.client(client_id, host), "each"
            if sending.longest != sending.shortest:
                span = f"{duration(sending.shortest)} to {duration(sending.longest)}"
            pause = duration(sending.time_ns // sending.count)
            answer = duration(sending.server_ns // sending.count)
            requests = plural(traffic.answered, f"{api} request")
            yield view.finding(
                "sent-in-pieces",
                f"{client} paused for {pause} between the first and the last byte of "
                f"{sending.count:,} of {requests} ({span}), which it sent to {broker} in small "
                f"pieces; the first byte of the response came {answer} after the last one",
                f"latency >= {sending.shortest}ns",
                sending,
                client=client,
                api=api,
                broker=broker,
                severity="note" if view.is_broker(client_id, host) else None,
            )


def _paced(exchange: Exchange) -> bool:
    """Return whether a request came as full segments of one size, but for the last."""
    parts = () if exchange.request is None else exchange.request.frame.parts
    full = {part.size for part in parts[:-1]}
    return bool(parts[2:-1]) and len(full) == 1 and min(full) >= LEAST_SEGMENT


class Pace(NamedTuple):
    """Pace of the seconds in which a producer is busy."""

    requests: int
    most: int
    """In one second."""
    waiting: int
    """Requests that were sent while another one was in flight, or right after its response."""
    first_ns: int
    last_ns: int


class Batching(Counts):
    """Batch sizes from the statistic; how requests follow each other."""

    singles = ShortEventLog.table(100)

    def add(self, batch: ExchangeBatch) -> None:
        row = batch.row
        if 1 not in batch.records or row.latency_ns is None:
            return
        head = batch.begins, batch.ids, repeat(0), batch.numbers, repeat(_single), batch.ends
        events = zip(*head, repeat(row.client_address), repeat(row.broker_address), strict=False)
        single = [records == 1 for records in batch.records]
        self.singles[client_of(row)].events.add_all(list(compress(events, single)))

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for key, sizes in view.base.sizes.grouped(("what", "api", "client_id", "host")):
            if key["what"] != "batch" or key["api"] != "Produce":
                continue
            count, median = sizes.records.count, sizes.records.percentile(0.5)
            singles = self.singles.get((key["client_id"], key["host"]))
            if singles is None or count < limit("batches.least") or (median or 2) > 1:
                continue
            pace = max(map(_pace, _sequences(singles.events)), key=lambda each: each.requests)
            waiting = 100 * pace.waiting // max(1, pace.requests)
            if pace.requests < limit("batches.least") or waiting < limit("batches.waiting"):
                continue
            client = view.client(key["client_id"], key["host"])
            yield view.finding(
                "tiny-batches",
                f"{client} sent {plural(count, 'batch', 'batches')} with a median of 1 record "
                f"({size(sizes.bytes.total // count)} on average), at up to {pace.most} Produce "
                f"requests per second; {waiting} % of them waited for the previous request",
                "api == Produce and records <= 1",
                client=client,
                count=count,
                span=(pace.first_ns, pace.last_ns),
            )


def _sequences(events: Events) -> list[list[Event]]:
    """Return the requests of each producer. One with a connection to each broker waits for any of
    them; of several with one client id, which have several connections to a broker, each connection
    is judged alone."""
    connections = by_key((tuple(event.about["connection"]), event) for event in events)
    brokers = {broker for _, broker in connections}
    return [list(events)] if len(brokers) == len(connections) else list(connections.values())


def _pace(events: list[Event]) -> Pace:
    """Measure how requests follow each other in the busy seconds of a sequence."""
    each_second = Counter(event.time_ns // SECOND for event in events)
    busy = {when for when, count in each_second.items() if count >= limit("batches.busy")}
    end = waiting = 0
    for event in events:
        follows = event.time_ns - end <= limit("batches.right-after")
        waiting += follows and event.time_ns // SECOND in busy
        end = max(end, event.about["end_ns"])
    requests = sum(each_second[when] for when in busy)
    most = max(each_second.values())
    return Pace(requests, most, waiting, events[0].time_ns, events[-1].time_ns)


def _single(kept: Kept) -> Event:
    time_ns, id_, part, number, _, end_ns, client, broker = kept
    about = {"end_ns": end_ns, "connection": [client, broker]}
    return Event(time_ns, id_, part, number, "single", about)
