"""Puts together what workers send: numbers exchanges and connections, and prints them in order. No
I/O."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.analyzer.pipeline.tables.numbers import (
    CONNECTION,
    Ranks,
    exchange_place,
    in_order,
    ranks_of,
)
from kafkascope.analyzer.pool import messages
from kafkascope.analyzer.pool.captured_sides import CapturedSides
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import Endpoint
from kafkascope.captures.streams.shares import NeedsSingleProcess
from kafkascope.kernel.numbering import Hold, Start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafkascope.analyzer.conversation.context import CrossCheck
    from kafkascope.analyzer.exchanges.records import Problem


class _Made(NamedTuple):
    """Output for an exchange."""

    text: bytes
    connection: int
    """First packet of its connection; `NOT_WANTED`."""
    odd: messages.Oddity | None


NOTHING: Final = messages.ShapedBlock(b"", 0)
UNWANTED: Final = _Made(b"", messages.NOT_WANTED, None)


class WorkerMerge:
    """Takes what all workers send of each block; gives what was made of exchanges, in order."""

    def __init__(
        self, workers: int, placeholders: messages.Placeholders, *, prints: bool = True
    ) -> None:
        """`prints`: whether workers make texts of exchanges (`Work.shape`)."""
        self.workers = workers
        self._prints = prints
        self._number, self._connection = (b"%d" % each for each in placeholders)
        self._connections: dict[int, int] = {}
        """Numbers of connections, by their first packets."""
        self.order = MergeOrder(workers)
        self._origins = array("q")
        """Origins of all exchanges: packet, offset, packet, offset..."""
        self._ranks: Ranks | None = None
        self.names = TopicNames()
        self._cross_facts: list[set[CrossCheck]] = [set() for _ in range(workers)]
        """Cross-checks that each worker can answer."""
        self.exchanges = self.wanted = self.read = 0

    def take(self, batches: Sequence[messages.WorkerBatch]) -> messages.ShapedBlock:
        """Return what can be printed after a block; raise `NeedsSingleProcess`."""
        self._learn(batches)
        if not self._prints:
            return NOTHING
        for batch in batches:
            self.order.add(batch, self._made(batch))
        return self._block(self.order.settle(batches))

    def finish(self) -> messages.ShapedBlock:
        return self._block(self.order.hold.finish())

    def _learn(self, batches: Sequence[messages.WorkerBatch]) -> None:
        """Take what is not of single exchanges; raise `NeedsSingleProcess` where a worker judged a
        connection without what another one knew."""
        for packet in sorted(packet for each in batches for packet in each.opened):
            self._connections[packet] = len(self._connections)
        for known, batch in zip(self._cross_facts, batches, strict=True):
            known.update(batch.cross_facts)
            self.names.learn_all(dict(batch.names))
            self._origins += batch.origins
            self.exchanges += len(batch.origins) >> 1
            self.wanted += batch.wanted
            self.read = max(self.read, batch.read)
        for worker, batch in enumerate(batches):
            for other, known in enumerate(self._cross_facts):
                if other != worker and not batch.cross_checks.isdisjoint(known):
                    raise NeedsSingleProcess

    def _made(self, batch: messages.WorkerBatch) -> Iterator[_Made]:
        at = 0
        connections = iter(batch.connections)
        for index, size in enumerate(batch.sizes):
            if size == messages.NOT_WANTED:
                yield UNWANTED
                continue
            text = batch.text[at : at + size]
            at += size
            yield _Made(text, next(connections), batch.odd.get(index))

    def _block(self, numbered: Any) -> messages.ShapedBlock:
        """Put numbers in their places."""
        texts: list[bytes] = []
        nameless: list[str] = []
        problems: list[Problem] = []
        place, other, connections = self._number, self._connection, self._connections
        for number, (text, connection, odd) in numbered:
            if connection == messages.NOT_WANTED:
                continue
            text = text.replace(place, b"%d" % number)
            texts.append(text.replace(other, b"%d" % connections[connection]))
            if odd is not None:
                nameless += odd.nameless
                problems += [each._replace(exchange=number) for each in odd.problems]
        return messages.ShapedBlock(b"".join(texts), len(texts), nameless, problems)

    def connection(self, place: int) -> int:
        """Return the number of a connection in place of its provisional one."""
        return self._connections.get(place - CONNECTION, place)

    def rank(self, place: int) -> int:
        """Return the number in place of a provisional one, once all are known; another number
        stays, as the offsets and ids of messages that look like one."""
        if place >= CONNECTION:
            return self.connection(place)
        if self._ranks is None:
            import numpy as np

            packets, offsets = _pairs(self._origins)
            places = np.fromiter(map(exchange_place, packets, offsets), np.int64, len(offsets))
            self._ranks = ranks_of(in_order(places, offsets), np.arange(1, len(offsets) + 1))
        return self._ranks.one(place)


class MergeOrder:
    """The order of what all workers send, by what they know together."""

    def __init__(self, workers: int) -> None:
        self.hold: Hold[_Made] = Hold(lambda made: len(made.text))
        self._late: list[tuple[int, _Made]] = []
        self._marks = [0] * workers
        self._begun: list[dict[Start, None]] = [{} for _ in range(workers)]

    def add(self, batch: messages.WorkerBatch, items: Iterable[_Made]) -> None:
        """Take what a worker made of the exchanges of a block."""
        self._late += self.hold.add(zip(*_pairs(batch.origins), items, strict=True))

    def done(self) -> tuple[int, set[int]]:
        """Return the first number of which nothing has left, and those before it that have not."""
        return self.hold.next, self.hold.left_behind()

    def settle(self, batches: Sequence[messages.WorkerBatch]) -> list[tuple[int, _Made]]:
        """Return what leaves after a block, with numbers."""
        for worker, batch in enumerate(batches):
            if batch.watermark:
                self._marks[worker] = batch.watermark
                begun = zip(*_pairs(batch.begun), strict=True)
                self._begun[worker] = dict.fromkeys(begun)
                continue
            for start in zip(*_pairs(batch.origins), strict=True):
                self._begun[worker].pop(start, None)
        out, self._late = self._late, []
        begun_in_all = [start for begun in self._begun for start in begun]
        return out + self.hold.settle(min(self._marks), begun_in_all)


def _pairs(flat: array[int]) -> tuple[array[int], array[int]]:
    return flat[::2], flat[1::2]


def sum_of(found: Sequence[messages.WorkerSummary]) -> messages.WorkerSummary:
    """Add up the summaries of all workers. What each of them sees counts once."""
    first = found[0]
    statistics = first.statistics
    statistics.connections = sum(each.statistics.connections for each in found)
    statistics.duplicates = sum(each.statistics.duplicates for each in found)
    heard = CapturedSides()
    for each in found:
        heard.add(each.heard)
    return messages.WorkerSummary(
        statistics,
        first.damage,
        sum(each.skipped_bytes for each in found),
        sum((each.opaque for each in found), start=type(first.opaque)()),
        sorted((one for each in found for one in each.encrypted), key=attrgetter("number")),
        any(each.key_log for each in found),
        heard,
        set[Endpoint]().union(*(each.brokers for each in found)),
        [one for each in found for one in each.results],
        min(each.first for each in found),
        list(dict.fromkeys(line for each in found for line in each.messages)),
        set[str]().union(*(each.left_out for each in found)),
    )
