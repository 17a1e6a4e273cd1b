"""How large requests, answers and record batches are, and how full batches are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.histogram import Histogram
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import Measures, measured, most, whole
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import Column, Exchange, Line, Row
from kafkascope.analyzer.statistics.moved import FETCH, PRODUCE, SHARE_FETCH, moved
from kafkascope.analyzer.statistics.simple import Breakdown


@measured
class SizeCounts(Measures):
    """Bytes."""

    bytes: Histogram = whole(Histogram)
    records: Histogram = whole(Histogram)
    """Per batch."""
    largest: tuple[int, int] | None = most()
    """(bytes, minus the number of the exchange)"""


class SizesOf(Breakdown[SizeCounts]):
    """Sizes of requests and answers by API, of batches by topic, and of all of them by client."""

    NAME = "sizes"
    USUAL = ("what", "api", "client", "topic")
    KEY = ("what", "api", "client_id", "host", "topic")
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("count", "count"),
        Column("p50", "size"),
        Column("p95", "size"),
        Column("p99", "size"),
        Column("max", "size"),
        Column("total", "size"),
        Column("records_p50", "count"),
        Column("records_max", "count"),
        Column("largest", "count"),
    )

    values: Keyed[SizeCounts] = table(SizeCounts)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Count both sides of an exchange and its batches."""
        api, client_id, host = row.api, row.client_id, host_of(row.client_address)
        if row.request_bytes is not None:
            self._count(("request", api, client_id, host, None), row.request_bytes, row.number)
        if row.response_bytes is not None:
            self._count(("response", api, client_id, host, None), row.response_bytes, row.number)
        if exchange.api_key not in (PRODUCE, FETCH, SHARE_FETCH):
            return
        for each in moved(exchange):
            for batch, count in zip(each.batches, each.counts, strict=True):
                sizes = self._count(
                    ("batch", api, client_id, host, each.topic), batch.size, row.number
                )
                sizes.records.add(count)

    def add_all(self, alike: Alike) -> None:
        """Count usual exchanges."""
        api, client_id, host = alike.row.api, alike.row.client_id, alike.who[1]
        sides = ("request", alike.asked), ("response", alike.answered)
        for what, sizes in sides:
            self._count_all((what, api, client_id, host, None), sizes, alike.numbers)
        for (topic, _), parts in alike.parts.items():
            if parts.counts:
                key = "batch", api, client_id, host, topic
                counted = self._count_all(key, parts.batches.size, parts.by_batch(parts.numbers))
                counted.records.add_all(parts.counts)

    def _count_all(
        self, key: tuple[str | None, ...], sizes: Sequence[int], numbers: Iterable[int]
    ) -> SizeCounts:
        counted = self.values[key]
        counted.bytes.add_all(sizes)
        most_, largest = max(sizes), counted.largest
        if largest is None or most_ >= largest[0]:
            pairs = zip(sizes, numbers, strict=True)
            here = most_, max(-number for size, number in pairs if size == most_)
            if largest is None or here > largest:
                counted.largest = here
        return counted

    def _count(self, key: tuple[str | None, ...], size: int, number: int) -> SizeCounts:
        sizes = self.values[key]
        sizes.bytes.add(size)
        largest = sizes.largest
        # Not `max`: many have the same size, and each comes through here.
        if largest is None or size > largest[0] or (size == largest[0] and -number > largest[1]):
            sizes.largest = size, -number
        return sizes

    def weight(self, sizes: SizeCounts) -> int:
        """Return the size of the largest."""
        return sizes.bytes.most or 0

    def line(self, key: Line, sizes: SizeCounts) -> Line:
        """Return the line of a key."""
        return {
            **key,
            "count": sizes.bytes.count,
            "p50": sizes.bytes.percentile(0.5),
            "p95": sizes.bytes.percentile(0.95),
            "p99": sizes.bytes.percentile(0.99),
            "max": sizes.bytes.most,
            "total": sizes.bytes.total,
            "records_p50": sizes.records.percentile(0.5),
            "records_max": sizes.records.most,
            "largest": None if sizes.largest is None else -sizes.largest[1],
        }
