"""Framing and decoding: answers to nothing, bytes that are no message (question 20)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from analyzer.findings.detector import Detector, Seen
from analyzer.findings.model import Finding, Rule
from analyzer.findings.view import View, all_of, listed, plural
from analyzer.identity import host_of
from analyzer.statistics.mergeable import NAMES, Names

if TYPE_CHECKING:
    from analyzer.model import Exchange
    from analyzer.rows import Row

WRONG: Final = frozenset({"malformed", "truncated"})
UNKNOWN: Final = frozenset({"unknown-api", "unknown-version"})


@dataclass(slots=True)
class Odd(Seen):
    """With what was said of it."""

    words: Names = field(default_factory=Names, metadata=NAMES)


class Framing(Detector):
    """Orphans on connections that were seen whole, and what could not be decoded."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "answer-to-nothing",
            "warning",
            "a broker answered what nobody asked",
            "A correlation id that is not in flight: a server (or proxy) that mixes up "
            "connections or answers twice; Java clients close the connection then.",
        ),
        Rule(
            "undecodable",
            "warning",
            "messages do not have the layout of their version",
            "Compare the bytes with `kafkascope grammar API VERSION`; `kafkascope show N --hex` "
            "says where it goes wrong. One side implements the version wrongly.",
            "INVALID_REQUEST",
        ),
        Rule(
            "surplus",
            "note",
            "messages with bytes behind their end",
            "Brokers ignore them; the sender counts wrongly, or adds a field of another version.",
        ),
        Rule(
            "unknown-api",
            "note",
            "APIs or versions that no known release has",
            "A newer Kafka, or another product with APIs of its own.",
            "UNSUPPORTED_VERSION",
        ),
    )
    KEYS = None

    def prepare(self) -> None:
        """By kind, client, broker, API and version."""
        self.odd = self.table(Odd, 2_000)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Orphans and what is undecoded."""
        if row.state == "orphan":
            connection = exchange.connection
            if connection.handshake and not any(connection.gap_bytes):
                self._see("orphan", row, "")
        elif row.undecoded:
            for each in row.undecoded:
                if each.reason == "surplus":
                    self._see("surplus", row, f"{each.bytes}")
                elif each.reason in WRONG:
                    words = f"{each.side}: {each.text or each.reason}"
                    self._see("wrong", row, f"{words} at {each.path}" if each.path else words)
                elif each.reason in UNKNOWN:
                    self._see("unknown", row, each.reason)

    def _see(self, kind: str, row: Row, words: str) -> None:
        host = host_of(row.client_address)
        key = (kind, row.client_id, host, row.broker_address, row.api, row.api_version)
        odd = self.odd[key]
        odd.see(row)
        if words:
            odd.words.add(words)

    def told(self, view: View) -> Iterator[Finding]:
        """By client and API."""
        for (kind, client_id, host, broker, api, version), odd in self.odd.items():
            who, mine = view.client(client_id, host), view.of_client(client_id, host)
            if kind == "orphan":
                name, where = "answer-to-nothing", "orphan"
                text = f"{plural(odd.count, 'answer')} of {broker} to {who} belong to no request"
                if odd.count == 1:
                    text = text.replace("belong", "belongs")
            elif kind == "surplus":
                name, where = "surplus", "undecoded == surplus"
                text = (
                    f"{plural(odd.count, f'{api} v{version} exchange')} of {who} carried "
                    f"{listed(odd.words)} bytes behind the end of the message"
                )
            elif kind == "wrong":
                name, where = "undecodable", "undecoded in {malformed, truncated}"
                text = (
                    f"{plural(odd.count, f'{api} v{version} exchange')} of {who} with {broker} "
                    f"could not be decoded: {listed(odd.words, 1)}"
                )
            else:
                name, where = "unknown-api", 'undecoded in {"unknown-api", "unknown-version"}'
                used = plural(odd.count, "request")
                text = f"{used} of {who} used {api} v{version}, which no release has"
            yield view.finding(
                self.rule(name),
                text,
                all_of(
                    f"client.ip == {host}" if kind == "orphan" else mine,
                    "" if kind == "orphan" else view.of_api(api),
                    where,
                ),
                odd,
                about=[("client", who), ("broker", str(broker)), ("api", str(api))],
            )
