"""A capture as a broker, without clients of others: what is offered, matched, answered and said."""

import asyncio
import struct
import subprocess
import sys

import pytest

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.walk import fitted
from kafkascope.dissectors.reference.codes import ERRORS
from kafkascope.proxy.replay.peer import PeerError
from kafkascope.proxy.serve.broker import LOGIN, Broker
from kafkascope.proxy.serve.request import Code
from kafkascope.proxy.serve.server import Server
from tests.kit.samples import SAMPLES
from tests.kit.served import Served, ask, batch, library_of, read, serving


def test_error_codes_have_the_names_of_the_protocol():
    assert {code.value: code.name for code in Code} == {c: ERRORS[c].name for c in map(int, Code)}


def test_every_handler_is_for_an_api():
    with library_of("libraries.pcap") as served:
        broker = Broker(*served, {1: ("127.0.0.1", 1)})
        assert set(broker.handlers) | LOGIN <= {api.name for api in registry.APIS.values()}


@pytest.mark.parametrize("key", sorted(registry.APIS))
def test_any_body_fits_any_version(key):
    api = registry.APIS[key]
    name = f"{api.name}Response"
    newest = registry.example(name, api.versions.high)
    for version in range(api.versions.low, api.versions.high + 1):
        layout = registry.layout_of(name, version)
        registry.write_layout(layout, fitted(layout, newest))
        registry.write_layout(layout, fitted(layout, {}))


async def test_captured_answers_have_our_addresses_and_others_are_said():
    async with serving("libraries.pcap") as served:
        peer = await served.peer()
        (node,) = (await ask(peer, "Metadata", 12, topics=None))["brokers"]
        assert (node["host"], node["port"]) == (served.host, served.port)
        (group,) = (await ask(peer, "DescribeGroups", 5, groups=["nobody"]))["groups"]
        assert group["group_state"] == "Dead"
        # Groups that are listed for their captured offsets can be described.
        listed = [each["group_id"] for each in (await ask(peer, "ListGroups", 4))["groups"]]
        states = (await ask(peer, "DescribeGroups", 5, groups=listed))["groups"]
        assert {each["group_state"] for each in states} == {"Empty"}
        # Offered are only APIs that can be answered; whoever asks for others hears nothing.
        with pytest.raises(PeerError):
            await ask(peer, "DescribeLogDirs", 1)
        assert served.says("DescribeLogDirs")


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP arrived"),
        (bytes.fromhex("160301020001000001fc0303") + bytes(20), "TLS on a plaintext listener"),
        (struct.pack(">i", 2**31 - 1), "2147483647 bytes"),
        (struct.pack(">i", -1) + bytes(20), "-1 bytes"),
        (struct.pack(">ihhi", 20, 999, 3, 1) + bytes(12), "api key 999"),
        (struct.pack(">ihhi", 20, 3, 99, 1) + bytes(12), "Metadata has versions"),
        (struct.pack(">ihhih", 12, 3, 12, 1, -1) + b"\xff\xff", "cannot be read"),
    ],
)
async def test_strangers_get_a_sentence_and_hurt_nobody(sent, said):
    async with serving("libraries.pcap") as served:
        good, stranger = await served.peer(), await served.link()
        stranger.send(sent)
        assert await stranger.rest() == b""
        assert served.says(said), served.told
        await served.works(good)


async def test_a_version_that_is_not_served_falls_back():
    async with serving("libraries.pcap") as served:
        answer = await (await served.peer()).send(5, struct.pack(">hhih", 18, 77, 5, -1) + b"\0")
        assert answer[4:6] == struct.pack(">h", 35)


async def test_a_request_that_nobody_made_gets_the_nearest_answer_and_a_line_that_says_so():
    marker = {"producer_id": 5, "producer_epoch": 0, "transaction_result": True}
    marker |= {"topics": [{"name": "invoices", "partition_indexes": [77]}]}
    marker |= {"coordinator_epoch": 0, "transaction_version": 0}

    async with serving("cluster.pcap.gz") as served:
        peer = await served.peer()
        for _ in range(12):
            answer = await peer.ask("WriteTxnMarkers", 1, {"markers": [marker]})
            # Where the captured request named a topic stands ours; so does it in the answer.
            assert answer["markers"][0]["topics"][0]["name"] == "invoices"
        await peer.close()
        with pytest.raises(PeerError):
            await ask(await served.peer(), "CreateAcls", 3)
        lines = [line for line in served.told if "WriteTxnMarkers" in line]
        assert len(lines) == 2, served.told
        assert "name=invoices, partition_indexes=77" in lines[0]
        assert "answered as exchange " in lines[0]
        assert "% alike" in lines[0]
        assert lines[1].endswith("(10 times)")
        assert served.says("CreateAcls v3: the capture has no response of this API")


