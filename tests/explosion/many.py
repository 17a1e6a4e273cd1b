"""Very many frames, clients, groups, sessions and connections."""

from collections.abc import Iterable, Iterator
from typing import Any

from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.explosion.turns import Turn, at_once, exchange, produce
from tests.kit.wire import framed, partition, request, response


def _beats(n: int, first: int = 0) -> Iterator[bytes]:
    return (response("Heartbeat", 0, index) for index in range(first, first + n))


def tiny_frames(n: int) -> list[Turn]:
    return at_once((request("Heartbeat", 0, index) for index in range(n)), _beats(n))


def unanswered(n: int) -> list[Turn]:
    return tiny_frames(n)[:1]


def unanswered_on_many(n: int) -> Iterator[list[Turn]]:
    """The same, 50,000 on each connection."""
    for begin in range(0, n, 50_000):
        yield unanswered(min(50_000, n - begin))


def orphans(n: int) -> list[Turn]:
    return at_once([request("Heartbeat", 0, 1)], _beats(n, 1000))


def empty_frames(n: int) -> list[Turn]:
    return at_once([request("Heartbeat", 0, 1), bytes(4) * n], _beats(1, 1))


def clients(n: int) -> list[Turn]:
    return at_once(
        (request("ApiVersions", 0, index, f"client{index}") for index in range(n)),
        (response("ApiVersions", 0, index) for index in range(n)),
    )


def groups(n: int) -> list[Turn]:
    return at_once(
        (request("Heartbeat", 3, at, group_id=f"g{at}", member_id="m") for at in range(n)),
        (response("Heartbeat", 3, index, error_code=27) for index in range(n)),
    )


def long_client_ids(n: int) -> list[Turn]:
    names = (f"{index:06d}" + "c" * 29_994 for index in range(n))
    return at_once((request("Heartbeat", 0, *each) for each in enumerate(names)), _beats(n))


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
            ("FindCoordinator", 1, {"key": name}, node | {"error_code": 15, "error_message": name}),
            ("ApiVersions", 3, {"client_software_name": name}, {}),
        ]
        yield exchange(*asked[index % len(asked)])


def _wanted(numbers: Iterable[int], topic: str = "t") -> list[dict[str, Any]]:
    """Partitions of a topic from their begin."""
    parts = [{"partition": number, "partition_max_bytes": 1} for number in numbers]
    return [{"topic": topic, "partitions": parts}]


def _in_session(number: int, session: int, epoch: int, topics: list[dict[str, Any]]) -> list[Turn]:
    asked = {"session_id": session if epoch else 0, "session_epoch": epoch, "topics": topics}
    return exchange("Fetch", 11, asked, {"session_id": session}, number)


def sessions(n: int) -> list[Turn]:
    """A fetch session of n partitions, and n empty requests of it."""
    turns = _in_session(0, 7, 0, _wanted(range(0, 2 * n, 2)))
    return turns + [turn for index in range(1, n) for turn in _in_session(index, 7, index, [])]


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
        turns += _in_session(number, number + 1, 0, _wanted(range(min(50_000, n - begin))))
    return turns


def log_ends(n: int) -> Iterator[list[Turn]]:
    """Fetch responses with n partitions in all, 50,000 on each connection."""
    for begin in range(0, n, 50_000):
        parts = [partition(at, high_watermark=begin + at) for at in range(min(50_000, n - begin))]
        yield exchange("Fetch", 11, {}, {"responses": [{"topic": "t", "partitions": parts}]})


def tokens(n: int) -> list[Turn]:
    begun = exchange("SaslHandshake", 0, {"mechanism": "GSSAPI"}, {"mechanisms": ["GSSAPI"]})
    return begun + [(side, framed(b"\x60" * 5)) for _ in range(n) for side in (0, 1)]


def connections(n: int) -> Iterator[list[Turn]]:
    for index in range(n):
        yield exchange("ApiVersions", 0, {"client_id": f"c{index}"}, {}, index)


def produced(n: int) -> Iterator[list[Turn]]:
    """Every Produce of another topic, in thousands of frames."""
    data = encode_batch([Record(0, 1, None, b"", ())])
    for begin in range(0, n, 1_000):
        some = range(begin, min(n, begin + 1_000))
        asked = [produce(index, data, topic=f"topic{index}")[0][1] for index in some]
        told = [response("Produce", 7, index) for index in some]
        yield at_once(asked, told)


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
    return at_once(asked, told)


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
    return at_once(asked, told)


def rejoins(n: int) -> list[Turn]:
    """One group whose members join again and again, each under another name."""
    turns: list[Turn] = []
    for index in range(n):
        member: dict[str, Any] = {"member_id": f"m{index}"}
        told = member | {"generation_id": index, "leader": "m0"}
        turns += exchange("JoinGroup", 2, member | {"group_id": "g"}, told, index)
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
        given = {"topic_partitions": [{"topic_id": bytes(16), "partitions": [0]}]}
        told: dict[str, Any] = {"member_id": member, "member_epoch": index + 1 if comes else -1}
        told |= {"error_code": 0, "assignment": given if comes else None}
        turns += exchange("ConsumerGroupHeartbeat", 0, said, told, index)
    return turns


def errors(n: int) -> list[Turn]:
    """Every response an error, in turn one of those with a meaning."""
    asked = [request("Heartbeat", 0, index, group_id="g") for index in range(n)]
    told = [response("Heartbeat", 0, index, error_code=index % 120) for index in range(n)]
    return at_once(asked, told)


def growing_sessions(n: int) -> list[Turn]:
    """A fetch session to which each request adds a topic."""
    return [
        turn
        for index in range(n)
        for turn in _in_session(index, 7, index, _wanted([0], f"t{index}"))
    ]
