"""Breakdowns of traffic: throughput, latency and its stages, sizes of messages and batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, get_args

from kafkascope.analyzer.exchanges.rows import BROKER_TIMES
from kafkascope.analyzer.merging.histogram import Histogram
from kafkascope.analyzer.merging.measures import (
    Measures,
    bits,
    largest,
    least,
    most,
    stretch,
    total,
    whole,
)
from kafkascope.analyzer.merging.tables import Keyed, table
from kafkascope.analyzer.model import Point
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.model import Column, Line, columns, filled, per_second, share
from kafkascope.analyzer.statistics.rates import STAGES, known_sizes
from kafkascope.analyzer.statistics.simple import Breakdown


class Traffic(Measures):
    """Sums over the exchanges of one key."""

    count: int = total()
    answered: int = total()
    no_reply: int = total()
    open: int = total()
    lost: int = total()
    unpaired: int = total()
    """Responses without a request, opaque bytes, and watch events of ZooKeeper."""
    failed: int = total()
    """With an error code."""
    undecoded: int = total()
    request_bytes: int = total()
    response_bytes: int = total()
    records: int = total()
    throttled: int = total()
    throttle_ms: int = total()
    first_ns: int | None = least()
    last_ns: int | None = most()


COUNTED_AS: Final = {
    "answered": "answered",
    "no-reply": "no_reply",
    "open": "open",
    "lost": "lost",
    "orphan": "unpaired",
    "opaque": "unpaired",
    "event": "unpaired",
}
"""The sum of `Traffic` that counts exchanges in a state."""


class Throughput(Breakdown[Traffic]):
    """Traffic by API, version, client and broker."""

    NAME = "apis"
    VERSION = 2
    USUAL = ("api",)
    SORT = "requests"
    KEY = ("api", "version", "client_id", "host", "broker")
    COLUMNS = columns(
        "requests per_second (answered) (no_reply) (open) lost (unpaired) failed (undecoded) "
        "request_bytes response_bytes records throttled (throttled_share) throttle (first) (last)",
        kinds={"answered": "count"},
    )

    values: Keyed[Traffic] = table(Traffic)

    def add(self, batch: ExchangeBatch) -> None:
        row, client = batch.row, batch.client[1]
        traffic = self.values[(row.api, row.api_version, row.client_id, client, row.broker_address)]
        traffic.count += len(batch)
        state = COUNTED_AS[row.state]
        setattr(traffic, state, getattr(traffic, state) + len(batch))
        traffic.failed += bool(row.errors)
        traffic.undecoded += bool(row.undecoded)
        traffic.request_bytes += sum(batch.request_bytes)
        traffic.response_bytes += sum(batch.response_bytes)
        traffic.records += sum(filter(None, batch.records))
        if row.throttle_ms:
            traffic.throttled += 1
            traffic.throttle_ms += row.throttle_ms
        stretch(traffic, batch.first_ns, batch.last_ns)

    def line(self, key: Line, traffic: Traffic) -> Line:
        return filled(
            self.COLUMNS,
            traffic,
            **key,
            requests=traffic.count,
            per_second=per_second(traffic.count, traffic.first_ns, traffic.last_ns),
            throttled_share=share(traffic.throttled, traffic.answered),
            throttle=traffic.throttle_ms * 1_000_000,
            **known_sizes(traffic, "records"),
        )


# A remark is about APIs whose p95 looks slow, but is mostly long-poll wait, with little excess.
SLOW_NS: Final = 400_000_000
NOTICEABLE_EXCESS_NS: Final = 100_000_000
MOSTLY_WAIT_PERCENT: Final = 80
POINTS: Final = get_args(Point)


class LatencyTimes(Measures):
    """Times of the answered exchanges of one key, in nanoseconds."""

    latency: Histogram = whole(Histogram)
    beyond_wait: Histogram = whole(Histogram)
    wait: int = total()
    waited: int = total()
    """Number of exchanges with a wait that the client requested."""
    request_transfer: Histogram = whole(Histogram)
    server: Histogram = whole(Histogram)
    """Time of the broker, without the wait."""
    response_transfer: Histogram = whole(Histogram)
    rtt: Histogram = whole(Histogram)
    """From the capture point to the broker."""
    handshake: Histogram = whole(Histogram)
    """Round trip between client and broker, once for each exchange."""
    broker_request_queue: Histogram = whole(Histogram)
    broker_local: Histogram = whole(Histogram)
    broker_remote: Histogram = whole(Histogram)
    broker_response_queue: Histogram = whole(Histogram)
    broker_send: Histogram = whole(Histogram)
    """Stages inside the broker, from its request log."""
    points: int = bits()
    """Bit n: packets were captured at `POINTS[n]`."""
    slowest: tuple[int, int] | None = most()
    """(excess, minus the number of the exchange)"""

    @property
    def capture_points(self) -> list[Point]:
        return [point for bit, point in enumerate(POINTS) if self.points >> bit & 1]


_SHOWN: Final = tuple(f"{stage}_{part}" for stage in STAGES[:3] for part in ("p50", "p95"))
_STAGE_COLUMNS: Final[tuple[Column, ...]] = tuple(
    Column(name := f"{stage}_{part}", "duration", wide=name not in (*_SHOWN, "rtt_p50"))
    for stage in STAGES
    for part in ("p50", "p95", "p99", "max")
)


BROKER_STAGES: Final = tuple(f"broker_{name}" for name in BROKER_TIMES)
_BROKER_COLUMNS: Final[tuple[Column, ...]] = tuple(
    Column(f"{stage}_{part}", "duration", wide=True)
    for stage in BROKER_STAGES
    for part in ("p50", "p95", "max")
)


def latency_columns(lines: Iterable[Line], columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the columns for people: with a request log the stages inside the broker, otherwise the
    stages that packets show."""
    if all(line[f"{BROKER_STAGES[0]}_p50"] is None for line in lines):
        return tuple(columns)
    of_packets = {column.name for column in _STAGE_COLUMNS}
    of_broker = {column.name for column in _BROKER_COLUMNS if not column.name.endswith("_max")}
    return tuple(
        column._replace(
            wide=(column.wide or column.name in of_packets) and column.name not in of_broker
        )
        for column in columns
    )


