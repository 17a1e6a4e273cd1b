"""The advertised cluster: nodes and their addresses, leaders, coordinators; and which of these
addresses clients reached.

Brokers advertise addresses in Metadata, DescribeCluster and FindCoordinator, and beside errors of
Produce and Fetch (KIP-951). `reach` counts and judges which were reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from kafkascope.analyzer.conversation.tampering import brokers_own
from kafkascope.analyzer.identity import client_key_of, labels
from kafkascope.analyzer.merging.measures import whole
from kafkascope.analyzer.merging.tables import Keyed, by_key, sums, table
from kafkascope.analyzer.statistics.cluster import model
from kafkascope.analyzer.statistics.cluster.addresses import (
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    LEADING,
    METADATA,
    Given,
    address_text,
    cluster_ids,
    given,
    is_loopback,
    needed,
    plain,
    registered,
    same,
)
from kafkascope.analyzer.statistics.cluster.reach import Reach, Sums, contact_of, wants
from kafkascope.analyzer.statistics.cluster.reach_judged import JudgedReach
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import (
    Accumulator,
    Line,
    Row,
    TopicNames,
    columns,
    filled,
    listed,
    topic_key,
    topic_label,
)
from kafkascope.captures.model import Closed, Opened, Resolved

KINDS: Final = {0: "group", 1: "transaction", 2: "share"}
LOST_LEADER: Final = frozenset({5, 6, 74, 75})
"""LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""

UNADVERTISED: Final[Line] = {
    **dict.fromkeys(("node", "rack", "controller", "number")),
    "role": "",
    "advertised": 0,
    "sources": [],
    "clients": [],
}
"""A line of an address that no response named."""


