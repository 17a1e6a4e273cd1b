"""Fetch sessions (KIP-227) and share sessions (KIP-932) of one connection: what an incremental
request implies.

An incremental Fetch lists only the partitions that changed; the broker remembers the others. So
does this module, for sessions seen from their start: sessions that began before the capture are
marked as unknown. Sans-I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, Self, TypeAlias

from kafkascope.analyzer.bodies.limits import LIMITS, BodyLimits
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.dissectors.values import Uuid
from kafkascope.kernel.pairs import SESSION_ERRORS

FETCH: Final = 1
SHARE_FETCH: Final = 78
SHARE_ACKNOWLEDGE: Final = 79
KEYS: Final = frozenset({FETCH, SHARE_FETCH, SHARE_ACKNOWLEDGE})

FINAL_EPOCH: Final = -1
# A fetch offset that a request does not have, as those of ShareFetch.
NOWHERE: Final = -1


# Memory of a partition of a session.
PARTITION_BYTES: Final = 250

# Partitions, and topics, of a session that are listed with each of its requests. Of a larger one
# requests tell the number, and the first topics: with all of them the output would grow with the
# product of partitions and requests.
LISTED: Final = 2_000

Partition: TypeAlias = tuple[str | bytes, int]
"""Topic, by name or id, and partition number."""


class Implied(NamedTuple):
    """What a session fetches; shared by all requests between two changes of it."""

    size: int
    """Partitions."""
    partitions: tuple[Partition, ...] | None
    """All of them; None when they are more than `LISTED`."""
    topics: tuple[str | bytes, ...]
    """Their topics without duplicates, the first `LISTED` of them."""


class Ledger(Protocol):
    """Sum of the memory that is held, where its limit is checked."""

    buffered_bytes: int
    forgotten: int
    """How often partitions were forgotten that did not fit."""
    unlisted_topics: bool
    """Whether a session has more topics than its requests tell."""


class FetchSession(NamedTuple):
    """The session of a request, after the request's changes."""

    id: int | None
    """None in share sessions, which are identified by group and member."""
    epoch: int
    implied: Implied | None
    """What is fetched; None when the session began before the capture."""
    incremental: bool
    """Whether the request lists only what changed."""
    offsets: Mapping[Partition, int] | None = None
    """Fetch offsets of partitions that the response has records of and the request does not
    list: those that an earlier request listed."""


