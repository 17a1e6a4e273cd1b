"""Share groups that get records again: released, rejected, not acknowledged in time (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, about_group, all_of
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, most, total, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.analyzer.text import spelled

SHARE_FETCH: Final = 78
SHARE_ACKNOWLEDGE: Final = 79
RELEASE: Final = 2
REJECT: Final = 3


@measured
class Shared(Seen):
    """Records of a topic that a share group was given; seen: exchanges that gave some again."""

    given: int = total()
    again: int = total()
    """With a delivery count above 1."""
    released: int = total()
    rejected: int = total()
    deliveries: int | None = most()
    """Of the record that was delivered most often."""
    clients: Names = whole(Names)


class Shares(Detector):
    """By group and topic."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "share-redelivery",
            "warning",
            "records that a share group gets again, or rejects",
            "Find out why consumers release or reject records. Records not acknowledged within "
            "group.share.record.lock.duration.ms (30 s) are delivered again. After "
            "group.share.delivery.count.limit deliveries (5), or when rejected, a record is "
            "archived and no longer delivered.",
            limits=("share.deliveries", "share.again", "share.least"),
        ),
    )
    KEYS = frozenset({SHARE_FETCH, SHARE_ACKNOWLEDGE})

    shared: Keyed[Shared] = table(Shared, 1_000)
    """By group and topic."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of what was acquired and acknowledged."""
        asked = exchange.request_body
        if asked is None:
            return
        group = asked.get("group_id") or ""
        who = row.client_id or "", host_of(row.client_address)
        for topic in asked.get("topics") or ():
            for each in topic["partitions"]:
                if each.get("acknowledgement_batches"):
                    shared = self.shared[(group, topic_key(None, topic["topic_id"]))]
                    _acknowledged(shared, each["acknowledgement_batches"])
        response = exchange.response_body
        if response is None or row.api_key != SHARE_FETCH:
            return
        for topic in response["responses"]:
            for each in topic["partitions"]:
                if not each.get("acquired_records"):
                    continue
                shared = self.shared[(group, topic_key(None, topic["topic_id"]))]
                shared.clients.add(who)
                if _acquired(shared, each["acquired_records"]):
                    shared.see(row)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by group and topic."""
        for (group, topic), shared in self.shared.items():
            often = shared.deliveries or 0
            if not shared.again and not shared.rejected:
                continue
            share = 100 * (shared.again + shared.rejected) >= limit("share.again") * shared.given
            bad = often >= limit("share.deliveries") or (
                share and shared.again + shared.rejected >= limit("share.least")
            )
            parts = []
            if shared.again:
                parts.append(
                    f"{shared.again:,} of {shared.given:,} records of {view.topic(topic)} were "
                    f"delivered again, one up to {often} times"
                )
                if often >= limit("share.deliveries"):
                    parts[-1] += " (the default limit; then a record is archived)"
            if shared.released:
                parts.append(f"consumers released {shared.released:,}")
            if shared.rejected:
                parts.append(f"consumers rejected {shared.rejected:,} of {view.topic(topic)}")
            rest = shared.again - shared.released
            if rest > 0:
                parts.append(
                    f"{rest:,} were delivered again without a release (expired lock, or lost "
                    "member)"
                )
            named = sorted({view.client(*who) for who in shared.clients})
            yield view.finding(
                self.rule("share-redelivery"),
                f"Share group {spelled(group)}: {'; '.join(parts)}",
                all_of("api in {ShareFetch, ShareAcknowledge}", f"group == {quoted(str(group))}"),
                shared,
                count=shared.again + shared.rejected,
                severity=None if bad else "note",
                about=[
                    *about_group(str(group), (view.topic(topic),)),
                    *(("client", name) for name in named[:20]),
                ],
            )


def _acknowledged(shared: Shared, batches: Any) -> None:
    for each in batches:
        types = each["acknowledge_types"]
        # One type stands for all records of a batch.
        times = each["last_offset"] - each["first_offset"] + 1 if len(types) == 1 else 1
        shared.released += times * sum(kind == RELEASE for kind in types)
        shared.rejected += times * sum(kind == REJECT for kind in types)


def _acquired(shared: Shared, ranges: Any) -> int:
    """Count the records that came again."""
    again = 0
    for each in ranges:
        count = max(0, each["last_offset"] - each["first_offset"] + 1)
        shared.given += count
        shared.take(deliveries=each["delivery_count"])
        again += count if each["delivery_count"] > 1 else 0
    shared.again += again
    return again
