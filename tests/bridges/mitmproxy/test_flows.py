"""What the parts of a TCP flow say, without mitmproxy."""

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.bridges.mitmproxy import flows
from kafkascope.bridges.mitmproxy.brokers import MOST_NODES, ListenerPlan, free_port
from kafkascope.bridges.mitmproxy.flows import KafkaFlow
from kafkascope.bridges.mitmproxy.views import HELD, KafkaView
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Chunk, Endpoint
from kafkascope.captures.streams.streams import streams
from tests.kit.samples import SAMPLES
from tests.kit.wire import beat, heartbeat, produce, request

CLIENT, BROKER = Endpoint("10.0.0.1", 50000), Endpoint("10.0.0.2", 9092)


@dataclass
class Made:
    """A part of a flow."""

    from_client: bool
    content: bytes
    timestamp: float = 1_700_000_000.5


def ask(data: bytes) -> Made:
    return Made(True, data)


def tell(data: bytes) -> Made:
    return Made(False, data)


def text(flow: KafkaFlow, part: int) -> str:
    return "\n".join(flow.lines(part))


def test_parts_show_the_messages_that_end_in_them() -> None:
    parts = [ask(heartbeat(1)[:10]), ask(heartbeat(1)[10:] + heartbeat(2)), tell(beat(1))]
    flow = KafkaFlow(CLIENT, BROKER)
    assert flow.take(parts[:2]) == []
    assert not flow.has(0)
    assert text(flow, 1).count("HeartbeatRequest v3") == 2
    assert "so far" in text(flow, 1)
    (pair,) = flow.take(parts)
    assert (pair.request_at, pair.response_at) == (1, 2)
    assert "HeartbeatResponse v3" in text(flow, 2)
    assert "answered: ok" in text(flow, 1)
    assert text(flow, 1).count("so far") == 1
    assert "HeartbeatRequest" not in text(flow, 2)
    assert pair.to_json()["tcp_messages"] == [1, 2]
    assert pair.to_json()["api"] == "Heartbeat"
    assert pair.line == "Heartbeat v3 app > 10.0.0.2:9092 0 µs ok g"


def test_what_gets_no_answer_and_what_was_not_asked() -> None:
    flow = KafkaFlow(CLIENT, BROKER)
    (silent,) = flow.take([ask(produce(1, acks=0)), ask(heartbeat(2)), tell(beat(9))])
    assert silent.row.state == "no-reply"
    assert "its request was not seen" in text(flow, 2)
    assert sorted(each.row.state for each in flow.close(2)) == ["open", "orphan"]


def test_secrets_are_masked() -> None:
    login = request("SaslAuthenticate", 2, 1, auth_bytes=b"\0alice\0secret")
    flow = KafkaFlow(CLIENT, BROKER)
    flow.take([ask(login)])
    assert "SaslAuthenticateRequest" in text(flow, 0)
    assert "secret" not in text(flow, 0).replace("secret, not shown", "")


def test_other_protocols_say_nothing() -> None:
    flow = KafkaFlow(CLIENT, BROKER._replace(port=80))
    flow.take([ask(b"GET / HTTP/1.1\r\n\r\n"), tell(b"HTTP/1.1 200 OK\r\n\r\n")])
    assert not flow.is_kafka
    assert list(flow.pairs) == []


@pytest.mark.parametrize("name", ["libraries.pcap", "sasl-old.pcap"])
def test_a_sample_has_its_exchanges(name: str) -> None:
    parts: dict[int, list[Made]] = {}
    ends: dict[int, tuple[Endpoint, Endpoint]] = {}
    with open_inputs([SAMPLES / name]) as source:
        for event in streams(source):
            if isinstance(event, Chunk):
                number = event.connection.number
                ends[number] = event.connection.a, event.connection.b
                made = Made(event.direction == 0, event.data, event.pieces[0].time_ns / 1e9)
                parts.setdefault(number, []).append(made)
    told = []
    for number, given in parts.items():
        flow = KafkaFlow(*ends[number])
        told += [*flow.take(given), *flow.close(0)]
        for at in range(len(given)):
            assert flow.has(at) == bool(text(flow, at))
    with open_capture([SAMPLES / name]) as capture:
        rows = [row_of(each, capture.context.names) for each in capture.exchanges()]
    key = [(row.api, row.api_version, row.correlation_id, row.client_address) for row in rows]
    assert sorted(map(str, key)) == sorted(
        str((p.row.api, p.row.api_version, p.row.correlation_id, p.row.client_address))
        for p in told
    )


