"""Frames out of chunks, whatever the chunks are."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation import framing, plausible
from kafkascope.analyzer.conversation.detect import describe, look
from kafkascope.analyzer.conversation.framing import FrameBuffer, Skipped, Unit
from kafkascope.analyzer.conversation.plausible import Plausibility, judge_request
from kafkascope.analyzer.conversation.resync import RequestHeuristic
from kafkascope.analyzer.model import Frame
from kafkascope.captures.model import Chunk, Gap
from kafkascope.dissectors.registry import APIS, CONTROLLED_SHUTDOWN
from tests.kit.wire import CLIENT, Wire, beat, framed, heartbeat, produce, request


def feed(wire: Wire, *, resyncing: bool = False) -> list[Unit]:
    buffer = FrameBuffer(RequestHeuristic())
    if resyncing:
        buffer.resync()
    out: list[Unit] = []
    for event in wire.events:
        if isinstance(event, Chunk):
            out += buffer.feed(event)
        elif isinstance(event, Gap):
            out += buffer.gap(event)
    return out + buffer.close()


def payloads(units: list[Unit]) -> list[bytes]:
    return [unit.payload for unit in units if isinstance(unit, Frame)]


@given(st.lists(st.binary(max_size=60), max_size=8), st.data())
def test_any_chunking_gives_the_frames_that_were_sent(
    bodies: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(map(framed, bodies))
    wire = Wire()
    at = 0
    while at < len(stream):
        size = data.draw(st.integers(1, 80))
        wire.client(stream[at : at + size])
        at += size
    units = feed(wire)
    assert payloads(units) == bodies
    offset = 0
    for unit, body in zip(units, bodies, strict=True):
        assert (unit.offset, unit.size, unit.cut) == (offset, len(body), "")
        assert sum(part.size for part in unit.parts) == len(body) + 4
        offset += len(body) + 4


def test_parts_say_where_the_bytes_stand_in_the_file() -> None:
    asked = heartbeat(1)
    wire = Wire().client(asked[:10]).client(asked[10:] + asked)
    first, second = feed(wire)
    parts = [(100, 10, 1), (180, len(asked) - 10, 2)]
    assert [(p.at, p.size, p.packet) for p in first.parts] == parts
    assert [(p.at, p.size) for p in second.parts] == [(180 + len(asked) - 10, len(asked))]
    assert first.last_ns - first.first_ns == 1_000_000


def test_a_gap_of_known_size_inside_a_frame_is_counted_to_its_end() -> None:
    asked = produce(1, records=bytes(1000))
    wire = Wire().client(asked[:50]).gap("client", 500).client(asked[550:] + heartbeat(2))
    cut, whole = feed(wire)
    assert (cut.cut, cut.payload, cut.size) == ("gap", asked[4:50], len(asked) - 4)
    assert whole.payload == heartbeat(2)[4:]


def test_a_gap_beyond_the_frame_makes_it_hunt() -> None:
    asked = produce(1, records=bytes(100))
    wire = Wire().client(heartbeat(0), asked[:50]).gap("client", 5000)
    wire.client(b"\xff" * 11 + heartbeat(2) + b"\xff" * 20)
    units = feed(wire)
    assert payloads(units) == [heartbeat(0)[4:], asked[4:50]]
    # A frame that does not start with a packet needs a second sign.
    skipped = [unit.size for unit in units if isinstance(unit, Skipped)]
    assert sum(skipped) == 31 + len(heartbeat(2))


def test_a_frame_behind_garbage_is_confirmed_by_the_one_behind_it() -> None:
    wire = Wire().client(b"\xff" * 11 + heartbeat(2) + heartbeat(3))
    assert payloads(feed(wire, resyncing=True)) == [heartbeat(2)[4:], heartbeat(3)[4:]]


def test_a_frame_that_starts_a_packet_needs_no_second_sign() -> None:
    wire = Wire().client(b"\xff" * 11).client(heartbeat(2))
    assert payloads(feed(wire, resyncing=True)) == [heartbeat(2)[4:]]


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 600 << 20])
def test_a_nonsense_size_makes_it_hunt(size: int) -> None:
    wire = Wire().client(heartbeat(1) + struct.pack(">i", size) + b"rest").client(heartbeat(2))
    units = feed(wire)
    assert payloads(units) == [heartbeat(1)[4:], heartbeat(2)[4:]]
    assert sum(unit.size for unit in units if isinstance(unit, Skipped)) == 8


def test_a_size_in_pieces_that_is_nonsense() -> None:
    wire = Wire().client(b"\xff").client(b"\xff\xff").client(b"\xff" + heartbeat(1))
    wire.client(heartbeat(2))
    assert payloads(feed(wire)) == [heartbeat(1)[4:], heartbeat(2)[4:]]


def test_of_a_frame_that_is_too_large_the_head_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "HOLD_BYTES", 10_000)
    asked = produce(1, records=bytes(50_000))
    wire = Wire()
    for at in range(0, len(asked), 1000):
        wire.client(asked[at : at + 1000])
    large, small = feed(wire.client(heartbeat(2)))
    assert (large.cut, large.size) == ("too-large", len(asked) - 4)
    assert large.payload == asked[4 : framing.HEAD_BYTES]
    assert isinstance(small, Frame)


@given(
    st.lists(st.one_of(st.binary(max_size=200), st.integers(0, 300)), max_size=12), st.booleans()
)
def test_every_byte_is_told_once(parts: list[bytes | int], resyncing: bool) -> None:
    """Garbage with holes: frames and skipped bytes never overlap and never exceed what came."""
    wire = Wire()
    for part in parts:
        if isinstance(part, int):
            wire.gap("client", part or None)
        elif part:
            wire.client(part)
    units = feed(wire, resyncing=resyncing)
    seen = 0
    for unit in units:
        assert unit.offset >= seen
        seen = unit.offset + (len(unit.payload) + 4 if isinstance(unit, Frame) else unit.size)
    assert seen <= wire.offsets[0]


def test_hunting_in_hostile_bytes_is_linear() -> None:
    # Every position looks like the start of a frame that is a little too long.
    wire = Wire()
    for _ in range(40):
        wire.client(b"\x00\x00\xff\x00\x00\x03\x00\x01" * 1024)
    units = feed(wire, resyncing=True)
    assert sum(u.size for u in units if isinstance(u, Skipped)) <= 40 * 8192
    assert CLIENT


# --- frames found by content ----------------------------------------------------------------------


@pytest.mark.parametrize("key", sorted(APIS))
def test_requests_of_every_api_pass(key: int) -> None:
    api = APIS[key]
    for version in (api.versions.low, api.versions.high):
        data = request(api.name, version, 5, "app")
        assert judge_request(data, 0) is Plausibility.MAYBE
        assert plausible.find_request(b"\xff\xfe" + data, 0) == 2
        assert look(data, kafka_port=False) == "kafka" or key == CONTROLLED_SHUTDOWN


@given(st.integers(1, 28))
def test_the_first_bytes_of_a_request_ask_for_more(size: int) -> None:
    data = heartbeat(1)[:size]
    assert judge_request(data, 0) is (Plausibility.MORE if size < 17 else Plausibility.MAYBE)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">ihhih", 5, 12, 3, 1, 0),
        struct.pack(">ihhih", 20, 12, 99, 1, 0) + bytes(9),
        struct.pack(">ihhih", 20, 200, 0, 1, 0) + bytes(9),
        struct.pack(">ihhih", 20, 12, 3, -2, 0) + bytes(9),
        struct.pack(">ihhih", 20, 12, 3, 1, 2000) + bytes(9),
        struct.pack(">ihhih", 20, 12, 3, 1, 3) + b"\x01\x02\x03" + bytes(9),
        b"GET / HTTP/1.1\r\nHost: x\r\n",
    ],
)
def test_what_is_no_request(data: bytes) -> None:
    assert judge_request(data, 0) is Plausibility.NO


def test_a_client_is_known_by_its_id() -> None:
    assert plausible.same_client(heartbeat(1), 0, b"app")
    assert not plausible.same_client(heartbeat(1), 0, b"ap")
    assert not plausible.same_client(heartbeat(1), 0, b"")


def test_responses_are_known_by_the_ids_in_flight() -> None:
    data = b"\xff" + beat(7)
    assert plausible.response_finder([6, 7])(data, 0) == 1
    assert plausible.response_finder([8])(data, 0) == -1
    assert plausible.response_finder([])(data, 0) == -1
    assert plausible.judge_response(data, 1, [7]) is Plausibility.MAYBE
    assert plausible.judge_response(data, 1, [8]) is Plausibility.NO


@given(st.binary(max_size=100), st.booleans())
def test_any_bytes_are_judged(data: bytes, kafka_port: bool) -> None:
    assert look(data, kafka_port) in ("kafka", "token", "other", "short")
    assert describe(data)


@given(st.sampled_from(sorted(APIS)), st.data())
def test_damaged_requests_are_judged_on_any_port(key: int, data: st.DataObject) -> None:
    api = APIS[key]
    version = data.draw(st.integers(api.versions.low, api.versions.high))
    client_id = data.draw(st.sampled_from(["app", "", None]))
    damaged = bytearray(request(api.name, version, 5, client_id))
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    for kafka_port in (True, False):
        assert look(bytes(damaged), kafka_port) in ("kafka", "token", "other", "short")
