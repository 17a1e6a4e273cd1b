"""Sessions with ZooKeeper that expired, clients that connect again and again, nodes that two
register. Consumers before Kafka 0.9, whose groups are nodes of ZooKeeper: partitions without an
owner, or with another than their assignor's; claims that fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kafkascope.analyzer.findings.counting import Names, OccurrencesWithText, whole
from kafkascope.analyzer.findings.filters import all_of, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.model import Line, per_second
from kafkascope.analyzer.statistics.zookeeper.consumers import KeptGroup, KeptGroups, OwnerAudit
from kafkascope.analyzer.statistics.zookeeper.model import label
from kafkascope.analyzer.statistics.zookeeper.operations import CREATES, EPHEMERAL, NODEEXISTS
from kafkascope.analyzer.statistics.zookeeper.story import TreeStory
from kafkascope.dissectors.zookeeper.paths import place_of
from kafkascope.dissectors.zookeeper.types import BASE, CONNECT

REGISTERED: Final = frozenset({"broker", "consumer"})
"""Nodes that belong to one process. Of `/controller` all brokers know that only one gets it."""


class RefusedRegistration(OccurrencesWithText):
    """Registrations that were refused."""

    sessions: Names = whole(Names)
    """Its client."""


class ZooKeeperSessions(Counts):
    """Handshakes and registrations; sessions from the statistic."""

    again = OccurrencesWithText.table(LIMITS.keys)
    """Handshakes for a session that was there, or without an answer, by host and server."""
    refused = RefusedRegistration.table(LIMITS.keys)
    """By server and path."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        request, response = exchange.request_body, exchange.response_body
        if row.api_key == BASE + CONNECT:
            lost = response is None and row.state == "lost" and "client" not in row.reason
            if request is not None and (request["session_id"] or lost):
                again = self.again[(host_of(row.client_address), row.broker_address)]
                outcome = "session refused" if response is not None else "no response"
                resumed = response is not None and response["session_id"]
                again.see(row, words="session resumed" if resumed else outcome)
            return
        if not row.errors or request is None:
            return
        for path, flags in _refused_creates(request, row):
            if place_of(path).what in REGISTERED and flags in EPHEMERAL:
                refused = self.refused[(row.broker_address, path)]
                refused.see(row, words=host_of(row.client_address))
                if exchange.zookeeper is not None and exchange.zookeeper.session:
                    refused.sessions.add(exchange.zookeeper.session)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        stories = view.trees
        for story in stories:
            for line in story.session_lines():
                if line["state"] == "expired":
                    yield _expired(line, view)
        at = {server: story for story in stories for server in story.servers}
        for (server, path), refused in self.refused.items():
            owner = _owner(at[server], path, (refused.first or (0, 0))[0]) if server in at else 0
            # Else it is its own node, of a request that was sent again.
            if server in at and owner not in refused.sessions:
                yield _registered(at[server], server, path, owner, refused, view)
        for (host, server), again in self.again.items():
            first_ns = again.first[0] if again.first is not None else None
            rate = (per_second(again.count, first_ns, again.last_ns) or 0) * 60
            often = again.count >= limit("zookeeper.reconnects")
            if often and rate >= limit("zookeeper.reconnects-rate"):
                yield view.finding(
                    "zookeeper-reconnects",
                    f"{host} reconnected to {server} {again.count:,} times ({rate:.0f} per "
                    f"minute): {listed(again.words)}",
                    f'client.ip == {host} and broker == "{server}" and api == zk.connect',
                    again,
                    about={"client": host, "broker": server, **view.ensemble_at(server)},
                )
        groups = KeptGroups(stories)
        for name in groups.names():
            kept = groups.groups[name]
            yield from _owners(name, kept, groups.audits(name), view)
            yield from _claims(name, kept, view)


def _expired(line: Line, view: DetectorInput) -> Finding:
    lost, ended = line["lost_nodes"], line["ended"]
    silence = ended - line["last"] if line["last"] is not None else None
    name = f"{line['zk_session']} of {spelled(line['client_address'])}"
    if line["who"]:
        name += f" ({spelled(', '.join(line['who']))})"
    after = f" after {duration(silence)} of silence" if silence else ""
    timeout = line["session_timeout"]
    given = f" (timeout {duration(timeout)})" if timeout else ""
    went = "; no ephemeral nodes of it are known"
    if lost:
        went = f"; {plural(len(lost), 'node')} deleted with it: {listed(lost)}"
    brokers = [word.removeprefix("broker ") for word in line["who"] if word.startswith("broker ")]
    return view.finding(
        "zookeeper-expired",
        f"Session {name} expired{after}{given}{went}",
        f'zk.session == "{line["zk_session"]}"',
        count=max(1, len(lost)),
        span=(line["last"] or ended, ended),
        number=line["number"],
        severity=None if lost else "note",
        about={
            "client": spelled(line["client_address"]),
            "node": brokers,
            "broker": map(spelled, line["servers"]),
            "session": str(line["zk_session"]),
        },
    )


