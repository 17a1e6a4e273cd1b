"""The cluster as told: addresses that nobody reached, leaders that move, coordinators."""

from typing import Any

import pytest

from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.captures.model import Closed, Connection, Endpoint, Opened
from tests.kit.counting import counted, pairs_in, traffic
from tests.kit.samples import CAPTURES
from tests.kit.wire import BROKER, START, Wire, metadata, request, response


def nodes(found: Cluster) -> dict[str, dict[str, Any]]:
    return {line["address"]: line for line in found.rows()}


def cluster(*answers: dict[str, Any]) -> Cluster:
    wire, found = Wire(), Cluster()
    for number, answer in enumerate(answers, 1):
        wire.client(request("Metadata", 12, number))
        wire.broker(response("Metadata", 12, number, **answer))
    counted(found, pairs_in(wire.events))
    return found


def test_addresses_that_nobody_reached_are_told() -> None:
    found = nodes(cluster(metadata((1, BROKER.host, 9092), (2, "10.0.1.3", 9092))))
    assert found["10.0.1.2:9092"]["contacted"] == "yes"
    assert found["10.0.1.3:9092"]["contacted"] == "no"
    assert found["10.0.1.3:9092"]["remarks"] == ["never contacted"]


def test_loopback_is_no_address_for_a_client_elsewhere() -> None:
    found = nodes(cluster(metadata((1, "localhost", 9092))))
    assert found["localhost:9092"]["contacted"] == "no"
    assert found["localhost:9092"]["remarks"][0] == "loopback, advertised to 10.0.0.4"
    # What the client did use is told, too.
    assert found["10.0.1.2:9092"]["node"] is None


@pytest.mark.parametrize(("waited", "word"), [(1.0, "failed"), (0.9, "unanswered")])
def test_attempts_without_an_answer(waited: float, word: str) -> None:
    """Right before the end of a capture nobody knows whether an answer came."""
    found = cluster(metadata((2, "10.0.1.3", 9092), (3, "10.0.1.4", 9092)))
    for number, host in ((7, "10.0.1.3"), (8, "10.0.1.4")):
        client = Endpoint("10.0.0.4", 40000 + number)
        connection = Connection(number, client, Endpoint(host, 9092), START, handshake=True)
        found.saw(Opened(connection))
        refused = number == 8
        how: Any = "rst" if refused else "end"
        end = START + int(waited * 1e9)
        found.saw(Closed(connection, 1 if refused else None, how, end))
    lines = nodes(found)
    assert lines["10.0.1.3:9092"]["contacted"] == word
    assert ("no answer to SYN" in lines["10.0.1.3:9092"]["remarks"]) == (word == "failed")
    assert "refused" in lines["10.0.1.4:9092"]["remarks"]


def test_what_came_behind_the_end_does_not_undo_that_it_was_refused() -> None:
    """Whole blocks are counted before anybody hears of what happened in them."""
    found = cluster(metadata((3, "10.0.1.4", 9092)))
    client, broker = Endpoint("10.0.0.4", 40008), Endpoint("10.0.1.4", 9092)
    connection = Connection(8, client, broker, START, handshake=True, bytes=[5, 0])
    found.saw(Opened(connection))
    found.saw(Closed(connection, 1, "rst", START, used=False))
    assert "refused" in nodes(found)["10.0.1.4:9092"]["remarks"]


def test_leaders_move() -> None:
    node = (1, BROKER.host, 9092)
    first, second = metadata(node), metadata(node, leader=2, epoch=2)
    (line,) = cluster(first, second).leaders()
    assert (line["leader"], line["leader_epoch"], line["changes"]) == (2, 2, 1)
    assert (line["replicas"], line["in_sync"], line["offline"]) == ([1, 2], [1], [2])
    # The later word counts, in whatever order it is heard.
    assert cluster(first, second).facts.controller is not None


def test_real_clusters() -> None:
    pairs, names = traffic("cluster.pcap.gz")
    found = counted(Cluster(), pairs)
    brokers = [line for line in found.rows(names) if line["role"] == "broker"]
    assert {line["node"] for line in brokers} == {1, 2, 3}
    assert {line["contacted"] for line in brokers} == {"yes"}
    assert len(list(found.facts.ids)) == 1
    assert all(line["node"] in (1, 2, 3) for line in found.coordinators() if line["node"])
    assert found.leaders(names)


def test_what_brokers_registered_stands_beside_what_clients_were_told() -> None:
    pairs, _ = traffic("zookeeper-consumers.pcap.zst", CAPTURES)
    lines = {line["node"]: line for line in counted(Cluster(), pairs).rows()}
    assert lines.keys() == {1, 2}  # and no server of ZooKeeper
    told = {node: (line["address"], line["remarks"]) for node, line in lines.items()}
    assert lines[1]["advertised"] == 5
    assert told[1] == ("127.0.0.1:9092", [])
    assert told[2] == ("127.0.0.1:9192", ["registered in ZooKeeper, never advertised"])
