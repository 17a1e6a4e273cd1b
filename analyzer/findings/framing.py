"""Framing and decoding: answers to nothing, bytes that are no message (question 20)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from kafkascope.analyzer.bodies.dissection import FRAMING, HEADER, OTHER_LAYOUT, dissect_request
from kafkascope.analyzer.conversation.detect import FRAMING_LOST
from kafkascope.analyzer.conversation.plausible import request_within
from kafkascope.analyzer.findings.counting import (
    Names,
    Occurrences,
    OccurrencesWithText,
    most,
    whole,
)
from kafkascope.analyzer.findings.filters import all_of, among, api_is
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.view import Client, Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import listed, plural
from kafkascope.analyzer.identity import client_key_of, client_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.model import Undecoded

KINDS: Final = {
    "surplus": "surplus",
    "malformed": "wrong",
    HEADER: HEADER,
    FRAMING: FRAMING,
    "end": FRAMING,
    OTHER_LAYOUT: OTHER_LAYOUT,
}
"""Why bytes are undecoded -> text for the finding."""
UNKNOWN: Final = frozenset({"unknown-api", "unknown-version"})

BEGINS: Final = "another request begins"


class Orphans(Occurrences):
    """Answers to nothing on a connection."""

    client: tuple[str, str] | None = most()
    broker: str | None = most()


class Anomaly(OccurrencesWithText):
    """Messages of a client, and the connections on which they were sent."""

    connections: Names = whole(Names)


class Framing(Counts):
    """Orphans on connections that were seen whole, and what could not be decoded."""

    odd = Anomaly.table(LIMITS.keys)
    """By kind, side, client, broker, API and version."""
    orphans = Orphans.table(LIMITS.keys, unranked=1)
    """By connection."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        if row.state == "orphan" and not row.reason.startswith(FRAMING_LOST):
            # Whether its bytes are complete is known at the end only.
            client = client_key_of(row)
            place = row.connection, exchange.connection.first_ns
            self.orphans[place].see(row, client=client, broker=row.broker_address)
        broken = row.api == "Produce" and is_damaged(row)
        broken |= any(each.side == "request" and each.reason in KINDS for each in row.undecoded)
        words = (swallowed(exchange) or missized(exchange)) if broken else ""
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
        key = (kind, side, *client_of(row), row.broker_address, *api)
        self.odd[key].see(row, words=words, connections=row.connection)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        yield from self._unmatched(view)
        closed = {line["connection"] for line in view.lines if line["end"].startswith("broker")}
        for (kind, side, *who, broker, api, number), odd in self.odd.items():
            if odd.count <= view.damaged_places:
                continue  # the packet before damage ends with bytes of others, and is read as whole
            if kind == "wrong" and view.gapped.issuperset(odd.connections):
                continue
            client, what = view.client(*who), api if number is None else f"{api} v{number}"
            name, where, case, text = _described(kind, side, client, broker, what, odd, closed)
            yield view.finding(
                name,
                text,
                all_of(api_is(api), where),
                odd,
                client=client,
                count=len(odd.connections) if kind == FRAMING else None,
                case=case,
                about={"broker": str(broker), "api": str(api)},
            )

    def _unmatched(self, view: DetectorInput) -> Iterator[Finding]:
        """Yield findings about connections that were seen from their beginning and without a
        gap."""
        middle = view.base.connections.midstream()
        whole = {
            (line["connection"], line["opened"])
            for line in view.lines
            if not line["gap_bytes"] and line["connection"] not in middle
        }
        found = by_key(
            ((*orphans.client, orphans.broker), (key[0], orphans))
            for key, orphans in self.orphans.items()
            if key in whole and orphans.client and orphans.broker
        )
        for (*who, broker), here in sorted(found.items()):
            client, seen = view.client(*who), Occurrences.summed(orphans for _, orphans in here)
            match = "matches" if seen.count == 1 else "match"
            yield view.finding(
                "answer-to-nothing",
                f"{plural(seen.count, 'response')} from {broker} to {client} {match} no request in "
                "flight",
                f"orphan and {among('conn', sorted(number for number, _ in here)[:50])}",
                seen,
                about={"client": client, "broker": broker},
            )


