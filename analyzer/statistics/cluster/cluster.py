"""The cluster as clients were told: nodes and their addresses, leaders, coordinators; and which of
these addresses anybody reached.

Brokers hand out addresses in Metadata, DescribeCluster and FindCoordinator, and beside errors of
Produce and Fetch (KIP-951). Who reached them is counted and judged by `reach`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar, Final

from kafkascope.analyzer.identity import host_of, labels
from kafkascope.analyzer.statistics.cluster.addresses import (
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    LEADING,
    METADATA,
    Given,
    address_text,
    given,
    is_loopback,
    needed,
    plain,
)
from kafkascope.analyzer.statistics.cluster.contact import contact_of
from kafkascope.analyzer.statistics.cluster.model import (
    ClusterFacts,
    Coordinator,
    Leader,
    Node,
    Registration,
    Served,
)
from kafkascope.analyzer.statistics.cluster.reach import Reach, Sums, wants
from kafkascope.analyzer.statistics.cluster.reach_judged import JudgedReach
from kafkascope.analyzer.statistics.cluster.registered import cluster_ids, registered, same
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import single, table
from kafkascope.analyzer.statistics.merging.measures import stretch
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import (
    Accumulator,
    Column,
    Exchange,
    Line,
    Row,
    TopicNames,
    topic_key,
    topic_label,
)
from kafkascope.captures.model import Closed, Opened, Resolved

KINDS: Final = {0: "group", 1: "transaction", 2: "share"}
LOST_LEADER: Final = frozenset({5, 6, 74, 75})
"""LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
MAX_PARTITIONS: Final = 50_000
MAX_NODES: Final = 20_000
"""Listeners of nodes, and coordinators of groups and transactional ids."""


