"""Idempotent and transactional producers: gaps, fencing, transactions that stay open, hold back
readers, or are aborted (question 17)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kafkascope.analyzer.findings.counting import Occurrences
from kafkascope.analyzer.findings.filters import all_of, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import MS, limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import Spelled, duration, listed, plural, spelled
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.statistics.producers.story import OUT_OF_ORDER
from kafkascope.dissectors.reference.codes import error_name

FORGOTTEN: Final = ": the broker has forgotten it, as after it expired"
UNSEEN: Final = "; a broker accepted the batches after them"
RULE_OF: Final = {
    45: "sequence-refused",
    46: "sequence-repeated",
    47: "producer-fenced",
    49: "producer-unknown",
    59: "producer-unknown",
    90: "producer-fenced",
}


REFUSED: Final = ("fenced", "failed")
"""Outcomes of transactions that ended with an error."""


class Sequences(Counts):
    """Errors of producers; sequences and transactions from their statistic."""

    errors = Occurrences.table(LIMITS.keys)
    """By error and client."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        for code in {error.code for error in row.errors if error.code in RULE_OF}:
            named = row.transactional_ids[0] if row.transactional_ids else ""
            self.errors[(code, *client_of(row), row.api, named)].see(row)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        lanes = view.base.producers.lanes(view.names)
        ids = view.base.producers.of_clients()
        rows = view.base.producers.rows(view.names)
        lost = {line["producer_id"] for line in lanes if line["refused"]}
        users: dict[str, set[str]] = defaultdict(set)
        for line in rows:
            users[line["transactional_id"] or ""].update(line["clients"])
        for (code, *who, api, named), seen in self.errors.items():
            client, error, rule = view.client(*who), error_name(code), RULE_OF[code]
            txn = f" (transactional.id {spelled(named)})" if named else ""
            others = sorted(users[str(named)] - {str(client)}) if named else []
            if others and rule == "producer-fenced":
                txn = f" (transactional.id {spelled(named)}, also used by {listed(others)})"
            mine = ids.get(client.key, set())
            mended = code == OUT_OF_ORDER and bool(mine) and not mine & lost
            yield view.finding(
                rule,
                f"{plural(seen.count, f'{api} request')} from {client}{txn} failed with {error}"
                + (FORGOTTEN if rule == "producer-unknown" else "")
                + ("; all batches were accepted on retry" if mended else ""),
                all_of(
                    f"txn == {quoted(str(named))}" if named else "",
                    f"api == {api} and error == {code}",
                ),
                seen,
                client=client,
                severity="note" if mended else None,
                case="recovered" if mended else "",
                link=error,
                about={"error": error, "txn": spelled(named) if named else ()},
            )
        senders: dict[int, set[str]] = defaultdict(set)
        for key, mine in ids.items():
            for producer in mine:
                senders[producer].add(view.client(*key))
        if not view.gap_bytes():
            yield from (_gap(lane, senders, view) for lane in lanes if lane["missing"])
        again = by_key((lane["producer_id"], lane) for lane in lanes if lane["repeats"])
        for producer, here in again.items():
            yield _again(producer, here, senders, view)
        transactions = view.base.producers.transactions(view.names)
        clients = {line["producer_id"]: list(map(spelled, line["clients"])) for line in rows}
        for each in transactions:
            yield from _hangs(each, clients.get(each["producer_id"], []), view)
        yield from _blocks(transactions, clients, view)
        aborted = by_key(
            (str(each["transactional_id"]), each)
            for each in transactions
            if each["outcome"] == "aborted"
        )
        for name, here in aborted.items():
            yield view.finding(
                "transaction-aborted",
                f"{plural(len(here), 'transaction')} of {spelled(name)} "
                f"{'was' if len(here) == 1 else 'were'} aborted{_with_records(here)}",
                f"txn == {quoted(name)} and api == EndTxn and request.committed == false",
                count=len(here),
                span=(here[0]["time"], here[-1]["time"]),
                number=here[0]["number"],
                about={"txn": spelled(name)},
            )


def _with_records(transactions: Sequence[Line]) -> str:
    """Return the number of records of transactions; empty where it is not known of one."""
    counts = [each["records"] for each in transactions]
    return "" if None in counts else f", with {plural(sum(counts), 'record')}"


def _gap(lane: Line, senders: Mapping[int, set[str]], view: DetectorInput) -> Finding:
    place = _place(lane)
    return view.finding(
        "sequence-gap",
        f"{plural(lane['missing'], 'sequence number')} of producer "
        f"{lane['producer_id']} (epoch {lane['producer_epoch']}) for {place} "
        f"{'is' if lane['missing'] == 1 else 'are'} missing between "
        f"{lane['first_sequence']} and {lane['last_sequence']}{UNSEEN if lane['unseen'] else ''}",
        all_of(
            _sent_by(lane["producer_id"]),
            view.of_topic(lane["topic_key"]),
            f"partition == {lane['partition']}",
            f"number >= {lane['gap']}",
        ),
        count=lane["missing"],
        span=(lane["gap_first"], lane["gap_first"]),
        number=lane["gap"],
        severity="note" if lane["unseen"] else None,
        case="unseen" if lane["unseen"] else "",
        about={**_sender(lane["producer_id"], senders), "partition": place},
    )


