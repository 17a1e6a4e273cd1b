"""Names of topics by id: one map for a whole session, over all its connections (KIP-516).

A name may come after messages that had only the id. Until then `short_id` replaces it in rows,
columns, tables and files; `nameless` recognizes it, and `TopicNames.late` returns the name once a
message had it. Statistics keep whole ids (`statistics.model.topic_key`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Final, NamedTuple

from kafkascope.dissectors.values import Uuid

CLUSTER_METADATA: Final = ("__cluster_metadata", bytes(15) + b"\x01")
"""The only topic whose id is fixed."""


class TopicLimits(NamedTuple):
    """`ConversationLimits` has them as `topics`."""

    # Far more topics than any cluster has; the limit keeps hostile input from filling the memory.
    # Of more than these the ids stay in place of the names.
    names: int = 500_000
    # Characters of all names, and of one: Kafka allows 249, but there is room on the wire for so
    # many.
    all_chars: int = 64 << 20
    name_chars: int = 1 << 15


LIMITS: Final = TopicLimits()


def short_id(topic_id: bytes) -> str:
    """Return the placeholder of a topic whose name is not known."""
    return f"{Uuid(topic_id)!s:.8}?"


def nameless(topic: str) -> bool:
    """Whether a topic is a `short_id`, not a name."""
    return topic[-1:] == "?"


class TopicNames:
    """Maps topic ids to names, as far as messages contained both."""

    def __init__(self, limits: TopicLimits = LIMITS) -> None:
        self._limits = limits
        self._names: dict[bytes, str] = {CLUSTER_METADATA[1]: CLUSTER_METADATA[0]}
        self.changes = 0
        """How often a name was learned."""
        self._letters = 0
        """Characters of all names."""
        self._short: dict[str, bytes] = {}
        """Made when somebody asks, of so many names."""
        self._indexed = 0

    def learn(self, topic_id: bytes, name: str | None) -> None:
        """Note an id with its name; zero ids and empty names are ignored."""
        if not name or not any(topic_id):
            return
        known = self._names.get(topic_id)
        if known == name:
            return
        letters, limits = self._letters + len(name) - len(known or ""), self._limits
        if letters <= limits.all_chars and (known is not None or len(self._names) < limits.names):
            self._names[topic_id] = name
            self._letters = letters
            self.changes += 1

    def learn_all(self, names: Mapping[bytes, str]) -> None:
        for topic_id, name in names.items():
            self.learn(topic_id, name)

    def get(self, topic_id: bytes) -> str | None:
        """The name, None while it is not known."""
        return self._names.get(topic_id)

    def late(self, topic: str) -> str:
        """Return the name learned since for a `short_id`; any other topic as it is."""
        if not nameless(topic):
            return topic
        new = len(self._names) - self._indexed
        if new:
            # From their end: to skip those before costs as much as they are.
            for each in reversed(list(islice(reversed(self._names), new))):
                self._short[short_id(each)] = each
            self._indexed = len(self._names)
        topic_id = self._short.get(topic)
        return topic if topic_id is None else self._names[topic_id]

    def late_all(self, topics: tuple[str, ...]) -> tuple[str, ...]:
        """Topics with the names learned since, each once; the same tuple without any."""
        if not any(map(nameless, topics)):
            return topics
        found = tuple(dict.fromkeys(map(self.late, topics)))
        return topics if found == topics else found

    def all(self) -> dict[bytes, str]:
        """All pairs, in the order in which they were learned; not to be changed."""
        return self._names

    @property
    def full(self) -> bool:
        """Whether a name more may have no room."""
        limits = self._limits
        room = limits.all_chars - limits.name_chars
        return len(self._names) >= limits.names or self._letters > room

    def __len__(self) -> int:
        return len(self._names)
