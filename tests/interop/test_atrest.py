"""Files that real brokers wrote, read back equal to what was produced, and as Kafka's own tool
reads them."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.logdir.opening import AtRest, open_at_rest
from tests.analyzer.logdir.verdicts import records_in, verdicts_on
from tests.interop.brokers import Cluster, KRaftCluster
from tests.interop.writing import COUNT, make, produce
from tests.interop.zookeeper import ZooKeeperCluster

pytestmark = pytest.mark.interop

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OLD_CODECS = CODECS[:-1]
FORMATS = {0: "0.9.0", 1: "0.10.0", 2: "0.11.0"}

Rows = dict[str, list[tuple[Any, ...]]]
"""Topic -> (key, value, headers, time) in the order of production."""


class Written:
    """The folder of a broker that has stopped, and what was produced to it."""

    def __init__(self, cluster: Cluster, rows: Rows) -> None:
        self.cluster = cluster
        self.rows = rows
        self.segments = sorted(cluster.home.rglob("0*.log"))

    def folder(self, topic: str) -> Path:
        return next(p.parent for p in self.segments if p.parent.name == f"{topic}-0")

    def read(self, topic: str) -> AtRest:
        found = open_at_rest(self.folder(topic))
        assert found is not None
        return found


def transact(bootstrap: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "at-rest"})
    producer.init_transactions(30)
    for turn in range(4):
        producer.begin_transaction()
        for i in range(5):
            producer.produce("tx", value=f"{turn}-{i}")
        producer.flush(30)
        if turn % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def compacted(bootstrap: str, cluster: Cluster) -> None:
    """Write the same ten keys until the cleaner has been there."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    end = time.monotonic() + 240
    turn = 0
    while time.monotonic() < end:
        for i in range(30):
            producer.produce("compact", key=f"k{i % 10}", value=f"{turn}-{i}" * 5)
        producer.flush(30)
        turn += 1
        time.sleep(1.1)  # beyond segment.ms: the next write rolls
        if any(cluster.home.rglob("compact-0/*.log.deleted")):
            return
    raise AssertionError("the cleaner did not come")


@pytest.fixture(scope="module")
def modern(java: None) -> Iterator[Written]:
    settings = {
        "log.segment.bytes": "100000",
        "log.index.interval.bytes": "200",
        "log.cleaner.backoff.ms": "300",
        "log.cleaner.dedupe.buffer.size": "8388608",
    }
    often = {
        "cleanup.policy": "compact",
        "segment.ms": "1000",
        "max.compaction.lag.ms": "1000",
        "min.cleanable.dirty.ratio": "0.01",
    }
    with KRaftCluster("3.9.2", settings=settings) as cluster:
        bootstrap = cluster.bootstrap()
        make(bootstrap, {**{f"c.{c}": {} for c in CODECS}, "tx": {}, "compact": often})
        rows = {
            f"c.{codec}": produce(bootstrap, f"c.{codec}", codec, headers=True, times=True)
            for codec in CODECS
        }
        transact(bootstrap)
        compacted(bootstrap, cluster)
        for node in cluster.nodes:
            node.stop(seconds=120)  # in order: else files are as after a crash
        yield Written(cluster, rows)


@pytest.fixture(scope="module")
def old(java: None) -> Iterator[Written]:
    settings = {"log.segment.bytes": "100000", "log.index.interval.bytes": "200"}
    with ZooKeeperCluster("3.9.2", settings=settings) as cluster:
        bootstrap = cluster.bootstrap()
        names = {f"m{m}.{c}": (m, c) for m in FORMATS for c in OLD_CODECS}
        make(
            bootstrap,
            {name: {"message.format.version": FORMATS[m]} for name, (m, _) in names.items()},
        )
        rows = {
            name: produce(bootstrap, name, codec, headers=False, times=magic > 0)
            for name, (magic, codec) in names.items()
        }
        for node in cluster.nodes:
            node.stop(seconds=120)  # in order: else files are as after a crash
        yield Written(cluster, rows)


@pytest.fixture(params=["modern", "old"])
def written(request: pytest.FixtureRequest) -> Written:
    found: Written = request.getfixturevalue(request.param)
    return found


