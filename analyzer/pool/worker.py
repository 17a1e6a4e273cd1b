"""One worker: reads its share of an input's connections and tells what it found. No processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.bodies.facts import NO_FACTS
from kafkascope.analyzer.bodies.nodes import NodeAddresses
from kafkascope.analyzer.conversation.pending import MAX_HELD_IN_ALL
from kafkascope.analyzer.exchanges.heard import Heard
from kafkascope.analyzer.exchanges.offline import BROKER_LEG
from kafkascope.analyzer.exchanges.rows import nameless_topics, row_of
from kafkascope.analyzer.pipeline.tables.numbers import CONNECTION, EXCHANGE
from kafkascope.analyzer.pool.common import Followed, Numbers
from kafkascope.analyzer.pool.keys import WorkerKeys
from kafkascope.analyzer.pool.messages import (
    USUAL,
    Alone,
    BlockReport,
    Marks,
    Now,
    Shape,
    Sums,
    Twice,
    Work,
)
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.errors import CutShort
from kafkascope.captures.model import Chunk, Closed, Endpoint, Opened, Resolved, StreamEvent
from kafkascope.captures.packets.resolved import in_chunk
from kafkascope.captures.streams.reassembly import MAX_CONNECTIONS, TOTAL_BYTES
from kafkascope.captures.streams.shares import GIVEN_UP, LEFT, Share, TooMany, shared
from kafkascope.captures.tls.sources import KeySources, SharedKeys

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.facts import BodyFacts
    from kafkascope.analyzer.exchanges.offline import Capture
    from kafkascope.analyzer.exchanges.records import Problem
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.model import Exchange
    from kafkascope.captures.streams.reassembly import Reassembler


_FIRST = itemgetter(0)

AT_ONCE: Final = 1 << 15
"""Bytes in which marks are looked for together."""


def _keys(now: Now, keys: SharedKeys, readers: int) -> WorkerKeys:
    """Return what decrypts, and tells and asks names."""
    assert isinstance(keys, KeySources)
    return WorkerKeys(
        keys,
        readers,
        lambda name: now.told.sealed.append((now.moment, name)),
        lambda name: now.told.unsealed.append((now.moment, name)),
    )


class _Names(TopicNames):
    """Names of topics that this worker's connections told."""

    def __init__(self, now: Now) -> None:
        super().__init__()
        self._now = now

    def learn(self, topic_id: bytes, name: str | None) -> None:
        """Take note of a pair, and tell it."""
        if name and self.get(topic_id) != name:
            self._now.told.named.append((self._now.moment, topic_id, name))
        super().learn(topic_id, name)


class _Marked(TopicNames):
    """Names of topics, with marks in place of those that are not known."""

    def __init__(self, names: TopicNames, mark: str) -> None:
        super().__init__()
        self._base = names
        self._mark = mark
        self.asked: dict[bytes, None] = {}
        """Ids that got a mark."""

    def get(self, topic_id: bytes) -> str | None:
        """Return the name, or what stands for it."""
        name = self._base.get(topic_id)
        if name is None and any(topic_id):
            self.asked[bytes(topic_id)] = None
            name = f"{self._mark}{topic_id.hex()}"
        return name


class _Nodes(NodeAddresses):
    """Addresses of nodes that this worker's connections told."""

    def __init__(self, now: Now) -> None:
        super().__init__()
        self._now = now

    def learn(self, node: int, host: str | None, port: int, *, replace: bool = True) -> None:
        """Record an address, and tell its port."""
        if host and 0 < port < 1 << 16 and node >= 0 and not super().has_port(port):
            self._now.told.learned.append((self._now.moment, port))
        super().learn(node, host, port, replace=replace)

    def has_port(self, port: int) -> bool:
        """Return whether some node listens on that port; tell that it was asked in vain."""
        known = super().has_port(port)
        if not known:
            self._now.told.asked.append((self._now.moment, port))
        return known


class _Brokers(set[Endpoint]):
    """Brokers that this worker's connections showed."""

    def __init__(self, now: Now) -> None:
        super().__init__()
        self._now = now

    def add(self, endpoint: Endpoint) -> None:
        """Add an endpoint that answered as Kafka."""
        if not super().__contains__(endpoint):
            self._now.told.learned.append((self._now.moment, endpoint))
            super().add(endpoint)

    def __contains__(self, endpoint: object) -> bool:
        known = super().__contains__(endpoint)
        if not known and isinstance(endpoint, Endpoint):
            self._now.told.asked.append((self._now.moment, endpoint))
        return known


