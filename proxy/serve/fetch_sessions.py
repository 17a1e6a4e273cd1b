"""Fetch sessions of clients (KIP-227): what a client wants to read, and what it was told of it.
Sans-I/O."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.serve.request import Code, ErrorResponse, naming, size_of

# The epoch of a request that wants none, and ends the one that it names.
NO_SESSION: Final = -1
# The epoch of a request that wants one.
FIRST: Final = 0
LAST_EPOCH: Final = 0x7FFFFFFF
# The first id is one of these: what a client still holds of an earlier run is not ours.
IDS: Final = 1 << 30

# A topic's name or id, as the client names it, and a partition's number.
Key: TypeAlias = tuple[str | bytes, int]


class TopicPartition(NamedTuple):
    """A partition."""

    name: str
    topic_id: bytes
    number: int


@dataclass(slots=True)
class SessionPartition:
    """A partition of a session."""

    topic: Body
    """What names its topic in requests and responses."""
    partition: Body
    sent: tuple[int, int] | None = None
    """The high watermark and the start of the log in the last response. None: it has to be told
    whatever there is."""


class Changes:
    """Which partitions changed, in the order of their last changes."""

    def __init__(self) -> None:
        self.count = 0
        self._of: dict[TopicPartition, int] = {}

    def note(self, place: TopicPartition) -> None:
        self.count += 1
        self._of.pop(place, None)
        self._of[place] = self.count

    def since(self, count: int) -> Iterator[TopicPartition]:
        for place, at in reversed(self._of.items()):
            if at <= count:
                return
            yield place


@dataclass(slots=True)
class FetchSession:
    """The partitions that a client reads. One that is not kept is that of a single request."""

    id: int = 0
    epoch: int = FIRST
    """Epoch of the next request."""
    partitions: dict[Key, SessionPartition] = field(default_factory=dict)
    due: dict[Key, None] = field(default_factory=dict)
    """Those that may have something to tell, in the order in which they are read."""
    seen: int = 0
    """How many changes were looked at."""
    bytes: int = 0

    def update(self, body: Body) -> None:
        for topic in body["topics"]:
            named = naming(topic)
            for part in topic["partitions"]:
                key = _key(topic, part["partition"])
                known = self.partitions.get(key)
                if known is None:
                    self.partitions[key] = SessionPartition(named, part)
                    self.bytes += size_of(key[0])
                else:
                    known.partition = part
                self.due[key] = None
        for topic in body.get("forgotten_topics_data") or ():
            for number in topic["partitions"]:
                key = _key(topic, number)
                if self.partitions.pop(key, None) is not None:
                    self.due.pop(key, None)
                    self.bytes -= size_of(key[0])

    def changed(self, changes: Changes) -> bool:
        """Take in what changed since the last call; return whether that is about this session."""
        found = False
        for place in changes.since(self.seen):
            for key in ((place.name, place.number), (place.topic_id, place.number)):
                if key in self.partitions:
                    self.due[key] = None
                    found = True
        self.seen = changes.count
        return found


class FetchSessions:
    """The sessions of all clients; the one that was not used for longest makes room for others."""

    def __init__(self, changes: Changes, limits: Limits) -> None:
        self._changes = changes
        self._limits = limits
        self._by_id: dict[int, FetchSession] = {}
        """By id, in the order of their last use."""
        self._bytes = 0
        self._next = random.randrange(1, IDS)

    def of(self, body: Body) -> FetchSession:
        """Return the session that a Fetch continues or begins."""
        number, epoch = body.get("session_id", 0), body.get("session_epoch", NO_SESSION)
        if epoch in (NO_SESSION, FIRST):
            self._end(number)
            session = FetchSession(seen=self._changes.count)
            session.update(body)
            if epoch == FIRST:
                session.id, session.epoch = self._next, FIRST + 1
                self._next += 1
                self._keep(session)
            return session
        known = self._by_id.get(number)
        if known is None:
            raise ErrorResponse(Code.FETCH_SESSION_ID_NOT_FOUND)
        if epoch != known.epoch:
            raise ErrorResponse(Code.INVALID_FETCH_SESSION_EPOCH)
        self._end(number)
        known.update(body)
        known.changed(self._changes)
        known.epoch = epoch + 1 if epoch < LAST_EPOCH else FIRST + 1
        self._keep(known)
        return known

    def _keep(self, session: FetchSession) -> None:
        """Keep a session; it loses its id when there is no room, or nothing to keep."""
        most, most_bytes = self._limits.fetch_sessions, self._limits.fetch_session_bytes
        if not session.partitions or session.bytes > most_bytes:
            session.id = 0
            return
        while len(self._by_id) >= most or self._bytes + session.bytes > most_bytes:
            self._end(next(iter(self._by_id)))
        self._by_id[session.id] = session
        self._bytes += session.bytes

    def _end(self, number: int) -> None:
        gone = self._by_id.pop(number, None)
        if gone is not None:
            self._bytes -= gone.bytes


def _key(topic: Body, number: int) -> Key:
    return topic.get("topic") or bytes(topic.get("topic_id") or b""), number
