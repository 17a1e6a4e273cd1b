"""What a report tells, in order: sections of sentences, charts and tables, each with the command
that prints the same numbers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.clients import VERDICT, judged
from kafkascope.analyzer.findings.outcomes import COLUMNS as OUTCOME
from kafkascope.analyzer.findings.outcomes import outcomes
from kafkascope.analyzer.findings.view import api_is
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.report.charts import Bar, Step, Track, bars, columns, lanes
from kafkascope.analyzer.report.collect import ReportFacts
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.connections import Connections
from kafkascope.analyzer.statistics.errors import Errors
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.groups.timeline import Scale, lanes_of, title_of
from kafkascope.analyzer.statistics.latency import Latency
from kafkascope.analyzer.statistics.merging.tables import OTHERS
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.producers.producers import Producers
from kafkascope.analyzer.statistics.rates import Rates
from kafkascope.analyzer.statistics.table import RIGHT, cell
from kafkascope.analyzer.statistics.topics import Topics

MOST_LINES: Final = 60
"""Of a table; a report of a large capture stays a report."""
MOST_BARS: Final = 15
MOST_GROUPS: Final = 12
LANE_CELLS: Final = 140
MS: Final = 1_000_000


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
    """What it answers, for people who see it for the first time."""
    command: str = ""
    charts: list[tuple[str, str]] = field(default_factory=list)
    """(legend, SVG)"""
    tables: list[ReportTable] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """Preformatted, for Markdown: what the charts show."""


def sections(facts: ReportFacts, release: str) -> list[Section]:
    """All sections that have something to tell."""
    times = Times("u")
    if facts.span.first_ns is not None:
        times.saw(facts.span.first_ns)
    where = _where(facts)
    made = (
        _over_time(facts, times, where),
        _clients(facts, times, where, release),
        _brokers(facts, times, where),
        _latency(facts, times, where),
        _errors(facts, times, where),
        _groups(facts, times, where),
        _topics(facts, times, where),
        _producers(facts, times, where),
        _connections(facts, times, where),
    )
    return [section for section in made if section.tables]


def _where(facts: ReportFacts) -> str:
    words = [shlex.quote(name) for name in facts.inputs]
    if facts.filter_text:
        words += ["-Y", shlex.quote(facts.filter_text)]
    return " ".join(words)


def table(
    caption: str,
    chosen: Sequence[Column],
    lines: Sequence[Line],
    times: Times,
    where: Callable[[Line], str] | None = None,
) -> ReportTable:
    """The first lines as text; columns without any value are left out."""
    kept = list(lines[:MOST_LINES])
    chosen = [column for column in chosen if not column.wide]
    cells = [[cell(column, line, times) for column in chosen] for line in kept]
    used = [
        index
        for index in range(len(chosen))
        if not index or any(row[index] not in ("", "-") for row in cells)
    ]
    return ReportTable(
        caption,
        [chosen[index].title for index in used],
        [chosen[index].kind in RIGHT for index in used],
        [[row[index] for index in used] for row in cells],
        [where(line) for line in kept] if where is not None else [],
        len(lines) - len(kept),
    )


def _tables(*made: ReportTable) -> list[ReportTable]:
    return [each for each in made if each.rows]


def _equals(field_: str, value: object) -> str:
    known = value not in (None, "", "-", OTHERS)
    return f"{field_} == {quoted(str(value))}" if known else ""


def _over_time(facts: ReportFacts, times: Times, where: str) -> Section:
    lines = facts.rates.rows()
    width = facts.rates.width_ns
    steps = [
        Step(
            times.text(line["time"]).partition(".")[0],
            line["requests"],
            line["failed"] + line["unanswered"],
            f"{times.text(line['time'])}: {line['requests']:,} requests, {line['failed']:,} with"
            f" errors, {line['unanswered']:,} unanswered",
        )
        for line in lines
    ]
    every = duration(width)
    chart = columns(f"Requests per {every}", steps)
    return Section(
        "time",
        "Over time",
        f"Requests per {every}. Requests with errors or without a response are highlighted.",
        f"kafkascope stats rates {where} --every {width // MS}ms",
        [("", chart)] if chart else [],
        _tables(table("Requests over time", Rates.COLUMNS, lines, times)),
    )


def _clients(facts: ReportFacts, times: Times, where: str, release: str) -> Section:
    # A part of a capture does not tell how anybody ended.
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
    front = {"client_id", "client_address", "software", "user", "verdict", "breaks_at", "why"}
    from kafkascope.analyzer.statistics.clients import Clients

    chosen = [column for column in (*Clients.COLUMNS, *VERDICT) if column.name in front]
    order = ("client_id", "client_address", "software", "user", "verdict", "breaks_at", "why")
    chosen.sort(key=lambda column: order.index(column.name))
    more = [
        column
        for column in Clients.COLUMNS
        if column.name in ("roles", "requests", "failed", "negotiates")
    ]
    return Section(
        "clients",
        "Clients and versions",
        says,
        f"kafkascope clients {where} --for {release}",
        [],
        _tables(
            table(
                f"Clients, checked against Kafka {release}",
                [*chosen, *more, *(OUTCOME[:2] if ends else ())],
                lines,
                times,
                lambda line: _equals("client", line["client_id"]),
            )
        ),
    )


def _brokers(facts: ReportFacts, times: Times, where: str) -> Section:
    found = facts.findings.base.cluster
    return Section(
        "brokers",
        "Brokers as advertised",
        "Addresses that brokers advertised, and whether clients could connect to them.",
        f"kafkascope cluster {where}",
        [],
        _tables(
            table("Nodes", Cluster.COLUMNS, found.rows(facts.names), times),
            table("Coordinators", Cluster.COORDINATOR_COLUMNS, found.coordinators(), times),
        ),
    )


def _latency(facts: ReportFacts, times: Times, where: str) -> Section:
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
    chart = bars("Excess latency, 95th percentile", drawn[:MOST_BARS]) if drawn else ""
    return Section(
        "latency",
        "Latency",
        "Excess is the latency minus the time that the client requested: long polls of Fetch, and"
        " JoinGroup requests that wait for other members.",
        f"kafkascope latency {where}",
        [("95th percentile of excess latency", chart)] if chart else [],
        _tables(
            table(
                "Latency by API",
                Latency.columns(["api"]),
                lines,
                times,
                lambda line: api_is(line["api"]),
            )
        ),
    )


def _errors(facts: ReportFacts, times: Times, where: str) -> Section:
    lines = facts.errors.rows(facts.names)
    chosen = (Column("error"), *Errors.columns(("api", "client", "topic")))

    def evidence(line: Line) -> str:
        parts = [f"error == {line['error']}" if line["error"] != OTHERS else ""]
        parts += [api_is(line.get("api")), _equals("client", line["client_id"])]
        return " and ".join(part for part in parts if part)

    counts: dict[str, int] = {}
    for line in lines:
        counts[str(line["error"])] = counts.get(str(line["error"]), 0) + line["count"]
    worst = sorted(counts.items(), key=lambda item: -item[1])[:MOST_BARS]
    drawn = [Bar(name, (("bad", n),), f"{n:,}", f"{name}: {n:,}") for name, n in worst]
    return Section(
        "errors",
        "Errors",
        "Errors that brokers returned, by API and client. `kafkascope error NAME` explains a code.",
        f"kafkascope errors {where}",
        [("how often", bars("Errors by code", drawn))] if drawn else [],
        _tables(table("Errors", chosen, lines, times, evidence)),
    )


def _groups(facts: ReportFacts, times: Times, where: str) -> Section:
    found: Groups = facts.findings.base.groups
    lines = found.rows(facts.names)
    charts, texts, tables = [], [], []
    tables.append(
        table("Groups", Groups.COLUMNS, lines, times, lambda line: _equals("group", line["group"]))
    )
    rebalancing = [str(line["group"]) for line in lines if (line.get("rebalances") or 0) > 1]
    for name in rebalancing[:MOST_GROUPS]:
        story = found.story(name)
        if story is None:
            continue
        scale = Scale(story.first_ns, story.last_ns, LANE_CELLS)
        shown = lanes_of(story, scale)
        span = max(1, story.last_ns - story.first_ns)
        ticks = [
            (part / 6, times.text(story.first_ns + span * part // 6).partition(".")[0])
            for part in range(6)
        ]
        tracks = [Track(lane.label, lane.cells, lane.text) for lane in shown]
        charts.append((title_of(story), lanes(f"Members of {name} over time", tracks, ticks)))
        texts.append(
            "\n".join([title_of(story), *(f"{lane.label:<25}{lane.cells}" for lane in shown)])
        )
        tables.append(
            table(f"Rebalances of {name}", Groups.REBALANCE_COLUMNS, found.rebalances(name), times)
        )
    return Section(
        "groups",
        "Consumer groups",
        "Members that joined, left or were evicted; causes of rebalances. Lanes: J joins,"
        " dotted waiting, solid stable, l leaves, x evicted.",
        f"kafkascope groups {where}",
        charts,
        _tables(*tables),
        texts,
    )


def _topics(facts: ReportFacts, times: Times, where: str) -> Section:
    lines = facts.findings.base.topics.rows(facts.names)
    drawn = [
        Bar(
            str(line["topic"]),
            (("main", line["produced_bytes"] or 0), ("second", line["fetched_bytes"] or 0)),
            "",
            f"{line['topic']}: {line['produced_bytes'] or 0:,} bytes written,"
            f" {line['fetched_bytes'] or 0:,} read",
        )
        for line in lines[:MOST_BARS]
    ]
    return Section(
        "topics",
        "Topics",
        "Producers and consumers of each topic. The chart shows bytes written, then bytes read.",
        f"kafkascope topics {where}",
        [("bytes written and read", bars("Bytes by topic", drawn))] if drawn else [],
        _tables(
            table(
                "Topics",
                Topics.COLUMNS,
                lines,
                times,
                lambda line: _equals("topic", line["topic"]),
            )
        ),
    )


def _producers(facts: ReportFacts, times: Times, where: str) -> Section:
    lines = facts.findings.base.producers.rows(facts.names)
    return Section(
        "producers",
        "Idempotent and transactional producers",
        "Resent and missing sequence numbers; transactions and their outcomes.",
        f"kafkascope producers {where}",
        [],
        _tables(
            table(
                "Producers",
                Producers.COLUMNS,
                lines,
                times,
                lambda line: (
                    f"producer.id == {line['producer_id']}"
                    if isinstance(line["producer_id"], int) and line["producer_id"] >= 0
                    else ""
                ),
            )
        ),
    )


def _connections(facts: ReportFacts, times: Times, where: str) -> Section:
    found: Connections = facts.findings.base.connections
    return Section(
        "connections",
        "Connections",
        "Connection setup, authentication, and how connections ended.",
        f"kafkascope connections {where}",
        [],
        _tables(
            table("By client", Connections.CLIENT_COLUMNS, found.by_client(), times),
            table(
                "Connections",
                Connections.COLUMNS,
                found.rows(facts.names),
                times,
                lambda line: (
                    f"conn == {line['connection']}" if isinstance(line["connection"], int) else ""
                ),
            ),
        ),
    )
