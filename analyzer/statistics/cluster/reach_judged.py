"""Whether clients reached advertised addresses: reads what `Reach` counted. No state that merges.

An address is reached when the client that got it connected to it. Names are matched to the
addresses of packets where there is evidence: DNS answers, names in capture files, TLS hellos, a
hosts file, the same node advertised by name and by address, or a node identified by what only it
can answer. Without evidence the answer is `likely` or `unknown`, or `no` for a client that repeats
its lookups and never does any work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from kafkascope.analyzer.identity import ClientKey
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.cluster import addresses
from kafkascope.analyzer.statistics.cluster.model import Advertised, Attempts, Contact
from kafkascope.analyzer.statistics.thresholds import limit

ReachWord: TypeAlias = Literal["yes", "likely", "unanswered", "failed", "unknown", "no"]
"""Whether an address was reached. failed: connections were refused, or not answered; unanswered:
there was a connection and no answer on it."""
ORDER: Final[tuple[ReachWord, ...]] = ("yes", "likely", "unanswered", "failed", "unknown", "no")
"""Best first: the best result of several clients counts."""

# Addresses with work of one client: so many are not seen at one broker.
MOST_SEEN_BY_ONE: Final = 2

NodeKey: TypeAlias = tuple[str, int, str, int]
"""(role, node, host, port)"""


class StuckClient(NamedTuple):
    """A client that did not reach advertised addresses and repeats its lookups."""

    client: ClientKey
    looks: int
    first_ns: int
    last_ns: int
    asked: tuple[tuple[str, int], ...]
    missed: tuple[NodeKey, ...]
    works: bool
    """With other nodes, which are those in `asked`."""


class JudgedReach:
    """Whether clients reached advertised addresses: one snapshot of a `Reach`."""

    def __init__(
        self,
        advertised: list[tuple[tuple[NodeKey, ClientKey], Advertised]],
        contacts: dict[tuple[str, str, str, int], Contact],
        attempts: dict[tuple[str, str, int], Attempts],
        names: dict[str, set[str]],
        nodes: dict[tuple[str, int], int],
        *,
        one_cluster: bool = True,
    ) -> None:
        self._names = names
        self._by_client = by_key((client, (node, each)) for (node, client), each in advertised)
        self.advertised = by_key(place for place, _ in advertised)
        self._contacts: dict[ClientKey, dict[tuple[str, int], Contact]] = {}
        for (client_id, client_host, host, port), contact in contacts.items():
            self._contacts.setdefault((client_id, client_host), {})[addresses.plain(host), port] = (
                contact
            )
        self._answered = {
            (client_host, addresses.plain(host), port)
            for (_, client_host, host, port), contact in contacts.items()
            if contact.answered
        }
        """(client host, host, port) of answered clients."""
        self._served = by_key(((host, port), client) for client, host, port in self._answered)
        """(host, port) -> hosts of clients that were answered there."""
        self._inside = {client for client, host, _ in self._answered if addresses.is_private(host)}
        """Hosts of clients that private addresses answer: these lead there, whatever their own."""
        self._literals: dict[tuple[str, int, int], set[str]] = {}
        """(role, node, port) -> its IP addresses."""
        for role, number, host, port in self.advertised if one_cluster else ():
            if addresses.is_address(host):
                self._literals.setdefault((role, number, port), set()).add(addresses.plain(host))
        for (host, port), number in nodes.items() if one_cluster else ():
            self._literals.setdefault(("broker", number, port), set()).add(addresses.plain(host))
        self._taken = {
            (host, port) for (_, _, port), hosts in self._literals.items() for host in hosts
        }
        ends = [each.last_ns or 0 for each in contacts.values()]
        ends += [max(each.last_ns or 0, each.told_ns or 0) for each in attempts.values()]
        self._end_ns = max(ends, default=0)
        """End of the capture, from connections and exchanges."""
        self._words: dict[tuple[NodeKey, ClientKey], ReachWord] = {}
        self._told = dict(advertised)
        self._met: dict[tuple[ClientKey, int], dict[str, Contact]] = {}
        self._unresolved: dict[ClientKey, dict[int, set[str]]] = {}
        self._attempted: dict[str, dict[int, dict[str, Attempts]]] = {}
        for (client_host, host, port), calls in attempts.items():
            by_port = self._attempted.setdefault(client_host, {}).setdefault(port, {})
            by_port[addresses.plain(host)] = calls

    def hosts_of(self, node: NodeKey) -> set[str] | None:
        """Return the IP addresses of a node's host; None when the capture shows none."""
        role, number, host, port = node
        if addresses.is_address(host):
            return {addresses.plain(host)}
        known = self._names.get(host.rstrip(".").lower(), set())
        return known | self._literals.get((role, number, port), set()) or None

    def word(self, node: NodeKey, client: ClientKey) -> ReachWord:
        if (node, client) not in self._words:
            self._words[node, client] = self._judge(node, client)
        return self._words[node, client]

    def best(self, node: NodeKey) -> ReachWord:
        """Return the best result among clients that got the address."""
        words = (self.word(node, each) for each in self.advertised_to(node))
        return min(words, key=ORDER.index, default="unknown")

    def advertised_to(self, node: NodeKey) -> list[ClientKey]:
        """Return the clients that got a node's address; empty where there were too many to keep."""
        return self.advertised.get(node, [])

    def _judge(self, node: NodeKey, client: ClientKey) -> ReachWord:
        _, _, host, port = node
        if addresses.is_loopback(host) and host == "localhost":
            mine = self._at(client, port)
            there = [each for each in mine if addresses.is_loopback(each)]
            return self._direct(client, there, port)
        hosts = self.hosts_of(node)
        if hosts is None:
            return self._guess(node, client)
        word = self._direct(client, sorted(hosts), port)
        if word in ("no", "unknown") and not addresses.is_address(host):
            # Names may stand for other addresses elsewhere, and at other times.
            return "likely" if self._guess(node, client) == "likely" else word
        return word

    def _at(self, client: ClientKey, port: int) -> dict[str, Contact]:
        """Return the addresses with a port that a client had exchanges with; requests without a
        client id may be of any client on its host."""
        known = self._met.get((client, port))
        if known is not None:
            return known
        found = self._met[client, port] = {}
        for who in dict.fromkeys((client, ("", client[1]))):
            for (host, number), contact in self._contacts.get(who, {}).items():
                if number == port:
                    found.setdefault(host, Contact()).merge(contact)
        return found

    def _names_of(self, client: ClientKey) -> dict[int, set[str]]:
        """Map each port to the unresolved host names advertised to a client."""
        if client not in self._unresolved:
            nodes = (node for node, _ in self._by_client[client] if self.hosts_of(node) is None)
            found = by_key((port, host) for _, _, host, port in nodes)
            self._unresolved[client] = {port: set(hosts) for port, hosts in found.items()}
        return self._unresolved[client]

    def _direct(self, client: ClientKey, hosts: list[str], port: int) -> ReachWord:
        mine = self._at(client, port)
        there = [mine[host] for host in hosts if host in mine]
        tried = self._attempted.get(client[1], {}).get(port, {})
        calls = [tried[host] for host in hosts if host in tried]
        if any(each.answered for each in there):
            return "yes"
        # Calls are known by their host alone: those of a host that is served are of others there.
        served = any((client[1], host, port) in self._answered for host in hosts)
        if calls and not served and any(each.failed(self._end_ns) for each in calls):
            return "failed"
        if there or (calls and not served):
            return "unanswered"
        # Who was connected before the capture may be still, and silent.
        early = any(each.midstream for each in self._contacts.get(client, {}).values())
        return "unknown" if early and not self.is_waiting(client) else "no"

    def places(self, node: NodeKey) -> set[tuple[str, int]]:
        """Return the (IP, port) pairs of a node; candidates where its host is not resolved."""
        host, port = node[2], node[3]
        hosts = self.hosts_of(node)
        if hosts is not None:
            return {(each, port) for each in hosts}
        clients = self.advertised_to(node)
        found = {(each, port) for client in clients for each in self._at(client, port)}
        if host == "localhost":
            return {place for place in found if addresses.is_loopback(place[0])}
        for client in clients:
            found |= {(each, port) for each in self._attempted.get(client[1], {}).get(port, {})}
        if self.best(node) == "failed":
            # Where they are served, the bootstrap address that is, is not what failed.
            mine = {client[1] for client in clients}
            found = {each for each in found if mine.isdisjoint(self._served.get(each, ()))}
        return found - self._taken

    def attempts(self, node: NodeKey) -> Attempts:
        sum_ = Attempts()
        hosts = {host for host, _ in self.places(node)}
        for client_host in {client[1] for client in self.advertised_to(node)}:
            for host, each in self._attempted.get(client_host, {}).get(node[3], {}).items():
                if host in hosts:
                    sum_.merge(each)
        return sum_

    def _guess(self, node: NodeKey, client: ClientKey) -> ReachWord:
        """Judge an unresolved name: by port, and by what the client did after it got the
        address."""
        port = node[3]
        names = self._names_of(client).get(port, set())
        since = self._told[node, client].first_ns or 0
        there = {
            host: each
            for host, each in self._at(client, port).items()
            if (host, port) not in self._taken
        }
        worked = [host for host, each in there.items() if (each.answered_work_ns or 0) >= since > 0]
        if worked:
            return "likely" if len(worked) >= len(names) else "unknown"
        tried = self._attempted.get(client[1], {}).get(port, {})
        failed = [
            each
            for host, each in tried.items()
            if (client[1], host, port) not in self._answered
            and (host, port) not in self._taken
            and (each.last_ns or 0) > since
        ]
        if any(each.failed(self._end_ns) for each in failed):
            return "failed"
        if self.is_waiting(client) or self.is_missed(node, client):
            return "no"
        onward = [
            host for host, each in there.items() if (each.opened_ns or 0) > since and each.answered
        ]
        if onward:
            return "likely" if len(onward) >= len(names) else "unknown"
        return "unknown"

    def is_waiting(self, client: ClientKey) -> bool:
        """Return whether a client looks up addresses again and again, and never does any work."""
        mine = self._contacts.get(client, {}).values()
        looks = [each for each in mine if each.lookups]
        if any(each.work for each in mine) or not looks:
            return False
        if sum(len(each.starts) for each in looks) >= limit("addresses.starts"):
            return True
        count = sum(each.looks for each in looks)
        if not count:
            return False
        first = min(each.first_look_ns or 0 for each in looks)
        last = max(each.last_look_ns or 0 for each in looks)
        least, pace_ns = limit("addresses.looks"), limit("addresses.pace")
        return count >= least and last - first <= pace_ns * (count - 1)

    def is_missed(self, node: NodeKey, client: ClientKey) -> bool:
        """Return whether a client that works with others keeps looking up what a node has, and
        never goes there.

        Two others, at least: a capture at one broker does not see clients of the others.
        """
        entry = self._told[node, client]
        few = len(self._working(client)) < MOST_SEEN_BY_ONE
        if few or entry.needed < limit("addresses.needed"):
            return False
        span = (entry.last_needed_ns or 0) - (entry.first_needed_ns or 0)
        if span > limit("addresses.needed-pace") * (entry.needed - 1):
            return False
        # What fails elsewhere makes clients ask, too; who was connected before may still be.
        calls = (
            each
            for by_host in self._attempted.get(client[1], {}).values()
            for each in by_host.values()
        )
        contacts = self._contacts.get(client, {}).values()
        return not (
            any(each.failed(self._end_ns) for each in calls)
            or any(each.midstream for each in contacts)
        )

    def _working(self, client: ClientKey) -> list[tuple[str, int]]:
        mine = self._contacts.get(client, {})
        return sorted(place for place, each in mine.items() if each.answered_work_ns is not None)

    def is_outside(self, node: NodeKey, client: ClientKey) -> bool:
        """Return whether a client has a public address and did not reach an advertised private one,
        although it tried, or has nowhere else to go."""
        return (
            addresses.is_public(client[1])
            and client[1] not in self._inside
            and (self.word(node, client) == "failed" or self.is_waiting(client))
        )

    def stuck(self) -> Iterator[StuckClient]:
        """Yield clients that reached no advertised address, or not all that they need, and repeat
        lookups."""
        for client in sorted(self._by_client):
            found = self._waiting(client) if self.is_waiting(client) else self._missing(client)
            if found is not None:
                yield found

    def _waiting(self, client: ClientKey) -> StuckClient | None:
        """Return what a client waits for that reached nothing."""
        words = {node: self.word(node, client) for node, _ in self._by_client[client]}
        missed = tuple(sorted(node for node, word in words.items() if word == "no"))
        if not missed or any(word not in ("no", "failed") for word in words.values()):
            return None
        looks = {place: each for place, each in self._contacts[client].items() if each.lookups}
        return StuckClient(
            client,
            sum(each.lookups for each in looks.values()),
            min(each.first_look_ns or 0 for each in looks.values()),
            max(each.last_look_ns or 0 for each in looks.values()),
            tuple(sorted(looks)),
            missed,
            works=False,
        )

    def _missing(self, client: ClientKey) -> StuckClient | None:
        """Return what a client misses that reached other nodes."""
        found = {
            node: each
            for node, each in self._by_client[client]
            if self.is_missed(node, client) and self.word(node, client) == "no"
        }
        if not found:
            return None
        return StuckClient(
            client,
            max(each.needed for each in found.values()),
            min(each.first_needed_ns or 0 for each in found.values()),
            max(each.last_needed_ns or 0 for each in found.values()),
            tuple(self._working(client)),
            tuple(sorted(found)),
            works=True,
        )