def _again(
    producer: int, here: list[Line], senders: Mapping[int, set[str]], view: DetectorInput
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
        "sequence-repeated",
        f"Producer {producer} ({span}) sent {plural(count, 'batch', 'batches')} for "
        f"{listed(places)} again{after}",
        f"{_sent_by(producer)} and number >= {number}",
        count=count,
        span=(
            min(lane["repeated_first"] for lane in here),
            max(lane["repeated_last"] for lane in here),
        ),
        number=number,
        severity="chat" if retried == count else None,
        about={**_sender(producer, senders), "partition": places[: LIMITS.listed]},
    )


def _place(lane: Line) -> str:
    return Spelled(f"{spelled(lane['topic'])}-{lane['partition']}")


def _sender(producer: int, senders: Mapping[int, set[str]]) -> dict[str, str | Iterable[str]]:
    clients = sorted(senders.get(producer, ()))[: LIMITS.topics]
    return {"producer": str(producer), "client": clients}


def _sent_by(producer: int) -> str:
    return f"api == Produce and producer.id == {producer}"


def _hangs(each: Line, clients: list[str], view: DetectorInput) -> Iterator[Finding]:
    named = spelled(each["transactional_id"])
    open_ = each["outcome"] == "open"
    age = (view.last_ns or each["time"]) - each["time"] if open_ else each["duration"]
    timeout = each["timeout_ms"]
    allowed = limit("transaction.open") if timeout is None else timeout * MS
    if age is None or age < allowed:
        return
    refused = each["text"].removeprefix("got ") if each["outcome"] in REFUSED else ""
    ended = "its end failed" if each["outcome"] == "failed" else f"it was {each['outcome']}"
    until = "" if open_ else f" until {ended}{refused and f' ({refused})'}"
    limits = "" if timeout is None else f"; transaction.timeout.ms is {duration(allowed)}"
    # Whoever began before the capture may have been allowed more.
    sure = timeout is not None or age >= limit("transaction.most")
    first, last = each["number"], each["end_number"]
    during = f"number >= {first}" if last is None else f"number in {{{first}..{last}}}"
    yield view.finding(
        "transaction-hangs",
        f"Transaction of {named} (producer {each['producer_id']}, "
        f"epoch {each['producer_epoch']}) "
        f"{'is' if open_ else 'was'} open for {duration(age)} on "
        f"{listed(each['partitions'], 2)}{until}{limits}",
        f"txn == {quoted(str(each['transactional_id']))} and {during}",
        span=(each["time"], each["time"] + age),
        severity=None if sure else "note",
        case="" if open_ else "ended",
        number=each["number"],
        about={"txn": named, "client": clients, "error": refused or ()},
    )


def _blocks(
    found: list[Line], clients: dict[Any, list[str]], view: DetectorInput
) -> Iterator[Finding]:
    """Yield groups that wait at a last stable offset."""
    waits = ((each, each.wait) for each in view.audit.found)
    waiting = by_key(
        ((each.group, each.topic), (each, wait))
        for each, wait in waits
        if wait is not None and wait.end_ns - wait.begin_ns >= limit("consumer.lso")
    )
    for (group, topic), here in sorted(waiting.items()):
        places = {f"{topic}-{each.number}" for each, _ in here}
        first, longest = max(here, key=lambda one: one[1].end_ns - one[1].begin_ns)
        begin, end = longest.begin_ns, longest.end_ns
        holding = []
        for line in found:
            ended = end if line["duration"] is None else line["time"] + line["duration"]
            # It is open for most of the wait: others come and go meanwhile.
            if (
                places & set(line["partitions"])
                and ended - max(begin, line["time"]) > (end - begin) / 2
            ):
                holding.append(line)
        names = sorted({spelled(line["transactional_id"]) for line in holding})
        producers = {line["producer_id"] for line in holding}
        who = sorted({each for number in producers for each in clients.get(number, [])})
        by = f", blocked by an open transaction of {listed(names)}" if names else ""
        by += f" ({listed(who)})" if who else ""
        rest = f" and {plural(len(here) - 1, 'more partition')}" if len(here) > 1 else ""
        yield view.finding(
            "transaction-blocks",
            f"Group {spelled(group)} (read_committed) waited {duration(end - begin)} at the last "
            f"stable offset {longest.offset:,} of {spelled(topic)}-{first.number}{rest}, with "
            f"{plural(sum(wait.behind for _, wait in here), 'record')} after it{by}",
            f"api == Fetch and topic == {quoted(topic)}",
            count=sum(max(each.at_stable, 1) for each, _ in here),
            span=(min(wait.begin_ns for _, wait in here), max(wait.end_ns for _, wait in here)),
            about={
                "group": spelled(group),
                "topic": spelled(topic),
                "partition": map(spelled, sorted(places)),
                "txn": names,
                "client": who,
            },
        )
