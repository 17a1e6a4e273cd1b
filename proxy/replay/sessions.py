"""Fetch sessions (KIP-227) of a replay: a session of the capture becomes one with each node of the
peer that leads a partition of it. Sans-I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import fitted
from kafkascope.dissectors.layout import Layout
from kafkascope.proxy.replay.split import by_leader, topic_of

# By name, or by the peer's id.
Topic: TypeAlias = str | bytes
Partition: TypeAlias = tuple[Topic, int]

UNKNOWN: Final = -1


class Leaders:
    """The leaders of partitions, in the order in which they were learned."""

    def __init__(self) -> None:
        self._nodes: dict[Partition, tuple[int, int]] = {}
        """Partition -> (node, number of the change), by that number."""
        self.changes = 0
        """How often a partition got a leader that it did not have."""

    def learn(self, partition: Partition, node: int) -> None:
        if self.of(*partition) != node:
            self.changes += 1
            self._nodes.pop(partition, None)
            self._nodes[partition] = (node, self.changes)

    def of(self, topic: Topic, number: int) -> int:
        return self._nodes.get((topic, number), (UNKNOWN, 0))[0]

    def changed(self, since: int) -> Iterator[Partition]:
        """Yield the partitions that changed after so many `changes`, the last first."""
        for partition, (_, change) in reversed(self._nodes.items()):
            if change <= since:
                return
            yield partition


NO_SESSION: Final = -1
FORGOTTEN: Final = "forgotten_topics_data"


@dataclass(slots=True)
class _Held:
    """A session with a node."""

    id: int = 0
    """0: none yet, or none any more."""
    epoch: int = 0
    partitions: dict[Partition, Body] = field(default_factory=dict)
    said: dict[Partition, Body] = field(default_factory=dict)
    """What the node has to hear, so that its session holds what it leads."""
    forgotten: list[Partition] = field(default_factory=list)


class _Session:
    """A session of the capture, with those of the peer, by node."""

    def __init__(self, layout: Layout, leaders: Leaders) -> None:
        self.held: dict[int, _Held] = {}
        self._topics: dict[Topic, Body] = {}
        """Topic -> its struct, without partitions."""
        self._nodes: dict[Partition, int] = {}
        self._seen = leaders.changes
        self._layout = layout
        self._mixed = False
        """Requests of several versions made it."""

    def take(self, layout: Layout, body: Body, leaders: Leaders) -> dict[int, Body]:
        self._mixed |= layout is not self._layout
        for held in self.held.values():
            held.said, held.forgotten = {}, []
        moved = self._follow(leaders)
        for each in body["topics"]:
            topic = topic_of(each)
            self._topics[topic] = {**each, "partitions": []}
            for part in each["partitions"]:
                place = (topic, part["partition"])
                self._place(place, part, leaders.of(*place))
        for each in body.get(FORGOTTEN) or ():
            for number in each["partitions"]:
                self._forget((topic_of(each), number))
        nodes = [node for node, held in self.held.items() if held.partitions or held.forgotten] or [
            next(iter(self.held), UNKNOWN)
        ]
        if len(self.held) == 1 and not moved and not self._mixed:
            held = self.held[nodes[0]]
            if held.id:
                held.epoch += 1
                return {nodes[0]: {**body, "session_id": held.id, "session_epoch": held.epoch}}
        requests = {node: self._request(body, node) for node in nodes}
        return {k: fitted(layout, v) for k, v in requests.items()} if self._mixed else requests

    def _follow(self, leaders: Leaders) -> bool:
        """Move the partitions that have other leaders now; return whether there are some."""
        if self._seen == leaders.changes:
            return False
        most = len(self._nodes)
        changed = list(islice(leaders.changed(self._seen), most + 1))
        self._seen = leaders.changes
        # With many changes it is less to look at all that the session has.
        moved = False
        for place in changed if len(changed) <= most else list(self._nodes):
            node = self._nodes.get(place)
            if node is not None and node != leaders.of(*place):
                self._place(place, self.held[node].partitions[place], leaders.of(*place))
                moved = True
        return moved

    def _place(self, place: Partition, part: Body, node: int) -> None:
        if self._nodes.get(place, node) != node:
            self._forget(place)
        self._nodes[place] = node
        held = self.held.setdefault(node, _Held())
        held.partitions[place] = held.said[place] = part

    def _forget(self, place: Partition) -> None:
        node = self._nodes.pop(place, None)
        if node is not None:
            del self.held[node].partitions[place]
            self.held[node].forgotten.append(place)

    def _request(self, body: Body, node: int) -> Body:
        held = self.held.setdefault(node, _Held())
        if held.id:
            held.epoch += 1
            listed, forgotten = held.said, held.forgotten
        else:
            held.epoch = 0
            listed, forgotten = held.partitions, []
        request = {**body, "session_id": held.id, "session_epoch": held.epoch}
        request["topics"] = self._by_topic(listed, listed)
        if FORGOTTEN in body:
            numbers = {place: place[1] for place in forgotten}
            request[FORGOTTEN] = self._by_topic(forgotten, numbers)
        return request

    def _by_topic(self, places: Iterable[Partition], values: Mapping[Partition, Any]) -> list[Body]:
        partitions: dict[Topic, list[Any]] = {}
        for place in places:
            partitions.setdefault(place[0], []).append(values[place])
        return [{**self._topics[name], "partitions": parts} for name, parts in partitions.items()]


class Sessions:
    """The sessions of one captured connection."""

    def __init__(self) -> None:
        self._sessions: dict[int, _Session] = {}
        self._pending: dict[int, tuple[_Session, bool]] = {}
        """Exchange -> its session, and whether it begins there."""

    def request(
        self, exchange: int, layout: Layout, body: Body, leaders: Leaders
    ) -> dict[int, Body]:
        """Node -> what it has to get of a Fetch whose topics are in the peer's terms already.
        `exchange`: its number."""
        if "session_id" not in body:
            return by_leader(layout, body, leaders.of)
        known, epoch = body["session_id"], body["session_epoch"]
        if epoch == NO_SESSION:
            return self._ended(layout, body, leaders)
        session = None if epoch == 0 else self._sessions.get(known)
        if epoch == 0:
            self._sessions.pop(known, None)
        if session is None:
            session = _Session(layout, leaders)
            if epoch:
                # Began before the capture: what is listed from here on is what is known of it.
                self._sessions[known] = session
        self._pending[exchange] = (session, epoch == 0)
        return session.take(layout, body, leaders)

    def _ended(self, layout: Layout, body: Body, leaders: Leaders) -> dict[int, Body]:
        """A request without a session, which closes the one that it names."""
        session = self._sessions.pop(body["session_id"], None)
        held = {} if session is None else session.held
        ids = {node: each.id for node, each in held.items() if each.id}
        parts = {node: {**body, "topics": [], FORGOTTEN: []} for node in ids}
        if body["topics"] or not ids:
            parts |= by_leader(layout, body, leaders.of)
        return {node: {**part, "session_id": ids.get(node, 0)} for node, part in parts.items()}

    def answered(self, exchange: int, node: int, live: Body) -> None:
        session, _ = self._pending.get(exchange, (None, False))
        held = None if session is None else session.held.get(node)
        if held is not None and (not held.id or live.get("session_id") != held.id):
            # After 0 all is said anew: the peer has no room for sessions, or forgot this one.
            held.id = 0 if held.id else live.get("session_id", 0)

    def done(self, exchange: int, captured: Body | None) -> None:
        """Learn the id that the capture has for the session of an exchange; its answers are all
        there, or never come."""
        session, begins = self._pending.pop(exchange, (None, False))
        known = None if captured is None else captured.get("session_id")
        if session is not None and begins and known:
            self._sessions[known] = session
