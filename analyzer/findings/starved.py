"""Readers that get nothing though the log goes on: the next batch is larger than their fetches."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafkascope.analyzer.findings.counting import Names, Occurrences, least, most, whole
from kafkascope.analyzer.findings.filters import all_of, among
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Finding
from kafkascope.analyzer.findings.words import duration, plural, spelled
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.kernel.groups import WHOLE

BATCH_HEAD: Final = struct.Struct(">qi")
"""Offset, and bytes after these, of messages and batches of all formats."""


class Starved(Occurrences):
    """Fetches of one offset that brought nothing, though there was more."""

    high: int | None = most()
    max_bytes: int | None = most()
    """`partition_max_bytes` of the requests."""
    batch: int | None = most()
    """Bytes of the next batch, where a part of it came."""
    version: int | None = least()
    numbers: Names = whole(Names)


class Starvation(Counts):
    """By client, partition and offset."""

    starved = Starved.table(LIMITS.keys)

    def add(self, batch: ExchangeBatch) -> None:
        row, version = batch.row, batch.row.api_version
        if row.state != "answered" or row.throttle_ms or version is None or version >= WHOLE:
            return
        for (topic, number, error), parts in batch.parts.items():
            if error or parts.batches or batch.way == "replica":
                continue
            columns = parts.fetch_offsets, parts.highs, parts.stables, parts.elsewhere, parts.blobs
            for start, high, stable, elsewhere, blob in zip(*columns, strict=True):
                if start is None or start >= high or elsewhere or -1 < stable <= start:
                    continue
                starved = self.starved[(*client_of(row), topic, number, start)]
                starved.see(row)
                starved.take(high=high, version=version)
                starved.take(max_bytes=_max_bytes(batch.request, topic, number))
                starved.numbers.add(row.number)
                if len(blob) >= BATCH_HEAD.size:
                    starved.take(batch=BATCH_HEAD.unpack_from(blob)[1] + BATCH_HEAD.size)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        reads = view.base.delivery.reads
        for (*who, topic, number, offset), starved in self.starved.items():
            client = view.client(*who)
            span = starved.span_ns
            if starved.count < limit("starved.fetches") or span < limit("starved.time"):
                continue
            mine = reads.get((topic, number, *client.key))
            if mine is not None and mine.asked is not None and mine.asked > offset:
                continue  # it went on
            most, batch = starved.max_bytes or 0, "the next batch"
            if starved.batch is not None and starved.batch > most:
                batch += f" ({starved.batch:,} bytes)"
            groups = view.groups_of.get(client.key, ())
            yield view.finding(
                "fetch-too-small",
                f"{client} is stuck at offset {offset:,} of {view.topic(topic)}-{number}: "
                f"{plural(starved.count, 'Fetch response')} within {duration(span)} held no "
                f"complete record, though the log ends at offset {starved.high:,} "
                f"({plural((starved.high or 0) - offset, 'record')}): {batch} is larger than the "
                f"fetch size ({most:,} bytes, partition_max_bytes of Fetch v{starved.version})",
                all_of("api == Fetch", among("number", sorted(starved.numbers)[: LIMITS.entities])),
                starved,
                about={
                    "client": client,
                    "topic": view.topic(topic),
                    "group": map(spelled, groups[:1]),
                },
            )


def _max_bytes(request: Mapping[str, Any], topic: str | None, number: int) -> int | None:
    return next(
        (
            int(each["partition_max_bytes"])
            for named in request["topics"] or ()
            if topic_key(named.get("topic"), named.get("topic_id")) == topic
            for each in named["partitions"]
            if each["partition"] == number
        ),
        None,
    )
