"""Finds where records go on after damage. No I/O.

Any offset may be taken for a record when its header contradicts nothing, but only real records
follow each other for long. So all candidates in a window are linked to what would follow them;
chains that break soon are chance, and of those that last, the one that reaches furthest is right:
records inside a packet (somebody sent a capture through Kafka) end with it.

No times and no protocols are looked at: these would make likely what cannot be proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kafkascope.captures.formats.records import USUAL, Found
from kafkascope.captures.limits import LIMITS

# Bytes of a block beside its packet.
OPTIONS: Final = 4096
# Records in a row that are no chance, whatever comes after them.
LINKS: Final = 8
SECTION: Final = 0x0A0D0D0A
KINDS: Final = (1, 2, 3, 4, 5, 6, 9, 10, 0x0BAD, 0x40000BAD, SECTION)
"""Block types that a chain may begin with."""


def search_pcap(
    data: bytearray, order: str, header: int, fractions: int, final: bool, damaged: int
) -> Found:
    """Return the first record in `data`; `final`: the file ends with them. `header`: bytes of a
    record's header; `fractions`: of a second."""
    count = len(data) - 15
    if count < 1:
        return Found(None, 0)
    fraction, captured, wire = (_words(data, order, at)[:count] for at in (4, 8, 12))
    good = (captured > 0) & (captured <= wire) & (wire <= USUAL) & (fraction < fractions)
    starts = good.nonzero()[0]
    ends = starts + header + captured[starts].astype(np.int64)
    linked = _linked(starts, ends, count)
    return _decide(
        starts[linked].tolist(), ends[linked].tolist(), None, len(data), final, 15, damaged
    )


def search_pcapng(data: bytearray, order: str, final: bool, damaged: int) -> Found:
    """Return the first block in `data`, as `search_pcap`: one of this section, or a section of the
    other byte order."""
    other = ">" if order == "<" else "<"
    found = _search_blocks(data, order, KINDS, final, damaged)
    section = _search_blocks(data, other, (SECTION,), final, damaged)
    if section.at is not None and (found.at is None or section.at < found.at):
        return section
    return Found(found.at, min(found.rest, section.rest))


def _search_blocks(
    data: bytearray, order: str, kinds: tuple[int, ...], final: bool, damaged: int
) -> Found:
    """Find the first block; `kinds`: block types that a chain may begin with."""
    count = len(data) - 11
    if count < 1:
        return Found(None, 0)
    words = _words(data, order, 0)
    sizes = words[4 : 4 + count]
    starts = ((sizes >= 12) & (sizes <= USUAL + OPTIONS) & (sizes & 3 == 0)).nonzero()[0]
    ends = starts + sizes[starts].astype(np.int64)
    size = len(data)
    whole = ends <= size
    same = np.ones(len(starts), bool)
    same[whole] = words[ends[whole] - 4] == sizes[starts[whole]]
    starts, ends = starts[same], ends[same]
    known = np.isin(words[starts], kinds)
    # What reaches out of the window has one length only, so a known type is asked for.
    kept = (known | (ends <= size)) & _linked(starts, ends, count)
    heads = known[kept].tolist()
    return _decide(starts[kept].tolist(), ends[kept].tolist(), heads, size, final, 11, damaged)


def _words(data: bytearray, order: str, at: int) -> Any:
    """Return the 32-bit words at every offset from `at` on."""
    return np.ndarray((len(data) - 3 - at,), np.dtype(f"{order}u4"), data, at, strides=(1,))


def _linked(starts: Any, ends: Any, count: int) -> Any:
    """Return which candidates lead to another one, or out of the window. Numbers that are no
    headers seldom do: most of them are out of the way at once."""
    there = np.zeros(count, bool)
    there[starts] = True
    inside = ends < count
    linked = ~inside
    linked[inside] = there[ends[inside]]
    return linked


@dataclass(slots=True)
class _Chain:
    links: int
    stop: int
    """Offset at which a chain leaves the window, or breaks."""
    lives: bool
    """Whether it leaves the window, or ends with the file."""
    exact: bool
    """Whether it ends with the file."""


def _decide(
    starts: Sequence[int],
    ends: Sequence[int],
    first: Sequence[bool] | None,
    size: int,
    final: bool,
    blind: int,
    damaged: int,
) -> Found:
    """Decide where records go on. `starts`, `ends`: candidates, rising; `first`: which of them a
    chain may begin with; `size`: bytes of the window, in whose last `blind` bytes no header can be
    seen. What begins before the damage and does not reach after it is part of a packet."""
    rest = max(size - blind, 0)
    if len(starts) > LIMITS.record_candidates:
        return Found(None, rest)
    chains: dict[int, _Chain] = {}
    for at, end in zip(reversed(starts), reversed(ends), strict=True):
        behind = chains.get(end)
        if behind is not None:
            chains[at] = _Chain(behind.links + 1, behind.stop, behind.lives, behind.exact)
        else:
            exact = final and end == size
            chains[at] = _Chain(1, end, end > size - blind - 1, exact)
    best: int | None = None
    chosen: _Chain | None = None
    for index, at in enumerate(starts):
        chain = chains[at]
        if (first is not None and not first[index]) or at == damaged or at < damaged >= chain.stop:
            continue
        if chain.links < LINKS and not chain.exact and not (chain.lives and chain.links > 1):
            if chain.lives and not final:
                rest = min(rest, at)
            continue
        if chosen is None:
            best, chosen = at, chain
        elif chosen.stop <= at:
            break
        elif chain.stop == chosen.stop:
            # They have met: the way with more records leaves none out.
            if chain.links > chosen.links:
                best, chosen = at, chain
        elif chain.stop > chosen.stop and not chosen.lives:
            best, chosen = at, chain
    return Found(best, rest)
