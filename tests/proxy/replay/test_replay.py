"""Replay without a broker: what may be sent, to whom, with which ids; what counts as different."""

from __future__ import annotations

import asyncio
import gc
import ssl
import struct
import weakref
from pathlib import Path

import pytest

from kafkascope.dissectors.records.records import Partial, Record, batches, crc_ok
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import APIS, example, layout_of, write_layout
from kafkascope.dissectors.values import Uuid
from kafkascope.proxy.engine.server import KafkaProxy
from kafkascope.proxy.engine.tls import ClientTls
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.replay import split
from kafkascope.proxy.replay.cli import _tls as tls_context
from kafkascope.proxy.replay.cluster import LiveCluster
from kafkascope.proxy.replay.compare import Comparison
from kafkascope.proxy.replay.outcome import lines_of, not_answered
from kafkascope.proxy.replay.peer import Peer, PeerError, Reach
from kafkascope.proxy.replay.plan import Permit, refusal
from kafkascope.proxy.replay.remap import Remap
from kafkascope.proxy.sasl import Credentials, LoginRefused, tokens
from tests.kit.proxy import HEARTBEAT, broker, echo, request


def test_what_reads_says_read_or_list_or_describe():
    odd = {"ApiVersions", "Metadata", "Fetch", "OffsetFetch", "FindCoordinator"}
    odd |= {"OffsetForLeaderEpoch", "GetTelemetrySubscriptions"}
    for name in {api.name for api in APIS.values() if api.effect == "read"} - odd:
        assert "List" in name or "Describe" in name, name


def test_nothing_that_changes_is_sent_unasked():
    body = example("ProduceRequest", 9)
    assert refusal(0, body, Permit()) == "changes data or state (--allow-writes)"
    assert refusal(0, body, Permit(writes=True)) == ""
    join = example("JoinGroupRequest", 5)
    assert "--group-prefix" in refusal(11, join, Permit(writes=True))
    assert refusal(11, join, Permit(writes=True, groups=True)) == ""
    assert refusal(1, example("FetchRequest", 12), Permit()) == ""
    follower = {**example("FetchRequest", 12), "replica_id": 2}
    assert refusal(1, follower, Permit(True, True)) == "sent by brokers only"
    assert refusal(None, None, Permit()) == "not a request of a known API"
    assert refusal(1, None, Permit()) == "the request cannot be decoded"


def test_who_serves_an_api():
    served = {api.name: api.server for api in APIS.values()}
    assert served["Produce"] == "leader"
    assert served["TxnOffsetCommit"] == "group"
    assert served["EndTxn"] == "transaction"
    assert served["CreateTopics"] == "controller"
    assert served["ApiVersions"] == "node"


def fetch(*partitions: tuple[str, int], session: int = 0, epoch: int = -1) -> dict:
    body = {**example("FetchRequest", 12), "session_id": session, "session_epoch": epoch}
    layout = layout_of("FetchRequest", 12)
    topic_wire = next(s for s in layout.body.slots if s.name == "topics").wire.element
    part_wire = next(s for s in topic_wire.slots if s.name == "partitions").wire.element
    topics: dict[str, dict] = {}
    for topic, number in partitions:
        each = topics.setdefault(topic, {"topic": topic, "partitions": []})
        part = {slot.name: slot.default for slot in part_wire.slots}
        each["partitions"].append({**part, "partition": number})
    body["topics"] = list(topics.values())
    return body


LAYOUT = layout_of("FetchRequest", 12)
LEADERS = {("a", 0): 1, ("a", 1): 2, ("b", 0): 1}


def leader_of(topic: str | bytes, partition: int) -> int:
    return LEADERS.get((topic, partition), -1)  # type: ignore[arg-type]


