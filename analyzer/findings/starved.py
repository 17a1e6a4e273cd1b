"""Readers that get nothing though the log goes on: the next batch is larger than their fetches."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, among, duration
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.feed import WHOLE, Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import least, measured, most, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.analyzer.statistics.moved import Movement, parts_of, replica_id
from kafkascope.analyzer.text import plural, spelled

FETCH: Final = 1
BATCH_HEAD: Final = struct.Struct(">qi")
"""Offset, and bytes behind these, of messages and batches of all formats."""
MAX_NUMBERS: Final = 100
"""Exchanges that a filter names."""


@measured
class Starved(Seen):
    """Fetches of one offset that brought nothing, though there was more."""

    high: int | None = most()
    """High watermark."""
    max_bytes: int | None = most()
    """`partition_max_bytes` of the requests."""
    batch: int | None = most()
    """Bytes of the next batch, where a part of it came."""
    version: int | None = least()
    numbers: Names = whole(Names)


class Starvation(Detector):
    """By client, partition and offset."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "fetch-too-small",
            "error",
            "reader whose next batch is larger than its fetch size",
            "Raise max.partition.fetch.bytes (fetch.message.max.bytes in old clients and "
            "librdkafka, maxBytesPerPartition in KafkaJS) above the largest batch, or use a "
            "client with Fetch v3 or later: these get at least one batch whatever its size. "
            "Until then the reader makes no progress, without any error.",
            "MESSAGE_TOO_LARGE",
            brief="{client} got no records",
            limits=("starved.fetches", "starved.time"),
        ),
    )
    KEYS = frozenset({FETCH})

    starved: Keyed[Starved] = table(Starved, 2_000)
    """By client, topic, partition and offset."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of partitions without records in an exchange that is not usual."""
        if row.state == "answered" and not row.throttle_ms:
            self.add_old(row, exchange)

    def add_all(self, alike: Alike) -> None:
        """Leave usual exchanges out: those of old versions come by `add_old`."""

    def add_old(self, row: Row, exchange: Exchange) -> None:
        """Take note of partitions without records, though the log goes on."""
        asked, version = exchange.request_body, row.api_version
        if asked is None or version is None or version >= WHOLE or replica_id(asked) >= 0:
            return
        for part in parts_of(row, exchange)[0]:
            if not _is_hungry(part):
                continue
            topic, number, blob = part.moved.topic, part.moved.partition, part.moved.records
            starved = self.starved[(*client_of(row), topic, number, part.asked)]
            starved.see(row)
            starved.take(high=part.high, version=version)
            starved.take(max_bytes=_max_bytes(asked, topic, number))
            starved.numbers.add(row.number)
            if len(blob) >= BATCH_HEAD.size:
                starved.take(batch=BATCH_HEAD.unpack_from(blob)[1] + BATCH_HEAD.size)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client and partition."""
        reads = view.base.delivery.reads
        for (client_id, host, topic, number, offset), starved in self.starved.items():
            first_ns = starved.first[0] if starved.first else 0
            span = (starved.last_ns or 0) - first_ns
            if starved.count < limit("starved.fetches") or span < limit("starved.time"):
                continue
            mine = reads.get((topic, number, client_id or "", host))
            if mine is not None and mine.asked is not None and mine.asked > int(str(offset)):
                continue  # it went on
            yield self._finding(view, (client_id, host), (topic, number, offset), starved, span)

    def _finding(
        self,
        view: View,
        client: tuple[Any, Any],
        place: tuple[Any, Any, Any],
        starved: Starved,
        span_ns: int,
    ) -> Finding:
        who, topic = view.client(*client), view.topic(place[0])
        groups = sorted(
            str(group)
            for (group, *member), _ in view.base.delivery.belongs.items()
            if tuple(member) == (client[0] or "", client[1])
        )
        sizes = f"{starved.max_bytes or 0:,} bytes, partition_max_bytes"
        batch = "the next batch"
        if starved.batch is not None and starved.batch > (starved.max_bytes or 0):
            batch += f" ({starved.batch:,} bytes)"
        behind = (starved.high or 0) - place[2]
        return view.finding(
            self.rule("fetch-too-small"),
            f"{who} is stuck at offset {place[2]:,} of {topic}-{place[1]}: "
            f"{plural(starved.count, 'Fetch response')} within {duration(span_ns)} held no "
            f"complete record, though the log ends at offset {starved.high:,} "
            f"({plural(behind, 'record')}): {batch} is larger than the fetch size ({sizes} of "
            f"Fetch v{starved.version})",
            all_of("api == Fetch", among("number", sorted(starved.numbers)[:MAX_NUMBERS])),
            starved,
            about=[
                ("client", who),
                ("topic", topic),
                *(("group", spelled(group)) for group in groups[:1]),
            ],
        )


def _is_hungry(part: Movement) -> bool:
    """Return whether a partition has records that a response without any should have held."""
    if part.moved.batches or part.moved.error or part.elsewhere or part.asked is None:
        return False
    return part.asked < part.high and (part.stable < 0 or part.asked < part.stable)


def _max_bytes(asked: dict[str, Any], topic: str | None, number: int) -> int | None:
    """Return the limit of a request for a partition."""
    return next(
        (
            int(each["partition_max_bytes"])
            for named in asked["topics"] or ()
            if topic_key(named.get("topic"), named.get("topic_id")) == topic
            for each in named["partitions"]
            if each["partition"] == number
        ),
        None,
    )
