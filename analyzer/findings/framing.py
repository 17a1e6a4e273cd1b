"""Framing and decoding: answers to nothing, bytes that are no message (question 20)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.findings.detector import (
    Detector,
    Exchange,
    Finding,
    Row,
    Rule,
    Seen,
    Worded,
)
from kafkascope.analyzer.findings.view import View, all_of, among, api_is, listed, plural
from kafkascope.analyzer.identity import client_of, host_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, most
from kafkascope.analyzer.statistics.merging.tables import Keyed

WRONG: Final = frozenset({"malformed", "truncated"})
UNKNOWN: Final = frozenset({"unknown-api", "unknown-version"})


@measured
class Orphans(Seen):
    """Answers to nothing on a connection."""

    client: tuple[str, str] | None = most()
    broker: str | None = most()


class Framing(Detector):
    """Orphans on connections that were seen whole, and what could not be decoded."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "answer-to-nothing",
            "warning",
            "unmatched response",
            "Check the server or proxy: it mixes up connections, or responds twice. No request in "
            "flight has this correlation id. Java clients then close the connection.",
        ),
        Rule(
            "undecodable",
            "warning",
            "messages that do not match the layout of their version",
            "Compare the bytes with `kafkascope grammar API VERSION`; `kafkascope show N --hex` "
            "marks where decoding fails. One side implements the version incorrectly.",
            "INVALID_REQUEST",
            brief="{n} undecodable exchange|{n} undecodable exchanges",
        ),
        Rule(
            "surplus",
            "note",
            "messages with surplus bytes",
            "Check the sender: it miscounts, or adds a field of another version. Brokers ignore "
            "the surplus bytes.",
        ),
        Rule(
            "unknown-api",
            "note",
            "APIs or versions that no Kafka release has",
            "Upgrade kafkascope if the cluster runs a newer Kafka. Otherwise identify the product "
            "that has APIs of its own.",
            "UNSUPPORTED_VERSION",
            brief="{n} request with an unknown API or version|{n} requests with an unknown API or "
            "version",
        ),
    )
    ODD = True
    KAFKA_ONLY = False

    odd: Keyed[Worded] = table(Worded, 2_000)
    """By kind, client, broker, API and version."""
    orphans: Keyed[Orphans] = table(Orphans, 2_000, unranked=1)
    """By connection."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of orphans and what is undecoded."""
        if row.state == "orphan":
            # Whether its bytes are complete is known at the end only.
            orphans = self.orphans[(row.connection, exchange.connection.first_ns)]
            orphans.see(row)
            client = row.client_id or "", host_of(row.client_address)
            orphans.take(client=client, broker=row.broker_address)
        elif row.undecoded:
            for each in row.undecoded:
                if each.reason == "surplus":
                    self._see("surplus", row, f"{each.bytes}")
                elif each.reason in WRONG:
                    words = f"{each.side}: {each.text or each.reason}"
                    self._see("wrong", row, f"{words} at {each.path}" if each.path else words)
                elif each.reason in UNKNOWN and row.zookeeper is None:
                    self._see("unknown", row, each.reason)

    def _see(self, kind: str, row: Row, words: str) -> None:
        odd = self.odd[(kind, *client_of(row), row.broker_address, row.api, row.api_version)]
        odd.see(row)
        if words:
            odd.words.add(words)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client and API; by client and broker."""
        yield from self._to_nothing(view)
        for (kind, client_id, host, broker, api, number), odd in self.odd.items():
            version = "" if number is None else f" v{number}"
            who, mine = view.client(client_id, host), view.of_client(client_id, host)
            if kind == "surplus":
                name, where = "surplus", "undecoded == surplus"
                text = (
                    f"{plural(odd.count, f'{api}{version} exchange')} of {who} carried "
                    f"{listed(odd.words)} surplus bytes after the end of the message"
                )
            elif kind == "wrong":
                name, where = "undecodable", "undecoded in {malformed, truncated}"
                text = (
                    f"{plural(odd.count, f'{api}{version} exchange')} of {who} with {broker} "
                    f"could not be decoded: {listed(odd.words, 1)}"
                )
            else:
                name, where = "unknown-api", 'undecoded in {"unknown-api", "unknown-version"}'
                used = plural(odd.count, "request")
                text = f"{used} from {who} used {api}{version}, which no Kafka release has"
            yield view.finding(
                self.rule(name),
                text,
                all_of(mine, api_is(api), where),
                odd,
                about=[("client", who), ("broker", str(broker)), ("api", str(api))],
            )

    def _to_nothing(self, view: View) -> Iterator[Finding]:
        """Yield findings about connections that were seen from their beginning and without a
        gap."""
        middle = view.base.connections.midstream()
        whole = {
            (line["connection"], line["opened"])
            for line in view.lines()
            if not line["gap_bytes"] and line["connection"] not in middle
        }
        found: dict[tuple[str, str, str], tuple[Seen, list[Any]]] = {}
        for (number, first_ns), orphans in self.orphans.items():
            if (number, first_ns) in whole and orphans.client and orphans.broker:
                seen, numbers = found.setdefault((*orphans.client, orphans.broker), (Seen(), []))
                seen.take(count=orphans.count, first=orphans.first, last_ns=orphans.last_ns)
                numbers.append(number)
        for (client_id, host, broker), (seen, numbers) in sorted(found.items()):
            who = view.client(client_id, host)
            match = "matches" if seen.count == 1 else "match"
            yield view.finding(
                self.rule("answer-to-nothing"),
                f"{plural(seen.count, 'response')} from {broker} to {who} {match} no request in "
                "flight",
                f"orphan and {among('conn', sorted(numbers)[:50])}",
                seen,
                about=[("client", who), ("broker", broker)],
            )
