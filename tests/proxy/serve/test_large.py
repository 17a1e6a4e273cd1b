"""Captures that are larger than what a served one may keep, and work that grows as they do."""

import asyncio
import resource
import time
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.topics import TopicNames, short_id
from kafkascope.captures.inputs.spool import Spool
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.serve.broker import Library
from kafkascope.proxy.serve.captured_cluster import CapturedCluster
from kafkascope.proxy.serve.log import ENTRY_BYTES, Entry, Log, PendingMarker, _marker
from kafkascope.proxy.serve.server import Server
from tests.explosion.turns import exchange as told
from tests.explosion.turns import write_capture
from tests.kit.run import run
from tests.kit.samples import SAMPLES
from tests.kit.served import PRODUCER, batch


def exchange(api: str, key: int, request: Any, response: Any) -> Any:
    return SimpleNamespace(
        api=api, api_key=key, api_version=9, request_body=request, response_body=response
    )


def produced(model: CapturedCluster, topic: str, base: int, data: bytes) -> None:
    asked = {"topic_data": [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]}
    told = {"index": 0, "error_code": 0, "base_offset": base}
    answer = {"responses": [{"name": topic, "partition_responses": [told]}]}
    model.add(exchange("Produce", 0, asked, answer))


def ended(model: CapturedCluster, *, committed: bool = True) -> None:
    asked = {"producer_id": PRODUCER, "committed": committed}
    model.add(exchange("EndTxn", 26, asked, {"error_code": 0}))


def test_records_are_kept_up_to_a_limit() -> None:
    model = CapturedCluster(TopicNames(), Limits(captured_bytes=100_000))
    data = batch(bytes(10_000))
    for number in range(100):
        produced(model, "orders", number, data)
    model.finish()
    log = model.topics["orders"].partitions[0].log
    assert 100_000 < log.bytes < 100_000 + 2 * len(data)
    assert model.records_dropped == 100 - log.end
    unplaced = {"acks": 0, "topic_data": [
        {"name": "orders", "partition_data": [{"index": 0, "records": data}]}
    ]}  # fmt: skip
    model.add(exchange("Produce", 0, unplaced, None))
    assert model.records_dropped == 101 - log.end


def test_nodes_are_kept_up_to_a_limit() -> None:
    # Each has a listener: with 40,000 there were no file descriptors left, and a fault.
    model = CapturedCluster(TopicNames(), Limits(served_nodes=3))
    part = {"partition_index": 0, "leader_id": 9, "replica_nodes": [9]}
    topic = {"name": "orders", "error_code": 0, "partitions": [part]}
    for nodes, more in (([4, 5], False), ([4, 5, 6], False), ([4, 9], True)):
        brokers = [{"node_id": node, "host": f"h{node}", "port": 9092} for node in nodes]
        told = {"brokers": brokers, "controller_id": 9, "topics": [topic]}
        model.add(exchange("Metadata", 3, {"topics": None}, told))
        assert model.nodes_truncated == more
    fetched = model.partition("fetched", 0)
    model.finish()
    assert sorted(model.nodes) == [4, 5, 6]
    assert fetched.leader == 4
    assert model.controller == model.topics["orders"].partitions[0].leader == 4


