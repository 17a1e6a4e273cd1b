"""Record batches: damage and old formats (question 18)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.bodies.contents import MISPLACED, NULLS, OLDER, RECORD_BATCH
from kafkascope.analyzer.findings.codecs import one_topic
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.framing import is_damaged, swallowed
from kafkascope.analyzer.findings.view import View, all_of, among, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, total, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.dissectors.layout import MAGICS, magic_of

CARRIES: Final = {"Produce": "ProduceRequest", "Fetch": "FetchResponse"}
"""API -> its message with records."""
LIBRDKAFKA: Final = "rdkafka"
"""In the names of all software that is built on it."""
REFUSED: Final = (
    "Set the producer to record batches of magic 2 (sarama: Config.Version V0_11_0_0 or later), or "
    "to an older Produce version. Brokers refuse other formats from Produce v3 on."
)
UNKNOWN_TO_OLD: Final = (
    "Set the producer to Produce v3 or later, which introduced record batches of magic 2. Brokers "
    "before 0.11 cannot read them, and later ones do not expect them here."
)
OLD_LOG: Final = (
    "No action is needed for the consumer: it reads all formats. The messages were written by "
    "producers from before Kafka 0.11, or with log.message.format.version."
)
"""Fixes of formats that a request or a log has."""


@measured
class Noted(Seen):
    """Exchanges of a kind."""

    numbers: Names = whole(Names)


@measured
class Nulls(Seen):
    """Responses with null in place of records."""

    partitions: int = total()
    failed: int = total()
    """Of these partitions, those that have an error."""


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
            brief="{n} exchange with corrupt batches|{n} exchanges with corrupt batches",
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
        Rule(
            "batch-format",
            "error",
            "records in a format that the API version does not carry",
            "Check the broker, or the proxy before it: it has to convert batches to the format "
            "that the version of the Fetch knows. Until then, let the client use Fetch v4 or later "
            "(sarama: Config.Version V0_11_0_0 or later).",
            "UNSUPPORTED_FOR_MESSAGE_FORMAT",
            brief="{n} exchange in a wrong record format|{n} exchanges in a wrong record format",
        ),
        Rule(
            "records-null",
            "error",
            "null in place of records",
            "Check the server, proxy or mock that sent it: a partition without records has records "
            "of length 0. librdkafka drops such a response (invalid MessageSetSize -1) and sends "
            "the same Fetch again. Kafka brokers send empty records since 4.0 (KAFKA-18646).",
            brief="{n} response with null records|{n} responses with null records",
        ),
    )
    KEYS = frozenset({0, 1, 78})

    seen: Keyed[Noted] = table(Noted, 2_000)
    """By kind and client."""
    formats: Keyed[Seen] = table(Seen, 2_000)
    """Of formats that do not belong there: by API, version, formats and client."""
    nulls: Keyed[Nulls] = table(Nulls, 2_000)
    """Of null in place of records: by version, software, broker and client."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Notes, versions and errors."""
        # Where another request took the place of its end, the batch itself is whole.
        if is_damaged(row) and not (row.api == "Produce" and swallowed(exchange)):
            noted = self.seen[("damaged", row.api, one_topic(row), *client_of(row))]
            noted.see(row)
            noted.numbers.add(row.number)
        for note in row.notes:
            if note.text.startswith(MISPLACED):
                magics = note.text.removeprefix(MISPLACED)
                self.formats[(row.api, row.api_version, magics, *client_of(row))].see(row)
                return
            elif note.text.startswith(NULLS):
                self._null(row, exchange)
            elif note.text.startswith(OLDER):
                self.seen[("old log", row.api, "", *client_of(row))].see(row)
        version, carrier = row.api_version, CARRIES.get(row.api)
        if carrier and row.batches and version is not None and magic_of(carrier, version) < 2:
            self.seen[("old", row.api, "", *client_of(row))].see(row)

    def _null(self, row: Row, exchange: Exchange) -> None:
        codes = [
            part["error_code"]
            for topic in (exchange.response_body or {}).get("responses") or ()
            for part in topic["partitions"]
            if part["records"] is None
        ]
        nulls = self.nulls[(row.api_version, row.software, row.broker_address, *client_of(row))]
        nulls.see(row)
        nulls.partitions += len(codes)
        nulls.failed += sum(map(bool, codes))

    def add_all(self, alike: Alike) -> None:
        """Versions of usual exchanges."""
        row = alike.row
        version, carrier = row.api_version, CARRIES[row.api]
        if version is None or magic_of(carrier, version) >= RECORD_BATCH:
            return
        seen = zip(alike.begins, alike.numbers, alike.batches, strict=True)
        for time_ns, number, batches in seen:
            if batches:
                self.seen[("old", row.api, "", *client_of(row))].see_at(time_ns, number)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client."""
        for (kind, api, topic, client_id, host), seen in self.seen.items():
            who, mine = view.client(client_id, host), view.of_client(client_id, host)
            what, advice = plural(seen.count, f"{api} exchange"), ""
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
                new = MAGICS[CARRIES[str(api)]][RECORD_BATCH].low
                old = kind == "old"
                version = f"version {'<' if old else '>='} {new}"
                where = all_of(mine, f"api == {api} and {version} and batches > 0")
                advice = "" if old else OLD_LOG
            named = [("topic", view.topic(topic))] if topic else []
            about = [("client", who), *named]
            yield view.finding(self.rule(name), text, where, seen, advice=advice, about=about)
        yield from self._formats(view)
        yield from self._nulls(view)

    def _formats(self, view: View) -> Iterator[Finding]:
        """Yield findings about formats that the version of their message does not carry."""
        for (api, version, magics, client_id, host), seen in self.formats.items():
            who, mine = view.client(client_id, host), view.of_client(client_id, host)
            what = f"{plural(seen.count, f'{api} v{version} exchange')} with {who}"
            formats = MAGICS[CARRIES[str(api)]]
            known = "magic 0" if version in formats[0] else "magic 0 and 1"
            severity: Severity | None = None
            advice = ""
            if api != "Fetch" and version in formats[RECORD_BATCH]:
                known, advice = "magic 2", REFUSED
            elif api != "Fetch":
                severity, advice = "warning", UNKNOWN_TO_OLD
            text = f"{what} carried records of magic {magics}, but this version supports {known}"
            yield view.finding(
                self.rule("batch-format"),
                text,
                all_of(mine, f"api == {api} and version == {version} and batches > 0"),
                seen,
                severity=severity,
                advice=advice,
                about=[("client", who), ("api", str(api))],
            )

    def _nulls(self, view: View) -> Iterator[Finding]:
        """Yield findings about null in place of records. Brokers before 4.0 send it in some
        partitions with an error (KAFKA-18648), which only librdkafka does not read."""
        for (version, software, broker, client_id, host), nulls in self.nulls.items():
            refuses = LIBRDKAFKA in str(software)
            if nulls.partitions == nulls.failed and not refuses:
                continue
            who, mine = view.client(client_id, host), view.of_client(client_id, host)
            severity: Severity = "error" if refuses else "note" if software else "warning"
            text = (
                f"{plural(nulls.count, f'Fetch v{version} response')} from {broker} to {who} "
                f"{'has' if nulls.count == 1 else 'have'} null in place of records in "
                f"{plural(nulls.partitions, 'partition')}"
            )
            text += f", which {software} does not accept" if refuses else ""
            yield view.finding(
                self.rule("records-null"),
                text,
                all_of(mine, f"api == Fetch and version == {version}"),
                nulls,
                severity=severity,
                about=[("client", who), ("broker", str(broker))],
            )
