"""The live cluster: nodes, leaders, coordinators, topic ids, versions; asked once and kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import fitted
from kafkascope.dissectors.registry import APIS, api_named, layout_of
from kafkascope.dissectors.values import Versions
from kafkascope.proxy.limits import remember
from kafkascope.proxy.replay.peer import Peer, PeerError, Reach, Unreadable
from kafkascope.proxy.replay.sessions import Leaders

# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: asked again.
NOT_AVAILABLE: Final = frozenset({14, 15, 16})
LEADER_NOT_AVAILABLE: Final = 5
# Of CreateTopics: -1 asks for the cluster's own replication factor (KIP-464).
DEFAULT_FACTOR: Final = Versions.parse("4+")


class LiveCluster:
    """The live cluster, known through a bootstrap connection of our own."""

    def __init__(self, bootstrap: Sequence[tuple[str, int]], reach: Reach) -> None:
        self._bootstrap = list(bootstrap)
        self.bootstrap = self._bootstrap[0]
        """The broker that answered."""
        self._reach = reach
        self.limits = reach.limits
        self._peer: Peer | None = None
        self.nodes: dict[int, tuple[str, int]] = {}
        self.controller = -1
        self.cluster_id: str | None = None
        self.versions: dict[int, tuple[int, int]] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.topics: set[str] = set()
        self.leaders = Leaders()
        self._coordinators: dict[tuple[int, str], int] = {}

    async def open(self) -> None:
        """Connect, ask for versions and nodes; `PeerError`."""
        for place in self._bootstrap:
            self.bootstrap = place
            try:
                self._peer = await Peer.open(*place, self._reach)
                break
            except PeerError:
                if place == self._bootstrap[-1]:
                    raise
        await self._ask_versions()
        try:
            await self.refresh([])
        except PeerError as error:
            if str(error).endswith("connection") and self._reach.credentials is None:
                raise PeerError(f"{error}; it may require authentication (--sasl)") from None
            raise

    async def close(self) -> None:
        if self._peer is not None:
            await self._peer.close()

    async def _ask_versions(self) -> None:
        try:
            response = await self.ask("ApiVersions", 0, {})
        except PeerError as error:
            if isinstance(error, Unreadable):
                raise
            # Before 0.10 there is no such request; the broker closes the connection.
            await self.close()
            self._peer = await Peer.open(*self.bootstrap, self._reach)
            return
        for each in response["api_keys"]:
            self.versions[each["api_key"]] = (each["min_version"], each["max_version"])

    async def ask(self, api: str, version: int, body: Body) -> Body:
        """Send a request of our own to the bootstrap broker; connects again when it was closed.
        Fields of the body that the version lacks are left out."""
        if self._peer is None or self._peer.closed:
            self._peer = await Peer.open(*self.bootstrap, self._reach)
        whole = fitted(layout_of(f"{api}Request", version), body)
        return await self._peer.ask(api, version, whole)

    def best(self, api: str, most: int) -> int:
        """The highest version of an API that both sides have, at most `most`."""
        known = api_named(api)
        low, high = self.versions.get(known.key, (0, 0))
        version = min(high, most, known.versions.high)
        if version < max(low, known.versions.low):
            raise PeerError(
                f"the broker has {api} {low} to {high}; the newest supported here is {version}"
            )
        return version

    def serves(self, key: int, version: int) -> bool:
        """Whether the peer takes requests of that version; True when it did not tell."""
        if not self.versions:
            return True
        low, high = self.versions.get(key, (1, 0))
        return low <= version <= high

    async def refresh(self, topics: Iterable[str]) -> set[str]:
        """Ask for nodes, and for leaders and ids of topics. Returns the topics whose partitions all
        have a leader."""
        body = {"topics": [{"name": name} for name in topics], "allow_auto_topic_creation": False}
        response = await self.ask("Metadata", self.best("Metadata", 12), body)
        for each in response["brokers"]:
            self.nodes[each["node_id"]] = (each["host"], each["port"])
        self.controller = response.get("controller_id", -1)
        self.cluster_id = response.get("cluster_id")
        led = set()
        for topic in response["topics"]:
            if topic["error_code"] not in (0, LEADER_NOT_AVAILABLE) or not topic["name"]:
                continue
            name = topic["name"]
            self.topics.add(name)
            if "topic_id" in topic:
                self.topic_ids[name] = bytes(topic["topic_id"])
            for part in topic["partitions"]:
                number, leader = part["partition_index"], part["leader_id"]
                self.leaders.learn((name, number), leader)
                if "topic_id" in topic:
                    self.leaders.learn((self.topic_ids[name], number), leader)
            if all(part["leader_id"] >= 0 for part in topic["partitions"]):
                led.add(name)
        return led

    async def coordinator(self, key: str, kind: int) -> int:
        """The coordinator of a group (0) or transactional id (1); asked once."""
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        version = self.best("FindCoordinator", 4)
        for _ in range(self.limits.tries):
            body = {"key": key, "key_type": kind, "coordinator_keys": [key]}
            response = await self.ask("FindCoordinator", version, body)
            found = next(iter(response.get("coordinators", [response])), None)
            if found is None:
                break  # no response to what was asked: the request goes to the bootstrap broker
            if found["error_code"] == 0:
                node_id: int = found["node_id"]
                self.nodes[node_id] = (found["host"], found["port"])
                remember(self._coordinators, (kind, key), node_id, self.limits.coordinators)
                return node_id
            if found["error_code"] not in NOT_AVAILABLE:
                break
            await asyncio.sleep(self.limits.pause_s)
        return -1

    async def create(self, topics: dict[str, int]) -> list[str]:
        """Create topics with numbers of partitions and wait for their leaders. Returns those that
        the peer refused, each with its error."""
        refused: list[str] = []
        part: dict[str, int] = {}
        left = self.limits.created_at_once
        for name, count in topics.items():
            if part and count > left:
                refused += await self._create(part)
                part, left = {}, self.limits.created_at_once
            part[name] = count
            left -= count
        return refused + await self._create(part)

    async def _create(self, topics: dict[str, int]) -> list[str]:
        version = self.best("CreateTopics", 5)
        factor = -1 if version in DEFAULT_FACTOR else 1
        body: Body = {
            "topics": [
                {"name": name, "num_partitions": count, "replication_factor": factor}
                for name, count in topics.items()
            ],
            "timeout_ms": int(self._reach.timeout * 1000),
        }
        response = await self.ask("CreateTopics", version, body)
        refused = {
            each["name"]: each["error_code"]
            for each in response["topics"]
            if each["error_code"] not in (0, 36)
        }
        waited_for = topics.keys() - refused.keys()
        for _ in range(self.limits.tries):
            if not waited_for:
                break
            waited_for -= await self.refresh(waited_for)
            await asyncio.sleep(self.limits.pause_s * bool(waited_for))
        return [f"{name} (error {code})" for name, code in refused.items()]


def known_versions(versions: dict[int, tuple[int, int]]) -> str:
    """A short text about the peer's release, from its newest Fetch and Produce."""
    parts = []
    for name in ("Produce", "Fetch"):
        low, high = versions.get(api_named(name).key, (0, -1))
        if high >= 0:
            parts.append(f"{name} {low}-{high}")
    return ", ".join(parts) or f"no versions of {len(APIS)} APIs advertised"
