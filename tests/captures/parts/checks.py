"""Parts of captures and indexes of one pcap, held against a single walk."""

from __future__ import annotations

import pickle

from kafkascope.captures.errors import CutShort
from kafkascope.captures.formats.records import FileGap, add_gap
from kafkascope.captures.model import Packet
from kafkascope.captures.parts.split import Index, index, read_split
from kafkascope.captures.parts.stretches import Stretch, bounds, head_of, joined, walked
from tests.kit.captures import opener, whole


def in_parts(data: bytes, size: int, block_bytes: int) -> tuple[list[Packet], list[FileGap], Index]:
    found: list[Packet] = []
    gaps: list[FileGap] = []
    told = index("x", opener(data), split_bytes=size, block_bytes=block_bytes)
    for each in told.splits:
        split = pickle.loads(pickle.dumps(each))
        assert split == each
        with read_split("x", split, opener(data), block_bytes=block_bytes) as source:
            here: list[Packet] = []
            try:
                here.extend(source.packets())
            except CutShort:
                assert source.gaps or told.compressed
            for gap in source.gaps.get(0, []):
                add_gap(gaps, gap)
            assert len(here) == split.packets
            found += here
    return found, gaps, told


def check(data: bytes, size: int, block_bytes: int) -> Index:
    expected, damage, holes = whole(data)
    packets, gaps, told = in_parts(data, size, block_bytes)
    assert packets == expected
    assert gaps == told.gaps == holes
    assert told.packets == len(packets)
    assert [told.damage] == damage or (not told.damage and not damage)
    times = [each.time_ns for each in packets]
    assert (told.first_ns, told.last_ns) == ((times[0], max(times)) if times else (None, None))
    return told


def index_of(data: bytes, size: int) -> tuple[Index, list[Stretch]]:
    head = head_of("x", opener(data))
    assert head is not None
    found = [
        walked("x", opener(data), head, start, end, block_bytes=4096)
        for start, end in bounds(len(data), size)
    ]
    return joined("x", opener(data), head, found), found


def check_index(data: bytes, size: int) -> Index:
    alone = index("x", opener(data))
    told, _ = index_of(data, size)
    for name in ("packets", "first_ns", "last_ns", "damage", "damage_at", "interfaces", "format"):
        assert getattr(told, name) == getattr(alone, name), name
    assert told.gaps == alone.gaps
    packets: list[Packet] = []
    for split in told.splits:
        with read_split("x", split, opener(data), block_bytes=4096) as source:
            here: list[Packet] = []
            try:
                here.extend(source.packets())
            except CutShort:
                assert source.gaps[0] == list(split.gaps)
            assert len(here) == split.packets
            packets += here
    assert (packets, [told.damage] if told.damage else [], told.gaps) == whole(data)
    return told