class Cluster(Accumulator):
    """Nodes, leaders, coordinators."""

    NAME = "cluster"
    VERSION = 7
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("node", "count"),
        Column("address"),
        Column("role"),
        Column("rack"),
        Column("controller", "flag", wide=True),
        Column("advertised", "count"),
        Column("sources", "list", wide=True),
        Column("clients", "list"),
        Column("contacted"),
        Column("attempts", "count"),
        Column("requests", "count"),
        Column("first", "time", wide=True),
        Column("last", "time", wide=True),
        Column("number", "count"),
        Column("remarks", "list"),
    )
    LEADER_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("topic"),
        Column("partition", "count"),
        Column("leader", "count"),
        Column("leader_epoch", "count"),
        Column("replicas", "list"),
        Column("in_sync", "list"),
        Column("offline", "list"),
        Column("changes", "count"),
        Column("leaders", "list"),
        Column("failed", "count"),
        Column("last_error", "time"),
        Column("time", "time"),
    )
    COORDINATOR_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("kind"),
        Column("key"),
        Column("node", "count"),
        Column("address"),
        Column("advertised", "count"),
        Column("changes", "count"),
        Column("failed", "count"),
        Column("time", "time"),
    )

    whole: ClusterFacts = single(ClusterFacts)
    reach: Reach = single(Reach)
    _nodes: Keyed[Node] = table(Node, MAX_NODES)
    """By role, node, host and port."""
    _leaders: Keyed[Leader] = table(Leader, MAX_PARTITIONS)
    """By topic and partition."""
    _coordinators: Keyed[Coordinator] = table(Coordinator, MAX_NODES)
    """By kind and key."""
    _registered: Keyed[Registration] = table(Registration, MAX_NODES)
    """By chroot, node, name of the listener, host and port."""

    # --- taking in

    def saw(self, event: Opened | Closed) -> None:
        """Take note of the beginning or end of a connection."""
        self.reach.saw(event)

    def named(self, event: Resolved) -> None:
        """Take note of what a host name stands for."""
        self.reach.named(event)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange."""
        if row.zookeeper is not None:
            for listener in registered(exchange):
                found = self._registered[tuple(listener)]
                found.take(count=1, first=(row.time_ns, row.number), last_ns=row.time_ns)
            for cluster_id in cluster_ids(exchange):
                self.whole.ids.add(cluster_id)
            return
        self.reach.add(row, exchange)
        key = row.api_key
        for error in row.errors:
            if error.code in LOST_LEADER and error.partition is not None and not error.top:
                lost = self._leaders[(topic_key(error.topic, error.topic_id), error.partition)]
                lost.take(errors=1, last_error_ns=row.time_ns)
        response = exchange.response_body
        if response is None:
            return
        if key == METADATA:
            self._metadata(response, row)
        elif key == DESCRIBE_CLUSTER and response.get("cluster_id"):
            self._whole(response, row)
        elif key == FIND_COORDINATOR and exchange.request is not None:
            self._coordinator(exchange.request_body or {}, response, row)
        elif key in LEADING and row.errors:
            self._led(response, row)
        sought = needed(key, response) if wants(exchange) and not row.errors else ()
        for each in given(key, response):
            self._node(each, row, sought=each.node in sought)

    def add_all(self, alike: Alike) -> None:
        """Take in usual exchanges: these name no other brokers."""
        self.reach.add_all(alike)

    def _node(self, address: Given, row: Row, *, sought: bool) -> None:
        node = self._nodes[(address.role, address.node, address.host, address.port)]
        node.count += 1
        if row.api_key == METADATA and address.role == "broker":
            node.take(listed_ns=row.time_ns)
        node.sources.add(row.api)
        client = row.client_id or "", host_of(row.client_address)
        node.clients.add(client)
        if not row.via:
            # What a client behind a load balancer connects to is not in the capture.
            self.reach.advertise(address, client, row.time_ns, needed=sought)
        node.take(rack=address.rack or None, first=(row.time_ns, row.number))
        stretch(node, row.time_ns)

    def _whole(self, response: dict[str, Any], row: Row) -> None:
        if response.get("cluster_id"):
            self.whole.ids.add(response["cluster_id"])
        controller = response.get("controller_id", -1)
        if controller >= 0:
            self.whole.controllers.add(controller)
            self.whole.take(controller=(row.time_ns, controller))

    def _metadata(self, response: dict[str, Any], row: Row) -> None:
        self._whole(response, row)
        if response["brokers"]:
            self.whole.take(listed_ns=row.time_ns)
        for topic in response["topics"]:
            named = topic_key(topic["name"], topic.get("topic_id"))
            for each in topic["partitions"]:
                self._leader(
                    (named, each["partition_index"]),
                    each["leader_id"],
                    each.get("leader_epoch", -1),
                    row.time_ns,
                    tuple(each["replica_nodes"]),
                    tuple(each["isr_nodes"]),
                    tuple(each.get("offline_replicas") or ()),
                )

    def _leader(
        self,
        key: tuple[str | None, int],
        leader: int,
        epoch: int,
        time_ns: int,
        *others: tuple[int, ...],
    ) -> None:
        found = self._leaders[key]
        found.count += 1
        found.leaders.add((epoch, leader))
        latest = (time_ns, leader, epoch, *(others or ((), (), ())))
        found.take(latest=latest, first_ns=time_ns)

    def _led(self, response: dict[str, Any], row: Row) -> None:
        """Take note of leaders that an error names (KIP-951)."""
        for topic in response.get("responses") or ():
            named = topic_key(topic.get("topic") or topic.get("name"), topic.get("topic_id"))
            for each in topic.get("partitions") or topic.get("partition_responses") or ():
                leader = each.get("current_leader")
                if leader and leader["leader_id"] >= 0:
                    number = each["partition_index"] if "partition_index" in each else each["index"]
                    self._leader(
                        (named, number), leader["leader_id"], leader["leader_epoch"], row.time_ns
                    )

    def _coordinator(self, asked: dict[str, Any], response: dict[str, Any], row: Row) -> None:
        kind = KINDS.get(asked.get("key_type", 0), "other")
        found = response.get("coordinators")
        if found is None:
            found = [{**response, "key": asked.get("key", "")}]
        for each in found:
            coordinator = self._coordinators[(kind, each["key"])]
            coordinator.count += 1
            if each["error_code"]:
                coordinator.errors += 1
                continue
            coordinator.nodes.add(each["node_id"])
            coordinator.take(latest=(row.time_ns, each["node_id"], each["host"], each["port"]))

    # --- telling

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return the nodes, then addresses that were used and never told."""
        nodes = self._nodes.items()
        titles = labels(client for _, node in nodes for client in node.clients)
        judged, sums = self.judged(names), self.reach.sums()
        addresses: dict[tuple[Any, Any], set[tuple[Any, Any]]] = {}
        for (role, number, host, port), _ in nodes:
            addresses.setdefault((role, number), set()).add((host, port))
        lines = []
        listeners = self._listeners()
        for key, node in nodes:
            role, number, host, port = key
            contact = contact_of(key, judged, sums)
            several = len(addresses[role, number]) > 1
            own = listeners.get(number, set()) if role == "broker" else set()
            other = [] if same(host, port, own) else [address_text(*each) for each in sorted(own)]
            lines.append(
                {
                    "node": number,
                    "address": address_text(host, port),
                    "role": role,
                    "rack": node.rack,
                    "controller": self.whole.controller is not None
                    and self.whole.controller[1] == number,
                    "advertised": node.count,
                    "sources": list(node.sources),
                    "clients": sorted({titles[client] for client in node.clients}),
                    "told_to": judged.told(key),
                    "contacted": contact.word,
                    "attempts": contact.attempts,
                    "requests": contact.exchanges,
                    "first": node.first_ns,
                    "last": node.last_ns,
                    "number": None if node.first is None else node.first[1],
                    "remarks": [
                        *contact.remarks,
                        *(["several addresses"] if several else []),
                        *([f"registered as {', '.join(other)}"] if other else []),
                    ],
                    "registered": other,
                }
            )
        return lines + self._only_registered(addresses, sums) + list(self._untold(judged, sums))

    def registrations(self) -> list[Line]:
        """Return what brokers registered in ZooKeeper, one line per listener."""
        return [
            {
                "node": number,
                "listener": name,
                "address": address_text(host, port),
                "host": host,
                "port": port,
                "path": f"{chroot}/brokers/ids/{number}",
                "count": found.count,
                "first": found.first[0] if found.first is not None else None,
                "last": found.last_ns,
                "number": found.first[1] if found.first is not None else None,
            }
            for (chroot, number, name, host, port), found in self._registered.items()
        ]

    def _listeners(self) -> dict[int, set[tuple[str, int]]]:
        """Return hosts and ports that brokers registered, by node; of several clusters, a number
        stands for nothing."""
        found: dict[int, set[tuple[str, int]]] = {}
        keys = [key for key, _ in self._registered.items()]
        if len({key[0] for key in keys}) == 1 and len(self.whole.ids) < 2:
            for _, number, _, host, port in keys:
                found.setdefault(number, set()).add((host, port))
        return found

    def _only_registered(
        self, told: dict[tuple[Any, Any], set[tuple[Any, Any]]], sums: Sums
    ) -> list[Line]:
        """Return lines of what brokers registered, and no client was told."""
        lines: list[Line] = []
        used = {(plain(host), port): each for (host, port), each in sums.items()}
        known = {key[1]: set(places) for key, places in told.items() if key[0] == "broker"}
        for line in self.registrations():
            host, port = line["host"], line["port"]
            if not same(host, port, known.setdefault(line["node"], set())):
                known[line["node"]].add((host, port))
                contact, attempts = used.get((plain(host), port), (None, None))
                lines.append(
                    {
                        "node": line["node"],
                        "address": line["address"],
                        "role": "broker",
                        "rack": None,
                        "controller": None,
                        "advertised": 0,
                        "sources": ["ZooKeeper"],
                        "clients": [],
                        "told_to": (),
                        "contacted": "yes" if contact and contact.exchanges else "unknown",
                        "attempts": attempts.count if attempts is not None else None,
                        "requests": contact.exchanges if contact is not None else None,
                        "first": line["first"],
                        "last": line["last"],
                        "number": line["number"],
                        "remarks": ["registered in ZooKeeper, never advertised"],
                        "registered": [],
                    }
                )
        return lines

    def judged(self, names: TopicNames | None = None) -> JudgedReach:
        """Return whether those who were told the addresses reached them."""
        leaders: dict[tuple[Any, Any], set[Any]] = {}
        for (topic, partition), found in self._leaders.items():
            place = topic_label(topic, names), partition
            leaders.setdefault(place, set()).update(leader for _, leader in found.leaders)

        def node_of(served: Served) -> int | None:
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

        return self.reach.judged(node_of, one_cluster=len(self.whole.ids) < 2)

    def _untold(self, judged: JudgedReach, sums: Sums) -> Iterator[Line]:
        """Yield addresses with Kafka on them that no answer named: what clients bootstrapped
        from."""
        known = {
            (plain(host), port)
            for node in judged.advertised
            for host, port in ({node[2:]} | judged.places(node))
            if judged.best(node) not in ("no", "unknown") or host == node[2]
        }
        known |= {(plain(key[3]), key[4]) for key, _ in self._registered.items()}
        for (host, port), (contact, attempts) in sorted(sums.items()):
            if (plain(host), port) in known or not contact.exchanges:
                continue
            if is_loopback(host) and ("localhost", port) in known:
                continue
            yield {
                "node": None,
                "address": address_text(host, port),
                "role": "",
                "rack": None,
                "controller": None,
                "advertised": 0,
                "sources": [],
                "clients": [],
                "contacted": "yes",
                "attempts": attempts.count or None,
                "requests": contact.exchanges,
                "first": contact.first_ns,
                "last": contact.last_ns,
                "number": None,
                "remarks": ["never advertised: a bootstrap address, or a listener for others"],
                "registered": [],
            }

    def leaders(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per partition, those whose leader changed most first."""
        lines = []
        sums: dict[tuple[Any, Any], Leader] = {}
        for (topic, partition), found in self._leaders.items():
            # Known by its name here and by its id there.
            sums.setdefault((topic_label(topic, names), partition), Leader()).merge(found)
        for (topic, partition), found in sums.items():
            latest = found.latest or (None, None, -1, (), (), ())
            history = [leader for _, leader in found.leaders]
            changes = sum(one != two for one, two in pairwise(history))
            lines.append(
                {
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
            )
        lines.sort(key=lambda line: (-line["failed"], -line["changes"]))
        return lines

    def gone(self) -> set[int]:
        """Return numbers of brokers that the cluster counts as gone: left out of a later list, or
        of all in-sync sets. Whoever captures after a broker died sees only refused connects, as
        with an address that is wrong; but a broker with a wrong address stays listed and in
        sync."""
        if len(self.whole.ids) > 1:
            # Of several clusters, a number stands for nothing.
            return set()
        listed: dict[int, int] = {}
        for (role, number, *_), node in self._nodes.items():
            if role == "broker" and node.listed_ns is not None:
                listed[number] = max(node.listed_ns, listed.get(number, 0))
        latest = [leader.latest for _, leader in self._leaders.items() if leader.latest is not None]
        replicas = {number for each in latest for number in each[3]}
        in_sync = {number for each in latest for number in each[4]}
        last_ns = self.whole.listed_ns or 0
        unlisted = {number for number, time_ns in listed.items() if time_ns < last_ns}
        return unlisted | (replicas - in_sync)

    def coordinators(self) -> list[Line]:
        """Return one line per group or transactional id."""
        lines = []
        for (kind, key), found in self._coordinators.items():
            time_ns, node, host, port = found.latest or (None, None, None, None)
            lines.append(
                {
                    "kind": kind,
                    "key": key,
                    "node": node,
                    "address": None if host is None else address_text(host, port),
                    "advertised": found.count,
                    "changes": max(0, len(found.nodes) - 1),
                    "failed": found.errors,
                    "time": time_ns,
                }
            )
        return lines
