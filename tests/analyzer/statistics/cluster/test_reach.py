"""An address is reached when the client that was told it connected to it."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import pytest

from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.cluster.reach_judged import JudgedReach, NodeKey
from kafkascope.captures.model import Closed, Opened, Resolved
from tests.kit.counting import counted as statistics
from tests.kit.counting import pairs_in
from tests.kit.wire import BROKER, CLIENT, SECOND, START, Wire, metadata, request, response

WANTED = [{"topic_id": bytes(16), "name": "orders"}]
Node: TypeAlias = tuple[int, str, int]
NODE = (1, "kafka-1", 9092)


def asks(wire: Wire, *nodes: Node, times: int = 1, topics: Any = WANTED, **more: int) -> Wire:
    for number in range(1, times + 1):
        wire.client(request("Metadata", 12, number, topics=topics))
        wire.broker(response("Metadata", 12, number, **metadata(*nodes, **more)))
    return wire


def works(wire: Wire) -> Wire:
    """Commits an offset, as only its coordinator lets it."""
    wire.client(request("OffsetCommit", 8, 77, group_id="g"))
    return wire.broker(response("OffsetCommit", 8, 77))


def later(number: int, host: str = BROKER.host, port: int = 9092, client: str = "") -> Wire:
    wire = Wire(number=number, port=port, start_ns=START + number * SECOND)
    wire.connection.b = wire.connection.b._replace(host=host)
    if client:
        wire.connection.a = CLIENT._replace(host=client)
    return wire


def counted(wires: Iterable[Wire], *names: Resolved, parts: int = 1) -> Cluster:
    """KeyedMeasures in parts that are written down, read and merged."""
    events = [event for wire in wires for event in wire.events]
    pairs = pairs_in(events)
    found = [statistics(Cluster(), pairs[number::parts]) for number in range(parts)]
    for number, event in enumerate(events):
        if isinstance(event, Opened | Closed):
            found[number % parts].saw(event)
    for number, name in enumerate(names):
        found[-1 - number % parts].named(name)
    whole = Cluster()
    for each in reversed(found):
        whole.merge(Cluster().load(each.dump()))
    return whole


def contacted(wires: Iterable[Wire], *names: Resolved, address: str = "kafka-1:9092") -> str:
    lines = {line["address"]: line for line in counted(wires, *names).rows()}
    return str(lines[address]["contacted"])


def test_the_port_of_the_bootstrap_is_not_the_address() -> None:
    """Asked again and again, and never any work: nobody can resolve the name."""
    wires = [asks(Wire(), NODE, times=4)]
    assert contacted(wires) == "no"
    found = counted(wires)
    (stuck,) = found.judged().stuck()
    assert (stuck.client, stuck.looks) == (("app", CLIENT.host), 4)
    assert stuck.asked == ((BROKER.host, 9092),)
    # What the client did use is told, too.
    assert [line["address"] for line in found.rows()] == ["kafka-1:9092", f"{BROKER.host}:9092"]


def test_one_look_says_nothing() -> None:
    assert contacted([asks(Wire(), NODE)]) == "unknown"


def test_a_client_that_asks_for_no_topic_wants_nothing() -> None:
    """Tools that watch a cluster, and idle clients, refresh what they know."""
    wire = asks(Wire(), NODE, times=5, topics=None)
    assert contacted([wire]) == "unknown"
    assert not list(counted([wire]).judged().stuck())


def test_a_refresh_every_five_minutes_is_no_waiting() -> None:
    wire = Wire()
    for _ in range(4):
        asks(wire, NODE)
        wire.time_ns += 300 * SECOND
    assert not list(counted([wire]).judged().stuck())


@pytest.mark.parametrize("onward", [False, True], ids=["on the bootstrap", "on its own"])
def test_work_on_the_port_makes_it_likely(onward: bool) -> None:
    """Some clients go on using the connection that they began with."""
    first = asks(Wire(), NODE, times=4)
    wires = [first, works(later(1))] if onward else [works(first)]
    assert contacted(wires) == "likely"
    assert not list(counted(wires).judged().stuck())


def test_a_connection_that_was_opened_after_the_answer_is_likely() -> None:
    onward = later(1).client(request("ApiVersions", 3, 1)).broker(response("ApiVersions", 3, 1))
    assert contacted([asks(Wire(), NODE), onward]) == "likely"


def test_one_address_cannot_be_two_nodes() -> None:
    wires = [works(asks(Wire(), NODE, (2, "kafka-2", 9092)))]
    assert contacted(wires) == "unknown"
    wires.append(works(later(1, "10.0.1.3")))
    assert contacted(wires) == "likely"


def test_who_was_told_has_to_go_there() -> None:
    """Another client is at the address, and nobody told it."""
    told_one = asks(Wire(), (1, "10.0.1.9", 9092), times=4)
    other = works(later(1, "10.0.1.9", client="10.0.0.99"))
    found = counted([told_one, other])
    line = next(each for each in found.rows() if each["address"] == "10.0.1.9:9092")
    assert (line["contacted"], line["remarks"]) == ("no", ["contacted only by other clients"])
    assert [stuck.client[1] for stuck in found.judged().stuck()] == [CLIENT.host]


NODES = [(1, "10.0.1.2", 9092), (2, "10.0.1.3", 9092), (3, "kafka-3", 9092)]


def misses(*others: Wire, leader: int = 3, times: int = 12) -> str:
    """Whether the third node was reached by a client that others of its connections are of."""
    found = counted([*others, asks(later(9), *NODES, times=times, leader=leader)])
    (line,) = [each for each in found.rows() if each["node"] == 3]
    stuck = list(found.judged().stuck())
    assert [each.works for each in stuck] == [True] * (line["contacted"] == "no")
    assert all(each.missed == (("broker", *NODES[2]),) for each in stuck)
    return str(line["contacted"])


def test_a_client_that_works_elsewhere_may_miss_one_node() -> None:
    first, second = works(later(1)), works(later(2, "10.0.1.3"))
    assert misses(first, second) == "no"
    assert misses(first, second, times=3) == "unknown", "clients that start ask a few times"
    assert misses(first, second, leader=1) == "unknown", "it needs nothing there"
    assert misses(first) == "unknown", "what a capture at one broker sees"
    refused = later(3, "10.0.1.3").close("broker", "rst")
    assert misses(first, works(later(2, "10.0.1.4")), refused) != "no", "it asks for another node"
    early = Wire(number=3, handshake=False)
    assert misses(first, second, works(early)) == "unknown", "it may be connected"


def test_connects_to_the_bootstrap_are_none_to_a_name() -> None:
    """Refused three times, and the bootstrap address has the same port."""
    calls = [later(number, "10.0.1.9").close("broker", "rst") for number in (1, 2, 3)]
    line = counted([asks(Wire(), NODE, times=4), *calls]).rows()[0]
    assert (line["contacted"], line["attempts"]) == ("failed", 3)


def test_connections_before_the_capture_may_be_silent() -> None:
    wire = Wire(handshake=False)
    asks(wire, (1, "10.0.1.9", 9092))
    assert contacted([wire], address="10.0.1.9:9092") == "unknown"


@pytest.mark.parametrize("source", ["dns", "block", "hosts", "sni"])
def test_a_name_that_is_resolved(source: str) -> None:
    wires = [works(asks(Wire(), NODE))]
    here = Resolved("kafka-1", (BROKER.host,), source)
    assert contacted(wires, here) == "yes"
    line = counted(wires, here).rows()[0]
    assert line["remarks"] == [f"resolves to {BROKER.host}"]
    elsewhere = Resolved("kafka-1", ("10.0.1.9",), source)
    assert contacted([asks(Wire(), NODE, times=4)], elsewhere) == "no"


def test_a_node_that_is_told_by_name_and_by_address() -> None:
    wires = [works(asks(Wire(), NODE)), asks(later(1, client="10.0.0.5"), (1, BROKER.host, 9092))]
    assert contacted(wires) == "yes"


def test_a_node_that_is_known_by_what_only_it_can_answer() -> None:
    """The leader of a partition takes its records."""
    wire = asks(Wire(), NODE, (2, "kafka-2", 9092))
    assert contacted([wire]) == "unknown"
    topics = [{"name": "orders", "partition_data": [{"index": 0, "records": None}]}]
    wire.client(request("Produce", 7, 9, acks=-1, topic_data=topics))
    done = [{"name": "orders", "partition_responses": [{"index": 0, "base_offset": 5}]}]
    wire.broker(response("Produce", 7, 9, responses=done))
    assert contacted([wire]) == "yes"
    assert contacted([wire], address="kafka-2:9092") == "unknown"


def test_calls_of_a_host_that_is_served_are_not_failures() -> None:
    """A broker that was restarted refused others of the host before."""
    other = works(later(1))
    called = later(2).close("broker", "rst")
    asker = asks(later(3, "10.0.1.3"), (1, BROKER.host, 9092))
    assert counted([other, called, asker]).rows()[0]["contacted"] != "failed"


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_parts_tell_the_same_as_the_whole(parts: int) -> None:
    wires = [
        asks(Wire(), NODE, (2, "kafka-2", 9192), times=4),
        works(later(1)),
        asks(later(2, client="10.0.0.5"), (3, "10.0.1.7", 9092), times=4),
    ]
    names = [Resolved("kafka-2", ("10.0.1.8", "10.0.1.9"), "dns")]
    whole, cut = counted(wires, *names), counted(wires, *names, parts=parts)
    assert cut.rows() == whole.rows()
    assert list(cut.judged().stuck()) == list(whole.judged().stuck())


def test_many_names_are_judged_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """33 KB of Metadata with 2,000 names took minutes."""
    asked: list[object] = []
    look = JudgedReach.hosts_of

    def counted_look(self: JudgedReach, node: NodeKey) -> set[str] | None:
        asked.append(node)
        return look(self, node)

    monkeypatch.setattr(JudgedReach, "hosts_of", counted_look)
    nodes = [(number, f"kafka-{number}", 9092) for number in range(200)]
    assert len(counted([asks(Wire(), *nodes)]).rows()) >= 200
    assert len(asked) <= 5 * len(nodes)
