"""Captures sent to fresh clusters again get the same answers, but for what releases do differently.
Those of the samples, and traffic recorded here and now, whose records are there afterwards."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.interop.brokers import Cluster, KRaftCluster
from tests.interop.drivers import Driver, Story, drive
from tests.interop.needs import need
from tests.interop.sniff import sniff
from tests.kit.samples import SAMPLES

pytestmark = pytest.mark.interop

Fresh = Callable[[str, int], Cluster]
SAFE = ("--speed", "max", "--create-topics", "--allow-writes", "--group-prefix", "again-")


def replay(name: str, cluster: Cluster, *options: str) -> tuple[int, list[dict], str]:
    """Exit code, lines and remarks."""
    command = [sys.executable, "-m", "kafkascope.tui.cli", "replay", str(SAMPLES / name)]
    command += ["--to", cluster.bootstrap(), "--json", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return run.returncode, [json.loads(line) for line in run.stdout.splitlines()], run.stderr


def found(lines: list[dict]) -> set[tuple[str, str]]:
    """API and path of each difference."""
    return {(e["api"], e["path"]) for e in lines if e["schema"] == "replay-difference/1"}


def summary(lines: list[dict]) -> dict:
    (line,) = (each for each in lines if each["schema"] == "replay/1")
    return line


@pytest.fixture
def fresh(java: None) -> Iterator[Fresh]:
    """Clusters that nobody has used."""
    with ExitStack() as stack:

        def of(version: str, nodes: int) -> Cluster:
            return stack.enter_context(KRaftCluster(version, nodes=nodes))

        yield of


def test_three_nodes_answer_what_one_answered(fresh: Fresh) -> None:
    """Transactions, groups and an old client, captured with 3.9.2, to three nodes of 3.9.2."""
    cluster = fresh("3.9.2", 3)
    for name in ("transactions.pcap", "java-old.pcap"):
        code, lines, said = replay(name, cluster, *SAFE)
        assert found(lines) == set(), said
        assert code == 0
        assert summary(lines)["sent"] > 100
        assert summary(lines)["unanswered"] == 0


def test_what_4_answers_differently(fresh: Fresh) -> None:
    """The same clients against 4.4: transactions go on, the old client is turned away."""
    cluster = fresh("4.4.0", 1)
    code, lines, said = replay("transactions.pcap", cluster, *SAFE)
    assert code == 1
    differences = {path for path in found(lines) if path[0] != "ApiVersions"}
    served = {"Fetch", "Produce", "InitProducerId", "AddPartitionsToTxn", "ListOffsets"}
    assert {api for api, path in differences if path != "version"} <= served, said
    code, lines, said = replay("java-old.pcap", cluster, *SAFE)
    turned_away = {
        (each["api"], each["now"])
        for each in lines
        if each["schema"] == "replay-difference/1" and each["api"] in ("Produce", "Fetch")
    }
    assert ("Fetch", "served: 4-18") in turned_away or ("Fetch", "served: 4 to 18") in turned_away
    assert ("Produce", "the broker closed the connection") in turned_away
    assert "the target does not respond to Fetch v3 (" in said
    assert "Produce v2 (" in said.partition("does not respond")[2]


def test_nothing_is_changed_unasked(fresh: Fresh) -> None:
    """Without --allow-writes only what reads is sent, and missing topics are one sentence."""
    cluster = fresh("4.4.0", 1)
    code, lines, said = replay("libraries.pcap", cluster)
    assert code == 2
    assert "create it, or give --create-topics" in said
    code, lines, said = replay("libraries.pcap", cluster, "--create-topics", "--speed", "max")
    skipped = {each["api"] for each in lines if each["schema"] == "replay-skipped/1"}
    assert {"Produce", "JoinGroup", "CreateTopics", "InitProducerId"} <= skipped
    assert summary(lines)["sent"] > 0


# --- recorded here and now


COUNT = 60

EXPLAINED = {
    "ApiVersions": "another release|features and their levels|the captured broker knew less",
    "CreateTopics": "settings and their defaults",
    "DescribeConfigs": "settings and their defaults",
}
"""API -> reasons that replay itself gives for 4.4 against 3.9."""
UNEXPLAINED = {
    ("DescribeConfigs", "results[].error_code"): "3.9 cannot list loggers without log4j",
    ("DescribeConfigs", "results[].configs[]"): "so only 4.4 lists some",
    ("IncrementalAlterConfigs", "responses[].error_code"): "3.9 has no settings of share groups",
    ("UpdateFeatures", "results[].error_code"): "3.9 does not have transaction.version",
}
"""What the administrator's calls meet."""


