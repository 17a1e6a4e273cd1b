"""ZooKeeper as a capture showed it: the tree of nodes with its history, and sessions.

A change of the tree has a zxid, and so is one change whether its request was seen, or an answer or
an event told of it later. `story` tells who ended, and which nodes went with them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.merging.compounds import single, table
from kafkascope.analyzer.statistics.merging.events import Events
from kafkascope.analyzer.statistics.merging.measures import stretch
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import (
    Accumulator,
    Column,
    Exchange,
    Line,
    Row,
    TopicNames,
)
from kafkascope.analyzer.statistics.zookeeper.ensembles import ensembles
from kafkascope.analyzer.statistics.zookeeper.model import (
    KeptSession,
    SlowRequest,
    Znode,
    ZnodeChange,
    ZooKeeperSpan,
)
from kafkascope.analyzer.statistics.zookeeper.operations import (
    CREATES,
    DELETES,
    NODEEXISTS,
    NONODE,
    READS,
    SET_DATA,
    WRITES,
    ZnodeOperation,
    operations_of,
    text_of,
)
from kafkascope.analyzer.statistics.zookeeper.story import TreeStory, label
from kafkascope.dissectors.zookeeper.types import BASE, CLOSE, CONNECT, EVENT, PING, TYPES

MAX_NODES: Final = 10_000
MAX_CHANGES: Final = 20_000
"""Of all nodes; the latest are kept."""
MAX_SESSIONS: Final = 5_000
MAX_CHILDREN: Final = 1_000
"""Names of one list."""
MAX_SLOW: Final = 50
SESSIONEXPIRED: Final = -112
SESSIONMOVED: Final = -118


class ZooKeeper(Accumulator):
    """Nodes, changes, sessions, watch events, slow requests."""

    NAME = "zookeeper"
    KEYS = frozenset(each.key for each in TYPES.values())
    VERSION = 2
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("path"),
        Column("what"),
        Column("state"),
        Column("mode"),
        Column("owner"),
        Column("creator", wide=True),
        Column("created", "time"),
        Column("changed", "time"),
        Column("deleted", "time"),
        Column("version", "count"),
        Column("changes", "count"),
        Column("reads", "count"),
        Column("writes", "count", wide=True),
        Column("failed", "count", wide=True),
        Column("missing", "count", wide=True),
        Column("events", "count"),
        Column("children", "count", wide=True),
        Column("bytes", "size"),
        Column("number", "count", wide=True),
        Column("data"),
        Column("ensemble", wide=True),
    )
    SESSION_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("zk_session"),
        Column("client_address"),
        Column("who", "list"),
        Column("user", wide=True),
        Column("state"),
        Column("created", "time"),
        Column("last", "time"),
        Column("ended", "time"),
        Column("session_timeout", "duration"),
        Column("requested_timeout", "duration", wide=True),
        Column("connections", "count"),
        Column("attached", "count"),
        Column("refused", "count"),
        Column("servers", "list", wide=True),
        Column("requests", "count"),
        Column("failed", "count"),
        Column("events", "count"),
        Column("max_latency", "duration"),
        Column("ephemerals", "list", wide=True),
        Column("lost_nodes", "list"),
        Column("number", "count", wide=True),
        Column("ensemble", wide=True),
    )
    ELECTION_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("time", "time"),
        Column("controller", "count"),
        Column("controller_epoch", "count"),
        Column("zk_session"),
        Column("client_address"),
        Column("ended", "time"),
        Column("end"),
        Column("path", wide=True),
        Column("number", "count"),
        Column("ensemble", wide=True),
    )
    TOPIC_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("topic"),
        Column("created", "time"),
        Column("zk_session", wide=True),
        Column("client_address"),
        Column("partitions", "count"),
        Column("changes", "count"),
        Column("deletion_requested", "time"),
        Column("deleted", "time"),
        Column("path", wide=True),
        Column("number", "count"),
        Column("ensemble", wide=True),
    )
    SLOW_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("time", "time"),
        Column("latency", "duration"),
        Column("api"),
        Column("path"),
        Column("zk_session"),
        Column("client_address"),
        Column("response_bytes", "size"),
        Column("number", "count"),
        Column("ensemble", wide=True),
    )
    HISTORY_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("time", "time"),
        Column("path"),
        Column("change"),
        Column("how"),
        Column("version", "count"),
        Column("zxid"),
        Column("zk_session"),
        Column("client_address"),
        Column("who", "list", wide=True),
        Column("bytes", "size"),
        Column("number", "count"),
        Column("data"),
        Column("ensemble", wide=True),
    )

    nodes: Keyed[Znode] = table(Znode, MAX_NODES, unranked=1)
    """By server and path."""
    changes: Keyed[ZnodeChange] = table(ZnodeChange, MAX_CHANGES, sample=lambda key: -key[2])
    """By server, path, zxid and kind: created, changed, deleted."""
    sessions: Keyed[KeptSession] = table(KeptSession, MAX_SESSIONS)
    """By id."""
    slow: Keyed[SlowRequest] = table(SlowRequest, MAX_SLOW, sample=lambda key: -key[0])
    """By latency, time and id of the exchange."""
    events: Events = single(Events)
    """Watch events, once for each client that was told."""
    whole: ZooKeeperSpan = single(ZooKeeperSpan)

    # --- taking in

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange or a watch event."""
        about, key = exchange.zookeeper, row.api_key
        if about is None or key is None:
            return
        end_ns = row.time_ns + (row.latency_ns or 0)
        stretch(self.whole, row.time_ns)
        stretch(self.whole, end_ns)
        if about.session is not None:
            self._session(about.session, row, exchange, end_ns)
        if key == BASE + EVENT:
            self._event(row, about.session, about.path, about.event)
            return
        self.whole.requests += 1
        zxid = about.zxid
        for operation in operations_of(exchange):
            self._operation(operation, row, exchange, end_ns, zxid or 0)
        if row.latency_ns is not None:
            slow = self.slow[(row.latency_ns, row.time_ns, row.id)]
            slow.take(
                number=row.number,
                api=row.api,
                path=about.path,
                server=row.broker_address,
                session=about.session,
                host=host_of(row.client_address),
                response_bytes=row.response_bytes,
            )

    def _session(self, id_: int, row: Row, exchange: Exchange, end_ns: int) -> None:
        session, key = self.sessions[(id_,)], row.api_key
        connection = exchange.connection
        session.clients.add((row.client_address, connection.first_ns))
        session.hosts.add(host_of(row.client_address))
        session.servers.add(row.broker_address)
        if row.user:
            session.users.add(row.user)
        if key == BASE + EVENT:
            session.events += 1
            stretch(session, row.time_ns)
            return
        answered = exchange.response is not None
        session.failed += bool(row.errors)
        session.take(asked_ns=row.time_ns, latency_ns=row.latency_ns)
        if key == BASE + CONNECT:
            self._handshake(session, row, exchange, end_ns)
            return
        if key == BASE + PING:
            session.pings += 1
        else:
            session.requests += 1
        for error in row.errors:
            session.expired += error.code == SESSIONEXPIRED
            session.moved += error.code == SESSIONMOVED
        stretch(session, row.time_ns)
        if answered:
            stretch(session, end_ns)
        if key == BASE + CLOSE and answered and not row.errors:
            zxid = exchange.zookeeper.zxid if exchange.zookeeper is not None else None
            session.take(closed=(end_ns, zxid or 0))

    def _handshake(self, session: KeptSession, row: Row, exchange: Exchange, end_ns: int) -> None:
        asked, told = exchange.request_body, exchange.response_body
        if asked is not None:
            session.take(asked=(row.time_ns, asked["timeout_ms"]))
        if told is None:
            return
        if not told["session_id"]:
            session.refused += 1
            session.take(refused_at=(end_ns, row.number))
            return
        session.take(given=(end_ns, told["timeout_ms"]))
        if asked is not None and asked["session_id"]:
            session.attached += 1
            session.take(attached_ns=end_ns)
        elif asked is not None:
            session.take(created=(end_ns, row.number))
        stretch(session, end_ns)

    def _event(self, row: Row, session: int | None, path: str | None, event: str) -> None:
        self.whole.events += 1
        if not path:
            return
        server, client = row.broker_address, host_of(row.client_address)
        about = {"path": path, "session": session, "client": client, "server": server}
        self.events.note(row, event, about)
        node = self.nodes[(server, path)]
        node.events += 1
        node.take(first=(row.time_ns, row.number))
        stretch(node, row.time_ns)
        if event == "NodeDeleted":
            node.take(deleted_ns=row.time_ns)
        elif event in ("NodeCreated", "NodeDataChanged", "NodeChildrenChanged"):
            node.take(exists_ns=row.time_ns)

    def _operation(
        self, done: ZnodeOperation, row: Row, exchange: Exchange, end_ns: int, zxid: int
    ) -> None:
        server = row.broker_address
        node = self.nodes[(server, done.path)]
        kind, error, stat = done.kind, done.error, done.stat
        node.take(first=(row.time_ns, row.number))
        stretch(node, end_ns)
        if kind in READS:
            node.reads += not error
        elif error:
            node.failed += 1
        else:
            node.writes += 1
        if error == NONODE and kind not in CREATES:
            node.missing += 1
            node.take(missing_ns=end_ns)
        elif error == NODEEXISTS:
            node.existed += 1
            node.take(exists_ns=end_ns)
        if error:
            return
        if done.data:
            node.take(largest=(len(done.data), row.time_ns, row.number))
        told: dict[str, Any] = {"told_ns": end_ns, "first": (row.time_ns, row.number)}
        if kind not in DELETES:
            node.take(exists_ns=end_ns)
        if stat is not None:
            self._stat(done, stat, node, server, told)
        if done.children is not None:
            node.take(children=(end_ns, done.children[:MAX_CHILDREN]))
        if kind not in WRITES or zxid <= 0:
            return
        session = exchange.zookeeper.session if exchange.zookeeper is not None else None
        by = (session or 0, host_of(row.client_address))
        wrote = {**told, "time_ns": end_ns, "by": by}
        if kind in CREATES:
            change = self.changes[(server, done.path, zxid, "created")]
            owner = session or 0 if done.flags in (1, 3) else 0
            change.take(**wrote, owner=owner, mode=done.flags, **_data(done))
        elif kind in DELETES:
            self.changes[(server, done.path, zxid, "deleted")].take(**wrote)
        elif kind == SET_DATA:
            self.changes[(server, done.path, zxid, "changed")].take(**wrote, **_data(done))

    def _stat(
        self,
        done: ZnodeOperation,
        stat: dict[str, Any],
        node: Znode,
        server: str,
        told: dict[str, Any],
    ) -> None:
        """Take note of what is told of a node: when it was created, and when its data changed."""
        born, written = stat["czxid"], stat["mzxid"]
        size = stat["data_length"]
        node.take(latest=(written, stat["version"], size, stat["num_children"]))
        read = _data(done) if done.data is not None else {"size": size}
        if born > 0:
            change = self.changes[(server, done.path, born, "created")]
            change.take(**told, clock_ms=stat["ctime"], owner=stat["ephemeral_owner"])
            if written == born:
                change.take(**read)
        if written > born:
            change = self.changes[(server, done.path, written, "changed")]
            change.take(**told, clock_ms=stat["mtime"], version=stat["version"], **read)

    # --- telling

    def stories(self) -> list[TreeStory]:
        """Return what happened in each ensemble, in order; of a capture without any, one in which
        nothing did."""
        found = ensembles(self.nodes, self.changes, self.sessions, self.events)
        return [TreeStory(each, self.whole.last_ns or 0) for each in found]

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per node, in the order of ensembles and paths."""
        return [line for story in self.stories() for line in story.node_lines()]

    def session_lines(self) -> list[Line]:
        """Return one line per session, the oldest first."""
        lines = [line for story in self.stories() for line in story.session_lines()]
        return sorted(lines, key=lambda line: line["first"] or line["ended"] or 0)

    def elections(self) -> list[Line]:
        """Return one line for each time that a broker became the controller."""
        lines = [line for story in self.stories() for line in story.elections()]
        return sorted(lines, key=lambda line: line["time"])

    def topics(self) -> list[Line]:
        """Return one line for each topic that was created, or asked to be deleted."""
        lines = [line for story in self.stories() for line in story.topics()]
        return sorted(lines, key=lambda line: line["created"])

    def history(self, path: str | None = None) -> list[Line]:
        """Return what happened to a node, or to all, in order of time."""
        lines = [line for story in self.stories() for line in story.history(path)]
        return sorted(lines, key=lambda line: line["time"])

    def slowest(self) -> list[Line]:
        """Return the slowest requests, the slowest first."""
        names = {server: story.name for story in self.stories() for server in story.servers}
        return [
            {
                "ensemble": names.get(slow.server or "", ""),
                "time": time_ns,
                "latency": latency,
                "api": slow.api,
                "path": slow.path,
                "zk_session": label(slow.session),
                "client_address": slow.host,
                "response_bytes": slow.response_bytes,
                "number": slow.number,
            }
            for (latency, time_ns, _), slow in reversed(self.slow.items())
        ]


def _data(done: ZnodeOperation) -> dict[str, Any]:
    return {"size": len(done.data or b""), "text": text_of(done.data, done.path)}
