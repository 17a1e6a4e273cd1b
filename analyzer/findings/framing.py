"""Framing and decoding: answers to nothing, bytes that are no message (question 20)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.bodies.dissection import FRAMING, HEADER, OTHER_LAYOUT
from kafkascope.analyzer.conversation.detect import FRAMING_LOST
from kafkascope.analyzer.conversation.plausible import request_within
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
from kafkascope.analyzer.model import Undecoded
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, most, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed

KINDS: Final = {
    "surplus": "surplus",
    "malformed": "wrong",
    HEADER: HEADER,
    FRAMING: FRAMING,
    "end": FRAMING,
    OTHER_LAYOUT: OTHER_LAYOUT,
}
"""Why bytes are undecoded -> what is told of them."""
UNKNOWN: Final = frozenset({"unknown-api", "unknown-version"})

BEGINS: Final = "another request begins"
OF_SERVERS: Final = (
    "Check what sends these responses: a broker, a proxy or a mock server. A response was cut off, "
    "or its size field is wrong. Clients close the connection at such a size."
)
"""The fix of responses without framing."""
OF_CLIENTS: Final = (
    "Check the client: the body of a request has the layout of the version in its header "
    "(`kafkascope grammar API VERSION`). Brokers close the connection, or read other values than "
    "were meant."
)
"""The fix of requests in another version's layout."""


@measured
class Orphans(Seen):
    """Answers to nothing on a connection."""

    client: tuple[str, str] | None = most()
    broker: str | None = most()


