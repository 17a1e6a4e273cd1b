"""Fetch sessions (KIP-227) of a replay: kept where one broker of the peer leads all partitions of a
session, replaced by full requests where several do. Sans-I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.replay.split import topic_of

NO_SESSION: Final = -1

Partition: TypeAlias = tuple[str | bytes, int]
LeaderOf: TypeAlias = Callable[[str | bytes, int], int]


@dataclass(slots=True)
class _Session:
    topics: dict[str | bytes, Body] = field(default_factory=dict)
    """Topic -> its struct, without partitions."""
    partitions: dict[Partition, Body] = field(default_factory=dict)
    node: int = -1
    """That holds the peer's session."""
    live_id: int = 0
    live_epoch: int = 0
    learned: int = 0
    """How often the peer had told leaders when all partitions were that node's."""
    flat: bool = False
    """Several brokers lead its partitions, or the peer has no session for us."""


class Sessions:
    """The sessions of one captured connection."""

    def __init__(self) -> None:
        self._sessions: dict[int, _Session] = {}
        """By the id in the capture."""
        self._asked: _Session | None = None
        """The last request asked for a session; its response brings the id."""

    def request(self, body: Body, leader_of: LeaderOf, learned: int = 0) -> tuple[Body, int | None]:
        """A Fetch as the peer has to get it, and the node that holds its session. None: its
        partitions say which. Topics are in the peer's terms already. `learned`: how often the peer
        has told leaders; between two times they do not change."""
        if "session_id" not in body:
            return body, None
        known, epoch = body["session_id"], body["session_epoch"]
        if epoch == 0:
            return self._begun(known, body, leader_of, learned)
        if epoch == NO_SESSION:
            self._sessions.pop(known, None)
            return {**body, "session_id": 0}, None
        found = self._sessions.get(known)
        if found is None:
            # Began before the capture: what is listed is what is known of it.
            found = self._sessions[known] = _Session(flat=True)
        new = _update(found, body)
        if not found.flat:
            checked = new if found.learned == learned else found.partitions
            others = _leaders(checked, leader_of) - {found.node}
            found.flat = not found.live_id or bool(others)
        if found.flat:
            return _flat(body, found), None
        found.learned = learned
        found.live_epoch += 1
        mapped = {**body, "session_id": found.live_id, "session_epoch": found.live_epoch}
        return mapped, found.node

    def _begun(
        self, known: int, body: Body, leader_of: LeaderOf, learned: int
    ) -> tuple[Body, int | None]:
        self._sessions.pop(known, None)
        session = self._asked = _Session(learned=learned)
        _update(session, body)
        leaders = _leaders(session.partitions, leader_of)
        if len(leaders) > 1:
            session.flat = True
            return _flat(body, session), None
        session.node = leaders.pop() if leaders else -1
        return {**body, "session_id": 0}, session.node

    def response(self, captured: Body, live: Body) -> None:
        """Learn the id of a session that was asked for, or that the peer has let go of one."""
        session, self._asked = self._asked, None
        known = captured.get("session_id")
        if not known:
            return
        if session is not None:
            session.live_id = live.get("session_id", 0)
            self._sessions[known] = session
        elif (held := self._sessions.get(known)) and live.get("session_id") != held.live_id:
            held.flat = True


def _update(session: _Session, body: Body) -> list[Partition]:
    """Take in what a request says; return the partitions that it adds or changes."""
    said = []
    for each in body["topics"]:
        topic = topic_of(each)
        session.topics[topic] = {**each, "partitions": []}
        for part in each["partitions"]:
            session.partitions[topic, part["partition"]] = part
            said.append((topic, part["partition"]))
    for each in body.get("forgotten_topics_data") or ():
        for number in each["partitions"]:
            session.partitions.pop((topic_of(each), number), None)
    return [each for each in said if each in session.partitions]


def _leaders(partitions: Iterable[Partition], leader_of: LeaderOf) -> set[int]:
    return {leader_of(topic, number) for topic, number in partitions}


def _flat(body: Body, session: _Session) -> Body:
    topics: dict[str | bytes, Any] = {}
    for (topic, _), part in session.partitions.items():
        found = topics.setdefault(topic, {**copy(session.topics[topic]), "partitions": []})
        found["partitions"].append(part)
    full = {**body, "session_id": 0, "session_epoch": NO_SESSION, "topics": list(topics.values())}
    if "forgotten_topics_data" in body:
        full["forgotten_topics_data"] = []
    return full
