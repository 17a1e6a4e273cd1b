"""Transactions that stay open, hold back readers, or are aborted (question 17)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, audit_of, duration, listed, plural
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled

MS: Final = 1_000_000


class Transactions(Detector):
    """From the statistics of producers and of delivery."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "transaction-hangs",
            "warning",
            "transactions open longer than their timeout",
            "Commit or abort in the producer. If the producer is dead, end the transaction with "
            "`kafka-transactions.sh find-hanging` and `abort`. read_committed consumers stop at "
            "its first record.",
            "INVALID_TXN_STATE",
            subject=("txn",),
            limits=("transaction.open", "transaction.most"),
        ),
        Rule(
            "transaction-blocks",
            "warning",
            "read_committed consumers blocked by an open transaction",
            "Commit or abort the transaction in its producer; the broker aborts it after "
            "transaction.timeout.ms (`kafkascope producers --transactions`, "
            "kafka-transactions.sh). Until then read_committed consumers get nothing after its "
            "first record.",
            "INVALID_TXN_STATE",
            brief="group {group} is blocked",
            subject=("group", "topic"),
            limits=("consumer.lso",),
        ),
        Rule(
            "transaction-aborted",
            "note",
            "aborted transactions",
            "Check what precedes each abort. Aborts are usual when a producer fails or restarts; "
            "frequent ones waste work.",
            brief="{n} aborted transaction|{n} aborted transactions",
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by transaction; by group; by transactional id."""
        found = view.base.producers.transactions(view.names)
        clients = {
            line["producer_id"]: [spelled(each) for each in line["clients"]]
            for line in view.base.producers.rows(view.names)
        }
        for each in found:
            yield from self._hangs(each, clients.get(each["producer_id"], []), view)
        yield from self._blocks(found, clients, view)
        yield from self._aborted(found, view)

    def _hangs(self, each: Line, clients: list[str], view: View) -> Iterator[Finding]:
        named = spelled(each["transactional_id"])
        open_ = each["outcome"] == "open"
        age = (view.last_ns or each["time"]) - each["time"] if open_ else each["duration"]
        timeout = each["timeout_ms"]
        allowed = limit("transaction.open") if timeout is None else timeout * MS
        if age is None or age < allowed:
            return
        until = "" if open_ else f" until it was {each['outcome']}"
        limits = "" if timeout is None else f"; transaction.timeout.ms is {duration(allowed)}"
        # Whoever began before the capture may have been allowed more.
        sure = timeout is not None or age >= limit("transaction.most")
        first, last = each["number"], each["end_number"]
        during = f"number >= {first}" if last is None else f"number in {{{first}..{last}}}"
        yield view.finding(
            self.rule("transaction-hangs"),
            f"Transaction of {named} (producer {each['producer_id']}, "
            f"epoch {each['producer_epoch']}) "
            f"{'is' if open_ else 'was'} open for {duration(age)} on "
            f"{listed(each['partitions'], 2)}{until}{limits}",
            f"txn == {quoted(str(each['transactional_id']))} and {during}",
            first_ns=each["time"],
            last_ns=each["time"] + age,
            severity=None if sure else "note",
            number=each["number"],
            about=[("txn", named), *(("client", who) for who in clients)],
        )

    def _blocks(
        self, found: list[Line], clients: dict[int, list[str]], view: View
    ) -> Iterator[Finding]:
        waiting: dict[tuple[str, str], list[tuple[AuditedPartition, int, int]]] = defaultdict(list)
        for each in audit_of(view).found:
            since = each.waits_since_ns
            if since is not None and each.end is not None and each.stable is not None:
                until = max(each.last_ns or since, each.waits_until_ns or since)
                stuck = until - since
                if stuck >= limit("consumer.lso"):
                    waiting[(each.group, each.topic)].append((each, since, stuck))
        for (group, topic), here in sorted(waiting.items()):
            places = {f"{topic}-{each.number}" for each, _, _ in here}
            last = max(since + stuck for _, since, stuck in here)
            holding = [
                line
                for line in found
                if places & set(line["partitions"])
                and (line["duration"] is None or line["time"] + line["duration"] >= last)
            ]
            names = sorted({spelled(line["transactional_id"]) for line in holding})
            producers = {line["producer_id"] for line in holding}
            who = sorted({each for number in producers for each in clients.get(number, [])})
            by = f", blocked by an open transaction of {listed(names)}" if names else ""
            by += f" ({listed(who)})" if who else ""
            first, _, stuck = max(here, key=lambda one: one[2])
            behind = sum((each.end or 0) - (each.stable or 0) for each, _, _ in here)
            rest = f" and {plural(len(here) - 1, 'more partition')}" if len(here) > 1 else ""
            yield view.finding(
                self.rule("transaction-blocks"),
                f"Group {spelled(group)} (read_committed) waited {duration(stuck)} at the last "
                f"stable offset {first.stable:,} of {spelled(topic)}-{first.number}{rest}, with "
                f"{plural(behind, 'record')} behind it{by}",
                f"api == Fetch and topic == {quoted(topic)}",
                count=sum(max(each.at_stable, 1) for each, _, _ in here),
                first_ns=min(one[1] for one in here),
                last_ns=last,
                about=[
                    ("group", spelled(group)),
                    ("topic", spelled(topic)),
                    *(("partition", spelled(each)) for each in sorted(places)),
                    *(("txn", each) for each in names),
                    *(("client", each) for each in who),
                ],
            )

    def _aborted(self, found: list[Line], view: View) -> Iterator[Finding]:
        aborted: dict[str, list[Line]] = defaultdict(list)
        for each in found:
            if each["outcome"] == "aborted":
                aborted[str(each["transactional_id"])].append(each)
        for name, here in aborted.items():
            yield view.finding(
                self.rule("transaction-aborted"),
                f"{plural(len(here), 'transaction')} of {spelled(name)} "
                f"{'was' if len(here) == 1 else 'were'} aborted, with "
                f"{plural(sum(each['records'] for each in here), 'record')}",
                f"txn == {quoted(name)} and api == EndTxn and request.committed == false",
                count=len(here),
                first_ns=here[0]["time"],
                last_ns=here[-1]["time"],
                number=here[0]["number"],
                about=[("txn", spelled(name))],
            )
