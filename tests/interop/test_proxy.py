"""Real clients through the proxy, before three brokers: the records are exact, nobody goes past it,
and what it recorded decodes to the last byte and is what was seen live."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient

from kafkascope.dissectors.codec.walk import fitted
from kafkascope.dissectors.embedded.internal import CLUSTER_METADATA_ID, decode
from kafkascope.dissectors.records.records import batches, open_batch
from kafkascope.dissectors.registry import layout_of
from kafkascope.proxy.replay.peer import Peer, Reach
from tests.interop import scenarios
from tests.interop.brokers import Cluster
from tests.interop.compare import differences, kafkascope
from tests.interop.drivers import CLIENT_LIST, Story, drive
from tests.interop.proxied import Proxied, SecuredCluster, checked, visitors

pytestmark = pytest.mark.interop

Clusters = Callable[[str], SecuredCluster]
CLIENT_PORTS = ("PLAINTEXT", "SASL_PLAINTEXT")
DIAGONAL = (
    ("4.4.0", "java-4.4.0"),
    ("4.4.0", "librdkafka"),
    ("4.4.0", "kafka-python"),
    ("4.4.0", "aiokafka"),
    ("4.4.0", "franz-go"),
    ("3.9.2", "java-1.1.1"),
    ("3.9.2", "kafkajs"),
)
REST = tuple(
    (broker, client)
    for broker in ("4.4.0", "3.9.2")
    for client in CLIENT_LIST
    if (broker, client) not in DIAGONAL and (broker, client) != ("4.4.0", "java-0.10.2.2")
)


def pairs(quick: Any, rest: Any) -> list[Any]:
    """Parameters: these always, those in `make soak`."""
    return [
        *(pytest.param(*pair, id="-".join(pair)) for pair in quick),
        *(pytest.param(*pair, id="-".join(pair), marks=pytest.mark.soak) for pair in rest),
    ]


@pytest.mark.parametrize(("version", "client"), pairs(DIAGONAL, REST))
def test_a_client_does_all_it_can_through_the_proxy(
    clusters: Clusters, version: str, client: str, tmp_path: Path
) -> None:
    cluster = clusters(version)
    scenarios.prepare(cluster, client, copies=3)
    story = Story()
    folder = tmp_path / "recorded"
    with (
        visitors(cluster.ports(*CLIENT_PORTS)) as seen,
        Proxied(cluster, folder) as proxied,
        drive(client, tmp_path, proxied.bootstrap()) as driver,
    ):
        scenarios.everything(driver, story, proxied)  # type: ignore[arg-type]
    assert seen.ports
    assert seen.ports <= proxied.own_ports(), "a client went past the proxy"
    recording = checked(proxied, story)
    assert list(differences(recording)) == []
    states = recording.states()
    assert set(states) <= {"answered", "no-reply", "open", "lost"}
    assert states["answered"] > 0.95 * sum(states.values())
    written = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"alice-secret" not in written


def test_a_recording_before_a_controller_holds_no_credential(
    clusters: Clusters, tmp_path: Path
) -> None:
    cluster = clusters("4.4.0")
    name = "__cluster_metadata"

    async def ask(version: int, host: str, port: int, epoch: int) -> dict[str, Any]:
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        part |= {"current_leader_epoch": epoch, "last_fetched_epoch": 0}
        topics = [{"topic_id": CLUSTER_METADATA_ID, "partitions": [part]}]
        wanted = fitted(
            layout_of("FetchRequest", version), {"max_bytes": 1 << 20, "topics": topics}
        )
        peer = await Peer.open(host, port, Reach())
        try:
            return await peer.ask("Fetch", version, wanted)
        finally:
            await peer.close()

    async def fetched(proxy: Proxied) -> bytes:
        host, _, port = proxy.bootstrap("CONTROLLER").rpartition(":")
        answer = await ask(17, host, int(port), 0)
        (leader,) = answer["node_endpoints"]
        epoch = answer["responses"][0]["partitions"][0]["current_leader"]["leader_epoch"]
        # Without addresses in it, for which the proxy would keep the response anyhow.
        answer = await ask(13, leader["host"], leader["port"], epoch)
        return bytes(answer["responses"][0]["partitions"][0]["records"])

    folder = tmp_path / "recorded"
    with Proxied(cluster, folder, ("CONTROLLER",)) as proxied:
        data = proxied.run(fetched(proxied))
    salts = [
        bytes(content.value.body["salt"])
        for batch in batches(data)
        for record in open_batch(data, batch).records
        if (content := decode(name, record.key, record.value)) is not None
        and content.value is not None
        and content.value.message == "UserScramCredentialRecord"
    ]
    assert salts  # the users that these clusters are formatted with
    (path,) = folder.iterdir()
    recorded = path.read_bytes()
    assert CLUSTER_METADATA_ID in recorded
    assert not [salt for salt in salts if salt in recorded]


@pytest.mark.parametrize("version", ["4.4.0", pytest.param("3.9.2", marks=pytest.mark.soak)])
def test_new_groups_share_groups_and_every_admin_call(
    clusters: Clusters, version: str, tmp_path: Path
) -> None:
    cluster = clusters(version)
    story = Story()
    with (
        visitors(cluster.ports(*CLIENT_PORTS)) as seen,
        Proxied(cluster, tmp_path / "recorded") as proxied,
        drive("java-4.4.0", tmp_path, proxied.bootstrap(), client="java") as driver,
    ):
        calls = scenarios.administration(driver, story, proxied)  # type: ignore[arg-type]
    assert calls
    assert seen.ports <= proxied.own_ports()
    recording = checked(proxied, story)
    apis = {e["api"] for e in recording.exchanges}
    assert "ConsumerGroupHeartbeat" in apis
    if version == "4.4.0":
        assert {"ShareFetch", "ShareGroupHeartbeat"} <= apis


def admin_of(cluster: Cluster) -> Any:
    """By way of the other listener: the visits to the clients' one are counted."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap("INTERNAL")})


