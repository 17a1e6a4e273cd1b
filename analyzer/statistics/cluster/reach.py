"""Clients with the addresses that they were told, and where they went; what host names stand for;
what only one node can have answered. `reach_judged` tells who reached what.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Final, TypeAlias

from kafkascope.analyzer.identity import ClientKey, host_of
from kafkascope.analyzer.statistics.cluster.addresses import Given, plain
from kafkascope.analyzer.statistics.cluster.model import (
    Advertised,
    Attempts,
    Contact,
    Resolution,
    Served,
)
from kafkascope.analyzer.statistics.cluster.reach_judged import JudgedReach
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import Compound, table
from kafkascope.analyzer.statistics.merging.measures import stretch
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import Exchange, Row
from kafkascope.analyzer.statistics.moved import PRODUCE, moved
from kafkascope.captures.model import Closed, Endpoint, Opened, Resolved

LOOKS: Final = frozenset(
    {
        "ApiVersions",
        "Metadata",
        "SaslHandshake",
        "SaslAuthenticate",
        "SaslToken",
        "FindCoordinator",
        "InitProducerId",
        "GetTelemetrySubscriptions",
        "DescribeCluster",
    }
)
"""What clients ask a broker that they were started with; all else goes to those they are told."""
METADATA: Final = 3
FIND_COORDINATOR: Final = 10
GROUP_APIS: Final = frozenset({8, 11, 12, 14, 68})
"""OffsetCommit, JoinGroup, Heartbeat, SyncGroup, ConsumerGroupHeartbeat: only the coordinator
answers them without an error."""
FETCH: Final = 1
MOST_WITNESSES: Final = 4
"""Partitions of an exchange that are looked at."""
MAX_ADDRESSES: Final = 50_000
MAX_RESOLVED: Final = 10_000
"""Host names: each may stand for 64 addresses."""

Sums: TypeAlias = dict[tuple[str, int], tuple[Contact, Attempts]]
"""(host, port) -> what all clients did there."""
NodeOf: TypeAlias = Callable[[Served], int | None]
"""The node that answers what was served."""


class Reach(Compound):
    """Accumulators of tellings, contacts, attempts, names and witnesses."""

    _advertised: Keyed[Advertised] = table(Advertised, MAX_ADDRESSES)
    """By role, node, host, port, client id and client host."""
    _contacts: Keyed[Contact] = table(Contact, MAX_ADDRESSES)
    """By client id, client host, host and port."""
    _attempts: Keyed[Attempts] = table(Attempts, MAX_ADDRESSES)
    """By client host, host and port."""
    _names: Keyed[Resolution] = table(Resolution, MAX_RESOLVED)
    _served: Keyed[Served] = table(Served, MAX_ADDRESSES)
    """By host and port."""

    # --- taking in

    def saw(self, event: Opened | Closed) -> None:
        """Take note of the beginning or end of a connection: who was called, and did not answer."""
        connection = event.connection
        if not connection.handshake:
            # Which side was called is not known.
            return
        attempts = self._attempts[(connection.a.host, *connection.b)]
        now = connection.first_ns
        if isinstance(event, Closed):
            attempts.take(told_ns=event.time_ns)
        if isinstance(event, Opened):
            attempts.count += 1
            stretch(attempts, now)
        elif not event.used:
            attempts.refused += event.how == "rst"
            if event.how != "rst" and event.direction is None:
                attempts.take(silent=1, silent_ns=now)

    def named(self, event: Resolved) -> None:
        """Take note of what a host name stands for."""
        known = self._names[(event.name,)]
        known.sources.add(event.source)
        for host in event.hosts:
            known.hosts.add(plain(host))

    def advertise(self, given: Given, client: ClientKey, time_ns: int, *, needed: bool) -> None:
        """Take note that a client was told an address; needed: it wanted something of that node."""
        advertised = self._advertised[(given.role, given.node, given.host, given.port, *client)]
        advertised.count += 1
        stretch(advertised, time_ns)
        if needed:
            advertised.take(needed=1, first_needed_ns=time_ns, last_needed_ns=time_ns)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take in an exchange: who asked whom, and what only some node could answer."""
        broker, connection, time_ns = exchange.broker, exchange.connection, row.time_ns
        key = row.client_id or "", host_of(row.client_address), broker.host, broker.port
        contact = self._contacts[key]
        answered = row.state == "answered"
        contact.exchanges += 1
        stretch(contact, time_ns)
        if not connection.handshake:
            contact.midstream += 1
        elif exchange.broker == connection.b:
            contact.opens(connection.first_ns)
        if answered:
            contact.answered += 1
        if row.api in LOOKS or row.api_key is None:
            if answered and not row.errors:
                wanted = wants(exchange)
                if wanted or starts(exchange):
                    contact.take(looks=int(wanted), first_look_ns=time_ns, last_look_ns=time_ns)
                    if connection.handshake:
                        contact.starts.add(connection.first_ns)
            return
        contact.work += 1
        if answered:
            contact.works(time_ns)
            if row.api_key in (PRODUCE, FETCH):
                self._serves(exchange)
            elif row.api_key in GROUP_APIS and not row.errors:
                group = (exchange.request_body or {}).get("group_id")
                if group:
                    served = self._served[(broker.host, broker.port)]
                    served.take(least_group=group, most_group=group)

    def _serves(self, exchange: Exchange) -> None:
        """Take note of who served records: only the leader of a partition takes and gives them;
        consumers in a rack may be sent to followers (KIP-392)."""
        asked = exchange.request_body
        if asked is None or asked.get("rack_id"):
            return
        for each in moved(exchange)[:MOST_WITNESSES]:
            if each.answered and not each.error:
                self._witness(exchange.broker, each.way, each.topic, each.partition)

    def _witness(self, broker: Endpoint, way: str, topic: str | None, number: int) -> None:
        """Take note of who served records."""
        if topic is None or way == "replica":
            return
        served = self._served[(broker.host, broker.port)]
        place = topic, number
        if served.least_partition is None or place < served.least_partition:
            served.least_partition = place
        if served.most_partition is None or place > served.most_partition:
            served.most_partition = place

    def add_all(self, alike: Alike) -> None:
        """Take in usual exchanges, which are work."""
        broker, connection, count = alike.broker, alike.connection, len(alike.begins)
        contact = self._contacts[(*alike.who, broker.host, broker.port)]
        last = max(alike.begins)
        contact.exchanges += count
        contact.answered += count
        contact.work += count
        contact.works(last)
        stretch(contact, min(alike.begins))
        stretch(contact, last)
        if not connection.handshake:
            contact.midstream += count
        elif alike.from_a:
            contact.opens(connection.first_ns)
        if not alike.kept.get("rack_id"):
            for place, parts in alike.parts.items():
                if any(compress(parts.answered, [at < MOST_WITNESSES for at in parts.at])):
                    self._witness(broker, alike.way, *place)

    # --- telling

    def sums(self) -> Sums:
        """Sum up what all clients did at each address."""
        found: Sums = {}
        for (_, _, host, port), contact in self._contacts.items():
            found.setdefault((plain(host), port), (Contact(), Attempts()))[0].merge(contact)
        for (_, host, port), attempts in self._attempts.items():
            found.setdefault((plain(host), port), (Contact(), Attempts()))[1].merge(attempts)
        return found

    def judged(self, node_of: NodeOf, *, one_cluster: bool = True) -> JudgedReach:
        """Judge everything that was told: was it reached? Of several clusters, the number of a node
        stands for nothing."""
        return JudgedReach(
            [((key[:4], key[4:]), each) for key, each in self._advertised.items()],
            dict(self._contacts.items()),
            dict(self._attempts.items()),
            {name: set(each.hosts) for (name,), each in self._names.items()},
            {
                key: node
                for key, served in self._served.items()
                if (node := node_of(served)) is not None
            },
            one_cluster=one_cluster,
        )


def starts(exchange: Exchange) -> bool:
    """Return whether a client asks for the brokers alone, as clients do that start."""
    asked = exchange.request_body
    if exchange.api_key != METADATA or asked is None or not exchange.api_version:
        return False  # v0 asks for all topics so
    return asked.get("topics") == []


def wants(exchange: Exchange) -> bool:
    """Return whether a client wants to work with what it asks for: topics that it names, a
    coordinator. Tools that watch a cluster, and idle clients, ask for all topics or none."""
    if exchange.api_key == FIND_COORDINATOR:
        return True
    asked = exchange.request_body or {}
    return exchange.api_key == METADATA and bool(asked.get("topics"))
