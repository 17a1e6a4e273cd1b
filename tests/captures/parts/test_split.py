"""Parts of captures: together they are the whole, whatever the sizes, the format and the damage."""

import gzip
import itertools
from random import Random
from struct import pack

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkascope.captures.errors import NotACapture
from kafkascope.captures.formats.pcap import Pcap
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.opening import StoredFile
from kafkascope.captures.parts.split import index, read_split
from kafkascope.captures.parts.stretches import head_of
from tests.captures.parts.checks import check, check_index, index_of
from tests.kit import captures as kit
from tests.kit.samples import SAMPLES

sizes = st.integers(1, 4000)


@given(size=sizes, block_bytes=sizes, order=st.sampled_from("<>"), nano=st.booleans())
def test_parts_of_a_pcap_are_the_whole(size: int, block_bytes: int, order: str, nano: bool) -> None:
    told = check(kit.conversation().pcap(order=order, nano=nano), size, block_bytes)
    assert told.format == "pcap"
    assert len(told.splits) > 1 or size > 500


def simple(order: str) -> bytes:
    return kit.block(order, 3, pack(order + "I", 8) + bytes(8))


def odd(order: str) -> bytes:
    return kit.block(order, 0x99, bytes(40))


pieces = st.lists(
    st.one_of(
        st.tuples(st.just("packet"), st.integers(0, 3), st.integers(0, 300)),
        st.tuples(st.sampled_from(["simple", "odd", "section<", "section>"])),
        st.tuples(st.just("interface"), st.sampled_from([b"\x06", b"\x09", b"\x8a", b"\x00"])),
    ),
    max_size=40,
)


LATE = [("section<",), ("interface", b"\x06"), *[("packet", 1, 0)] * 2, ("packet", 0, 0)]


@given(plan=pieces, size=sizes, block_bytes=sizes)
@example(plan=LATE, size=1, block_bytes=1)
def test_parts_of_any_pcapng_are_the_whole(
    plan: list[tuple[object, ...]], size: int, block_bytes: int
) -> None:
    order, known = "<", 1
    out = [kit.section(order), kit.interface(order)]
    for number, (what, *how) in enumerate(plan):
        if what == "packet":
            which, length = how
            # Now and then of an interface that is not there: damage.
            out.append(kit.enhanced(order, 1000 + number, min(which, known), bytes(length)))
        elif what == "simple":
            out.append(simple(order))
        elif what == "odd":
            out.append(odd(order))
        elif what == "interface":
            out.append(kit.interface(order, tsresol=how[0]))
            known += 1
        else:
            order, known = str(what)[-1], 1
            out += [kit.section(order), kit.interface(order, tsresol=b"\x09")]
    check(b"".join(out), size, block_bytes)


@given(data=st.data())
def test_parts_of_damaged_captures_are_what_is_left_of_them(data: st.DataObject) -> None:
    made = kit.conversation(2, 500)
    good = bytearray(data.draw(st.sampled_from([made.pcap(), made.pcapng()])))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(28, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(30, len(good)))
    check(bytes(good[:cut]), data.draw(sizes), data.draw(sizes))


def test_a_capture_inside_a_capture_deceives_nobody() -> None:
    """The bytes of packets look like records: only a walk from the start knows better."""
    inner = kit.conversation(2, 300).pcap()
    tape = kit.conversation(1, 100)
    tape.add([bytes(14) + inner[24:], bytes(14) + inner[24:]])
    check(tape.pcap(), 100, 1 << 20)


def test_a_huge_block_that_nobody_wants_is_passed_over() -> None:
    data = kit.section("<") + kit.interface("<") + kit.enhanced("<", 1)
    data += kit.block("<", 0x0BAD, bytes(17 << 20)) + kit.enhanced("<", 2)
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
    data = gzip.compress(kit.conversation(20).pcap())
    told = check(data[: len(data) * 2 // 3], 100, 1000)
    assert len(told.splits) == 1
    assert told.damage


def test_what_is_no_capture_is_refused() -> None:
    with pytest.raises(NotACapture):
        index("x", kit.opener(b"GET / HTTP/1.1"))


@pytest.mark.parametrize("size", [200, 1000])
def test_captures_that_were_joined_have_headers_between_their_records(size: int) -> None:
    check(kit.conversation().pcap() * 3, size, 1 << 20)


# --- one pcap walked by many at once: the index is that of a single walk, whatever wa -------------


stretch_sizes = st.integers(300, 4000)
few = settings(max_examples=12)


@given(size=stretch_sizes, order=st.sampled_from("<>"), nano=st.booleans())
def test_one_index_of_many_walks(size: int, order: str, nano: bool) -> None:
    data = kit.conversation().pcap(order=order, nano=nano)
    told = check_index(data, size)
    assert len(told.splits) > 1 or size > len(data) // 3


def tape(seed: int) -> kit.Tape:
    """Payloads that look like records, like nothing, or like zeros."""
    random = Random(seed)
    made = kit.Tape()
    inner = kit.Tape()
    inner.frames = [(kit.START_NS, random.randbytes(60)) for _ in range(40)]
    for number in range(60):
        kind = random.randrange(4)
        payload = (
            random.randbytes(random.randrange(1, 400)),
            bytes(random.randrange(1, 400)),
            inner.pcap()[random.randrange(24) :],
            pack("<IIII", 5, 5, 100, 100) * random.randrange(1, 20),
        )[kind]
        made.frames.append((kit.START_NS + number, payload))
    return made


@few
@given(seed=st.integers(0, 1 << 32), size=stretch_sizes)
def test_what_only_looks_like_records_misleads_nobody(seed: int, size: int) -> None:
    check_index(tape(seed).pcap(), size)


@few
@given(seed=st.integers(0, 1 << 32), size=stretch_sizes, cut=st.floats(0.05, 1), harm=st.booleans())
def test_damage_costs_what_it_costs_in_one_walk(
    seed: int, size: int, cut: float, harm: bool
) -> None:
    data = tape(seed).pcap()
    data = data[: max(24, int(cut * len(data)))]
    if harm and len(data) > 60:
        at = Random(seed).randrange(24, len(data) - 4)
        data = data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :]
    check_index(data, size)


def test_files_that_were_joined_with_cat() -> None:
    data = kit.conversation().pcap() * 3
    for size in (200, 777, 5000):
        check_index(data, size)


def test_guesses_are_right_where_packets_are_plain() -> None:
    """Else walking in stretches would be walking twice."""
    data = kit.conversation().pcap() + kit.conversation().pcap()[24:] * 20
    _, found = index_of(data, 3000)
    assert len(found) > 5
    assert all(one.landed == two.begin for one, two in itertools.pairwise(found))


def test_nothing_is_guessed_of_what_holds_no_record() -> None:
    head = kit.conversation().pcap()[:24]
    for data in (b"", b"short", b"\xff" * 1000):
        assert Pcap(head, 0).search(bytearray(data), True).at is None


@pytest.mark.parametrize("data", [kit.conversation().pcapng()], ids=["pcapng"])
def test_only_a_plain_pcap_is_walked_so(data: bytes) -> None:
    assert head_of("x", kit.opener(data)) is None
