"""Captures of real clients, sent to fresh clusters again: the same answers, but for what the
releases do differently."""

from collections.abc import Iterator

import pytest

from tests.interop.brokers import Cluster, KRaftCluster
from tests.interop.replays import SAFE, found, replay, summary

pytestmark = pytest.mark.interop


@pytest.fixture
def fresh(java: None, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that nobody has used."""
    version, nodes = request.param
    with KRaftCluster(version, nodes=nodes) as cluster:
        yield cluster


@pytest.mark.parametrize("fresh", [("3.9.2", 3)], indirect=True, ids=["three nodes"])
def test_three_nodes_answer_what_one_answered(fresh: Cluster) -> None:
    """Transactions, groups and an old client, captured with 3.9.2, to three nodes of 3.9.2."""
    for name in ("transactions.pcap", "java-old.pcap"):
        code, lines, said = replay(name, fresh, *SAFE)
        assert found(lines) == set(), said
        assert code == 0
        assert summary(lines)["sent"] > 100
        assert summary(lines)["unanswered"] == 0


@pytest.mark.parametrize("fresh", [("4.4.0", 1)], indirect=True, ids=["4.4"])
def test_what_4_answers_differently(fresh: Cluster) -> None:
    """The same clients against 4.4: transactions go on, the old client is turned away."""
    code, lines, said = replay("transactions.pcap", fresh, *SAFE)
    assert code == 1
    differences = {path for path in found(lines) if path[0] != "ApiVersions"}
    served = {"Fetch", "Produce", "InitProducerId", "AddPartitionsToTxn", "ListOffsets"}
    assert {api for api, path in differences if path != "version"} <= served, said
    code, lines, said = replay("java-old.pcap", fresh, *SAFE)
    turned_away = {
        (each["api"], each["now"])
        for each in lines
        if each["schema"] == "replay-difference/1" and each["api"] in ("Produce", "Fetch")
    }
    assert ("Fetch", "served: 4-18") in turned_away or ("Fetch", "served: 4 to 18") in turned_away
    assert ("Produce", "the broker closed the connection") in turned_away
    assert "the target does not respond to Fetch v3 (" in said
    assert "Produce v2 (" in said.partition("does not respond")[2]


@pytest.mark.parametrize("fresh", [("4.4.0", 1)], indirect=True, ids=["4.4"])
def test_nothing_is_changed_unasked(fresh: Cluster) -> None:
    """Without --allow-writes only what reads is sent, and missing topics are one sentence."""
    code, lines, said = replay("libraries.pcap", fresh)
    assert code == 2
    assert "create it, or give --create-topics" in said
    code, lines, said = replay("libraries.pcap", fresh, "--create-topics", "--speed", "max")
    skipped = {each["api"] for each in lines if each["schema"] == "replay-skipped/1"}
    assert {"Produce", "JoinGroup", "CreateTopics", "InitProducerId"} <= skipped
    assert summary(lines)["sent"] > 0
