"""ZooKeeper as a capture showed it: the tree of nodes with its history, and sessions.

A change of the tree has a zxid, and so is one change whether its request was seen, or an answer or
an event showed it later. `story` finds ends of sessions, and nodes that went with them.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.merging.bounded import Events
from kafkascope.analyzer.merging.measures import stretch, whole
from kafkascope.analyzer.merging.tables import Keyed, table
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import (
    Accumulator,
    Exchange,
    Line,
    Row,
    TopicNames,
    columns,
)
from kafkascope.analyzer.statistics.zookeeper import model, operations
from kafkascope.analyzer.statistics.zookeeper.ensembles import ensembles
from kafkascope.analyzer.statistics.zookeeper.story import TreeStory
from kafkascope.dissectors.zookeeper.types import BASE, CLOSE, CONNECT, EVENT, PING, TYPES

LIVING: Final = frozenset({"NodeCreated", "NodeDataChanged", "NodeChildrenChanged"})
"""Watch events of nodes that are there."""
SESSIONEXPIRED: Final = -112
SESSIONMOVED: Final = -118


class ZooKeeper(Accumulator):
    """Nodes, changes, sessions, watch events, slow requests."""

    NAME = "zookeeper"
    KEYS = frozenset(each.key for each in TYPES.values())
    VERSION = 3
    COLUMNS = columns(
        "path what state mode owner (creator) created changed deleted version changes reads "
        "(writes) (failed) (missing) events (children) bytes (number) data (ensemble)"
    )
    SESSION_COLUMNS = columns(
        "zk_session client_address who (user) state created last ended session_timeout "
        "(requested_timeout) connections attached refused (servers) requests failed events "
        "max_latency (ephemerals) lost_nodes (number) (ensemble)",
        kinds={"refused": "count"},
    )
    ELECTION_COLUMNS = columns(
        "time controller controller_epoch zk_session client_address ended end (path) number "
        "(ensemble)",
        kinds={"controller": "count"},
    )
    TOPIC_COLUMNS = columns(
        "topic created (zk_session) client_address partitions changes deletion_requested deleted "
        "(path) number (ensemble)"
    )
    SLOW_COLUMNS = columns(
        "time latency api path zk_session client_address response_bytes number (ensemble)"
    )
    HISTORY_COLUMNS = columns(
        "time path change how version zxid zk_session client_address (who) bytes number data "
        "(ensemble)"
    )

    nodes: Keyed[model.Znode] = table(model.Znode, LIMITS.znodes, unranked=1)
    """By server and path."""
    changes: Keyed[model.ZnodeChange] = table(
        model.ZnodeChange, LIMITS.znode_changes, sample=lambda key: -key[2]
    )
    """By server, path, zxid and kind: created, changed, deleted."""
    sessions: Keyed[model.KeptSession] = table(model.KeptSession, LIMITS.zookeeper_sessions)
    """By id."""
    slow: Keyed[model.SlowRequest] = table(
        model.SlowRequest, LIMITS.slow_requests, sample=lambda key: -key[0]
    )
    """By latency, time and id of the exchange."""
    events: Events = whole(Events)
    """Watch events, once for each client that got it."""
    span: model.ZooKeeperSpan = whole(model.ZooKeeperSpan)

    # --- taking in

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        about, key = exchange.zookeeper, row.api_key
        if about is None or key is None:
            return
        end_ns = row.time_ns + (row.latency_ns or 0)
        stretch(self.span, row.time_ns)
        stretch(self.span, end_ns)
        if about.session is not None:
            self._session(about.session, row, exchange, end_ns)
        if key == BASE + EVENT:
            self._event(row, about.session, about.path, about.event)
            return
        self.span.requests += 1
        zxid = about.zxid
        for operation in operations.operations_of(exchange):
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
            session.take(events=1, first_ns=row.time_ns, last_ns=row.time_ns)
            return
        session.take(failed=int(bool(row.errors)), latency_ns=row.latency_ns)
        if key == BASE + CONNECT:
            self._handshake(session, row, exchange, end_ns)
            return
        answered, codes = exchange.response is not None, [error.code for error in row.errors]
        zxid = exchange.zookeeper.zxid if exchange.zookeeper is not None else None
        closed = key == BASE + CLOSE and answered and not codes
        session.take(
            requests=int(key != BASE + PING),
            expired=codes.count(SESSIONEXPIRED),
            moved=codes.count(SESSIONMOVED),
            first_ns=row.time_ns,
            last_ns=end_ns if answered else row.time_ns,
            closed=(end_ns, zxid or 0) if closed else None,
        )

    def _handshake(
        self, session: model.KeptSession, row: Row, exchange: Exchange, end_ns: int
    ) -> None:
        request, response = exchange.request_body, exchange.response_body
        if request is not None:
            session.take(asked=(row.time_ns, request["timeout_ms"]))
        if response is None:
            return
        at = end_ns, row.number
        if not response["session_id"]:
            session.take(refused=1, refused_at=at)
            return
        session.take(given=(end_ns, response["timeout_ms"]), first_ns=end_ns, last_ns=end_ns)
        if request is not None:
            again = bool(request["session_id"])
            session.take(attached=int(again), created=None if again else at)

    def _event(self, row: Row, session: int | None, path: str | None, event: str) -> None:
        self.span.events += 1
        if not path:
            return
        server, client = row.broker_address, host_of(row.client_address)
        about = {"path": path, "session": session, "client": client, "server": server}
        self.events.note(row, event, about)
        self.nodes[(server, path)].take(
            events=1,
            first=(row.time_ns, row.number),
            first_ns=row.time_ns,
            last_ns=row.time_ns,
            deleted_ns=row.time_ns if event == "NodeDeleted" else None,
            exists_ns=row.time_ns if event in LIVING else None,
        )

    def _operation(
        self, done: operations.ZnodeOperation, row: Row, exchange: Exchange, end_ns: int, zxid: int
    ) -> None:
        server, at = row.broker_address, (row.time_ns, row.number)
        node = self.nodes[(server, done.path)]
        kind, error = done.kind, done.error
        missing = error == operations.NONODE and kind not in operations.CREATES
        there = error == operations.NODEEXISTS or (not error and kind not in operations.DELETES)
        children = None
        if done.children is not None:
            children = end_ns, done.children[: LIMITS.znode_children]
        node.take(
            first=at,
            first_ns=end_ns,
            last_ns=end_ns,
            reads=int(kind in operations.READS and not error),
            writes=int(kind not in operations.READS and not error),
            failed=int(kind not in operations.READS and error != 0),
            missing=int(missing),
            missing_ns=end_ns if missing else None,
            existed=int(error == operations.NODEEXISTS),
            exists_ns=end_ns if there else None,
            largest=(len(done.data), *at) if done.data else None,
            children=children,
        )
        facts: dict[str, Any] = {"told_ns": end_ns, "first": at}
        if done.stat is not None:
            self._stat(done, done.stat, node, server, facts)
        if error or kind not in operations.WRITES or zxid <= 0:
            return
        session = exchange.zookeeper.session if exchange.zookeeper is not None else None
        by = (session or 0, host_of(row.client_address))
        wrote = {**facts, "time_ns": end_ns, "by": by}
        if kind in operations.CREATES:
            change = self.changes[(server, done.path, zxid, "created")]
            owner = session or 0 if done.flags in (1, 3) else 0
            change.take(**wrote, owner=owner, mode=done.flags, **_data(done))
        elif kind in operations.DELETES:
            self.changes[(server, done.path, zxid, "deleted")].take(**wrote)
        elif kind == operations.SET_DATA:
            self.changes[(server, done.path, zxid, "changed")].take(**wrote, **_data(done))

    def _stat(
        self,
        done: operations.ZnodeOperation,
        stat: dict[str, Any],
        node: model.Znode,
        server: str,
        facts: dict[str, Any],
    ) -> None:
        """Note the `Stat` of a node: when it was created, and when its data changed."""
        born, written = stat["czxid"], stat["mzxid"]
        size = stat["data_length"]
        node.take(latest=(written, stat["version"], size, stat["num_children"]))
        read = _data(done) if done.data is not None else {"size": size}
        if born > 0:
            change = self.changes[(server, done.path, born, "created")]
            change.take(**facts, clock_ms=stat["ctime"], owner=stat["ephemeral_owner"])
            if written == born:
                change.take(**read)
        if written > born:
            change = self.changes[(server, done.path, written, "changed")]
            change.take(**facts, clock_ms=stat["mtime"], version=stat["version"], **read)

    # --- telling

    def stories(self) -> list[TreeStory]:
        """Return what happened in each ensemble, in order; of a capture without any, one in which
        nothing did."""
        found = ensembles(self.nodes, self.changes, self.sessions, self.events)
        return [TreeStory(each, self.span.last_ns or 0) for each in found]

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        return self._lines(TreeStory.node_lines)

    def session_lines(self) -> list[Line]:
        lines = self._lines(TreeStory.session_lines)
        return sorted(lines, key=lambda line: line["first"] or line["ended"] or 0)

    def elections(self) -> list[Line]:
        return self._lines(TreeStory.elections, "time")

    def topics(self) -> list[Line]:
        return self._lines(TreeStory.topics, "created")

    def history(self, path: str | None = None) -> list[Line]:
        return self._lines(lambda story: story.history(path), "time")

    def _lines(self, of: Callable[[TreeStory], list[Line]], order: str = "") -> list[Line]:
        """Return the lines of all ensembles, by a column, or in the order of ensembles."""
        lines = [line for story in self.stories() for line in of(story)]
        return sorted(lines, key=itemgetter(order)) if order else lines

    def slowest(self) -> list[Line]:
        names = {server: story.name for story in self.stories() for server in story.servers}
        return [
            {
                "ensemble": names.get(slow.server or "", ""),
                "time": time_ns,
                "latency": latency,
                "api": slow.api,
                "path": slow.path,
                "zk_session": model.label(slow.session),
                "client_address": slow.host,
                "response_bytes": slow.response_bytes,
                "number": slow.number,
            }
            for (latency, time_ns, _), slow in reversed(self.slow.items())
        ]


def _data(done: operations.ZnodeOperation) -> dict[str, Any]:
    return {"size": len(done.data or b""), "text": operations.text_of(done.data, done.path)}