def test_a_request_is_split_by_leaders_and_nothing_is_lost():
    body = fetch(("a", 0), ("a", 1), ("b", 0))
    body["forgotten_topics_data"] = [{"topic": "a", "partitions": [1]}]
    parts = split.by_leader(LAYOUT, body, leader_of)
    assert sorted(parts) == [1, 2]
    shown = {
        node: [(t["topic"], p["partition"]) for t in part["topics"] for p in t["partitions"]]
        for node, part in parts.items()
    }
    assert shown == {1: [("a", 0), ("b", 0)], 2: [("a", 1)]}
    assert parts[2]["forgotten_topics_data"] == [{"topic": "a", "partitions": [1]}]
    assert parts[1]["forgotten_topics_data"] == []
    for part in parts.values():
        write_layout(LAYOUT, part)


def test_groups_are_split_by_coordinators():
    layout = layout_of("DescribeGroupsRequest", 5)
    body = {**example("DescribeGroupsRequest", 5), "groups": ["x", "y", "z"]}
    nodes = {"x": 1, "y": 2, "z": 1}
    parts = split.by_coordinator(layout, body, nodes.__getitem__, "groupId")
    assert {node: part["groups"] for node, part in parts.items()} == {1: ["x", "z"], 2: ["y"]}
    layout = layout_of("HeartbeatRequest", 4)
    body = {**example("HeartbeatRequest", 4), "group_id": "y"}
    assert split.by_coordinator(layout, body, nodes.__getitem__, "groupId") == {2: body}


def test_answers_become_one():
    layout = layout_of("ProduceResponse", 9)
    first, second = example("ProduceResponse", 9), example("ProduceResponse", 9)
    blank = {"error_code": 0, "base_offset": 4}
    first["responses"] = [{"name": "a", "partition_responses": [{"index": 0, **blank}]}]
    second["responses"] = [
        {"name": "a", "partition_responses": [{"index": 1, **blank}]},
        {"name": "b", "partition_responses": []},
    ]
    second["throttle_time_ms"] = 9
    both = split.merged(layout, [first, second])
    assert [each["name"] for each in both["responses"]] == ["a", "b"]
    assert [each["index"] for each in both["responses"][0]["partition_responses"]] == [0, 1]
    assert both["throttle_time_ms"] == 9


def test_a_log_that_is_further_on_is_told_once():
    layout = layout_of("ProduceResponse", 9)
    comparison, strict = Comparison(), Comparison(strict=True)

    def compare(*offsets):
        for each in (comparison, strict):
            sides = [
                {
                    **example("ProduceResponse", 9),
                    "responses": [
                        {
                            "name": "orders",
                            "partition_responses": [
                                {**blank, "index": index, "base_offset": pair[side]}
                                for index, pair in enumerate(offsets)
                            ],
                        }
                    ],
                }
                for side in (0, 1)
            ]
            each.compare("Produce", 9, 1, layout, *sides)

    part = {"error_code": 0, "log_append_time_ms": -1, "log_start_offset": -1, "current_leader": {}}
    blank = {**part, "record_errors": [], "error_message": None}
    compare((5, 105), (7, 7))
    compare((6, 106), (8, 8))
    compare((7, 107), (9, 9))
    # Something else was written between, or something of ours was not.
    compare((8, 110), (10, 10))
    compare((9, 111), (11, 10))
    found = [(each.path, each.then, each.now, bool(each.why)) for each in comparison.all()]
    offset = "responses[].partition_responses[].base_offset"
    assert sorted(found) == [
        ("offsets of orders-0", "5", "105", True),
        (offset, "11", "10", False),
        (offset, "8", "110", False),
    ]
    assert (comparison.same, comparison.different) == (2, 3)
    assert strict.same == 0


def test_ids_of_the_capture_become_those_of_the_peer_and_back():
    remap = Remap(prefix="test-")
    remap.topic_ids.learn(bytes([1]) * 16, bytes([2]) * 16)
    request = {**example("JoinGroupRequest", 5), "group_id": "g"}
    captured = {**example("JoinGroupResponse", 5), "member_id": "c-1", "generation_id": 4}
    live = {**captured, "member_id": "l-1", "generation_id": 1}
    remap.learn("JoinGroup", request, captured, live)
    layout = layout_of("HeartbeatRequest", 4)
    body = {**example("HeartbeatRequest", 4), "group_id": "g", "member_id": "c-1"}
    body["generation_id"] = 4
    sent = remap.request(layout, body)
    assert (sent["group_id"], sent["member_id"], sent["generation_id"]) == ("test-g", "l-1", 1)
    answer = remap.response(layout_of("JoinGroupResponse", 5), live)
    assert answer["member_id"] == "c-1"
    layout = layout_of("FetchRequest", 13)
    body = example("FetchRequest", 13)
    body["topics"] = [{"topic_id": Uuid(bytes([1]) * 16), "partitions": []}]
    assert remap.request(layout, body)["topics"][0]["topic_id"] == bytes([2]) * 16


