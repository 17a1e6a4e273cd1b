"""Contents of a report, in order: sections of sentences, charts and tables, each with the command
that prints the same numbers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.filters import api_is
from kafkascope.analyzer.findings.outcomes import COLUMNS as OUTCOME
from kafkascope.analyzer.findings.outcomes import VERDICT, judged, outcomes
from kafkascope.analyzer.merging.tables import OTHERS
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.report.charts import Bar, ChartColumn, Track, bars, columns, flow, lanes
from kafkascope.analyzer.report.collect import ReportFacts
from kafkascope.analyzer.report.limits import LIMITS
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.connections import Connections
from kafkascope.analyzer.statistics.errors import Errors
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.groups.timeline import Scale, lanes_of, title_of
from kafkascope.analyzer.statistics.journeys.applications import Applications, edge_lines
from kafkascope.analyzer.statistics.journeys.drawing import graph_of, map_lines
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.producers.producers import Producers
from kafkascope.analyzer.statistics.rates import Rates
from kafkascope.analyzer.statistics.table import RIGHT, cell
from kafkascope.analyzer.statistics.topics import Topics
from kafkascope.analyzer.statistics.traffic import Latency
from kafkascope.analyzer.text import plural
from kafkascope.times import MS

LANE_CELLS: Final = 140
# Columns of the map as text, in Markdown.
TEXT_WIDTH: Final = 100
WAYS: Final = {"writes": "api == Produce", "reads": "api in {Fetch, ShareFetch}"}
CLIENT_COLUMNS: Final = (
    *("client_id", "client_address", "software", "user", "verdict", "breaks_at", "why"),
    *("roles", "requests", "failed", "negotiates"),
)


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Cells as text, with how to align them, and the filter of each row."""

    caption: str
    titles: list[str]
    right: list[bool]
    rows: list[list[str]]
    filters: list[str]
    """As many as rows, or none."""
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report."""

    id: str
    title: str
    says: str
    """Its question, for people who see it for the first time."""
    command: str = ""
    """Prints the same numbers; `{}` stands for the inputs and the filter."""
    charts: list[tuple[str, str]] = field(default_factory=list)
    """(legend, SVG)"""
    tables: list[ReportTable] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """Preformatted, for Markdown: what the charts show."""


def sections(facts: ReportFacts, release: str) -> list[Section]:
    """Return all sections that have a table with rows."""
    times = Times("u")
    if facts.span.first_ns is not None:
        times.saw(facts.span.first_ns)
    words = [facts.words]
    if facts.filter_text:
        words += ["-Y", shlex.quote(facts.filter_text)]
    made = (
        _map(facts, times),
        _over_time(facts, times),
        _clients(facts, times, release),
        _brokers(facts, times),
        _latency(facts, times),
        _errors(facts, times),
        _groups(facts, times),
        _topics(facts, times),
        _producers(facts, times),
        _connections(facts, times),
    )
    shown = []
    for section in made:
        if tables := [each for each in section.tables if each.rows]:
            command = section.command.format(" ".join(words))
            shown.append(replace(section, tables=tables, command=command))
    return shown


def table(
    caption: str,
    chosen: Sequence[Column],
    lines: Sequence[Line],
    times: Times,
    where: Callable[[Line], str] | None = None,
) -> ReportTable:
    """The first lines as text; columns without any value are left out."""
    kept = list(lines[: LIMITS.lines])
    filled: list[tuple[Column, list[str]]] = []
    for column in chosen:
        texts = [cell(column, line, times) for line in kept]
        if not column.wide and (not filled or any(text not in ("", "-") for text in texts)):
            filled.append((column, texts))
    return ReportTable(
        caption,
        [column.title for column, _ in filled],
        [column.kind in RIGHT for column, _ in filled],
        [list(row) for row in zip(*(texts for _, texts in filled), strict=True)],
        [where(line) for line in kept] if where is not None else [],
        len(lines) - len(kept),
    )


def _equals(field_: str, column: str) -> Callable[[Line], str]:
    """Return what makes the filter for the value that a line has in a column."""

    def filter_of(line: Line) -> str:
        value = line[column]
        known = value not in (None, "", "-", OTHERS)
        return f"{field_} == {quoted(str(value))}" if known else ""

    return filter_of


def _numbered(field_: str, column: str) -> Callable[[Line], str]:
    """Return what makes the filter for the number that a line has in a column."""

    def filter_of(line: Line) -> str:
        value = line[column]
        return f"{field_} == {value}" if isinstance(value, int) and value >= 0 else ""

    return filter_of


def _over_time(facts: ReportFacts, times: Times) -> Section:
    lines, width = facts.rates.rows(), facts.rates.width_ns
    steps = [
        ChartColumn(
            times.text(line["time"]).partition(".")[0],
            _failed_part(line["requests"], line["failed"] + line["unanswered"]),
            f"{times.text(line['time'])}: {plural(line['requests'], 'request')}, "
            f"{line['failed']:,} with errors, {line['unanswered']:,} unanswered",
        )
        for line in lines
    ]
    every = duration(width)
    chart = columns(f"Requests per {every}", steps)
    return Section(
        "time",
        "Over time",
        f"Requests per {every}. Requests with errors or without a response are highlighted.",
        f"kafkascope stats rates {{}} --every {width // MS}ms",
        [("", chart)] if chart else [],
        [table("Requests over time", Rates.COLUMNS, lines, times)],
    )


def _map(facts: ReportFacts, times: Times) -> Section:
    shown = facts.findings.base.map.map_of(facts.names, facts.by)
    graph = graph_of(shown, LIMITS.mapped_topics)
    title = "Applications and topics"
    joined = (
        "Client IDs that differ by a number, a random part or a role are one application."
        if facts.by == "application"
        else "Client IDs are pseudonyms: each is an application of its own."
    )
    legend = "Left: applications that write. Right: applications that read."
    if graph.left_out:
        legend += f" {plural(graph.left_out, 'topic')} with less traffic left out."
    return Section(
        "map",
        title,
        f"Who writes to each topic, and who reads it. {joined}",
        "kafkascope map {}",
        [(legend, flow(title, graph))] if graph.edges else [],
        [table(title, Applications.COLUMNS, edge_lines(shown), times, _of_edge)],
        ["\n".join(line for line, _ in map_lines(shown, TEXT_WIDTH))] if graph.edges else [],
    )


def _of_edge(line: Line) -> str:
    topic = _equals("topic", "topic")(line)
    return " and ".join(filter(None, [topic, WAYS[line["way"]]]))


def _failed_part(requests: int, failed: int) -> tuple[tuple[str, float], ...]:
    failed = min(failed, requests)
    return ("bad", failed), ("main", requests - failed)


STAGES: Final = {
    "request_transfer": ("main", "Request transfer"),
    "rtt": ("trip", "Round trip"),
    "server": ("serve", "Server"),
    "response_transfer": ("second", "Response transfer"),
}
"""Columns of rates -> class and name of a stage, in the order in which they pass."""


def _stages_over_time(facts: ReportFacts, times: Times) -> str:
    """Return the chart of the mean time that requests spent in each stage; empty where no round
    trip is known."""
    lines, steps = facts.rates.rows(), []
    for line in lines:
        known = {name: line[name] or 0 for name in STAGES}
        words = (f"{STAGES[name][1].lower()} {duration(took)}" for name, took in known.items())
        steps.append(
            ChartColumn(
                times.text(line["time"]).partition(".")[0],
                tuple((STAGES[name][0], took / MS) for name, took in known.items()),
                f"{times.text(line['time'])}: {', '.join(words)}",
            )
        )
    if all(line["rtt"] is None for line in lines):
        return ""
    return columns("Stages of requests over time", steps, " ms", list(STAGES.values()))


def _clients(facts: ReportFacts, times: Times, release: str) -> Section:
    from kafkascope.analyzer.statistics.clients import Clients

    # A part of a capture does not show how clients ended.
    ends = None if facts.filter_text else outcomes(facts.findings, facts.names)
    lines = judged(facts.findings.base.clients, release, ends)
    broken = [line["client_id"] for line in lines if line.get("verdict") == "breaks"]
    names = list(dict.fromkeys(str(name) for name in broken))
    says = f"Client libraries and their API versions, checked against Kafka {release}."
    if names:
        says += f" Incompatible: {', '.join(names[:10])}."
        if len(names) > 10:
            says += f" {len(names) - 10} more are incompatible."
    else:
        says += " No incompatible version was used in the capture."
    known = {column.name: column for column in (*Clients.COLUMNS, *VERDICT)}
    chosen = [known[name] for name in CLIENT_COLUMNS] + list(OUTCOME[:2] if ends else ())
    caption, of_client = f"Clients, checked against Kafka {release}", _equals("client", "client_id")
    return Section(
        "clients",
        "Clients and versions",
        says,
        f"kafkascope clients {{}} --for {release}",
        tables=[table(caption, chosen, lines, times, of_client)],
    )


def _brokers(facts: ReportFacts, times: Times) -> Section:
    found = facts.findings.base.cluster
    return Section(
        "brokers",
        "Brokers as advertised",
        "Addresses that brokers advertised, and whether clients could connect to them.",
        "kafkascope cluster {}",
        tables=[
            table("Nodes", Cluster.COLUMNS, found.rows(facts.names), times),
            table("Coordinators", Cluster.COORDINATOR_COLUMNS, found.coordinators(), times),
        ],
    )


def _latency(facts: ReportFacts, times: Times) -> Section:
    lines = facts.findings.base.latency.rows(facts.names, by=("api",))
    drawn = [
        Bar(
            str(line["api"]),
            (("main", line["excess_p95"] or 0),),
            duration(line["excess_p95"]),
            f"{line['api']}: p95 {duration(line['p95'])},"
            f" excess p95 {duration(line['excess_p95'])}",
        )
        for line in lines
        if line.get("excess_p95") is not None
    ]
    drawn.sort(key=lambda bar: -bar.parts[0][1])
    chart = bars("Excess latency, 95th percentile", drawn[: LIMITS.bars]) if drawn else ""
    charts = {
        "95th percentile of excess latency": chart,
        "Mean time of each stage, without requested waits": _stages_over_time(facts, times),
    }
    return Section(
        "latency",
        "Latency",
        "Excess is the latency minus the time that the client requested: long polls of Fetch, and"
        " JoinGroup requests that wait for other members. Request and Response are the transfers of"
        " their bytes, Server is the broker's time, RTT the round trip to it.",
        "kafkascope latency {}",
        [(legend, svg) for legend, svg in charts.items() if svg],
        [table("Latency by API", Latency.columns(["api"]), lines, times, _of_api)],
    )


def _of_api(line: Line) -> str:
    return api_is(line.get("api"))


def _errors(facts: ReportFacts, times: Times) -> Section:
    lines = facts.errors.rows(facts.names)
    chosen = (Column("error"), *Errors.columns(("api", "client", "topic")))
    of_client = _equals("client", "client_id")

    def evidence(line: Line) -> str:
        error = f"error == {line['error']}" if line["error"] != OTHERS else ""
        return " and ".join(filter(None, [error, _of_api(line), of_client(line)]))

    counts: Counter[str] = Counter()
    for line in lines:
        counts[str(line["error"])] += line["count"]
    drawn = [
        Bar(name, (("bad", n),), f"{n:,}", f"{name}: {n:,}")
        for name, n in counts.most_common(LIMITS.bars)
    ]
    return Section(
        "errors",
        "Errors",
        "Errors that brokers returned, by API and client. `kafkascope error NAME` explains a code.",
        "kafkascope errors {}",
        [("how often", bars("Errors by code", drawn))] if drawn else [],
        [table("Errors", chosen, lines, times, evidence)],
    )


def _groups(facts: ReportFacts, times: Times) -> Section:
    found: Groups = facts.findings.base.groups
    lines = found.rows(facts.names)
    charts, texts = [], []
    tables = [table("Groups", Groups.COLUMNS, lines, times, _equals("group", "group"))]
    rebalancing = [str(line["group"]) for line in lines if (line.get("rebalances") or 0) > 1]
    for name in rebalancing[: LIMITS.groups]:
        story = found.story(name)
        if story is None:
            continue
        shown = lanes_of(story, Scale(story.first_ns, story.last_ns, LANE_CELLS))
        span = max(1, story.last_ns - story.first_ns)
        ticks = [
            (part / 6, times.text(story.first_ns + span * part // 6).partition(".")[0])
            for part in range(6)
        ]
        tracks = [Track(lane.label, lane.cells, lane.text) for lane in shown]
        title = title_of(story)
        charts.append((title, lanes(f"Members of {name} over time", tracks, ticks)))
        texts.append("\n".join([title, *(f"{lane.label:<25}{lane.cells}" for lane in shown)]))
        rebalances = found.rebalances(name)
        tables.append(table(f"Rebalances of {name}", Groups.REBALANCE_COLUMNS, rebalances, times))
    return Section(
        "groups",
        "Consumer groups",
        "Members that joined, left or were evicted; causes of rebalances. Lanes: J joins,"
        " dotted waiting, solid stable, l leaves, x evicted.",
        "kafkascope groups {}",
        charts,
        tables,
        texts,
    )


def _topics(facts: ReportFacts, times: Times) -> Section:
    lines = facts.findings.base.topics.rows(facts.names)
    drawn = []
    for line in lines[: LIMITS.bars]:
        written, read = line["produced_bytes"] or 0, line["fetched_bytes"] or 0
        title = f"{line['topic']}: {written:,} bytes written, {read:,} read"
        drawn.append(Bar(str(line["topic"]), (("main", written), ("second", read)), "", title))
    return Section(
        "topics",
        "Topics",
        "Producers and consumers of each topic. The chart shows bytes written, then bytes read.",
        "kafkascope topics {}",
        [("bytes written and read", bars("Bytes by topic", drawn))] if drawn else [],
        [table("Topics", Topics.COLUMNS, lines, times, _equals("topic", "topic"))],
    )


def _producers(facts: ReportFacts, times: Times) -> Section:
    lines = facts.findings.base.producers.rows(facts.names)
    of_id = _numbered("producer.id", "producer_id")
    return Section(
        "producers",
        "Idempotent and transactional producers",
        "Resent and missing sequence numbers; transactions and their outcomes.",
        "kafkascope producers {}",
        tables=[table("Producers", Producers.COLUMNS, lines, times, of_id)],
    )


def _connections(facts: ReportFacts, times: Times) -> Section:
    found: Connections = facts.findings.base.connections
    lines, of_number = found.rows(facts.names), _numbered("conn", "connection")
    return Section(
        "connections",
        "Connections",
        "Connection setup, authentication, and how connections ended.",
        "kafkascope connections {}",
        tables=[
            table("By client", Connections.CLIENT_COLUMNS, found.by_client(), times),
            table("Connections", Connections.COLUMNS, lines, times, of_number),
        ],
    )