async def test_topics_can_be_made_written_and_deleted():
    async with serving("libraries.pcap") as served:
        peer = await served.peer()
        plain = {"num_partitions": 2, "replication_factor": 1, "assignments": [], "configs": []}
        wanted = {"topics": [{**plain, "name": "made"}], "timeout_ms": 1000}
        (made,) = (await ask(peer, "CreateTopics", 7, **wanted))["topics"]
        assert (made["error_code"], made["num_partitions"]) == (0, 2)
        (again,) = (await ask(peer, "CreateTopics", 7, **wanted))["topics"]
        assert again["error_code"] == Code.TOPIC_ALREADY_EXISTS
        data = {"name": "made", "partition_data": [{"index": 1, "records": batch(b"x", b"y")}]}
        sent = {"transactional_id": None, "acks": -1, "topic_data": [data]}
        (answer,) = (await ask(peer, "Produce", 9, **sent))["responses"]
        assert answer["partition_responses"][0]["base_offset"] == 0
        part = {"partition": 1, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        part |= {"current_leader_epoch": -1, "log_start_offset": -1}
        fetch = {"topics": [{"topic": "made", "partitions": [part]}], "max_bytes": 1 << 20}
        (answer,) = (await ask(peer, "Fetch", 11, max_wait_ms=100, **fetch))["responses"]
        assert read(answer["partitions"][0]["records"]) == [(0, b"x"), (1, b"y")]
        gone = [{"name": "made", "topic_id": bytes(16)}]
        for error in (0, Code.UNKNOWN_TOPIC_OR_PARTITION):
            (deleted,) = (await ask(peer, "DeleteTopics", 6, topics=gone))["responses"]
            assert (deleted["name"], deleted["error_code"]) == ("made", error)
        assert served.problems == []


async def test_a_producer_that_is_back_fences_the_one_before():
    async with serving("libraries.pcap") as served:
        peer = await served.peer()
        first = await ask(peer, "InitProducerId", 4, transactional_id="tx")
        second = await ask(peer, "InitProducerId", 4, transactional_id="tx")
        assert first["producer_id"] == second["producer_id"]
        end = {"transactional_id": "tx", "committed": True}
        ids = ("producer_id", "producer_epoch")
        old = await peer.ask("EndTxn", 3, end | {name: first[name] for name in ids})
        assert old["error_code"] == Code.PRODUCER_FENCED
        new = await peer.ask("EndTxn", 5, end | {name: second[name] for name in ids})
        assert (new["error_code"], new["producer_epoch"]) == (0, second["producer_epoch"] + 1)


def test_without_an_api_versions_answer_everything_that_needs_no_answer_is_offered():
    with library_of("libraries.pcap") as (model, library):
        model.versions.clear()
        model.used_versions.clear()
        broker = Broker(model, library, {1: ("127.0.0.1", 1)})
        assert {registry.APIS[key].name for key in broker.versions} == set(broker.handlers) | LOGIN


async def test_several_captured_brokers_are_several_listeners():
    async with serving("cluster.pcap.gz") as served:
        metadata = await ask(await served.peer(), "Metadata", 12, topics=None)
        places = {(each["host"], each["port"]) for each in metadata["brokers"]}
        assert len(places) == 3
        leaders = {p["leader_id"] for t in metadata["topics"] for p in t["partitions"]}
        assert leaders <= {each["node_id"] for each in metadata["brokers"]}
        for place in places:
            await served.works(await served.peer(place))


async def test_the_original_pace_is_that_of_the_capture(monkeypatch):
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def answer(**options: bool) -> None:
        broker = Broker(model, library, {1: ("127.0.0.1", 1)}, **options)
        for name in ("Metadata", "GetTelemetrySubscriptions", "Heartbeat"):
            layout = registry.layout_of(f"{name}Request", 0)
            body = registry.example(f"{name}Request", 0)
            decoded = registry.Decoded(name, 0, {}, body, 0, 0, "", layout, layout)
            await broker.respond(registry.api_named(name).key, 0, "client", decoded)

    monkeypatch.setattr("kafkascope.proxy.serve.broker.asyncio.sleep", sleep)
    with library_of("libraries.pcap") as (model, library):
        await answer()
        assert slept == []
        await answer(original_pace=True)
        assert len(slept) == 3
        assert 0 < min(slept) <= max(slept) < 60
        assert slept[0] == library.latency_s(3)


async def test_a_client_that_comes_before_all_listeners_are_there_waits_for_its_answer():
    with library_of("cluster.pcap.gz") as (model, library):
        served = Served("127.0.0.1", 0, [])
        server = Server(served.told.append)
        first, *rest = sorted(model.nodes)
        places = {first: await server.listen("127.0.0.1", 0)}
        peer = await served.peer(places[first])
        answer = asyncio.create_task(served.works(peer))
        for node in rest:
            await asyncio.sleep(0.05)
            places[node] = await server.listen("127.0.0.1", 0)
        server.broker = Broker(model, library, places)
        await answer
        await peer.close()
        await server.stop()
    assert served.problems == []


HASTY = """
import os, signal, click
from kafkascope.tui.cli import main

echo = click.echo

def told(*args, **more):
    echo(*args, **more)
    os.kill(os.getpid(), signal.SIGTERM)

click.echo = told
main()
"""


def test_whoever_has_the_address_may_end_it_at_once():
    command = [sys.executable, "-c", HASTY, "serve", SAMPLES / "libraries.pcap"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "0 requests answered" in done.stderr


def test_lines_for_people_hold_nothing_that_moves_a_cursor():
    told: list[str] = []
    server = Server(told.append)
    server.log("\x1b[2J" + "x" * 10_000, "evil\n\x1b]0;title\x07")
    (line,) = told
    assert line.isprintable()
    assert len(line) < 1000
    assert "evil" in line