class _Made:
    """What was made of the exchanges of a block, with marks in it: see `BlockReport.text`."""

    def __init__(self, marks: Marks) -> None:
        self._stem = b"%d" % marks.stem
        self._end = b"%d" % marks.end
        self._new: list[bytes] = []
        """Of which marks were not looked for by now."""
        self._size = 0
        self._texts: list[bytes] = []
        self._kinds: list[bytes] = []
        self.count = 0

    def add(self, data: bytes) -> None:
        """Add what was made of the next exchange."""
        self.count += 1
        self._new += data, self._end
        self._size += len(data)
        if self._size >= AT_ONCE:
            self._look()

    def _look(self) -> None:
        """Look for marks in much at once, and put `%d` in their places."""
        text = b"".join(self._new)
        self._new.clear()
        self._size = 0
        if b"%" in text:
            text = text.replace(b"%", b"%%")
        first, *parts = text.split(self._stem)
        self._kinds.append(bytes(map(_FIRST, parts)))
        self._texts.append(b"%d".join([first, *[part[1:] for part in parts]]))

    def taken(self) -> tuple[bytes, bytes]:
        """Return text and kinds for `BlockReport`, and begin anew."""
        if self._new:
            self._look()
        text, kinds = b"".join(self._texts), b"".join(self._kinds)
        if kinds == USUAL * self.count:
            kinds = b""
        self._texts.clear()
        self._kinds.clear()
        self.count = 0
        return text, kinds


