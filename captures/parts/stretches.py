"""Indexes one huge pcap by many tasks at once.

Each task walks a stretch of the file from where it guesses that a record begins, up to the first
record that belongs to the next stretch. A guess proves nothing. But the first stretch begins where
the file does; so when each stretch begins exactly where the one before it arrived, all of them
began at records. Where that is not so, the stretch is walked again from where that one arrived.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import sub

from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.pcap import Pcap
from kafkascope.captures.formats.records import WINDOW, FileGap, add_gap, cut_short
from kafkascope.captures.inputs.files import BLOCK_BYTES
from kafkascope.captures.inputs.opening import format_of, open_stream
from kafkascope.captures.inputs.time_order import TOLERANCE_NS
from kafkascope.captures.inputs.window import Window
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.packets.columns import times_of
from kafkascope.captures.parts.split import SPLIT_BYTES, Index, Opener, Split, index, read_split


@dataclass(slots=True)
class Stretch:
    """Result of a walk over a part of a file."""

    begin: int
    """Offset at which the walk began."""
    end: int
    """Offset from which on records belong to the next stretch."""
    landed: int
    """Offset of the first of these; the end of the file when there is none."""
    packets: int = 0
    first_ns: int | None = None
    last_ns: int = 0
    """Latest time."""
    final_ns: int = 0
    """Time of the last packet."""
    late: bool = False
    """Packets are not in the order of their times."""
    gaps: list[FileGap] = field(default_factory=list)


def head_of(name: str, open_: Opener) -> bytes | None:
    """Return the file header of an uncompressed pcap with the first record's; None for all else."""
    stream, head, inflated = open_stream(name, open_(name, 0))
    try:
        format_ = format_of(head, 0, name)
        if inflated or not isinstance(format_, Pcap):
            return None
        size = format_.header + format_.skip
        window = Window(stream, head, size, None, 0)
        window.fill(size)
    finally:
        stream.close()
    return bytes(window.buffer[: min(window.end, size)])


def bounds(size: int, split_bytes: int) -> list[tuple[int, int]]:
    """Divide a file into stretches, before anything of it is known."""
    starts = list(range(0, max(size, 1), split_bytes))
    return list(zip(starts, [*starts[1:], size], strict=True))


def walked(
    name: str, open_: Opener, head: bytes, start: int, end: int, *, block_bytes: int = BLOCK_BYTES
) -> Stretch:
    """Walk a stretch from the first offset at which a record seems to begin."""
    begin = start
    if start:
        with closing(open_(name, start)) as stream:
            window = Window(stream, b"", WINDOW, None, start)
            whole = window.fill(WINDOW)
        found = Pcap(head, 0).search(window.buffer[: window.end], not whole)
        begin = start + (window.end if found.at is None else found.at)
    return walk(name, open_, head, begin, end, block_bytes=block_bytes)


def walk(
    name: str, open_: Opener, head: bytes, begin: int, end: int, *, block_bytes: int = BLOCK_BYTES
) -> Stretch:
    """Walk from a record (or what is taken for one) to the first at or after `end`."""
    out = Stretch(begin, end, begin)
    if begin >= end:
        return out
    seen = begin
    whole = Split(0, 0, begin, None, 0, 1, head)
    with read_split(name, whole, open_, block_bytes=block_bytes) as source:
        source.told = None
        try:
            for block in source.blocks():
                last = block.format.record(block.buffer, block.positions[-1])
                seen = block.base + last.start + last.captured
                count = bisect_left(block.positions, end - block.base)
                if count:
                    times = times_of(block)[:count]
                    latest = accumulate(times, max, initial=out.last_ns)
                    out.late |= max(map(sub, latest, times)) > TOLERANCE_NS
                    out.first_ns = times[0] if out.first_ns is None else out.first_ns
                    out.last_ns = max(out.last_ns, max(times))
                    out.final_ns = times[-1]
                    out.packets += count
                if count < len(block.positions):
                    out.landed = block.base + block.positions[count]
                    out.gaps = list(source.gaps[0])
                    return out
        except CutShort:
            out.gaps = source.gaps.get(0, [])
    out.landed = max(end, seen)
    return out


def joined(name: str, open_: Opener, head: bytes, found: Iterable[Stretch]) -> Index:
    """Join the walks over all stretches of a file, in their order, into one index."""
    out = Index(name)
    out.interfaces = list(Pcap(head, 0).interfaces)
    at = final_ns = 0
    late = hidden = False
    """Whether a part would begin in records that a longer one seemed to hold."""
    for stretch in found:
        if at >= stretch.end:
            # A record that is longer than a stretch.
            continue
        right = stretch if stretch.begin == at else walk(name, open_, head, at, stretch.end)
        if right.packets or not out.splits:
            out.splits.append(_split(out, head, right, final_ns))
        if right.first_ns is not None:
            late = late or right.late or (out.last_ns or 0) - right.first_ns > TOLERANCE_NS
            out.first_ns = right.first_ns if out.first_ns is None else out.first_ns
            out.last_ns = max(out.last_ns or 0, right.last_ns)
            final_ns = right.final_ns
        out.packets += right.packets
        at = right.landed
        for gap in right.gaps:
            add_gap(out.gaps, gap)
        hidden = hidden or bool(right.gaps and right.landed < right.gaps[-1].at)
        if right.gaps and right.gaps[-1].resume is None:
            break
    if out.splits:
        out.splits[-1] = replace(out.splits[-1], end=None)
    if len(out.gaps) > LIMITS.gaps or hidden or late:
        return index(name, open_, split_bytes=SPLIT_BYTES)
    if out.gaps:
        error = cut_short(name, out.gaps)
        out.damage, out.damage_at = str(error), error.at
    return out


def _split(out: Index, head: bytes, found: Stretch, last_ns: int) -> Split:
    if out.splits:
        out.splits[-1] = replace(out.splits[-1], end=found.begin)
    order = Pcap(head, 0).order
    number = len(out.splits)
    interfaces = tuple(out.interfaces)
    return Split(
        *(0, number, found.begin, found.landed, found.packets, out.packets + 1),
        *(head, order, 0, interfaces if number else (), last_ns, tuple(found.gaps)),
    )
