"""Very many frames, clients, groups, sessions and connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.explosion.turns import Turn, exchange, produce
from tests.kit.wire import framed, request, response


def tiny_frames(n: int) -> list[Turn]:
    asked = b"".join(request("Heartbeat", 0, index) for index in range(n))
    told = b"".join(response("Heartbeat", 0, index) for index in range(n))
    return [(0, asked), (1, told)]


def unanswered(n: int) -> list[Turn]:
    return [(0, b"".join(request("Heartbeat", 0, index) for index in range(n)))]


def unanswered_on_many(n: int) -> Iterator[list[Turn]]:
    """The same, 50,000 on each connection."""
    for begin in range(0, n, 50_000):
        yield unanswered(min(50_000, n - begin))


def orphans(n: int) -> list[Turn]:
    told = b"".join(response("Heartbeat", 0, index + 1000) for index in range(n))
    return [(0, request("Heartbeat", 0, 1)), (1, told)]


def empty_frames(n: int) -> list[Turn]:
    return [(0, request("Heartbeat", 0, 1) + bytes(4) * n), (1, response("Heartbeat", 0, 1))]


def clients(n: int) -> list[Turn]:
    asked = b"".join(request("ApiVersions", 0, index, f"client{index}") for index in range(n))
    return [(0, asked), (1, b"".join(response("ApiVersions", 0, index) for index in range(n)))]


def groups(n: int) -> list[Turn]:
    asked = b"".join(
        request("Heartbeat", 3, index, group_id=f"g{index}", member_id="m") for index in range(n)
    )
    return [
        (0, asked),
        (1, b"".join(response("Heartbeat", 3, index, error_code=27) for index in range(n))),
    ]


def long_client_ids(n: int) -> list[Turn]:
    asked = b"".join(
        request("Heartbeat", 0, index, f"{index:06d}" + "c" * 29_994) for index in range(n)
    )
    return [(0, asked), (1, b"".join(response("Heartbeat", 0, index) for index in range(n)))]


def many_long_names(n: int) -> Iterator[list[Turn]]:
    """Names of 30 KB of every kind, all of them different, on connections that stay open."""
    long = "n" * 29_994
    for index in range(n):
        name = f"{index:06d}{long}"
        topic = {"name": name, "error_code": 36, "error_message": name}
        node = {"node_id": index, "host": name, "port": 9092, "rack": name}
        asked: list[tuple[str, int, dict[str, Any], dict[str, Any]]] = [
            ("Heartbeat", 3, {"group_id": name, "group_instance_id": name}, {"error_code": 27}),
            ("Heartbeat", 3, {"group_id": "g", "member_id": name}, {"error_code": 25}),
            ("InitProducerId", 1, {"transactional_id": name}, {"error_code": 53}),
            ("Metadata", 1, {"topics": [{"name": name}]}, {"brokers": [], "topics": []}),
            ("Metadata", 1, {"topics": []}, {"brokers": [node], "topics": []}),
            ("CreateTopics", 1, {"topics": []}, {"topics": [topic]}),
            (
                "FindCoordinator",
                1,
                {"key": name},
                {**node, "error_code": 15, "error_message": name},
            ),
            ("ApiVersions", 3, {"client_software_name": name}, {}),
        ]
        api, version, one, other = asked[index % len(asked)]
        yield [(0, request(api, version, 1, **one)), (1, response(api, version, 1, **other))]


def sessions(n: int) -> list[Turn]:
    """A fetch session of n partitions, and n empty requests of it."""
    parts = [
        {
            "partition": index,
            "current_leader_epoch": -1,
            "fetch_offset": 0,
            "log_start_offset": -1,
            "partition_max_bytes": 1,
        }
        for index in range(0, 2 * n, 2)
    ]
    first = request(
        "Fetch", 11, 0, session_id=0, session_epoch=0, topics=[{"topic": "t", "partitions": parts}]
    )
    rest = [
        request("Fetch", 11, index, session_id=7, session_epoch=index, topics=[])
        for index in range(1, n)
    ]
    told = [response("Fetch", 11, index, session_id=7, responses=[]) for index in range(n)]
    turns = [(0, first), (1, told[0])]
    return turns + [
        turn for pair in zip(rest, told[1:], strict=True) for turn in ((0, pair[0]), (1, pair[1]))
    ]


def producers(n: int) -> list[Turn]:
    """Every batch a producer of its own, with sequences that are out of order."""
    data = b"".join(
        encode_batch(
            [Record(0, 1, None, b"", ())], producer_id=index, producer_epoch=0, base_sequence=5
        )
        for index in range(n)
    )
    return produce(1, data)


def large_sessions(n: int) -> list[Turn]:
    """Fetch sessions of n partitions in all, 50,000 in each."""
    turns: list[Turn] = []
    for number, begin in enumerate(range(0, n, 50_000)):
        parts = [
            {"partition": index, "current_leader_epoch": -1, "fetch_offset": 0}
            | {"log_start_offset": -1, "partition_max_bytes": 1}
            for index in range(min(50_000, n - begin))
        ]
        topics = [{"topic": "t", "partitions": parts}]
        asked = request("Fetch", 11, number, session_id=0, session_epoch=0, topics=topics)
        turns.append((0, asked))
        turns.append((1, response("Fetch", 11, number, session_id=number + 1, responses=[])))
    return turns


def log_ends(n: int) -> Iterator[list[Turn]]:
    """Fetch responses with n partitions in all, 50,000 on each connection."""
    for begin in range(0, n, 50_000):
        parts = [
            {"partition_index": index, "error_code": 0, "high_watermark": begin + index}
            | {"last_stable_offset": index, "log_start_offset": 0, "aborted_transactions": None}
            | {"preferred_read_replica": -1, "records": None}
            for index in range(min(50_000, n - begin))
        ]
        topics = [{"topic": "t", "partitions": parts}]
        yield [(0, request("Fetch", 11, 1)), (1, response("Fetch", 11, 1, responses=topics))]


def tokens(n: int) -> list[Turn]:
    mechanism = request("SaslHandshake", 0, 1, mechanism="GSSAPI")
    told = response("SaslHandshake", 0, 1, error_code=0, mechanisms=["GSSAPI"])
    return [(0, mechanism), (1, told)] + [
        (side, framed(b"\x60" * 5)) for _ in range(n) for side in (0, 1)
    ]


def connections(n: int) -> Iterator[list[Turn]]:
    for index in range(n):
        yield [
            (0, request("ApiVersions", 0, index, f"c{index}")),
            (1, response("ApiVersions", 0, index)),
        ]


def produced(n: int) -> Iterator[list[Turn]]:
    """Every Produce of another topic, in thousands of frames."""
    data = encode_batch([Record(0, 1, None, b"", ())])
    for begin in range(0, n, 1_000):
        some = range(begin, min(n, begin + 1_000))
        asked = [produce(index, data, topic=f"topic{index}")[0][1] for index in some]
        told = [response("Produce", 7, index) for index in some]
        yield [(0, b"".join(asked)), (1, b"".join(told))]


def transactions(n: int) -> list[Turn]:
    """Every InitProducerId with another transactional id, and its end."""
    asked, told = [], []
    for index in range(n):
        name = f"tx{index}"
        asked.append(request("InitProducerId", 1, 2 * index, transactional_id=name))
        told.append(response("InitProducerId", 1, 2 * index, producer_id=index))
        ended: dict[str, Any] = {"transactional_id": name, "producer_id": index, "committed": False}
        asked.append(request("EndTxn", 1, 2 * index + 1, **ended))
        told.append(response("EndTxn", 1, 2 * index + 1, error_code=47))
    return [(0, b"".join(asked)), (1, b"".join(told))]


def hanging(n: int) -> list[Turn]:
    """Transactions of one id, each open for longer than its timeout."""
    turns: list[Turn] = []
    for index in range(n):
        who = {"producer_id": 7, "producer_epoch": index % 30_000}
        old = {f"v3_and_below_{name}": value for name, value in who.items()}
        old |= {"v3_and_below_transactional_id": "x"}
        old |= {"v3_and_below_topics": [{"name": "t", "partitions": [0]}]}
        added = [{"partition_index": 0, "partition_error_code": 0}]
        told = [{"name": "t", "results_by_partition": added}]
        begun = {"transactional_id": "x", "transaction_timeout_ms": 0}
        turns += exchange("InitProducerId", 1, begun, who)
        turns += exchange("AddPartitionsToTxn", 1, old, {"results_by_topic_v3_and_below": told})
        ended = who | {"transactional_id": "x", "committed": True}
        turns += exchange("EndTxn", 1, ended, {})
    return turns


def missing(n: int) -> Iterator[list[Turn]]:
    """A producer that writes two batches to each of n topics, between which others are missing, in
    thousands of frames."""
    who = {"producer_id": 7, "producer_epoch": 0}
    pair = [
        encode_batch([Record(0, 1, None, b"", ())], base_sequence=sequence, **who)
        for sequence in (0, 5)
    ]
    for begin in range(0, n, 1_000):
        yield [
            turn
            for index in range(begin, min(n, begin + 1_000))
            for place, data in enumerate(pair)
            for turn in produce(2 * index + place, data, topic=f"topic{index}")
        ]


def joins(n: int) -> list[Turn]:
    """Every JoinGroup another group, refused."""
    asked = [request("JoinGroup", 2, index, group_id=f"g{index}") for index in range(n)]
    told = [response("JoinGroup", 2, index, error_code=25) for index in range(n)]
    return [(0, b"".join(asked)), (1, b"".join(told))]


def rejoins(n: int) -> list[Turn]:
    """One group whose members join again and again, each under another name."""
    turns: list[Turn] = []
    for index in range(n):
        member: dict[str, Any] = {"member_id": f"m{index}"}
        told = member | {"generation_id": index, "leader": "m0"}
        turns.append((0, request("JoinGroup", 2, index, group_id="g", **member)))
        turns.append((1, response("JoinGroup", 2, index, **told)))
    return turns


def returns(n: int) -> list[Turn]:
    """A group of the consumer protocol whose members, all with one instance id, come and go."""
    turns: list[Turn] = []
    for index in range(n):
        member = f"m{index // 2}"
        comes = not index % 2
        said: dict[str, Any] = {"group_id": "g", "member_id": member, "instance_id": "i"}
        said |= {"member_epoch": 0 if comes else -1, "rebalance_timeout_ms": 1_000}
        said |= {"subscribed_topic_names": ["t"] if comes else None, "topic_partitions": None}
        turns.append((0, request("ConsumerGroupHeartbeat", 0, index, **said)))
        given = {"topic_partitions": [{"topic_id": bytes(16), "partitions": [0]}]}
        told: dict[str, Any] = {"member_id": member, "member_epoch": index + 1 if comes else -1}
        told |= {"error_code": 0, "assignment": given if comes else None}
        turns.append((1, response("ConsumerGroupHeartbeat", 0, index, **told)))
    return turns


def errors(n: int) -> list[Turn]:
    """Every response an error, in turn one of those with a meaning."""
    asked = [request("Heartbeat", 0, index, group_id="g") for index in range(n)]
    told = [response("Heartbeat", 0, index, error_code=index % 120) for index in range(n)]
    return [(0, b"".join(asked)), (1, b"".join(told))]


def api_versions(n: int) -> list[Turn]:
    keys = [{"api_key": index & 0x3FFF, "min_version": 0, "max_version": 3} for index in range(n)]
    return exchange("ApiVersions", 0, {}, {"api_keys": keys, "error_code": 0})


def nodes(n: int) -> list[Turn]:
    brokers = [
        {"node_id": index, "host": f"h{index}", "port": 9092, "rack": None} for index in range(n)
    ]
    return exchange("Metadata", 5, {"topics": None}, {"brokers": brokers, "topics": []})


def growing_sessions(n: int) -> list[Turn]:
    """A fetch session to which each request adds a topic."""
    turns: list[Turn] = []
    for index in range(n):
        known = {"session_id": 7 if index else 0, "session_epoch": index}
        part = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0}
        part |= {"log_start_offset": -1, "partition_max_bytes": 1}
        topics = [{"topic": f"t{index}", "partitions": [part]}]
        turns.append((0, request("Fetch", 11, index, topics=topics, **known)))
        turns.append((1, response("Fetch", 11, index, session_id=7, responses=[])))
    return turns
