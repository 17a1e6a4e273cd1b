"""Replay without a broker: what may be sent, to whom, with which ids; what counts as different."""

import asyncio
import gc
import ssl
import struct
import weakref
from pathlib import Path
from typing import Any

import pytest

from kafkascope.dissectors.records.records import Partial, Record, batches, crc_ok
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import APIS, layout_of, write_layout
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
from tests.kit.proxy import Link, beat, broker, echo, sink
from tests.kit.wire import full_body


def body(name: str, version: int, **fields: Any) -> dict[str, Any]:
    return full_body(name, version, fields)


def test_what_reads_says_read_or_list_or_describe():
    odd = {"ApiVersions", "Metadata", "Fetch", "OffsetFetch", "FindCoordinator"}
    odd |= {"OffsetForLeaderEpoch", "GetTelemetrySubscriptions"}
    for name in {api.name for api in APIS.values() if api.effect == "read"} - odd:
        assert "List" in name or "Describe" in name, name


@pytest.mark.parametrize(
    ("key", "asked", "permit", "why"),
    [
        (0, body("ProduceRequest", 9), (), "changes data or state (--allow-writes)"),
        (0, body("ProduceRequest", 9), (True,), ""),
        (11, body("JoinGroupRequest", 5), (True,), "--group-prefix"),
        (11, body("JoinGroupRequest", 5), (True, True), ""),
        (1, body("FetchRequest", 12, replica_id=-1), (), ""),
        (1, body("FetchRequest", 12, replica_id=2), (True, True), "sent by brokers only"),
        (None, None, (), "not a request of a known API"),
        (1, None, (), "the request cannot be decoded"),
    ],
)
def test_nothing_that_changes_is_sent_unasked(key, asked, permit, why):
    told = refusal(key, asked, Permit(*permit))
    assert why in told if why else told == ""


def test_who_serves_an_api():
    served = {api.name: api.server for api in APIS.values()}
    assert served["Produce"] == "leader"
    assert served["TxnOffsetCommit"] == "group"
    assert served["EndTxn"] == "transaction"
    assert served["CreateTopics"] == "controller"
    assert served["ApiVersions"] == "node"


def fetch(*partitions: tuple[str, int]) -> dict:
    topics: dict[str, list] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append({"partition": number})
    named = [{"topic": topic, "partitions": parts} for topic, parts in topics.items()]
    return body("FetchRequest", 12, session_epoch=-1, topics=named)


LAYOUT = layout_of("FetchRequest", 12)
LEADERS = {("a", 0): 1, ("a", 1): 2, ("b", 0): 1}


def leader_of(topic: str | bytes, partition: int) -> int:
    return LEADERS.get((topic, partition), -1)


def test_a_request_is_split_by_leaders_and_nothing_is_lost():
    asked = fetch(("a", 0), ("a", 1), ("b", 0))
    asked["forgotten_topics_data"] = [{"topic": "a", "partitions": [1]}]
    parts = split.by_leader(LAYOUT, asked, leader_of)
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
    asked = body("DescribeGroupsRequest", 5, groups=["x", "y", "z"])
    nodes = {"x": 1, "y": 2, "z": 1}
    parts = split.by_coordinator(layout, asked, nodes.__getitem__, "groupId")
    assert {node: part["groups"] for node, part in parts.items()} == {1: ["x", "z"], 2: ["y"]}
    layout = layout_of("HeartbeatRequest", 4)
    asked = body("HeartbeatRequest", 4, group_id="y")
    assert split.by_coordinator(layout, asked, nodes.__getitem__, "groupId") == {2: asked}


def produced(**topics: list[tuple[int, int]]) -> dict:
    """A Produce response: topic -> partitions with their base offsets."""
    responses = [
        {
            "name": name,
            "partition_responses": [{"index": index, "base_offset": at} for index, at in parts],
        }
        for name, parts in topics.items()
    ]
    return body("ProduceResponse", 9, responses=responses)


def test_answers_become_one():
    second = produced(a=[(1, 4)], b=[]) | {"throttle_time_ms": 9}
    layout = layout_of("ProduceResponse", 9)
    both = split.merged(layout, [produced(a=[(0, 4)]), second])
    assert both == produced(a=[(0, 4), (1, 4)], b=[]) | {"throttle_time_ms": 9}


