"""One worker: reads its share of an input's connections and sends what it made of them. No
processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.analyzer.exchanges.pairs import Item, Rows, exchange_of, is_named
from kafkascope.analyzer.exchanges.rows import nameless_topics, row_of
from kafkascope.analyzer.pipeline.tables.numbers import CONNECTION, exchange_place
from kafkascope.analyzer.pool import messages
from kafkascope.analyzer.pool.captured_sides import CapturedSides
from kafkascope.analyzer.pool.keys import WorkerKeys
from kafkascope.captures.model import BEHIND_ALL
from kafkascope.captures.streams.shares import NeedsSingleProcess, Share
from kafkascope.kernel.numbering import MOST_HELD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkascope.analyzer.exchanges.offline import OpenInput
    from kafkascope.analyzer.exchanges.records import Problem
    from kafkascope.analyzer.model import Exchange

# Connections, and requests in flight, that are looked at for each exchange: see `offline`.
LOOKS: Final = 4


class _Nameless(NamedTuple):
    """An exchange that waits for the name of a topic."""

    exchange: Exchange
    until: int
    """How many exchanges the worker may have sent before it goes without."""


class Worker:
    """Reads a share of a capture, which is open and was not read."""

    def __init__(
        self,
        capture: OpenInput,
        share: Share,
        placeholders: messages.Placeholders,
        work: messages.Work,
    ) -> None:
        self._capture, self._share, self._work = capture, share, work
        self._placeholders = placeholders
        context = capture.context
        context.cross_checks = set()
        self._keys = context.keys = WorkerKeys(
            context.keys.log, capture.source.secrets, share.count, context.cross_checks
        )
        self._rows = Rows(context)
        capture.share = share
        share.number_of = self._opened
        capture.watch, capture.named = work.on_connection, work.on_name
        self._batch = messages.WorkerBatch()
        self._made: list[bytes] = []
        self._nameless: list[_Nameless] = []
        self._names = self._sent = 0
        """Names that were looked at for these, and sent."""
        self._answered = 0
        """Endpoints that were sent."""
        self._count = self._enough = 0
        """Exchanges that were made, and how many are enough for the next look at what is open."""
        self._heard = CapturedSides()
        self._first = (BEHIND_ALL, 0)
        self.stop: Callable[[], bool] = bool
        """Called before each block: whether to read no further."""
        self.learn: Callable[[bool], Mapping[bytes, str]] = lambda _: {}
        """Returns names of topics that other workers have; with True all of them, once the others
        have read as far."""

    def run(self) -> Iterator[messages.WorkerBatch | messages.WorkerSummary]:
        """Yield what is sent of each block, of the end, and the summary. Raises
        `NeedsSingleProcess`."""
        capture, context = self._capture, self._capture.context
        for block in capture.blocks():
            for found in block:
                self._take(found)
            if capture.holds(context.limits.waiting_bytes // self._share.count):
                raise NeedsSingleProcess
            self._keys.check()
            context.names.learn_all(self.learn(False))
            self._name()
            yield self._sending(self._unsettled)
            if self.stop():
                break
        self._take(capture.rest())
        yield self._sending(self._nothing_begins)
        context.names.learn_all(self.learn(True))
        for each in self._nameless:
            self._make(each.exchange)
        self._nameless.clear()
        yield self._sending(self._nothing_begins)
        yield messages.WorkerSummary(
            capture.source.statistics,
            capture.damage,
            context.skipped_bytes,
            context.opaque,
            list(context.encrypted),
            context.keys.log is not None,
            self._heard,
            set(context.brokers),
            [] if self._work.result is None else [self._work.result()],
            self._first,
            left_out=context.left_out(),
        )

    # --- what is sent

    def _sending(self, settle: Callable[[messages.WorkerBatch], None]) -> messages.WorkerBatch:
        batch, self._batch = self._batch, messages.WorkerBatch()
        context = self._capture.context
        batch.text = b"".join(self._made)
        self._made.clear()
        settle(batch)
        names = context.names.all()
        batch.names = list(islice(reversed(names.items()), len(names) - self._sent))[::-1]
        self._sent = len(names)
        if context.cross_checks:
            batch.cross_checks |= context.cross_checks
            context.cross_checks.clear()
        answered = len(context.brokers) + len(context.zookeepers)
        if answered != self._answered:
            self._answered = answered
            batch.cross_facts += [("broker", each) for each in context.brokers]
            batch.cross_facts += [("zookeeper", each) for each in context.zookeepers]
        batch.cross_facts += self._keys.given
        self._keys.given.clear()
        batch.read = self._capture.source.statistics.captured_bytes
        return batch

    def _unsettled(self, batch: messages.WorkerBatch) -> None:
        """Take note of what is not complete, once there is enough for the others to know."""
        if self._count < self._enough or self._work.shape is None:
            return
        batch.watermark, begun = self._capture.unsettled()
        begun += [each.exchange.origin for each in self._nameless]
        batch.begun.extend(chain.from_iterable(begun))
        looked_at = len(begun) + self._capture.connections
        self._enough = self._count + looked_at // LOOKS

    def _nothing_begins(self, batch: messages.WorkerBatch) -> None:
        batch.watermark = BEHIND_ALL
        for each in self._nameless:
            batch.begun.extend(each.exchange.origin)

    # --- what is read

    def _opened(self, packet: int) -> int:
        """Number a connection by its first packet."""
        self._batch.opened.append(packet)
        return CONNECTION + packet

    def _take(self, found: list[Item]) -> None:
        """Make what is wanted of exchanges, unless they wait for a name."""
        work = self._work
        if work.on_batch:
            for item in found:
                item.number = exchange_place(*item.origin)
                self._count_in(item)
            self._batch.wanted += len(found)
            for take in work.on_batch:
                take(found, self._rows)
            return
        names = self._capture.context.names
        most = MOST_HELD // (2 * self._share.count)
        for exchange in map(exchange_of, found):
            if not is_named(exchange, names):
                self._nameless.append(_Nameless(exchange, self._count + most))
            else:
                self._make(exchange)

    def _name(self) -> None:
        """Make those that have a name by now, or waited for too long."""
        names, waiting = self._capture.context.names, self._nameless
        if not waiting or (len(names) == self._names and waiting[0].until > self._count):
            return
        self._names, self._nameless = len(names), []
        for each in waiting:
            if each.until <= self._count or is_named(each.exchange, names):
                self._make(each.exchange)
            else:
                self._nameless.append(each)

    def _count_in(self, item: Item) -> None:
        origin = item.origin
        self._heard.note(item)
        if origin[0] < self._first[0]:
            exchange = exchange_of(item)
            self._first = origin[0], min(exchange.time_ns, exchange.connection.first_ns)
        self._count += 1
        self._batch.origins.extend(origin)

    def _make(self, exchange: Exchange) -> None:
        """Count an exchange, and make what is wanted of it."""
        batch, work, connection = self._batch, self._work, exchange.connection
        self._count_in(exchange)
        exchange.number = exchange_place(*exchange.origin)
        row = row_of(exchange, self._capture.context.names)
        for add in work.on_exchange:
            add(row, exchange)
        wanted = work.wanted is None or work.wanted(row, exchange)
        if wanted:
            batch.wanted += 1
            for add in work.on_match:
                add(row, exchange)
        if work.shape is None:
            return
        if not wanted:
            batch.sizes.append(messages.NOT_WANTED)
            return
        batch.connections.append(connection.first_packet)
        # Nobody needs these numbers any more; to copy a row takes as long as to make it.
        row.number, row.connection = self._placeholders
        exchange.number = row.number
        problems: list[Problem] = []
        data = work.shape(row, exchange, self._capture.context.names, problems)
        nameless = nameless_topics(row)
        if problems or nameless:
            batch.odd[len(batch.sizes)] = messages.Oddity(problems, nameless)
        batch.sizes.append(len(data))
        self._made.append(data)
