"""What goes on for days, from peers that say something else each time: tables stay as small as they
are said to be, and work grows as what comes."""

import asyncio
import contextlib
import struct
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kafkascope.proxy import hub
from kafkascope.proxy.control import verdicts
from kafkascope.proxy.control.control import Control
from kafkascope.proxy.control.exposition import Exposition
from kafkascope.proxy.control.steering import Steering
from kafkascope.proxy.engine import layer
from kafkascope.proxy.engine.directory import Address
from kafkascope.proxy.engine.schemas import LateSchemas
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.engine.tls import ClientTls
from kafkascope.proxy.hub import OTHERS, Hub, Metrics
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.relay.edits import edited, shown
from kafkascope.proxy.relay.pairing import Pairing, PendingRequest
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from tests.kit import proxy as kit
from tests.kit.proxy import HEARTBEAT, METADATA, Bench, beat, endpoint, pulse, request, until
from tests.kit.wire import framed

UNKNOWN_KEYS = 2_000
LONG = 2_000_000


def unknown(key: int, version: int = 0, client: bytes = b"c") -> bytes:
    return framed(struct.pack(">hhih", key, version, 1, len(client)) + client)


def test_counters_have_no_more_labels_than_are_allowed() -> None:
    counted = Metrics()
    for number in range(LIMITS.metric_labels + 500):
        counted.add("upstream_failures_total", f"10.0.0.1:{number}")
    told = counted.snapshot()["upstream_failures_total"]
    assert len(told) == LIMITS.metric_labels + 1
    assert told[OTHERS] == 500
    assert sum(told.values()) == LIMITS.metric_labels + 500


@pytest.mark.parametrize("count", [1, Metrics.many - 1, Metrics.many, 3 * Metrics.many + 1])
def test_every_answer_is_counted_with_its_latency(count: int) -> None:
    metrics = Metrics()
    for number in range(count):
        metrics.answered(kit.PRODUCE if number % 3 else HEARTBEAT, number * 1_000_000)
        assert len(metrics.answers) < Metrics.many  # what waits is bounded
    beats = range(0, count, 3)
    told = metrics.latencies()
    assert told["Heartbeat"]["count"] == len(beats)
    assert told["Heartbeat"]["sum_ns"] == sum(beats) * 1_000_000
    assert told["Heartbeat"]["buckets"][0] == sum(number <= 1 for number in beats)
    assert sum(metrics.snapshot()["responses_total"].values()) == count
    assert f'latency_seconds_count{{api="Heartbeat"}} {len(beats)}' in metrics.text()


