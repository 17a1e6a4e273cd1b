"""Real brokers with their ZooKeeper: all that they and consumers of before 0.9 say to it is read to
the last byte, and what is told of it is what was done."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import NewTopic

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.zookeeper.consumers import KeptGroups
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from kafkascope.dissectors.embedded.table import embedded_in
from kafkascope.dissectors.zookeeper.paths import place_of
from kafkascope.dissectors.zookeeper.types import UNKNOWN
from tests.interop.brokers import Node
from tests.interop.needs import need
from tests.interop.processes import run
from tests.interop.sniff import sniff
from tests.interop.zookeeper import ZooKeeperCluster, admin_of, older

pytestmark = pytest.mark.interop

RELEASES = ("0.8.1.1", "0.8.2.2", "1.1.1", "2.8.2", "3.9.2")
SOAK = {"0.8.1.1", "1.1.1", "2.8.2"}
SECONDS = 90
VALUES = 12


class Watched(ZooKeeperCluster):
    """A cluster whose ZooKeeper is heard from before the broker starts."""

    stack: ExitStack
    path: Path

    def zookeeper(self, port: int) -> Node:
        self.stack.enter_context(sniff(self.path, [port]))
        return super().zookeeper(port)


class Seen(NamedTuple):
    """What was captured."""

    release: str
    port: int
    pairs: list[tuple[Row, Exchange]]
    tree: ZooKeeper


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=[pytest.mark.soak] if each in SOAK else []) for each in RELEASES
    ],
)
def seen(
    request: pytest.FixtureRequest, java: None, tmp_path_factory: pytest.TempPathFactory
) -> Seen:
    need("tcpdump")
    home = tmp_path_factory.mktemp("brokers")
    with ExitStack() as stack:
        cluster = Watched(request.param, home=home / "kafka", settings={"num.partitions": "2"})
        cluster.stack, cluster.path = stack, home / "zookeeper.pcap"
        with cluster:
            used(cluster)
            (port,) = cluster.ports("PLAINTEXT")
            cluster.nodes[0].stop(seconds=60)
    with open_capture([home / "zookeeper.pcap"]) as capture:
        pairs = [(row_of(each, capture.context.names), each) for each in capture.exchanges()]
    tree = ZooKeeper()
    for pair in pairs:
        tree.add(ExchangeBatch.of(*pair))
    return Seen(request.param, port, pairs, tree)


def used(cluster: Watched) -> None:
    """Make a topic, write to it, and read it as consumers before 0.9 did, where there are any."""
    keeper, broker = f"127.0.0.1:{cluster.keeper_port}", cluster.bootstrap()
    if older(cluster.version, "3.0"):
        made = ("--create", "--zookeeper", keeper, "--replication-factor", "1", "--partitions", "2")
        cluster.tool("kafka.admin.TopicCommand", *made, "--topic", "orders")
    else:
        admin = admin_of(broker)  # kept: what it was asked ends with it
        (done,) = admin.create_topics([NewTopic("orders", 2, 1)]).values()
        done.result(SECONDS)
    if older(cluster.version, "2.0"):
        values = "".join(f"value {number}\n" for number in range(VALUES))
        to = ("--broker-list", broker, "--topic", "orders")
        early = older(cluster.version, "0.8.2")  # the tools moved then
        producer, consumer = ("producer", "consumer") if early else ("tools", "tools")
        run(*cluster.java(f"kafka.{producer}.ConsoleProducer", *to), seconds=SECONDS, input=values)
        props = cluster.home / "consumer.properties"
        props.write_text("group.id=shop\nauto.offset.reset=smallest\nconsumer.id=one\n")
        read = ("--zookeeper", keeper, "--topic", "orders", "--from-beginning")
        read += ("--max-messages", str(VALUES))
        read += ("--group", "shop") if early else ("--consumer.config", str(props))
        told = cluster.tool(f"kafka.{consumer}.ConsoleConsumer", *read)
        assert told.count("value ") == VALUES


def test_all_is_read_to_the_last_byte(seen: Seen) -> None:
    assert len(seen.pairs) > 50
    for row, exchange in seen.pairs:
        assert exchange.zookeeper is not None
        assert not row.undecoded
        assert row.api != UNKNOWN
        assert row.state in ("answered", "event"), (row.number, row.api, row.reason)


def test_paths_and_contents_are_known(seen: Seen) -> None:
    kinds = set()
    for row, exchange in seen.pairs:
        asked = None if exchange.request is None else exchange.request.decoded
        if asked is None or row.errors:
            continue
        operations: list[dict[str, Any]] = asked.body.get("operations", [asked.body])
        for each in operations:
            path = each.get("path")
            if path and each.get("data") is not None:
                assert place_of(path).steps[-1].kind not in ("chroot", "unknown"), path
        kinds |= {found.kind for _, found in embedded_in(asked.layout, asked.body)}
    assert {"broker", "controller", "controller epoch", "partition state", "topic"} <= kinds
    assert "JSON" not in kinds


def test_what_was_done_is_told(seen: Seen) -> None:
    assert [each["controller"] for each in seen.tree.elections()] == [1]
    topics = {each["topic"]: each for each in seen.tree.topics()}
    assert "orders" in topics
    registered = [life for life in seen.tree.stories()[0].lives["/brokers/ids/1"] if life.text]
    assert f'"port":{seen.port}' in (registered[0].text or "")
    if older(seen.release, "2.0"):
        groups = KeptGroups(seen.tree.stories())
        (line,) = groups.lines()
        assert (line["group"], line["causes"]) == ("shop", ["1 joined", "1 left"])
        owned = [each["text"].partition("; ")[2] for each in groups.rebalances("shop")]
        assert owned == ["owned as assigned by the range assignor", "no members left"]
        assert sum(each["committed"] for each in groups.offsets("shop")) == VALUES
