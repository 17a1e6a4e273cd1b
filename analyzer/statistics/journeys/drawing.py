"""The map of applications as a graph to draw, and as lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.render.cells import size
from kafkascope.analyzer.render.graphs import Graph, GraphEdge, GraphNode
from kafkascope.analyzer.statistics.journeys.model import Application, Read, Write, edges_of
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.analyzer.text import columns_taken, cut, filled, plural, safe, wrapped
from kafkascope.analyzer.times import SECOND

UNREAD: Final = "not read in this capture"
UNWRITTEN: Final = "not written in this capture"


class AppMap(NamedTuple):
    """Applications with their topics."""

    applications: Sequence[Application]

    @property
    def span_ns(self) -> int:
        """From the first to the last request on any edge: what rates are of."""
        edges = [edge for each in self.applications for edge in edges_of(each)]
        first = min((edge.first_ns for edge in edges), default=0)
        return max((edge.last_ns for edge in edges), default=0) - first

    def writers(self) -> dict[str, list[tuple[Application, Write]]]:
        """Return the applications that write to each topic."""
        return by_key(
            (edge.topic, (each, edge)) for each in self.applications for edge in each.writes
        )

    def readers(self) -> dict[str, list[tuple[Application, Read]]]:
        """Return the applications that read each topic."""
        return by_key(
            (edge.topic, (each, edge)) for each in self.applications for edge in each.reads
        )


def rate(records: int, span_ns: int) -> str:
    """Return records a second; empty where the traffic is shorter than one."""
    return f"{records * SECOND / span_ns:.3g}/s" if records and span_ns >= SECOND else ""


def graph_of(shown: AppMap, most: int = LIMITS.drawn_topics) -> Graph:
    """Return the graph of the topics with the most bytes, and their applications."""
    traffic, degree = Counter[str](), Counter[str]()
    for each in shown.applications:
        for edge in edges_of(each):
            traffic[edge.topic] += edge.bytes
            degree[edge.topic] += 1
    busiest = [name for name, _ in traffic.most_common(most)]
    ends = accumulate(degree[name] for name in busiest)
    topics = sorted(
        name for name, end in zip(busiest, ends, strict=True) if end <= LIMITS.drawn_edges
    )
    ids = {name: f"t{number}" for number, name in enumerate(topics)}
    writers, readers = shown.writers(), shown.readers()
    nodes, edges = [], []
    for number, each in enumerate(shown.applications):
        own = [edge for edge in edges_of(each) if edge.topic in ids]
        if not own:
            continue
        name = f"a{number}"
        nodes.append(GraphNode(name, "application", (each.name, *about(each)[:2])))
        for edge in own:
            told = _sentence(each, edge, shown.span_ns)
            label = f"{edge.records:,}"
            if isinstance(edge, Write):
                edges.append(GraphEdge(name, ids[edge.topic], label, edge.bytes, told))
            else:
                label = f"{edge.group}: {label}" if edge.group else label
                edges.append(GraphEdge(ids[edge.topic], name, label, edge.bytes, told))
    for name in topics:
        written, read = (
            sum(edge.records for _, edge in side.get(name, ())) for side in (writers, readers)
        )
        amounts = (
            f"{written:,} written" if name in writers else UNWRITTEN,
            f"{read:,} read" if name in readers else UNREAD,
        )
        nodes.append(GraphNode(ids[name], "topic", (name, ", ".join(amounts))))
    return Graph(nodes, edges, len(traffic) - len(topics))


def _sentence(each: Application, edge: Write | Read, span_ns: int) -> str:
    amount = f"{plural(edge.records, 'record')}, {size(edge.bytes)}"
    if speed := rate(edge.records, span_ns):
        amount += f", {speed}"
    if isinstance(edge, Write):
        return f"{each.name} writes to {edge.topic}: {amount}"
    group = f", group {edge.group}" if edge.group else ""
    return f"{each.name} reads {edge.topic}: {amount}{group}"


def about(each: Application) -> list[str]:
    """Return what is known of an application: libraries, client ids, users, hosts, racks."""
    several = [plural(len(each.client_ids), "client ID")] if len(each.client_ids) > 1 else []
    return [
        *map(safe, each.software[:2]),
        *several,
        *(_named("user", each.users)),
        *(_named("host", each.hosts)),
        *(_named("rack", each.racks)),
    ]


def _named(noun: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"{noun if len(names) == 1 else noun + 's'} {listed(names)}"]


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many there are beside them."""
    rest = len(names) - LIMITS.named_attributes
    shown = ", ".join(map(safe, names[: LIMITS.named_attributes]))
    return f"{shown} and {rest} more" if rest > 0 else shown


def map_lines(
    shown: AppMap, width: int | None, only: str | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the lines for a terminal of some columns (None: a pipe) with their styles: each
    application (or `only` one), and for each of its topics who is on the other side."""
    writers, readers = shown.writers(), shown.readers()
    room = max((columns_taken(safe(name)) for name in {**writers, **readers}), default=0)
    room = min(room, LIMITS.topic_columns)
    chosen = [each for each in shown.applications if only in (None, each.name)]
    for number, each in enumerate(chosen):
        if number:
            yield "", ""
        yield safe(each.name), "header"
        words = [*about(each)]
        if len(each.client_ids) > 1:
            words.append(f"{listed(each.client_ids)} ({each.rule})")
        for line in wrapped(", ".join(words), width or 1 << 30, indent="  ", breaks=True):
            yield line, "~"
        for write in each.writes:
            schemas = f"schema {listed([*map(str, write.schemas)])}  " if write.schemas else ""
            text = f"{schemas}-> {_others(readers.get(write.topic, ())) or UNREAD}"
            yield from _row("writes", write, room, shown.span_ns, text, width)
        for read in each.reads:
            group = f"group {safe(read.group)}" if read.group else "no group"
            others = ", ".join(
                dict.fromkeys(safe(app.name) for app, _ in writers.get(read.topic, ()))
            )
            text = f"{group}  <- {others or UNWRITTEN}"
            yield from _row("reads", read, room, shown.span_ns, text, width)


def _others(readers: Iterable[tuple[Application, Read]]) -> str:
    """Return who reads a topic, with their groups where they have other names."""
    out: dict[str, None] = {}
    for app, read in readers:
        name, group = safe(app.name), safe(read.group or "")
        out[f"{name} (group {group})" if group and group != name else name] = None
    return ", ".join(out)


def _row(
    way: str, edge: Write | Read, room: int, span_ns: int, other: str, width: int | None
) -> Iterator[tuple[str, str]]:
    """Yield an edge; who is on the other side has lines of its own where one is too short."""
    topic = filled(cut(safe(edge.topic), room), room)
    records = "record " if edge.records == 1 else "records"
    line = (
        f"  {way:<6}  {topic}  {edge.records:>9,} {records}  {size(edge.bytes):>7}"
        f"  {rate(edge.records, span_ns):>8}"
    )
    if width is None or columns_taken(line) + 2 + columns_taken(other) <= width:
        yield f"{line}  {other}", ""
        return
    yield cut(line.rstrip(), width), ""
    for more in wrapped(other, width, indent=" " * 10, hanging=" " * 13, breaks=True):
        yield more, ""
