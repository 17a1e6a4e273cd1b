"""Graphs for Mermaid and Graphviz: hostile names stay text."""

from kafkascope.analyzer.statistics.journeys.drawing import (
    Graph,
    GraphEdge,
    GraphNode,
    dot,
    mermaid,
)
from tests.hostile import EVIL

EVIL_NAME = '"] --> x["`a` <b>&amp;#quot; \\N end'


def graph(name: str) -> Graph:
    return Graph(
        [GraphNode("a0", "application", (name, "2 members")), GraphNode("t0", "topic", (name,))],
        [GraphEdge("a0", "t0", f"{name} 3", 12)],
        1,
    )


def test_mermaid_is_a_flowchart() -> None:
    assert mermaid(graph("orders-svc")) == (
        "flowchart LR\n"
        '    a0["orders-svc<br>2 members"]\n'
        '    t0[("orders-svc")]\n'
        '    a0 -->|"orders-svc 3"| t0\n'
        "    %% 1 more topics are left out\n"
    )


def test_dot_is_a_digraph() -> None:
    lines = dot(graph("orders-svc")).splitlines()
    assert lines[0] == "digraph kafka {"
    assert lines[-1] == "}"
    assert r'    a0 [shape=box, label="orders-svc\n2 members"];' in lines
    assert '    a0 -> t0 [label="orders-svc 3"];' in lines


def test_hostile_names_are_text() -> None:
    for name in (EVIL_NAME, EVIL):
        for line in mermaid(graph(name)).splitlines():
            label = line.partition('"')[2].rpartition('"')[0]
            assert not set(label.replace("<br>", "")) & set('"<>`[]{}|\\\x1b')
        assert len(mermaid(graph(name)).splitlines()) == 5
        assert len(dot(graph(name)).splitlines()) == 9
        assert "\x1b" not in dot(graph(name))
    assert r'label="\"] --> x[\"`a` <b>&amp;amp;#quot; \\N end"' in dot(graph(EVIL_NAME))