class Latency(Breakdown[LatencyTimes]):
    """Latency by API, version, client and broker, and its stages."""

    NAME = "latency"
    VERSION = 4
    USUAL = ("api",)
    SORT = "excess_p95"
    KEY = ("api", "version", "client_id", "host", "broker")
    COLUMNS = columns(
        "requests p50 p95 p99 max waited wait_share excess_p50 excess_p95 excess_p99 excess_max",
        *_STAGE_COLUMNS,
        *_BROKER_COLUMNS,
        "(handshake_p50) (capture_points) slowest",
    )

    values: Keyed[LatencyTimes] = table(LatencyTimes)

    def add(self, batch: ExchangeBatch) -> None:
        """Count exchanges; those without a response have no latency."""
        row, handshake = batch.row, batch.exchange.connection.round_trip_ns
        if row.latency_ns is None:
            return
        client = batch.client[1]
        times = self.values[(row.api, row.api_version, row.client_id, client, row.broker_address)]
        latencies, waits, beyond = batch.latencies, batch.waits, batch.latencies
        servings = batch.servings
        if any(waits):
            beyond = [max(0, took - wait) for took, wait in zip(latencies, waits, strict=True)]
            servings = [
                None if took is None else max(0, took - wait)
                for took, wait in zip(servings, waits, strict=True)
            ]
            times.wait += sum(waits)
            times.waited += sum(map(bool, waits))
        times.latency.add_all(latencies)
        times.beyond_wait.add_all(beyond)
        times.request_transfer.add_all(batch.request_transfers)
        times.server.add_all(servings)
        times.response_transfer.add_all(batch.response_transfers)
        times.rtt.add_all((row.rtt_ns,), len(batch))
        if batch.exchange.logged is not None:
            for stage, took in zip(BROKER_STAGES, batch.exchange.logged.times, strict=False):
                getattr(times, stage).add_all((took,))
        times.handshake.add_all((handshake,), len(batch))
        if row.capture_point is not None:
            times.points |= 1 << POINTS.index(row.capture_point)
        times.slowest = largest(times.slowest, beyond, batch.numbers)

    def line(self, key: Line, times: LatencyTimes) -> Line:
        return {
            **key,
            "requests": times.latency.count,
            **times.latency.summary(),
            "waited": times.waited,
            "wait_share": share(times.wait, times.latency.total),
            **times.beyond_wait.summary("excess_"),
            **{
                name: value
                for stages, percents in ((STAGES, (50, 95, 99)), (BROKER_STAGES, (50, 95)))
                for stage in stages
                for name, value in getattr(times, stage).summary(f"{stage}_", percents).items()
            },
            "handshake_p50": times.handshake.percentile(0.5),
            "capture_points": times.capture_points,
            "slowest": None if times.slowest is None else -times.slowest[1],
        }

    def remarks(self) -> list[str]:
        """Return a sentence for each API whose high latency is a wait that clients requested."""
        remarks = []
        for key, times in self.grouped(("api",)):
            p95, excess = times.latency.percentile(0.95), times.beyond_wait.percentile(0.95)
            if p95 is None or excess is None or p95 < SLOW_NS or excess >= NOTICEABLE_EXCESS_NS:
                continue
            if 100 * times.wait >= MOSTLY_WAIT_PERCENT * times.latency.total:
                remarks.append(
                    f"{key['api']} takes {duration(p95)} at the 95th percentile, nearly all of "
                    f"it long-poll wait: the excess is {duration(excess)}"
                )
        return remarks


