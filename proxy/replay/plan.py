"""Plans a replay before anything is sent: order, dependencies, topics. Sans-I/O."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.topics import TopicNames, nameless
from kafkascope.dissectors.registry import APIS
from kafkascope.dissectors.zookeeper.types import is_zookeeper
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.replay.split import partitions


class Permit(NamedTuple):
    """Requests that the user allows."""

    writes: bool = False
    groups: bool = False
    """A prefix for groups was given, or the same groups are wanted."""


def refusal(key: int | None, body: dict[str, Any] | None, permit: Permit) -> str:
    """Why a request is not sent; empty when it is."""
    api = None if key is None else APIS.get(key)
    if is_zookeeper(key):
        return "a ZooKeeper request, not Kafka"
    if api is None:
        return "not a request of a known API"
    if api.effect == "login":
        return "replay authenticates itself"
    if api.effect == "brokers" or _of_replica(body):
        return "sent by brokers only"
    if body is None:
        return "the request cannot be decoded"
    if api.effect == "read":
        return ""
    if not permit.writes:
        return "changes data or state (--allow-writes)"
    if api.effect == "group" and not permit.groups:
        return "changes a group (--group-prefix P or --same-groups)"
    return ""


def _of_replica(body: dict[str, Any] | None) -> bool:
    """Whether it is a Fetch, ListOffsets or OffsetForLeaderEpoch of a follower."""
    state = (body or {}).get("replica_state") or body or {}
    replica = state.get("replica_id", -1)
    return isinstance(replica, int) and replica >= 0


@dataclass(slots=True)
class ReplayStep:
    """A request that will be sent."""

    index: int
    """In the session."""
    time_ns: int
    done_ns: int | None
    """When its response was complete; None when the capture has none."""
    after: int = 0
    """So many answers were complete in the capture before this request was sent."""
    rank: int = -1
    """Rank of its response among all responses, by time."""


@dataclass(slots=True)
class Plan:
    """Collects exchanges; `steps` says what to send, in the order of the capture."""

    permit: Permit
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(API, reason)."""
    partitions: dict[str, int] = field(default_factory=dict)
    """Topic -> partitions, from Metadata."""
    created: set[str] = field(default_factory=set)
    """Topics that the capture itself creates."""
    nodes: set[int] = field(default_factory=set)
    cluster_id: str | None = None
    limits: Limits = LIMITS
    _steps: list[ReplayStep] = field(default_factory=list)

    def add(self, exchange: Exchange, keep: Callable[[], int]) -> None:
        """Add an exchange. `keep` puts it into the session, if it will be sent, and returns its
        index there."""
        self._learn(exchange)
        request = exchange.request
        reason = refusal(exchange.api_key, None if request is None else request.body, self.permit)
        if not reason and request is not None and request.frame.cut:
            reason = "incomplete in the capture"
        if reason:
            self.skipped[exchange.api or "?", reason] += 1
            return
        done = None if exchange.response is None else exchange.response.frame.last_ns
        if len(self._steps) >= self.limits.steps:
            self.skipped[exchange.api or "?", self.too_many] += 1
            return
        self._steps.append(ReplayStep(keep(), exchange.time_ns, done))

    @property
    def too_many(self) -> str:
        return f"one replay has at most {self.limits.steps:,} requests (choose others with --from)"

    def _learn(self, exchange: Exchange) -> None:
        if exchange.response is None or exchange.response.body is None:
            return
        body = exchange.response.body
        if exchange.api == "Metadata":
            self.nodes |= {each["node_id"] for each in body["brokers"]}
            self.cluster_id = body.get("cluster_id") or self.cluster_id
            for topic in body["topics"]:
                if topic["name"] and topic["partitions"]:
                    self.partitions[topic["name"]] = len(topic["partitions"])
        elif exchange.api == "DescribeCluster":
            self.nodes |= {each["broker_id"] for each in body["brokers"]}
            self.cluster_id = body["cluster_id"] or self.cluster_id
        elif exchange.api == "CreateTopics" and self.permit.writes:
            self.created |= {topic["name"] for topic in body["topics"]}

    def steps(self) -> list[ReplayStep]:
        """The requests in the order of their times, each with what it has to wait for."""
        steps = sorted(self._steps, key=lambda step: step.time_ns)
        answered = sorted(
            (step for step in steps if step.done_ns is not None), key=lambda step: step.done_ns or 0
        )
        for rank, step in enumerate(answered):
            step.rank = rank
        times = [step.done_ns or 0 for step in answered]
        for step in steps:
            # What was answered at the same moment cannot have been known.
            step.after = bisect_right(times, step.time_ns - 1)
        return steps

    def topics(self, session: Session, names: TopicNames, steps: list[ReplayStep]) -> set[str]:
        found: set[str] = set()
        for step in steps:
            about = session.tables["topics"].values[session.columns["topics"][step.index]]
            found |= {name for name in map(names.late, about) if not nameless(name)}
        return found

    def named(
        self, session: Session, names: TopicNames, steps: list[ReplayStep], topics: set[str]
    ) -> dict[str, int]:
        """How many partitions these topics have at least, as the requests to be sent name them."""
        found = dict.fromkeys(topics, 1)
        tables = session.tables["topics"].values
        for step in steps:
            about = map(names.late, tables[session.columns["topics"][step.index]])
            if topics.isdisjoint(about):
                continue
            request = session.exchange(step.index).request
            if request is None or request.decoded is None:
                continue
            for topic, number, _ in partitions(request.decoded.layout, request.decoded.body):
                name = topic if isinstance(topic, str) else names.get(bytes(topic))
                if name in found and found[name] <= number < self.limits.named_partitions:
                    found[name] = number + 1
        return found
