"""Addresses advertised to clients, and where they went; addresses of host names; what only one node
can have answered. `reach_judged` decides which addresses were reached."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from itertools import compress
from typing import Final, NamedTuple, TypeAlias

from kafkascope.analyzer.identity import ClientKey
from kafkascope.analyzer.merging.measures import Measures, stretch
from kafkascope.analyzer.merging.tables import Keyed, sums, table
from kafkascope.analyzer.statistics.clients import FIRST_STEPS
from kafkascope.analyzer.statistics.cluster import model
from kafkascope.analyzer.statistics.cluster.addresses import (
    Given,
    is_address,
    is_loopback,
    is_private,
    plain,
)
from kafkascope.analyzer.statistics.cluster.reach_judged import JudgedReach, NodeKey
from kafkascope.analyzer.statistics.exchange_batch import PRODUCE, ExchangeBatch
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.statistics.model import Exchange
from kafkascope.captures.model import Closed, Opened, Resolved

LOOKS: Final = FIRST_STEPS | {
    *("Metadata", "SaslToken", "FindCoordinator", "InitProducerId", "DescribeCluster"),
    "GetTelemetrySubscriptions",
}
"""APIs that clients use on a bootstrap server; all others go to advertised brokers."""
METADATA: Final = 3
FIND_COORDINATOR: Final = 10
GROUP_APIS: Final = frozenset({8, 11, 12, 14, 68})
"""OffsetCommit, JoinGroup, Heartbeat, SyncGroup, ConsumerGroupHeartbeat: only the coordinator
answers them without an error."""
FETCH: Final = 1

Sums: TypeAlias = dict[tuple[str, int], tuple[model.Contact, model.Attempts]]
"""(host, port) -> what all clients did there."""
NodeOf: TypeAlias = Callable[[model.Served], int | None]
"""The node that answers what was served."""


class Reach(Measures):
    """Accumulators of tellings, contacts, attempts, names and witnesses."""

    _advertised: Keyed[model.Advertised] = table(model.Advertised, LIMITS.addresses)
    """By role, node, host, port, client id and client host."""
    _contacts: Keyed[model.Contact] = table(model.Contact, LIMITS.addresses)
    """By client id, client host, host and port."""
    _attempts: Keyed[model.Attempts] = table(model.Attempts, LIMITS.addresses)
    """By client host, host and port."""
    _names: Keyed[model.Resolution] = table(model.Resolution, LIMITS.host_names)
    _served: Keyed[model.Served] = table(model.Served, LIMITS.addresses)
    """By host and port."""

    # --- taking in

    def saw(self, event: Opened | Closed) -> None:
        """Take note of the beginning or end of a connection: its broker, and whether it failed."""
        connection = event.connection
        if not connection.handshake:
            # Which side was called is not known.
            return
        attempts = self._attempts[(connection.a.host, *connection.b)]
        now = connection.first_ns
        if isinstance(event, Closed):
            attempts.take(told_ns=event.time_ns)
        if isinstance(event, Opened):
            attempts.take(count=1, first_ns=now, last_ns=now)
        elif not event.used and event.how == "rst":
            attempts.refused += 1
        elif not event.used and event.direction is None:
            attempts.take(silent=1, silent_ns=now)

    def named(self, event: Resolved) -> None:
        known = self._names[(event.name,)]
        known.sources.add(event.source)
        for host in event.hosts:
            known.hosts.add(plain(host))

    def advertise(self, given: Given, client: ClientKey, time_ns: int, *, needed: bool) -> None:
        """Note an address advertised to a client; needed: it named a topic or group of that
        node."""
        advertised = self._advertised[(given.role, given.node, given.host, given.port, *client)]
        advertised.take(count=1, first_ns=time_ns, last_ns=time_ns)
        if needed:
            advertised.take(needed=1, first_needed_ns=time_ns, last_needed_ns=time_ns)

    def add(self, batch: ExchangeBatch) -> None:
        """Take in exchanges: client, broker, and what only some node could answer."""
        row, exchange, count, time_ns = batch.row, batch.exchange, len(batch), batch.last_ns
        broker, connection = exchange.broker, exchange.connection
        contact = self._contacts[(*batch.client, broker.host, broker.port)]
        answered = row.state == "answered"
        contact.exchanges += count
        stretch(contact, batch.first_ns, time_ns)
        if not connection.handshake:
            contact.midstream += count
        elif broker == connection.b:
            contact.take(opened_ns=connection.first_ns)
        if answered:
            contact.answered += count
        if row.api in LOOKS or row.api_key is None:
            if answered and not row.errors:
                wanted = wants(exchange)
                if wanted or starts(exchange):
                    contact.take(looks=int(wanted), first_look_ns=time_ns, last_look_ns=time_ns)
                    if connection.handshake:
                        contact.starts.add(connection.first_ns)
            return
        contact.work += count
        if answered:
            contact.take(answered_work_ns=time_ns)
            if row.api_key in (PRODUCE, FETCH):
                self._serves(batch)
            elif row.api_key in GROUP_APIS and not row.errors:
                group = batch.request.get("group_id")
                if group:
                    served = self._served[(broker.host, broker.port)]
                    served.take(least_group=group, most_group=group)

    def _serves(self, batch: ExchangeBatch) -> None:
        """Take note of nodes that served records: only the leader of a partition takes and gives
        them; consumers in a rack may be sent to followers (KIP-392)."""
        if batch.way == "replica" or not batch.request or batch.request.get("rack_id"):
            return
        witnesses = LIMITS.witness_partitions
        for (topic, number, error), parts in batch.parts.items():
            near = [at < witnesses for at in parts.at]
            if topic is None or error or not any(compress(parts.answered, near)):
                continue
            broker, place = batch.exchange.broker, (topic, number)
            served = self._served[(broker.host, broker.port)]
            served.take(least_partition=place, most_partition=place)

    # --- telling

    def sums(self) -> Sums:
        contacts = sums(
            model.Contact, (((plain(key[2]), key[3]), each) for key, each in self._contacts.items())
        )
        attempts = sums(
            model.Attempts,
            (((plain(key[1]), key[2]), each) for key, each in self._attempts.items()),
        )
        return {
            place: (contacts.get(place) or model.Contact(), attempts.get(place) or model.Attempts())
            for place in {**contacts, **attempts}
        }

    def judged(self, node_of: NodeOf, *, one_cluster: bool = True) -> JudgedReach:
        """Return which advertised addresses clients reached; node ids are ambiguous in several
        clusters."""
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
    """Return whether a client requests only the brokers, as clients do that start."""
    request = exchange.request_body
    if exchange.api_key != METADATA or request is None or not exchange.api_version:
        return False  # v0 asks for all topics so
    return request.get("topics") == []


def wants(exchange: Exchange) -> bool:
    """Return whether a lookup is for work: of topics by name, or a coordinator. Tools that watch a
    cluster, and idle clients, request all topics or none."""
    if exchange.api_key == FIND_COORDINATOR:
        return True
    request = exchange.request_body or {}
    return exchange.api_key == METADATA and bool(request.get("topics"))


# --- the table of nodes


class Contacted(NamedTuple):
    """Whether an address was reached."""

    word: str
    attempts: int | None
    exchanges: int | None
    remarks: list[str]


def contact_of(key: NodeKey, judged: JudgedReach, sums: Sums) -> Contacted:
    """Return whether clients reached a node at its advertised address, and the traffic there."""
    word, host = judged.best(key), key[2]
    remarks = _remarks(key, judged)
    found = [sums[place] for place in judged.places(key) if place in sums]
    attempts = sum(each.count for _, each in found)
    exchanges = sum(contact.exchanges for contact, _ in found)
    if word == "failed":
        remarks.append("refused" if judged.attempts(key).refused else "no answer to SYN")
    elif word == "no":
        others = exchanges and judged.hosts_of(key) is not None
        remarks.append("contacted only by other clients" if others else "never contacted")
    if not is_address(host) and host != "localhost":
        hosts = judged.hosts_of(key)
        if hosts is not None:
            remarks.append(f"resolves to {', '.join(sorted(hosts)[: LIMITS.named_addresses])}")
        elif word == "likely":
            remarks.append("a host name, matched by port")
        else:
            remarks.append("a host name that the capture does not resolve")
    if word in ("no", "unknown"):
        return Contacted(word, None, None, remarks)
    return Contacted(word, attempts or None, exchanges, remarks)


def _remarks(key: NodeKey, judged: JudgedReach) -> list[str]:
    host = key[2]
    strangers = sorted({place for _, place in judged.advertised_to(key) if not is_loopback(place)})
    if is_loopback(host) and strangers:
        return [f"loopback, advertised to {strangers[0]}"]
    if is_address(host) and ip_address(host).is_unspecified:
        return ["unspecified address"]
    if is_private(host):
        outside = sorted(
            {each[1] for each in judged.advertised_to(key) if judged.is_outside(key, each)}
        )
        return [f"private, advertised to {outside[0]}"] if outside else []
    return []
