"""What a connection does with any bytes, however they are cut. Scenarios: test_transcripts."""

import itertools
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.limits import LIMITS
from kafkascope.proxy.relay.endpoints import ENDPOINTS, WHOLE, walk_of
from kafkascope.proxy.relay.skipping import Program, Unwalkable, Walk, tail_of
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Delay, End, Send, Throttle, WakeUp
from tests.kit import proxy as kit
from tests.kit.wire import framed


def test_what_nobody_needs_passes_as_one_piece() -> None:
    bench = kit.Bench()
    data = b"".join(kit.beat(n) for n in range(50))
    bench.feed(CLIENT, data[:100])  # the first frame shows that it is Kafka
    assert bench.relay.feed(CLIENT, data[100:], 1) is None
    assert len(bench.relay.pairing) == 50


def test_a_large_frame_is_not_kept() -> None:
    bench = kit.Bench()
    data = kit.produce(size=300_000)
    for at in range(0, len(data), 50_000):
        piece = data[at : at + 50_000]
        assert bench.feed(CLIENT, piece) == [Send(BROKER, piece)]


def test_a_produce_whose_acks_do_not_come_is_not_kept() -> None:
    bench = kit.Bench()
    rest = b"\0" + b"\xff\xff\xff\x7f" + bytes(300_000)  # a transactional id of 256 MB
    head = struct.pack(">ihhih", 1 << 30, 0, 9, 1, 0)
    for at in range(0, len(rest), 10_000):
        bench.feed(CLIENT, head + rest[at : at + 10_000])
        head = b""
    assert not bench.relay.kept
    assert bench.sent(BROKER)[14:] == rest


def test_the_acks_of_a_transaction_are_found() -> None:
    bench = kit.Bench()
    body = {"transactional_id": "tx" * 40, "acks": 0, "timeout_ms": 1, "topic_data": []}
    for version in (3, 8, 9, 12):
        bench.feed(CLIENT, kit.request(kit.PRODUCE, version, body))
    assert len(bench.relay.pairing) == 0


TRAFFIC_IN = (
    kit.request(kit.API_VERSIONS, 3)
    + kit.request(kit.METADATA, 12, correlation_id=2)
    + kit.produce(correlation_id=3)
    + kit.produce(acks=0, correlation_id=4)
    + kit.request(kit.FETCH, 16, correlation_id=5)
    + kit.beat(6)
    + kit.request(kit.FETCH, 12, correlation_id=7)
)
TRAFFIC_OUT = (
    kit.response(kit.API_VERSIONS, 3)
    + kit.response(
        kit.METADATA, 12, {"brokers": [kit.endpoint(1), kit.endpoint(2)]}, correlation_id=2
    )
    + kit.response(kit.PRODUCE, 9, correlation_id=3)
    + kit.fetched(16, [kit.endpoint()], correlation_id=5)
    + kit.pulse(6)
    + kit.fetched(12, [], 3000, correlation_id=7)
)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 1 << 16), max_size=40),
    st.lists(st.integers(0, 1 << 16), max_size=40),
    st.booleans(),
)
def test_any_chunking_gives_the_same_bytes(ins: list[int], outs: list[int], rule: bool) -> None:
    whole = kit.Bench()
    bench = kit.Bench(*[kit.Always(CLIENT), kit.Always(BROKER)] if rule else [])
    # The same ports, so that the same bytes have to come out.
    whole.nodes.port_base = bench.nodes.port_base = None
    whole.exchange(TRAFFIC_IN, TRAFFIC_OUT)
    bench.nodes.listeners.update(whole.nodes.listeners)
    for piece in pieces(TRAFFIC_IN, ins):
        bench.feed(CLIENT, piece)
    for piece in pieces(TRAFFIC_OUT, outs):
        bench.feed(BROKER, piece)
    assert bench.sent(BROKER) == whole.sent(BROKER) == TRAFFIC_IN
    assert bench.sent(CLIENT) == whole.sent(CLIENT)
    assert len(bench.relay.pairing) == 0


@settings(max_examples=200, deadline=None)
@given(st.binary(min_size=1, max_size=300), st.binary(min_size=1, max_size=300), st.booleans())
def test_garbage_passes_unchanged_or_ends_the_connection(
    one: bytes, other: bytes, rule: bool
) -> None:
    bench = kit.Bench(*[kit.Always(CLIENT), kit.Always(BROKER)] if rule else [])
    bench.exchange(one, other)
    bench.relay.eof(CLIENT, 1)
    if not bench.context.over:
        assert one.startswith(bench.sent(BROKER))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_traffic_never_raises(data: st.DataObject) -> None:
    bench = kit.Bench()
    damaged_in, damaged_out = bytearray(TRAFFIC_IN), bytearray(TRAFFIC_OUT)
    for target in (damaged_in, damaged_out):
        for _ in range(data.draw(st.integers(0, 4))):
            target[data.draw(st.integers(0, len(target) - 1))] = data.draw(st.integers(0, 255))
    bench.exchange(bytes(damaged_in), bytes(damaged_out))


