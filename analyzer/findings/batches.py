"""Record batches: damage and old formats (question 18)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.findings.codecs import one_topic
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.view import View, all_of, among, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.dissectors.layout import MAGICS, magic_of

CARRIES: Final = {"Produce": "ProduceRequest", "Fetch": "FetchResponse"}
"""API -> its message with records."""
BATCHES: Final = 2
"""The magic of record batches; message sets have 0 or 1."""


@measured
class Noted(Seen):
    """Exchanges of a kind."""

    numbers: Names = whole(Names)


class Batches(Detector):
    """Notes and errors of batches."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "batch-damaged",
            "error",
            "corrupt record batches",
            "Find the component that changed the bytes between producer and consumer: memory, "
            "disk or a proxy. A client that computes CRC-32C wrongly has the same effect. "
            "Consumers stop at a corrupt batch.",
            "CORRUPT_MESSAGE",
        ),
        Rule(
            "batch-old-format",
            "note",
            "records in the message format from before Kafka 0.11",
            "Upgrade the client. Brokers convert records for it, which costs CPU and memory; "
            "Kafka 4.0 no longer supports its requests.",
            "UNSUPPORTED_FOR_MESSAGE_FORMAT",
            brief="{n} exchange in the format before Kafka 0.11|{n} exchanges in the format "
            "before Kafka 0.11",
        ),
    )
    KEYS = frozenset({0, 1, 78})

    seen: Keyed[Noted] = table(Noted, 2_000)
    """By kind and client."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Notes, versions and errors."""
        for note in row.notes:
            if note.severity == "error" and ("checksum" in note.text or "records:" in note.text):
                noted = self.seen[("damaged", row.api, one_topic(row), *client_of(row))]
                noted.see(row)
                noted.numbers.add(row.number)
                break
        version, carrier = row.api_version, CARRIES.get(row.api)
        if carrier and row.batches and version is not None and magic_of(carrier, version) < BATCHES:
            self.seen[("old", row.api, "", *client_of(row))].see(row)

    def add_all(self, alike: Alike) -> None:
        """Versions of usual exchanges."""
        row = alike.row
        version, carrier = row.api_version, CARRIES[row.api]
        if version is None or magic_of(carrier, version) >= BATCHES:
            return
        seen = zip(alike.begins, alike.numbers, alike.batches, strict=True)
        for time_ns, number, batches in seen:
            if batches:
                self.seen[("old", row.api, "", *client_of(row))].see_at(time_ns, number)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client."""
        for (kind, api, topic, client_id, host), seen in self.seen.items():
            who, mine = view.client(client_id, host), view.of_client(client_id, host)
            what = plural(seen.count, f"{api} exchange")
            of = f" of topic {view.topic(topic)}" if topic else ""
            if kind == "damaged":
                name = "batch-damaged"
                text = f"{what}{of} with {who} carried corrupt batches (wrong CRC or structure)"
                where = among("number", seen.numbers)
                if len(seen.numbers) < seen.count:  # too many to be kept
                    first = seen.first[1] if seen.first else 0
                    where = all_of(mine, f"api == {api} and number >= {first}")
            else:
                name = "batch-old-format"
                text = f"{what} with {who} carried records in the format from before Kafka 0.11"
                new = MAGICS[CARRIES[str(api)]][BATCHES].low
                where = all_of(mine, f"api == {api} and version < {new} and batches > 0")
            named = [("topic", view.topic(topic))] if topic else []
            yield view.finding(self.rule(name), text, where, seen, about=[("client", who), *named])
