"""A share of an input's connections: several readers of the same file take some each.

Every reader walks all packets, so all divide the connections alike without asking each other. A
reader reassembles its own alone: what time does to a connection, only its own packets decide
(`Reassembler.check`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from kafkascope.captures.errors import CutShort
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.packets.columns import columns_of
from kafkascope.captures.packets.tcp import ACK, SYN, Segment, endpoints, reverse, segment_of
from kafkascope.captures.streams.copies import FirstPackets, may_be_translated
from kafkascope.captures.streams.reassembly import Reassembler
from kafkascope.captures.streams.starts import Start, Starts

if TYPE_CHECKING:
    from kafkascope.captures.formats.records import Block
    from kafkascope.captures.packets.columns import HeaderColumns

# Packets that tell which connections have much of the traffic.
LOOKED_AT: Final = 20_000
# One in so many packets with data that come with two pairs of addresses is no chance: sequence and
# acknowledgement numbers are 64 bits.
SOME: Final = 100


class NeedsSingleProcess(Exception):
    """One process has to read the input: connections depend on each other, or on a limit that all
    of them share."""


class Share:
    """The connections of one of several readers."""

    def __init__(self, mine: int, count: int) -> None:
        self.mine = mine
        self.count = count
        self.number_of: Callable[[int], int] | None = None
        """Gives a connection its number, by that of its first packet; None: 0, 1..."""
        self._owners: dict[bytes, int] = {}
        self._loads = [0] * count
        """Packets of the connections of each reader."""
        self._begins = FirstPackets()
        """Those of all connections: of one with two pairs of addresses, a reader may have each."""
        self._starts: Starts[bytes] = Starts()
        """The same of a proxy's leg."""

    @property
    def first(self) -> bool:
        """Return whether this reader reports what all readers see."""
        return self.mine == 0

    def _owner(self, flow: bytes, packets: int) -> int:
        owner = self._owners.get(flow)
        if owner is None:
            back = reverse(flow)
            if len(self._owners) >= LIMITS.shared_flows:
                # Without memory, and alike in all readers.
                return crc32(min(flow, back)) % self.count
            # The one with the fewest packets so far. All readers walk all packets, so that each
            # finds the same one.
            owner = self._loads.index(min(self._loads))
            self._owners[flow] = self._owners[back] = owner
        self._loads[owner] += packets
        return owner

    def takes(self, segment: Segment) -> bool:
        """Return whether a segment is the reader's; ask for all, in their order. Raises
        `NeedsSingleProcess`."""
        self._begin(segment)
        return self._owner(segment.flow, 1) == self.mine

    def _begin(self, segment: Segment) -> None:
        """Take note of a SYN, or of what comes before the first response."""
        flow, starts = segment.flow, self._starts
        if segment.flags & SYN:
            if self._begins.twin(segment) is not None:
                raise NeedsSingleProcess
            self._begins.add(segment)
            if not segment.flags & ACK:
                starts.open(flow, Start(*endpoints(flow), segment.time_ns))
        elif segment.length:
            start = starts.get(flow)
            if start is None:
                starts.answer(reverse(flow))
                return
            data = bytes(segment.payload)
            if start.linked and not start.sent and starts.leaders(start, data) != ([], 0):
                raise NeedsSingleProcess
            starts.send(flow, data)

    def _begin_all(self, columns: HeaderColumns, block: Block) -> Counter[bytes]:
        """Do the same for the packets of a block; return how many each flow has."""
        flows, syns = columns.flows, columns.options
        found = Counter(flows)
        self._starts.expire(columns.first_ns)
        begun = {*self._starts, *(flows[at] for at in syns)} & found.keys()
        looked_at: Iterable[int] = syns
        if begun:
            begun |= set(map(reverse, begun))
            looked_at = [
                at
                for at, (flow, length) in enumerate(zip(flows, columns.lengths, strict=True))
                if at in syns or (length and flow in begun)
            ]
        answered: set[bytes] = set()
        for at in looked_at:
            flow = flows[at]
            if at in syns:
                answered -= {flow, reverse(flow)}
            elif flow in answered:
                continue
            segment = segment_of(block.packet(columns.numbers[at] - block.number))
            assert isinstance(segment, Segment)
            self._begin(segment)
            if at not in syns and self._starts.get(flow) is None:
                answered |= {flow, reverse(flow)}
        return found

    def keep_own(self, columns: HeaderColumns, block: Block) -> None:
        """Leave the packets of other readers out. Raises `NeedsSingleProcess`."""
        found = self._begin_all(columns, block)
        columns.keep(
            {flow for flow, count in found.items() if self._owner(flow, count) == self.mine}
        )

    def check(self, reassembler: Reassembler) -> None:
        """Raise `NeedsSingleProcess` where all readers together could reach a limit of one."""
        if (
            reassembler.translated
            or reassembler.held > reassembler.limits.reassembly_bytes // self.count
            or len(reassembler.flows) >= 2 * reassembler.limits.connections // self.count
        ):
            raise NeedsSingleProcess


class _Beginning(NamedTuple):
    """What the first packets of an input tell."""

    counts: Counter[bytes]
    """Packets of each connection."""
    new: int
    """Connections that came after the first block, in as many bytes as `behind`."""
    behind: int
    twice: bool
    """Whether a connection seems to come with two pairs of addresses."""


@lru_cache(1)
def _beginning(*names: str) -> _Beginning:
    """Return what an input begins with; that of a file that changed costs no more than time."""
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


def _has_translated(columns: HeaderColumns) -> bool:
    """Return whether many packets of a block come with two pairs of addresses each."""
    rows = zip(columns.seqs, columns.acks, columns.flows, columns.lengths, strict=True)
    data = sorted((seq, ack, at, flow) for at, (seq, ack, flow, size) in enumerate(rows) if size)
    # Equal ones are neighbours in this order: no dictionary of all packets.
    found = sum(
        one[:2] == two[:2] and may_be_translated(one[3], two[3]) for one, two in pairwise(data)
    )
    return SOME * found > len(data)


def is_divisible(names: list[str], size: int) -> bool:
    """Return whether an input of `size` bytes seems to have connections, and not so many that
    readers would reach a limit together, by its beginning."""
    counts, new, behind, twice = _beginning(*names)
    few = not (behind and new * size >= LIMITS.connections * behind)
    return bool(counts) and few and not twice


def is_busy(names: list[str]) -> bool:
    """Return whether one connection seems to have most packets of an input, by its beginning."""
    # Two thirds: the reader of that connection would work nearly as long as one process does
    # (docs/decisions/0049-numbers-are-ranks.md).
    counts = _beginning(*names).counts
    return 3 * max(counts.values(), default=0) > 2 * counts.total()
