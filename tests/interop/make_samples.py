"""Makes the captures in `captures/samples/` again: `make samples`, or with names of samples.

Ports and folders are fixed, so that the bytes on the wire name no machine.
"""

import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.interop import scenarios
from tests.interop.brokers import Cluster, KRaftCluster
from tests.interop.drivers import Story, drive
from tests.interop.scenarios import Scenario
from tests.interop.sniff import sniff
from tests.kit.samples import ROOT

SAMPLES = ROOT / "captures" / "samples"
TRUTH = ROOT / "tests" / "interop" / "truth"
HOME = Path("/var/tmp/kafka")  # its name is on the wire
LIMIT_BYTES = 300_000
CLIENT_PORTS = ("PLAINTEXT", "SASL_PLAINTEXT")


@dataclass(frozen=True, slots=True)
class Sample:
    """One capture: what runs while it is made."""

    name: str
    broker: str
    runs: tuple[tuple[str, tuple[Scenario, ...]], ...]
    """Clients, one after the other, and what each does."""
    what: str
    count: int = 24
    nodes: int = 1

    @property
    def file(self) -> str:
        """Name of the capture; that of a whole cluster is compressed."""
        return f"{self.name}.pcap" + (".gz" if self.nodes > 1 else "")


BY_HAND = {
    "zookeeper.pcap": "ZooKeeper 3.9.3 | kazoo 2.11.0 | every type of request that ZooKeeper has: "
    "nodes of all kinds, ACLs, watches and their events, multi, digest authentication, requests "
    "that fail",
}
"""Captured once, and not made here: `test_zookeeper.py` asks real servers the same anew."""

LIST = (
    Sample(
        "libraries",
        "4.4.0",
        (
            ("java-4.4.0", (scenarios.codecs,)),
            ("librdkafka", (scenarios.rebalance, scenarios.transactions)),
            ("aiokafka", (scenarios.sasl, scenarios.mistakes)),
        ),
        "three libraries one after the other: all codecs, acks 0, 1 and all, a group that"
        " rebalances, transactions, SASL PLAIN and SCRAM, a wrong password, requests that fail",
        count=6,
    ),
    Sample(
        "java-codecs",
        "4.4.0",
        (("java-4.4.0", (scenarios.codecs,)),),
        "every codec, topic ids instead of names in Produce and Fetch, client telemetry",
    ),
    Sample(
        "java-old",
        "3.9.2",
        (("java-0.10.2.2", (scenarios.codecs, scenarios.rebalance)),),
        "message sets of magic 1 with nested compression, Fetch 3, Produce 2",
    ),
    Sample(
        "librdkafka",
        "3.9.2",
        (("librdkafka", (scenarios.codecs, scenarios.transactions)),),
        "every codec and transactions of librdkafka",
    ),
    Sample(
        "kafka-python",
        "3.9.2",
        (("kafka-python", (scenarios.codecs, scenarios.rebalance)),),
        "every codec and a rebalance of kafka-python",
    ),
    Sample(
        "aiokafka",
        "4.4.0",
        (("aiokafka", (scenarios.codecs, scenarios.transactions)),),
        "every codec and transactions of aiokafka",
    ),
    Sample(
        "rebalance",
        "4.4.0",
        (
            ("java-4.4.0", (scenarios.rebalance,)),
            ("librdkafka", (scenarios.rebalance,)),
        ),
        "classic groups: a second member joins, shares the partitions and leaves",
    ),
    Sample(
        "transactions",
        "3.9.2",
        (
            ("java-3.9.2", (scenarios.transactions,)),
            ("java-1.1.1", (scenarios.transactions,)),
        ),
        "commit, abort, offsets in a transaction, a read_committed group; the old protocol",
    ),
    Sample(
        "sasl",
        "4.4.0",
        (
            ("java-4.4.0", (scenarios.sasl, scenarios.mistakes)),
            ("librdkafka", (scenarios.sasl, scenarios.mistakes)),
            ("kafka-python", (scenarios.sasl, scenarios.mistakes)),
        ),
        "SASL PLAIN and SCRAM-SHA-256, a wrong password",
    ),
    Sample(
        "sasl-old",
        "3.9.2",
        (("java-0.10.2.2", (scenarios.sasl,)),),
        "SaslHandshake 0 and then bare tokens without Kafka headers",
    ),
    Sample(
        "cluster",
        "4.4.0",
        (("java-4.4.0", (scenarios.transactions,)),),
        "three combined nodes from their start: client, inter-broker and controller listeners",
        nodes=3,
    ),
)