def _described(
    kind: str,
    side: str,
    client: Client,
    broker: Any,
    what: str,
    odd: Anomaly,
    closed: Collection[int],
) -> tuple[str, str, str, str]:
    """Return the rule, the filter, the case and the text for bytes of a kind; `what`: the API with
    its version."""
    words, ended = listed(odd.words, 1), _closed(odd, closed)
    exchanges = plural(odd.count, f"{what} exchange")
    requests = plural(odd.count, f"{what} request")
    have = "has" if odd.count == 1 else "have"
    connections = sorted(odd.connections)
    lost = f"on {plural(len(connections), 'connection')}: "
    # Where the next request begins in the one before says more than what follows it.
    lost += listed([each for each in odd.words if BEGINS in each] or odd.words, 1)
    of_request = any(str(each).startswith("request: ") for each in odd.words)
    by_conn, other = among("conn", connections), f'undecoded == "{OTHER_LAYOUT}"'
    texts = {
        ("surplus", ""): (
            *("surplus", "undecoded == surplus", ""),
            f"{exchanges} of {client} carried {listed(odd.words)} surplus bytes after the end of "
            "the message",
        ),
        ("wrong", ""): (
            *("undecodable", "undecoded == malformed", ""),
            f"{exchanges} of {client} with {broker} could not be decoded: {words}"
            f"{ended if of_request else ''}",
        ),
        (HEADER, ""): (
            *("request-header", f"undecoded == {HEADER}", ""),
            f"{plural(odd.count, 'request')} of {client} to {broker} {have} an unreadable request "
            f"header: {words}{ended}",
        ),
        (FRAMING, "request"): (
            *("framing-lost", by_conn, ""),
            f"{client} lost the framing of its requests to {broker} {lost}{ended}",
        ),
        (FRAMING, "response"): (
            *("framing-lost", by_conn, "http" if "): HTTP" in lost else "response"),
            f"{broker} lost the framing of its responses to {client} {lost}",
        ),
        (OTHER_LAYOUT, "request"): (
            *("other-layout", other, "request"),
            f"{client} sent {requests} to {broker} in {words}",
        ),
        (OTHER_LAYOUT, "response"): (
            *("other-layout", other, ""),
            f"{broker} answered {requests} of {client} in {words}",
        ),
        ("unknown", ""): (
            *("unknown-api", 'undecoded in {"unknown-api", "unknown-version"}', ""),
            f"{plural(odd.count, 'request')} from {client} used {what}, which no Kafka release has",
        ),
    }
    return texts[kind, side]


def is_damaged(row: Row) -> bool:
    """Return whether batches of an exchange contradict their headers."""
    return any(
        note.severity == "error" and ("checksum" in note.text or "records:" in note.text)
        for note in row.notes
    )


def swallowed(exchange: Exchange) -> str:
    """Return where another request begins inside the one of an exchange; empty where none does."""
    request = exchange.request
    if request is None or request.header is None:
        return ""
    frame = request.frame
    at = request_within(frame.payload, request.header.end, request.header.client_id)
    if at < 0:
        return ""
    return (
        f"at byte {frame.offset + 4 + at} of the client's stream {BEGINS}, though "
        f"{exchange.api} v{exchange.api_version} before it states {frame.size} bytes and has {at}"
    )


def missized(exchange: Exchange) -> str:
    """Return how the size field of a request is wrong: it states more bytes than came, though
    these are the whole request (no request begins with another one); empty where it is not."""
    request = exchange.request
    if request is None or request.header is None or request.frame.cut != "end":
        return ""
    frame = request.frame
    whole = frame._replace(size=len(frame.payload), cut="")
    if dissect_request(whole, request.header)[1]:
        return ""
    swapped = int.from_bytes(whole.size.to_bytes(4, "big"), "little")
    counted = {whole.size + 4: ": its size field counts itself"}
    how = (counted | {swapped: ": its size field is little-endian"}).get(frame.size, "")
    return (
        f"at byte {frame.offset} of the client's stream {exchange.api} v{exchange.api_version} "
        f"states {frame.size:,} bytes and is whole with {whole.size:,}{how}"
    )


def _words(each: Undecoded) -> str:
    if each.reason == "surplus":
        return str(each.bytes)
    if each.reason != "malformed":
        return each.text
    words = f"{each.side}: {each.text or each.reason}"
    return words if each.path in words else f"{words} at {each.path}"


def _closed(odd: Anomaly, closed: Collection[int]) -> str:
    """Return on how many of the connections the broker closed."""
    ended = sum(number in closed for number in odd.connections)
    if not ended:
        return ""
    if odd.connections.more:
        return "; the broker closed their connections"
    count = len(odd.connections)
    every = "the connection" if count == 1 else f"{count} connections"
    return f"; the broker closed {'' if ended == count else f'{ended} of '}{every}"