class FetchSessions(Resumable):
    """The sessions of one connection."""

    STATE = ("_sessions", "_topics")

    def __init__(self, ledger: Ledger | None = None, limits: BodyLimits = LIMITS) -> None:
        """`ledger` adds up the memory that is taken."""
        self._ledger, self._limits = ledger, limits
        self._count = 0
        """Partitions of all sessions."""
        self._sessions: dict[Any, dict[Partition, int] | None] = {}
        """Partitions with their last fetch offsets."""
        self._topics: dict[Any, dict[str | bytes, int]] = {}
        """Partitions of each topic, of the sessions that are known."""
        self._shown: dict[Any, Implied | None] = {}
        """Their form in requests, made again only when a session changed."""

    def load(self, state: Dump) -> Self:
        """Restore the state that `dump` returned."""
        for name, partitions in state["_sessions"].items():
            self._show(name, partitions, state["_topics"].get(name, {}), 0)
        return self

    @property
    def held(self) -> int:
        """Memory that the partitions take."""
        return self._count * PARTITION_BYTES

    def evict(self) -> None:
        """Forget the partitions, as if the sessions had begun before the capture: others need the
        memory."""
        for name in list(self._sessions):
            self._keep(name, None)

    def request(self, key: int, body: dict[str, Any]) -> FetchSession | None:
        """Process a request; return its session, None when it has none."""
        return self._fetch(body) if key == FETCH else self._share(key, body)

    def _fetch(self, body: dict[str, Any]) -> FetchSession | None:
        name, epoch = body.get("session_id", 0), body.get("session_epoch", FINAL_EPOCH)
        if name == 0:
            # A full request: with epoch 0 it asks for a session, whose id is in the response.
            return None
        return self.fetch(name, epoch, listed(body), _forgotten(body))

    def fetch(
        self,
        name: int,
        epoch: int,
        listed: Mapping[Partition, int],
        forgotten: tuple[Partition, ...],
    ) -> FetchSession:
        """Process a Fetch request within a session. `listed`: partitions with fetch offsets."""
        if epoch in (FINAL_EPOCH, 0):
            # Ends the session and fetches only what it lists. With epoch 0 it asks for another
            # session.
            self._close(name)
            return FetchSession(name, epoch, _implied(listed), incremental=False)
        return FetchSession(name, epoch, self._change(name, listed, forgotten), incremental=True)

    def _share(self, key: int, body: dict[str, Any]) -> FetchSession:
        name, epoch = (body["group_id"], body["member_id"]), body["share_session_epoch"]
        if epoch == FINAL_EPOCH:
            # The request lists only the last acknowledgements.
            return FetchSession(None, epoch, self._close(name), incremental=False)
        if key == SHARE_ACKNOWLEDGE:
            # Acknowledges within the session without changing it.
            return FetchSession(None, epoch, self._shown.get(name), incremental=True)
        if epoch == 0:
            self._open(name, listed(body))
            return FetchSession(None, epoch, self._shown[name], incremental=False)
        implied = self._change(name, listed(body), _forgotten(body))
        return FetchSession(None, epoch, implied, incremental=True)

    def _change(
        self, name: Any, listed: Mapping[Partition, int], forgotten: tuple[Partition, ...]
    ) -> Implied | None:
        known = self._sessions.get(name)
        if known is None:
            return None
        topics = self._topics[name]
        before = len(known)
        changed = False
        for each, offset in listed.items():
            if each not in known:
                topics[each[0]] = topics.get(each[0], 0) + 1
                changed = True
            known[each] = offset
        for each in forgotten:
            if each in known:
                del known[each]
                topics[each[0]] -= 1
                if not topics[each[0]]:
                    del topics[each[0]]
                changed = True
        if changed:
            self._show(name, known, topics, before)
        return self._shown[name]

    def response(
        self,
        key: int,
        request: dict[str, Any],
        response: dict[str, Any],
        session: FetchSession | None = None,
    ) -> FetchSession | None:
        """Process a response: it opens sessions and ends those that the broker has lost. Return
        the session of the request with what the response implies."""
        error = response.get("error_code", 0)
        if key != FETCH:
            if error in SESSION_ERRORS:
                self._close((request["group_id"], request["member_id"]))
            return session
        old, new = request.get("session_id", 0), response.get("session_id", 0)
        if error in SESSION_ERRORS or (new and request.get("session_epoch") == 0):
            self.fetched(old, new, error, listed(request))
        if session is None:
            return None
        return self.returned(session, _with_records(response) - listed(request).keys())

    def returned(self, session: FetchSession, unlisted: Iterable[Partition]) -> FetchSession:
        """Return the session of a request with the offsets of partitions that only its response
        has."""
        known = self._sessions.get(session.id) or {}
        offsets = {each: known[each] for each in unlisted if each in known}
        return session._replace(offsets=offsets) if offsets else session

    def fetched(self, old: int, new: int, error: int, listed: Mapping[Partition, int]) -> None:
        """Process a response to a Fetch that has lost its session, or asked for one."""
        if error in SESSION_ERRORS:
            self._close(old)
        elif new and not error:
            self._open(new, listed)

    def _open(self, name: Any, partitions: Mapping[Partition, int]) -> None:
        if name not in self._sessions and len(self._sessions) >= self._limits.sessions:
            # Not worth a word: who opens so many goes on with the last ones.
            self._close(next(iter(self._sessions)))
        self._keep(name, dict(partitions))

    def _keep(self, name: Any, partitions: dict[Partition, int] | None) -> None:
        before = self._shown.get(name)
        self._show(name, partitions, _by_topic(partitions or ()), before.size if before else 0)

    def _show(
        self,
        name: Any,
        partitions: dict[Partition, int] | None,
        topics: dict[str | bytes, int],
        before: int,
    ) -> None:
        """Hold what a session has become; `before`: its partitions until then."""
        if partitions is not None and len(partitions) > self._limits.session_partitions:
            partitions = None
            if self._ledger is not None:
                self._ledger.forgotten += 1
        self._sessions[name] = partitions
        if partitions is None:
            self._topics.pop(name, None)
            self._shown[name] = None
        else:
            shown = _implied(partitions, topics)
            last = self._shown.get(name)
            if last is not None and last.topics == shown.topics:
                # Whoever keeps requests keeps one list of topics for most of them.
                shown = shown._replace(topics=last.topics)
            self._topics[name] = topics
            if self._ledger is not None and len(topics) > LISTED:
                self._ledger.unlisted_topics = True
            self._shown[name] = shown
        more = len(partitions or ()) - before
        self._count += more
        if self._ledger is not None and more > 0:
            self._ledger.buffered_bytes += more * PARTITION_BYTES

    def _close(self, name: Any) -> Implied | None:
        self._sessions.pop(name, None)
        self._topics.pop(name, None)
        shown = self._shown.pop(name, None)
        self._count -= shown.size if shown else 0
        return shown


def _by_topic(partitions: Iterable[Partition]) -> dict[str | bytes, int]:
    return dict(Counter(topic for topic, _ in partitions))


def _implied(
    partitions: Collection[Partition], topics: Iterable[str | bytes] | None = None
) -> Implied:
    size = len(partitions)
    shown = tuple(partitions) if size <= LISTED else None
    topics = _by_topic(partitions) if topics is None else topics
    return Implied(size, shown, tuple(islice(topics, LISTED)))


def topic_of(topic: dict[str, Any]) -> str | bytes:
    """Return the name or id of a topic in a Fetch or ShareFetch, in either direction."""
    name: str | bytes = topic["topic"] if "topic" in topic else topic["topic_id"]
    return name


def listed(body: dict[str, Any]) -> dict[Partition, int]:
    """Return the partitions that a request lists for fetching, with their fetch offsets."""
    return {
        (
            topic_of(topic),
            partition["partition"] if "partition" in partition else partition["partition_index"],
        ): partition.get("fetch_offset", NOWHERE)
        for topic in body["topics"] or ()
        for partition in topic["partitions"]
        # In ShareFetch 0, a size of zero means: acknowledged, not fetched.
        if "partition" in partition or partition.get("partition_max_bytes") != 0
    }


def _with_records(answer: dict[str, Any]) -> set[Partition]:
    return {
        (topic_of(topic), partition["partition_index"])
        for topic in answer.get("responses") or ()
        for partition in topic["partitions"]
        if partition.get("records")
    }


def _forgotten(body: dict[str, Any]) -> tuple[Partition, ...]:
    return tuple(
        (topic_of(topic), number)
        for topic in body.get("forgotten_topics_data") or ()
        for number in topic["partitions"]
    )


def by_topic(partitions: tuple[Partition, ...], names: TopicNames) -> dict[str, list[int]]:
    """Return the sorted partitions by topic name (by id where the name is unknown)."""
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        name = topic if isinstance(topic, str) else names.get(topic) or str(Uuid(topic))
        found.setdefault(name, []).append(number)
    return {name: sorted(numbers) for name, numbers in found.items()}
