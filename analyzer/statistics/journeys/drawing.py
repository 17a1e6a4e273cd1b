"""The map of applications as a graph, in the languages of Mermaid and Graphviz, and as lines for a
terminal. Names come from traffic: they are text, never markup or statements of these languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.render.cells import size
from kafkascope.analyzer.statistics.journeys.model import Application, AppMap, MapEdge
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.text import columns_taken, cut, cut_within, filled, plural, safe, wrapped
from kafkascope.times import SECOND

UNREAD: Final = "not read in this capture"
UNWRITTEN: Final = ("not written in this capture", "writers unknown")
"""The second where Produce requests do not tell their topics."""


class GraphNode(NamedTuple):
    """An application or a topic."""

    id: str
    """Unlike all others: `a0`, `t12`; no word of a language."""
    shape: Literal["application", "topic"]
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


def count(records: int | None) -> str:
    """Return a number of records for people."""
    return "-" if records is None else f"{records:,}"


def rate(records: int | None, span_ns: int) -> str:
    """Return records a second; empty where the traffic is shorter than one."""
    return f"{records * SECOND / span_ns:.3g}/s" if records and span_ns >= SECOND else ""


def graph_of(shown: AppMap, most: int = LIMITS.drawn_topics) -> Graph:
    """Return the graph of the topics with the most bytes, and their applications."""
    traffic = by_key((edge.topic, edge.bytes or 0) for _, edge in shown.edges())
    busiest = sorted(traffic, key=lambda name: -sum(traffic[name]))[:most]
    ends = accumulate(len(traffic[name]) for name in busiest)
    topics = [name for name, end in zip(busiest, ends, strict=True) if end <= LIMITS.drawn_edges]
    ids = {name: f"t{number}" for number, name in enumerate(sorted(topics))}
    nodes, edges, span_ns = dict[str, GraphNode](), list[GraphEdge](), shown.span_ns
    names = {each.name: f"a{number}" for number, each in enumerate(shown.applications)}
    for each, edge in shown.edges():
        if edge.topic not in ids:
            continue
        ends_of = names[each.name], ids[edge.topic]
        nodes[ends_of[0]] = GraphNode(ends_of[0], "application", (each.name, *about(each)[:2]))
        label = count(edge.records)
        noun, speed = "record" if edge.records == 1 else "records", rate(edge.records, span_ns)
        title = ", ".join(filter(None, [f"{label} {noun}", size(edge.bytes), speed]))
        if edge.way == "writes":
            title = f"{each.name} writes to {edge.topic}: {title}"
        else:
            title = f"{each.name} reads {edge.topic}: {title}"
            if edge.group:
                label, title = f"{edge.group}: {label}", f"{title}, group {edge.group}"
            ends_of = ends_of[::-1]
        edges.append(GraphEdge(*ends_of, label, edge.bytes or 0, title))
    writers, readers = shown.sides()
    sides = (writers, "written", UNWRITTEN[shown.unnamed_requests > 0]), (readers, "read", UNREAD)
    for name, topic in ids.items():
        amounts = []
        for side, verb, nobody in sides:
            known = [edge.records for _, edge in side.get(name, ()) if edge.records is not None]
            total = f"{count(sum(known) if known else None)} {verb}"
            amounts.append(total if name in side else nobody)
        nodes[topic] = GraphNode(topic, "topic", (name, ", ".join(amounts)))
    return Graph(list(nodes.values()), edges, len(traffic) - len(topics))


# --- Mermaid and Graphviz

# Letters and digits of all scripts, and what names of topics and sizes are made of. All else is an
# entity of Mermaid: quotes end a label, backticks begin Markdown, `<` HTML, `#` entities.
_NO_MARKUP: Final = re.compile(r"[^\w .,:/+@()-]")


def mermaid(graph: Graph) -> str:
    """Return a flowchart of Mermaid."""
    out = ["flowchart LR"]
    for node in graph.nodes:
        begin, end = ("[", "]") if node.shape == "application" else ("[(", ")]")
        out.append(f'{node.id}{begin}"{"<br>".join(map(_entities, node.lines))}"{end}')
    out += (f'{each.source} -->|"{_entities(each.label)}"| {each.target}' for each in graph.edges)
    more = [f"%% {graph.left_out} more topics are left out"] * (graph.left_out > 0)
    return "\n    ".join(out + more) + "\n"


def _entities(text: str) -> str:
    return _NO_MARKUP.sub(lambda found: f"#{ord(found[0])};", safe(text))


def dot(graph: Graph) -> str:
    """Return a digraph of Graphviz."""
    out = ["digraph kafka {", "rankdir=LR;"]
    out += (f'{of} [fontname="sans-serif", fontsize={n}];' for of, n in (("node", 11), ("edge", 9)))
    for node in graph.nodes:
        shape = "box" if node.shape == "application" else "cylinder"
        label = r"\n".join(map(_escaped, node.lines))
        out.append(f'{node.id} [shape={shape}, label="{label}"];')
    for edge in graph.edges:
        out.append(f'{edge.source} -> {edge.target} [label="{_escaped(edge.label)}"];')
    more = [f"// {graph.left_out} more topics are left out"] * (graph.left_out > 0)
    return "\n    ".join(out + more) + "\n}\n"


def _escaped(text: str) -> str:
    """Return a text for a quoted string, where `\\N`, `\\G` and others stand for names and `&` for
    entities of HTML."""
    return safe(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


# --- text


def about(each: Application) -> list[str]:
    """Return what is known of an application: libraries, client ids, users, hosts, racks."""
    words = list(map(safe, each.software[:2]))
    if len(each.client_ids) > 1:
        words.append(plural(len(each.client_ids), "client ID"))
    for noun, names in (("user", each.users), ("host", each.hosts), ("rack", each.racks)):
        if names:
            words.append(f"{noun}{'s' * (len(names) > 1)} {_listed(names)}")
    return words


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and how many there are beside them."""
    rest = len(names) - LIMITS.named_attributes
    shown = ", ".join(map(safe, names[: LIMITS.named_attributes]))
    return f"{shown} and {rest} more" if rest > 0 else shown


