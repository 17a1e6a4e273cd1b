"""How long answers took, with what clients asked to wait for apart from what took too long."""

from __future__ import annotations

from typing import ClassVar, Final

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.histogram import Histogram
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import Measures, measured, most, total, whole
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import Column, Exchange, Line, Row, share
from kafkascope.analyzer.statistics.simple import Breakdown

LONG_POLL: Final = 400_000_000
"""A latency (ns) that is taken for trouble."""
FELT: Final = 100_000_000
"""Excess (ns) that is not nothing."""
MOSTLY_WAIT: Final = 80
"""Percent of the latency."""


@measured
class LatencyTimes(Measures):
    """Of answered exchanges, in nanoseconds."""

    latency: Histogram = whole(Histogram)
    beyond_wait: Histogram = whole(Histogram)
    wait: int = total()
    waited: int = total()
    """Exchanges with a wait."""
    server: Histogram = whole(Histogram)
    """From the last byte of the request to the first one of the answer."""
    handshake: Histogram = whole(Histogram)
    """Of TCP, once for each exchange: how far away the broker is."""
    slowest: tuple[int, int] | None = most()
    """(excess, minus the number of the exchange)"""


class Latency(Breakdown[LatencyTimes]):
    """Latency by API, version, client and broker."""

    NAME = "latency"
    NEEDS = "heads"
    USUAL = ("api",)
    KEY = ("api", "version", "client_id", "host", "broker")
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("requests", "count"),
        Column("p50", "duration"),
        Column("p95", "duration"),
        Column("p99", "duration"),
        Column("max", "duration"),
        Column("waited", "count"),
        Column("wait_share", "share"),
        Column("excess_p50", "duration"),
        Column("excess_p95", "duration"),
        Column("excess_p99", "duration"),
        Column("excess_max", "duration"),
        Column("server_p50", "duration", wide=True),
        Column("server_p95", "duration", wide=True),
        Column("server_max", "duration", wide=True),
        Column("handshake_p50", "duration", wide=True),
        Column("slowest", "count"),
    )

    values: Keyed[LatencyTimes] = table(LatencyTimes)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Count an exchange; those without an answer took no time that could be told."""
        latency = row.latency_ns
        if latency is None:
            return
        # As `Row.latency_beyond_wait_ns`, without a call.
        beyond = latency - row.wait_ns if latency > row.wait_ns else 0
        client = host_of(row.client_address)
        times = self.values[(row.api, row.api_version, row.client_id, client, row.broker_address)]
        times.latency.add(latency)
        times.beyond_wait.add(beyond)
        if row.wait_ns:
            times.wait += row.wait_ns
            times.waited += 1
        if row.server_ns is not None:
            times.server.add(row.server_ns)
        if exchange.connection.handshake_ns is not None:
            times.handshake.add(exchange.connection.handshake_ns)
        slowest = times.slowest
        if slowest is None or beyond >= slowest[0]:
            here = beyond, -row.number
            if slowest is None or here > slowest:
                times.slowest = here

    def add_all(self, alike: Alike) -> None:
        """Count usual exchanges."""
        row, connection = alike.row, alike.connection
        client = alike.who[1]
        times = self.values[(row.api, row.api_version, row.client_id, client, row.broker_address)]
        latencies, waits, beyond = alike.latencies, alike.waits, alike.latencies
        if any(waits):
            beyond = [max(0, took - wait) for took, wait in zip(latencies, waits, strict=True)]
            times.wait += sum(waits)
            times.waited += sum(map(bool, waits))
        times.latency.add_all(latencies)
        times.beyond_wait.add_all(beyond)
        times.server.add_all(each for each in alike.servers if each is not None)
        if connection.handshake_ns is not None:
            times.handshake.add_all([connection.handshake_ns] * len(latencies))
        most_, slowest = max(beyond), times.slowest
        if slowest is None or most_ >= slowest[0]:
            pairs = zip(beyond, alike.numbers, strict=True)
            here = most_, max(-number for each, number in pairs if each == most_)
            if slowest is None or here > slowest:
                times.slowest = here

    def weight(self, times: LatencyTimes) -> int:
        """Return the excess of the slow ones, at the 95th percentile."""
        return times.beyond_wait.percentile(0.95) or 0

    def line(self, key: Line, times: LatencyTimes) -> Line:
        """Return the line of a key."""
        latency, excess, server = times.latency, times.beyond_wait, times.server
        return {
            **key,
            "requests": latency.count,
            "p50": latency.percentile(0.5),
            "p95": latency.percentile(0.95),
            "p99": latency.percentile(0.99),
            "max": latency.most,
            "waited": times.waited,
            "wait_share": share(times.wait, latency.total),
            "excess_p50": excess.percentile(0.5),
            "excess_p95": excess.percentile(0.95),
            "excess_p99": excess.percentile(0.99),
            "excess_max": excess.most,
            "server_p50": server.percentile(0.5),
            "server_p95": server.percentile(0.95),
            "server_max": server.most,
            "handshake_p50": times.handshake.percentile(0.5),
            "slowest": None if times.slowest is None else -times.slowest[1],
        }

    def remarks(self) -> list[str]:
        """Return a sentence for each API whose latency looks high and is a wait that clients asked
        for."""
        found = []
        for key, times in self.grouped(("api",)):
            p95, excess = times.latency.percentile(0.95), times.beyond_wait.percentile(0.95)
            if p95 is None or excess is None or p95 < LONG_POLL or excess >= FELT:
                continue
            if 100 * times.wait >= MOSTLY_WAIT * times.latency.total:
                found.append(
                    f"{key['api']} takes {duration(p95)} at the 95th percentile, nearly all of "
                    f"it long-poll wait: the excess is {duration(excess)}"
                )
        return found
