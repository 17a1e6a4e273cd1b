"""Parts of captures and indexes of one pcap, held against a single walk."""

import pickle

from kafkascope.captures.errors import CutShort
from kafkascope.captures.model import Packet
from kafkascope.captures.parts.split import Index, index, read_split
from kafkascope.captures.parts.stretches import Stretch, bounds, head_of, joined, walked
from tests.kit.captures import opener, whole


def in_parts(data: bytes, told: Index, block_bytes: int) -> list[Packet]:
    """The packets of all parts that an index tells of."""
    found: list[Packet] = []
    for each in told.splits:
        split = pickle.loads(pickle.dumps(each))
        assert split == each
        with read_split("x", split, opener(data), block_bytes=block_bytes) as source:
            here: list[Packet] = []
            try:
                here.extend(source.packets())
            except CutShort:
                assert source.gaps or told.compressed
            assert source.gaps.get(0, []) == list(split.gaps)
            assert len(here) == split.packets
            found += here
    return found


def check(data: bytes, size: int, block_bytes: int) -> Index:
    told = index("x", opener(data), split_bytes=size, block_bytes=block_bytes)
    packets, damage, holes = whole(data)
    if told.pieces is not None:  # the whole is read in the order of time, parts in the file's
        packets = sorted(packets, key=lambda each: each.at)
        packets = [each._replace(number=number) for number, each in enumerate(packets, 1)]
    assert in_parts(data, told, block_bytes) == packets
    assert told.gaps == holes
    assert told.packets == len(packets)
    assert [told.damage] == damage or (not told.damage and not damage)
    times = [each.time_ns for each in packets]
    assert (told.first_ns, told.last_ns) == ((times[0], max(times)) if times else (None, None))
    return told


def index_of(data: bytes, size: int) -> tuple[Index, list[Stretch]]:
    head = head_of("x", opener(data))
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
    damage = [told.damage] if told.damage else []
    assert (in_parts(data, told, 4096), damage, told.gaps) == whole(data)
    return told