def map_lines(
    shown: AppMap, width: int | None, only: str | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the lines for a terminal of some columns (None: a pipe) with their styles: each
    application (or `only` one), and for each of its topics who is on the other side."""
    (writers, readers), span_ns = shown.sides(), shown.span_ns
    room = max((columns_taken(safe(name)) for name in {**writers, **readers}), default=0)
    if width is not None:
        least = max(width - LIMITS.edge_columns, LIMITS.edge_columns // 4)
        room = min(room, LIMITS.topic_columns, least)
    chosen = [each for each in shown.applications if only in (None, each.name)]
    for number, each in enumerate(chosen):
        if number:
            yield "", ""
        yield safe(each.name), "header"
        words = about(each)
        if len(each.client_ids) > 1:
            words.append(f"{_listed(each.client_ids)} ({each.rule})")
        for line in wrapped(", ".join(words), width or 1 << 30, indent="  ", breaks=True):
            yield line, "~"
        for edge in each.edges:
            topic = filled(cut_within(safe(edge.topic), room), room)
            if edge.way == "writes":
                arrow, nobody = "->", UNREAD
                group = f"schema {_listed([*map(str, edge.schemas)])}  " if edge.schemas else ""
                names = [_reader(*pair) for pair in readers.get(edge.topic, ())]
            else:
                arrow, nobody = "<-", UNWRITTEN[shown.unnamed_requests > 0]
                group = f"group {safe(edge.group)}  " if edge.group else "no group  "
                if edge.groups:
                    group = f"groups {_listed(edge.groups)}  "
                names = [safe(writer.name) for writer, _ in writers.get(edge.topic, ())]
            other = f"{group}{arrow} {', '.join(dict.fromkeys(names)) or nobody}"
            records = "record " if edge.records == 1 else "records"
            line = (
                f"  {edge.way:<6}  {topic}  {count(edge.records):>9} {records}  "
                f"{size(edge.bytes):>7}  {rate(edge.records, span_ns):>8}"
            )
            # Who is on the other side has lines of its own where one is too short.
            if width is None or columns_taken(line) + 2 + columns_taken(other) <= width:
                yield f"{line}  {other}", ""
                continue
            yield cut(line.rstrip(), width), ""
            for more in wrapped(other, width, indent=" " * 10, hanging=" " * 13, breaks=True):
                yield more, ""


def _reader(application: Application, read: MapEdge) -> str:
    """Return who reads a topic, with the group where that has another name."""
    name, group = safe(application.name), safe(read.group or "")
    return f"{name} (group {group})" if group and group != name else name
