"""Three nodes from start to stop, every listener: what brokers and controllers say to each other.

A fourth node joins and becomes a voter, the leader stops and comes back, another one is killed.
"""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop import scenarios
from tests.interop.brokers import KRaftCluster, free_base
from tests.interop.compare import Recording, assert_right
from tests.interop.drivers import Driver, Story, drive
from tests.interop.needs import need
from tests.interop.sniff import sniff

pytestmark = pytest.mark.interop

CLIENT = "java-4.4.0"
SETTINGS = {
    # Snapshots early, so that the node that joins fetches one.
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
}
APIS = {
    *("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot", "AddRaftVoter"),
    *("AlterPartition", "Envelope", "BrokerRegistration", "BrokerHeartbeat"),
    *("AllocateProducerIds", "ControllerRegistration", "AssignReplicasToDirs"),
    *("WriteTxnMarkers", "AddPartitionsToTxn", "Fetch", "DescribeQuorum"),
}
NEWER_APIS = {
    "UpdateRaftVoter",
    *("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState"),
    *("DeleteShareGroupState", "ReadShareGroupStateSummary"),
}


@pytest.fixture(scope="module", params=["3.9.2", "4.4.0"])
def recording(
    request: pytest.FixtureRequest, java: None, tmp_path_factory: pytest.TempPathFactory
) -> Recording:
    need("tcpdump")
    version: str = request.param
    home = tmp_path_factory.mktemp("cluster")
    cluster = KRaftCluster(version, 3, settings=SETTINGS, base_port=free_base(4))
    ports = [port for number in (1, 2, 3, 4) for port in cluster.allot(4, number)]
    recording = Recording(home / "traffic.pcap", frozenset(ports), Story(20))
    with sniff(recording.capture, ports), cluster:
        _life(cluster, recording.story, home)
    return recording.read()


def _life(cluster: KRaftCluster, story: Story, home: Path) -> None:
    scenarios.prepare(cluster, CLIENT, copies=3)
    # Three addresses, so that clients find the nodes that are left.
    with drive(CLIENT, home, cluster.bootstrap()) as driver:
        scenarios.transactions(driver, story, cluster)
        topic = f"{CLIENT}.group"
        story.codec_of[topic] = "none"
        write = _writer(driver, story, topic)
        write()
        if cluster.version.startswith("4."):
            story.add(driver.step("Share", topic=topic, group="share", count=20))
        # Before the leader changes: 3.9 asks the old one for long afterwards.
        joined = cluster.join()
        where = {"port": joined.ports["CONTROLLER"], "directory": joined.directory_id}
        driver.step("AddVoter", node=joined.number, **where)
        # The leader says EndQuorumEpoch when it stops.
        leader = driver.step("Leader")["leader"]
        node = cluster.nodes[leader - 1]
        node.stop()
        write()
        node.start()
        node.wait(cluster.listeners)
        driver.step("Whole", topic=topic)  # takes an AlterPartition
        leader = driver.step("Leader")["leader"]
        node = next(other for other in cluster.nodes if other.number != leader)
        node.stop(signal.SIGKILL)
        write()
        node.start()
        node.wait(cluster.listeners)
        driver.step("Whole", topic=topic)  # takes an AlterPartition
        story.add(driver.step("Consume", topic=topic, count=60))


def _writer(driver: Driver, story: Story, topic: str) -> Callable[[], None]:
    """Each call writes the next twenty records of the topic."""
    first = iter(range(0, 1000, 20))
    # Idempotent: what the killed node took and never answered must not be there twice.
    once = {"count": 20, "idempotent": "true"}

    def write() -> None:
        story.add(driver.step("Produce", topic=topic, first=next(first), **once))

    return write


def test_all_is_what_the_clients_tell(recording: Recording) -> None:
    assert_right(recording)


def test_brokers_and_controllers_use_all_of_their_apis(recording: Recording) -> None:
    seen = {e["api"] for e in recording.exchanges}
    wanted = APIS | NEWER_APIS if "ShareFetch" in seen else APIS
    assert wanted - seen == set()
