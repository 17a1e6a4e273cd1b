"""Bytes of every kind end in pairs or a refusal: compiled code checks no bounds of its own, so that
an integer that overflows, or an index behind the end, would be a crash."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.bodies.trees import node_of
from kafkascope.analyzer.conversation import ordinary
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.layout import ArrayWire, StructWire, default_of
from kafkascope.dissectors.registry import (
    APIS,
    encode_body,
    example,
    layout_of,
    request_header_version,
    response_header_version,
)
from kafkascope.kernel.pairs import PairSink, Plan, Reader, Side
from kafkascope.kernel.walker import Facts, Texts, walk_request, walk_response
from tests.analyzer.wire import framed, heartbeat, produce, request
from tests.matrix import mostly_slow
from tests.strategies import bodies

SIZES: Final = [
    *(value.to_bytes(4, "big") for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x10000000)),
    *(value.to_bytes(8, "big") for value in (1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63)),
    *(b"\x7f\xff", b"\x80\x00", b"\xff\xff", b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff"),
    *(b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x08", b"\x80" * 5),
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
]
"""Lengths, counts, and offsets at the ends of what the machine's integers hold; varints too."""
MANY: Final = mostly_slow(
    [25, max(600, settings.default.max_examples)],  # type: ignore[union-attr]
    lambda count: count == 25,
)
"""How many examples of a law."""


class Host:
    """What a reader asks for, without a conversation."""

    session: Any = None

    def __init__(self) -> None:
        self.numbers = 0

    def plan_of(self, key: int, version: int) -> Plan | None:
        return ordinary.plan_of(key, version)

    def number(self, packet: int) -> int:
        self.numbers += 1
        return self.numbers

    def fetch_request(self, *about: Any) -> Any:
        return None

    def bytes_before(self, data: bytes, offset: int, wanted: int) -> int:
        return 0

    def log_end(self, end: tuple[int, int, int]) -> tuple[int, int, int]:
        return end

    def nothing(self, *about: Any) -> None:
        """Take what the reader says of the state of a connection."""

    learn_request = learn_response = fetch_response = forgot = grew = nothing


def reader_of_a_test() -> Reader:
    return Reader(PairSink(), {}, Texts(), Host(), 0)


def mutated(data: bytes, rng: Random) -> bytes:
    """The bytes with odd numbers in some places, cut, or with some twice."""
    out = bytearray(data)
    for _ in range(rng.randrange(4)):
        at, odd = rng.randrange(len(out) + 1), rng.choice(SIZES)
        match rng.randrange(4):
            case 0:
                del out[at:]
            case 1:
                out[at:at] = out[at : at + rng.randrange(40)]
            case _:
                out[at : at + len(odd)] = odd
    return bytes(out)


VERSIONS: Final = [
    (api.key, version)
    for api in APIS.values()
    for version in range(api.versions.low, api.versions.high + 1)
]


@st.composite
def frames(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A request of any version, and its response, each without its size."""
    key, version = draw(st.sampled_from(VERSIONS))
    name, id = APIS[key].name, draw(st.integers(0, 2))
    kinds = request_header_version(key, version), response_header_version(key, version)
    about = {"request_api_key": key, "request_api_version": version, "correlation_id": id}
    header = example("RequestHeader", kinds[0]) | about
    layouts = layout_of(f"{name}Request", version), layout_of(f"{name}Response", version)
    asked, told = (writer(layout)(draw(bodies(layout))) for layout in layouts)
    return (
        encode_body("RequestHeader", kinds[0], header) + asked,
        encode_body("ResponseHeader", kinds[1], {"correlation_id": id, "tagged_fields": []}) + told,
    )


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


def fetch_response(records: bytes, high: int) -> bytes:
    """Two partitions with the same records."""
    layout = layout_of("FetchResponse", 11)
    topic = struct_of(layout.body, "responses")
    about = {"high_watermark": high, "last_stable_offset": high, "records": records}
    partition = defaults(struct_of(topic, "partitions")) | about
    topics = [defaults(topic) | {"topic": "t", "partitions": [partition]}] * 2
    return framed(bytes(4) + writer(layout)(example("FetchResponse", 11) | {"responses": topics}))


def struct_of(struct: StructWire, name: str) -> StructWire:
    """What an array of structs holds."""
    (wire,) = (slot.wire for slot in struct.slots if slot.name == name)
    assert isinstance(wire, ArrayWire)
    assert isinstance(wire.element, StructWire)
    return wire.element


def defaults(struct: StructWire) -> dict[str, Any]:
    return {slot.name: default_of(slot) for slot in struct.slots}


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
