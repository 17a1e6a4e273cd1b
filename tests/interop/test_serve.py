"""Captures as brokers, for real clients of several makers."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkascope.dissectors.registry import example
from kafkascope.proxy.replay.peer import Peer, Reach
from tests.interop.compare import Recording
from tests.interop.drivers import CLIENT_LIST, Story, drive
from tests.kit.authority import Authority
from tests.kit.samples import ROOT

SAMPLES = ROOT / "captures" / "samples"
TRUTH = Path(__file__).parent / "truth"

pytestmark = pytest.mark.interop

Record = Callable[[str, str], Recording]

OWN = {
    "java-4.4.0": "libraries",
    "java-0.10.2.2": "java-old",
    "librdkafka": "librdkafka",
    "kafka-python": "kafka-python",
    "aiokafka": "aiokafka",
}
"""Client -> a sample that it made."""
OTHERS = {"franz-go": "libraries", "kafkajs": "libraries", "librdkafka": "kafka-python"}
"""Client -> a sample that another one made."""
RECORDED = ("franz-go", "kafkajs")
"""Clients without a sample: their captures are made with a broker, for the long test."""
RELEASE = "4.4.0"
TOO_OLD = {("java-0.10.2.2", name) for name in ("libraries", "aiokafka", *RECORDED)}
"""Kafka 4 does not serve the versions that this client has."""
QUIET = {**OWN, **dict.fromkeys(RECORDED, "libraries")}
MOST_PER_SECOND = 20
TROUBLE = re.compile(r"\b(error|critical|fatal|traceback|exception)\b", re.IGNORECASE)
NO_TROUBLE = re.compile(r"Reconfiguration failed: No configuration found")
"""log4j says so of itself."""


class Served:
    """A running `kafkascope serve`."""

    def __init__(self, process: "subprocess.Popen[str]", bootstrap: str) -> None:
        self.process = process
        self.bootstrap = bootstrap
        self.said = ""

    def stop(self) -> str:
        """End it; what it said."""
        self.process.send_signal(signal.SIGTERM)
        self.said = self.process.communicate(timeout=120)[1]
        return self.said

    def requests(self) -> int:
        """How many it answered, after its end."""
        (count,) = re.findall(r"(\d+) requests answered", self.said)
        return int(count)


@contextmanager
def served(path: Path, *arguments: str) -> Iterator[Served]:
    """A capture as a broker."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kafkascope.tui.cli", "serve", str(path), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Served(process, process.stdout.readline().strip())
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def sample(name: str) -> tuple[Path, Story]:
    """A sample, and what was written while it was made."""
    story = Story.from_json(json.loads((TRUTH / f"{name}.json").read_text()))
    return next(SAMPLES.glob(f"{name}.pcap*")), story


def rows_of(story: Story, topic: str) -> set[tuple[object, ...]]:
    """Partition, offset, key and value of what was written to a topic."""
    return {
        (row.partition, row.offset, repr(row.key), repr(row.value))
        for row in story.produced
        if row.topic == topic
    }


def topics_of(story: Story) -> list[str]:
    """Topics that clients of all makers can read, and of which all offsets are known."""
    return sorted(topic for topic in story.codec_of if topic.endswith((".none", ".gzip")))


async def _ask(bootstrap: str, api: str, version: int, **body: object) -> dict[str, Any]:
    host, _, port = bootstrap.rpartition(":")
    peer = await Peer.open(host, int(port), Reach(timeout=60))
    try:
        return await peer.ask(api, version, example(f"{api}Request", version) | body)
    finally:
        await peer.close()


def committed(broker: Served, group: str) -> dict[int, int]:
    """Partition -> committed offset, of a group that reads one topic."""
    told = asyncio.run(_ask(broker.bootstrap, "OffsetFetch", 5, group_id=group, topics=None))
    return {
        part["partition_index"]: part["committed_offset"]
        for topic in told["topics"]
        for part in topic["partitions"]
    }


def made(broker: Served, *topics: str) -> None:
    """Topics of two partitions."""
    plain = {"num_partitions": 2, "replication_factor": 1, "assignments": [], "configs": []}
    wish = {"topics": [{"name": name, **plain} for name in topics], "timeout_ms": 9000}
    told = asyncio.run(_ask(broker.bootstrap, "CreateTopics", 4, validate_only=False, **wish))
    assert [each["error_code"] for each in told["topics"]] == [0] * len(topics)