def test_batches_get_the_producer_that_the_peer_knows():
    remap = Remap()
    remap.producers.learn(
        {"producer_id": 7, "producer_epoch": 0}, {"producer_id": 1000, "producer_epoch": 3}
    )
    data = encode_batch([Record(0, 5, b"k", b"v", ())], producer_id=7, producer_epoch=1)
    layout = layout_of("ProduceRequest", 9)
    body = example("ProduceRequest", 9)
    part = {"index": 0, "records": data + data}
    body["topic_data"] = [{"name": "a", "partition_data": [part]}]
    sent = remap.request(layout, body)["topic_data"][0]["partition_data"][0]["records"]
    found = list(batches(sent))
    assert len(found) == 2
    for batch in found:
        assert not isinstance(batch, Partial)
        # The client raised its epoch once, so the peer's is raised once.
        assert (batch.producer_id, batch.producer_epoch) == (1000, 4)
        assert crc_ok(sent, batch)
    layout = layout_of("AddPartitionsToTxnRequest", 3)
    body = example("AddPartitionsToTxnRequest", 3)
    body |= {"v3_and_below_producer_id": 7, "v3_and_below_producer_epoch": 0}
    sent = remap.request(layout, body)
    assert sent["v3_and_below_producer_id"] == 1000
    assert sent["v3_and_below_producer_epoch"] == 3


def test_what_differs_by_nature_is_no_difference():
    layout = layout_of("MetadataResponse", 9)
    captured, live = example("MetadataResponse", 9), example("MetadataResponse", 9)
    captured["brokers"] = [{"node_id": 1, "host": "a", "port": 1, "rack": None}]
    live |= {"controller_id": 3, "throttle_time_ms": 4}
    comparison = Comparison()
    assert comparison.compare("Metadata", 9, 1, layout, captured, live) == []
    assert Comparison(strict=True).compare("Metadata", 9, 1, layout, captured, live)


def test_served_versions_are_told_by_api():
    layout = layout_of("ApiVersionsResponse", 0)
    blank = {"error_code": 0}
    then = {**blank, "api_keys": [{"api_key": 1, "min_version": 0, "max_version": 11}]}
    now = {**blank, "api_keys": [{"api_key": 1, "min_version": 4, "max_version": 18}]}
    comparison = Comparison()
    comparison.compare("ApiVersions", 0, 1, layout, then, now)
    (found,) = comparison.all()
    assert (found.path, found.then, found.now) == ("versions of Fetch", "0-11", "4-18")


def answers(*values: bytes) -> dict:
    body = example("FetchResponse", 12)
    rows = [Record(n, 5, None, value, ()) for n, value in enumerate(values)]
    part = {"partition_index": 0, "error_code": 0, "records": encode_batch(rows) if rows else None}
    blank = example("FetchResponse", 12)
    layout = layout_of("FetchResponse", 12)
    topic = next(s for s in layout.body.slots if s.name == "responses").wire.element
    wire = next(s for s in topic.slots if s.name == "partitions").wire.element
    whole = {slot.name: slot.default for slot in (*wire.slots, *wire.tags)} | part
    return blank | body | {"responses": [{"topic": "a", "partitions": [whole]}]}


def test_records_are_compared_by_partition_not_by_answer():
    layout = layout_of("FetchResponse", 12)
    comparison = Comparison()
    comparison.compare("Fetch", 12, 1, layout, answers(b"x", b"y"), answers())
    comparison.compare("Fetch", 12, 2, layout, answers(), answers(b"x", b"y"))
    assert list(comparison.all()) == []
    comparison.compare("Fetch", 12, 3, layout, answers(b"x", b"y"), answers(b"x", b"z"))
    (found,) = comparison.all()
    assert found.path == "records of a-0"


