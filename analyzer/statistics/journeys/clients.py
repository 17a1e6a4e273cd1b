"""Who the clients of the map are: their applications and groups, and how their transactions
ended."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from kafkascope.analyzer.identity import Identity, absorbed
from kafkascope.analyzer.merging.tables import OTHERS, Key, Keyed, by_key, sums
from kafkascope.analyzer.statistics.journeys.facts import (
    LOOKED_UP,
    MEMBER,
    ClientFacts,
    Edge,
    MapFacts,
    Membership,
    number_of,
)
from kafkascope.analyzer.statistics.journeys.model import Application, By, Read, Write
from kafkascope.analyzer.statistics.journeys.names import ClientUse, NamedClients, applications
from kafkascope.analyzer.statistics.model import TopicNames, topic_label


class MapClients:
    """The clients of a map, each with what traffic shows of it elsewhere, and topics by name."""

    def __init__(self, counted: MapFacts, names: TopicNames | None, by: By = "application") -> None:
        """`by`: what clients have in common that are one in the map."""
        self._names = names
        tables = counted.writes, counted.reads, counted.groups, counted.clients
        self._whole = absorbed({Identity(*key[:4]) for each in tables for key in each})
        self._by_number = {number_of(tuple(who)): to for who, to in self._whole.items()}
        self.labels = counted.labels(names)
        """Topics by their numbers."""
        self.outcomes = Outcomes(counted, self.labels)
        self._writes, self._reads = self._edges(counted.writes), self._edges(counted.reads)
        for row in counted.got.rows():
            topic = self.labels.get(row.topic, "")
            edge = self._reads.get((self._by_number.get(row.client), topic))
            if not row.judged or row.producer_id < 0 or edge is None:
                continue
            if self.outcomes.shown(topic, row.partition, row.producer_id, row.last, row.time_ns):
                edge.records += row.records
        facts = ((self._identity(key), each) for key, each in counted.clients.items())
        self._facts = sums(ClientFacts, facts)
        groups = (((self._identity(key), key[4]), each) for key, each in counted.groups.items())
        pairs = ((who, (group, each)) for (who, group), each in sums(Membership, groups).items())
        self._groups: dict[Identity | None, list[tuple[str, Membership]]] = by_key(pairs)
        self._named = applications(self._uses(), by)
        self._applications = {
            use.identity: name for name, named in self._named.items() for use in named.uses
        }
        self.group_of = cache(self._group_of)
        self.groups_over_time = cache(self._groups_over_time)

    def _identity(self, key: Key) -> Identity:
        return self._whole[Identity(*key[:4])]

    def _edges(self, edges: Keyed[Edge]) -> dict[Any, Edge]:
        """Return edges by client and name of the topic."""
        return sums(
            Edge,
            (
                ((self._identity(key), str(topic_label(key[4], self._names))), edge)
                for key, edge in edges.items()
            ),
        )

    def _uses(self) -> Iterator[ClientUse]:
        """Yield the clients that write or read."""
        writes, reads = by_key(self._writes), by_key(self._reads)
        for who in {**writes, **reads}:
            yield ClientUse(
                who,
                {group for group, _ in self._groups.get(who, ())},
                set(self._facts.get(who, ClientFacts()).transactional_ids),
                set(writes.get(who, ())),
                set(reads.get(who, ())),
            )

    def of(self, number: int) -> Identity | None:
        """Return a client by its number; None for one that was evicted."""
        return self._by_number.get(number)

    def application_of(self, who: Identity | None) -> str:
        return OTHERS if who is None else self._applications.get(who, OTHERS)

    def _group_of(self, who: Identity | None, topic: str) -> str | None:
        """Return the group for which a client reads a topic; None for a consumer without one, or
        one of several that cannot be told apart."""
        found = self._candidates(who, topic)
        return next(iter(found)) if len(found) == 1 else None

    def _groups_read(self, who: Identity, topic: str) -> tuple[str | None, tuple[str, ...]]:
        """Return the group for which a client reads a topic, or several that it may be."""
        group = self.group_of(who, topic)
        return group, () if group else tuple(sorted(self._candidates(who, topic)))

    def _candidates(self, who: Identity | None, topic: str) -> dict[str, Membership]:
        """Return the groups for which a client may read a topic."""
        for how in (MEMBER, LOOKED_UP):
            groups = {name: its for name, its in self._groups.get(who, ()) if its.how & how}
            of_topic = {name: its for name, its in groups.items() if topic in self._topics(its)}
            if groups:
                return groups if len(groups) == 1 else of_topic or groups
        return {}

    def _groups_over_time(self, who: Identity | None, topic: str) -> list[tuple[int, str | None]]:
        """Return the groups for which a client reads a topic, each with the time from which on: a
        console consumer has another group in each run. None for those that cannot be told apart."""
        spans = [
            (each.first_ns or 0, each.last_ns or 0, name)
            for name, each in self._candidates(who, topic).items()
        ]
        spans.sort()
        if not spans or any(one[1] >= other[0] for one, other in pairwise(spans)):
            return [(0, self.group_of(who, topic))]
        return [(first_ns, name) for first_ns, _, name in spans]

    def _topics(self, membership: Membership) -> set[str]:
        return {str(topic_label(topic, self._names)) for (topic,) in membership.topics}

    def applications(self) -> list[Application]:
        """Return the applications, by name."""
        writes = sums(
            Edge,
            (((self._applications[who], of), each) for (who, of), each in self._writes.items()),
        )
        writes_of = by_key(
            (name, Write(topic, *each.sums, *each.times, tuple(each.schemas)))
            for (name, topic), each in writes.items()
        )
        reads = sums(
            Edge,
            (
                ((self._applications[who], topic, *self._groups_read(who, topic)), each)
                for (who, topic), each in self._reads.items()
            ),
        )
        reads_of = by_key(
            (name, Read(topic, group, *each.sums, *each.times, groups))
            for (name, topic, group, groups), each in reads.items()
        )
        return [
            self._application(name, named, writes_of.get(name, []), reads_of.get(name, []))
            for name, named in self._named.items()
        ]

    def _application(
        self, name: str, named: NamedClients, writes: list[Write], reads: list[Read]
    ) -> Application:
        identities = [use.identity for use in named.uses]
        racks = (self._facts[who].racks for who in identities if who in self._facts)
        return Application(
            name,
            tuple(sorted(named.client_ids)),
            named.rule,
            tuple(sorted(named.users)),
            tuple(sorted({each.software for each in identities} - {""})),
            tuple(sorted({each.host for each in identities})),
            tuple(sorted({rack for each in racks for rack in each})),
            tuple(sorted(writes)),
            tuple(sorted(reads, key=lambda each: (each.topic, each.group or ""))),
        )


class Outcomes:
    """How transactions ended: by their markers in the logs, or else by the requests to end them."""

    def __init__(self, counted: MapFacts, labels: dict[int, str]) -> None:
        markers = by_key(
            ((labels.get(row.topic), row.partition, row.producer_id), (row.offset, row.committed))
            for row in counted.markers.rows()
        )
        self._markers = {key: sorted(set(ends)) for key, ends in markers.items()}
        self._ends = by_key(
            (row.producer_id, (row.time_ns, row.committed)) for row in counted.ends.rows()
        )

    def of(self, topic: str, number: int, producer: int, offset: int) -> bool | None:
        """Return whether the transaction of a record was committed; None where no marker of its
        producer follows."""
        ends = self._markers.get((topic, number, producer), [])
        at = bisect_right(ends, (offset, 2))
        return bool(ends[at][1]) if at < len(ends) else None

    def ended(self, producer: int, time_ns: int) -> bool | None:
        """Return whether a producer commits the transaction that it has at a time; None where it
        does not end it."""
        ends = self._ends.get(producer, [])
        at = bisect_left(ends, (time_ns, 0))
        return bool(ends[at][1]) if at < len(ends) else None

    def shown(self, topic: str, number: int, producer: int, offset: int, time_ns: int) -> bool:
        """Return whether a read_committed client that fetched a record at a time gives it to the
        application: brokers send it no transaction that has not ended."""
        committed = self.of(topic, number, producer, offset)
        if committed is None:
            ends = self._ends.get(producer, [])
            at = bisect_left(ends, (time_ns, 0))
            committed = bool(ends[at - 1][1]) if at else None
        return committed is not False
