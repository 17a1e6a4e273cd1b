"""One pcap walked by many at once: the index is that of a single walk, whatever was guessed."""

from __future__ import annotations

import itertools
from random import Random
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures import CutShort, Packet
from kafkascope.captures.formats.pcap import Pcap
from kafkascope.captures.parts.split import Index, index, read_split
from kafkascope.captures.parts.stretches import Stretch, bounds, head_of, joined, walked
from tests.captures.parts.test_split import opener, whole
from tests.captures.wires import START_NS, Tape, conversation


def index_of(data: bytes, size: int) -> tuple[Index, list[Stretch]]:
    head = head_of("x", opener(data))
    assert head is not None
    found = [
        walked("x", opener(data), head, start, end, block_bytes=4096)
        for start, end in bounds(len(data), size)
    ]
    return joined("x", opener(data), head, found), found


def check(data: bytes, size: int) -> Index:
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


sizes = st.integers(300, 4000)
few = settings(max_examples=12)


@given(size=sizes, order=st.sampled_from("<>"), nano=st.booleans())
def test_one_index_of_many_walks(size: int, order: str, nano: bool) -> None:
    data = conversation().pcap(order=order, nano=nano)
    told = check(data, size)
    assert len(told.splits) > 1 or size > len(data) // 3


def tape(seed: int) -> Tape:
    """Payloads that look like records, like nothing, or like zeros."""
    random = Random(seed)
    made = Tape()
    inner = Tape()
    inner.frames = [(START_NS, random.randbytes(60)) for _ in range(40)]
    for number in range(60):
        kind = random.randrange(4)
        payload = (
            random.randbytes(random.randrange(1, 400)),
            bytes(random.randrange(1, 400)),
            inner.pcap()[random.randrange(24) :],
            pack("<IIII", 5, 5, 100, 100) * random.randrange(1, 20),
        )[kind]
        made.frames.append((START_NS + number, payload))
    return made


@few
@given(seed=st.integers(0, 1 << 32), size=sizes)
def test_what_only_looks_like_records_misleads_nobody(seed: int, size: int) -> None:
    check(tape(seed).pcap(), size)


@few
@given(seed=st.integers(0, 1 << 32), size=sizes, cut=st.floats(0.05, 1), harm=st.booleans())
def test_damage_costs_what_it_costs_in_one_walk(
    seed: int, size: int, cut: float, harm: bool
) -> None:
    data = tape(seed).pcap()
    data = data[: max(24, int(cut * len(data)))]
    if harm and len(data) > 60:
        at = Random(seed).randrange(24, len(data) - 4)
        data = data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :]
    check(data, size)


def test_files_that_were_joined_with_cat() -> None:
    data = conversation().pcap() * 3
    for size in (200, 777, 5000):
        check(data, size)


def test_guesses_are_right_where_packets_are_plain() -> None:
    """Else walking in stretches would be walking twice."""
    data = conversation().pcap() + conversation().pcap()[24:] * 20
    _, found = index_of(data, 3000)
    assert len(found) > 5
    assert all(one.landed == two.begin for one, two in itertools.pairwise(found))


def test_nothing_is_guessed_of_what_holds_no_record() -> None:
    head = conversation().pcap()[:24]
    for data in (b"", b"short", b"\xff" * 1000):
        assert Pcap(head, 0).search(bytearray(data), True).at is None


@pytest.mark.parametrize("data", [conversation().pcapng()], ids=["pcapng"])
def test_only_a_plain_pcap_is_walked_so(data: bytes) -> None:
    assert head_of("x", opener(data)) is None