def _registered(
    story: TreeStory,
    server: str,
    path: str,
    owner: int,
    refused: RefusedRegistration,
    view: DetectorInput,
) -> Finding:
    """Return the finding about a node that two register."""
    place = place_of(path)
    node = place.first("brokerId") or place.first("memberId")
    state = story.state(owner)[0] if owner else "open"
    held = f", held by session {label(owner)}" if owner else ""
    held += f" ({state})" if state != "open" else ""
    return view.finding(
        "zookeeper-registered-twice",
        f"{listed(refused.words)} could not register {spelled(f'{place.what} {node}')}: NODEEXISTS "
        f"for {spelled(path)}{held}",
        f"broker == {quoted(server)} and path == {quoted(path)} and error == {NODEEXISTS}",
        refused,
        about={"client": map(spelled, refused.words), "node": str(node)},
    )


def _refused_creates(request: dict[str, Any], row: Row) -> Iterator[tuple[str, int]]:
    """Yield path and flags of creates that were refused because the node is there."""
    if "operations" not in request:
        if any(error.code == NODEEXISTS for error in row.errors) and request.get("path"):
            yield request["path"], request.get("flags", 0)
        return
    there = {error.message for error in row.errors if error.code == NODEEXISTS}
    for each in request["operations"] or ():
        if each["type"] in CREATES and each["path"] in there:
            yield each["path"], each.get("flags", 0)


def _owner(story: TreeStory, path: str, time_ns: int) -> int:
    """Return the session that held a node at a time; 0 where that is not known."""
    for life in story.lives.get(path, ()):
        if life.begin_ns <= time_ns and (life.end_ns is None or life.end_ns >= time_ns):
            return life.owner
    return 0


# --- groups


def _owners(
    name: str, kept: KeptGroup, audits: Iterable[OwnerAudit], view: DetectorInput
) -> Iterator[Finding]:
    settled = [
        each
        for each in audits
        if each.misplaced and each.until_ns - each.came.time_ns >= limit("zookeeper.settled")
    ]
    unowned = [(each, [odd for odd in each.misplaced if odd.owner is None]) for each in settled]
    others = [(each, [odd for odd in each.misplaced if odd.owner]) for each in settled]
    for rule, found in (("zookeeper-unowned", unowned), ("zookeeper-misassigned", others)):
        found = [each for each in found if each[1]]
        if not found:
            continue
        (audit, odd), *more = found
        did = {"join": "joined", "leave": "left"}.get(audit.came.kind, "expired")
        lasted = duration(audit.until_ns - audit.came.time_ns)
        when = f"for {lasted} after {spelled(audit.came.member)} {did}"
        if rule == "zookeeper-unowned":
            parts = [f"{topic}-{partition}" for (topic, partition), *_ in odd]
            text = f"Group {spelled(name)} left {listed(parts)} without an owner {when}"
        else:
            text = f"Group {spelled(name)}: {listed(each.text() for each in odd)}, {when}"
        again = f" (and {plural(len(more), 'time')} more)" if more else ""
        yield view.finding(
            rule,
            f"{text}{again}",
            all_of(_where(name, kept), f"path contains {quoted(f'{kept.path}/')}"),
            count=sum(len(each) for _, each in found),
            span=(audit.came.time_ns, found[-1][0].until_ns),
            number=audit.came.number,
            about={"group": kept.name},
        )


def _claims(name: str, kept: KeptGroup, view: DetectorInput) -> Iterator[Finding]:
    below = f"{kept.path}/owners/"
    refused = _refused(view).get((kept.story.name, below), [])
    if not refused:
        return
    count = sum(line["existed"] for line in refused)
    parts = [line["path"].removeprefix(below).replace("/", "-") for line in refused]
    yield view.finding(
        "zookeeper-claims",
        f"Consumers of group {spelled(name)} failed {count:,} times to claim {listed(parts)}: "
        "another consumer owned it",
        all_of(
            _where(name, kept),
            f"path contains {quoted(below)}",
            f"error == {NODEEXISTS}",
        ),
        count=count,
        span=(min(line["first"] for line in refused), max(line["last"] for line in refused)),
        number=min(line["number"] for line in refused),
        about={"group": kept.name},
    )


@DetectorInput.once
def _refused(view: DetectorInput) -> dict[tuple[str, str], list[Line]]:
    """Map each ensemble and node of owners to the partitions below whose claims failed."""
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for story in view.trees:
        for line in story.node_lines():
            if line["existed"] >= limit("zookeeper.claims"):
                # .../owners/topic/partition, or .../owners/topic.
                parts = line["path"].rsplit("/", 3)
                for at in (1, 2):
                    if parts[at : at + 1] == ["owners"]:
                        found[story.name, "/".join(parts[: at + 1]) + "/"].append(line)
    return found


def _where(name: str, kept: KeptGroup) -> str:
    """Return the filter for the ensemble of a group, where other ones may have such a group."""
    if name == kept.name:
        return "protocol == zookeeper"
    return f"broker in {{{', '.join(map(quoted, kept.story.servers))}}}"