@pytest.mark.parametrize("together", [1, 1000])
def test_answers_that_pass_are_counted_and_do_not_pile_up(together: int) -> None:
    bench = Bench()
    for _ in range(1000 // together):
        bench.relay.feed(0, beat() * together, 1_000)
        bench.relay.feed(1, pulse() * together, 2_001_000)
        assert len(bench.hub.metrics.answers) < Metrics.many
        assert not bench.relay.busy
    told = bench.hub.metrics.latencies()["Heartbeat"]
    assert (told["count"], told["sum_ns"]) == (1000, 2_000_000_000)


def test_labels_that_peers_choose_are_text_on_one_line() -> None:
    # A broker's host was written as it said it, and one that is no UTF-8 ended every answer.
    metrics = Metrics()
    hosts = ["h\x1b[2J\x9b\u202e", "h\udcff", "h\n", r"h\x0a", 'h"\\', "h"]
    for host in hosts:
        metrics.add("upstream_failures_total", f"{host}:9092")
    text = metrics.text()
    assert text.encode().decode().replace("\n", "").isprintable()
    lines = [line for line in text.split("\n") if "upstream_failures_total{" in line]
    assert len(set(lines)) == len(hosts)
    assert r'kafkascope_upstream_failures_total{upstream="h\\x1b[2J\\x9b\\u202e:9092"} 1' in lines
    assert r'kafkascope_upstream_failures_total{upstream="h\"\\:9092"} 1' in lines


def test_apis_that_nobody_knows_are_counted_as_one() -> None:
    bench = Bench()
    for key in range(30_000, 30_000 + UNKNOWN_KEYS):
        bench.relay.feed(0, unknown(key), 1_000)
        bench.relay.feed(1, framed(struct.pack(">i", 1)), 2_000)
    counted = bench.hub.metrics
    assert counted.snapshot()["requests_total"] == {"unknown": UNKNOWN_KEYS}
    assert counted.latencies()["unknown"]["count"] == UNKNOWN_KEYS
    assert len(counted.text()) < 20_000
    assert hub.UNKNOWN not in range(1 << 15)


def test_heads_that_no_rule_cares_for_are_forgotten_when_there_are_too_many() -> None:
    bench = Bench("api == Produce -> drop")
    for version in range(3 * LIMITS.quiet_heads):
        bench.relay.feed(0, unknown(HEARTBEAT, version), 1_000)
    assert len(bench.relay.requests.quiet.heads) <= LIMITS.quiet_heads
    assert bench.relay.requests.quiet.heads


def kept(thing: object) -> dict[str, int]:
    """How many things each attribute holds."""
    return {name: len(value) for name, value in vars(thing).items() if hasattr(value, "__len__")}


def test_rules_remember_nothing_of_frames_that_nobody_knows() -> None:
    bench = Bench("client == c -> error 3")
    (rule,) = bench.rules
    before = kept(rule)
    for key in range(30_000, 30_000 + UNKNOWN_KEYS):
        bench.relay.feed(0, unknown(key), 1_000)
        bench.relay.feed(1, framed(struct.pack(">i", 1)), 2_000)
    assert kept(rule) == before


def test_rules_do_not_keep_long_client_ids() -> None:
    bench = Bench("api == Produce -> drop")
    (rule,) = bench.rules
    for number in range(100):
        bench.relay.feed(0, unknown(HEARTBEAT, 4, b"%d" % number * 9_000), 1_000)
    assert len(rule.matcher._known) <= 1
    bench.relay.feed(0, unknown(HEARTBEAT, 4, b"x" * LIMITS.matcher_client_id_chars), 1_000)
    assert rule.matcher._known


def test_requests_that_wait_share_the_text_of_their_client() -> None:
    bench = Bench("topic == other -> drop")
    for number in range(50):
        bench.relay.feed(0, request(METADATA, 12, correlation_id=number, client_id="x" * 999), 1)
    waiting = list(bench.relay.pairing)
    assert len(waiting) == 50
    assert len({id(each.client_id) for each in waiting}) == 1


def test_notices_are_short_whatever_peers_say() -> None:
    said = Hub()
    said.once("x" * LONG, "y" * LONG)
    said.once("x" * LONG, "again")
    ((_, text),) = said.notices
    assert len(text) < LIMITS.notice_chars + 10
    assert max(map(len, said._notified)) <= LIMITS.notice_chars


def test_a_broker_at_a_name_that_cannot_be_one_costs_the_connection_and_is_not_kept() -> None:
    bench = Bench()
    told = [endpoint(1, "h" * 30_000), endpoint(2, "10.0.0.2")]
    answer = kit.response(METADATA, 12, {"brokers": told})
    assert not bench.exchange(request(METADATA, 12), answer)
    assert bench.context.over
    assert bench.context.cause == "no listener"
    assert not bench.nodes.known


# --- pairing


def pending(number: int, *, token: bool = False) -> PendingRequest:
    made = PendingRequest(HEARTBEAT, 4, number, 0)
    made.token = token
    return made


def test_pairing_knows_what_waits_and_nothing_else() -> None:
    pairing = Pairing()
    for turn in range(3):
        for number in range(10):
            pairing.add(pending(number + 10 * turn, token=number == 7))
        for number in range(-5, 45):
            waits = any(e.correlation_id == number and not e.token for e in pairing)
            assert pairing.knows(number) == waits, (turn, number)
        for _ in range(4):
            pairing.pop()
        assert not pairing.knows(0)
    while len(pairing):
        pairing.pop()
    assert not pairing.knows(25)
    pairing.add(pending(25))
    pairing.add(pending(3))
    assert pairing.knows(25)
    assert pairing.knows(3)
    assert not pairing.knows(4)


def test_pairing_forgets_numbers_of_requests_that_are_long_gone() -> None:
    pairing = Pairing()
    for number in range(5 * LIMITS.pending_requests):
        pairing.requests.append(pending(number))
        if number % 1_000 == 0:
            assert pairing.knows(number)
            assert not pairing.knows(-1)
    assert len(pairing._places) <= 2 * LIMITS.pending_requests
    assert not pairing.knows(4 * LIMITS.pending_requests - 1)
    assert pairing.knows(4 * LIMITS.pending_requests)


def test_responses_to_nothing_cost_the_same_however_many_requests_wait() -> None:
    took = []
    for waiting in (1_000, LIMITS.pending_requests):
        bench = Bench()
        for number in range(waiting):
            bench.relay.pairing.add(pending(number))
        start = time.process_time()
        bench.relay.feed(1, b"".join(framed(struct.pack(">i", -9)) for _ in range(2_000)), 1)
        took.append(time.process_time() - start)
    assert bench.hub.metrics.get("unmatched_total") == 2_000
    # Each looked at all that waits: 65 times as long.
    assert took[1] < 20 * took[0] + 0.1


# --- what people do


def test_an_edited_list_that_is_shorter_keeps_its_secrets_in_linear_time() -> None:
    bench = Bench()
    count = 6_000
    users = [
        {"name": f"u{n}", "mechanism": 1, "iterations": 4096, "salt": b"s%d" % n,
         "salted_password": b"p%d" % n}
        for n in range(count)
    ]  # fmt: skip
    data = request(51, 0, {"deletions": [], "upsertions": users})
    pending = PendingRequest(51, 0, 1, 0)
    seen = InterceptedFrame(bench.context, 0, pending, len(data) - 4, 0, data)
    body = shown(seen.decoded)
    del body["upsertions"][1]
    start = time.process_time()
    new = edited(seen, body)
    assert time.process_time() - start < 3
    again = InterceptedFrame(bench.context, 0, pending, len(new), 0, bytes(4) + new)
    kept = again.decoded.body["upsertions"]
    assert len(kept) == count - 1
    assert kept[1]["name"] == "u2"
    assert bytes(kept[1]["salted_password"]) == b"p2"


async def test_a_state_lists_some_held_frames_and_all_are_released_together() -> None:
    async with kit.proxied(kit.echo, "api == Heartbeat -> hold") as proxy:
        clients = [await proxy.client() for _ in range(12)]
        for client in clients:
            client.send(beat())
        await until(lambda: len(proxy.held) == 12)
        assert [each["number"] for each in proxy.held.list(5)] == list(proxy.held)[:5]
        state = Steering(proxy).state()
        assert state["status"]["held"] == len(state["held"]) == 12
        assert LIMITS.state_held < 10_000
        assert proxy.held.release_all() == 12
        for client in clients:
            assert await client.frame() == pulse()
        assert not len(proxy.held)


# --- TLS


def small_records(count: int) -> bytes:
    """The beginning of a ClientHello of 16 MB, a byte in each record."""
    content = b"\x01\xff\xff\xff" + bytes(count)
    return b"".join(b"\x16\x03\x01\x00\x01" + bytes((each,)) for each in content)


def test_a_hello_is_whole_wherever_it_is_cut() -> None:
    body = b"\x01\x00\x00\x20" + bytes(32)
    for cut in (1, 3, 4, 5, 36):
        parts = [body[at : at + cut] for at in range(0, len(body), cut)]
        data = b"".join(b"\x16\x03\x01" + struct.pack(">H", len(p)) + p for p in parts)
        for step in (1, 2, 7, len(data)):
            seen = layer.Hello()
            told = [seen.feed(data[at : at + step]) for at in range(0, len(data), step)]
            assert told == [False] * (len(told) - 1) + [True], (cut, step)
    for wrong in (b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x00\x00"):
        assert layer.Hello().feed(wrong)
    assert not layer.Hello().feed(b"GET")


async def test_a_hello_without_end_is_refused_and_nobody_waits(tmp_path: Path) -> None:
    async with kit.proxied(tls=ClientTls(), folder=tmp_path) as proxy:
        client = await proxy.client()
        data = small_records(60_000)
        start = time.process_time()
        with contextlib.suppress(OSError):
            for at in range(0, len(data), 3_000):
                await client.pour(data[at : at + 3_000])
                await asyncio.sleep(0)
            await client.reader.read()
        # mitmproxy looks at all of it with each read: a minute.
        assert time.process_time() - start < 8
        await until(lambda: not proxy.handlers)
        assert any("a ClientHello of more than" in text for text in proxy.said())


# --- what is left


async def test_a_scraper_that_never_reads_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = KafkaProxy("127.0.0.1:1", limits=Limits(metrics_s=0.3))
    monkeypatch.setattr(type(proxy.hub.metrics), "text", lambda _: "x" * (8 << 20))
    exposition = Exposition(proxy)
    await exposition.listen(Address("127.0.0.1", 0))
    client = await kit.Link.to(f"127.0.0.1:{exposition.port}")
    client.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    transport: Any = client.writer.transport
    transport.pause_reading()
    await asyncio.sleep(1.0)
    transport.resume_reading()
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        # All of it would come late: nobody had cut it.
        await client.reader.readexactly(8 << 20)
    client.writer.close()
    await exposition.close()


def test_the_thread_that_asks_a_registry_ends_with_the_proxy() -> None:
    asked: list[Any] = []

    def ask(key: Any) -> list[Any]:
        asked.append(key)
        return []

    late = LateSchemas(ask)
    late.close()  # nobody was asked: there is nothing to end
    for turn in (1, 2):
        late.want(turn)
        late.close()
        deadline = time.monotonic() + 10
        while any(each.name == "schemas" for each in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert asked == [1, 2][:turn]


def test_what_there_was_names_so_many_and_counts_the_others() -> None:
    seen = verdicts.Seen(1, limits=Limits(expected_names=3))
    for name in ("a", "b", "c", "d", "a", "e"):
        seen.count(name)
    assert seen.there == {"a": 2, "b": 1, "c": 1, verdicts.OTHERS: 2}


async def test_a_watcher_that_never_reads_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    size = 8 << 20

    proxy = KafkaProxy("127.0.0.1:1")
    control = Control(proxy)
    monkeypatch.setattr(Steering, "state", lambda _: {"event": "state", "x": "y" * size})
    await control.listen(tmp_path / "proxy.sock")
    reader, writer = await asyncio.open_unix_connection(tmp_path / "proxy.sock")
    transport: Any = writer.transport
    writer.write(b'{"do":"watch","every":0.1}\n')
    await reader.readline()
    transport.pause_reading()
    await asyncio.sleep(0.5)
    # However often something changes, one state waits, and a second is not made.
    for _ in range(100):
        proxy.hub.changed()
    await asyncio.sleep(0.3)
    async with asyncio.timeout(10):
        await control.close()
    transport.resume_reading()
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            assert len(await reader.read()) < size  # nobody went on to send it
    writer.close()
    assert not proxy.hub.watchers