def everyday(driver: Driver, story: Story) -> None:
    """A producer, consumers in groups, transactions, administration."""
    topics = "java.made,java.tx,java.group"
    driver.step("Administer", topics=topics, client="java.admin")
    story.add(driver.step("Produce", topic="java.made", codec="lz4", count=COUNT))
    driver.step("Consume", topic="java.made", count=COUNT, group="java.made.group")
    tx = {"source": "java.made", "group": "java.txgroup", "id": "java.txid"}
    story.add(driver.step("Transact", topic="java.tx", **tx))
    committed = {"group": "java.committed", "isolation": "read_committed"}
    driver.step("Consume", topic="java.tx", count=20, **committed)
    story.add(driver.step("Produce", topic="java.group", count=COUNT))
    driver.step("Rebalance", topic="java.group", group="java.group.group")
    driver.step("Administer", describe="java.made", group="java.made.group", client="java.admin")


def old(driver: Driver, story: Story) -> None:
    """What a client without admin calls can do; its topic is there."""
    story.add(driver.step("Produce", topic="old.topic", codec="gzip", count=COUNT))
    driver.step("Consume", topic="old.topic", count=COUNT, group="old.group")


def sweep(driver: Driver, story: Story) -> None:
    """Every call of the newest Admin client."""
    driver.step("Sweep", topic="sweep", client="sweep")


def consumer_protocol(driver: Driver, story: Story) -> None:
    """A group of the new protocol (KIP-848) that a second member joins and leaves."""
    driver.step("Administer", topics="new.topic", client="new.admin")
    story.add(driver.step("Produce", topic="new.topic", count=COUNT))
    driver.step("Rebalance", topic="new.topic", group="new.group", protocol="consumer")
    driver.step("Administer", group="new.group", client="new.admin")


def share(driver: Driver, story: Story) -> None:
    """A share group (KIP-932)."""
    driver.step("Administer", topics="share.topic", client="share.admin")
    story.add(driver.step("Produce", topic="share.topic", count=COUNT))
    driver.step("Share", topic="share.topic", group="share.group", count=COUNT)


Act = Callable[[Driver, Story], None]

RECORDINGS: dict[str, tuple[str, int, tuple[tuple[str, str, Act], ...]]] = {
    "3.9 one node": (
        "3.9.2",
        1,
        (
            ("everyday", "java-3.9.2", everyday),
            ("sweep", "java-4.4.0", sweep),
            ("old", "java-2.4.1", old),
        ),
    ),
    "3.9 three nodes": ("3.9.2", 3, (("everyday", "java-3.9.2", everyday),)),
    "4.4 new groups": (
        "4.4.0",
        1,
        (("consumer", "java-4.4.0", consumer_protocol), ("share", "java-4.4.0", share)),
    ),
}


class Recorded:
    """Captures of one cluster, in the order in which they were made, and what was written."""

    def __init__(self) -> None:
        self.captures: dict[str, Path] = {}
        self.story = Story()


@pytest.fixture(scope="module")
def recorded(java: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Recorded]:
    """Recordings by name, made at first use."""
    need("tcpdump")
    made: dict[str, Recorded] = {}

    def of(name: str) -> Recorded:
        if name not in made:
            made[name] = _record(name, tmp_path_factory.mktemp("recorded"))
        return made[name]

    return of


