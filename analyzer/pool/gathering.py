"""Puts together what workers tell, in the order in which one process would tell it. No I/O."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import merge
from itertools import chain, repeat
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kafkascope.analyzer.exchanges.heard import Heard
from kafkascope.analyzer.exchanges.rows import nameless_topics, renamed
from kafkascope.analyzer.pipeline.tables.numbers import CONNECTION, EXCHANGE
from kafkascope.analyzer.pool.messages import (
    USUAL,
    Alone,
    BlockReport,
    Marks,
    ShapedBlock,
    Sums,
    Twice,
)
from kafkascope.analyzer.text import json_safe
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import Endpoint
from kafkascope.captures.streams.shares import LEFT
from kafkascope.dissectors.codec.jsonform import dumps

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import Problem
    from kafkascope.analyzer.exchanges.rows import Row

Longs: TypeAlias = NDArray[np.int64]

_MOMENT = itemgetter(0)
_NONE: Final = np.empty(0, np.int64)


class Placed(NamedTuple):
    """The places of a block's exchanges; each has an index, counted from one worker to the next."""

    order: Longs
    """Their indexes, in order."""
    number: Longs
    """Their numbers, by index."""
    moment: Longs
    """When each was complete, by index."""


class Gathering:
    """Takes what all workers tell of each block; gives what was made of exchanges, in order."""

    def __init__(self, workers: int, marks: Marks, reshape: Callable[[Row], bytes] | None) -> None:
        self._marks = marks
        self._end = b"%d" % marks.end
        self._reshape = reshape
        self._connections: dict[int, int] = {}
        """Numbers of connections, by their first packets."""
        self._given = [array("q") for _ in range(workers)]
        """Numbers of exchanges, by worker and the worker's own numbers."""
        self._numbers = 0
        self.names = TopicNames()
        self._known: dict[Endpoint | int, int] = {}
        """Brokers and ports of nodes, with the moment from which on they are known."""
        self._sealed: dict[bytes, dict[int, int]] = {}
        """Names that connections with TLS have, by worker, with the moment from which on."""
        self.exchanges = self.wanted = 0
        self.first_ns = 0
        self.read = 0
        self._first: tuple[int, int] | None = None

    def take(self, told: Sequence[BlockReport]) -> ShapedBlock:
        """Return what was made of the exchanges of a block; raise `Alone`."""
        return self._block(told, self._place(told))

    def place(self, told: Sequence[BlockReport]) -> Placed:
        """Return the places of a block's exchanges, of which workers told something else; raise
        `Alone`."""
        placed = self._place(told)
        for _, topic_id, name in merge(*(each.named for each in told), key=_MOMENT):
            self._learn(topic_id, name)
        return placed

    def _place(self, told: Sequence[BlockReport]) -> Placed:
        self._settle(told)
        _undisturbed(told)
        for packet in sorted(packet for each in told for packet in each.opened):
            self._connections[packet] = len(self._connections)
        taken = [np.array(each.taken) for each in told]
        self._number(taken, [_turns(each.ranks, len(each.taken)) for each in told])
        moments = [np.array(each.moments) for each in told]
        turns = [_turns(each.turns, len(each.moments)) for each in told]
        _apart(moments, turns, LEFT)
        self.exchanges += sum(each.exchanges for each in told)
        self.wanted += sum(each.wanted for each in told)
        self.read = max(each.read for each in told)
        firsts = [each.first for each in told if each.first is not None]
        self._first = min([*firsts, *([self._first] if self._first else [])], default=None)
        self.first_ns = 0 if self._first is None else self._first[1]
        moment = np.concatenate(moments)
        numbers = [
            np.frombuffer(given, np.int64)[np.array(each.numbers)] if each.numbers else _NONE
            for given, each in zip(self._given, told, strict=True)
        ]
        number = np.concatenate(numbers)
        # Of those that nothing completed, the numbers order them.
        left = np.where(moment == LEFT, number, 0)
        order = np.lexsort((np.concatenate(turns), left, moment))
        return Placed(order, number, moment)

    @property
    def workers(self) -> int:
        """Number of the workers."""
        return len(self._given)

    def _number(self, taken: list[Longs], turns: list[Longs]) -> None:
        """Number exchanges by the moments at which workers wanted numbers."""
        _apart(taken, turns, 0)
        moments = np.concatenate(taken)
        ranks = np.zeros(len(moments), np.int64)
        order = np.lexsort((np.concatenate(turns), moments))
        order = order[np.count_nonzero(moments == 0) :]
        ranks[order] = self._numbers + 1 + np.arange(len(order))
        self._numbers += len(order)
        begin = 0
        for given, each in zip(self._given, taken, strict=True):
            given.frombytes(ranks[begin : begin + len(each)].tobytes())
            begin += len(each)

    def _block(self, told: Sequence[BlockReport], placed: Placed) -> ShapedBlock:
        """Put what workers made of exchanges in order."""
        order, number = placed.order.tolist(), placed.number.tolist()
        made: list[bytes] = []
        unusual: dict[int, tuple[Row | Twice, int]] = {}
        problems: dict[int, Sequence[Problem]] = {}
        for each in told:
            ends = list(map(self._connections.__getitem__, each.connections))
            at = len(made)
            ranks = number[at : at + len(ends)]
            unusual |= {at + index: (one, ends[index]) for index, one in each.unusual.items()}
            problems |= {at + index: found for index, found in each.problems.items()}
            made += self._filled(each, ranks, ends)
        nameless = self._name(told, placed, made, unusual, problems)
        if len(order) > 1:
            made = list(itemgetter(*order)(made))
        said = [
            one._replace(exchange=number[at])
            for at in (order if problems else ())
            for one in problems.get(at, ())
        ]
        return ShapedBlock(b"".join(made), len(made), nameless, said)

    def _filled(self, told: BlockReport, numbers: list[int], connections: list[int]) -> list[bytes]:
        """Return what a worker made of each exchange, with numbers where marks were."""
        if not told.text:
            return []
        if told.kinds:
            index, given = 0, []
            for kind in told.kinds:
                if kind == USUAL[0]:
                    given.append(numbers[index])
                elif kind == USUAL[1]:
                    given.append(connections[index])
                else:
                    given.append(self._marks.end)
                    index += 1
        else:
            ends = repeat(self._marks.end, len(numbers))
            given = list(chain.from_iterable(zip(numbers, connections, ends, strict=True)))
        return (told.text % tuple(given)).split(self._end)[:-1]

    def _name(
        self,
        told: Sequence[BlockReport],
        placed: Placed,
        made: list[bytes],
        unusual: dict[int, tuple[Row | Twice, int]],
        problems: dict[int, Sequence[Problem]],
    ) -> list[str]:
        """Make what takes names of topics, as far as they are known by then; return what stands for
        names that may come late."""
        named = list(merge(*(each.named for each in told), key=_MOMENT))
        nameless: list[str] = []
        done = 0
        order, number, moment = placed
        for at in order.tolist() if unusual else ():
            if at not in unusual:
                continue
            one, connection = unusual[at]
            while done < len(named) and named[done][0] <= moment[at]:
                self._learn(*named[done][1:])
                done += 1
            if isinstance(one, Twice):
                made[at], stands, problems[at] = self._named(one, int(number[at]), connection)
                nameless += stands
            else:
                row = renamed(one, self.names)
                assert self._reshape is not None
                made[at] = self._reshape(
                    replace(row, number=int(number[at]), connection=connection)
                )
                nameless += nameless_topics(row)
        for _, topic_id, name in named[done:]:
            self._learn(topic_id, name)
        return nameless

    def _settle(self, told: Sequence[BlockReport]) -> None:
        """Take note of brokers; raise `Alone` when a worker did not know one that others knew."""
        for each in told:
            for moment, what in each.learned:
                self._known[what] = min(moment, self._known.get(what, moment))
        for each in told:
            for moment, what in each.asked:
                if self._known.get(what, moment) < moment:
                    raise Alone
        if any(each.sealed or each.unsealed for each in told):
            self._compare(told)

    def _compare(self, told: Sequence[BlockReport]) -> None:
        """Raise `Alone` when a connection with TLS asked for what another worker knew by then."""
        from kafkascope.captures.tls.keys.sessions import MOST_SESSIONS

        sealed = self._sealed
        for worker, each in enumerate(told):
            for moment, name in each.sealed:
                sealed.setdefault(name, {}).setdefault(worker, moment)
        if len(sealed) > MOST_SESSIONS:
            raise Alone  # one process would forget the oldest
        for worker, each in enumerate(told):
            for moment, name in each.unsealed:
                others = sealed.get(name, {})
                # What two tell of one moment, both know of a connection that they follow.
                own = others.get(worker)
                if any(known < moment and known != own for known in others.values()):
                    raise Alone

    def rank(self, worker: int, place: int) -> int:
        """Return the number in place of a worker's provisional one; another number stays, as the
        offsets and ids of messages that look like one."""
        if place >= CONNECTION:
            return self._connections.get(place - CONNECTION, place)
        given, at = self._given[worker], (place - EXCHANGE) >> 1
        return given[at] if at < len(given) else place

    def _learn(self, topic_id: bytes, name: str) -> None:
        if self.names.get(topic_id) not in (None, name):
            # Rows that were made meanwhile may have the other one.
            raise Alone
        self.names.learn(topic_id, name)

    def _named(
        self, made: Twice, number: int, connection: int
    ) -> tuple[bytes, Sequence[str], Sequence[Problem]]:
        """Return what was made with the names that are known by now: data, what stands for names
        that may come late, problems."""
        names = [self.names.get(each) for each in made.ids]
        known = {topic_id: name for topic_id, name in zip(made.ids, names, strict=True) if name}
        data, stands, problems = made.nameless, made.stands, made.problems
        if known:
            distinct = {*known.values(), *made.topics}
            if len(known) < len(names) or len(distinct) < len(known) + len(made.topics):
                # Some names, or one for two ids: what stands where depends on the place.
                raise Alone
            data, stands, problems = made.named, [], made.said
            for topic_id, name in known.items():
                mark = f"{self._marks.topic}{topic_id.hex()}"
                data = data.replace(mark.encode(), json_safe(dumps(name))[1:-1])
                problems = [
                    each._replace(topic=each.topic.replace(mark, name)) for each in problems
                ]
        data = data.replace(b"%d" % self._marks.number, b"%d" % number)
        return data.replace(b"%d" % self._marks.connection, b"%d" % connection), stands, problems


