"""Share groups that get records again: released, rejected, not acknowledged in time (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.findings.counting import Names, Occurrences, most, total, whole
from kafkascope.analyzer.findings.filters import quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import plural, spelled
from kafkascope.analyzer.identity import client_key_of
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.dissectors.reference.codes import error_name

RELEASE: Final = 2
REJECT: Final = 3
INVALID_RECORD_STATE: Final = 121
"""The lock of the record had expired when it was acknowledged."""


class Shared(Occurrences):
    """Records of a topic that a share group was given; seen: exchanges that gave some again."""

    given: int = total()
    again: int = total()
    """With a delivery count above 1."""
    released: int = total()
    rejected: int = total()
    late: int = total()
    """Acknowledgements after the end of a lock."""
    deliveries: int | None = most()
    """Deliveries of the record that was delivered most often."""
    clients: Names = whole(Names)


class Shares(Counts):
    """By group and topic."""

    shared = Shared.table(LIMITS.few_keys)

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        request = exchange.request_body
        if request is None:
            return
        group = request.get("group_id") or ""
        who = client_key_of(row)
        for topic in request.get("topics") or ():
            for each in topic["partitions"]:
                if each.get("acknowledgement_batches"):
                    shared = self.shared[(group, topic_key(None, topic["topic_id"]))]
                    _acknowledged(shared, each["acknowledgement_batches"])
        for error in row.errors:
            if error.code == INVALID_RECORD_STATE:
                shared = self.shared[(group, topic_key(error.topic, error.topic_id))]
                shared.late += 1
        response = exchange.response_body
        if response is None or row.api != "ShareFetch":
            return
        for topic in response["responses"]:
            for each in topic["partitions"]:
                if not each.get("acquired_records"):
                    continue
                shared = self.shared[(group, topic_key(None, topic["topic_id"]))]
                shared.clients.add(who)
                if _acquired(shared, each["acquired_records"]):
                    shared.see(row)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for (group, topic), shared in self.shared.items():
            often, name = shared.deliveries or 0, view.topic(topic)
            bad = shared.again + shared.rejected
            if not bad:
                continue
            many = 100 * bad >= limit("share.again") * shared.given and bad >= limit("share.least")
            worst = often >= limit("share.deliveries")
            rest = shared.again - shared.released
            archived = " (the default limit; then a record is archived)" if worst else ""
            parts = (
                (
                    shared.again,
                    f"{shared.again:,} of {shared.given:,} deliveries of {name} were "
                    f"repeated, one record up to {often} times{archived}",
                ),
                (shared.released, f"consumers released {shared.released:,}"),
                (shared.rejected, f"consumers rejected {shared.rejected:,} of {name}"),
                (
                    max(0, rest),
                    f"{rest:,} were delivered again without a release (expired lock, or lost "
                    "member)",
                ),
                (
                    shared.late,
                    f"{plural(shared.late, 'acknowledgement')} came after the lock had expired "
                    "(INVALID_RECORD_STATE)",
                ),
            )
            texts = "; ".join(text for count, text in parts if count)
            yield view.finding(
                "share-redelivery",
                f"Share group {spelled(group)}: {texts}",
                f"api in {{ShareFetch, ShareAcknowledge}} and group == {quoted(str(group))}",
                shared,
                count=bad,
                severity=None if worst or many or shared.late else "note",
                case="late" if shared.late else "",
                about={
                    **view.about_group(str(group), (name,)),
                    "client": view.clients(shared.clients)[: LIMITS.topics],
                    "error": error_name(INVALID_RECORD_STATE) if shared.late else (),
                },
            )


def _acknowledged(shared: Shared, batches: Any) -> None:
    for each in batches:
        types = each["acknowledge_types"]
        # One type stands for all records of a batch.
        times = each["last_offset"] - each["first_offset"] + 1 if len(types) == 1 else 1
        shared.released += times * sum(kind == RELEASE for kind in types)
        shared.rejected += times * sum(kind == REJECT for kind in types)


def _acquired(shared: Shared, ranges: Any) -> int:
    again = 0
    for each in ranges:
        count = max(0, each["last_offset"] - each["first_offset"] + 1)
        shared.given += count
        shared.take(deliveries=each["delivery_count"])
        again += count if each["delivery_count"] > 1 else 0
    shared.again += again
    return again
