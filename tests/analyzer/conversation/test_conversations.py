"""What is Kafka, who is the client, and that nothing on any connection stops the rest."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.conversation.detect import GIVEN_UP
from kafkascope.analyzer.conversation.limits import LIMITS, ConversationLimits
from kafkascope.analyzer.exchanges.pairs import exchange_of
from kafkascope.analyzer.model import Exchange
from kafkascope.captures.model import Endpoint, StreamEvent
from tests.kit.wire import (
    CONVERSATION,
    Wire,
    beat,
    framed,
    heartbeat,
    partition,
    produce,
    request,
    response,
    told,
)

SSH = b"SSH-2.0-OpenSSH_9.6\r\n"
TLS = b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(range(150))
ZOOKEEPER = framed(bytes(4) + bytes(8) + b"\0\0\x46\x50" + bytes(8) + b"\0\0\0\x10" + bytes(17))


def test_kafka_is_known_by_content_on_any_port() -> None:
    found = told(Wire(port=31337).client(heartbeat(1)).broker(beat(1)).events)
    assert [e.state for e in found] == ["answered"]
    assert str(found[0].broker) == "10.0.1.2:31337"


@pytest.mark.parametrize("first", [SSH, TLS, b"GET / HTTP/1.1\r\n\r\n", bytes(100)])
def test_other_protocols_are_counted_and_not_listed(first: bytes) -> None:
    context = Context()
    wire = Wire(port=22).client(first).broker(first).client(first).close()
    assert told(wire.events, context) == []
    assert sum(context.opaque.values()) == 1


def test_zookeeper_is_known_by_its_handshake_on_any_port() -> None:
    context = Context()
    answer = framed(bytes(4) + b"\0\0\x46\x50" + b"\1" * 8 + b"\0\0\0\x10" + bytes(17))
    wire = Wire(port=22).client(ZOOKEEPER).broker(answer)
    wire.client(framed(b"\0\0\0\1\0\0\0\x03\0\0\0\2/x\0"))
    found = told(wire.broker(framed(b"\0\0\0\1" + bytes(8) + b"\xff\xff\xff\x9b")).events, context)
    assert [each.api for each in found] == ["zk.connect", "zk.exists"]
    assert {each.state for each in found} == {"answered"}
    assert [each.zookeeper and each.zookeeper.path for each in found] == [None, "/x"]
    assert found[1].zookeeper.session_id == "0x101010101010101"
    assert not context.opaque


PING = framed(b"\xff\xff\xff\xfe\0\0\0\x0b")
GET_DATA = framed(b"\0\0\1\7\0\0\0\x04\0\0\0\x0c/brokers/ids\1")


@pytest.mark.parametrize("asked", [PING, GET_DATA], ids=["ping", "getData"])
def test_zookeeper_is_known_in_the_middle_of_a_stream_by_what_only_it_has(asked: bytes) -> None:
    wire = Wire(port=22, handshake=False)
    answer = framed(asked[4:8] + bytes(7) + b"\x21" + b"\xff\xff\xff\x9b")
    found = told(wire.client(asked).broker(answer).events)
    assert [each.state for each in found] == ["answered"]
    assert found[0].zookeeper.session is None


def test_a_session_that_is_refused_says_so() -> None:
    refused = framed(bytes(4) + bytes(4) + bytes(8) + b"\0\0\0\x10" + bytes(17))
    (found,) = told(Wire(port=2181).client(ZOOKEEPER).broker(refused).events)
    assert [note.text for note in found.notes] == ["session refused: expired, or wrong password"]


def test_endless_nonsense_is_counted_in_bounded_memory() -> None:
    context = Context()
    count = LIMITS.protocols + 10
    for number in range(count):
        wire = Wire(number=number).client(((1 << 30) + number).to_bytes(4, "big") + bytes(20))
        told(wire.close().events, context)
    assert len(context.opaque) <= LIMITS.protocols + 1
    assert sum(context.opaque.values()) == count


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (TLS, "TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\xff\xff\xff\xff" + bytes(20), "not a Kafka request: frame size -1"),
        (bytes(4), "not a Kafka request: empty frame"),
        (b"\0\0\0\x0f\0\x12", "not a Kafka request: unknown protocol"),
    ],
)
def test_where_kafka_was_expected_one_row_says_what_it_was(first: bytes, reason: str) -> None:
    (one,) = told(Wire().client(first).broker(b"x").client(first).close().events)
    assert one.state == "opaque"
    assert one.reason.startswith(reason)
    assert one.undecoded[0].reason == "opaque"


def test_decode_as_makes_a_port_kafkas() -> None:
    wire = Wire(port=31337).client(TLS).close()
    assert [e.state for e in told(wire.events, Context([31337]))] == ["opaque"]


def test_a_server_that_speaks_first_is_no_broker() -> None:
    assert told(Wire(port=31337).broker(heartbeat(1)).client(heartbeat(1)).close().events) == []


@pytest.mark.parametrize("port", [9092, 31337])
@pytest.mark.parametrize("client_first", [True, False])
def test_without_a_handshake_the_content_tells_the_client(port: int, client_first: bool) -> None:
    wire = Wire(handshake=False, port=port, client_first=client_first)
    if not client_first:
        wire.broker(beat(6))
    wire.client(heartbeat(7)).broker(beat(7)).client(heartbeat(8)).broker(beat(8))
    found = told(wire.events)
    assert [e.correlation_id for e in found if e.state == "answered"] == [7, 8]
    assert {str(e.client) for e in found} == {"10.0.0.4:51422"}


def test_a_capture_that_starts_inside_a_message() -> None:
    long = produce(6, records=bytes(3000))
    wire = Wire(handshake=False, port=31337).gap("client", None, "midstream")
    wire.gap("broker", None, "midstream").client(long[1500:]).broker(response("Produce", 7, 6))
    wire.client(heartbeat(7)).broker(beat(7)).client(heartbeat(8)).broker(beat(8))
    found = told(wire.events)
    assert [e.correlation_id for e in found if e.state == "answered"] == [7, 8]


def test_one_direction_alone_gives_orphans() -> None:
    wire = Wire(handshake=False)
    for number in range(4, 9):
        wire.broker(beat(number))
    found = told(wire.events)
    assert [(e.state, e.correlation_id) for e in found] == [("orphan", n) for n in range(4, 9)]


def test_requests_alone_are_open() -> None:
    wire = Wire(handshake=False).client(heartbeat(1)).client(heartbeat(2))
    assert [e.state for e in told(wire.events)] == ["open", "open"]


def test_topic_names_are_shared_by_all_connections() -> None:
    topic_id = bytes(range(16))
    topics = [{"name": "orders", "topic_id": topic_id}]
    context = Context()
    wire = Wire().client(request("Metadata", 12, 1))
    told(wire.broker(response("Metadata", 12, 1, topics=topics)).events, context)
    assert context.names.get(topic_id) == "orders"


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=300)), max_size=12), st.booleans())
def test_garbage_gives_events_and_never_an_exception(
    parts: list[tuple[bool, bytes]], handshake: bool
) -> None:
    wire = Wire(handshake=handshake)
    for of_client, data in parts:
        if data:
            (wire.client if of_client else wire.broker)(data)
    told(wire.close().events)


EVENTS = CONVERSATION[1:-2]


@given(st.integers(0, 10**9), st.booleans())
def test_damage_anywhere_costs_only_what_it_hits(seed: int, handshake: bool) -> None:
    """Flip, cut and lose bytes of a real conversation: exchanges come out, origins stay unique."""
    rng = random.Random(seed)
    wire = Wire(handshake=handshake)
    for event in EVENTS:
        _damaged(rng, wire, event)
    found = told(wire.close().events)
    assert len({e.origin for e in found}) == len(found)
    states = {"answered", "no-reply", "open", "lost", "orphan", "opaque"}
    assert {e.state for e in found} <= states


def _damaged(rng: random.Random, wire: Wire, event: StreamEvent) -> None:
    data = getattr(event, "data", b"")
    direction = getattr(event, "direction", 0)
    side = "client" if direction == 0 else "broker"
    what = rng.randrange(8)
    if what == 0:
        wire.gap(side, len(data))
        return
    if what == 1:
        keep = rng.randrange(len(data) + 1)
        if keep:
            wire._send(direction, data[:keep])
        wire.gap(side, len(data) - keep or None)
        return
    if what == 2:
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        data = bytes(flipped)
    wire._send(direction, data)


def by_turns(wires: list[Wire]) -> list[StreamEvent]:
    """Events of all connections, one of each after the other."""
    return [event for turn in zip(*(wire.events for wire in wires), strict=True) for event in turn]


def most_held(events: list[StreamEvent], context: Context) -> tuple[int, list[Exchange]]:
    """The most memory that connections held by their own count, and the exchanges."""
    conversations = Conversations(context)
    most, out = 0, []
    for event in events:
        out += map(exchange_of, conversations.feed(event))
        most = max(most, conversations.held)
    return most, [*out, *map(exchange_of, conversations.finish())]


@pytest.mark.parametrize("size", [1, 1000])
def test_what_undecided_connections_hold_is_limited_in_all(size: int) -> None:
    wires = [Wire(number=n, handshake=False, port=31337) for n in range(100)]
    for wire in wires:
        for _ in range(40):
            wire.client(bytes([255]) * size)
    unlimited, _ = most_held(by_turns(wires), Context())
    assert unlimited > 1_000_000
    small = ConversationLimits(waiting_bytes=400_000)
    context = Context(limits=small)
    most, found = most_held(by_turns(wires), context)
    assert most <= 400_000 * 5 / 4 + 2 * (size + 400)
    assert found == []
    assert 0 < context.opaque[GIVEN_UP] <= 100
    assert sum(context.opaque.values()) == 100


def test_a_broker_is_not_given_up_with_them() -> None:
    small = ConversationLimits(waiting_bytes=40_000)
    kafka = Wire(number=500, port=9092)
    kafka.client(heartbeat(1)[:6])  # silent for longest, and not known to be Kafka by then
    others = [Wire(number=n, handshake=False, port=31337) for n in range(10)]
    for wire in others:
        for _ in range(40):
            wire.client(b"\xff" * 50)
    late = Wire(number=500, port=9092)
    late.connection, late.offsets = kafka.connection, kafka.offsets
    late.client(heartbeat(1)[6:]).broker(beat(1))
    context = Context(limits=small)
    _, found = most_held([*kafka.events, *by_turns(others), *late.events[1:]], context)
    assert context.opaque[GIVEN_UP] > 0
    assert [each.state for each in found] == ["answered"]


def test_frames_that_are_not_whole_are_limited_in_all() -> None:
    wires = [Wire(number=n) for n in range(20)]
    for number, wire in enumerate(wires):
        whole = produce(number, records=bytes(100_000))
        for at in range(0, len(whole), 10_000):
            wire.client(whole[at : at + 10_000])
        wire.broker(response("Produce", 7, number))
    unlimited, found = most_held(by_turns(wires), Context())
    assert unlimited > 1_000_000
    assert {each.state for each in found} == {"answered"}
    assert not any(each.undecoded for each in found)
    small = ConversationLimits(waiting_bytes=400_000)
    most, found = most_held(by_turns(wires), Context(limits=small))
    assert most <= 400_000 * 5 / 4 + 20_000
    assert [each.state for each in found] == ["answered"] * 20
    assert {u.reason for each in found for u in each.undecoded} == {"too-large"}


def test_partitions_of_sessions_and_log_ends_are_limited_in_all() -> None:
    """They are of connections that go on: what they know is forgotten, nothing of what they say."""
    asked = [{"topic": "t", "partitions": [{"partition": index} for index in range(200)]}]
    given = [{"topic": "t", "partitions": [partition(index) for index in range(200)]}]
    wires = [Wire(number=n) for n in range(20)]
    for wire in wires:
        wire.client(request("Fetch", 11, 1, session_id=0, session_epoch=0, topics=asked))
        wire.broker(response("Fetch", 11, 1, session_id=7, responses=given))
    events = [event for wire in wires for event in wire.events]
    for wire in wires:
        before = len(wire.events)
        wire.client(request("Fetch", 11, 2, session_id=7, session_epoch=1))
        wire.broker(response("Fetch", 11, 2, session_id=7))
        events += wire.events[before:]
    unlimited, found = most_held(events, Context())
    assert unlimited > 20 * 200 * 500
    sessions = [each.fetch_session for each in found[20:]]
    assert [each and each.implied and each.implied.size for each in sessions] == [200] * 20
    small = ConversationLimits(waiting_bytes=400_000)
    most, found = most_held(events, Context(limits=small))
    assert most <= 400_000 * 5 / 4 + 200_000
    assert [each.state for each in found] == ["answered"] * 40
    sessions = [each.fetch_session for each in found[20:]]
    known = [each is not None and each.implied is not None for each in sessions]
    assert 0 < known.count(True) < 20, known


def test_brokers_that_are_remembered_have_a_limit() -> None:
    context = Context(limits=ConversationLimits(endpoints=3))
    for port in range(31_000, 31_010):
        context.brokers.add(Endpoint("10.0.0.1", port))
    assert len(context.brokers) == 3
    assert context.is_broker(Endpoint("10.0.0.1", 31_002))
    assert not context.is_broker(Endpoint("10.0.0.1", 31_003))


def test_many_reasons_do_not_hide_that_connections_were_given_up() -> None:
    context = Context()
    connection = Wire().connection
    for number in range(LIMITS.protocols + 10):
        context.not_kafka(f"reason {number}", connection)
    context.not_kafka(GIVEN_UP, connection)
    assert context.opaque[GIVEN_UP] == 1
