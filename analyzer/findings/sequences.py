"""Idempotent and transactional producers: gaps, fencing, transactions that hang (question 17)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.view import View, all_of, listed, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.statistics.producers.story import OUT_OF_ORDER
from kafkascope.analyzer.text import Spelled, spelled
from kafkascope.dissectors.reference.codes import error_name

MENDED: Final = (
    "No action is needed if it is rare. An earlier batch was refused for a moment (see the errors "
    "of its producer; CONCURRENT_TRANSACTIONS is usual at the start of a transaction), so the "
    "batches after it were out of order; the producer sent all of them again, in order."
)
MOST_CLIENTS: Final = 20
"""With one producer id: a transactional id goes from one instance to the next."""
FORGOTTEN: Final = ": the broker has forgotten it, as after it expired"
UNSEEN: Final = "; a broker accepted the batches after them"
ELSEWHERE: Final = (
    "Capture all brokers and interfaces. Brokers accept no batch out of order: the missing ones "
    "took a path that is not captured, or the broker had forgotten the producer."
)
RULE_OF: Final = {
    45: "sequence-refused",
    46: "sequence-repeated",
    47: "producer-fenced",
    49: "producer-unknown",
    59: "producer-unknown",
    90: "producer-fenced",
}


class Sequences(Detector):
    """Errors of producers; sequences and transactions from their statistic."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "sequence-refused",
            "error",
            "batches refused as out of order",
            "Look for a failed batch before these: records were lost or reordered between "
            "producer and broker. A producer must not continue after this error.",
            "OUT_OF_ORDER_SEQUENCE_NUMBER",
        ),
        Rule(
            "sequence-gap",
            "warning",
            "missing sequence numbers of an idempotent producer",
            "Find out why the batches in between were not sent, or where they were lost. No "
            "response shows that a broker accepted the later ones; with acks=0 it can only close "
            "the connection.",
            "OUT_OF_ORDER_SEQUENCE_NUMBER",
            brief="missing sequence numbers of {client}",
        ),
        Rule(
            "sequence-repeated",
            "note",
            "batches sent again by an idempotent producer",
            "No action is needed after a retriable error: brokers drop duplicates. Otherwise find "
            "out why the first response did not arrive (timeouts, disconnects).",
            "DUPLICATE_SEQUENCE_NUMBER",
            brief="{n} batch sent again|{n} batches sent again",
        ),
        Rule(
            "producer-fenced",
            "warning",
            "producer fenced by a newer one with its transactional.id",
            "Give each instance its own transactional.id. Two instances share this one, or an "
            "instance that was presumed dead came back.",
            "PRODUCER_FENCED",
        ),
        Rule(
            "producer-unknown",
            "warning",
            "producer id or transactional.id that a broker has forgotten",
            "Recreate a transactional producer (initTransactions); other producers recover by "
            "themselves since 2.5. The records or the id expired (producer.id.expiration.ms, "
            "retention; for transactions transactional.id.expiration.ms, 7 days), or the topic "
            "was recreated.",
            "UNKNOWN_PRODUCER_ID",
        ),
    )
    ODD_KEYS = frozenset({0, 22, 24, 25, 26, 28})

    errors: Keyed[Seen] = table(Seen, 2_000)
    """By error and client."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of errors of producers."""
        for code in {error.code for error in row.errors if error.code in RULE_OF}:
            named = row.transactional_ids[0] if row.transactional_ids else ""
            self.errors[(code, *client_of(row), row.api, named)].see(row)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client; by producer id; by transactional id."""
        lanes = view.base.producers.lanes(view.names)
        lost = {line["producer_id"] for line in lanes if line["refused"]}
        ids = view.base.producers.of_clients()
        users: dict[str, set[str]] = {}
        if any(RULE_OF[code] == "producer-fenced" for (code, *_), _ in self.errors.items()):
            for line in view.base.producers.rows(view.names):
                users.setdefault(line["transactional_id"] or "", set()).update(line["clients"])
        for (code, client_id, host, api, named), seen in self.errors.items():
            who, error = view.client(client_id, host), error_name(code)
            txn = f" (transactional.id {spelled(named)})" if named else ""
            mine = ids.get((str(client_id or ""), str(host)), set())
            rule = self.rule(RULE_OF[code])
            others = sorted(users.get(str(named), set()) - {who}) if named else []
            if others and rule.name == "producer-fenced":
                txn = f" (transactional.id {spelled(named)}, also used by {listed(others)})"
            mended = code == OUT_OF_ORDER and bool(mine) and not mine & lost
            yield view.finding(
                rule,
                f"{plural(seen.count, f'{api} request')} from {who}{txn} failed with {error}"
                + (FORGOTTEN if rule.name == "producer-unknown" else "")
                + ("; all batches were accepted on retry" if mended else ""),
                all_of(
                    view.of_client(client_id, host),
                    f"txn == {quoted(str(named))}" if named else "",
                    f"api == {api} and error == {code}",
                ),
                seen,
                severity="note" if mended else None,
                advice=MENDED if mended else "",
                link=error,
                about=[
                    ("client", who),
                    ("error", error),
                    *([("txn", spelled(named))] if named else []),
                ],
            )
        senders: dict[int, set[str]] = {}
        for client, mine in ids.items():
            for producer in mine:
                senders.setdefault(producer, set()).add(view.client(*client))
        yield from self._lanes(lanes, senders, view)

    def _lanes(
        self, lanes: list[Line], senders: dict[int, set[str]], view: View
    ) -> Iterator[Finding]:
        whole = not view.gap_bytes()
        again: dict[int, list[Line]] = {}
        for lane in lanes:
            place = _place(lane)
            if lane["missing"] and whole:
                yield view.finding(
                    self.rule("sequence-gap"),
                    f"{plural(lane['missing'], 'sequence number')} of producer "
                    f"{lane['producer_id']} (epoch {lane['producer_epoch']}) for {place} "
                    f"{'is' if lane['missing'] == 1 else 'are'} missing between "
                    f"{lane['first_sequence']} and {lane['last_sequence']}"
                    + (UNSEEN if lane["unseen"] else ""),
                    all_of(
                        _sent_by(lane["producer_id"]),
                        view.of_topic(lane["topic_key"]),
                        f"partition == {lane['partition']}",
                        f"number >= {lane['gap']}",
                    ),
                    count=lane["missing"],
                    first_ns=lane["gap_first"],
                    last_ns=lane["gap_first"],
                    number=lane["gap"],
                    severity="note" if lane["unseen"] else None,
                    advice=ELSEWHERE if lane["unseen"] else "",
                    about=[
                        *_sender(lane["producer_id"], senders),
                        ("partition", place),
                    ],
                )
            if lane["repeats"]:
                again.setdefault(lane["producer_id"], []).append(lane)
        for producer, here in again.items():
            yield self._again(producer, here, senders, view)

    def _again(
        self, producer: int, here: list[Line], senders: dict[int, set[str]], view: View
    ) -> Finding:
        """Return one finding for all partitions and epochs of a producer: transactions may have
        hundreds of them."""
        count = sum(lane["repeats"] for lane in here)
        retried = sum(lane["retried"] for lane in here)
        epochs = sorted({lane["producer_epoch"] for lane in here})
        span = f"epoch {epochs[0]}" if len(epochs) == 1 else f"epochs {epochs[0]} to {epochs[-1]}"
        places = sorted({_place(lane) for lane in here})
        after = f", {'all' if retried == count else retried} after an error" if retried else ""
        number = min(lane["repeated"] for lane in here)
        return view.finding(
            self.rule("sequence-repeated"),
            f"Producer {producer} ({span}) sent {plural(count, 'batch', 'batches')} for "
            f"{listed(places)} again{after}",
            f"{_sent_by(producer)} and number >= {number}",
            count=count,
            first_ns=min(lane["repeated_first"] for lane in here),
            last_ns=max(lane["repeated_last"] for lane in here),
            number=number,
            severity="chat" if retried == count else None,
            about=[
                *_sender(producer, senders),
                *(("partition", place) for place in places[:4]),
            ],
        )


def _place(lane: Line) -> str:
    return Spelled(f"{spelled(lane['topic'])}-{lane['partition']}")


def _sender(producer: int, senders: dict[int, set[str]]) -> list[tuple[str, str]]:
    """Return a producer id, and who had it."""
    clients = sorted(senders.get(producer, ()))[:MOST_CLIENTS]
    return [("producer", str(producer)), *(("client", client) for client in clients)]


def _sent_by(producer: int) -> str:
    return f"api == Produce and producer.id == {producer}"
