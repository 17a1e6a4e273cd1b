"""A share of an input's connections: several readers of the same file take some each.

Every reader walks all packets, so all divide the connections alike without asking each other, and
each knows when a packet of others lets time pass. Events carry the moment at which a reader of all
connections would have them. Connections with much of the traffic are common: all readers follow
them, and take turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain, compress
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.records import Format
from kafkascope.captures.inputs.block import Block
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.model import Chunk, Resolved, StreamEvent
from kafkascope.captures.packets.tcp import SYN, Segment, reverse, segment_of
from kafkascope.captures.streams.delivery import Out
from kafkascope.captures.streams.reassembly import MAX_CONNECTIONS, Reassembler
from kafkascope.captures.streams.scan import AFRESH, scan
from kafkascope.captures.streams.streams import segments_in, sum_up, tell
from kafkascope.captures.streams.translated import FirstPackets, may_be_translated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kafkascope.captures.packets.columns import Columns, Flags, Ints

MOST_FLOWS: Final = 400_000
"""Directions that are divided; nobody may forget whose one is."""
LOOKED_AT: Final = 20_000
"""Packets that tell which connections have much of the traffic."""
MUCH: Final = 4 / 3
"""Of what each reader would have if all had the same: a connection with more is common."""
SOME: Final = 100
"""One in so many packets with data that come with two pairs of addresses is no chance: sequence
and acknowledgement numbers are 64 bits."""
TURN_BITS: Final = 8
"""Packets of a reader's turn, as a power of two: each block has several turns."""
GIVEN_UP: Final = 1 << 60
"""Moment at which the input ends: all gaps are given up."""
CLOSED: Final = GIVEN_UP + 1
"""Behind it, plus twice the number of its first packet: a connection is closed."""
LEFT: Final = 1 << 62
"""Behind that: what no connection's end completed."""

Moment = int
"""Twice the number of a packet for what a deadline brings before that packet is looked at, one more
for what the packet itself brings; or one of the above."""


class TooMany(Exception):
    """There are more connections than can be divided, or some that belong together."""


class Share:
    """The connections of one of several readers."""

    def __init__(self, mine: int, count: int, common: frozenset[bytes] = frozenset()) -> None:
        """`common`: flows of the connections that all readers follow, in both directions."""
        self.count = count
        self.common = common
        self.mine = mine
        self._owners: dict[bytes, int] = {}
        self._begins = FirstPackets()
        """Those of all connections: of one with two pairs of addresses, a reader may have each."""
        self._loads = [0] * count
        """Packets of the connections of each reader."""

    @property
    def first(self) -> bool:
        """Whether this is the reader that tells what all see."""
        return self.mine == 0

    def is_others(self, packet: int) -> bool:
        """Return whether what begins on common connections with a packet, 0 where that is not
        known, is another reader's turn."""
        return (packet >> TURN_BITS) % self.count != self.mine

    def divide(self, flows: Iterable[bytes]) -> None:
        """Give the new ones of a block's directions to readers, each to the one with least."""
        self._divide(Counter(flows))

    def _divide(self, flows: Counter[bytes]) -> None:
        owners, loads, common = self._owners, self._loads, self.common
        for flow, count in flows.items():
            if flow in common:
                continue
            owner = owners.get(flow)
            if owner is None:
                owner = loads.index(min(loads))
                owners[flow] = owners[reverse(flow)] = owner
                if len(owners) > MOST_FLOWS:
                    raise TooMany
            loads[owner] += count

    def foreign(self, flow: bytes) -> bool:
        """Return whether a direction is another reader's."""
        return flow not in self.common and self._owners[flow] != self.mine

    def begin(self, segment: Segment | str) -> None:
        """Take note of a SYN."""
        if isinstance(segment, Segment) and segment.flags & SYN:
            if self._begins.twin(segment) is not None:
                raise TooMany
            self._begins.add(segment)

    def others(self, columns: Columns, block: Block) -> Others:
        """Divide the connections of a block; return the packets of other readers."""
        import numpy as np

        first = block.number

        flows: Iterable[bytes] = columns.flows
        if not columns.tcp.all():
            flows = compress(columns.flows, columns.tcp.tolist())
        found = Counter(flows)
        self._divide(found)
        syn = columns.tcp & ((columns.flags & SYN) > 0)
        for at in syn.nonzero()[0].tolist():
            self.begin(segment_of(block.packet(at)))
        of_others = {flow for flow in found if self.foreign(flow)}
        marks = map(of_others.__contains__, columns.flows)
        foreign = np.fromiter(marks, np.bool_, len(columns.flows)) & columns.tcp
        return Others(foreign, first)