def test_listeners_that_cannot_be_opened_are_told(tmp_path: Path) -> None:
    path = tmp_path / "nodes.pcapng"
    brokers = [{"node_id": node, "host": f"h{node}", "port": 1, "rack": None} for node in range(9)]
    write_capture(path, iter([told("Metadata", 1, {}, {"brokers": brokers})]))
    served = run("serve", path, "--listen", "127.0.0.1:65530")
    assert served.exit_code == 3, served.output
    assert "127.0.0.1:65536: ports exceed 65535: 9 nodes listen from 65530 on" in served.output

    async def listen() -> None:
        server = Server()
        try:
            for _ in range(100):
                await server.listen("127.0.0.1", 0)
        finally:
            await server.stop()

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_ = sum(1 for _ in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_ + 20, limits[1]))
    try:
        # asyncio of Python 3.13 tells of the address alone.
        with pytest.raises(OSError, match=r"Too many open files|could not bind on any address"):
            asyncio.run(listen())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_the_end_of_a_transaction_concerns_what_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Log] = []
    ends = Log.end_captured
    monkeypatch.setattr(
        Log, "end_captured", lambda log, *words: asked.append(log) or ends(log, *words)
    )
    model = CapturedCluster(TopicNames())
    for number in range(200):
        produced(model, f"topic {number}", 0, batch(b"plain"))
    for number in range(100):
        # Each before the one that was there: the log is not in order any more.
        produced(model, "topic 7", 1_000 - 2 * number, batch(b"x", transaction=True))
        ended(model, committed=bool(number % 2))
    ended(model)
    log = model.topics["topic 7"].partitions[0].log
    assert asked == [log] * 100
    model.finish()
    # Every transaction has got its marker behind it.
    assert [each.marker for each in log.entries(802)][1::2] == [
        number % 2 for number in reversed(range(100))
    ]
    assert log.stable == log.end


def test_topics_have_the_ids_that_messages_told() -> None:
    names = TopicNames()
    model = CapturedCluster(names)
    orders = model.topic("orders")
    names.learn(b"1" * 16, "orders")
    names.learn(b"2" * 16, "orders")
    names.learn(b"3" * 16, "late")
    model.finish()
    assert orders.id == b"1" * 16
    assert model.topic("late").id == b"3" * 16
    assert len(model.topic("unknown").id) == 16


def test_names_that_come_late_are_found_in_linear_time() -> None:
    names = TopicNames()
    ids = [number.to_bytes(4, "big") + bytes(11) + b"x" for number in range(1, 60_001)]
    start = time.process_time()
    for number, each in enumerate(ids):
        names.learn(each, f"topic {number}")
        assert names.late(short_id(each)) == f"topic {number}"
    # Each look went over all names: 20 seconds.
    assert time.process_time() - start < 5


def test_a_library_keeps_values_up_to_a_limit() -> None:
    with open_capture([SAMPLES / "libraries.pcap"], spool=Spool()) as capture:
        session = Session(capture.context, capture.source.read)
        made = Library(session, Limits(captured_values=50, compared_values=5))
        keys = set()
        seen = 0
        for each in capture.exchanges():
            made.add(each)
            seen += 1
            if each.request_body is not None and each.response_body is not None:
                keys.add(each.api_key)
        kept = made._values
        assert all(len(values) <= 5 for values in kept.values())
        assert sum(map(len, kept.values())) < 50 + 5 * (len(keys) + 1)
        # Of each API there is one, and the session has no others.
        assert made._indexes.keys() == keys
        assert len(session) == len(kept) < seen


def transactions(seed: int) -> Log:
    """A log that was read in any order, with transactions that ended and those that did not."""
    chance, log = Random(seed), Log()
    for _ in range(chance.randrange(1, 25)):
        kind, base, producer = chance.random(), chance.randrange(40), chance.randrange(1, 4)
        more = {"attributes": 0x10, "producer_id": producer, "producer_epoch": 0}
        values = [b"x"] * chance.randrange(1, 4)
        if kind < 0.6:
            log.add(batch(*values, base=base, **more))
        elif kind < 0.7:
            log.add(batch(*values, base=base))
        elif kind < 0.8:
            log.add(_marker(base, producer, 0, chance.randrange(2), 0).data)
        else:
            log.end_captured(producer, bool(chance.randrange(2)))
    for producer in (1, 2, 3):
        log.end_captured(producer, True)
    return log


def marked_one_by_one(entries: list[Entry], pending: list[PendingMarker]) -> list[Entry]:
    """Place each marker that is pending at the first free offset behind its transaction."""
    fetched = {entry.base for entry in entries if entry.marker is not None}
    for each in pending:
        place = each.last + 1
        behind = sorted(entry for entry in entries if entry.base > each.last)
        for entry in behind:
            place = entry.last + 1 if entry.base == place else place
        own = next((entry.base for entry in behind if entry.producer == each.producer), None)
        if own is None or (own > place and own not in fetched):
            entries.append(_marker(place, each.producer, 0, each.marker, 0))
    return sorted(entries)