def until_whole(admin: Any, topic: str, seconds: float = 120.0) -> None:
    """All copies of all partitions have caught up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        partitions = admin.list_topics(topic, 30).topics[topic].partitions.values()
        if all(len(each.isrs) == len(each.replicas) for each in partitions):
            return
        time.sleep(0.2)
    raise AssertionError(f"a copy of {topic} does not catch up")


@contextmanager
def troubled(cluster: Cluster, topic: str) -> Iterator[list[BaseException]]:
    """Meanwhile the broker that leads a partition restarts; the leader moves away and back."""
    failures: list[BaseException] = []

    def trouble() -> None:
        try:
            time.sleep(3)  # the journey is under way
            admin = admin_of(cluster)  # its futures fail when it is gone
            leader = admin.list_topics(topic, 30).topics[topic].partitions[0].leader
            (node,) = (each for each in cluster.nodes if each.number == leader)
            node.stop()  # leaders move to the others
            time.sleep(2)
            node.start()
            node.wait(("INTERNAL", "CONTROLLER"))  # probes of the others would count as visits
            until_whole(admin, topic)
            # Leaders move back while all brokers live: they tell where to.
            admin.elect_leaders(ElectionType.PREFERRED, None).result(30)
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=trouble)
    thread.start()
    try:
        yield failures
    finally:
        thread.join(300)


COUNT = 400
TRAVELLERS = (("java-4.4.0", "consumer"), ("librdkafka", "classic"))
MORE_TRAVELLERS = (
    ("librdkafka", "consumer"),
    ("java-4.4.0", "classic"),
    ("java-3.9.2", "classic"),
    ("kafka-python", "classic"),
    ("aiokafka", "classic"),
    ("franz-go", "classic"),
    ("kafkajs", "classic"),
)


@pytest.mark.parametrize(("client", "protocol"), pairs(TRAVELLERS, MORE_TRAVELLERS))
def test_a_leader_that_moves_and_a_broker_that_restarts(
    clusters: Clusters, tmp_path: Path, client: str, protocol: str
) -> None:
    cluster = clusters("4.4.0")
    topic = f"journey.{client}.{protocol}"
    scenarios.make_topics(cluster, topic, copies=3)
    with (
        visitors(cluster.ports("PLAINTEXT")) as seen,
        Proxied(cluster, tmp_path / "recorded", ("PLAINTEXT",)) as proxied,
    ):
        common = {"group": topic} | ({"protocol": protocol} if protocol == "consumer" else {})
        with (
            drive(client, tmp_path, proxied.bootstrap(), **common) as driver,
            troubled(cluster, topic) as failures,
        ):
            told = driver.step("Journey", topic=topic, count=COUNT, pause=50)
        proxy = proxied.proxies["PLAINTEXT"]
        rewrites = proxy.hub.metrics.snapshot()["rewrites_total"]
        listeners = list(proxy.nodes.listeners.values())
    assert failures == []
    assert told == {"written": COUNT, "read": COUNT, "same": True}
    assert seen.ports <= proxied.own_ports(), "a client went past the proxy"
    recording = checked(proxied, Story())
    assert rewrites["Metadata"] > 0
    ours = {proxy.address.port, *(each.address.port for each in listeners)}
    assert set(told_ports(proxied.folder)) <= ours, "an address was not replaced"
    records = {r["value"] for r in recording.records if r["topic"] == topic}
    assert records == {f"r{index}" for index in range(COUNT)}
    if protocol == "consumer":
        assert "ConsumerGroupHeartbeat" in {e["api"] for e in recording.exchanges}


def told_ports(folder: Path) -> Iterator[int]:
    """Ports of all broker addresses that clients were told, whatever the API."""
    for exchange in kafkascope("export", folder, "--full", "--format", "jsonl", "-o", "-"):
        body = exchange.get("response") or {}
        for name in ("brokers", "coordinators", "node_endpoints"):
            yield from (each["port"] for each in body.get(name) or () if each["host"])
        if exchange["api"] == "FindCoordinator" and body.get("host"):
            yield body["port"]