def test_old_messages_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "KEPT_BYTES", 200)
    flow = KafkaFlow(CLIENT, BROKER)
    flow.take([ask(heartbeat(number)) for number in range(20)])
    assert not flow.has(0)
    assert flow.has(19)


def known_view(flow: Any, found: KafkaFlow) -> KafkaView:
    found.take(flow.messages)
    return KafkaView(lambda asked: found if asked is flow else None)


def test_both_interfaces_of_content_views() -> None:
    flow = SimpleNamespace(messages=[ask(heartbeat(1)[:9]), ask(heartbeat(1)[9:])])
    view = known_view(flow, KafkaFlow(CLIENT, BROKER))
    first, second = flow.messages
    old = {"flow": flow, "tcp_message": second}
    title, lines = view(second.content, **old)
    new = SimpleNamespace(flow=flow, tcp_message=second)
    assert title == "Kafka"
    assert "\n".join(line[0][1] for line in lines) == view.prettify(second.content, new)
    assert "HeartbeatRequest v3" in view.prettify(second.content, new)
    assert view.prettify(b"", SimpleNamespace(flow=flow, tcp_message=first)) == HELD
    assert view.render_priority(b"", **old) == view.render_priority(b"", new) > 1
    other = SimpleNamespace(flow=None, tcp_message=None)
    assert view.render_priority(b"", other) < 0
    assert view.render_priority(b"", flow=None, http_message=None) < 0


def test_brokers_have_listeners_of_the_same_kind() -> None:
    ports = iter(range(7000, 9000))
    plan = ListenerPlan("tls", "127.0.0.1", port=lambda host: next(ports))
    context: Any = SimpleNamespace(advertise_host="127.0.0.1")
    assert plan.advertise(context, 1, "kafka1", 9092) == ("127.0.0.1", 7000)
    assert plan.advertise(context, 2, "::2", 9092) == ("127.0.0.1", 7001)
    generation = plan.generation
    assert plan.advertise(context, 1, "kafka1", 9092) == ("127.0.0.1", 7000)
    assert plan.generation == generation
    assert plan.advertise(context, 1, "moved", 9093) == ("127.0.0.1", 7000)
    assert plan.generation > generation
    assert plan.specs() == [
        "reverse:tls://moved:9093@127.0.0.1:7000",
        "reverse:tls://[::2]:9092@127.0.0.1:7001",
    ]
    assert plan.brokers(context) == [(1, "127.0.0.1", 7000), (2, "127.0.0.1", 7001)]
    for number in range(3, MOST_NODES + 1):
        plan.advertise(context, number, "kafka", 9092)
    with pytest.raises(OSError, match="more than"):
        plan.advertise(context, MOST_NODES + 1, "kafka", 9092)
    told = ListenerPlan("tcp", "", "proxy.example", port=lambda host: 7000)
    assert told.advertise(context, 1, "kafka1", 9092) == ("proxy.example", 7000)
    assert told.specs() == ["reverse:tcp://kafka1:9092@7000"]
    assert 0 < free_port("127.0.0.1") < 65536


def test_exchanges_are_kept_in_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "KEPT_BYTES", 1_000)
    flow = KafkaFlow(CLIENT, BROKER)
    size = len(heartbeat(1)) + len(beat(1)) - 8
    parts: list[Made] = []
    for number in range(100):
        parts += [ask(heartbeat(number)), tell(beat(number))]
        assert len(flow.take(parts)) == 1
    assert len(flow.pairs) == 1_000 // size
    assert flow.pairs[-1].exchange.correlation_id == 99
    assert flow._pair_bytes == size * len(flow.pairs)


def test_a_part_of_many_messages_is_looked_at_once() -> None:
    flow = KafkaFlow(CLIENT, BROKER)
    count = 6_000
    asked = b"".join(heartbeat(number) for number in range(count))
    told = b"".join(beat(number) for number in range(count))
    start = time.process_time()
    assert len(flow.take([ask(asked), tell(told)])) == count
    # Each exchange was sought among all messages of its parts: ten times as long.
    assert time.process_time() - start < 10
    shown = flow._shown[0]
    numbers = [exchange.correlation_id for _, exchange in shown if exchange is not None]
    assert numbers == list(range(count))
