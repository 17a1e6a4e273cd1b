"""The map as lines for a terminal and as a graph."""

from kafkascope.analyzer.statistics.journeys.drawing import graph_of, map_lines
from kafkascope.analyzer.statistics.journeys.model import Application, AppMap, MapEdge
from kafkascope.analyzer.text import columns_taken
from kafkascope.times import SECOND
from tests.hostile import EVIL, forged

WRITE = MapEdge("writes", "orders", None, 350, 41_000, SECOND, 11 * SECOND, (7,))
READ = MapEdge("reads", "orders", "billing-group", 351, 42_000, 2 * SECOND, 11 * SECOND)
ORDERS = Application(
    "orders-svc",
    ("orders-1", "orders-2"),
    "client IDs that differ by a number",
    ("alice",),
    ("apache-kafka-java 4.4.0",),
    ("10.0.0.5",),
    ("r1",),
    (WRITE, MapEdge("writes", "audit", None, 1, 40, SECOND, SECOND)),
)
BILLING = Application("billing", ("billing-1",), "one client id", edges=(READ,))
SHOP = AppMap([ORDERS, BILLING])


def test_an_application_names_who_is_at_the_other_side() -> None:
    assert [line for line, _ in map_lines(SHOP, None)] == [
        "orders-svc",
        "  apache-kafka-java 4.4.0, 2 client IDs, user alice, host 10.0.0.5, rack r1, orders-1,"
        " orders-2 (client IDs that differ by a number)",
        "  writes  orders        350 records    41 KB      35/s  schema 7  -> billing"
        " (group billing-group)",
        "  writes  audit           1 record      40 B     0.1/s  -> not read in this capture",
        "",
        "billing",
        "  reads   orders        351 records    42 KB    35.1/s  group billing-group"
        "  <- orders-svc",
    ]


def test_lines_fit_a_terminal() -> None:
    long = ORDERS._replace(name="x" * 300, hosts=("h" * 200,))
    for line, _ in list(map_lines(AppMap([long, BILLING]), 60))[1:]:
        assert columns_taken(line) <= 60


def test_names_that_begin_alike_can_be_told_apart() -> None:
    names = [f"app-KTABLE-FK-JOIN-SUBSCRIPTION-{n:036}-topic" for n in range(2)]
    shown = AppMap([ORDERS._replace(edges=tuple(WRITE._replace(topic=name) for name in names))])
    edges = [line for line, _ in map_lines(shown, 80) if "writes" in line]
    assert [line[35:42] for line in edges] == ["0-topic", "1-topic"]
    assert all(line.endswith("41 KB      35/s") for line in edges)
    assert all(any(name in line for line, _ in map_lines(shown, None)) for name in names)


def test_the_graph_has_topics_between_applications() -> None:
    graph = graph_of(SHOP)
    names = {node.id: node.lines for node in graph.nodes}
    edges = [(names[e.source][0], names[e.target][0], e.label) for e in graph.edges]
    assert edges == [
        ("orders-svc", "orders", "350"),
        ("orders-svc", "audit", "1"),
        ("orders", "billing", "billing-group: 351"),
    ]
    assert ("audit", "1 written, not read in this capture") in names.values()
    assert graph.edges[0].title == "orders-svc writes to orders: 350 records, 41 KB, 35/s"


def test_the_busiest_topics_are_drawn() -> None:
    graph = graph_of(SHOP, 1)
    assert [n.lines[0] for n in graph.nodes if n.shape == "topic"] == ["orders"]
    assert graph.left_out == 1


def test_a_drawing_has_no_more_edges_than_mermaid_takes() -> None:
    edges = tuple(READ._replace(topic=f"topic-{n}") for n in range(3))
    readers = [BILLING._replace(name=f"app-{n}", edges=edges) for n in range(200)]
    graph = graph_of(AppMap(readers))
    assert (len(graph.edges), graph.left_out) == (400, 1)


def test_hostile_names_are_one_line() -> None:
    evil = ORDERS._replace(
        name=EVIL, client_ids=(EVIL, "b"), users=(EVIL,), edges=(WRITE._replace(topic=EVIL),)
    )
    for line, _ in map_lines(AppMap([evil, BILLING]), 80):
        assert not forged(line)