class Others:
    """Packets of a block that other readers take: their time passes, and they end runs."""

    latest: list[int]
    """The latest time of those before each of one's own packets, and behind the last one."""

    def __init__(self, foreign: Flags, first: int) -> None:
        self.foreign = foreign
        """Which packets they are."""
        self._first = first

    def stand_between(self, kept: Ints, plain: NDArray[np.int8], time_ns: Ints) -> None:
        """Take note of where one's own packets stand, and mark those of them that are `plain` which
        may not be taken in a row with the one before."""
        import numpy as np

        self._time_ns = time_ns
        self._begins = np.concatenate((np.zeros(1, np.int64), kept + 1))
        times = np.append(np.where(self.foreign, time_ns, 0), 0)
        latest = np.maximum.reduceat(times, self._begins)
        self.latest = latest.tolist()
        plain[(kept > self._begins[:-1]) & (plain > 0)] = AFRESH
        # A packet that comes before its time is looked at closely.
        plain[latest[:-1] > time_ns[kept]] = 0

    def before(self, index: int) -> Iterator[tuple[int, int]]:
        """Yield number and time of those before one's own packet at an index, or behind the
        last."""
        begin, *end = self._begins[index : index + 2].tolist()
        stop = end[0] - 1 if end else len(self.foreign)
        for at in range(begin, stop):
            if self.foreign[at]:
                yield self._first + at, int(self._time_ns[at])


Moments = Iterable[tuple[Moment, StreamEvent]]


class _Beginning(NamedTuple):
    """What the first packets of an input tell."""

    counts: Counter[bytes]
    """Packets of each connection."""
    new: int
    """Connections that came behind the first block, in as many bytes as `behind`."""
    behind: int
    twice: bool
    """Whether a connection seems to come with two pairs of addresses."""


@lru_cache(1)
def _beginning(*names: str) -> _Beginning:
    """Return what an input begins with; that of a file that changed costs no more than time."""
    from kafkascope.captures.packets.columns import columns_of

    counts: Counter[bytes] = Counter()
    first = behind = 0
    twice = False
    with Source(list(names)) as source, suppress(CutShort):
        for block in source.blocks():
            columns = columns_of(block) if block.positions else None
            if columns is None:
                continue
            twice = twice or _has_translated(columns)
            counts.update(min(flow, reverse(flow)) for flow in columns.flows)
            if first:
                behind += abs(block.positions[-1] - block.positions[0])
            else:
                first = len(counts)
            if behind and counts.total() >= LOOKED_AT:
                break
    return _Beginning(counts, len(counts) - first, behind, twice)


def _has_translated(columns: Columns) -> bool:
    """Return whether many packets of a block come with two pairs of addresses each."""
    import numpy as np

    data = columns.tcp & (columns.length > 0)
    numbers = columns.seq[data] << np.uint64(32) | columns.ack[data]
    flows = [flow for flow, has in zip(columns.flows, data.tolist(), strict=True) if has]
    order = np.argsort(numbers, kind="stable")
    same = (np.diff(numbers[order]) == 0).nonzero()[0]
    found = sum(may_be_translated(flows[order[at]], flows[order[at + 1]]) for at in same.tolist())
    return bool(SOME * found > len(flows))