def test_a_log_that_is_further_on_is_told_once():
    layout = layout_of("ProduceResponse", 9)
    comparison, strict = Comparison(), Comparison(strict=True)

    def compare(*offsets):
        sides = [
            produced(orders=[(i, pair[side]) for i, pair in enumerate(offsets)]) for side in (0, 1)
        ]
        for each in (comparison, strict):
            each.compare("Produce", 9, 1, layout, *sides)

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
    captured = body("JoinGroupResponse", 5, member_id="c-1", generation_id=4)
    live = {**captured, "member_id": "l-1", "generation_id": 1}
    remap.learn("JoinGroup", body("JoinGroupRequest", 5, group_id="g"), captured, live)
    asked = body("HeartbeatRequest", 4, group_id="g", member_id="c-1", generation_id=4)
    sent = remap.request(layout_of("HeartbeatRequest", 4), asked)
    assert (sent["group_id"], sent["member_id"], sent["generation_id"]) == ("test-g", "l-1", 1)
    answer = remap.response(layout_of("JoinGroupResponse", 5), live)
    assert answer["member_id"] == "c-1"
    topics = [{"topic_id": Uuid(bytes([1]) * 16), "partitions": []}]
    sent = remap.request(layout_of("FetchRequest", 13), body("FetchRequest", 13, topics=topics))
    assert sent["topics"][0]["topic_id"] == bytes([2]) * 16


def produce(records: bytes) -> dict:
    data = [{"name": "a", "partition_data": [{"index": 0, "records": records}]}]
    return body("ProduceRequest", 9, topic_data=data)


def test_batches_get_the_producer_that_the_peer_knows():
    remap = Remap()
    remap.producers.learn(
        {"producer_id": 7, "producer_epoch": 0}, {"producer_id": 1000, "producer_epoch": 3}
    )
    data = encode_batch([Record(0, 5, b"k", b"v", ())], producer_id=7, producer_epoch=1)
    answer = remap.request(layout_of("ProduceRequest", 9), produce(data + data))
    sent = answer["topic_data"][0]["partition_data"][0]["records"]
    found = list(batches(sent))
    assert len(found) == 2
    for batch in found:
        assert not isinstance(batch, Partial)
        # The client raised its epoch once, so the peer's is raised once.
        assert (batch.producer_id, batch.producer_epoch) == (1000, 4)
        assert crc_ok(sent, batch)
    asked = {"v3_and_below_producer_id": 7, "v3_and_below_producer_epoch": 0}
    name = "AddPartitionsToTxnRequest"
    sent = remap.request(layout_of(name, 3), body(name, 3, **asked))
    assert sent["v3_and_below_producer_id"] == 1000
    assert sent["v3_and_below_producer_epoch"] == 3


def test_what_differs_by_nature_is_no_difference():
    layout = layout_of("MetadataResponse", 9)
    captured = body("MetadataResponse", 9, brokers=[{"node_id": 1, "host": "a", "port": 1}])
    live = body("MetadataResponse", 9, controller_id=3, throttle_time_ms=4)
    assert Comparison().compare("Metadata", 9, 1, layout, captured, live) == []
    assert Comparison(strict=True).compare("Metadata", 9, 1, layout, captured, live)


def test_served_versions_are_told_by_api():
    layout = layout_of("ApiVersionsResponse", 0)
    then, now = (
        {"error_code": 0, "api_keys": [{"api_key": 1, "min_version": low, "max_version": high}]}
        for low, high in ((0, 11), (4, 18))
    )
    comparison = Comparison()
    comparison.compare("ApiVersions", 0, 1, layout, then, now)
    (found,) = comparison.all()
    assert (found.path, found.then, found.now) == ("versions of Fetch", "0-11", "4-18")


def answers(*values: bytes) -> dict:
    rows = [Record(n, 5, None, value, ()) for n, value in enumerate(values)]
    part = {"partition_index": 0, "records": encode_batch(rows) if rows else None}
    return body("FetchResponse", 12, responses=[{"topic": "a", "partitions": [part]}])


def compared(comparison: Comparison, *pairs: tuple[dict, dict]) -> list[Any]:
    """What differs between pairs of Fetch responses."""
    for number, pair in enumerate(pairs, 1):
        comparison.compare("Fetch", 12, number, layout_of("FetchResponse", 12), *pair)
    return list(comparison.all())


