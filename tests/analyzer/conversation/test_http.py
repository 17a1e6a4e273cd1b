"""HTTP of a capture: any chunking gives the same exchanges, nothing on the wire stops anything."""

import gzip
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.conversation.http import messages as http_messages
from kafkascope.analyzer.conversation.http.messages import Messages, without_credentials
from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.model import HttpExchange
from kafkascope.captures.inputs.keylogs import read_key_logs
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Chunk, Opened, StreamEvent
from kafkascope.captures.streams.streams import streams
from kafkascope.captures.tls.sources import KeySources
from kafkascope.schemas.http_head import HttpHead
from tests.explosion.turns import write_capture
from tests.kit.run import run
from tests.kit.samples import TLS
from tests.kit.wire import Wire, rechunked


class Consumer:
    def __init__(self) -> None:
        self.found: list[HttpExchange] = []

    def wants(self, request: HttpHead) -> bool:
        return not request.target.startswith("/unwanted")

    def take(self, exchange: HttpExchange) -> None:
        self.found.append(exchange)


def consumed() -> tuple[Conversations, Context, Consumer]:
    context, consumer = Context(), Consumer()
    context.http = consumer
    return Conversations(context), context, consumer


def heard(events: Sequence[StreamEvent]) -> list[HttpExchange]:
    conversations, _, consumer = consumed()
    for event in events:
        conversations.feed(event)
    conversations.finish()
    return consumer.found


def told(events: Sequence[StreamEvent]) -> list[tuple[str, bytes, int, bytes, str]]:
    return [
        (e.request.target, e.request_body, e.response.status, e.response_body, e.dropped)
        for e in heard(events)
    ]


