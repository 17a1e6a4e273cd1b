"""Decides which packets of captures of the same traffic are read, and in which order.

The place that is first by name is read whole. Of each other place those packets are read that no
place before it holds: whose own key is not found there near the same time, and whose bytes are not
covered there by segments that were cut up or joined otherwise. Packets are read in the order of
their times by the first place's clock, those of one file in their own order.

Memory is bounded: files are read side by side, in steps, as far as their times go.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kafkascope.captures.errors import CutShort
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.order import Order, Shared
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.merge.heads import DATA, HEAD, Flows, Heads, heads_of
from kafkascope.captures.streams.copies import SPAN_NS

if TYPE_CHECKING:
    from kafkascope.captures.inputs.inflate import ByteStream
    from kafkascope.captures.merge.groups import CaptureGroup

NEVER: Final = 1 << 62
# Packets that are read ahead of each place.
STEP: Final = 1 << 17


Open = Callable[[str], "ByteStream"]
"""Opens a file by name."""


class OutOfOrder(Exception):
    """The times of captures jump about, so that they cannot be read side by side."""


class _Place:
    """Packets of the files of one place, in their order."""

    def __init__(
        self, number: int, group: CaptureGroup, names: list[str], open_: Open | None
    ) -> None:
        self.number = number
        self._blocks = self._read(group, names, open_)
        self.waiting: Heads = np.zeros(0, HEAD)
        self.ended = False
        self.counts: dict[int, int] = {}
        """Packets by file."""

    def _read(self, group: CaptureGroup, names: list[str], open_: Open | None) -> Iterator[Heads]:
        flows = Flows()
        latest = serial = 0
        for file in group.places[self.number]:
            opened = {} if open_ is None else {0: open_(names[file])}
            count = 0
            with Source([names[file]], None, opened) as source, suppress(CutShort):
                source.sorts = False
                for block in source.blocks():
                    heads = heads_of(block, flows)
                    if not len(heads):
                        continue
                    heads["index"] += count
                    heads["file"], heads["place"] = file, self.number
                    heads["time"] = np.maximum(heads["time"] + group.shifts[file], 0)
                    heads["order"] = np.maximum(np.maximum.accumulate(heads["time"]), latest)
                    latest = int(heads["order"][-1])
                    heads["serial"] = np.arange(serial, serial + len(heads))
                    count, serial = count + len(heads), serial + len(heads)
                    self.counts[file] = count
                    yield heads

    def fill(self, count: int) -> None:
        """Read on until `count` packets wait, or the end."""
        found, size = [self.waiting], len(self.waiting)
        while size < count and not self.ended:
            heads = next(self._blocks, None)
            self.ended = heads is None
            if heads is not None:
                found.append(heads)
                size += len(heads)
        self.waiting = np.concatenate(found)

    def take(self, until_ns: int) -> Heads:
        """Return and remove the waiting packets up to a time."""
        count = int(np.searchsorted(self.waiting["order"], until_ns, "right"))
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken


def merge(group: CaptureGroup, names: list[str], order: Order, open_: Open | None) -> None:
    """Append the packets of a group to an order, and what was found of each of its files. Raises
    OutOfOrder."""
    places = [_Place(number, group, names, open_) for number in range(len(group.places))]
    both: dict[int, int] = defaultdict(int)
    """Packets that were looked at, by file; `own`: those of them that are read."""
    own: dict[int, int] = defaultdict(int)
    kept: Heads = np.zeros(0, HEAD)
    spread = group.spread_ns
    wanted = STEP
    while True:
        for place in places:
            place.fill(wanted)
        behind = [int(each.waiting["order"][-1]) for each in places if not each.ended]
        end = min(behind, default=NEVER)
        moved = False
        for place in places:
            # As far as all places before it are decided, with what may be late there.
            some = place.take(end - place.number * spread if behind else NEVER)
            moved |= len(some) > 0
            new = some
            if place.number and len(some):
                new = some[_missing(some, kept, place.number, spread)]
            _count(some, both)
            _count(new, own)
            kept = np.concatenate([kept, new])
        kept = _emit(kept, end - len(places) * spread if behind else NEVER, order)
        if not behind:
            break
        wanted = STEP if moved else STEP + max(len(each.waiting) for each in places)
        if wanted > LIMITS.merged_packets:
            raise OutOfOrder
    # What is written to them meanwhile comes after.
    for place in places:
        for file, count in place.counts.items():
            order.add(file, count)
    first = group.places[0][0]
    for file in sorted(group.shifts):
        if file != first:
            shared = both[file] - own[file]
            order.shared.append(Shared(file, first, shared, own[file], -group.shifts[file]))


def _count(some: Heads, counts: dict[int, int]) -> None:
    files, found = np.unique(some["file"], return_counts=True)
    for file, count in zip(files.tolist(), found.tolist(), strict=True):
        counts[file] += count


def _emit(kept: Heads, until_ns: int, order: Order) -> Heads:
    """Append the packets up to a time to the order; return the others."""
    now = kept["order"] <= until_ns
    found = kept[now & ~kept["dropped"]]
    found = found[np.lexsort((found["serial"], found["place"], found["order"]))]
    if len(found):
        files, indexes = found["file"], found["index"]
        new = np.ones(len(found), np.bool_)
        new[1:] = (files[1:] != files[:-1]) | (indexes[1:] != indexes[:-1] + 1)
        begins = new.nonzero()[0]
        counts = np.diff(begins, append=len(found))
        runs = files[begins].tolist(), indexes[begins].tolist(), counts.tolist()
        for file, first, count in zip(*runs, strict=True):
            order.add(file, first, count)
        for file in np.unique(files).tolist():
            last_ns = int(found["time"][files == file].max())
            order.lasts[file] = max(order.lasts.get(file, 0), last_ns)
    return kept[~now]


def _missing(some: Heads, kept: Heads, place: int, spread: int) -> Any:
    """Return for each packet of a place whether the places before it lack it; note in `kept` which
    packets are held there as well, and which are better here."""
    pool = ((kept["place"] < place) & ~kept["dropped"]).nonzero()[0]
    pool = pool[np.argsort(kept["key"][pool], kind="stable")]
    keys = kept["key"][pool]
    first = np.searchsorted(keys, some["key"], "left")
    last = np.searchsorted(keys, some["key"], "right")
    known = last > first
    missing = ~known
    _, back, counts = np.unique(some["key"], return_inverse=True, return_counts=True)
    once = known & (last - first == 1) & (counts[back] == 1)
    at = pool[first[once]]
    near = np.abs(kept["order"][at] - some["order"][once]) <= spread
    better = near & (some["captured"][once] > kept["captured"][at])
    kept["dropped"][at[better]] = True
    missing[once] = ~near | better
    # Those that were sent several times: each is paired with the nearest.
    several: dict[int, list[int]] = defaultdict(list)
    for index in (known & ~once).nonzero()[0].tolist():
        several[int(some["key"][index])].append(index)
    for here in several.values():
        there = pool[first[here[0]] : last[here[0]]].tolist()
        _pair(here, there, some, kept, missing, spread)
    unlike = missing & ~known & (some["kind"] == DATA)
    _covered(unlike.nonzero()[0].tolist(), some, kept[pool], missing)
    return missing


def _pair(
    here: list[int], there: list[int], some: Heads, kept: Heads, missing: Any, spread: int
) -> None:
    """Pair packets of one key with those of the places before, the nearest ones first."""
    mine = some["order"][here].tolist()
    theirs = kept["order"][there].tolist()
    if len(here) * len(there) > LIMITS.compared_pairs:
        # Somebody made them; whatever is near counts.
        theirs.sort()
        for index, time_ns in zip(here, mine, strict=True):
            at = bisect_left(theirs, time_ns - spread)
            missing[index] = at == len(theirs) or theirs[at] > time_ns + spread
        return
    pairs = sorted(
        (abs(one - two), i, j)
        for i, one in enumerate(mine)
        for j, two in enumerate(theirs)
        if abs(one - two) <= spread
    )
    partner: dict[int, int] = {}
    used: set[int] = set()
    for _, i, j in pairs:
        if i not in partner and j not in used:
            partner[i] = j
            used.add(j)
    for i, index in enumerate(here):
        if i in partner:
            at = there[partner[i]]
            better = bool(some["captured"][index] > kept["captured"][at])
            kept["dropped"][at] |= better
            missing[index] = better
        else:
            # Sent once more than the places before saw, or captured here on two interfaces.
            missing[index] = not any(
                some["copy"][here[other]] == some["copy"][index]
                and abs(mine[other] - mine[i]) <= SPAN_NS
                for other in partner
            )


def _covered(unlike: list[int], some: Heads, pool: Heads, missing: Any) -> None:
    """Unmark packets whose bytes are all held by segments of other shapes."""
    if not unlike:
        return
    flows = np.unique(some["flow"][unlike])
    pool = pool[(pool["kind"] == DATA) & np.isin(pool["flow"], flows)]
    spans: dict[int, tuple[int, list[int], list[int]]] = {}
    for flow in np.unique(pool["flow"]).tolist():
        mine = pool[pool["flow"] == flow]
        base = int(mine["seq"][0])
        begin = _ahead(mine["seq"], base)
        spans[flow] = base, *_united(begin, begin + mine["captured"])
    for index in unlike:
        found = spans.get(int(some["flow"][index]))
        if found is None:
            continue
        base, begins, ends = found
        start = int(_ahead(some["seq"][index : index + 1], base)[0])
        at = bisect_right(begins, start) - 1
        if at >= 0 and start + int(some["captured"][index]) <= ends[at]:
            missing[index] = False


def _ahead(seqs: Any, base: int) -> Any:
    """Return sequence numbers as distances from one of them, across the wrap-around."""
    return (seqs - np.uint32(base)).astype(np.uint32).view(np.int32).astype(np.int64)


def _united(begins: Any, ends: Any) -> tuple[list[int], list[int]]:
    """Return the union of intervals."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    new = np.ones(len(begins), np.bool_)
    new[1:] = begins[1:] > ends[:-1]
    last = np.append(new[1:], True)
    return begins[new].tolist(), ends[last].tolist()
