"""What the paths of ZooKeeper's nodes mean to Kafka: which of their parts are names, and of what.

A path may stand below another one that people chose (chroot): `/kafka/prod/brokers/ids/1`. Sources:
Kafka's `ZkUtils` (0.8) and `zkData.scala` (1.1 to 3.9).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from kafkascope.dissectors.limits import LIMITS

KEPT_OFFSET: Final = "offset of a group"
NODES: Final[dict[str, str]] = {
    "admin/delete_topics/{topicName}": "topic to be deleted",
    "admin/preferred_replica_election": "election of preferred leaders",
    "admin/reassign_partitions": "reassignment",
    "brokers/ids/{brokerId}": "broker",
    "brokers/seqid": "counter of broker ids",
    "brokers/topics/{topicName}": "topic",
    "brokers/topics/{topicName}/partitions/{partition}": "partition",
    "brokers/topics/{topicName}/partitions/{partition}/state": "partition state",
    "cluster/id": "cluster id",
    "config/brokers/{brokerId}": "configs of a broker",
    "config/changes/config_change_{number}": "change of configs",
    "config/clients/{clientId}": "quotas of a client",
    "config/ips/{address}": "quotas of an address",
    "config/topics/{topicName}": "configs of a topic",
    "config/users/{principal}": "configs of a user",
    "config/users/{principal}/clients/{clientId}": "quotas of a user's client",
    "consumers/{groupId}/ids/{memberId}": "consumer",
    "consumers/{groupId}/offsets/{topicName}/{partition}": KEPT_OFFSET,
    "consumers/{groupId}/owners/{topicName}/{partition}": "owner of a partition",
    "controller": "controller",
    "controller_epoch": "controller epoch",
    "delegation_token/token_changes/token_change_{number}": "change of a delegation token",
    "delegation_token/tokens/{tokenId}": "delegation token",
    "feature": "features",
    "isr_change_notification/isr_change_{number}": "change of in-sync replicas",
    "kafka-acl-changes/acl_changes_{number}": "change of ACLs",
    "kafka-acl-extended-changes/acl_changes_{number}": "change of ACLs",
    "kafka-acl-extended/prefixed/{resourceType}/{resourceName}": "ACLs",
    "kafka-acl/{resourceType}/{resourceName}": "ACLs",
    "latest_producer_id_block": "producer ids",
    "log_dir_event_notification/log_dir_event_{number}": "failed log directory",
    "migration": "migration to KRaft",
}
"""Paths, with the kinds of their names in braces, and what is there. What stands above one of them
is known too."""

WORDS: Final = frozenset({"number", "partition", "brokerId", "resourceType"})
"""Kinds of parts that name nothing of people."""

_SEQUENCE: Final = re.compile(r"-?\d{10}")


class PathPart(NamedTuple):
    """One part of a path."""

    text: str
    kind: str
    """What the part names: topicName, groupId, ...; empty for a word of Kafka's; "chroot" for what
    stands before; "unknown"."""


class PathMeaning(NamedTuple):
    """Meaning of a path."""

    what: str
    """What is there: a meaning of `NODES`; empty above and beside them."""
    steps: tuple[PathPart, ...]

    def first(self, kind: str) -> str | None:
        """Return the first part that names something of a kind."""
        return next((step.text for step in self.steps if step.kind == kind), None)

    @property
    def chroot(self) -> str:
        """The path that all nodes of a cluster stand below; empty for none."""
        return "".join(f"/{step.text}" for step in self.steps if step.kind == "chroot")


_PATTERNS: Final = tuple((pattern.split("/"), what) for pattern, what in NODES.items())
_ROOTS: Final = frozenset(parts[0] for parts, _ in _PATTERNS)


_DEEPEST: Final = max(len(pattern) for pattern, _ in _PATTERNS)


def place_of(path: str) -> PathMeaning:
    """Return what a path means. The deepest chroot that makes sense of all that follows is taken
    last: `/config/config/topics` is a node of a cluster below /config."""
    return _kept_place(path) if len(path) <= LIMITS.znode_path_chars else _place(path)


def _place(path: str) -> PathMeaning:
    parts = path.split("/")[1:] if path.startswith("/") else path.split("/")
    if parts == [""]:
        return PathMeaning("", ())
    for begin in range(max(0, len(parts) - _DEEPEST), len(parts)):
        if parts[begin] in _ROOTS:
            found = _matched(parts[begin:])
            if found is not None:
                what, steps = found
                above = tuple(PathPart(each, "chroot") for each in parts[:begin])
                return PathMeaning(what, above + steps)
    return PathMeaning("", tuple(PathPart(each, "unknown") for each in parts))


_kept_place: Final = lru_cache(4096)(_place)


def _matched(parts: list[str]) -> tuple[str, tuple[PathPart, ...]] | None:
    """Match parts with a node, or with what stands above one."""
    best: tuple[str, tuple[PathPart, ...]] | None = None
    for pattern, what in _PATTERNS:
        if len(parts) > len(pattern):
            continue
        steps = tuple(map(_step, pattern, parts))
        if None in steps:
            continue
        found = tuple(step for step in steps if step is not None)
        if len(parts) == len(pattern):
            return what, found
        best = best or ("", found)
    return best


def _step(pattern: str, text: str) -> PathPart | None:
    """Match one part of a path."""
    before, brace, rest = pattern.partition("{")
    if not brace:
        return PathPart(text, "") if text == pattern else None
    if not text.startswith(before):
        return None
    kind = rest[:-1]
    # A sequential node is asked for by the name before its number.
    if kind == "number" and text[len(before) :] and not _SEQUENCE.fullmatch(text[len(before) :]):
        return None
    return PathPart(text, kind)