def test_scram_convinces_and_checks_the_broker():
    # The example of RFC 7677, section 3.
    steps = tokens(Credentials("SCRAM-SHA-256", "user", "pencil"))
    first = next(steps).decode()
    assert first.startswith("n,,n=user,r=")
    nonce = first.partition("r=")[2]
    final = steps.send(f"r={nonce}X,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()).decode()
    assert final.startswith(f"c=biws,r={nonce}X,p=")
    with pytest.raises(LoginRefused):
        steps.send(b"v=AAAA\xff")
    steps = tokens(Credentials("SCRAM-SHA-256", "user", "pencil"))
    next(steps)
    with pytest.raises(LoginRefused):
        steps.send(b"r=other,s=AA==,i=4096")
    for odd in ("i=1", "i=4095", "i=1000001", "i=-4096", "m=x,i=4096"):
        steps = tokens(Credentials("SCRAM-SHA-256", "user", "pencil"))
        nonce = next(steps).decode().partition("r=")[2]
        with pytest.raises(LoginRefused, match=r"iterations|extension"):
            steps.send(f"r={nonce}X,s=AA==,{odd}".encode())  # else a proof would be sent
    assert next(tokens(Credentials("PLAIN", "u", "p"))) == b"\0u\0p"
    assert "pencil" not in repr(Credentials("PLAIN", "u", "pencil"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "closed the connection"),
        (bytes.fromhex("15030300020250"), "TLS: add --tls"),
        (struct.pack(">i", 2**31 - 1), "2147483647 bytes"),
        (struct.pack(">i", -5), "-5 bytes"),
        (None, "no response in"),
    ],
)
async def test_no_broker_makes_us_wait_for_ever(answer, said):
    patience_s = 0.5 if answer is None else 60

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    peer = await Peer.open("127.0.0.1", port, Reach(timeout=patience_s))
    with pytest.raises(PeerError, match=said):
        await peer.ask("ApiVersions", 0, {})
    await peer.close()
    server.close()
    await asyncio.sleep(0.05)


async def test_errors_name_the_options_for_tls_and_sasl(tmp_path: Path) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.close()

    reach = Reach(tls=ssl.create_default_context(), timeout=60)
    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    plain = server.sockets[0].getsockname()[:2]
    with pytest.raises(PeerError, match="leave out --tls"):
        await Peer.open(*plain, reach)
    with pytest.raises(PeerError, match="may require authentication"):
        await LiveCluster([plain], Reach(timeout=60)).open()
    server.close()
    async with KafkaProxy("127.0.0.1:1", tls=ClientTls(), folder=tmp_path) as proxy:
        host, _, port = proxy.bootstrap.partition(":")
        with pytest.raises(PeerError, match=r"not trusted: .* \(--cafile\)"):
            await Peer.open(host, int(port), reach)


async def test_an_answer_that_was_used_does_not_stay_in_memory() -> None:
    async with broker(echo) as up:
        peer = await Peer.open(up.host, up.port, Reach(timeout=60))
        answers = []
        for number in range(3):
            answer = peer.send(number, request(HEARTBEAT, 4, correlation_id=number)[4:])
            assert await answer
            answers.append(weakref.ref(answer))
        del answer
        await asyncio.sleep(0)  # the loop has just told us of the last one
        gc.collect()
        assert [each() for each in answers] == [None] * 3
        await peer.close()


async def test_nobody_there():
    with pytest.raises(PeerError):
        await Peer.open("127.0.0.1", 1, Reach(timeout=60))


