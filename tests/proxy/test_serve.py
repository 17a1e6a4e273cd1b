"""A capture as a broker, without clients of others: logs, groups, matching, hostile peers."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from analyzer.offline import open_capture
from analyzer.session import Session
from captures.spool import Spool
from dissectors.record_writer import encode_batch, encode_message_set
from dissectors.records import Partial, Record, batches, open_batch
from dissectors.registry import APIS, example, layout_of, write_layout
from proxy.replay.peer import Peer, PeerError, Reach
from proxy.serve.broker import HANDLERS, Broker
from proxy.serve.fitting import fitted
from proxy.serve.groups import ILLEGAL_GENERATION, REBALANCING, UNKNOWN_MEMBER, Groups
from proxy.serve.library import Library
from proxy.serve.log import Log
from proxy.serve.model import Model
from proxy.serve.server import Server

SAMPLES = Path(__file__).parents[2] / "captures" / "samples"


def rows(*values: bytes, base: int = 0) -> list[Record]:
    return [Record(base + n, 5 + n, None, value, ()) for n, value in enumerate(values)]


def read(data: bytes) -> list[tuple[int, bytes | None]]:
    found = []
    for batch in batches(data):
        assert not isinstance(batch, Partial)
        opened = open_batch(data, batch)
        assert opened.error is None
        found += [(record.offset, record.value) for record in opened.records]
    return found


def test_every_handler_is_for_an_api():
    assert set(HANDLERS) <= {api.name for api in APIS.values()}


@pytest.mark.parametrize("key", sorted(APIS))
def test_any_body_fits_any_version(key):
    api = APIS[key]
    name = f"{api.name}Response"
    newest = example(name, api.versions.high)
    for version in range(api.versions.low, api.versions.high + 1):
        layout = layout_of(name, version)
        write_layout(layout, fitted(layout, newest))
        write_layout(layout, fitted(layout, {}))


def test_a_log_holds_each_offset_once():
    log = Log()
    late, early = encode_batch(rows(b"c", b"d", base=2)), encode_batch(rows(b"a", b"b"))
    log.add(late)
    log.add(early + late)
    assert (log.start, log.end) == (0, 4)
    assert read(log.read(0, 1 << 20, 2)) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert read(log.read(3, 1, 2)) == [(2, b"c"), (3, b"d")]
    assert read(log.read(4, 1 << 20, 2)) == []
    assert log.append(encode_batch(rows(b"e"), producer_id=4)) == 4
    assert read(log.read(4, 1 << 20, 2)) == [(4, b"e")]
    assert log.offset_for(6) == (0, 6)
    log.add(b"garbage")


def test_old_clients_get_message_sets():
    log = Log()
    log.add(encode_batch(rows(b"a", b"b", base=7), codec=4))
    for magic in (0, 1):
        data = log.read(7, 1 << 20, magic)
        assert {batch.magic for batch in batches(data)} == {magic}  # type: ignore[union-attr]
        assert read(data) == [(7, b"a"), (8, b"b")]
    log.add(encode_message_set(1, rows(b"c", base=9)))
    assert read(log.read(9, 1 << 20, 2)) == [(9, b"c")]


def join(group: str, member: str = "", **more: Any) -> dict[str, Any]:
    body = example("JoinGroupRequest", 5)
    protocols = [{"name": "range", "metadata": member.encode()}]
    return body | {
        "group_id": group,
        "member_id": member,
        "protocol_type": "consumer",
        "session_timeout_ms": 6000,
        "rebalance_timeout_ms": 3000,
        "protocols": protocols,
        **more,
    }


async def _two_members() -> None:
    groups = Groups()
    first = (await groups.join(5, "a", join("g")))["member_id"]
    told = await groups.join(5, "a", join("g", first))
    assert (told["error_code"], told["leader"], told["generation_id"]) == (0, first, 1)
    sync = {"group_id": "g", "member_id": first, "generation_id": 1}
    mine = [{"member_id": first, "assignment": b"all"}]
    assert (await groups.sync({**sync, "assignments": mine}))["assignment"] == b"all"
    assert groups.heartbeat(sync) == 0
    assert groups.heartbeat({**sync, "generation_id": 7}) == ILLEGAL_GENERATION
    assert groups.heartbeat({**sync, "member_id": "x"}) == UNKNOWN_MEMBER
    # A second one comes: the first is told, and both join.
    second = (await groups.join(5, "b", join("g")))["member_id"]
    coming = asyncio.create_task(groups.join(5, "b", join("g", second)))
    await asyncio.sleep(0.01)
    assert groups.heartbeat(sync) == REBALANCING
    again = asyncio.create_task(groups.join(5, "a", join("g", first)))
    both = await asyncio.gather(again, coming)
    assert [each["generation_id"] for each in both] == [2, 2]
    assert len(both[0]["members"]) == 2
    assert both[1]["members"] == []
    follower = {"group_id": "g", "member_id": second, "generation_id": 2, "assignments": []}
    waiting = asyncio.create_task(groups.sync(follower))
    await asyncio.sleep(0.01)
    halves = [{"member_id": first, "assignment": b"1"}, {"member_id": second, "assignment": b"2"}]
    leader = {"group_id": "g", "member_id": first, "generation_id": 2, "assignments": halves}
    assert (await groups.sync(leader))["assignment"] == b"1"
    assert (await waiting)["assignment"] == b"2"
    groups.leave({"group_id": "g", "member_id": second})
    assert groups.heartbeat({**sync, "generation_id": 2}) == REBALANCING


def test_a_second_member_makes_a_rebalance():
    asyncio.run(_two_members())


def library_of(name: str) -> tuple[Model, Library, Any]:
    capture = open_capture([SAMPLES / name], spool=Spool())
    session = Session(capture.context, capture.source.read)
    model, library = Model(capture.context.names), Library(session)
    for exchange in capture.exchanges():
        index = session.add(exchange)
        model.add(exchange)
        library.add(exchange, index)
    model.finish()
    return model, library, capture


async def _with_server(name: str, use: Callable[[str, int, list[str]], Awaitable[None]]) -> None:
    model, library, capture = library_of(name)
    told: list[str] = []
    server = Server(told.append)
    try:
        places = {node: await server.listen("127.0.0.1", 0) for node in sorted(model.nodes)}
        server.broker = Broker(model, library, places)
        await use(*places[min(places)], told)
    finally:
        await server.stop()
        capture.close()
        await asyncio.sleep(0.05)


def test_captured_answers_have_our_addresses_and_others_are_said():
    async def use(host: str, port: int, told: list[str]) -> None:
        peer = await Peer.open(host, port, Reach(timeout=5))
        metadata = await peer.ask("Metadata", 12, example("MetadataRequest", 12) | {"topics": None})
        assert [(each["host"], each["port"]) for each in metadata["brokers"]] == [(host, port)]
        asked = example("DescribeGroupsRequest", 5) | {"groups": ["nobody"]}
        (group,) = (await peer.ask("DescribeGroups", 5, asked))["groups"]
        assert group["group_state"] == "Dead"
        # Offered are only APIs that can be answered; whoever asks for others hears nothing.
        asked = example("DescribeLogDirsRequest", 1)
        with pytest.raises(PeerError):
            await peer.ask("DescribeLogDirs", 1, asked)
        assert any("DescribeLogDirs" in line for line in told)
        await peer.close()

    asyncio.run(_with_server("demo.pcap", use))


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP arrived"),
        (bytes.fromhex("160301020001000001fc0303") + bytes(20), "TLS arrived"),
        (struct.pack(">i", 2**31 - 1), "2147483647 bytes"),
        (struct.pack(">i", -1) + bytes(20), "-1 bytes"),
        (struct.pack(">ihhi", 20, 999, 3, 1) + bytes(12), "api key 999"),
        (struct.pack(">ihhi", 20, 3, 99, 1) + bytes(12), "Metadata has versions"),
        (struct.pack(">ihhih", 12, 3, 12, 1, -1) + b"\xff\xff", "cannot be read"),
    ],
)
def test_strangers_get_a_sentence_and_hurt_nobody(sent, said):
    async def use(host: str, port: int, told: list[str]) -> None:
        good = await Peer.open(host, port, Reach(timeout=5))
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(sent)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        assert any(said in line for line in told), told
        versions = await good.ask("ApiVersions", 0, {})
        assert versions["api_keys"]
        await good.close()

    asyncio.run(_with_server("demo.pcap", use))


def test_a_version_that_is_not_served_falls_back():
    async def use(host: str, port: int, told: list[str]) -> None:
        peer = await Peer.open(host, port, Reach(timeout=5))
        payload = struct.pack(">hhih", 18, 77, 5, -1) + b"\0"
        answer = await peer.send(5, payload)
        assert answer[4:6] == struct.pack(">h", 35)
        await peer.close()

    asyncio.run(_with_server("demo.pcap", use))
