"""Which captures hold the same packets, and how far their clocks are apart."""

from __future__ import annotations

import itertools
from bisect import bisect
from collections import defaultdict
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple

from kafkascope.captures.merge.sketches import Sketch

MIN_SHARED: Final = 3
"""Segments that two captures must share. Addresses, ports, sequence numbers and first bytes are the
same in other traffic only if somebody made it so; but rotated files share what was sent again."""
SHARE: Final = 5
"""And at least one of so many of the smaller one: what is sent again is less."""
SAME_NS: Final = 1_000
"""Where even the times are the same, but for how exactly files hold them, one segment is enough."""
NEAR_NS: Final = 2_000_000_000
"""Differences of two clocks stay this close to their median: delays and drift."""
MIN_SPREAD_NS: Final = 2_000_000
MAX_SPREAD_NS: Final = 5_000_000_000
"""Least and greatest distance at which the same packet is looked for in another capture: a fast
retransmission, a round trip later, is another packet."""
MAX_PLACES: Final = 16
"""Captures of one moment that are completed by each other."""


class Group(NamedTuple):
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


def groups(sketches: Sequence[Sketch], names: Sequence[str]) -> list[Group]:
    """Return the groups of two files or more. A file that more than MAX_PLACES others overlap is
    left out."""
    links: dict[int, list[_Link]] = defaultdict(list)
    for link in _links(sketches):
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
        if len(places) <= MAX_PLACES:
            bounded = min(8 * spread + MIN_SPREAD_NS, MAX_SPREAD_NS)
            out.append(Group(places, shifts, bounded))
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
    MAX_PLACES places, the rest is left out."""
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
            if len(places) > MAX_PLACES:
                break
    return [[file for _, _, file in place] for place in places]


def _span(file: int, shifts: dict[int, int], sketches: Sequence[Sketch]) -> tuple[int, int]:
    sketch, shift = sketches[file], shifts[file]
    return sketch.first_ns + shift, sketch.last_ns + shift