def test_records_are_those_that_were_produced(written: Written) -> None:
    from kafkascope.times import iso_ms

    for topic, rows in written.rows.items():
        read = list(records_in(written.read(topic)))
        shown = [(r["key"], r["value"], r["headers"], r["time"]) for r in read]
        assert shown == [(k, v, h, iso_ms(t)) for k, v, h, t in rows], topic
        assert [r["offset"] for r in read] == list(range(COUNT))


def test_magic_and_codec_are_those_of_the_topic(old: Written, modern: Written) -> None:
    seen = set()
    for topic in old.rows:
        seen |= {(row.magic, row.codec) for row, _ in old.read(topic).batches()}
    assert seen == {(magic, codec) for magic in FORMATS for codec in OLD_CODECS}
    for codec in CODECS:
        assert {row.codec for row, _ in modern.read(f"c.{codec}").batches()} == {codec}


DUMPED = re.compile(r"(\w+): (\S+)")


def dumped(written: Written) -> dict[str, list[tuple[Any, ...]]]:
    """What Kafka's DumpLogSegments says of each batch."""
    files = ",".join(map(str, written.segments))
    text = written.cluster.tool("kafka.tools.DumpLogSegments", "--files", files)
    found: dict[str, list[tuple[Any, ...]]] = {}
    rows: list[tuple[Any, ...]] = []
    for line in text.splitlines():
        if line.startswith("Dumping "):
            rows = found.setdefault(line.removeprefix("Dumping "), [])
        of = dict(DUMPED.findall(line))
        if "position" in of:
            rows.append(
                (
                    int(of["position"]),
                    int(of["size"]),
                    int(of.get("lastOffset", of.get("offset", -1))),
                    int(of["magic"]),
                    of["compresscodec"],
                    int(of["crc"]),
                    of["isvalid"] == "true",
                    of.get("isTransactional") == "true",
                    of.get("isControl") == "true",
                    int(of.get("producerId", -1)),
                    int(of.get("baseSequence", -1)),
                )
            )
    return found


def test_batches_are_as_kafkas_own_tool_sees_them(written: Written) -> None:
    theirs = dumped(written)
    compared = 0
    for path in written.segments:
        found = open_at_rest(path)
        assert found is not None
        ours = [
            (
                row.position,
                row.size,
                row.last_offset,
                row.magic,
                row.codec,
                row.crc,
                row.crc_ok,
                row.transactional,
                row.control,
                row.producer_id,
                row.base_sequence,
            )
            for row, _ in found.batches()
        ]
        assert ours == theirs.get(str(path), []), path
        compared += len(ours)
    print(f"\n{compared} batches in {len(written.segments)} segments compared")
    assert compared > 100


def test_every_file_of_a_broker_is_known_and_sound(written: Written) -> None:
    unknown = set()
    for path in sorted(written.cluster.home.rglob("data*/**/*")):
        if not path.is_file() or path.name.startswith("."):
            continue
        found = open_at_rest(path)
        if found is None:
            unknown.add(path.name)
            continue
        for verdict in verdicts_on(found):
            assert verdict.sound, verdict.lines()
            assert verdict.notes == (), verdict.lines()
    assert unknown == set()


def test_internal_topics_are_decoded_whole(modern: Written) -> None:
    decoded = 0
    for path in modern.segments:
        found = open_at_rest(path)
        if found is None or not (found.topic or "").startswith("__"):
            continue
        for record in records_in(found):
            told = record["decoded"]
            assert "error" not in told
            decoded += 1
    assert decoded > 50


def test_transactions_and_compaction_leave_their_traces(modern: Written) -> None:
    rows = [row for row, _ in modern.read("tx").batches()]
    assert sum(row.control for row in rows) == 4
    aborted = open_at_rest(modern.folder("tx") / "00000000000000000000.txnindex")
    assert aborted is not None
    assert len(aborted.small().entries) == 2
    offsets = [record["offset"] for record in records_in(modern.read("compact"))]
    assert offsets == sorted(offsets)
    assert len(offsets) < offsets[-1] + 1