def is_divisible(names: list[str], size: int) -> bool:
    """Return whether an input of `size` bytes seems to have connections, and not so many that
    readers would reach a limit together, by its beginning."""
    counts, new, behind, twice = _beginning(*names)
    few = not (behind and new * size >= MAX_CONNECTIONS * behind)
    return bool(counts) and few and not twice


def is_busy(names: list[str]) -> bool:
    """Return whether one connection seems to have most packets of an input, by its beginning."""
    counts = _beginning(*names).counts
    return 3 * max(counts.values(), default=0) > 2 * counts.total()


def busiest(names: list[str], count: int) -> frozenset[bytes]:
    """Return the flows of the connections that have much of an input, by its beginning, for this
    many readers."""
    counts = _beginning(*names).counts
    least = MUCH * counts.total() / count
    found = [flow for flow, packets in counts.items() if flow and packets > least]
    return frozenset(chain(found, map(reverse, found)))


def shared(
    source: Source,
    share: Share,
    opened: Callable[[int, bytes], int],
    check: Callable[[Reassembler], None],
    named: Callable[[Resolved], None] | None = None,
) -> Iterator[Moments]:
    """Yield the events of a share's connections with their moments, those of one block after the
    other, each to be read before the next; at last those of the end.

    `opened` gives connections their numbers, by first packets and flows; `check` is called behind
    each block, and may raise. `named` is told of host names that DNS answers over UDP, or the
    files, resolve. Raises `TooMany`, and CutShort at the end, as `streams.batches`.
    """
    reassembler = Reassembler(source.comment_of, translations=source.reads_once)
    reassembler.numbering = opened
    damage: CutShort | None = None
    formats: dict[int, Format] = {}
    try:
        for block in source.blocks():
            marks: list[tuple[int, int]] = []
            formats[block.file] = block.format
            if named is not None:
                tell([block.format], named)
            events = scan(block, reassembler, source.statistics, named, share, marks)
            if events is None:
                yield _one_by_one(block, reassembler, source, share, named)
            else:
                assert isinstance(events, list)
                yield _timed(events, marks)
            sum_up(reassembler, source)
            if reassembler.translated:
                raise TooMany
            check(reassembler)
    except CutShort as error:
        damage = error
    for reason in reassembler.fragments.finish():
        source.statistics.skip(reason, 0)
    end_ns = source.statistics.last_ns
    last: list[tuple[Moment, StreamEvent]] = [(GIVEN_UP, event) for event in reassembler.give_up()]
    for event in reassembler.close(end_ns):
        last.append((CLOSED + 2 * event.connection.first_packet, event))
    sum_up(reassembler, source)
    if named is not None:
        tell(formats.values(), named)
    yield last
    if damage is not None:
        raise damage


def _timed(events: Out, marks: list[tuple[int, int]]) -> Iterator[tuple[Moment, StreamEvent]]:
    """Yield events with their moments, and keep none. `marks`: (events before it, moment)."""
    later = iter((*marks, (len(events), 0)))
    begin, moment = next(later)
    now = count = 0
    events.reverse()
    while events:
        event = events.pop()
        while begin <= count:
            now = moment
            begin, moment = next(later)
        if type(event) is Chunk:
            own = 2 * event.pieces[-1].packet + 1
            if own > now:
                now = own
        count += 1
        yield now, event


def _one_by_one(
    block: Block,
    reassembler: Reassembler,
    source: Source,
    share: Share,
    named: Callable[[Resolved], None] | None,
) -> Moments:
    found = list(segments_in(block, reassembler.fragments, source.statistics, named))
    share.divide(each.flow for each in found)
    out: list[tuple[Moment, StreamEvent]] = []
    for one in found:
        share.begin(one)
        number = max(reassembler.packets + 1, one.packet)
        events: Out = []
        reassembler.pass_time(number, one.time_ns, events)
        out += [(2 * number, event) for event in events]
        if not share.foreign(one.flow):
            reassembler.packets = number - 1
            out += [(2 * number + 1, event) for event in reassembler.feed(one)]
    return out