def read_all(client: str, path: Path, story: Story, folder: Path) -> str:
    """Join a group, read two topics, commit; what the served capture said. Asserts that the records
    are those that were captured."""
    with served(path) as broker:
        with drive(client, folder, broker.bootstrap) as driver:
            for topic in topics_of(story)[:2]:
                wanted = rows_of(story, topic)
                assert wanted
                group = f"{topic}.served"
                told = driver.step("Consume", topic=topic, count=len(wanted), group=group)
                found = {(r[1], r[2], repr(r[4]), repr(r[5])) for r in told["consumed"]}
                assert found == wanted
                ends = {p: max(r[1] for r in found if r[0] == p) + 1 for p in {r[0] for r in found}}
                assert committed(broker, group) == ends
        return broker.stop()


CONNECTED = re.compile(r'kafkascope: [0-9.:]+: client "[^"]*" connected')
"""How the line about each client begins."""


def unexpected(said: str) -> list[str]:
    """Lines of a served capture beside the first and the last one, and those about who came."""
    lines = [each for each in said.splitlines() if not each.endswith("answered")]
    return [each for each in lines[1:] if not CONNECTED.match(each)]


@pytest.mark.parametrize(("client", "name"), [*OWN.items(), *OTHERS.items()])
def test_a_client_joins_its_group_and_reads_what_was_captured(
    client: str, name: str, tmp_path: Path, java: None
) -> None:
    """Bootstrap, join, fetch everything, commit; nothing unexpected is asked."""
    said = read_all(client, *sample(name), tmp_path)
    assert unexpected(said) == []


@pytest.mark.soak
def test_every_client_reads_the_captures_of_all(record: Record, tmp_path: Path) -> None:
    """The table of docs/serve.md, printed: clients down, captures across."""
    captures = {name: sample(name) for name in dict.fromkeys(OWN.values())}
    for name in RECORDED:
        made = record(RELEASE, name)
        captures[name] = made.capture, made.story
    print("\n| client | " + " | ".join(captures) + " |\n| --- " + "| --- " * len(captures) + "|")
    failures = []
    for client in [*OWN, *RECORDED]:
        results = []
        for name, (path, story) in captures.items():
            try:
                said = unexpected(read_all(client, path, story, tmp_path))
                results.append("yes" if not said else "; ".join(said))
            except (RuntimeError, AssertionError) as error:
                results.append("too old" if (client, name) in TOO_OLD else "no")
                if (client, name) in TOO_OLD:
                    continue
                failures.append(f"{client}, {name}: {str(error)[:2000]}")
        print(f"| {client} | " + " | ".join(results) + " |", flush=True)
    assert failures == []


def idle(client: str, seconds: int, folder: Path) -> str:
    """A client that waits behind the captured end; what is wrong with it."""
    path, story = sample(QUIET[client])
    topic = topics_of(story)[-1]
    count = len(rows_of(story, topic))
    log = folder / f"{client}.log"
    with served(path) as broker:
        with drive(client, folder, broker.bootstrap) as driver:
            wish = {"topic": topic, "group": "idle"}
            begun = time.monotonic()
            told = driver.step("Consume", **wish, count=count)
            more = driver.step("Consume", **wish, count=1, seconds=seconds)["consumed"]
            took_s = time.monotonic() - begun
        broker.stop()
    rate = broker.requests() / took_s
    print(f"{client}: {rate:.1f} requests/s")
    lines = [e for e in log.read_text(errors="replace").splitlines() if not NO_TROUBLE.search(e)]
    wrong = [f"{client}: {line}" for line in lines if TROUBLE.search(line)]
    wrong += [f"{client}: {line}" for line in unexpected(broker.said)]
    if len(told["consumed"]) != count:
        wrong.append(f"{client}: {len(told['consumed'])} records, not {count}")
    if more:
        wrong.append(f"{client}: behind the end it reads {more}")
    if rate >= MOST_PER_SECOND:
        wrong.append(f"{client}: {rate:.1f} requests/s")
    return "\n".join(wrong)


@pytest.mark.parametrize("seconds", [8, pytest.param(60, marks=pytest.mark.soak)])
def test_clients_behind_the_captured_end_idle_quietly(
    seconds: int, tmp_path: Path, java: None
) -> None:
    """No errors, and few requests."""
    with ThreadPoolExecutor(len(QUIET)) as pool:
        wrong = list(pool.map(lambda client: idle(client, seconds, tmp_path), QUIET))
    assert "".join(wrong) == ""


