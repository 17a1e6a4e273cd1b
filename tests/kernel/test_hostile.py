"""Bytes of every kind end in pairs or a refusal: compiled code checks no bounds of its own, so that
an integer that overflows, or an index behind the end, would be a crash."""

import tracemalloc
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.bodies.trees import node_of
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.registry import APIS, layout_of
from kafkascope.kernel.pairs import Side
from kafkascope.kernel.walker import Facts, Texts, walk_request, walk_response
from tests.kernel.frames import (
    MANY,
    SIZES,
    VERSIONS,
    fetch_response,
    frames,
    mutated,
    reader_of_a_test,
)
from tests.kit.wire import framed, heartbeat, produce, request
from tests.strategies import bodies


@pytest.mark.parametrize("count", MANY)
def test_a_body_fits_or_does_not(count: int) -> None:
    """Alone, or between other bytes."""

    @settings(max_examples=count)
    @given(st.sampled_from(VERSIONS), st.data(), st.integers(0, 1 << 32))
    def law(about: tuple[int, int], data: st.DataObject, seed: int) -> None:
        key, version = about
        rng = Random(seed)
        for side, walk in (("Request", walk_request), ("Response", walk_response)):
            layout = layout_of(APIS[key].name + side, version)
            node, body = node_of(layout), writer(layout)(data.draw(bodies(layout)))
            odd = rng.randbytes(rng.randrange(80))
            for each in (body, odd, *(mutated(body, rng) for _ in range(20))):
                before, behind = rng.randbytes(rng.randrange(8)), rng.randbytes(rng.randrange(8))
                at, end = len(before), len(before) + len(each)
                fits = walk(node, before + each + behind, at, end, Facts(Texts()))
                assert fits == walk(node, each, 0, len(each), Facts(Texts()))
                assert fits or each != body

    law()


@pytest.mark.parametrize("count", MANY)
def test_every_byte_is_read_or_kept(count: int) -> None:
    """However the bytes of both sides are cut into packets."""

    @settings(max_examples=count)
    @given(st.lists(frames(), min_size=1, max_size=3), st.integers(0, 1 << 32))
    def law(pairs: list[tuple[bytes, bytes]], seed: int) -> None:
        rng = Random(seed)
        streams = [b"", b""]
        for pair in pairs:
            for side, payload in enumerate(pair):
                whole = framed(payload)
                streams[side] += mutated(whole, rng) if rng.random() < 0.6 else whole
        results = [outcome(streams, Random(rng.random())) for _ in range(3)]
        assert results[0] == results[1] == results[2]

    law()


def outcome(streams: list[bytes], rng: Random) -> list[Any]:
    """The pairs that come out of the client's bytes and then of the broker's, and what is kept."""
    reader = reader_of_a_test()
    kept: list[Any] = []
    for side, stream in enumerate(streams):
        asks = side == 0
        ordinary, at = True, 0
        while at < len(stream):
            part = stream[at : at + rng.choice([1, 3, 4, 5, 14, 60, 1 << 16])]
            if ordinary:
                ordinary = reader.take(asks, part, 1 << 60, 1, 0, at, at)
            else:
                reader.keep(asks, part, 1 << 60, 1, 0, at)
            at += len(part)
        kept.append((ordinary, rest(reader.client if asks else reader.broker, stream)))
    pairs = [(p.correlation_id, p.records, p.batches, p.counted) for p in reader.sink.pairs]
    return [*kept, pairs, len(reader.flight)]


def rest(side: Side, stream: bytes) -> int:
    """Where the bytes that are kept begin: they are all behind that, and say where they stood."""
    held = b"".join(side.blocks)
    assert side.held == len(held)
    begin = len(stream) - len(held)
    assert stream[begin:] == held
    if held:
        assert side.offset == begin
        for number, (start, _, _, _, at) in enumerate(side.pieces):
            assert at == begin + start
            assert number or not start
    return begin


def batch(base: int, delta: int, length: int, count: int) -> bytes:
    """The header of a record batch, with a false checksum."""
    return b"".join(
        (
            *(base.to_bytes(8, "big", signed=True), length.to_bytes(4, "big", signed=True)),
            *(bytes(4), b"\x02", bytes(4), bytes(2), delta.to_bytes(4, "big", signed=True)),
            *(bytes(16), bytes(14), count.to_bytes(4, "big", signed=True)),
        )
    )


INTS: Final = (-(1 << 31), -1, 0, 49, 1 << 30, (1 << 31) - 1)
LONGS: Final = (-(1 << 63), -(1 << 62), -1, 0, 1 << 62, (1 << 63) - 1)


@pytest.mark.parametrize("base", LONGS)
def test_offsets_and_lengths_of_batches_do_not_overflow(base: int) -> None:
    for delta in INTS:
        for length in INTS:
            for end in LONGS:
                reader = reader_of_a_test()
                records = batch(base, delta, length, delta) * 2
                for at in range(2):
                    asked = request("Fetch", 11, 0, max_wait_ms=length, min_bytes=delta)
                    assert reader.take(True, asked, at, 1, 0, 0, 0)
                    assert reader.take(False, fetch_response(records, end), at, 1, 0, 0, 0)
                assert len(reader.sink.pairs) == 2


@pytest.mark.parametrize("time_ns", [-(1 << 62), 0, 1 << 62])
@pytest.mark.parametrize("place", [0, (1 << 62), (1 << 63) - 200])
def test_times_and_places_do_not_overflow(time_ns: int, place: int) -> None:
    reader = reader_of_a_test()
    asked, told = request("JoinGroup", 5, 0), framed(bytes(4) + b"")
    assert reader.take(True, asked, time_ns, 1, 0, place, place)
    assert not reader.take(False, told, time_ns, 1, 0, place, place)
    assert reader.held > 0


def crowds() -> Iterator[tuple[str, bytes]]:
    """Frames that say that they have more than they have, or have as much as they can."""
    for api, version in (("Produce", 7), ("Produce", 9), ("Fetch", 4), ("Fetch", 13)):
        whole = request(api, version, 0)
        for at in range(18, len(whole)):
            for odd in SIZES:
                yield f"{api} {version} {at} {odd.hex()}", whole[:at] + odd + whole[at + len(odd) :]


def test_what_is_not_there_takes_no_memory() -> None:
    reader = reader_of_a_test()
    tracemalloc.start()
    try:
        for what, frame in crowds():
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            reader.take(True, frame[:4] + frame[4:], 0, 1, 0, 0, 0)
            assert tracemalloc.get_traced_memory()[1] - before < 1 << 20, what
            reader.flight.clear()
            reader.client.clear()
    finally:
        tracemalloc.stop()


def test_requests_that_wait_are_bounded() -> None:
    reader = reader_of_a_test()
    number = 0
    while reader.take(True, heartbeat(number), 0, 1, 0, 0, 0):
        number += 1
    assert number == 1000


def test_a_long_frame_in_small_packets_takes_linear_time() -> None:
    reader = reader_of_a_test()
    frame = produce(1, records=bytes(300_000))
    for at in range(len(frame)):
        assert reader.take(True, frame[at : at + 1], at, at + 1, 0, at, at)
    assert len(reader.flight) == 1
    assert reader.flight[0].pieces is not None
    assert len(reader.flight[0].pieces) == len(frame)
