"""Graphs of applications and topics in the languages of Mermaid and Graphviz. Names come from
traffic: they are text, never markup or statements of these languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from kafkascope.analyzer.text import safe

Shape = Literal["application", "topic"]


class GraphNode(NamedTuple):
    """An application or a topic."""

    id: str
    """Unlike all others: `a0`, `t12`; no word of a language."""
    shape: Shape
    lines: tuple[str, ...]
    """Its name, then what is known of it."""


class GraphEdge(NamedTuple):
    """An application writes to a topic, or a topic is read by an application."""

    source: str
    target: str
    label: str
    size_bytes: int
    title: str = ""
    """The whole sentence, where there is room for one."""


class Graph(NamedTuple):
    """What is drawn."""

    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    left_out: int = 0
    """Topics beyond those that are drawn."""


# Letters and digits of all scripts, and what names of topics and sizes are made of. All else is an
# entity of Mermaid: quotes end a label, backticks begin Markdown, `<` HTML, `#` entities.
_NO_MARKUP: Final = re.compile(r"[^\w .,:/+@()-]")


def mermaid(graph: Graph) -> str:
    """Return a flowchart of Mermaid."""
    out = ["flowchart LR"]
    for node in graph.nodes:
        label = "<br>".join(map(_entities, node.lines))
        begin, end = ("[", "]") if node.shape == "application" else ("[(", ")]")
        out.append(f'    {node.id}{begin}"{label}"{end}')
    for edge in graph.edges:
        label = f'|"{_entities(edge.label)}"|' if edge.label else ""
        out.append(f"    {edge.source} -->{label} {edge.target}")
    if graph.left_out:
        out.append(f"    %% {graph.left_out} more topics are left out")
    return "\n".join(out) + "\n"


def _entities(text: str) -> str:
    return _NO_MARKUP.sub(lambda found: f"#{ord(found[0])};", safe(text))


def dot(graph: Graph) -> str:
    """Return a digraph of Graphviz."""
    out = [
        "digraph kafka {",
        "    rankdir=LR;",
        '    node [fontname="sans-serif", fontsize=11];',
        '    edge [fontname="sans-serif", fontsize=9];',
    ]
    for node in graph.nodes:
        shape = "box" if node.shape == "application" else "cylinder"
        label = r"\n".join(map(_escaped, node.lines))
        out.append(f'    {node.id} [shape={shape}, label="{label}"];')
    for edge in graph.edges:
        out.append(f'    {edge.source} -> {edge.target} [label="{_escaped(edge.label)}"];')
    if graph.left_out:
        out.append(f"    // {graph.left_out} more topics are left out")
    return "\n".join([*out, "}", ""])


def _escaped(text: str) -> str:
    """Return a text for a quoted string, where `\\N`, `\\G` and others stand for names and `&` for
    entities of HTML."""
    return safe(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