@pytest.mark.parametrize(
    ("start", "word", "kept"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "--tls", 11),
        (b"GET /?token=1 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP", 4),
        (b"SSH-2.0-OpenSSH_9.0\r\n", "SSH", 16),
    ],
)
def test_another_protocol_gets_a_sentence_and_a_closed_door(
    start: bytes, word: str, kept: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The recording gets what tells the protocol, and nothing that may be secret."""
    bench = kit.Bench()
    tape = kit.Tape(bench)
    bench.feed(CLIENT, start)
    assert bench.others() == [End(CLIENT, "fin"), End(BROKER, "fin")]
    assert bench.sent(BROKER) == b""
    assert word in caplog.text
    assert "its connection is closed" in caplog.text
    assert len(caplog.records) == 1
    assert tape.of(0, CLIENT) == start[:kept]


def test_two_gigabytes_announced_are_passed_on_without_a_buffer() -> None:
    bench = kit.Bench()
    bench.feed(CLIENT, b"\x7f\xff\xff\xff" + bytes(1000))
    assert bench.sent(BROKER) == b"\x7f\xff\xff\xff" + bytes(1000)
    assert bench.context.opaque


def test_a_token_without_answer_does_not_hide_the_metadata_behind_it() -> None:
    bench = kit.Bench()
    bench.exchange(
        kit.request(17, 0, {"mechanism": "GSSAPI"}) + framed(b"\x60token"), kit.response(17, 0)
    )
    bench.exchange(
        kit.request(kit.METADATA, 1, correlation_id=9),
        kit.response(kit.METADATA, 1, {"brokers": [kit.endpoint()]}, correlation_id=9),
    )
    assert b"10.9.8.7" not in bench.sent(CLIENT)


def test_a_delayed_response_still_gets_our_addresses() -> None:
    bench = kit.Bench(kit.Always(BROKER, Delay(5), look="head"))
    bench.exchange(
        kit.request(kit.METADATA, 12), kit.response(kit.METADATA, 12, {"brokers": [kit.endpoint()]})
    )
    bench.wake()
    assert bench.sent(CLIENT)
    assert b"10.9.8.7" not in bench.sent(CLIENT)


def test_a_throttled_frame_goes_in_slices() -> None:
    bench = kit.Bench(kit.Always(CLIENT, Throttle(1000.0), look="head"))
    data = kit.produce(size=500)
    bench.feed(CLIENT, data)
    turns = 0
    while bench.sent(BROKER) != data:
        bench.wake()
        turns += 1
    waited_ns = sum(a.delay_ns for a in bench.others() if isinstance(a, WakeUp))
    assert turns >= 5
    assert waited_ns == pytest.approx(len(data) / 1000 * 1e9, rel=0.2)


def test_a_rule_that_fails_lets_the_frame_pass(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(kit.Always):
        def judge(self, frame: Any) -> Any:
            raise RuntimeError("oops")

    bench = kit.Bench(Broken(CLIENT))
    data = kit.beat()
    bench.feed(CLIENT, data)
    assert bench.sent(BROKER) == data
    assert "oops" in caplog.text


def test_however_much_was_said_what_is_new_is_said() -> None:
    hub = kit.Bench().hub
    for number in range(LIMITS.notices_once + 5):
        hub.once(f"connection {number}", "one of many")
    hub.once("listener", "something else")
    hub.once("listener", "something else")
    assert hub.notice_count == LIMITS.notices_once + 6
    assert [text for _, text in hub.notices][-2:] == ["one of many", "something else"]


# --- two ways to the end of a response, whole or in pieces, lead to the same place ----------------


PROGRAMS: list[Program] = [
    steps
    for key in sorted(ENDPOINTS.keys() - WHOLE)
    for version in range(APIS[key].versions.low, APIS[key].versions.high + 1)
    if (steps := walk_of(key, version))
]
FETCHED = [
    kit.fetched(18, ends, records=size)[4:] for ends in ([], [kit.endpoint(1)]) for size in (9, 999)
]


def whole(steps: Program, payload: bytes) -> int | str | None:
    try:
        return Walk(steps).feed(payload)
    except Unwalkable as error:
        return str(error)


def at_once(steps: Program, payload: bytes) -> int | str | None:
    try:
        tail = tail_of(steps, payload)
    except IndexError:
        return None
    except Unwalkable as error:
        return str(error)
    return tail if tail <= len(payload) else None


def in_pieces(steps: Program, payload: bytes, sizes: list[int]) -> int | str | None:
    walk, at, turn = Walk(steps), 0, 0
    while at < len(payload):
        piece = payload[at : at + sizes[turn % len(sizes)]]
        turn += 1
        if not walk.skip(len(piece)):
            try:
                found = walk.feed(piece)
            except Unwalkable as error:
                return str(error)
            if found is not None:
                return at + found
        at += len(piece)
    return None


@given(
    st.sampled_from(PROGRAMS),
    st.one_of(
        st.binary(max_size=80),
        st.lists(st.sampled_from([0, 1, 2, 3, 0x80, 0xFF]), max_size=120).map(bytes),
    ),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
)
def test_any_bytes(steps: Program, payload: bytes, sizes: list[int]) -> None:
    tail = whole(steps, payload)
    assert at_once(steps, payload) == tail
    found = in_pieces(steps, payload, sizes)
    # In pieces the end is seen with the first byte behind it.
    assert found == tail or (found is None and tail == len(payload))


@given(st.sampled_from(FETCHED), st.lists(st.integers(1, 500), min_size=1, max_size=5), st.data())
def test_responses_and_their_beginnings(
    payload: bytes, sizes: list[int], data: st.DataObject
) -> None:
    steps = walk_of(1, 18)
    assert steps
    tail = whole(steps, payload)
    assert isinstance(tail, int)
    assert tail < len(payload)
    assert at_once(steps, payload) == tail == in_pieces(steps, payload, sizes)
    short = payload[: data.draw(st.integers(0, tail - 1))]
    assert at_once(steps, short) is None
    assert in_pieces(steps, short, sizes) is None
