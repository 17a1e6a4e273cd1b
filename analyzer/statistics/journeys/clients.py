"""Who the clients of the map are: their applications and groups, and how their transactions
ended."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from typing import Any

from kafkascope.analyzer.identity import Identity, absorbed
from kafkascope.analyzer.merging.tables import OTHERS, Keyed, M, by_key, sums
from kafkascope.analyzer.statistics.journeys import facts
from kafkascope.analyzer.statistics.journeys.facts import ClientFacts, Edge, MapFacts, Membership
from kafkascope.analyzer.statistics.journeys.model import Application, AppMap, By, MapEdge
from kafkascope.analyzer.statistics.journeys.names import ClientUse, NamedClients, applications
from kafkascope.analyzer.statistics.model import TopicNames, topic_label

Ends = list[tuple[int, int]]


class MapClients:
    """The clients of a map, each with what traffic shows of it elsewhere, and topics by name."""

    def __init__(self, counted: MapFacts, names: TopicNames | None, by: By = "application") -> None:
        """`by`: what clients have in common that are one in the map."""
        self._counted, self._names = counted, names
        tables = counted.writes, counted.reads, counted.groups, counted.clients
        self._whole = absorbed({Identity(*key[:4]) for each in tables for key in each})
        self._by_number = {facts.number_of(tuple(who)): to for who, to in self._whole.items()}
        self.labels = counted.labels(names)
        """Topics by their numbers."""
        self.outcomes = Outcomes(counted, self.labels)
        written = self._of_whole(counted.writes, "writes")
        self._edges = sums(Edge, chain(written, self._of_whole(counted.reads, "reads")))
        for row in counted.got.rows():
            topic = self.labels.get(row.topic, "")
            edge = self._edges.get((self._by_number.get(row.client), "reads", topic))
            if not row.judged or row.producer_id < 0 or edge is None:
                continue
            if self.outcomes.shown(topic, row.partition, row.producer_id, row.end, row.time_ns):
                edge.records += row.records
        self._facts = sums(ClientFacts, self._of_whole(counted.clients))
        groups = sums(Membership, self._of_whole(counted.groups))
        self._groups: dict[Any, list[tuple[str, Membership]]] = by_key(
            (who, (group, each)) for (who, group), each in groups.items()
        )
        self._named = applications(self._uses(), by)
        self._applications = {
            use.identity: name for name, named in self._named.items() for use in named.uses
        }
        self.groups_over_time = cache(self._groups_over_time)

    def _label(self, topic: str | None) -> str:
        return str(topic_label(topic, self._names))

    def _of_whole(self, table: Keyed[M], way: str = "") -> Iterator[tuple[Any, M]]:
        """Yield measures by client, and what is behind it in their keys; of edges that have a way,
        by the name of their topic."""
        for key, each in table.items():
            who = self._whole[Identity(*key[:4])]
            yield (who, *((way, self._label(key[4])) if way else key[4:])), each

    def _uses(self) -> Iterator[ClientUse]:
        """Yield the clients that write or read."""
        topics = by_key(((who, way), topic) for who, way, topic in self._edges)
        for who in dict.fromkeys(who for who, _, _ in self._edges):
            groups = {group for group, _ in self._groups.get(who, ())}
            ids = set(self._facts.get((who,), ClientFacts()).transactional_ids)
            sides = (set(topics.get((who, way), ())) for way in ("writes", "reads"))
            yield ClientUse(who, groups, ids, *sides)

    def of(self, number: int) -> tuple[Identity | None, str]:
        """Return a client by its number, None for one that was evicted, and its application."""
        who = self._by_number.get(number)
        return who, OTHERS if who is None else self._applications.get(who, OTHERS)

    def _candidates(self, who: Identity | None, topic: str) -> dict[str, Membership]:
        """Return the groups for which a client may read a topic."""
        for how in (facts.MEMBER, facts.LOOKED_UP):
            groups = {name: its for name, its in self._groups.get(who, ()) if its.how & how}
            if groups:
                of_topic = {
                    name: its
                    for name, its in groups.items()
                    if topic in {self._label(each) for (each,) in its.topics}
                }
                return groups if len(groups) == 1 else of_topic or groups
        return {}

    def _groups_over_time(self, who: Identity | None, topic: str) -> list[tuple[int, str | None]]:
        """Return the groups for which a client reads a topic, each with the time from which on: a
        console consumer has another group in each run. None for those that cannot be told apart,
        and for a consumer without one."""
        spans = sorted(
            (each.first_ns or 0, each.last_ns or 0, name)
            for name, each in self._candidates(who, topic).items()
        )
        if any(one[1] >= other[0] for one, other in pairwise(spans)):
            return [(0, None)]
        return [(first_ns, name) for first_ns, _, name in spans] or [(0, None)]

    # --- the map

    def map(self, *, brokers: bool) -> AppMap:
        """Return the applications, by name; and brokers that replicate, as such that read."""
        named = (
            ((self._applications[who], way, topic, *self._groups_of(who, way, topic)), each)
            for (who, way, topic), each in self._edges.items()
        )
        edges = by_key(
            (name, MapEdge(way, topic, group, *each.values, tuple(each.schemas), groups))
            for (name, way, topic, group, groups), each in sums(Edge, named).items()
        )
        found = [self._application(name, named, edges[name]) for name, named in self._named.items()]
        unnamed = sum(each.unnamed for each in self._counted.clients.values())
        return AppMap(found + (self._brokers() if brokers else []), unnamed)

    def _groups_of(self, who: Identity, way: str, topic: str) -> tuple[str | None, tuple[str, ...]]:
        """Return the group for which a client reads a topic, or several that it may be."""
        found = tuple(sorted(self._candidates(who, topic))) if way == "reads" else ()
        return (found[0], ()) if len(found) == 1 else (None, found)

    def _application(self, name: str, named: NamedClients, edges: list[MapEdge]) -> Application:
        identities = [use.identity for use in named.uses]
        known = [self._facts.get((who,), ClientFacts()) for who in identities]
        return Application(
            name,
            tuple(sorted(named.client_ids)),
            named.rule,
            tuple(sorted(named.users)),
            tuple(sorted({each.software for each in identities} - {""})),
            tuple(sorted({each.host for each in identities})),
            tuple(sorted({rack for each in known for rack in each.racks})),
            tuple(sorted(edges, key=lambda each: (each.way != "writes", each[1], each[2] or ""))),
        )

    def _brokers(self) -> list[Application]:
        replicas = self._counted.replicas.items()
        found = sums(Edge, (((node, self._label(topic)), each) for (node, topic), each in replicas))
        edges = by_key(
            (node, MapEdge("reads", topic, None, *each.values))
            for (node, topic), each in sorted(found.items())
        )
        return [
            Application(
                *(f"broker {node}", (), "node ID of a follower"),
                edges=tuple(each for each in its if each.bytes),
            )
            for node, its in edges.items()
        ]


class Outcomes:
    """How transactions ended: by their markers in the logs, or else by the requests to end them."""

    def __init__(self, counted: MapFacts, labels: dict[int, str]) -> None:
        rows = list(counted.ends.rows())
        self._markers = by_key(
            ((labels.get(row.topic), row.partition, row.producer_id), (row.offset, row.committed))
            for row in sorted(rows, key=lambda row: (row.offset, row.committed))
            if row.topic >= 0
        )
        self._requests = by_key(
            (row.producer_id, (row.time_ns, row.committed)) for row in rows if row.topic < 0
        )

    def of(self, topic: str, number: int, producer: int, offset: int) -> bool | None:
        """Return whether the transaction of a record was committed; None where no marker of its
        producer follows."""
        return _first(self._markers.get((topic, number, producer), []), offset + 1)

    def ended(self, producer: int, time_ns: int) -> bool | None:
        """Return whether a producer commits the transaction that it has at a time; None where it
        does not end it."""
        return _first(self._requests.get(producer, []), time_ns)

    def shown(self, topic: str, number: int, producer: int, end: int, time_ns: int) -> bool:
        """Return whether a read_committed client that fetched records up to an offset at a time
        gives them to the application: brokers send it no transaction that has not ended."""
        committed = self.of(topic, number, producer, end - 1)
        if committed is None:
            ends = self._requests.get(producer, [])
            at = bisect_left(ends, (time_ns,))
            committed = bool(ends[at - 1][1]) if at else None
        return committed is not False


def _first(ends: Ends, place: int) -> bool | None:
    """Return what the first end at a place or after it is."""
    at = bisect_left(ends, (place,))
    return bool(ends[at][1]) if at < len(ends) else None
