"""Small samples of captures that show which hold the same packets.

A sample holds the packets whose keys are lowest, so that two captures of the same packets sample
the same ones, wherever in the files they are; and the first and last ones, where rotated files
overlap.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.captures.errors import CutShort
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.merge import LOOKED
from kafkascope.captures.packets.tcp import Segment, segment_of

if TYPE_CHECKING:
    from kafkascope.captures.inputs.inflate import Stream

SAMPLE: Final = 16_384
"""Packets in a sample: two captures that share a thousandth are found."""
ALL_SAMPLES: Final = 1 << 19
"""Packets in all samples."""
FEWEST: Final = 256
"""Packets in a sample, however many files there are."""
EDGE: Final = 256
"""Packets at either end of a file that are part of its sample."""
FEW_BYTES: Final = 4 << 20
"""Inputs up to this size are sampled packet by packet: loading numpy would take longer."""


class Sketch(NamedTuple):
    """A sample of one file."""

    times: dict[int, int]
    """Key of where a segment's bytes begin -> time of the first such segment in ns."""
    packets: int
    first_ns: int
    last_ns: int
    secrets: list[Any]
    """Secrets blocks of the file."""


def size_of_samples(files: int) -> int:
    """Return how many packets of each file are sampled."""
    return max(min(SAMPLE, ALL_SAMPLES // max(files, 1)), FEWEST)


def sketch_of(name: str, count: int, stream: Stream | None = None, *, bulk: bool = True) -> Sketch:
    """Sample a file: `count` packets at most. `bulk`: with numpy, whose keys are others."""
    source = Source([name], None, {} if stream is None else {0: stream})
    source.sorts = False
    with source:
        return _in_bulk(source, count) if bulk else _one_by_one(source)


def _one_by_one(source: Source) -> Sketch:
    times: dict[int, int] = {}
    packets = first = last = 0
    with suppress(CutShort):
        for block in source.blocks():
            for packet in block.packets():
                last = max(last, packet.time_ns)
                first = packet.time_ns if not packets else first
                packets += 1
                segment = segment_of(packet)
                if isinstance(segment, Segment) and len(segment.payload) >= LOOKED:
                    head = bytes(segment.payload[:LOOKED])
                    times.setdefault(hash((segment.flow, segment.seq, head)), packet.time_ns)
    # Small inputs: all that was seen.
    return Sketch(times, packets, first, last, source.secrets)


def _in_bulk(source: Source, count: int) -> Sketch:
    import numpy as np

    from kafkascope.captures.merge.heads import HEAD, Flows, heads_of

    flows = Flows()
    begin: dict[int, int] = {}
    end = np.zeros(0, HEAD)
    keys, times = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    packets, first, last = 0, 0, 0
    highest = np.uint64((1 << 64) - 1)
    with suppress(CutShort):
        for block in source.blocks():
            heads = heads_of(block, flows)
            if not len(heads):
                continue
            first = int(heads["time"][0]) if not packets else first
            last = max(last, int(heads["time"].max()))
            packets += len(heads)
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
    return Sketch(found, packets, first, last, source.secrets)


def _first(heads: Any) -> dict[int, int]:
    """Return the keys with their first times."""
    return dict(zip(heads["start"][::-1].tolist(), heads["time"][::-1].tolist(), strict=True))


def _lowest(keys: Any, times: Any, count: int) -> tuple[Any, Any]:
    """Return the lowest keys with their first times."""
    import numpy as np

    keys, first = np.unique(keys, return_index=True)
    return keys[:count], times[first[:count]]