class Worker:
    """Reads a share of a capture, which is open and was not read."""

    def __init__(self, capture: Capture, share: Share, marks: Marks, work: Work) -> None:
        self._capture = capture
        self._share = share
        self._marks = marks
        self._work = work
        self._now = now = Now()
        context = capture.context
        context.turns = numbers = Numbers(now)
        context.names = _Names(now)
        context.nodes = _Nodes(now)
        context.brokers = _Brokers(now)
        context.whole = work.whole
        self._facts: BodyFacts | None = None
        if work.heads and work.wanted is None and not work.alls:
            context.only_waits()
            self._facts = NO_FACTS
        self._keys = context.keys = _keys(now, context.keys, share.count)
        self._number, self._connection = marks.number, marks.connection
        self._made = _Made(marks)
        if work.begins is not None:
            work.begins(capture, lambda: now.moment)
        self._followed = Followed(context, numbers, now, share)
        self._common = self._followed.connections
        self._feed, self._names = capture.feed, context.names
        self._heard = Heard()
        self._sides = self._heard.sides
        self._fresh = True
        self.stop: Callable[[], bool] = bool
        """Asked before each block whether to read no further."""

    def run(self) -> Iterator[BlockReport | Sums]:
        """Yield what is told of each block, of the end, and the sums. Raises `Alone`."""
        capture, now, happened = self._capture, self._now, self._happened
        statistics = capture.source.statistics
        damage = None
        named = self._named if self._share.first and self._work.nameds else None
        try:
            blocks = shared(capture.source, self._share, self._opened, self._check, named)
            for moments in blocks:
                for moment, event in moments:
                    happened(moment, event)
                if self._keys.limited():
                    raise Alone
                yield self._told(statistics.captured_bytes)
                if self.stop():
                    break
        except TooMany:
            raise Alone from None
        except CutShort as error:
            damage = error
        now.moment = LEFT
        self._end()
        yield self._told(statistics.captured_bytes)
        context = capture.context
        self._followed.sum_up(context, statistics)
        yield Sums(
            statistics,
            damage,
            context.skipped_bytes,
            context.opaque,
            list(context.encrypted),
            context.keys.log is not None,
            self._heard,
            set(context.brokers),
            [] if self._work.result is None else [self._work.result()],
            beyond=context.left_out(),
        )

    def _end(self) -> None:
        """Take what the end of the input completes."""
        for exchange in (*self._capture.in_flight(), *self._followed.finish()):
            self._make(exchange)

    def _happened(self, moment: int, event: StreamEvent) -> None:
        """Take an event, as `Capture.exchanges` does."""
        comment = event.connection.interface_comment
        if comment and comment == BROKER_LEG and self._capture.legs != "both":
            return
        self._now.moment = moment
        told = self._now.told
        if not moment & 1 and moment < GIVEN_UP:
            told.woken.append(moment)
        if event.connection.number in self._common:
            self._followed_on(event)
            return
        if not moment & 1:
            pass
        elif type(event) is Chunk and len(event.pieces) > 1:
            self._in_a_run(event)
            return
        if type(event) is Chunk:
            if self._work.nameds and not event.offset:
                for each in in_chunk(event):
                    self._named(each)
        elif isinstance(event, Opened | Closed):
            for saw in self._work.saws:
                saw(event)
        for exchange in self._feed(event):
            self._make(exchange)

    def _followed_on(self, event: StreamEvent) -> None:
        """Take an event of a connection that all workers follow."""
        now, work = self._now, self._work
        run = False
        if type(event) is Chunk:
            run = len(event.pieces) > 1
            if work.nameds and not event.offset and self._share.first:
                for each in in_chunk(event):
                    self._named(each)
        elif isinstance(event, Opened | Closed) and self._share.first:
            for saw in work.saws:
                saw(event)
        told, moment = now.told, now.moment
        before = told.learning() if run else None
        for now.moment, turn, exchange in self._followed.feed(event):
            self._make(exchange, turn)
        if type(event) is Chunk and run and before != told.learning():
            told.spans.extend((2 * event.pieces[0].packet + 1, moment))

    def _in_a_run(self, chunk: Chunk) -> None:
        """Take the bytes of several packets at once."""
        if self._work.nameds and not chunk.offset:
            for each in in_chunk(chunk):
                self._named(each)
        told, last = self._now.told, chunk.pieces[-1].packet
        before = told.learning()
        found = self._feed(chunk)
        for exchange in found:
            self._make(exchange)
        answers = [each.response for each in found]
        if before != told.learning() or any(
            answer is None or answer.frame.parts[-1].packet != last for answer in answers
        ):
            told.spans.extend((2 * chunk.pieces[0].packet + 1, self._now.moment))

    def _named(self, name: Resolved) -> None:
        for named in self._work.nameds:
            named(name)

    def _told(self, read: int) -> BlockReport:
        told, self._now.told = self._now.told, BlockReport()
        told.read = read
        told.text, told.kinds = self._made.taken()
        if self._work.block is not None:
            told.block = self._work.block()
        return told

    def _opened(self, packet: int, flow: bytes) -> int:
        """Number a connection by its first packet."""
        number = CONNECTION + packet
        common = flow in self._share.common
        if common:
            self._common[number] = None
        if not common or self._share.first:
            self._now.told.opened.append(packet)
        return number

    def _check(self, reassembler: Reassembler) -> None:
        """Refuse to go on where all workers together could reach a limit of one process."""
        count = self._share.count
        if (
            reassembler.held > TOTAL_BYTES // count
            or len(reassembler.flows) >= 2 * MAX_CONNECTIONS // count
            or self._capture.holds(MAX_HELD_IN_ALL // count)
            or self._followed.holds(MAX_HELD_IN_ALL // count)
        ):
            raise Alone

    def _make(self, exchange: Exchange, turn: int = 0) -> None:
        """Count an exchange, and make what is wanted of it. `turn`: see `BlockReport.turns`."""
        told, work = self._now.told, self._work
        if len(self._sides) < 2 or exchange.undecoded:
            self._heard.note(exchange)
        connection = exchange.connection
        if self._fresh:
            self._fresh = False
            told.first = self._now.moment, min(exchange.time_ns, connection.first_ns)
        row = row_of(exchange, self._names, self._facts)
        told.exchanges += 1
        if work.alls:
            for add in work.alls:
                add(row, exchange)
        if work.wanted is not None and not work.wanted(row, exchange):
            return
        told.wanted += 1
        for add in work.adds:
            add(row, exchange)
        if work.shape is not None or work.block is not None:
            told.moments.append(self._now.moment)
            told.numbers.append((row.number - EXCHANGE) >> 1)
            if turn:
                told.turns[len(told.moments) - 1] = turn
            told.connections.append(row.connection - CONNECTION)
        if work.shape is not None:
            self._shape(work.shape, row, exchange)

    def _shape(self, shape: Shape, row: Row, exchange: Exchange) -> None:
        told, made = self._now.told, self._made
        count = made.count
        # Nobody needs these numbers any more; to copy a row takes as long as to make it.
        row.number, row.connection = self._number, self._connection
        exchange.number = row.number
        names = self._names
        stands = nameless_topics(row)
        if stands and self._work.reshape is not None:
            told.unusual[count] = row
            made.add(b"")
            return
        problems: list[Problem] = []
        data = shape(row, exchange, names, problems)
        if not stands:
            if problems:
                told.problems[count] = problems
            made.add(data)
            return
        marked = _Marked(names, self._marks.topic)
        again = row_of(exchange, marked)
        again.number, again.connection = self._number, self._connection
        said: list[Problem] = []
        named = shape(again, exchange, marked, said)
        topics = [each for each in (*row.topics, *row.implied_topics) if each not in stands]
        ids = list(marked.asked)
        told.unusual[count] = Twice(data, named, ids, topics, stands, problems, said)
        made.add(b"")