def _record(name: str, home: Path) -> Recorded:
    version, nodes, acts = RECORDINGS[name]
    told = Recorded()
    with KRaftCluster(version, nodes=nodes) as cluster:
        for title, client, act in acts:
            path = told.captures[title] = home / f"{title}.pcap"
            driving = drive(client, home, cluster.bootstrap())
            with sniff(path, cluster.ports("PLAINTEXT")), driving as driver:
                act(driver, told.story)
    return told


def values(rows: list[Any]) -> str:
    """One hash of all values, whatever their order."""
    return hashlib.sha256(repr(sorted(str(row[5]) for row in rows)).encode()).hexdigest()


def are_there(cluster: Cluster, told: Recorded, topics: tuple[str, ...], folder: Path) -> None:
    """A consumer finds in the target what was written when the capture was made."""
    with drive("java-4.4.0", folder, cluster.bootstrap(), client="check") as driver:
        for topic in topics:
            wanted = [row for row in told.story.produced if row[0] == topic]
            read = driver.step("Consume", topic=topic, count=len(wanted))["consumed"]
            assert len(wanted) == len(read) > 0
            assert values(wanted) == values(read)


def outcome(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts, without the time it took."""
    return {name: value for name, value in summary(lines).items() if name != "seconds"}


@pytest.mark.soak
@pytest.mark.parametrize("turn", [1, 2])
def test_the_release_it_was_recorded_with_answers_the_same(
    recorded: Any, fresh: Any, turn: int, tmp_path: Path
) -> None:
    told, cluster = recorded("3.9 one node"), fresh("3.9.2", 1)
    for name, path in told.captures.items():
        code, lines, said = replay(str(path), cluster, *SAFE)
        assert found(lines) == set(), said
        assert code == 0, (name, said)
        assert summary(lines)["unanswered"] == 0
        assert summary(lines)["sent"] > 10
    are_there(cluster, told, ("java.made", "java.group", "old.topic"), tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("turn", [1, 2])
def test_4_answers_otherwise_for_reasons(
    recorded: Any, fresh: Any, turn: int, tmp_path: Path
) -> None:
    told, cluster = recorded("3.9 one node"), fresh("4.4.0", 1)
    for name in ("everyday", "sweep"):
        code, lines, said = replay(str(told.captures[name]), cluster, *SAFE)
        assert code == 1
        assert summary(lines)["unanswered"] == 0, said
        differences = [each for each in lines if each["schema"] == "replay-difference/1"]
        for each in differences:
            place = (each["api"], each["path"])
            if not each["why"]:
                assert name == "sweep", each
                assert place in UNEXPLAINED, each
            else:
                assert re.match(EXPLAINED[each["api"]], each["why"]), each
    are_there(cluster, told, ("java.made", "java.group"), tmp_path)


@pytest.mark.soak
def test_clients_of_2_4_can_still_talk_to_4(recorded: Any, fresh: Any) -> None:
    """Kafka 4 dropped what clients before 2.1 send (KIP-896); 2.4 is young enough."""
    told, cluster = recorded("3.9 one node"), fresh("4.4.0", 1)
    _, lines, said = replay(str(told.captures["old"]), cluster, *SAFE)
    assert {api for api, _ in found(lines)} <= {"ApiVersions"}, said
    assert summary(lines)["unserved"] == summary(lines)["unanswered"] == 0


@pytest.mark.soak
@pytest.mark.parametrize("nodes", [3, 1])
def test_three_nodes_to_three_and_to_one(
    recorded: Any, fresh: Any, nodes: int, tmp_path: Path
) -> None:
    told, cluster = recorded("3.9 three nodes"), fresh("3.9.2", nodes)
    code, lines, said = replay(str(told.captures["everyday"]), cluster, *SAFE)
    assert found(lines) == set(), said
    assert code == 0
    are_there(cluster, told, ("java.made", "java.group"), tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("turn", [1, 2])
def test_groups_of_the_new_protocols(recorded: Any, fresh: Any, turn: int) -> None:
    told, cluster = recorded("4.4 new groups"), fresh("4.4.0", 1)
    for path in told.captures.values():
        code, lines, said = replay(str(path), cluster, *SAFE)
        assert found(lines) == set(), said
        assert code == 0, said
        assert summary(lines)["sent"] > 20
