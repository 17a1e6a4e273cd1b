"""What clients may not do (close behind), and client metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.view import View, all_of, listed, plural, size
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, total, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.dissectors.reference.codes import error_name

DENIALS: Final = frozenset({29, 30, 31, 53, 65, 66})
MOST_NAMED: Final = 100
MOST_PARTS: Final = 6
"""Of a sentence: APIs and errors."""
TOPIC: Final = 29
GROUP: Final = 30
CLUSTER: Final = 31
"""CLUSTER_AUTHORIZATION_FAILED."""
IDEMPOTENT: Final = (
    "Grant WRITE on the topics that it writes to: since Kafka 2.8 that suffices for an idempotent "
    "producer. For older brokers also grant IDEMPOTENT_WRITE on the cluster (kafka-acls.sh --add "
    "--cluster --operation IdempotentWrite). Java producers are idempotent by default since 3.0 "
    "(KIP-679); enable.idempotence=false turns it off."
)
ADVICE: Final = {
    30: "Grant READ on the group (kafka-acls.sh --add --operation Read --group), or correct the "
    "group.id or the user.",
    CLUSTER: "Grant the operation on the cluster (kafka-acls.sh --add --cluster --operation Alter, "
    "AlterConfigs, Create, Describe...), or use a user that has it.",
    53: "Grant WRITE on the transactional id (kafka-acls.sh --add --operation Write "
    "--transactional-id), or correct the id or the user.",
}
"""Error -> what to do, where it differs from topics."""
INIT_PRODUCER: Final = "InitProducerId"
PUSH: Final = 72
NEW_SUBSCRIPTION: Final = 117
"""UNKNOWN_SUBSCRIPTION_ID: the client is to ask what is wanted now."""


@measured
class Denied(Seen):
    """With the users and resources."""

    users: Names = whole(Names)
    places: Names = whole(Names)


@measured
class Pushed(Seen):
    """Client metrics."""

    bytes: int = total()
    failed: int = total()


class Denials(Detector):
    """Authorization errors; telemetry."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "denied",
            "error",
            "authorization failures",
            "Grant access with kafka-acls.sh (READ on topic and group to consume, WRITE on the "
            "topic to produce; both include DESCRIBE), or correct the name or the user.",
            subject=("client",),
        ),
        Rule(
            "telemetry",
            "chat",
            "client metrics pushed to brokers (KIP-714)",
            "Set enable.metrics.push=false on the client to stop it, or delete the CLIENT_METRICS "
            "resource that subscribes to the metrics.",
        ),
    )
    KEYS = frozenset({PUSH})
    ODD = True

    clients: Keyed[Seen] = table(Seen, 2_000)
    """By client."""
    denied: Keyed[Denied] = table(Denied, 2_000)
    """By error, API and client."""
    pushed: Keyed[Pushed] = table(Pushed, 2_000)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of denials, and pushes of metrics."""
        if row.api_key == PUSH:
            pushed = self.pushed[client_of(row)]
            pushed.see(row)
            pushed.bytes += row.request_bytes or 0
            pushed.failed += any(error.code != NEW_SUBSCRIPTION for error in row.errors)
            return
        if not row.errors:
            return
        codes = {error.code for error in row.errors if error.code in DENIALS}
        if codes:
            self.clients[client_of(row)].see(row)
        for code in codes:
            denied = self.denied[(code, row.api, *client_of(row))]
            denied.see(row)
            denied.users.add(row.user or "unknown")
            for error in row.errors:
                place = topic_key(error.topic, error.topic_id) or error.group
                place = place or next(iter(row.transactional_ids), "")
                if error.code == code and place:
                    denied.places.add(place)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client: all that it was denied is one trouble."""
        by_client: dict[tuple[Any, Any], list[tuple[int, str, Denied]]] = {}
        for (code, api, client_id, host), denied in self.denied.items():
            by_client.setdefault((client_id, host), []).append((code, api, denied))
        for client, parts in by_client.items():
            seen = self.clients.get(client)
            if seen is not None:
                yield self._denied(client, seen, parts, view)
        for (client_id, host), pushed in self.pushed.items():
            who = view.client(client_id, host)
            were = "was" if pushed.failed == 1 else "were"
            failed = f"; {pushed.failed} {were} refused" if pushed.failed else ""
            often = "once" if pushed.count == 1 else f"{pushed.count:,} times"
            yield view.finding(
                self.rule("telemetry"),
                f"{who} pushed its metrics {often}, {size(pushed.bytes)} in total{failed}",
                all_of(view.of_client(client_id, host), "api == PushTelemetry"),
                pushed,
                severity="note" if pushed.failed else None,
                about=[("client", who)],
            )

    def _denied(
        self,
        client: tuple[Any, Any],
        seen: Seen,
        parts: list[tuple[int, str, Denied]],
        view: View,
    ) -> Finding:
        who = view.client(*client)
        users = sorted({user for _, _, denied in parts for user in denied.users})
        refusals: list[str] = []
        topics: set[str] = set()
        groups: set[str] = set()
        for code, api, denied in parts:
            named = sorted(map(view.topic, denied.places))
            places = f" for {listed(named)}" if named else ""
            refusals.append(
                f"{plural(denied.count, f'{api} request')}{places} failed with {error_name(code)}"
            )
            topics.update(named if code == TOPIC else ())
            groups.update(named if code == GROUP else ())
        codes = sorted({code for code, _, _ in parts})
        rule = self.rule("denied")
        # What differs from topics comes behind what is said of all.
        advices = sorted({_advice(code, api) for code, api, _ in parts})
        advice = " ".join(each or rule.advice for each in advices)
        what = "; ".join(refusals[:MOST_PARTS])
        return view.finding(
            rule,
            f"{who} (user {listed(users, 2)}) was denied access: {what}",
            all_of(
                view.of_client(*client),
                f"error == {codes[0]}"
                if len(codes) == 1
                else f"error in {{{', '.join(map(str, codes))}}}",
            ),
            seen,
            advice=advice,
            link=error_name(codes[0]),
            about=[
                ("client", who),
                *(("error", error_name(code)) for code in codes),
                *(("topic", each) for each in sorted(topics)[:MOST_NAMED]),
                *(("group", each) for each in sorted(groups)[:MOST_NAMED]),
            ],
        )


def _advice(code: int, api: str) -> str:
    """Return what to grant; empty where the rule says it."""
    return IDEMPOTENT if (code, api) == (CLUSTER, INIT_PRODUCER) else ADVICE.get(code, "")
