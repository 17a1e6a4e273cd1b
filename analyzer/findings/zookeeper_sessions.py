"""Sessions with ZooKeeper that expired, clients that connect again and again, nodes that two
register."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Worded
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import (
    View,
    all_of,
    duration,
    ensemble_at,
    listed,
    plural,
    trees_of,
)
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import per_second
from kafkascope.analyzer.statistics.zookeeper.operations import (
    CREATES,
    EPHEMERAL,
    NODEEXISTS,
)
from kafkascope.analyzer.statistics.zookeeper.story import TreeStory, label
from kafkascope.analyzer.text import spelled
from kafkascope.dissectors.zookeeper.paths import place_of
from kafkascope.dissectors.zookeeper.types import BASE, CONNECT, MULTI

REGISTERED: Final = frozenset({"broker", "consumer"})
"""Nodes that belong to one process. Of `/controller` all brokers know that only one gets it."""


@measured
class RefusedRegistration(Worded):
    """Registrations that were refused."""

    sessions: Names = whole(Names)
    """Who wanted to register."""


class ZooKeeperSessions(Detector):
    """Handshakes and registrations; sessions from the statistic."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "zookeeper-expired",
            "warning",
            "expired ZooKeeper sessions",
            "Check the log of the client for a kill or a long pause (garbage collection, a "
            "stopped machine), and the network. The server received nothing within the session "
            "timeout (zookeeper.session.timeout.ms: 6 s, 18 s since Kafka 2.5). A broker is out "
            "of the cluster until it registers again.",
            brief="ZooKeeper session of {client} expired",
            subject=("client", "node"),
        ),
        Rule(
            "zookeeper-registered-twice",
            "warning",
            "registration refused because another session holds the node",
            "Give each broker its own broker.id (each consumer its own id). After a restart, wait "
            "until the old session expires.",
            brief="{n} refused registration|{n} refused registrations",
            subject=("client", "node"),
        ),
        Rule(
            "zookeeper-reconnects",
            "warning",
            "repeated reconnects to ZooKeeper",
            "Check ZooKeeper's log for why it closed the connections: a restart, a lost majority, "
            "a session timeout that is shorter than pauses or network delays, frames beyond "
            "jute.maxbuffer, or maxClientCnxns.",
            brief="{n} reconnect to ZooKeeper|{n} reconnects to ZooKeeper",
            limits=("zookeeper.reconnects", "zookeeper.reconnects-rate"),
        ),
    )
    KEYS = frozenset({BASE + CONNECT, BASE + MULTI, *(BASE + kind for kind in CREATES)})
    KAFKA_ONLY = False

    again: Keyed[Worded] = table(Worded, 2_000)
    """Handshakes for a session that was there, or without an answer, by host and server."""
    refused: Keyed[RefusedRegistration] = table(RefusedRegistration, 2_000)
    """By server and path."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of handshakes and of registrations that were refused."""
        asked, told = exchange.request_body, exchange.response_body
        if row.api_key == BASE + CONNECT:
            lost = told is None and row.state == "lost" and "client" not in row.reason
            if asked is not None and (asked["session_id"] or lost):
                again = self.again[(host_of(row.client_address), row.broker_address)]
                again.see(row)
                again.words.add(_outcome(told))
            return
        if not row.errors or asked is None:
            return
        for path, flags in _wanted(asked, row):
            if place_of(path).what in REGISTERED and flags in EPHEMERAL:
                refused = self.refused[(row.broker_address, path)]
                refused.see(row)
                refused.words.add(host_of(row.client_address))
                if exchange.zookeeper is not None and exchange.zookeeper.session:
                    refused.sessions.add(exchange.zookeeper.session)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by session, node and client."""
        stories = trees_of(view)
        for story in stories:
            yield from self._expired(story, view)
        yield from self._twice(stories, view)
        yield from self._reconnects(view)

    def _expired(self, story: TreeStory, view: View) -> Iterator[Finding]:
        for line in story.session_lines():
            if line["state"] != "expired":
                continue
            lost, ended = line["lost_nodes"], line["ended"]
            silence = ended - line["last"] if line["last"] is not None else None
            who = ", ".join(line["who"]) or "no broker"
            name = f"{line['zk_session']} of {spelled(line['client_address'])}"
            if line["who"]:
                name += f" ({spelled(who)})"
            after = f" after {duration(silence)} of silence" if silence else ""
            given = (
                f" (timeout {duration(line['session_timeout'])})" if line["session_timeout"] else ""
            )
            went = (
                f"; {plural(len(lost), 'node')} deleted with it: {listed(lost)}"
                if lost
                else "; no ephemeral nodes of it are known"
            )
            yield view.finding(
                self.rule("zookeeper-expired"),
                f"Session {name} expired{after}{given}{went}",
                f'zk.session == "{line["zk_session"]}"',
                count=max(1, len(lost)),
                first_ns=line["last"] or ended,
                last_ns=ended,
                number=line["number"],
                severity=None if lost else "note",
                about=[
                    ("client", spelled(line["client_address"])),
                    *(("node", node) for node in _brokers(line["who"])),
                    *(("broker", spelled(server)) for server in line["servers"]),
                    ("session", str(line["zk_session"])),
                ],
            )

    def _twice(self, stories: list[TreeStory], view: View) -> Iterator[Finding]:
        at = {server: story for story in stories for server in story.servers}
        for (server, path), refused in self.refused.items():
            story = at.get(str(server))
            if story is None:
                continue
            first_ns = refused.first[0] if refused.first is not None else 0
            owner = _owner(story, str(path), first_ns)
            if owner in refused.sessions:
                continue  # its own node, of a request that was sent again
            place = place_of(str(path))
            what = f"{place.what} {place.first('brokerId') or place.first('memberId')}"
            held = ""
            if owner:
                state = story.state(owner)[0]
                held = f", held by session {label(owner)}"
                held += "" if state == "open" else f" ({state})"
            yield view.finding(
                self.rule("zookeeper-registered-twice"),
                f"{listed(refused.words)} could not register {spelled(what)}: NODEEXISTS for "
                f"{spelled(path)}{held}",
                all_of(
                    f"broker == {quoted(str(server))}",
                    f"path == {quoted(str(path))}",
                    f"error == {NODEEXISTS}",
                ),
                refused,
                about=[
                    *(("client", spelled(host)) for host in refused.words),
                    ("node", str(place.first("brokerId") or place.first("memberId"))),
                ],
            )

    def _reconnects(self, view: View) -> Iterator[Finding]:
        for (host, server), again in self.again.items():
            first_ns = again.first[0] if again.first is not None else None
            rate = (per_second(again.count, first_ns, again.last_ns) or 0) * 60
            if again.count < limit("zookeeper.reconnects"):
                continue
            if rate < limit("zookeeper.reconnects-rate"):
                continue
            yield view.finding(
                self.rule("zookeeper-reconnects"),
                f"{host} reconnected to {server} {again.count:,} times ({rate:.0f} per minute): "
                f"{listed(again.words)}",
                f'client.ip == {host} and broker == "{server}" and api == zk.connect',
                again,
                about=[
                    ("client", str(host)),
                    ("broker", str(server)),
                    *ensemble_at(str(server), view),
                ],
            )


def _brokers(who: list[str]) -> list[str]:
    """Return the numbers of brokers among what a session registered."""
    return [word.removeprefix("broker ") for word in who if word.startswith("broker ")]


def _outcome(told: dict[str, Any] | None) -> str:
    """Return how a handshake ended."""
    if told is None:
        return "no response"
    return "session resumed" if told["session_id"] else "session refused"


def _wanted(asked: dict[str, Any], row: Row) -> Iterator[tuple[str, int]]:
    """Yield path and flags of creates that were refused because the node is there."""
    if "operations" not in asked:
        if any(error.code == NODEEXISTS for error in row.errors) and asked.get("path"):
            yield asked["path"], asked.get("flags", 0)
        return
    there = {error.message for error in row.errors if error.code == NODEEXISTS}
    for each in asked["operations"] or ():
        if each["type"] in CREATES and each["path"] in there:
            yield each["path"], each.get("flags", 0)


def _owner(story: TreeStory, path: str, time_ns: int) -> int:
    """Return the session that held a node at a time; 0 where that is not known."""
    for life in story.lives.get(path, ()):
        if life.begin_ns <= time_ns and (life.end_ns is None or life.end_ns >= time_ns):
            return life.owner
    return 0