class SizeCounts(Measures):
    """Sizes of the messages or batches of one key, in bytes."""

    bytes: Histogram = whole(Histogram)
    records: Histogram = whole(Histogram)
    """Records of a batch."""
    largest: tuple[int, int] | None = most()
    """(bytes, minus the number of the exchange)"""


class SizesOf(Breakdown[SizeCounts]):
    """Sizes of requests and responses by API, of batches by topic, and of all by client."""

    NAME = "sizes"
    VERSION = 2
    USUAL = ("what", "api", "client", "topic")
    SORT = "max"
    KEY = ("what", "api", "client_id", "host", "topic")
    COLUMNS = columns(
        "count p50 p95 p99 max total records_p50 records_max largest",
        kinds={"p50": "size", "p95": "size", "p99": "size", "max": "size"},
    )

    values: Keyed[SizeCounts] = table(SizeCounts)

    def add(self, batch: ExchangeBatch) -> None:
        row, (_, host) = batch.row, batch.client
        for what, size, sizes in (
            ("request", row.request_bytes, batch.request_bytes),
            ("response", row.response_bytes, batch.response_bytes),
        ):
            if size is not None:
                self._count((what, row.api, row.client_id, host, None), sizes, batch.numbers)
        for (topic, _, _), parts in batch.parts.items():
            if parts.counts:
                key = "batch", row.api, row.client_id, host, topic
                sizes = [each.size for each in parts.batches]
                counted = self._count(key, sizes, parts.by_batch(parts.numbers))
                counted.records.add_all(parts.counts)

    def _count(
        self, key: tuple[str | None, ...], sizes: Sequence[int], numbers: Iterable[int]
    ) -> SizeCounts:
        counted = self.values[key]
        counted.bytes.add_all(sizes)
        counted.largest = largest(counted.largest, sizes, numbers)
        return counted

    def line(self, key: Line, sizes: SizeCounts) -> Line:
        return {
            **key,
            "count": sizes.bytes.count,
            **sizes.bytes.summary(),
            "total": sizes.bytes.total,
            **sizes.records.summary("records_", (50,)),
            "largest": None if sizes.largest is None else -sizes.largest[1],
        }
