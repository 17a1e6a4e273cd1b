"""Brokers whose disks are full or broken, as they say themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.view import MOST_NAMED, View, all_of, listed, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.analyzer.text import spelled

STORAGE_ERROR: Final = 56
"""KAFKA_STORAGE_ERROR."""


@measured
class Failed(Seen):
    """Answers of a broker that could not use its disk."""

    clients: Names = whole(Names)
    topics: Names = whole(Names)


class Storage(Detector):
    """By broker."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "disk-failed",
            "error",
            "broker with a failed log directory",
            "Check the broker's log at that time: a log directory (log.dirs) is full or broken. "
            "Make room (retention.bytes, a larger disk), then restart the broker. Until then the "
            "directory is offline with all its partitions.",
            "KAFKA_STORAGE_ERROR",
            subject=("broker",),
        ),
    )
    ODD = True

    failed: Keyed[Failed] = table(Failed, 500)
    """By broker and API."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of the error."""
        places = [error for error in row.errors or () if error.code == STORAGE_ERROR]
        if not places:
            return
        failed = self.failed[(row.broker_address, row.api)]
        failed.see(row)
        failed.clients.add(client_of(row))
        for error in places:
            topic = topic_key(error.topic, error.topic_id)
            if topic:
                failed.topics.add(topic)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by broker and API."""
        for (broker, api), failed in self.failed.items():
            clients = sorted({view.client(*each) for each in failed.clients})
            topics = sorted({view.topic(each) for each in failed.topics})
            about = f" for {listed(topics)}" if topics else ""
            yield view.finding(
                self.rule("disk-failed"),
                f"Broker {spelled(broker)} cannot use its disk: "
                f"{plural(failed.count, f'{api} request')} from {listed(clients)}{about} failed "
                "with KAFKA_STORAGE_ERROR",
                all_of(f'broker == "{broker}"', f"api == {api} and error == {STORAGE_ERROR}"),
                failed,
                about=[
                    ("broker", spelled(broker)),
                    *(("client", each) for each in clients[:100]),
                    *(("topic", each) for each in topics[:MOST_NAMED]),
                ],
            )
