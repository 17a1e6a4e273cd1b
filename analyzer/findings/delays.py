"""Requests and responses that were delayed on their way, and who delayed them (docs/latency.md): an
end that does not read or stops sending, lost segments, a thin path, other requests of the same
connection, a SYN that was lost.

What a broker itself takes is `slow`'s, what a client takes to send is `sending`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkascope.analyzer.exchanges.stages import BROKER, CLIENT, NETWORK, TIMEOUT
from kafkascope.analyzer.findings.counting import Occurrences, least, most, total, whole
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import SECOND, limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Finding, Row
from kafkascope.analyzer.findings.words import duration, plural, size
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.merging.histogram import Histogram
from kafkascope.analyzer.statistics.connections import WAITING
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch

POSITIONS: Final = frozenset({2, 23})
"""ListOffsets and OffsetForLeaderEpoch: a consumer that was given a partition, or whose leader
moved, asks for its position while its long poll of other partitions is under way."""
# Bytes that TCP sends at once (RFC 6928: ten segments): it sends twice as many after each round
# trip (slow start).
LARGE: Final = 14_600


class Delay(Occurrences):
    """Exchanges that were delayed in one way."""

    times: Histogram = whole(Histogram)
    """Times of transfers, or of all that was delayed."""
    bytes: int = total()
    """Bytes transferred."""
    closed_ns: int | None = most()
    """The longest time of a receive window of 0."""
    shortest: int | None = least()
    asking: int = total()
    """Exchanges whose request took longer than the response."""
    late: int = total()
    """Exchanges that waited for a retransmission timeout."""


class Took(NamedTuple):
    """Times and sizes of an exchange."""

    begin_ns: int
    number: int
    latency_ns: int
    wait_ns: int
    request_ns: int | None
    server_ns: int | None
    response_ns: int | None
    request_bytes: int
    response_bytes: int


class Delays(Counts):
    """Delays by rule, API, client and broker."""

    found = Delay.table(LIMITS.keys)
    connects = Delay.table(LIMITS.few_keys)
    """Connections whose SYN was sent again, by client, broker and number."""

    def add(self, batch: ExchangeBatch) -> None:
        row = batch.row
        path = batch.exchange.connection.path
        if path.syns > 1 and path.trip0 >= 0:
            self._connected(row, path.syn_ns - batch.exchange.connection.first_ns)
        if row.latency_ns is None:
            return
        if row.stalled_by is None and max(batch.latencies) < limit("delays.least"):
            return
        trip = max(path.trip0 + path.trip1, row.rtt_ns or 0)
        columns = batch.begins, batch.numbers, batch.latencies, batch.waits
        stages = batch.request_transfers, batch.servings, batch.response_transfers
        for each in map(Took, *columns, *stages, batch.request_bytes, batch.response_bytes):
            rule, took, octets = _judged(row, each, trip)
            if rule:
                delay = self.found[(rule, row.api, *client_of(row), row.broker_address)]
                delay.see_at(each.begin_ns, each.number)
                delay.times.add_all([took])
                delay.take(
                    bytes=octets,
                    closed_ns=row.zero_window_ns,
                    shortest=took,
                    asking=int((each.request_ns or 0) >= (each.response_ns or 0)),
                    late=int(rule == "lost-segments" and took >= TIMEOUT),
                )

    def _connected(self, row: Row, took: int) -> None:
        key = (*client_of(row), row.broker_address, row.connection)
        if key not in self.connects:
            connect = self.connects[key]
            connect.see(row)
            connect.times.add_all([took])

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        by = ("api", "client_id", "host", "broker")
        answered = {
            tuple(key[name] for name in by): traffic.answered
            for key, traffic in view.base.apis.grouped(by)
        }
        for (rule, api, client_id, host, broker), delay in self.found.items():
            client = view.client(client_id, host)
            every = answered.get((api, client_id or None, host, broker), delay.count)
            if text := _text(rule, api, broker, client, delay, every):
                mild = delay.count < limit("slow.count") or view.is_broker(client_id, host)
                yield view.finding(
                    rule,
                    text,
                    _filter(rule, delay),
                    delay,
                    client=client,
                    api=api,
                    broker=broker,
                    severity="note" if mild else None,
                )
        yield from self._lost_syns(view)

    def _lost_syns(self, view: DetectorInput) -> Iterator[Finding]:
        found: dict[tuple[str, str, str], Delay] = {}
        for (client_id, host, broker, _), connect in self.connects.items():
            found.setdefault((client_id, host, broker), Delay()).merge(connect)
        for (client_id, host, broker), connects in found.items():
            client = view.client(client_id, host)
            yield view.finding(
                "syn-lost",
                f"{plural(connects.count, 'connection')} from {client} to {broker} took "
                f"{duration(connects.times.most)} to open: the SYN was lost and sent again",
                "",
                connects,
                client=client,
                broker=broker,
            )


def _judged(row: Row, each: Took, trip: int) -> tuple[str, int, int]:
    """Return the rule that explains why an exchange took long ("" where none does), what took
    long, and the bytes of that. `trip`: the whole round trip."""
    request, response = each.request_ns or 0, each.response_ns or 0
    excess = max(0, each.latency_ns - each.wait_ns)
    stalled = row.stalled_by
    asking = request >= response
    took, octets = (request, each.request_bytes) if asking else (response, each.response_bytes)
    long = limit("delays.least")
    if stalled == NETWORK:
        # Where a response was captured before it was lost, its second coming is no latency.
        return "lost-segments", max(excess, took), octets
    if took < long and stalled is not None:
        return "", 0, 0
    if stalled == CLIENT:
        return ("" if asking else "client-not-reading", took, octets)
    if stalled == BROKER:
        return ("broker-not-reading" if asking else "broker-stopped-sending", took, octets)
    starting = trip * (1 + (octets // LARGE).bit_length())
    # Bytes that wait in a queue of the path are sent, and have not reached the broker.
    path = took if each.server_ns is None else excess - each.server_ns
    if octets > LARGE and took >= max(long, starting) and 2 * path >= excess:
        return "slow-transfer", took, octets
    if row.api_key not in WAITING | POSITIONS and each.wait_ns >= long and each.wait_ns >= excess:
        return "queued-requests", each.wait_ns, octets
    return "", 0, 0


def _text(rule: str, api: str, broker: str, client: str, delay: Delay, every: int) -> str:
    """Return the sentence of a finding; empty where there are too few exchanges for one."""
    requests = f"{delay.count:,} of {plural(every, f'{api} request')}"
    responses = f"{delay.count:,} of {plural(every, f'{api} response')}"
    median = duration(delay.times.percentile(0.5))
    closed = delay.closed_ns or 0
    window = f"was closed for up to {duration(closed)}" if closed else "had no room"
    if rule == "client-not-reading":
        return (
            f"{client} did not read {responses} from {broker} as they came: its receive window "
            f"{window}, and the transfer took {median} (median)"
        )
    if rule == "broker-not-reading":
        return (
            f"Broker {broker} did not read {requests} from {client} as they came: its receive "
            f"window {window}, and the transfer took {median} (median)"
        )
    if rule == "broker-stopped-sending":
        return (
            f"Broker {broker} stopped in the middle of {responses} to {client}: the transfer took "
            f"{median} (median)"
        )
    if rule == "slow-transfer":
        rate = delay.bytes * SECOND // max(1, delay.times.total)
        way = f"{requests} from {client} to {broker}"
        if 2 * delay.asking < delay.count:
            way = f"{responses} from {broker} to {client}"
        return f"The transfer of {way} took {median} (median): {size(rate)} per second"
    if rule == "queued-requests":
        if delay.count < limit("queued.least") or 100 * delay.count < every * limit("queued.share"):
            return ""
        return (
            f"{requests} from {client} to {broker} waited {median} (median) behind other requests "
            "of their connection"
        )
    if delay.late:
        return (
            f"{requests} from {client} to {broker} took up to {duration(delay.times.most)} because "
            f"segments were lost and sent again; {delay.late:,} of them waited for a "
            "retransmission timeout of 200 ms or more"
        )
    if delay.count < limit("slow.count"):
        return ""
    return f"Segments of {requests} from {client} to {broker} were lost and sent again"


def _filter(rule: str, delay: Delay) -> str:
    shortest = f"{delay.shortest}ns"
    if rule == "client-not-reading":
        return f"stalled_by == client and response.transfer >= {shortest}"
    if rule == "broker-not-reading":
        return f"stalled_by == broker and request.transfer >= {shortest}"
    if rule == "broker-stopped-sending":
        return f"stalled_by == broker and response.transfer >= {shortest}"
    if rule == "slow-transfer":
        return f"(request.transfer >= {shortest} or response.transfer >= {shortest})"
    return f"wait >= {shortest}" if rule == "queued-requests" else "stalled_by == network"