def write(client: str, folder: Path) -> str:
    """A client that writes, with and without transactions, reads it again and administers; what is
    wrong with that."""
    able = CLIENT_LIST[client]
    wrong = []
    with served(sample(QUIET[client])[0]) as broker:
        made(broker, "new", "new.tx")
        with drive(client, folder, broker.bootstrap) as driver:

            def compare(topic: str, wanted: list[Any], **more: object) -> None:
                told = driver.step("Consume", topic=topic, count=len(wanted), **more)
                if sorted(map(repr, told["consumed"])) != sorted(map(repr, wanted)):
                    wrong.append(f"{client}: {topic} is read otherwise than it was written")

            idempotent = str(able.idempotent).lower()
            wish = {"topic": "new", "count": 20, "codec": "gzip", "idempotent": idempotent}
            compare("new", driver.step("Produce", **wish)["produced"], group="readers")
            if able.transactions:
                ends = {"topic": "new.tx", "source": "new", "group": "tx", "id": "tx"}
                told = driver.step("Transact", **ends)
                isolated = {"isolation": "read_committed", "group": "committed"}
                compare("new.tx", told["produced"], **isolated)
            if able.admin:
                # kafkajs also wants configs, of which the capture tells nothing.
                described = {} if able.kind == "js" else {"describe": "new"}
                driver.step("Administer", topics="newer", group="readers", **described)
            if able.name == "java-4.4.0":
                driver.step("Rebalance", topic="new", group="next", protocol="consumer")
                told = driver.step("Share", topic="new", group="share", count=20, admin="false")
                if len({(r[1], r[2]) for r in told["consumed"]}) != 20:
                    wrong.append(f"{client}: a share group reads {told['consumed']}")
        wrong += [f"{client}: {line}" for line in unexpected(broker.stop())]
    return "\n".join(wrong)


def test_clients_write_and_administer(tmp_path: Path, java: None) -> None:
    """Producers of every kind, transactions, KIP-848 groups and share groups, admin clients."""
    with ThreadPoolExecutor(3) as pool:
        wrong = list(pool.map(lambda client: write(client, tmp_path), QUIET))
    assert "".join(wrong) == ""


@pytest.mark.soak
@pytest.mark.parametrize("client", QUIET)
def test_a_second_member_shares_the_work(client: str, tmp_path: Path, java: None) -> None:
    """It joins, both have one partition, it leaves."""
    path, story = sample(QUIET[client])
    topic = topics_of(story)[-1]
    with served(path) as broker:
        with drive(client, tmp_path, broker.bootstrap) as driver:
            told = driver.step("Rebalance", topic=topic, group="shared")
        assert told["held"] == [[2, 1, 2], [1]]
        assert unexpected(broker.stop()) == []


MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
UNSECURED = {
    "conf.security.protocol": "SASL_PLAINTEXT",
    "conf.sasl.mechanism": "OAUTHBEARER",
    "conf.enable.sasl.oauthbearer.unsecure.jwt": "true",
    "conf.sasl.oauthbearer.config": "principal=alice",
}


def log_in(client: str, folder: Path, authority: Authority | None = None) -> str:
    """A client that reads with each mechanism; what is wrong with that."""
    path, story = sample(QUIET[client])
    topic = topics_of(story)[-1]
    count = len(rows_of(story, topic))
    wrong = []
    options = ["--user", "alice:alice-secret"]
    common = {}
    if authority is not None:
        options += ["--tls-cert", str(authority.issue(client, "127.0.0.1"))]
        common["ca"] = str(authority.certificate)
    with served(path, *options) as broker:
        with drive(client, folder, broker.bootstrap, **common) as driver:
            ways = [
                {"user": "alice", "password": "alice-secret", "mechanism": mechanism}
                for mechanism in (MECHANISMS if authority else ("SCRAM-SHA-256",))
            ]
            if client == "librdkafka" and authority is None:
                ways.append(UNSECURED)
            for way in ways:
                group = str(way.get("mechanism"))
                told = driver.step("Consume", topic=topic, count=count, group=group, **way)
                if len(told["consumed"]) != count:
                    wrong.append(f"{client}: {way.get('mechanism')} reads {told['consumed']}")
        said = broker.stop()
    if "alice-secret" in said:
        wrong.append(f"{client}: the password is told")
    wrong += [f"{client}: {line}" for line in unexpected(said)]
    return "\n".join(wrong)


def test_clients_log_in(tmp_path: Path, java: None) -> None:
    """SCRAM, and an unsecured token, against given users."""
    with ThreadPoolExecutor(3) as pool:
        wrong = list(pool.map(lambda client: log_in(client, tmp_path), QUIET))
    assert "".join(wrong) == ""


@pytest.mark.soak
def test_clients_log_in_over_tls(tmp_path: Path, authority: Authority, java: None) -> None:
    """With every mechanism, encrypted."""
    wrong = [log_in(client, tmp_path, authority) for client in QUIET]
    assert "".join(wrong) == ""