def test_what_is_not_answered_comes_first_and_what_has_no_reason_before_that():
    comparison = Comparison()
    comparison.note("ApiVersions", 3, 1, "versions of Fetch", "0-11", "4-18")
    comparison.note("Fetch", 3, 7, "version", 3, "served: 4 to 18")
    comparison.note("Produce", 2, 9, "answer", "yes", "the broker closed the connection")
    comparison.note("EndTxn", 1, 12, "error_code", "NONE", "INVALID_TXN_STATE")
    comparison.note("DescribeConfigs", 4, 3, "results[x].configs[a]", None, "a")
    comparison.note("DescribeConfigs", 4, 3, "results[x].configs[]", None, "b")
    findings = list(comparison.all())
    lines = [text for text, _ in lines_of(findings)]
    assert lines[0].startswith("EndTxn v1  error_code: NONE -> INVALID_TXN_STATE")
    assert [line.split("  ")[1] for line in lines if "v3" in line or "v2" in line] == [
        *("Fetch v3", "Produce v2", "ApiVersions v3")
    ]
    said = not_answered(findings)
    assert said.startswith("Fetch v3 (1, served: 4 to 18), Produce v2 (1, the broker closed")


def test_epochs_are_a_members_own():
    """KIP-848: two members of a group have epochs that move apart."""
    remap = Remap()
    layout = layout_of("ConsumerGroupHeartbeatRequest", 1)
    blank = {**example("ConsumerGroupHeartbeatRequest", 1), "group_id": "g"}
    for member, then, now in (("m-1", 2, 5), ("m-2", 2, 7)):
        request = {**blank, "member_id": member, "member_epoch": 0}
        answer = example("ConsumerGroupHeartbeatResponse", 1) | {"member_id": member}
        captured, live = answer | {"member_epoch": then}, answer | {"member_epoch": now}
        remap.learn("ConsumerGroupHeartbeat", request, captured, live)
    for member, now in (("m-1", 5), ("m-2", 7)):
        sent = remap.request(layout, {**blank, "member_id": member, "member_epoch": 2})
        assert sent["member_epoch"] == now
        for own in (0, -1, -2):
            sent = remap.request(layout, {**blank, "member_id": member, "member_epoch": own})
            assert sent["member_epoch"] == own


def test_a_request_without_ids_stays_the_same_object():
    layout = layout_of("ProduceRequest", 9)
    body = example("ProduceRequest", 9)
    records = encode_batch([Record(0, 5, b"k", b"v", ())])
    body["topic_data"] = [{"name": "a", "partition_data": [{"index": 0, "records": records}]}]
    assert Remap().request(layout, body) is body
    assert Remap(prefix="x-").request(layout, body) is body


def test_batches_that_wait_for_their_like_are_opened_when_there_are_too_many():
    comparison = Comparison(limits=Limits(waiting_batch_bytes=0))
    layout = layout_of("FetchResponse", 12)
    comparison.compare("Fetch", 12, 1, layout, answers(b"x", b"y"), answers())
    comparison.compare("Fetch", 12, 2, layout, answers(), answers(b"x", b"y"))
    assert list(comparison.all()) == []
    comparison.compare("Fetch", 12, 3, layout, answers(b"x", b"y", b"r"), answers())
    (found,) = comparison.all()
    assert (found.then, found.now) == ("3 records", "2 of them fetched")


def test_groups_of_several_nodes_are_one_list():
    layout = layout_of("ListGroupsResponse", 4)
    blank = {"protocol_type": "consumer", "group_state": "Stable"}
    one, other = ({**blank, "group_id": name} for name in ("a", "b"))
    body = example("ListGroupsResponse", 4)

    def compared(*pairs):
        comparison = Comparison(spread=True)
        for captured, live in pairs:
            sides = ({**body, "groups": side} for side in (captured, live))
            comparison.compare("ListGroups", 4, 1, layout, *sides)
        return [(each.path, each.then) for each in comparison.all()]

    assert compared(([one], [other]), ([other], [one])) == []
    assert compared(([one], []), ([other], [one])) == [("groups[]", "b")]


def test_certificates_are_verified_as_clients_do_it() -> None:
    """Chain, name and dates; not the identifiers that Python 3.13 asks for."""
    context = tls_context(None)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert not context.verify_flags & ssl.VerifyFlags.VERIFY_X509_STRICT
