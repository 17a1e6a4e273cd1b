"""Puts together what workers tell, in the order in which one process would tell it. No I/O."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import count, repeat
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, TypeAlias

from kafkascope.analyzer.exchanges.heard import Heard
from kafkascope.analyzer.exchanges.rows import renamed
from kafkascope.analyzer.pipeline.tables.numbers import CONNECTION, EXCHANGE
from kafkascope.analyzer.pool.messages import Alone, BlockReport, Marks, ShapedExchange, Sums, Twice
from kafkascope.analyzer.text import json_safe
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import Endpoint
from kafkascope.captures.streams.shares import LEFT
from kafkascope.dissectors.codec.jsonform import dumps

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import Problem
    from kafkascope.analyzer.exchanges.rows import Row

Numbered: TypeAlias = "tuple[int, int, int, bytes | Row | Twice, int, BlockReport]"

_MOMENT = itemgetter(0)


class Gathering:
    """Takes what all workers tell of each block; gives what was made of exchanges, in order."""

    def __init__(self, workers: int, marks: Marks, reshape: Callable[[Row], bytes] | None) -> None:
        self._marks = (b"%d" % marks.number, b"%d" % marks.connection)
        self._topic = marks.topic
        self._reshape = reshape
        self._connections: dict[int, int] = {}
        """Numbers of connections, by their first packets."""
        self._given = [array("q") for _ in range(workers)]
        """Numbers of exchanges, by worker and the worker's own numbers."""
        self._numbers = 0
        self.names = TopicNames()
        self._known: dict[Endpoint | int, int] = {}
        """Brokers and ports of nodes, with the moment from which on they are known."""
        self.exchanges = self.wanted = 0
        self.first_ns = 0
        self.read = 0
        self._first: tuple[int, int] | None = None

    def take(self, told: Sequence[BlockReport]) -> Iterator[ShapedExchange]:
        """Yield what was made of the exchanges of a block; raise `Alone`."""
        self._settle(told)
        for packet in sorted(packet for each in told for packet in each.opened):
            self._connections[packet] = len(self._connections)
        _apart([each.taken for each in told])
        _apart([[moment for moment in each.moments if moment != LEFT] for each in told])
        taken = [[(moment, worker) for moment in each.taken] for worker, each in enumerate(told)]
        for _, worker in merge(*taken, key=_MOMENT):
            self._numbers += 1
            self._given[worker].append(self._numbers)
        named = list(merge(*(each.named for each in told), key=_MOMENT))
        at = 0
        for moment, number, connection, made, index, report in sorted(
            self._numbered(told), key=_place
        ):
            while at < len(named) and named[at][0] <= moment:
                self._learn(*named[at][1:])
                at += 1
            problems: Sequence[Problem] = report.problems.get(index, ())
            stands: Sequence[str] = ()
            if isinstance(made, Twice):
                made, stands, problems = self._named(made)
            data = self._whole(made, number, self._connections[connection])
            if problems:
                problems = [each._replace(exchange=number) for each in problems]
            yield ShapedExchange(data, stands, problems)
        for _, topic_id, name in named[at:]:
            self._learn(topic_id, name)
        self.exchanges += sum(each.exchanges for each in told)
        self.wanted += sum(each.wanted for each in told)
        self.read = max(each.read for each in told)
        firsts = [each.first for each in told if each.first is not None]
        self._first = min([*firsts, *([self._first] if self._first else [])], default=None)
        self.first_ns = 0 if self._first is None else self._first[1]

    def _numbered(self, told: Sequence[BlockReport]) -> Iterator[Numbered]:
        """Yield moment, number, first packet of the connection, what was made, and its index in
        the worker's report."""
        for given, each in zip(self._given, told, strict=True):
            numbers = map(given.__getitem__, each.numbers)
            columns = each.moments, numbers, each.connections, each.made
            yield from zip(*columns, count(), repeat(each))

    def _settle(self, told: Sequence[BlockReport]) -> None:
        """Take note of brokers; raise `Alone` when a worker did not know one that others knew."""
        for each in told:
            for moment, what in each.learned:
                self._known[what] = min(moment, self._known.get(what, moment))
        for each in told:
            for moment, what in each.asked:
                if self._known.get(what, moment) < moment:
                    raise Alone

    def rank(self, worker: int, place: int) -> int:
        """Return the number in place of a worker's provisional one; another number stays."""
        if place >= CONNECTION:
            return self._connections[place - CONNECTION]
        return self._given[worker][place - EXCHANGE]

    def _learn(self, topic_id: bytes, name: str) -> None:
        if self.names.get(topic_id) not in (None, name):
            # Rows that were made meanwhile may have the other one.
            raise Alone
        self.names.learn(topic_id, name)

    def _named(self, made: Twice) -> tuple[bytes, Sequence[str], Sequence[Problem]]:
        """Return what was made with the names that are known by now: data, what stands for names
        that may come late, problems."""
        names = [self.names.get(each) for each in made.ids]
        known = {topic_id: name for topic_id, name in zip(made.ids, names, strict=True) if name}
        if not known:
            return made.nameless, made.stands, made.problems
        distinct = {*known.values(), *made.topics}
        if len(known) < len(names) or len(distinct) < len(known) + len(made.topics):
            # Some names, or one for two ids: what stands where depends on the place.
            raise Alone
        data, problems = made.named, made.said
        for topic_id, name in known.items():
            mark = f"{self._topic}{topic_id.hex()}"
            data = data.replace(mark.encode(), json_safe(dumps(name))[1:-1])
            problems = [each._replace(topic=each.topic.replace(mark, name)) for each in problems]
        return data, (), problems

    def _whole(self, made: bytes | Row, number: int, connection: int) -> bytes:
        if not isinstance(made, bytes):
            assert self._reshape is not None
            row = replace(renamed(made, self.names), number=number, connection=connection)
            return self._reshape(row)
        first, second = self._marks
        return made.replace(first, b"%d" % number).replace(second, b"%d" % connection, 1)


def _place(numbered: Numbered) -> tuple[int, int]:
    """Return what orders exchanges: the moment; of those that nothing completed, the number."""
    moment, number, *_ = numbered
    return moment, number if moment == LEFT else 0


def _apart(moments: Sequence[Sequence[int]]) -> None:
    """Raise `Alone` when two workers did something at the same moment: deadlines of several
    connections passed at once, or were over at the end."""
    seen: dict[int, int] = {}
    for worker, mine in enumerate(moments):
        for moment in mine:
            apart = moment % 2 == 1 and moment < LEFT
            if not apart and seen.setdefault(moment, worker) != worker:
                raise Alone


def sums_of(found: Sequence[Sums]) -> Sums:
    """Add up the sums of all workers. What each of them sees counts once."""
    first = found[0]
    statistics = first.statistics
    statistics.connections = sum(each.statistics.connections for each in found)
    statistics.duplicates = sum(each.statistics.duplicates for each in found)
    heard = Heard()
    for each in found:
        heard.add(each.heard)
    opaque = sum((each.opaque for each in found), start=type(first.opaque)())
    encrypted = [one for each in found for one in each.encrypted]
    encrypted.sort(key=attrgetter("number"))
    brokers = set[Endpoint]().union(*(each.brokers for each in found))
    skipped = sum(each.skipped_bytes for each in found)
    results = [one for each in found for one in each.results]
    said = list(dict.fromkeys(line for each in found for line in each.said))
    damage = first.damage
    return Sums(statistics, damage, skipped, opaque, encrypted, heard, brokers, results, said)