def get(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: registry\r\n\r\n".encode()


def post(path: str, body: bytes) -> bytes:
    return b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (path.encode(), len(body), body)


def answer(body: bytes, status: int = 200, *headers: bytes) -> bytes:
    lines = b"".join(line + b"\r\n" for line in headers)
    size = b"Content-Length: %d\r\n" % len(body)
    return b"HTTP/1.1 %d OK\r\n%b%b\r\n%b" % (status, size, lines, body)


def chunked(*parts: bytes, trailer: bytes = b"") -> bytes:
    body = b"".join(b"%X;a=b\r\n%b\r\n" % (len(part), part) for part in parts)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + body + b"0\r\n" + trailer + b"\r\n"


def everything() -> Wire:
    """A connection with all that servers do to delimit bodies."""
    wire = Wire(port=8081)
    wire.client(get("/a")).broker(answer(b"one"))
    wire.client(post("/b", b"sent")).broker(chunked(b"two", b"parts", trailer=b"X: y\r\n"))
    wire.client(get("/c"), get("/d"), post("/e", b"x")).broker(answer(b"c"), answer(b"d"))
    wire.broker(b"HTTP/1.1 100 Continue\r\n\r\n", answer(b"e"))
    wire.client(get("/f", "HEAD")).broker(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
    wire.client(get("/g")).broker(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 900\r\n\r\n")
    wire.client(get("/unwanted/h")).broker(answer(b"nobody asked"))
    zipped = answer(gzip.compress(b"packed" * 99), 200, b"content-encoding: GZIP")
    wire.client(get("/i")).broker(zipped)
    bare = zlib.compressobj(wbits=-15)
    deflated = bare.compress(b"bare") + bare.flush()
    wire.client(get("/j")).broker(answer(deflated, 404, b"Content-Encoding: deflate"))
    wire.client(b"\r\n", get("/k")).broker(b"HTTP/1.0 200 OK\r\n\r\nuntil the ", b"end")
    return wire.close("broker").close("client")


TOLD = [
    ("/a", b"", 200, b"one", ""),
    ("/b", b"sent", 200, b"twoparts", ""),
    ("/c", b"", 200, b"c", ""),
    ("/d", b"", 200, b"d", ""),
    ("/e", b"x", 200, b"e", ""),
    ("/f", b"", 200, b"", ""),
    ("/g", b"", 304, b"", ""),
    ("/i", b"", 200, b"packed" * 99, ""),
    ("/j", b"", 404, b"bare", ""),
    ("/k", b"", 200, b"until the end", ""),
]


def test_bodies_are_delimited_in_all_ways() -> None:
    assert told(everything().events) == TOLD
    ends = {(str(e.client), str(e.server)) for e in heard(everything().events)}
    assert ends == {("10.0.0.4:51422", "10.0.1.2:8081")}


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40))
def test_any_chunking_gives_the_same_exchanges(cuts: list[int]) -> None:
    assert told(rechunked(everything().events, cuts)) == TOLD


@given(st.data())
def test_packets_that_come_as_one_chunk_give_the_same_exchanges(data: st.DataObject) -> None:
    joined: list[StreamEvent] = []
    for event in everything().events:
        last = joined[-1] if joined else None
        if (
            isinstance(event, Chunk)
            and isinstance(last, Chunk)
            and last.direction == event.direction
            and data.draw(st.booleans())
        ):
            pieces = [*last.pieces, event.pieces[0]._replace(start=len(last.data))]
            joined[-1] = replace(last, data=last.data + event.data, pieces=pieces)
        else:
            joined.append(event)
    assert told(joined) == TOLD


def test_without_a_consumer_nothing_is_kept() -> None:
    context = Context()
    conversations = Conversations(context)
    for event in everything().events[:-2]:
        assert conversations.feed(event) == []
    assert conversations.held == 0
    assert dict(context.opaque) == {"HTTP, not Kafka": 1}


def test_with_a_consumer_the_connection_is_counted_as_before() -> None:
    conversations, context, _ = consumed()
    for event in everything().events:
        assert conversations.feed(event) == []
    assert dict(context.opaque) == {"HTTP, not Kafka": 1}


def test_state_that_goes_to_another_process_is_without_http() -> None:
    conversations, _, _ = consumed()
    events = everything().events
    for event in events[:6]:
        conversations.feed(event)
    again = Conversations(Context()).load(conversations.dump())
    for event in events[6:]:
        assert again.feed(event) == []


def test_a_connection_from_its_middle_on() -> None:
    wire = Wire(port=8081, handshake=False)
    wire.broker(b'..."} rest of a body').client(get("/a")).broker(answer(b"a"))
    wire.client(get("/b")).broker(answer(b"b")).close()
    assert [each[0] for each in told(wire.events)] == ["/a", "/b"]


def test_from_the_middle_of_an_exchange_the_first_answer_is_nobodys() -> None:
    wire = Wire(port=8081, handshake=False, client_first=False)
    wire.broker(answer(b"not to /a")).client(get("/a")).broker(answer(b"a")).close()
    assert told(wire.events) == [("/a", b"", 200, b"a", "")]


@pytest.mark.parametrize("side", ["client", "broker"])
def test_behind_a_hole_answers_go_to_their_own_requests_or_to_none(side: str) -> None:
    wire = Wire(port=8081).client(get("/a")).broker(answer(b"a"))
    wire.client(get("/b"))
    wire.gap(side, 100)
    if side == "broker":
        wire.client(get("/c")).broker(answer(b"c"))
    else:
        wire.broker(answer(b"b"), answer(b"lost")).client(get("/c")).broker(answer(b"c"))
    wire.client(get("/d")).broker(answer(b"d")).close()
    found = told(wire.events)
    pairs = {(path, body) for path, _, _, body, _ in found}
    assert {("/d", b"d")} <= pairs <= {(f"/{name}", name.encode()) for name in "abcd"}


def test_a_hole_inside_a_body_with_a_size_costs_that_body_only() -> None:
    body = bytes(1000)
    wire = Wire(port=8081).client(get("/a")).broker(answer(body)[:-600]).gap("broker", 500)
    wire.broker(bytes(100)).client(get("/b")).broker(answer(b"b")).close()
    assert told(wire.events) == [
        ("/a", b"", 200, b"", http_messages.IN_A_GAP),
        ("/b", b"", 200, b"b", ""),
    ]


def test_an_answer_that_came_before_its_request_does_not_move_the_others() -> None:
    wire = Wire(port=8081).client(get("/a")).broker(answer(b"a"), answer(b"b"))
    wire.client(get("/b")).client(get("/c")).broker(answer(b"c")).close()
    assert [(each[0], each[3]) for each in told(wire.events)] == [("/a", b"a"), ("/c", b"c")]


def test_an_upgraded_connection_speaks_http_no_more() -> None:
    wire = Wire(port=8081).client(get("/ws")).broker(b"HTTP/1.1 101 Switching\r\n\r\n")
    wire.client(get("/a")).broker(answer(b"a")).close()
    assert told(wire.events) == []


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nContent-Length: 7",
        b"Content-Length: -5",
        b"Content-Length: " + b"9" * 40,
        b"Content-Length: five",
        b"Transfer-Encoding: chunked\r\n\r\nZZ",
        b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 5000,
        b"X: " + b"y" * (LIMITS.http_head_bytes + 1),
    ],
)
def test_what_is_wrong_with_one_answer_does_not_cost_the_next(head: bytes) -> None:
    wire = Wire(port=8081).client(get("/a")).broker(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n\n")
    wire.client(get("/b")).broker(answer(b"b")).client(get("/c")).broker(answer(b"c")).close()
    assert ("/c", b"", 200, b"c", "") in told(wire.events)


def test_bodies_beyond_the_limit_are_dropped_with_a_reason() -> None:
    bomb = gzip.compress(bytes(LIMITS.http_body_bytes + 1))
    wire = Wire(port=8081).client(get("/a")).broker(answer(bomb, 200, b"Content-Encoding: gzip"))
    size = LIMITS.http_body_bytes + 1
    wire.client(get("/b")).broker(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
    for _ in range(17):
        wire.broker(bytes(1 << 20) if _ < 16 else b"!")
    wire.client(get("/c")).broker(answer(b"?", 200, b"Content-Encoding: br"))
    wire.client(get("/d")).broker(answer(b"?", 200, b"Content-Encoding: gzip"))
    wire.client(get("/e")).broker(answer(b"e")).close()
    found = told(wire.events)
    assert [each[0] for each in found] == ["/a", "/b", "/c", "/d", "/e"]
    assert all(not body and why for _, _, _, body, why in found[:4])
    assert found[-1] == ("/e", b"", 200, b"e", "")


def test_memory_is_bounded_and_given_back() -> None:
    conversations, _, _ = consumed()
    wire = Wire(port=8081)
    for event in wire.events:
        conversations.feed(event)
    for number in range(400):
        for event in wire.client(post(f"/{number}", bytes(1 << 20))).events[-1:]:
            conversations.feed(event)
        wire.events.clear()
        assert conversations.held < 64 << 20
    assert isinstance(wire.connection.number, int)


def test_time_is_linear_in_what_comes_byte_by_byte() -> None:
    found: list[HttpHead] = []

    def began(head: HttpHead) -> bool:
        found.append(head)
        return True

    def ignored(*_: object) -> None:
        pass

    stream = Messages(requests=True, began=began, done=ignored, lost=ignored, hunting=True)
    junk = b"HTTP/1.HTTP/1." * 10_000
    for at in range(len(junk)):
        stream.feed(junk[at : at + 1])
    assert stream.held <= LIMITS.http_line_bytes
    stream.feed(b"\n" + get("/a"))
    assert [head.target for head in found] == ["/a"]


HEADS = [get("/a"), post("/b", b"xy"), answer(b"1"), chunked(b"ab"), b"HTTP/1.1 200"]
PARTS = st.binary(max_size=60) | st.sampled_from(HEADS) | st.integers(0, 90)


@given(st.lists(st.tuples(st.booleans(), PARTS), max_size=20), st.booleans())
def test_garbage_gives_exchanges_or_nothing(
    parts: list[tuple[bool, bytes | int]], handshake: bool
) -> None:
    wire = Wire(port=8081, handshake=handshake).client(get("/start"))
    for client, part in parts:
        if isinstance(part, int):
            wire.gap("client" if client else "broker", part or None)
        elif part:
            (wire.client if client else wire.broker)(part)
    for each in heard(wire.close().events):
        assert each.request.target
        assert 100 <= each.response.status < 1000
    assert isinstance(wire.events[0], Opened)


def encrypted(consumer: Consumer | None) -> dict[str, int]:
    """Read a real HTTPS capture with its key log; return what connections were counted as."""
    name = TLS / "tls13-https"
    with open_capture([f"{name}.pcap.gz"], keylog=[f"{name}.keys"]) as opened:
        opened.context.http = consumer
        assert list(opened.exchanges()) == []
        return dict(opened.context.opaque)


def test_http_inside_tls_that_is_decrypted() -> None:
    consumer = Consumer()
    assert encrypted(consumer) == encrypted(None) == {"HTTP inside TLS": 2}
    found = [(e.request.target, e.response.status, e.response_body) for e in consumer.found]
    assert found == [("/", 200, b"hello\n")] * 2
    assert [str(e.server) for e in consumer.found] == ["127.0.0.1:44475"] * 2


def test_state_of_http_inside_tls_is_not_kept() -> None:
    name = TLS / "tls13-https"
    conversations, context, _ = consumed()
    context.keys = KeySources(read_key_logs([f"{name}.keys"]))
    with open_inputs([f"{name}.pcap.gz"]) as source:
        events = list(streams(source))
    for at, event in enumerate(events):
        conversations.feed(event)
        if at % 7 == 0:
            other = Context()
            other.keys = context.keys
            Conversations(other).load(conversations.dump())


@pytest.mark.parametrize(
    ("first", "shown"),
    [
        (b"GET / HTTP/1.1\r\nAuth: Basic c2VjcmV0", b"GET / HTTP/1.1\r\n***** ***** ********"),
        (b"GET http://me:hunter2@h/ HTTP/1.1\r\n", b"GET ******************** HTTP/1.1\r\n"),
        (b"POST /ids/1?token=secret HTTP/1.1", b"POST /ids/1************* HTTP/1.1"),
        (b"GET /ids?key=1\nX-Api-Key: secret", b"GET /ids******\n********** ******"),
        (b"HTTP/1.1 200 OK\r\nSet-Cookie: s=secret", b"HTTP/1.1 200 OK\r\n*********** ********"),
        (b"\0\0\0\x10GET / HTTP/1.1\r\n", b"\0\0\0\x10GET / HTTP/1.1\r\n"),
        (b"", b""),
    ],
)  # fmt: skip
def test_first_bytes_hold_no_credentials(first: bytes, shown: bytes) -> None:
    assert without_credentials(first) == shown
    assert len(shown) == len(first)


def test_show_masks_credentials_of_http_on_a_port_of_kafka(tmp_path: Path) -> None:
    # `show` printed the first 64 bytes as they are.
    path = tmp_path / "a.pcapng"
    secret = b"Authorization: Basic dXNlcjpodW50ZXIy"
    write_capture(path, iter([[(0, b"GET / HTTP/1.1\r\n" + secret + b"\r\n\r\n")]]))
    result = run("show", path, "1", "--hex")
    assert "GET / HTTP/1.1.." in result.output
    assert "asic" not in result.output
    assert "dXNl" not in result.output