@measured
class Anomaly(Worded):
    """Messages of a client, and the connections on which they were sent."""

    connections: Names = whole(Names)


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
            "request-header",
            "error",
            "unreadable request headers",
            "Check the header that the client writes: api_key, api_version, correlation_id, "
            "client_id (null is ff ff), and tagged fields in flexible versions (`kafkascope "
            "grammar RequestHeader`). Brokers close the connection at such a request.",
            brief="{n} unreadable request header|{n} unreadable request headers",
        ),
        Rule(
            "framing-lost",
            "error",
            "request streams that lose their framing",
            "Check how the client writes to its connection: a request that was cut off is followed "
            "by the next one, two threads write at once, or a size field is wrong. After a write "
            "that failed halfway, close the connection. A broker reads what follows as a size, and "
            "closes the connection.",
            brief="{n} request stream without framing|{n} request streams without framing",
        ),
        Rule(
            "other-layout",
            "error",
            "messages in the layout of another version",
            "Check what answers at this address: a broker, a proxy or a mock server. A response "
            "has the version of its request; only UNSUPPORTED_VERSION to ApiVersions is sent in v0 "
            "(KIP-511). Until it is corrected, limit the client to a version that is answered in "
            "its own layout (librdkafka: api.version.request=false, broker.version.fallback).",
            "UNSUPPORTED_VERSION",
            brief="{n} message in another version's layout|{n} messages in another version's "
            "layout",
        ),
        Rule(
            "surplus",
            "note",
            "messages with surplus bytes",
            "Check the sender: it miscounts, or adds a field of another version. Brokers ignore "
            "the surplus bytes.",
            brief="{n} exchange with surplus bytes|{n} exchanges with surplus bytes",
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

    odd: Keyed[Anomaly] = table(Anomaly, 2_000)
    """By kind, side, client, broker, API and version."""
    orphans: Keyed[Orphans] = table(Orphans, 2_000, unranked=1)
    """By connection."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of orphans and what is undecoded."""
        if row.state == "orphan" and not row.reason.startswith(FRAMING_LOST):
            # Whether its bytes are complete is known at the end only.
            orphans = self.orphans[(row.connection, exchange.connection.first_ns)]
            orphans.see(row)
            client = row.client_id or "", host_of(row.client_address)
            orphans.take(client=client, broker=row.broker_address)
        broken = row.api == "Produce" and is_damaged(row)
        broken |= any(each.side == "request" and each.reason in KINDS for each in row.undecoded)
        words = swallowed(exchange) if broken else ""
        if words:
            self._see(FRAMING, row, "request", words)
        for each in row.undecoded:
            if each.reason in UNKNOWN:
                if row.zookeeper is None:
                    self._see("unknown", row, each.side, each.reason)
            elif each.reason in KINDS:
                if each.reason == "end" or (words and each.side == "request"):
                    continue  # the client or the capture stopped there, or another request begins
                self._see(KINDS[each.reason], row, each.side, _words(each))

    def _see(self, kind: str, row: Row, side: str, words: str) -> None:
        side = side if kind in (OTHER_LAYOUT, FRAMING) else ""
        api = (row.api, row.api_version) if kind != FRAMING else ("", None)
        odd = self.odd[(kind, side, *client_of(row), row.broker_address, *api)]
        odd.see(row)
        odd.words.add(words)
        odd.connections.add(row.connection)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client and API; by client and broker."""
        yield from self._to_nothing(view)
        closed = {line["connection"] for line in view.lines() if line["end"].startswith("broker")}
        for (kind, side, client_id, host, broker, api, number), odd in self.odd.items():
            if odd.count <= view.damaged_places:
                continue  # the packet before damage ends with bytes of others, and is read as whole
            version = "" if number is None else f" v{number}"
            who, mine = view.client(client_id, host), view.of_client(client_id, host)
            exchanges = plural(odd.count, f"{api}{version} exchange")
            advice = ""
            if kind == "surplus":
                name, where = "surplus", "undecoded == surplus"
                text = (
                    f"{exchanges} of {who} carried {listed(odd.words)} surplus bytes after the end "
                    "of the message"
                )
            elif kind == "wrong":
                name, where = "undecodable", "undecoded == malformed"
                text = f"{exchanges} of {who} with {broker} could not be decoded: "
                text += listed(odd.words, 1)
                if any(str(each).startswith("request: ") for each in odd.words):
                    text += _closed(odd, closed)
            elif kind == HEADER:
                name, where = "request-header", f"undecoded == {HEADER}"
                text = (
                    f"{plural(odd.count, 'request')} of {who} to {broker} "
                    f"{'has' if odd.count == 1 else 'have'} an unreadable request header: "
                    f"{listed(odd.words, 1)}{_closed(odd, closed)}"
                )
            elif kind == FRAMING:
                name, where = "framing-lost", among("conn", sorted(odd.connections))
                # Where the next request begins in the one before says more than what follows it.
                words = [each for each in odd.words if BEGINS in each] or odd.words
                what = plural(len(odd.connections), "connection")
                text = f"{who} lost the framing of its requests to {broker} on {what}: "
                text += f"{listed(words, 1)}{_closed(odd, closed)}"
                if side == "response":
                    text = f"{broker} lost the framing of its responses to {who} on {what}: "
                    text += listed(words, 1)
                    advice = OF_SERVERS
            elif kind == OTHER_LAYOUT:
                name, where = "other-layout", f'undecoded == "{OTHER_LAYOUT}"'
                requests = plural(odd.count, f"{api}{version} request")
                text = f"{broker} answered {requests} of {who} in {listed(odd.words, 1)}"
                if side == "request":
                    text = f"{who} sent {requests} to {broker} in {listed(odd.words, 1)}"
                    advice = OF_CLIENTS
            else:
                name, where = "unknown-api", 'undecoded in {"unknown-api", "unknown-version"}'
                used = plural(odd.count, "request")
                text = f"{used} from {who} used {api}{version}, which no Kafka release has"
            yield view.finding(
                self.rule(name),
                text,
                all_of(mine, api_is(api), where),
                odd,
                count=len(odd.connections) if kind == FRAMING else None,
                advice=advice,
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


def is_damaged(row: Row) -> bool:
    """Return whether batches of an exchange are not what their headers say."""
    return any(
        note.severity == "error" and ("checksum" in note.text or "records:" in note.text)
        for note in row.notes
    )


def swallowed(exchange: Exchange) -> str:
    """Say where another request begins inside the one of an exchange; empty where none does."""
    asked = exchange.request
    if asked is None or asked.header is None:
        return ""
    frame = asked.frame
    at = request_within(frame.payload, asked.header.end, asked.header.client_id)
    if at < 0:
        return ""
    return (
        f"at byte {frame.offset + 4 + at} of the client's stream {BEGINS}, though "
        f"{exchange.api} v{exchange.api_version} before it states {frame.size} bytes and has {at}"
    )


def _words(each: Undecoded) -> str:
    """Return what a finding says of undecoded bytes."""
    if each.reason == "surplus":
        return str(each.bytes)
    if each.reason != "malformed":
        return each.text
    words = f"{each.side}: {each.text or each.reason}"
    return words if each.path in words else f"{words} at {each.path}"


def _closed(odd: Anomaly, closed: Collection[int]) -> str:
    """Say on how many of the connections the broker closed."""
    ended = sum(number in closed for number in odd.connections)
    if not ended:
        return ""
    if odd.connections.more:
        return "; the broker closed their connections"
    every = ended == len(odd.connections)
    return f"; the broker closed {'' if every else f'{ended} of '}" + (
        "the connection" if len(odd.connections) == 1 else f"{len(odd.connections)} connections"
    )