LATER = (answers(b"x", b"y"), answers()), (answers(), answers(b"x", b"y"))


def test_records_are_compared_by_partition_not_by_answer():
    comparison = Comparison()
    assert compared(comparison, *LATER) == []
    (found,) = compared(comparison, (answers(b"x", b"y"), answers(b"x", b"z")))
    assert found.path == "records of a-0"


def test_batches_that_wait_for_their_like_are_opened_when_there_are_too_many():
    comparison = Comparison(limits=Limits(waiting_batch_bytes=0))
    assert compared(comparison, *LATER) == []
    (found,) = compared(comparison, (answers(b"x", b"y", b"r"), answers()))
    assert (found.then, found.now) == ("3 records", "2 of them fetched")


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
    async def serve(link: Link) -> None:
        await link.reader.read(100)
        if answer is None:
            await link.reader.read()
        link.send(answer or b"")

    async with sink(serve) as up:
        peer = await Peer.open(*up, Reach(timeout=0.5 if answer is None else 60))
        with pytest.raises(PeerError, match=said):
            await peer.ask("ApiVersions", 0, {})
        await peer.close()
    await asyncio.sleep(0.05)


async def test_errors_name_the_options_for_tls_and_sasl(tmp_path: Path) -> None:
    async def hang_up(link: Link) -> None:
        await link.reader.read(100)

    reach = Reach(tls=ssl.create_default_context(), timeout=60)
    async with sink(hang_up) as plain:
        with pytest.raises(PeerError, match="leave out --tls"):
            await Peer.open(*plain, reach)
        with pytest.raises(PeerError, match="may require authentication"):
            await LiveCluster([plain], Reach(timeout=60)).open()
    async with KafkaProxy("127.0.0.1:1", tls=ClientTls(), folder=tmp_path) as proxy:
        with pytest.raises(PeerError, match=r"not trusted: .* \(--cafile\)"):
            await Peer.open(*proxy.address, reach)


async def test_an_answer_that_was_used_does_not_stay_in_memory() -> None:
    async with broker(echo) as up:
        peer = await Peer.open(*up, Reach(timeout=60))
        answers = []
        for number in range(3):
            answer = peer.send(number, beat(number)[4:])
            assert await answer
            answers.append(weakref.ref(answer))
        del answer
        await asyncio.sleep(0)  # the loop has just told us of the last one
        gc.collect()
        assert [each() for each in answers] == [None] * 3
        await peer.close()


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
    name = "ConsumerGroupHeartbeat"
    layout = layout_of(f"{name}Request", 1)
    blank = body(f"{name}Request", 1, group_id="g")
    for member, then, now in (("m-1", 2, 5), ("m-2", 2, 7)):
        captured, live = (
            body(f"{name}Response", 1, member_id=member, member_epoch=at) for at in (then, now)
        )
        remap.learn(name, {**blank, "member_id": member, "member_epoch": 0}, captured, live)
    for member, now in (("m-1", 5), ("m-2", 7)):
        # Those that a member gives itself stay.
        for epoch, sent in ((2, now), (0, 0), (-1, -1), (-2, -2)):
            asked = {**blank, "member_id": member, "member_epoch": epoch}
            assert remap.request(layout, asked)["member_epoch"] == sent


def test_a_request_without_ids_stays_the_same_object():
    asked = produce(encode_batch([Record(0, 5, b"k", b"v", ())]))
    for remap in (Remap(), Remap(prefix="x-")):
        assert remap.request(layout_of("ProduceRequest", 9), asked) is asked


def test_groups_of_several_nodes_are_one_list():
    layout = layout_of("ListGroupsResponse", 4)

    def differences(*pairs):
        comparison = Comparison(spread=True)
        for pair in pairs:
            sides = (
                body("ListGroupsResponse", 4, groups=[{"group_id": n} for n in s]) for s in pair
            )
            comparison.compare("ListGroups", 4, 1, layout, *sides)
        return [(each.path, each.then) for each in comparison.all()]

    assert differences(("a", "b"), ("b", "a")) == []
    assert differences(("a", ""), ("b", "a")) == [("groups[]", "b")]


def test_certificates_are_verified_as_clients_do_it() -> None:
    """Chain, name and dates; not the identifiers that Python 3.13 asks for."""
    context = tls_context(None)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert not context.verify_flags & ssl.VerifyFlags.VERIFY_X509_STRICT
