"""The map of applications as a graph to draw, and as lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from kafkascope.analyzer.render.cells import size
from kafkascope.analyzer.render.graphs import Graph, GraphEdge, GraphNode
from kafkascope.analyzer.statistics.journeys.model import Application, AppMap, Read, Write
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.text import columns_taken, cut, cut_within, filled, plural, safe, wrapped
from kafkascope.times import SECOND

UNREAD: Final = "not read in this capture"
UNWRITTEN: Final = "not written in this capture"
UNKNOWN: Final = "writers unknown"


def count(records: int | None) -> str:
    """Return a number of records for people."""
    return "-" if records is None else f"{records:,}"


def rate(records: int | None, span_ns: int) -> str:
    """Return records a second; empty where the traffic is shorter than one."""
    return f"{records * SECOND / span_ns:.3g}/s" if records and span_ns >= SECOND else ""


def graph_of(shown: AppMap, most: int = LIMITS.drawn_topics) -> Graph:
    """Return the graph of the topics with the most bytes, and their applications."""
    traffic, degree = Counter[str](), Counter[str]()
    for _, edge in shown.edges():
        traffic[edge.topic] += edge.bytes or 0
        degree[edge.topic] += 1
    busiest = [name for name, _ in traffic.most_common(most)]
    ends = accumulate(degree[name] for name in busiest)
    topics = sorted(
        name for name, end in zip(busiest, ends, strict=True) if end <= LIMITS.drawn_edges
    )
    ids = {name: f"t{number}" for number, name in enumerate(topics)}
    nodes, edges, span_ns = dict[str, GraphNode](), [], shown.span_ns
    names = {each.name: f"a{number}" for number, each in enumerate(shown.applications)}
    for each, edge in shown.edges():
        if edge.topic not in ids:
            continue
        name, topic, label = names[each.name], ids[edge.topic], count(edge.records)
        nodes[name] = GraphNode(name, "application", (each.name, *about(each)[:2]))
        records = "record" if edge.records == 1 else "records"
        title = f"{label} {records}, {size(edge.bytes)}"
        if speed := rate(edge.records, span_ns):
            title += f", {speed}"
        if isinstance(edge, Write):
            title = f"{each.name} writes to {edge.topic}: {title}"
            edges.append(GraphEdge(name, topic, label, edge.bytes or 0, title))
            continue
        title = f"{each.name} reads {edge.topic}: {title}"
        if edge.group:
            label, title = f"{edge.group}: {label}", f"{title}, group {edge.group}"
        edges.append(GraphEdge(topic, name, label, edge.bytes or 0, title))
    writers, readers = shown.sides()
    unwritten = UNKNOWN if shown.unnamed_requests else UNWRITTEN
    sides = (writers, "written", unwritten), (readers, "read", UNREAD)
    for name in topics:
        amounts = [
            f"{count(_sum(edge.records for _, edge in side[name]))} {verb}"
            if name in side
            else nobody
            for side, verb, nobody in sides
        ]
        nodes[ids[name]] = GraphNode(ids[name], "topic", (name, ", ".join(amounts)))
    return Graph(list(nodes.values()), edges, len(traffic) - len(topics))


def _sum(records: Iterable[int | None]) -> int | None:
    """Return the sum of the numbers that are known; None for none."""
    known = [each for each in records if each is not None]
    return sum(known) if known else None


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
    unwritten = UNKNOWN if shown.unnamed_requests else UNWRITTEN
    if width is not None:
        room = min(
            room, LIMITS.topic_columns, max(width - LIMITS.edge_columns, LIMITS.edge_columns // 4)
        )
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
        for _, edge in AppMap([each]).edges():
            if isinstance(edge, Write):
                schemas = f"schema {_listed([*map(str, edge.schemas)])}  " if edge.schemas else ""
                names = [_reader(*pair) for pair in readers.get(edge.topic, ())]
                other = f"{schemas}-> {', '.join(dict.fromkeys(names)) or UNREAD}"
            else:
                names = [safe(writer.name) for writer, _ in writers.get(edge.topic, ())]
                group = f"group {safe(edge.group)}" if edge.group else "no group"
                if edge.groups:
                    group = f"groups {_listed(edge.groups)}"
                other = f"{group}  <- {', '.join(dict.fromkeys(names)) or unwritten}"
            yield from _row(edge, room, span_ns, other, width)


def _reader(application: Application, read: Read) -> str:
    """Return who reads a topic, with the group where that has another name."""
    name, group = safe(application.name), safe(read.group or "")
    return f"{name} (group {group})" if group and group != name else name


def _row(
    edge: Write | Read, room: int, span_ns: int, other: str, width: int | None
) -> Iterator[tuple[str, str]]:
    """Yield an edge; who is on the other side has lines of its own where one is too short."""
    way = "writes" if isinstance(edge, Write) else "reads"
    topic = filled(cut_within(safe(edge.topic), room), room)
    records = "record " if edge.records == 1 else "records"
    line = (
        f"  {way:<6}  {topic}  {count(edge.records):>9} {records}  {size(edge.bytes):>7}"
        f"  {rate(edge.records, span_ns):>8}"
    )
    if width is None or columns_taken(line) + 2 + columns_taken(other) <= width:
        yield f"{line}  {other}", ""
        return
    yield cut(line.rstrip(), width), ""
    for more in wrapped(other, width, indent=" " * 10, hanging=" " * 13, breaks=True):
        yield more, ""
