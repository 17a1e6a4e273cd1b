"""Packets are composed into chunks: whole, in order, lying as in the file, and left alone as long
as somebody has to write them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures.model import Endpoint, Gap
from kafkascope.proxy.limits import LIMITS
from kafkascope.proxy.recording.direct import BLOCK, CHUNK, Chunks
from kafkascope.proxy.recording.packing import (
    CLOSE,
    LARGE,
    MSS,
    OPEN,
    Batch,
    Packing,
    TapEvent,
    preamble,
)
from tests.kit.captures import bytes_of, read

CLIENT, BROKER = Endpoint("127.0.0.1", 40_001), Endpoint("127.0.0.1", 9092)
EDGES = [1, LARGE - 1, LARGE, MSS - 1, MSS, MSS + 1, MSS + LARGE, 5 * MSS, 512 * 1024]


def opened(skew: int = 0) -> Packing:
    packing = Packing()
    packing.skew = skew
    packing.add(TapEvent(1, OPEN, CLIENT, BROKER, 1))
    return packing


def written(batches: list[Batch]) -> bytes:
    return preamble() + b"".join(bytes(part) for each in batches for part in each.parts)


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.one_of(st.sampled_from(EDGES), st.integers(1, 3 * MSS)),
            st.sampled_from(["", "said", "ü" * 2_000]),
            st.booleans(),
        ),
        max_size=25,
    ),
    st.integers(0, 2 * BLOCK),
)
def test_what_passed_is_in_the_blocks_of_a_file(
    events: list[tuple[int, int, str, bool]], skew: int
) -> None:
    made = random.Random(7)
    packing, batches, sent = opened(skew), [], [b"", b""]
    for number, (side, size, comment, take) in enumerate(events):
        data = made.randbytes(size)
        sent[side] += data
        packing.add(TapEvent(1, 0, side, memoryview(data) if take else data, number, comment))
        if take:
            batches.append(packing.take())
    packing.add(TapEvent(1, CLOSE, None, "fin", len(events)))
    batches.append(packing.take())
    assert packing.lost == packing.size == 0
    at = 0
    for batch in batches:
        assert batch.size == sum(map(len, batch.parts))
        for part, start in zip(batch.parts, batch.starts, strict=True):
            assert (at + skew - start) % BLOCK == 0
            at += len(part)
    found = bytes_of(read(written(batches))[0])
    assert [found.get(str(each), b"") for each in (CLIENT, BROKER)] == sent


@pytest.mark.slow
def test_chunks_are_left_alone_as_long_as_somebody_has_to_write_them() -> None:
    packing = opened()
    kept = [packing.take()]
    made = random.Random(3)
    while not packing.lost:
        packing.add(TapEvent(1, 0, 1, made.randbytes(300_000), 1))
        kept.append(packing.take())
    before = written(kept)
    assert (LIMITS.chunks - 1) * CHUNK < len(before) <= LIMITS.chunks * CHUNK
    # How a connection goes on and ends is told all the same.
    packing.add(TapEvent(1, 0, 0, b"small", 2))
    kept.append(packing.take())
    assert kept[-1].packets == 1
    for _ in range(3):
        packing.add(TapEvent(1, 0, 1, made.randbytes(300_000), 3))
    assert written(kept).startswith(before)
    assert bytes_of(read(written(kept))[0])[str(CLIENT)] == b"small"
    # When they are written there is room again, and whoever reads meets a gap.
    kept.clear()
    packing.take()
    lost = packing.lost
    packing.add(TapEvent(1, 0, 1, b"x" * 300_000, 4))
    assert packing.lost == lost
    assert packing.take().size > 300_000


def test_there_are_so_many_chunks_and_they_serve_again() -> None:
    chunks = Chunks()
    leases = [chunks.take() for _ in range(LIMITS.chunks)]
    assert None not in leases
    assert chunks.take() is None
    last = [chunks.take(reserve=True) for _ in range(LIMITS.reserve_chunks)]
    assert None not in last
    assert chunks.take(reserve=True) is None
    last.clear()
    assert chunks.take() is None
    leases.pop()
    assert chunks.take() is not None


def test_a_gap_is_where_something_was_left_out() -> None:
    packing = opened()
    packing.add(TapEvent(1, 0, 1, b"a" * 10_000, 1))
    packing.add(TapEvent(1, 0, 1, 70_000, 2))
    packing.add(TapEvent(1, 0, 1, b"b" * 10_000, 3))
    packing.add(TapEvent(1, CLOSE, None, "fin", 4))
    gaps = [each.size for each in read(written([packing.take()]))[0] if isinstance(each, Gap)]
    assert gaps == [70_000]
