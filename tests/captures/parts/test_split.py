"""Parts of captures: together they are the whole, whatever the sizes, the format and the damage."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures import CutShort, NotACapture, Packet, Source
from kafkascope.captures.formats.records import FileGap, add_gap
from kafkascope.captures.inputs.opening import StoredFile
from kafkascope.captures.parts.split import Index, index, read_split
from tests.captures.formats.test_pcapng import block, enhanced, interface, section
from tests.captures.wires import Trickle, conversation

SAMPLES = Path(__file__).parents[3] / "captures" / "samples"


def opener(data: bytes) -> Callable[[str, int], Trickle]:
    return lambda name, start: Trickle(data[start:])


def whole(data: bytes) -> tuple[list[Packet], list[str], list[FileGap]]:
    source = Source(["x"], None, {0: Trickle(data)})
    found: list[Packet] = []
    try:
        found.extend(source.packets())
    except CutShort:
        pass
    return found, [str(each) for each in source.statistics.damage], source.gaps[0]


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


sizes = st.integers(1, 4000)


@given(size=sizes, block_bytes=sizes, order=st.sampled_from("<>"), nano=st.booleans())
def test_parts_of_a_pcap_are_the_whole(size: int, block_bytes: int, order: str, nano: bool) -> None:
    told = check(conversation().pcap(order=order, nano=nano), size, block_bytes)
    assert told.format == "pcap"
    assert len(told.splits) > 1 or size > 500


def simple(order: str) -> bytes:
    return block(order, 3, pack(order + "I", 8) + bytes(8))


def odd(order: str) -> bytes:
    return block(order, 0x99, bytes(40))


pieces = st.lists(
    st.one_of(
        st.tuples(st.just("packet"), st.integers(0, 3), st.integers(0, 300)),
        st.tuples(st.sampled_from(["simple", "odd", "section<", "section>"])),
        st.tuples(st.just("interface"), st.sampled_from([b"\x06", b"\x09", b"\x8a", b"\x00"])),
    ),
    max_size=40,
)


@given(plan=pieces, size=sizes, block_bytes=sizes)
def test_parts_of_any_pcapng_are_the_whole(
    plan: list[tuple[object, ...]], size: int, block_bytes: int
) -> None:
    order, known = "<", 1
    out = [section(order), interface(order)]
    for number, (what, *how) in enumerate(plan):
        if what == "packet":
            which, length = how
            assert isinstance(which, int)
            assert isinstance(length, int)
            # Now and then of an interface that is not there: damage.
            out.append(enhanced(order, 1000 + number, min(which, known), bytes(length)))
        elif what == "simple":
            out.append(simple(order))
        elif what == "odd":
            out.append(odd(order))
        elif what == "interface":
            assert isinstance(how[0], bytes)
            out.append(interface(order, tsresol=how[0]))
            known += 1
        else:
            order, known = str(what)[-1], 1
            out += [section(order), interface(order, tsresol=b"\x09")]
    check(b"".join(out), size, block_bytes)


@given(data=st.data())
def test_parts_of_damaged_captures_are_what_is_left_of_them(data: st.DataObject) -> None:
    made = conversation(2, 500)
    good = bytearray(data.draw(st.sampled_from([made.pcap(), made.pcapng()])))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(28, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(30, len(good)))
    check(bytes(good[:cut]), data.draw(sizes), data.draw(sizes))


def test_a_capture_inside_a_capture_deceives_nobody() -> None:
    """The bytes of packets look like records: only a walk from the start knows better."""
    inner = conversation(2, 300).pcap()
    tape = conversation(1, 100)
    tape.add([bytes(14) + inner[24:], bytes(14) + inner[24:]])
    check(tape.pcap(), 100, 1 << 20)


def test_a_huge_block_that_nobody_wants_is_passed_over() -> None:
    data = section("<") + interface("<") + enhanced("<", 1)
    data += block("<", 0x0BAD, bytes(17 << 20)) + enhanced("<", 2)
    told = check(data, 1 << 20, 1 << 20)
    assert told.packets == 2
    assert not told.damage


@pytest.mark.parametrize("size", [1000, 50_000, 1 << 30])
@pytest.mark.parametrize("name", ["libraries.pcap", "cluster.pcap.gz"])
def test_samples(name: str, size: int) -> None:
    path = SAMPLES / name
    with Source([str(path)]) as source:
        expected = list(source.packets())
    told = index(str(path), StoredFile, split_bytes=size, block_bytes=4096)
    found = []
    for split in told.splits:
        with read_split(str(path), split, StoredFile) as part:
            found += list(part.packets())
    assert found == expected
    assert told.compressed == name.endswith("gz")
    assert (len(told.splits) == 1) == (told.compressed or size == 1 << 30)


def test_a_compressed_file_is_one_part_though_it_is_cut() -> None:
    data = gzip.compress(conversation(20).pcap())
    told = check(data[: len(data) * 2 // 3], 100, 1000)
    assert len(told.splits) == 1
    assert told.damage


def test_what_is_no_capture_is_refused() -> None:
    with pytest.raises(NotACapture):
        index("x", opener(b"GET / HTTP/1.1"))


@pytest.mark.parametrize("size", [200, 1000])
def test_captures_that_were_joined_have_headers_between_their_records(size: int) -> None:
    check(conversation().pcap() * 3, size, 1 << 20)