class Cluster(Accumulator):
    """Nodes, leaders, coordinators."""

    NAME = "cluster"
    VERSION = 8
    SINGLY = frozenset({METADATA, DESCRIBE_CLUSTER, FIND_COORDINATOR})
    COLUMNS = columns(
        "node address role rack (controller) advertised (sources) clients contacted attempts "
        "requests (first) (last) number remarks"
    )
    LEADER_COLUMNS = columns(
        "topic partition leader leader_epoch replicas in_sync offline changes leaders failed "
        "last_error time"
    )
    COORDINATOR_COLUMNS = columns("kind key node address advertised changes failed time")

    facts: model.ClusterFacts = whole(model.ClusterFacts)
    reach: Reach = whole(Reach)
    _nodes: Keyed[model.ClusterNode] = table(model.ClusterNode, LIMITS.listeners)
    """By role, node, host and port."""
    _leaders: Keyed[model.Leader] = table(model.Leader, LIMITS.led_partitions)
    """By topic and partition."""
    _coordinators: Keyed[model.Coordinator] = table(model.Coordinator, LIMITS.listeners)
    """By kind and key."""
    _registered: Keyed[model.Registration] = table(model.Registration, LIMITS.listeners)
    """By chroot, node, name of the listener, host and port."""

    # --- taking in

    def saw(self, event: Opened | Closed) -> None:
        self.reach.saw(event)

    def named(self, event: Resolved) -> None:
        self.reach.named(event)

    def add(self, batch: ExchangeBatch) -> None:
        """Take in exchanges. Those that come together name no other brokers."""
        row, exchange = batch.row, batch.exchange
        if row.zookeeper is not None:
            for listener in registered(exchange):
                found = self._registered[tuple(listener)]
                found.take(first=(row.time_ns, row.number), last_ns=row.time_ns)
            for cluster_id in cluster_ids(exchange):
                self.facts.ids.add(cluster_id)
            return
        self.reach.add(batch)
        key = row.api_key
        for error in row.errors:
            if error.code in LOST_LEADER and error.partition is not None and not error.top:
                lost = self._leaders[(topic_key(error.topic, error.topic_id), error.partition)]
                lost.take(errors=1, last_error_ns=row.time_ns)
        response = exchange.response_body if len(batch) == 1 else None
        if response is None:
            return
        # Recordings of the proxy have its own addresses in responses, and connections to brokers.
        own = brokers_own(row.notes) if row.notes else {}
        if key == METADATA:
            self._metadata(response, row)
        elif key == DESCRIBE_CLUSTER and response.get("cluster_id"):
            self._whole(response, row)
        elif key == FIND_COORDINATOR and exchange.request is not None:
            self._coordinator(exchange.request_body or {}, response, row, own)
        elif key in LEADING and row.errors:
            self._led(response, row)
        sought = needed(key, response) if wants(exchange) and not row.errors else ()
        for each in given(key, response):
            host, port = own.get((each.host, each.port), (each.host, each.port))
            self._node(each._replace(host=host, port=port), row, sought=each.node in sought)

    def _node(self, address: Given, row: Row, *, sought: bool) -> None:
        node = self._nodes[(address.role, address.node, address.host, address.port)]
        node.sources.add(row.api)
        client = client_key_of(row)
        node.clients.add(client)
        if not row.via:
            # What a client behind a load balancer connects to is not in the capture.
            self.reach.advertise(address, client, row.time_ns, needed=sought)
        listed = row.api_key == METADATA and address.role == "broker"
        node.take(
            count=1,
            rack=address.rack or None,
            first=(row.time_ns, row.number),
            first_ns=row.time_ns,
            last_ns=row.time_ns,
            listed_ns=row.time_ns if listed else None,
        )

    def _whole(self, response: dict[str, Any], row: Row) -> None:
        if response.get("cluster_id"):
            self.facts.ids.add(response["cluster_id"])
        controller = response.get("controller_id", -1)
        if controller >= 0:
            self.facts.controllers.add(controller)
            self.facts.take(controller=(row.time_ns, controller))

    def _metadata(self, response: dict[str, Any], row: Row) -> None:
        self._whole(response, row)
        if response["brokers"]:
            self.facts.take(listed_ns=row.time_ns)
        for topic in response["topics"]:
            named = topic_key(topic["name"], topic.get("topic_id"))
            for each in topic["partitions"]:
                replicas = each["replica_nodes"], each["isr_nodes"], each.get("offline_replicas")
                key = named, each["partition_index"]
                epoch = each.get("leader_epoch", -1)
                self._leader(key, each["leader_id"], epoch, row.time_ns, replicas)

    def _leader(
        self,
        key: tuple[str | None, int],
        leader: int,
        epoch: int,
        time_ns: int,
        replicas: Sequence[Sequence[int] | None] = ((), (), ()),
    ) -> None:
        found = self._leaders[key]
        found.leaders.add((epoch, leader))
        latest = (time_ns, leader, epoch, *(tuple(each or ()) for each in replicas))
        # Written out: a Metadata response may have ten thousand partitions.
        if found.latest is None or latest > found.latest:
            found.latest = latest
        if found.first_ns is None or time_ns < found.first_ns:
            found.first_ns = time_ns

    def _led(self, response: dict[str, Any], row: Row) -> None:
        """Take note of leaders that an error names (KIP-951)."""
        for topic in response.get("responses") or ():
            named = topic_key(topic.get("topic") or topic.get("name"), topic.get("topic_id"))
            for each in topic.get("partitions") or topic.get("partition_responses") or ():
                leader = each.get("current_leader")
                if leader and leader["leader_id"] >= 0:
                    key = named, each.get("partition_index", each.get("index"))
                    epoch = leader["leader_epoch"]
                    self._leader(key, leader["leader_id"], epoch, row.time_ns)

    def _coordinator(
        self,
        request: dict[str, Any],
        response: dict[str, Any],
        row: Row,
        own: dict[tuple[str, int], tuple[str, int]],
    ) -> None:
        kind = KINDS.get(request.get("key_type", 0), "other")
        found = response.get("coordinators")
        if found is None:
            found = [{**response, "key": request.get("key", "")}]
        for each in found:
            coordinator = self._coordinators[(kind, each["key"])]
            coordinator.count += 1
            if each["error_code"]:
                coordinator.errors += 1
                continue
            coordinator.nodes.add(each["node_id"])
            place = each["host"], each["port"]
            coordinator.take(latest=(row.time_ns, each["node_id"], *own.get(place, place)))

    # --- telling

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return the nodes, then addresses that were used but not advertised."""
        nodes = self._nodes.items()
        titles = labels(client for _, node in nodes for client in node.clients)
        judged, used = self.judged(names), self.reach.sums()
        addresses = by_key((key[:2], key[2:]) for key, _ in nodes)
        listeners, (_, controller) = self._listeners(), self.facts.controller or (0, None)
        lines = []
        for key, node in nodes:
            role, number, host, port = key
            contact = contact_of(key, judged, used)
            own = listeners.get(number, set()) if role == "broker" else set()
            other = [] if same(host, port, own) else [address_text(*each) for each in sorted(own)]
            remarks = [*contact.remarks]
            if len(addresses[role, number]) > 1:
                remarks.append("several addresses")
            if other:
                remarks.append(f"registered as {', '.join(other)}")
            lines.append(
                filled(
                    self.COLUMNS,
                    node,
                    node=number,
                    address=address_text(host, port),
                    role=role,
                    controller=controller == number,
                    advertised=node.count,
                    clients=sorted({titles[client] for client in node.clients}),
                    told_to=judged.advertised_to(key),
                    contacted=contact.word,
                    attempts=contact.attempts,
                    requests=contact.exchanges,
                    number=None if node.first is None else node.first[1],
                    remarks=remarks,
                )
            )
        return [*lines, *self._only_registered(used), *self._untold(judged, used)]

    def _listeners(self) -> dict[int, set[tuple[str, int]]]:
        """Map node ids to hosts and ports that brokers registered; empty for several clusters,
        where ids are ambiguous."""
        if len({key[0] for key in self._registered}) != 1 or len(self.facts.ids) > 1:
            return {}
        found = by_key((key[1], key[3:]) for key in self._registered)
        return {node: set(places) for node, places in found.items()}

    def _only_registered(self, all_used: Sums) -> Iterator[Line]:
        """Yield lines of listeners that are registered but not advertised."""
        used = {(plain(host), port): each for (host, port), each in all_used.items()}
        by_node = by_key((key[1], key[2:]) for key in self._nodes if key[0] == "broker")
        known = {node: set(places) for node, places in by_node.items()}
        for (_, node, _, host, port), found in self._registered.items():
            if same(host, port, known.setdefault(node, set())):
                continue
            known[node].add((host, port))
            contact, attempts = used.get((plain(host), port), (None, None))
            time_ns, number = found.first or (None, None)
            yield {
                **UNADVERTISED,
                "node": node,
                "address": address_text(host, port),
                "role": "broker",
                "sources": ["ZooKeeper"],
                "told_to": (),
                "contacted": "yes" if contact and contact.exchanges else "unknown",
                "attempts": attempts.count if attempts is not None else None,
                "requests": contact.exchanges if contact is not None else None,
                "first": time_ns,
                "last": found.last_ns,
                "number": number,
                "remarks": ["registered in ZooKeeper, never advertised"],
            }

    def judged(self, names: TopicNames | None = None) -> JudgedReach:
        leaders: dict[tuple[Any, Any], set[Any]] = {}
        for (topic, partition), found in self._leaders.items():
            place = topic_label(topic, names), partition
            leaders.setdefault(place, set()).update(leader for _, leader in found.leaders)

        def node_of(served: model.Served) -> int | None:
            """Return the node that can have answered it, where that was one node all the time."""
            nodes: set[int] = set()
            for place in (served.least_partition, served.most_partition):
                if place is not None:
                    led = leaders.get((topic_label(place[0], names), place[1]), set())
                    nodes |= led if len(led) == 1 else set()
            for group in (served.least_group, served.most_group):
                coordinator = self._coordinators.get(("group", group))
                if coordinator is not None and len(coordinator.nodes) == 1:
                    nodes |= set(coordinator.nodes)
            return nodes.pop() if len(nodes) == 1 else None

        return self.reach.judged(node_of, one_cluster=len(self.facts.ids) < 2)

    def _untold(self, judged: JudgedReach, used: Sums) -> Iterator[Line]:
        """Yield addresses with Kafka on them that no answer named: what clients bootstrapped
        from."""
        known = {
            (plain(host), port)
            for node in judged.advertised
            for host, port in ({node[2:]} | judged.places(node))
            if judged.best(node) not in ("no", "unknown") or host == node[2]
        }
        known |= {(plain(key[3]), key[4]) for key, _ in self._registered.items()}
        # Where no response names any broker, as in request logs up to 0.11, that says nothing.
        remark = "never advertised: a bootstrap address, or a listener for others"
        for (host, port), (contact, attempts) in sorted(used.items()):
            if (plain(host), port) in known or not contact.exchanges:
                continue
            if is_loopback(host) and ("localhost", port) in known:
                continue
            yield {
                **UNADVERTISED,
                "address": address_text(host, port),
                "contacted": "yes",
                "attempts": attempts.count or None,
                "requests": contact.exchanges,
                "first": contact.first_ns,
                "last": contact.last_ns,
                "remarks": [remark] if known else [],
            }

    @listed(lambda line: (-line["failed"], -line["changes"]))
    def leaders(self, names: TopicNames | None = None) -> Iterator[Line]:
        # Known by its name here and by its id there.
        items = (
            ((topic_label(topic, names), partition), found)
            for (topic, partition), found in self._leaders.items()
        )
        for (topic, partition), found in sums(model.Leader, items).items():
            latest = found.latest or (None, None, -1, (), (), ())
            history = [leader for _, leader in found.leaders]
            changes = sum(one != two for one, two in pairwise(history))
            yield {
                "topic": topic,
                "partition": partition,
                "leader": latest[1],
                "leader_epoch": None if latest[2] is None or latest[2] < 0 else latest[2],
                "replicas": list(latest[3]),
                "in_sync": list(latest[4]),
                "offline": list(latest[5]),
                "changes": changes,
                "leaders": history if changes else [],
                "failed": found.errors,
                "last_error": found.last_error_ns,
                "time": latest[0],
                "since": found.first_ns,
            }

    def gone(self) -> set[int]:
        """Return ids of brokers that the cluster counts as gone: left out of a later list, or of
        all in-sync sets. A capture begun after a broker died shows only refused connects, as for a
        wrong address; but a broker with a wrong address stays listed and in sync."""
        if len(self.facts.ids) > 1:
            # Node ids of several clusters are ambiguous.
            return set()
        listed: dict[int, int] = {}
        for (role, number, *_), node in self._nodes.items():
            if role == "broker" and node.listed_ns is not None:
                listed[number] = max(node.listed_ns, listed.get(number, 0))
        latest = [leader.latest for _, leader in self._leaders.items() if leader.latest is not None]
        replicas = {number for each in latest for number in each[3]}
        in_sync = {number for each in latest for number in each[4]}
        last_ns = self.facts.listed_ns or 0
        unlisted = {number for number, time_ns in listed.items() if time_ns < last_ns}
        return unlisted | (replicas - in_sync)

    @listed()
    def coordinators(self) -> Iterator[Line]:
        for (kind, key), found in self._coordinators.items():
            time_ns, node, host, port = found.latest or (None, None, None, None)
            yield {
                "kind": kind,
                "key": key,
                "node": node,
                "address": None if host is None else address_text(host, port),
                "advertised": found.count,
                "changes": max(0, len(found.nodes) - 1),
                "failed": found.errors,
                "time": time_ns,
            }
