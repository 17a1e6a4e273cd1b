"""Groups and transactional ids whose coordinator no broker knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.findings.counting import Names, Occurrences, most, whole
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.merging.tables import by_key

NOT_AVAILABLE: Final = 15
"""COORDINATOR_NOT_AVAILABLE."""
KINDS: Final = {
    0: ("group", "__consumer_offsets", "Group", "Groups"),
    1: ("txn", "__transaction_state", "Transactional id", "Transactional ids"),
}
"""Key types of FindCoordinator -> kind of entity, topic with the state, names."""


class MissingCoordinator(Occurrences):
    """Responses without a coordinator."""

    clients: Names = whole(Names)
    found_ns: int | None = most()
    """When a response last named one."""


class Coordinators(Counts):
    """By type and key."""

    missing = MissingCoordinator.table(LIMITS.keys)

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        asked, told = exchange.request_body, exchange.response_body
        if asked is None or told is None:
            return
        kind = asked.get("key_type", 0)
        # Since version 4 (KIP-699) there are several keys in a request.
        answers = told.get("coordinators") or [{**told, "key": asked.get("key")}]
        for each in answers if kind in KINDS else ():
            missing = self.missing[(kind, each["key"])]
            if each["error_code"] == NOT_AVAILABLE:
                missing.see(row, clients=client_of(row))
            elif not each["error_code"]:
                missing.take(found_ns=row.time_ns)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        """Yield one finding for each type: while the topic with the state is created, or a leader
        moves, there is a coordinator soon."""
        lacking = by_key(
            (int(str(kind)), (str(key), seen))
            for (kind, key), seen in self.missing.items()
            if seen.count >= limit("coordinator.count")
            and (seen.found_ns or 0) < (seen.last_ns or 0)
            and _lasted(seen) >= limit("coordinator.span")
        )
        for kind, found in sorted(lacking.items()):
            entity, topic, one, several = KINDS[kind]
            names = sorted(spelled(key) for key, _ in found)
            seen = Occurrences.summed(each for _, each in found)
            clients = view.clients(who for _, each in found for who in each.clients)
            verb = f"{one} {names[0]} has" if len(names) == 1 else f"{several} {listed(names)} have"
            yield view.finding(
                "coordinator-missing",
                f"{verb} no coordinator: {plural(seen.count, 'FindCoordinator response')} to "
                f"{listed(clients)} within {duration(max(_lasted(each) for _, each in found))} "
                f"returned COORDINATOR_NOT_AVAILABLE; {topic} does not exist, or has no leader",
                f"api == FindCoordinator and error == {NOT_AVAILABLE}",
                seen,
                case=entity,
                about={entity: names[: LIMITS.listed], "client": clients, "topic": topic},
            )


def _lasted(seen: Occurrences) -> int:
    first: Any = seen.first
    return (seen.last_ns or 0) - (first[0] if first else 0)