def make(sample: Sample, home: Path) -> Story:
    """Run the sample's brokers and clients, write capture and truth."""
    story = Story(sample.count)
    shutil.rmtree(HOME, ignore_errors=True)
    cluster = KRaftCluster(sample.broker, sample.nodes, HOME, base_port=9092)
    capture = home / f"{sample.name}.pcap"
    if sample.nodes == 1:
        with cluster:
            for client, _ in sample.runs:
                scenarios.prepare(cluster, client)
            with sniff(capture, cluster.ports(*CLIENT_PORTS)):
                run(sample, cluster, story, home)
    else:
        ports = [port for n in range(1, sample.nodes + 1) for port in cluster.allot(4, n)]
        with sniff(capture, ports), cluster:
            for client, _ in sample.runs:
                scenarios.prepare(cluster, client, copies=3)
            run(sample, cluster, story, home)
    keep(sample, capture)
    TRUTH.mkdir(exist_ok=True)
    truth = json.dumps(story.to_json(), separators=(",", ":"), ensure_ascii=False)
    (TRUTH / f"{sample.name}.json").write_text(truth + "\n")
    return story


def run(sample: Sample, cluster: Cluster, story: Story, home: Path) -> None:
    """All clients of a sample, one after the other."""
    for client, does in sample.runs:
        with drive(client, home, cluster.bootstrap()) as driver:
            for scenario in does:
                scenario(driver, story, cluster)


def keep(sample: Sample, capture: Path) -> None:
    """Put the capture where samples are, compressed when its name says so."""
    data = capture.read_bytes()
    if sample.file.endswith(".gz"):
        data = gzip.compress(data, 9, mtime=0)
    if len(data) > LIMIT_BYTES:
        raise RuntimeError(f"{sample.file} has {len(data)} bytes, more than {LIMIT_BYTES}")
    SAMPLES.mkdir(exist_ok=True)
    (SAMPLES / sample.file).write_bytes(data)
    print(f"{sample.file}: {len(data)} bytes")


def readme() -> str:
    """The provenance of all samples as a table."""
    lines = [
        "# Sample captures",
        "",
        "Real brokers and real clients on loopback, captured with tcpdump by `make samples`",
        "(`tests/interop/make_samples.py`). Users and passwords are made up; all addresses are",
        "127.0.0.1. Ports: 9092 clients, 9093 controller, 9094 between brokers, 9095 SASL; the",
        "other nodes of a cluster 100 and 200 higher. What the clients wrote and read is in",
        "`tests/interop/truth/`, and `tests/interop/test_samples.py` compares.",
        "",
        "`demo.pcap.zst` is what `kafkascope demo` shows: three brokers of 3.9.2 and eleven",
        "programs of a shop in network namespaces, of a minute in which some twenty made one",
        "mistake each that people make (`tests/interop/demo/`). It is a part of `shop.pcap.zst`",
        "in `tests/analyzer/captures/`: all packets from and to these eleven as tcpdump wrote",
        "them, and none of the others, so that `check` tells eight causes and not nineteen. The",
        "libraries are real; `inventory-sync` is a few lines of ours: no library asks the wrong",
        "leader for ever. `../logs/demo.log.zst` has the same minute as its brokers' request logs",
        "(`tests/interop/demo/request_log.py`, made of the capture).",
        "",
        "| file | kB | broker | clients | what |",
        "|---|---|---|---|---|",
    ]
    for sample in LIST:
        size = round((SAMPLES / sample.file).stat().st_size / 1000)
        clients = ", ".join(client for client, _ in sample.runs)
        nodes = f" x {sample.nodes}" if sample.nodes > 1 else ""
        lines.append(
            f"| {sample.file} | {size} | Kafka {sample.broker}{nodes} | {clients} | {sample.what} |"
        )
    for name, what in BY_HAND.items():
        size = round((SAMPLES / name).stat().st_size / 1000)
        lines.append(f"| {name} | {size} | {what} |")
    lines += [
        "",
        "Brokers are combined KRaft nodes from Maven Central; `java-N` is kafka-clients N.",
        "Versions of the Python libraries are those of the lock file. `zookeeper.pcap` was",
        "captured by hand; `tests/interop/test_zookeeper.py` asks real servers the same anew.",
        "",
    ]
    return "\n".join(lines)


def main(names: Sequence[str]) -> None:
    """Make the named samples, or all."""
    for sample in LIST:
        if not names or sample.name in names:
            with tempfile.TemporaryDirectory() as home:
                make(sample, Path(home))
    if not names or "shop" in names:
        from tests.interop.demo.make import main as make_shop

        make_shop()
    elif "demo" in names:
        from tests.interop.demo.derive import main as derive_demo

        derive_demo()
    (SAMPLES / "README.md").write_text(readme())
    shutil.rmtree(HOME, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
