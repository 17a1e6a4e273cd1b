"""The cluster as clients were told: nodes and their addresses, leaders, coordinators; and which of
these addresses anybody reached.

Brokers hand out addresses in Metadata, DescribeCluster and FindCoordinator, and beside errors of
Produce and Fetch (KIP-951). A name cannot be compared with the addresses of packets: then the port
has to do, and the answer is `likely`.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

from analyzer.identity import host_of, labels
from analyzer.statistics.addresses import (
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    LEADING,
    METADATA,
    Given,
    address_text,
    given,
    is_address,
    is_loopback,
    same_host,
)
from analyzer.statistics.cluster_model import Coordinator, Leader, Node, Reached, Whole
from analyzer.statistics.mergeable import Keyed
from analyzer.statistics.model import Column, Line, checked, stated, topic_key, topic_label
from captures.model import Closed, Opened

if TYPE_CHECKING:
    from analyzer.model import Exchange
    from analyzer.rows import Row
    from analyzer.topics import TopicNames

KINDS: Final = {0: "group", 1: "transaction", 2: "share"}
LOST_LEADER: Final = frozenset({5, 6, 74, 75})
"""LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
MAX_PARTITIONS: Final = 50_000


class Cluster:
    """Nodes, leaders, coordinators."""

    NAME: ClassVar[str] = "cluster"
    VERSION: ClassVar[int] = 2
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("node", "Node", "count"),
        Column("address", "Address"),
        Column("role", "role"),
        Column("rack", "rack"),
        Column("controller", "controller", "flag", wide=True),
        Column("told", "told", "count"),
        Column("sources", "by", "list", wide=True),
        Column("clients", "told to", "list"),
        Column("contacted", "contacted"),
        Column("attempts", "conns", "count"),
        Column("exchanges", "n", "count"),
        Column("first", "first", "time", wide=True),
        Column("last", "last", "time", wide=True),
        Column("number", "first No", "count"),
        Column("remarks", "remarks", "list"),
    )
    LEADER_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("topic", "Topic"),
        Column("partition", "Part", "count"),
        Column("leader", "leader", "count"),
        Column("epoch", "epoch", "count"),
        Column("replicas", "replicas", "list"),
        Column("in_sync", "in sync", "list"),
        Column("offline", "offline", "list"),
        Column("changes", "changes", "count"),
        Column("leaders", "leaders", "list"),
        Column("errors", "errors", "count"),
        Column("last_error", "last error", "time"),
        Column("time", "told at", "time"),
    )
    COORDINATOR_COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("kind", "Kind"),
        Column("key", "Key"),
        Column("node", "node", "count"),
        Column("address", "Address"),
        Column("told", "told", "count"),
        Column("changes", "changes", "count"),
        Column("errors", "errors", "count"),
        Column("time", "told at", "time"),
    )

    def __init__(self, limit: int = MAX_PARTITIONS) -> None:
        self.limit = limit
        self.whole = Whole()
        self._nodes: Keyed[Node] = Keyed(Node, limit)
        """By role, node, host and port."""
        self._reached: Keyed[Reached] = Keyed(Reached, limit)
        """By host and port."""
        self._leaders: Keyed[Leader] = Keyed(Leader, limit)
        """By topic and partition."""
        self._coordinators: Keyed[Coordinator] = Keyed(Coordinator, limit)
        """By kind and key."""

    # --- taking in

    def saw(self, event: Opened | Closed) -> None:
        """Take note of the beginning or end of a connection: who was called, and did not answer."""
        connection = event.connection
        if not connection.handshake:
            # Which side was called is not known.
            return
        reached = self._reached[(connection.b.host, connection.b.port)]
        if isinstance(event, Opened):
            reached.attempts += 1
            _seen(reached, connection.first_ns)
            return
        if event.used:
            return
        if event.how == "rst":
            reached.refused += 1
        elif event.direction is None:
            reached.silent += 1

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange."""
        broker = exchange.broker
        reached = self._reached[(broker.host, broker.port)]
        reached.exchanges += 1
        reached.answered += row.state == "answered"
        _seen(reached, row.time_ns)
        key = row.api_key
        for error in row.errors:
            if error.code in LOST_LEADER and error.partition is not None and not error.top:
                named = topic_key(error.topic, error.topic_id)
                lost = self._leaders[(named, error.partition)]
                lost.errors += 1
                lost.last_error_ns = max(lost.last_error_ns or 0, row.time_ns)
        answer = exchange.response.body if exchange.response is not None else None
        if answer is None:
            return
        if key == METADATA:
            self._metadata(answer, row)
        elif key == DESCRIBE_CLUSTER and answer.get("cluster_id"):
            self._whole(answer, row)
        elif key == FIND_COORDINATOR and exchange.request is not None:
            self._coordinator(exchange.request.body or {}, answer, row)
        elif key in LEADING and row.errors:
            self._led(answer, row)
        for each in given(key, answer):
            self._node(each, row)

    def _node(self, told: Given, row: Row) -> None:
        node = self._nodes[(told.role, told.node, told.host, told.port)]
        node.told += 1
        node.sources.add(row.api)
        node.clients.add((row.client_id or "", host_of(row.client_address)))
        node.rack = max(node.rack or "", told.rack or "") or None
        _seen(node, row.time_ns)
        here = (row.time_ns, row.number)
        node.first = here if node.first is None else min(node.first, here)

    def _whole(self, answer: dict[str, Any], row: Row) -> None:
        if answer.get("cluster_id"):
            self.whole.ids.add(answer["cluster_id"])
        controller = answer.get("controller_id", -1)
        if controller >= 0:
            self.whole.controllers.add(controller)
            here = (row.time_ns, controller)
            self.whole.controller = max(self.whole.controller or here, here)

    def _metadata(self, answer: dict[str, Any], row: Row) -> None:
        self._whole(answer, row)
        for topic in answer["topics"]:
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
        found.told += 1
        found.leaders.add((epoch, leader))
        here = (time_ns, leader, epoch, *(others or ((), (), ())))
        found.latest = here if found.latest is None else max(found.latest, here)
        found.first_ns = time_ns if found.first_ns is None else min(found.first_ns, time_ns)

    def _led(self, answer: dict[str, Any], row: Row) -> None:
        """Leaders that an error names (KIP-951)."""
        for topic in answer.get("responses") or ():
            named = topic_key(topic.get("topic") or topic.get("name"), topic.get("topic_id"))
            for each in topic.get("partitions") or topic.get("partition_responses") or ():
                leader = each.get("current_leader")
                if leader and leader["leader_id"] >= 0:
                    number = each["partition_index"] if "partition_index" in each else each["index"]
                    self._leader(
                        (named, number), leader["leader_id"], leader["leader_epoch"], row.time_ns
                    )

    def _coordinator(self, asked: dict[str, Any], answer: dict[str, Any], row: Row) -> None:
        kind = KINDS.get(asked.get("key_type", 0), "other")
        found = answer.get("coordinators")
        if found is None:
            found = [{**answer, "key": asked.get("key", "")}]
        for each in found:
            coordinator = self._coordinators[(kind, each["key"])]
            coordinator.told += 1
            if each["error_code"]:
                coordinator.errors += 1
                continue
            coordinator.nodes.add(each["node_id"])
            here = (row.time_ns, each["node_id"], each["host"], each["port"])
            coordinator.latest = max(coordinator.latest or here, here)

    # --- telling

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """The nodes, then addresses that were used and never told."""
        told = self._nodes.items()
        titles = labels(client for _, node in told for client in node.clients)
        by_port: dict[Any, list[tuple[str, Reached]]] = {}
        for (host, port), reached in self._reached.items():
            by_port.setdefault(port, []).append((str(host), reached))
        addresses: dict[tuple[Any, Any], set[tuple[Any, Any]]] = {}
        for (role, number, host, port), _ in told:
            addresses.setdefault((role, number), set()).add((host, port))
        lines = []
        for (role, number, host, port), node in told:
            contact = _contact(str(host), node, by_port.get(port, []))
            several = len(addresses[role, number]) > 1
            lines.append(
                {
                    "node": number,
                    "address": address_text(str(host), int(str(port))),
                    "role": role,
                    "rack": node.rack,
                    "controller": self.whole.controller is not None
                    and self.whole.controller[1] == number,
                    "told": node.told,
                    "sources": list(node.sources),
                    "clients": sorted({titles[client] for client in node.clients}),
                    "contacted": contact.word,
                    "attempts": contact.attempts,
                    "exchanges": contact.exchanges,
                    "first": node.first_ns,
                    "last": node.last_ns,
                    "number": None if node.first is None else node.first[1],
                    "remarks": [*contact.remarks, *(["several addresses"] if several else [])],
                }
            )
        known = {each for found in addresses.values() for each in found}
        return lines + list(self._untold(known))

    def told_to(self) -> dict[tuple[str, int], set[tuple[str, str]]]:
        """(host, port) as told -> (client id, host) of those who were told it."""
        found: dict[tuple[str, int], set[tuple[str, str]]] = {}
        for (_, _, host, port), node in self._nodes.items():
            found.setdefault((str(host), int(str(port))), set()).update(node.clients)
        return found

    def _untold(self, known: set[tuple[Any, Any]]) -> Iterator[Line]:
        """Addresses with Kafka on them that no answer named: what clients bootstrapped from."""
        ports = {port for host, port in known if not is_address(host) and host != "localhost"}
        for (host, port), reached in self._reached.items():
            if (host, port) in known or not reached.exchanges or port in ports:
                continue
            if is_loopback(str(host)) and ("localhost", port) in known:
                continue
            yield {
                "node": None,
                "address": address_text(str(host), int(str(port))),
                "role": "",
                "rack": None,
                "controller": None,
                "told": 0,
                "sources": [],
                "clients": [],
                "contacted": "yes",
                "attempts": reached.attempts or None,
                "exchanges": reached.exchanges,
                "first": reached.first_ns,
                "last": reached.last_ns,
                "number": None,
                "remarks": ["never told: a bootstrap address, or a listener of others"],
            }

    def leaders(self, names: TopicNames | None = None) -> list[Line]:
        """One line per partition, those whose leader changed most first."""
        lines = []
        sums: dict[tuple[Any, Any], Leader] = {}
        for (topic, partition), found in self._leaders.items():
            # Known by its name here and by its id there.
            key = topic_label(topic, names), partition
            sums.setdefault(key, Leader()).merge(found)
        for (topic, partition), found in sums.items():
            latest = found.latest or (None, None, -1, (), (), ())
            history = [leader for _, leader in found.leaders]
            changes = sum(one != two for one, two in pairwise(history))
            lines.append(
                {
                    "topic": topic,
                    "partition": partition,
                    "leader": latest[1],
                    "epoch": None if latest[2] is None or latest[2] < 0 else latest[2],
                    "replicas": list(latest[3]),
                    "in_sync": list(latest[4]),
                    "offline": list(latest[5]),
                    "changes": changes,
                    "leaders": history if changes else [],
                    "errors": found.errors,
                    "last_error": found.last_error_ns,
                    "time": latest[0],
                    "since": found.first_ns,
                }
            )
        lines.sort(key=lambda line: (-line["errors"], -line["changes"]))
        return lines

    def coordinators(self) -> list[Line]:
        """One line per group or transactional id."""
        lines = []
        for (kind, key), found in self._coordinators.items():
            time_ns, node, host, port = found.latest or (None, None, None, None)
            lines.append(
                {
                    "kind": kind,
                    "key": key,
                    "node": node,
                    "address": None if host is None else address_text(str(host), int(str(port))),
                    "told": found.told,
                    "changes": max(0, len(found.nodes) - 1),
                    "errors": found.errors,
                    "time": time_ns,
                }
            )
        return lines

    # --- parts

    def _tables(self) -> list[Keyed[Any]]:
        return [self._nodes, self._reached, self._leaders, self._coordinators]

    def merge(self, other: Self) -> None:
        """Take in what the other one has."""
        self.whole.merge(other.whole)
        for mine, its in zip(self._tables(), other._tables(), strict=True):
            mine.merge(its)

    def dump(self) -> dict[str, Any]:
        """The state as JSON, with its version."""
        return stated(self, [self.whole.dump(), *(table.dump() for table in self._tables())])

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """The accumulator of a state; `WrongState`."""
        whole, nodes, reached, leaders, coordinators = checked(cls, state)
        new = cls()
        new.whole = Whole.load(whole)
        new._nodes = Keyed.load(Node, nodes, new.limit)
        new._reached = Keyed.load(Reached, reached, new.limit)
        new._leaders = Keyed.load(Leader, leaders, new.limit)
        new._coordinators = Keyed.load(Coordinator, coordinators, new.limit)
        return new


class _Contact(NamedTuple):
    """Whether an address was reached."""

    word: str
    attempts: int | None
    exchanges: int | None
    remarks: list[str]


def _contact(host: str, node: Node, there: list[tuple[str, Reached]]) -> _Contact:
    """Whether anybody reached a node; `there` are the addresses of its port."""
    found = [reached for other, reached in there if same_host(host, other)]
    remarks = _remarks(host, node)
    if not found:
        return _Contact("no", None, None, [*remarks, "never contacted"])
    sum_ = Reached()
    for each in found:
        sum_.merge(Reached.load(each.dump()))
    sure = is_address(host) or host == "localhost"
    if sum_.answered:
        word = "yes" if sure else "likely"
    elif sum_.refused or sum_.silent:
        word = "failed"
        remarks.append("refused" if sum_.refused else "no answer to SYN")
    elif sum_.exchanges or sum_.attempts:
        word = "unanswered"
    else:
        word = "no"
    if not sure:
        remarks.append("a name: compared by port")
    return _Contact(word, sum_.attempts or None, sum_.exchanges, remarks)


def _seen(measures: Node | Reached, time_ns: int) -> None:
    first, last = measures.first_ns, measures.last_ns
    measures.first_ns = time_ns if first is None else min(first, time_ns)
    measures.last_ns = time_ns if last is None else max(last, time_ns)


def _remarks(host: str, node: Node) -> list[str]:
    """What may be wrong with an address for those who were told it."""
    strangers = sorted({place for _, place in node.clients if not is_loopback(place)})
    if is_loopback(host) and strangers:
        return [f"loopback, told to {strangers[0]}"]
    if is_address(host) and ip_address(host).is_unspecified:
        return ["no address that can be reached"]
    public = [place for place in strangers if is_address(place) and ip_address(place).is_global]
    if is_address(host) and ip_address(host).is_private and public:
        return [f"private, told to {public[0]}"]
    return []
