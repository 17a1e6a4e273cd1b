"""Which captures hold the same packets, and how far their clocks are apart, by small samples; and
which hold one direction each.

A sample holds the packets whose keys are lowest, so that two captures of the same packets sample
the same ones, wherever in the files they are; and the first and last ones, where rotated files
overlap.
"""

from __future__ import annotations

import itertools
from bisect import bisect
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from heapq import heappop, heappush, nsmallest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.captures.errors import CutShort
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.merge import LOOKED
from kafkascope.captures.packets.tcp import Segment, reverse, segment_of

if TYPE_CHECKING:
    from kafkascope.captures.inputs.inflate import ByteStream


# Packets in a sample: two captures that share a thousandth are found.
SAMPLE: Final = 16_384
# Packets in all samples.
ALL_SAMPLES: Final = 1 << 19
# Packets in a sample, however many files there are.
FEWEST: Final = 256
# Packets at either end of a file that are part of its sample.
EDGE: Final = 256
# Inputs up to this size are sampled packet by packet: loading numpy would take longer.
FEW_BYTES: Final = 4 << 20


class Sketch(NamedTuple):
    """A sample of one file."""

    times: dict[int, int]
    """Key of where a segment's bytes begin -> time of the first such segment in ns."""
    first_ns: int
    last_ns: int
    secrets: list[Any]
    halves: frozenset[bytes] = frozenset()
    """Flows of which the file lacks the other direction, where these are a good part."""