def _apart(moments: Sequence[Longs], turns: Sequence[Longs], usual: int) -> None:
    """Raise `Alone` when two workers did something at the same moment: deadlines of several
    connections passed at once, or were over at the end. What common connections brought, all saw
    (`turns`). `usual`: a moment that says nothing."""
    both = list(zip(moments, turns, strict=True))
    found = [each[turn == 0] for each, turn in both]
    found.append(np.concatenate([each[turn > 0] for each, turn in both]))
    shared = [
        np.unique(each[((each & 1 == 0) | (each >= LEFT)) & (each != usual)]) for each in found
    ]
    if len(np.unique(np.concatenate(shared))) < sum(map(len, shared)):
        raise Alone


def _undisturbed(told: Sequence[BlockReport]) -> None:
    """Raise `Alone` when a deadline of one worker was over within a run of another one."""
    for each in told:
        for other in told if each.woken else ():
            if other is not each and other.spans:
                spans = np.array(other.spans, np.int64)
                begins, ends = spans[::2], spans[1::2]
                if any(((begins < moment) & (moment < ends)).any() for moment in each.woken):
                    raise Alone


def _turns(told: dict[int, int], count: int) -> Longs:
    """Return what is told by index as a column; 0 elsewhere."""
    found = np.zeros(count, np.int64)
    if told:
        found[list(told)] = list(told.values())
    return found


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
    log = any(each.key_log for each in found)
    beyond = set[str]().union(*(each.beyond for each in found))
    return Sums(
        *(statistics, damage, skipped, opaque, encrypted, log, heard, brokers, results, said),
        beyond,
    )
