"""Groups and transactional ids whose coordinator no broker knows; members that find it, and do not
join."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafkascope.analyzer.findings.counting import Names, Occurrences, most, whole
from kafkascope.analyzer.findings.filters import quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.versions import offered
from kafkascope.analyzer.findings.view import Client, Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import ClientKey, client_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.dissectors.registry import APIS

GROUP: Final = 0
READS: Final = ("Fetch", "ShareFetch")
HEARTBEATS: Final = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
SERVED: Final = frozenset(api.name for api in APIS.values() if api.server == "group")
"""APIs that coordinators of groups serve."""
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
    """By type and key; coordinators of groups that were found, by group and client."""

    missing = MissingCoordinator.table(LIMITS.keys)
    found = Occurrences.table(LIMITS.keys)

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        request, response = exchange.request_body, exchange.response_body
        if request is None or response is None:
            return
        kind = request.get("key_type", 0)
        # Since version 4 (KIP-699) there are several keys in a request.
        answers = response.get("coordinators") or [{**response, "key": request.get("key")}]
        for each in answers if kind in KINDS else ():
            missing = self.missing[(kind, each["key"])]
            if each["error_code"] == NOT_AVAILABLE:
                missing.see(row, clients=client_of(row))
            elif not each["error_code"]:
                missing.take(found_ns=row.time_ns)
                if kind == GROUP:
                    self.found[(each["key"], *client_of(row))].see(row)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        """Yield one finding for each type of key, and each client that does not join."""
        yield from self._missing(view)
        for (group, *who), seen in self.found.items():
            client = view.client(*who)
            stayed = _stayed(client, seen, view)
            if stayed >= limit("coordinator.unused"):
                yield view.finding(
                    "group-unjoined",
                    f"{client} found the coordinator of group {spelled(group)} and sent it no "
                    f"request about the group for {duration(stayed)}{_offers(client, view)}",
                    f"api == FindCoordinator and group == {quoted(str(group))}",
                    seen,
                    client=client,
                    about={"group": spelled(group)},
                )

    def _missing(self, view: DetectorInput) -> Iterator[Finding]:
        """Yield what no response named: while the topic with the state is created, or a leader
        moves, there is a coordinator soon."""
        lacking = by_key(
            (int(str(kind)), (str(key), seen))
            for (kind, key), seen in self.missing.items()
            if seen.count >= limit("coordinator.count")
            and (seen.found_ns or 0) < (seen.last_ns or 0)
            and seen.span_ns >= limit("coordinator.span")
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
                f"{listed(clients)} within {duration(max(each.span_ns for _, each in found))} "
                f"returned COORDINATOR_NOT_AVAILABLE; {topic} does not exist, or has no leader",
                f"api == FindCoordinator and error == {NOT_AVAILABLE}",
                seen,
                case=entity,
                about={entity: names[: LIMITS.listed], "client": clients, "topic": topic},
            )


def _stayed(client: Client, seen: Occurrences, view: DetectorInput) -> int:
    """Return how long a client stayed connected after the first response with its coordinator;
    0 where it did something there, or reads without it, or the capture may lack that."""
    lines = view.lines_of.get(client.key, [])
    gone = any(line["gap_bytes"] or line["phase"] == "opaque" for line in lines)
    known = view.is_broker(*client.key) or client.key in _active(view)
    if known or gone or not lines or seen.first is None:
        return 0
    # Not beyond the last exchange: of a part of a capture, the end of a connection may be all that
    # there is of the time after.
    last = view.last_ns or 0
    ends = (min(line["ended"], last) if line["end"] else last for line in lines)
    return max(ends, default=0) - seen.first[0]


@DetectorInput.once
def _active(view: DetectorInput) -> set[ClientKey]:
    """Return the clients that sent requests to coordinators of groups, or fetches."""
    return {
        (str(key["client_id"] or ""), str(key["host"]))
        for key, _ in view.base.apis.grouped(("api", "client_id", "host"))
        if key["api"] in READS or (key["api"] in SERVED and key["api"] != "FindCoordinator")
    }


def _offers(client: Client, view: DetectorInput) -> str:
    """Return which of the newer group protocols its brokers offer to a client."""
    spans = {api: offered(view, *client.key, api) for api in HEARTBEATS}
    if not offered(view, *client.key, "JoinGroup"):
        return ""
    have = [f"{api} up to v{span.last}" for api, span in spans.items() if span is not None]
    lack = [api for api, span in spans.items() if span is None]
    parts = [listed(have, len(spans)) if have else "", f"no {listed(lack)}" if lack else ""]
    return f"; the brokers offer {' and '.join(filter(None, parts))}"
