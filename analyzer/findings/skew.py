"""Hot partitions, and reads across racks (question 19)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kafkascope.analyzer.findings.counting import Occurrences, bits, total
from kafkascope.analyzer.findings.filters import quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Finding
from kafkascope.analyzer.findings.words import plural, size, spelled
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch


class RackReads(Occurrences):
    """Fetches of a client in a rack from a broker."""

    bytes: int = total()
    sent_away: int = bits()
    """Whether the broker named another replica to read from."""


class Skew(Counts):
    """Shares of partitions from the statistic of topics; racks of consumers and brokers."""

    reads = RackReads.table(LIMITS.keys)
    """By client, rack and broker."""

    def add(self, batch: ExchangeBatch) -> None:
        rack, row = batch.request.get("rack_id"), batch.row
        if not rack:
            return
        if any(any(parts.elsewhere) for parts in batch.parts.values()):
            self.reads[(*client_of(row), rack, row.broker_address)].sent_away = 1
        columns = batch.begins, batch.numbers, batch.response_bytes, batch.records
        for time_ns, number, size_, records in zip(*columns, strict=True):
            if records:
                read = self.reads[(*client_of(row), rack, row.broker_address)]
                read.see_at(time_ns, number)
                read.bytes += size_

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        counts = Counter(line["topic"] for line in view.base.cluster.leaders(view.names))
        by_topic = by_key(
            (line["topic"], line)
            for line in view.base.topics.partitions(view.names)
            # Internal topics are keyed by group and the like: skew is their nature.
            if line["produced_records"] and not str(line["topic"]).startswith("__")
        )
        for topic, lines in by_topic.items():
            whole = sum(line["produced_records"] for line in lines)
            partitions = max(counts[topic], len(lines))
            hot = max(lines, key=lambda line: int(line["produced_records"]))
            part = hot["produced_records"] / whole
            few = partitions < limit("skew.partitions") or whole < limit("skew.records")
            if few or _by_chance(hot, lines):
                continue
            if part * partitions >= min(limit("skew.times"), partitions - 0.5):
                name, number = spelled(topic), hot["partition"]
                yield view.finding(
                    "hot-partition",
                    f"Partition {number} of {name} got {100 * part:.0f} % of "
                    f"{plural(whole, 'record')}; an even share of {partitions} partitions is "
                    f"{100 / partitions:.0f} %",
                    f"api == Produce and topic == {quoted(str(topic))} and partition == {number}",
                    count=hot["produced_records"],
                    span=(hot["first"], hot["last"]),
                    about={"topic": name, "partition": f"{name}-{number}"},
                )
        racks = {line["address"]: line["rack"] for line in view.base.cluster.rows(view.names)}
        near = {tuple(key[:-1]) for key, read in self.reads.items() if read.sent_away}
        for (*who, rack, broker), read in self.reads.items():
            other, client = racks.get(broker), view.client(*who)
            if not other or other == rack or not read.count:
                continue
            where = f"api == Fetch and broker == {quoted(str(broker))} and records > 0"
            yield view.finding(
                "reads-across-racks",
                f"{client} in rack {spelled(rack)} read {size(read.bytes)} from {broker} in rack "
                f"{spelled(other)}",
                where,
                read,
                client=client,
                case="selector" if (*who, rack) in near else "",
                about={"broker": str(broker)},
            )


def _by_chance(hot: dict[str, Any], lines: list[dict[str, Any]]) -> bool:
    """Return whether the shares are those of a few batches: without keys a producer fills a batch
    of one partition after the other (KIP-480). With keys the batch of a hot partition is fuller
    than those of others at the same time."""
    batches = sum(line["produced_records"] / line["batch_records"] for line in lines)
    fullest = max((each["batch_records"] for each in lines if each is not hot), default=0)
    return bool(
        batches < limit("skew.batches") and hot["batch_records"] < limit("skew.fuller") * fullest
    )
