"""Hot partitions, and reads across racks (question 19)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, plural, size
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, total
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.text import spelled

FETCH: Final = 1


@measured
class RackReads(Seen):
    """Fetches of a client in a rack from a broker."""

    bytes: int = total()


class Skew(Detector):
    """Shares of partitions from the statistic of topics; racks of consumers and brokers."""

    TOUCHABLE = False
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "hot-partition",
            "warning",
            "partition with most of a topic's records",
            "Choose keys that spread, or a partitioner that splits heavy ones: one key, or a few, "
            "carry most records.",
            limits=("skew.records", "skew.times", "skew.partitions", "skew.batches", "skew.fuller"),
        ),
        Rule(
            "reads-across-racks",
            "note",
            "reads from a broker in another rack",
            "Set replica.selector.class=RackAwareReplicaSelector on the brokers, so that "
            "consumers with client.rack read from the nearest replica (KIP-392).",
        ),
    )
    KEYS = frozenset({FETCH})

    reads: Keyed[RackReads] = table(RackReads, 2_000)
    """By client, rack and broker."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of fetches of consumers that say their rack."""
        rack = (exchange.request_body or {}).get("rack_id")
        if rack and row.records:
            read = self.reads[(*client_of(row), rack, row.broker_address)]
            read.see(row)
            read.bytes += row.response_bytes or 0

    def add_all(self, alike: Alike) -> None:
        """Take note of usual exchanges."""
        rack, row = alike.kept["rack_id"], alike.row
        if not rack:
            return
        columns = alike.begins, alike.numbers, alike.answered, alike.records
        for time_ns, number, size_, records in zip(*columns, strict=True):
            if records:
                read = self.reads[(*client_of(row), rack, row.broker_address)]
                read.see_at(time_ns, number)
                read.bytes += size_

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by topic; by client and broker."""
        counts: dict[Any, int] = {}
        for line in view.base.cluster.leaders(view.names):
            counts[line["topic"]] = counts.get(line["topic"], 0) + 1
        by_topic: dict[Any, list[dict[str, Any]]] = {}
        for line in view.base.topics.partitions(view.names):
            if line["produced_records"]:
                by_topic.setdefault(line["topic"], []).append(line)
        for topic, lines in by_topic.items():
            if str(topic).startswith("__"):
                # Internal topics are keyed by group and the like: skew is their nature.
                continue
            whole = sum(line["produced_records"] for line in lines)
            partitions = max(counts.get(topic, 0), len(lines))
            hot = max(lines, key=lambda line: int(line["produced_records"]))
            part = hot["produced_records"] / whole
            if partitions < limit("skew.partitions") or whole < limit("skew.records"):
                continue
            if _by_chance(hot, lines):
                continue
            if part * partitions >= min(limit("skew.times"), partitions - 0.5):
                name = spelled(topic)
                yield view.finding(
                    self.rule("hot-partition"),
                    f"Partition {hot['partition']} of {name} got {100 * part:.0f} % of "
                    f"{plural(whole, 'record')}; an even share of {partitions} partitions is "
                    f"{100 / partitions:.0f} %",
                    f"api == Produce and topic == {quoted(str(topic))} and partition == "
                    f"{hot['partition']}",
                    count=hot["produced_records"],
                    first_ns=hot["first"],
                    last_ns=hot["last"],
                    about=[("topic", name), ("partition", f"{name}-{hot['partition']}")],
                )
        racks = {
            line["address"]: line["rack"]
            for line in view.base.cluster.rows(view.names)
            if line["rack"]
        }
        for (client_id, host, rack, broker), read in self.reads.items():
            other = racks.get(broker)
            if other is None or other == rack:
                continue
            who = view.client(client_id, host)
            yield view.finding(
                self.rule("reads-across-racks"),
                f"{who} in rack {spelled(rack)} read {size(read.bytes)} from {broker} in rack "
                f"{spelled(other)}",
                all_of(
                    view.of_client(client_id, host),
                    f"api == Fetch and broker == {quoted(str(broker))} and records > 0",
                ),
                read,
                about=[("client", who), ("broker", str(broker))],
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