def size_of_samples(files: int) -> int:
    return max(min(SAMPLE, ALL_SAMPLES // max(files, 1)), FEWEST)


def sketch_of(
    name: str, count: int, stream: ByteStream | None = None, *, bulk: bool = True
) -> Sketch:
    """Sample a file: `count` packets at most. `bulk`: with numpy, whose keys are others."""
    source = Source([name], None, {} if stream is None else {0: stream})
    source.sorts = False
    with source:
        return _in_bulk(source, count) if bulk else _one_by_one(source, count)


def _one_by_one(source: Source, count: int) -> Sketch:
    times: dict[int, int] = {}
    flows: set[bytes] = set()
    first, last = None, 0
    with suppress(CutShort):
        for block in source.blocks():
            for packet in block.packets():
                last = max(last, packet.time_ns)
                first = packet.time_ns if first is None else first
                segment = segment_of(packet)
                if not isinstance(segment, Segment):
                    continue
                flows.add(segment.flow)
                if len(segment.payload) >= LOOKED:
                    head = bytes(segment.payload[:LOOKED])
                    times.setdefault(hash((segment.flow, segment.seq, head)), packet.time_ns)
    # Small inputs: all that was seen.
    return Sketch(times, first or 0, last, source.secrets, _halves(flows, count))


def _in_bulk(source: Source, count: int) -> Sketch:
    import numpy as np

    from kafkascope.captures.merge.heads import HEAD, Flows, heads_of

    flows = Flows()
    begin: dict[int, int] = {}
    end = np.zeros(0, HEAD)
    keys, times = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    first, last = None, 0
    highest = np.uint64((1 << 64) - 1)
    with suppress(CutShort):
        for block in source.blocks():
            heads = heads_of(block, flows)
            if not len(heads):
                continue
            first = int(heads["time"][0]) if first is None else first
            last = max(last, int(heads["time"].max()))
            heads = heads[heads["start"] > 0]
            if len(begin) < EDGE:
                begin |= _first(heads[:EDGE]) | begin
            end = np.concatenate([end, heads[-EDGE:]])[-EDGE:]
            low = heads[heads["start"] < highest]
            keys = np.concatenate([keys, low["start"]])
            times = np.concatenate([times, low["time"]])
            if len(keys) > 4 * count:
                keys, times = _lowest(keys, times, count)
                highest = keys[-1] if len(keys) == count else highest
    keys, times = _lowest(keys, times, count)
    found = dict(zip(keys.tolist(), times.tolist(), strict=True))
    found = _first(end) | found | begin
    return Sketch(found, first or 0, last, source.secrets, _halves(flows, count))


def _halves(flows: Collection[bytes], count: int) -> frozenset[bytes]:
    """Return the flows without the other direction, those of the lowest `count` connections."""
    halves = {flow for flow in flows if reverse(flow) not in flows}
    few = SHARE * len(halves) < len(flows)
    return frozenset(() if few else nsmallest(count, halves, key=_both))


def _both(flow: bytes) -> bytes:
    """Return what both directions of a connection have in common."""
    return min(flow, reverse(flow))


def _first(heads: Any) -> dict[int, int]:
    return dict(zip(heads["start"][::-1].tolist(), heads["time"][::-1].tolist(), strict=True))


def _lowest(keys: Any, times: Any, count: int) -> tuple[Any, Any]:
    """Return the lowest keys with their first times."""
    import numpy as np

    keys, first = np.unique(keys, return_index=True)
    return keys[:count], times[first[:count]]


# Segments that two captures must share. Addresses, ports, sequence numbers and first bytes are the
# same in other traffic only if somebody made it so; but rotated files share what was sent again.
MIN_SHARED: Final = 3
# And at least one of so many of the smaller one: what is sent again is less.
SHARE: Final = 5
# Where even the times are the same, but for how exactly files hold them, one segment is enough.
SAME_NS: Final = 1_000
# Differences of two clocks stay this close to their median: delays and drift.
NEAR_NS: Final = 2_000_000_000
MIN_SPREAD_NS: Final = 2_000_000


class CaptureGroup(NamedTuple):
    """Files that hold the same packets, as the places where these were captured."""

    places: list[list[int]]
    """Files of each place, which do not overlap in time, by time; the place first by name first."""
    shifts: dict[int, int]
    """Nanoseconds to add to the times of each file, for the clock of the first one by name."""
    spread_ns: int
    """Distance at which a packet is looked for in another capture."""


class _Link(NamedTuple):
    one: int
    two: int
    shared: int
    difference: int
    """Time in `two` less that in `one`, in ns."""
    spread: int


def groups(sketches: Sequence[Sketch], names: Sequence[str]) -> list[CaptureGroup]:
    """Return the groups of two files or more. A file that overlaps more than
    `capture_points` others is left out."""
    links: dict[int, list[_Link]] = defaultdict(list)
    for link in (*_links(sketches), *_opposite(sketches)):
        links[link.one].append(link)
        links[link.two].append(
            link._replace(one=link.two, two=link.one, difference=-link.difference)
        )
    out = []
    seen: set[int] = set()
    for begin in sorted(links, key=lambda file: (names[file], file)):
        if begin in seen:
            continue
        shifts, spread = _clocks(begin, links)
        seen.update(shifts)
        files = sorted(shifts, key=lambda file: (names[file], file))
        places = _places(files, shifts, sketches)
        if len(places) <= LIMITS.capture_points:
            bounded = min(8 * spread + MIN_SPREAD_NS, LIMITS.clock_spread_ns)
            out.append(CaptureGroup(places, shifts, bounded))
    return out


def _links(sketches: Sequence[Sketch]) -> list[_Link]:
    """Return the pairs of files that share segments."""
    held: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for file, sketch in enumerate(sketches):
        for key, time_ns in sketch.times.items():
            held[key].append((file, time_ns))
    differences: dict[tuple[int, int], list[int]] = defaultdict(list)
    for where in held.values():
        for (one, early), (two, late) in itertools.pairwise(where):
            differences[one, two].append(late - early)
        if len(where) > 2:
            differences[where[0][0], where[-1][0]].append(where[-1][1] - where[0][1])
    sure: list[_Link] = []
    others: list[_Link] = []
    for (one, two), found in differences.items():
        from statistics import median_low  # takes 3 ms to load, and few captures have copies

        middle = median_low(found)
        apart = sorted(abs(each - middle) for each in found)
        near = sum(each <= NEAR_NS for each in apart)
        smaller = min(len(sketches[one].times), len(sketches[two].times))
        spread = apart[max(min(near - 1, near * 95 // 100), 0)]
        link = _Link(one, two, len(found), middle, spread)
        same_clock = all(abs(each) < SAME_NS for each in found)
        alike = 2 * near >= len(found) and near >= MIN_SHARED
        if same_clock or (alike and SHARE * near >= smaller):
            sure.append(link)
        elif 2 * near >= len(found):
            others.append(link)
    of_file: dict[int, list[_Link]] = defaultdict(list)
    for link in sure if others else ():
        of_file[link.one].append(link)
        of_file[link.two].append(link)
    for link in others:
        if any(_agree(link, known) for file in link[:2] for known in of_file[file]):
            sure.append(link)
    return sure


def _opposite(sketches: Sequence[Sketch]) -> Iterator[_Link]:
    """Yield pairs of files that overlap in time and hold one direction each of connections: taps of
    both fibres of a line, or both cards of a bond. Only one clock puts such packets in order, so
    both are taken to have the same."""
    held: dict[bytes, list[tuple[int, bytes]]] = defaultdict(list)
    for file in sorted(range(len(sketches)), key=lambda file: sketches[file].first_ns):
        for flow in sketches[file].halves:
            held[_both(flow)].append((file, flow))
    found: dict[tuple[int, int], int] = defaultdict(int)
    for where in held.values():
        for (one, flow), (two, back) in itertools.pairwise(where):
            found[one, two] += flow != back and sketches[two].first_ns < sketches[one].last_ns
    for (one, two), shared in found.items():
        if SHARE * shared >= min(len(sketches[one].halves), len(sketches[two].halves)):
            yield _Link(one, two, shared, 0, 0)


def _agree(link: _Link, known: _Link) -> bool:
    """Return whether a difference of clocks is one that one of the files is known to have."""
    apart = MIN_SPREAD_NS + 8 * known.spread
    if link.one == known.one or link.two == known.two:
        return abs(link.difference - known.difference) <= apart
    if link.one == known.two or link.two == known.one:
        return abs(link.difference + known.difference) <= apart
    return False


def _clocks(begin: int, links: dict[int, list[_Link]]) -> tuple[dict[int, int], int]:
    """Return the shifts of all files that are linked with one, and the greatest spread."""
    shifts = {begin: 0}
    spread = 0
    serial = itertools.count(0, -1)
    waiting: list[tuple[int, int, _Link]] = []
    """Those that share most come first; of as many, the latest."""
    file = begin
    while True:
        for link in sorted(links[file], key=lambda link: link.shared):
            heappush(waiting, (-link.shared, next(serial), link))
        while waiting and waiting[0][2].two in shifts:
            heappop(waiting)
        if not waiting:
            return shifts, spread
        _, _, link = heappop(waiting)
        file = link.two
        shifts[file] = shifts[link.one] - link.difference
        spread = max(spread, link.spread)


def _places(
    files: list[int], shifts: dict[int, int], sketches: Sequence[Sketch]
) -> list[list[int]]:
    """Put files that do not overlap in time into one place: rotated files of one program. Beyond
    `capture_points` places, the rest is left out."""
    places: list[list[tuple[int, int, int]]] = []
    """Begin, end and number of the files of each, by time."""
    for file in files:
        begin, end = _span(file, shifts, sketches)
        for place in places:
            at = bisect(place, (begin, end, file))
            if (at == 0 or place[at - 1][1] < begin) and (at == len(place) or end < place[at][0]):
                place.insert(at, (begin, end, file))
                break
        else:
            places.append([(begin, end, file)])
            if len(places) > LIMITS.capture_points:
                break
    return [[file for _, _, file in place] for place in places]


def _span(file: int, shifts: dict[int, int], sketches: Sequence[Sketch]) -> tuple[int, int]:
    sketch, shift = sketches[file], shifts[file]
    return sketch.first_ns + shift, sketch.last_ns + shift
