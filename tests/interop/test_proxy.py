"""Real clients through the proxy, before three brokers: the records are exact, nobody goes past it,
and what it recorded decodes to the last byte."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.interop import scenarios
from tests.interop.brokers import Cluster, KRaftCluster
from tests.interop.compare import Recording, differences
from tests.interop.drivers import CLIENT_LIST, Driver, Story
from tests.interop.maven import CACHE, CLIENTS, compiled, jars
from tests.interop.needs import need
from tests.interop.proxied import Proxied, visitors

pytestmark = pytest.mark.interop

HERE = Path(__file__).parent
CLIENT_PORTS = ("PLAINTEXT", "SASL_PLAINTEXT")
DIAGONAL = (
    ("4.4.0", "java-4.4.0"),
    ("4.4.0", "librdkafka"),
    ("4.4.0", "kafka-python"),
    ("4.4.0", "aiokafka"),
    ("3.9.2", "java-1.1.1"),
    ("3.9.2", "java-3.9.2"),
)
REST = tuple(
    (broker, client)
    for broker in ("3.9.2", "4.4.0")
    for client in CLIENT_LIST
    if (broker, client) not in DIAGONAL and (broker, client) != ("4.4.0", "java-0.10.2.2")
)


@pytest.fixture(scope="module")
def clusters() -> Iterator[Any]:
    """Three running nodes of a release, one release at a time."""
    need("java", "javac", "mvn", "tcpdump")
    running: dict[str, Cluster] = {}
    with ExitStack() as stack:

        def of(version: str) -> Cluster:
            if version not in running:
                stack.close()
                running.clear()
                running[version] = stack.enter_context(KRaftCluster(version, nodes=3))
            return running[version]

        yield of


def topics(cluster: Cluster, log: Path, *names: str) -> None:
    """Make topics with three copies."""
    with Driver(CLIENT_LIST["java-4.4.0"], log, {"bootstrap": cluster.bootstrap()}) as admin:
        admin.step("Administer", topics=",".join(names), copies=3, client="prepare")


def checked(folder: Path, story: Story) -> Recording:
    """The recording, which has to be whole and to tell what the clients told."""
    recording = Recording(folder, frozenset(), story).read()
    assert recording.exchanges
    assert recording.undecoded() == []
    return recording


@pytest.mark.parametrize(
    ("version", "client"),
    [
        *(pytest.param(*pair, id="-".join(pair)) for pair in DIAGONAL),
        *(pytest.param(*pair, id="-".join(pair), marks=pytest.mark.soak) for pair in REST),
    ],
)
def test_a_client_does_all_it_can_through_the_proxy(
    clusters: Any, version: str, client: str, tmp_path: Path
) -> None:
    cluster = clusters(version)
    log = tmp_path / "client.log"
    scenarios.prepare(cluster, client, log, copies=3)
    story = Story()
    folder = tmp_path / "recorded"
    with visitors(cluster.ports(*CLIENT_PORTS)) as seen, Proxied(cluster, folder) as proxied:
        common = {"bootstrap": proxied.bootstrap(), "client": client}
        with Driver(CLIENT_LIST[client], log, common) as driver:
            scenarios.everything(driver, story, proxied)  # type: ignore[arg-type]
    assert seen.ports
    assert seen.ports <= proxied.own_ports(), "a client went past the proxy"
    recording = checked(folder, story)
    assert list(differences(recording)) == []
    states = Counter(e["state"] for e in recording.exchanges)
    assert set(states) <= {"answered", "no-reply", "open", "lost"}
    assert states["answered"] > 0.95 * sum(states.values())
    written = "".join(str(path.read_bytes()) for path in folder.iterdir())
    assert "alice-secret" not in written


def test_new_groups_share_groups_and_every_admin_call(clusters: Any, tmp_path: Path) -> None:
    cluster = clusters("4.4.0")
    story = Story()
    folder = tmp_path / "recorded"
    with visitors(cluster.ports(*CLIENT_PORTS)) as seen, Proxied(cluster, folder) as proxied:
        common = {"bootstrap": proxied.bootstrap(), "client": "java"}
        with Driver(CLIENT_LIST["java-4.4.0"], tmp_path / "client.log", common) as driver:
            calls = scenarios.administration(driver, story, proxied)  # type: ignore[arg-type]
    assert calls
    assert seen.ports <= proxied.own_ports()
    recording = checked(folder, story)
    apis = {e["api"] for e in recording.exchanges}
    assert {"ConsumerGroupHeartbeat", "ShareFetch", "ShareGroupHeartbeat"} <= apis


def _elect(cluster: Cluster) -> None:
    """Make the preferred replicas leaders again."""
    from confluent_kafka import ElectionType
    from confluent_kafka.admin import AdminClient

    # By way of the other listener: the visits to the clients' one are counted.
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap("INTERNAL")})
    admin.elect_leaders(ElectionType.PREFERRED, None).result(30)


def _journey(bootstrap: str, topic: str, count: int, pause_ms: int, protocol: str) -> Any:
    classes = compiled(jars("client-4.4.0", CLIENTS["4.4.0"]), ["Journey"])
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classes.path, "Journey"]
    command += [bootstrap, topic, str(count), str(pause_ms), protocol]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_leader_that_moves_and_a_broker_that_restarts(
    clusters: Any, tmp_path: Path, protocol: str
) -> None:
    cluster = clusters("4.4.0")
    topic = f"journey.{protocol}"
    topics(cluster, tmp_path / "admin.log", topic)
    folder = tmp_path / "recorded"
    with (
        visitors(cluster.ports("PLAINTEXT")) as seen,
        Proxied(cluster, folder, ("PLAINTEXT",)) as proxied,
    ):
        process = _journey(proxied.bootstrap(), topic, 400, 50, protocol)
        try:
            time.sleep(3)
            node = cluster.nodes[1]
            node.stop()  # leaders move to the others
            time.sleep(2)
            node.start()
            node.wait(("INTERNAL", "CONTROLLER"))  # probes of the others would count as visits
            time.sleep(3)
            _elect(cluster)  # leaders move back while all brokers live: they tell where to
            output, errors = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
        rewrites = proxied.proxies["PLAINTEXT"].hub.metrics.snapshot()["rewrites_total"]
    assert process.returncode == 0, errors[-3000:]
    assert json.loads(output) == {"written": 400, "read": 400, "same": True}
    assert seen.ports <= proxied.own_ports(), "a client went past the proxy"
    checked(folder, Story())
    assert rewrites["Metadata"] > 0
    assert rewrites.get("Produce", 0) + rewrites.get("Fetch", 0) > 0, "no node endpoints came"


OTHERS = {"franz-go": ("go",), "kafkajs": ("node", "npm")}


def _program(name: str) -> list[str]:
    """The command of a client in another language, built once."""
    need(*OTHERS[name])
    if name == "franz-go":
        binary = CACHE / "franz-go" / "client"
        if not binary.exists():
            binary.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                ["go", "build", "-o", str(binary), "."], cwd=HERE / "go", check=True, timeout=300
            )
        return [str(binary)]
    folder = CACHE / "kafkajs"
    if not (folder / "node_modules" / "kafkajs").exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "js" / "package.json", folder)
        subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--no-fund"],
            cwd=folder,
            check=True,
            timeout=300,
        )
    shutil.copy(HERE / "js" / "main.js", folder)
    return ["node", str(folder / "main.js")]


@pytest.mark.parametrize(
    ("version", "name", "codecs"),
    [
        ("4.4.0", "franz-go", ("none", "gzip", "snappy", "lz4", "zstd")),
        ("3.9.2", "kafkajs", ("gzip",)),
    ],
)
def test_clients_in_other_languages(
    clusters: Any, tmp_path: Path, version: str, name: str, codecs: tuple[str, ...]
) -> None:
    command = _program(name)
    cluster = clusters(version)
    names = [f"{name}.{codec}" for codec in codecs]
    topics(cluster, tmp_path / "admin.log", *names)
    folder = tmp_path / "recorded"
    with (
        visitors(cluster.ports("PLAINTEXT")) as seen,
        Proxied(cluster, folder, ("PLAINTEXT",)) as proxied,
    ):
        for codec, topic in zip(codecs, names, strict=True):
            done = subprocess.run(
                [*command, proxied.bootstrap(), topic, codec, "500"],
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr[-2000:]
            read = json.loads(done.stdout)
            assert sorted(read) == sorted(f"{codec}-{n}" for n in range(500))
    assert seen.ports <= proxied.own_ports(), "a client went past the proxy"
    recording = checked(folder, Story())
    records = Counter(r["topic"] for r in recording.records if r["source"] == "produce")
    assert records == dict.fromkeys(names, 500)


# Faults after which a client has to come through, as its documentation says.
SURVIVED = (
    "api == Produce -> error NOT_LEADER_OR_FOLLOWER first 2",
    "api == Produce -> stamp REQUEST_TIMED_OUT once",
    "api == Produce -> reset once",
    "api == Produce -> truncate 20 once",
    "api == Fetch -> error NOT_LEADER_OR_FOLLOWER first 2",
    "api == Fetch -> close once",
    "api == Fetch -> delay 50ms..100ms on response",
    "api == Fetch -> throttle 20KB/s on response",
    "api == Metadata -> stamp LEADER_NOT_AVAILABLE at topic once",
    "api == Metadata -> stale-metadata",
    "api == FindCoordinator -> error COORDINATOR_NOT_AVAILABLE first 2",
    "api == JoinGroup -> half-close once",
    "api == SyncGroup -> stamp REBALANCE_IN_PROGRESS once",
    "api == OffsetFetch -> error COORDINATOR_LOAD_IN_PROGRESS once",
)


@pytest.mark.parametrize(
    "client",
    ["java-4.4.0", "librdkafka", *(pytest.param(c, marks=pytest.mark.soak) for c in ("aiokafka",))],
)
def test_a_client_survives_each_fault_and_the_capture_tells(
    clusters: Any, tmp_path: Path, client: str
) -> None:
    from proxy.faults import parse_fault

    cluster = clusters("4.4.0")
    names = [f"fault.{client}.{number}" for number in range(len(SURVIVED))]
    topics(cluster, tmp_path / "admin.log", *names)
    folder = tmp_path / "recorded"
    failures = []
    with Proxied(cluster, folder, ("PLAINTEXT",)) as proxied:
        common = {"bootstrap": proxied.bootstrap(), "client": client}
        chain = proxied.proxies["PLAINTEXT"].rules
        with Driver(CLIENT_LIST[client], tmp_path / "client.log", common) as driver:
            for text, topic in zip(SURVIVED, names, strict=True):
                fault = parse_fault(text)
                chain.clear()
                chain.add(fault)
                driver.step("Produce", topic=topic, count=20)
                told = driver.step("Consume", topic=topic, count=20, group=f"{topic}.group")
                read = {tuple(map(str, row[:3])) for row in told["consumed"]}
                if len(read) < 20 or not fault.trigger.fired:
                    failures.append(f"{text}: {len(read)} read, fired {fault.trigger.fired}")
        chain.clear()
    assert failures == []
    recording = checked(folder, Story())
    errors = {error["name"] for e in recording.exchanges for error in e["errors"]}
    assert {"NOT_LEADER_OR_FOLLOWER", "COORDINATOR_NOT_AVAILABLE", "REQUEST_TIMED_OUT"} <= errors