@pytest.mark.parametrize("seed", range(300))
def test_markers_that_nobody_fetched_stand_where_there_was_room(seed: int) -> None:
    log, other = transactions(seed), transactions(seed)
    pending, other._pending = other._pending, []
    log.finish()
    other.finish()
    assert list(log.entries(0)) == marked_one_by_one(list(other.entries(0)), pending)
    assert log.bytes == sum(len(entry.data) + ENTRY_BYTES for entry in log.entries(0))
    assert log.stable == log.end


def test_markers_of_many_producers_are_placed_in_linear_time() -> None:
    log, count = Log(), 10_000
    for number in range(count):
        data = batch(b"x", base=number, attributes=0x10, producer_id=number + 1, producer_epoch=0)
        log.add(data)
        log.end_captured(number + 1, True)
    start = time.process_time()
    log.finish()
    # Each went over all batches behind it: 16 seconds.
    assert time.process_time() - start < 3
    assert log.end == 2 * count
    assert log.stable == log.end


@pytest.mark.parametrize("seed", range(200))
def test_batches_are_in_order_and_none_has_an_offset_of_another(seed: int) -> None:
    chance, log = Random(seed), Log()
    told: dict[int, bytes] = {}
    for _ in range(30):
        base, count = chance.randrange(60), chance.randrange(1, 4)
        values = [Record(base + n, chance.randrange(40), None, b"x", ()) for n in range(count)]
        data = encode_batch(values)
        told.setdefault(base, data)
        log.add(data)
        assert log.bytes == sum(len(each) + ENTRY_BYTES for each in told.values())
    log.finish()
    plain = list(log.entries(0))
    assert [told[each.base] for each in plain] == [each.data for each in plain]
    assert all(one.last < other.base for one, other in pairwise(plain))
    # What is missing has an offset of another.
    gone = told.keys() - {each.base for each in plain}
    assert all(any(each.base <= base <= each.last for each in plain) for base in gone)
    assert log.bytes == sum(len(each.data) + ENTRY_BYTES for each in plain)
    assert (log.start, log.end) == (plain[0].base, plain[-1].last + 1)
    for offset in range(-1, 65):
        assert list(log.entries(offset)) == [each for each in plain if each.last >= offset]
    times = [each.max_timestamp for each in plain]
    newest = plain[times.index(max(times))]
    assert log.newest() == (newest.last, newest.max_timestamp)
    for timestamp in range(-1, 41):
        late = [each for each in plain if each.max_timestamp >= timestamp]
        first = (late[0].base, late[0].max_timestamp) if late else (-1, -1)
        assert log.offset_for(timestamp) == first


def test_an_empty_log_has_nothing() -> None:
    log = Log()
    log.finish()
    assert not list(log.entries(0))
    assert log.newest() == log.offset_for(0) == (-1, -1)


def test_offsets_by_time_are_found_without_a_look_at_all_batches() -> None:
    log = Log()
    for at in range(400_000):
        log._put(Entry(at, at, at, 2, b""))
    start = time.process_time()
    for at in range(0, 400_000, 1_000):
        assert log.offset_for(at) == (at, at)
        assert next(log.entries(at)).base == at
        assert log.newest() == (399_999, 399_999)
    # Each look went over all batches: 20 seconds.
    assert time.process_time() - start < 3


def test_batches_that_come_from_the_end_take_no_longer() -> None:
    took = []
    data = [batch(b"", base=2 * number) for number in range(20_000)]
    for each in (data, data[::-1]):
        log = Log()
        start = time.process_time()
        for piece in each:
            log.add(piece)
        log.finish()
        took.append(time.process_time() - start)
    assert took[1] < 10 * took[0] + 0.5
