"""The delivery audit of `kafkascope groups`: lag, skipped and redelivered records, pauses."""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.commands.grid import NO_LINES, print_lines
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.commands.unknown import refuse_unknown
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.delivery.audit import Audit
from kafkascope.analyzer.statistics.delivery.delivery import Delivery
from kafkascope.analyzer.statistics.delivery.model import (
    EVENT_COLUMNS,
    LAG_COLUMNS,
    PARTITION_COLUMNS,
    PLAN_COLUMNS,
    unaudited,
)
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import safe, wrapped

PRIORITIES: Final = {
    "partitions": Priority(
        ("topic", "partition", "committed_offset", "end_offset", "lag", "beyond", "again"),
        ("remarks",),
    ),
    "events": Priority(("time", "kind", "count", "duration"), ("text",)),
    "plans": Priority(("time", "generation", "members", "spread", "moved", "needless")),
    "lag": Priority(("time", "topic", "partition", "lag")),
}
"""Of the tables, by name."""
LEGENDS: Final = {
    "partitions": "Beyond: records that a commit skipped. Again: records fetched again. "
    "Back: records by which commits went back.",
    "plans": "Spread: most minus fewest partitions of a member. "
    "Needless: partitions that moved without need for balance.",
}
"""What headings of the tables mean, on a terminal."""


def print_delivery(options: ReadOptions, wanted: tuple[str, ...], only: str | None) -> int:
    """Print the tables of the audit, or `only` one of them, for the groups that are wanted or all;
    return the exit code. What was before the capture is unknown and stays empty. Share groups have
    no offsets to audit: a remark says so."""
    with Reading(options) as reading:
        found, groups, cluster = Delivery(), Groups(), Cluster()
        count(reading, found, groups, cluster)
        known = found.groups()
        shared = sorted(name for name in groups.names() if "share" in groups.protocols(name))
        refuse_unknown("group", wanted, [*known, *groups.names()], reading)
        for name in shared if not options.quiet else ():
            if name in wanted or not wanted:
                say(f"{safe(unaudited(name))}")
        chosen = [name for name in wanted if name in known] if wanted else known
        audit = Audit(found, groups, cluster, reading.capture.context.names)
        with Output(options) as output:
            if chosen or not shared:
                _print(audit, chosen, only, options, output, reading)
        return reading.finish()


def _print(
    audit: Audit,
    chosen: list[str],
    only: str | None,
    options: ReadOptions,
    output: Output,
    reading: Reading,
) -> None:
    tables: dict[str, tuple[str, tuple[Column, ...], list[Line]]] = {
        "partitions": (
            "delivery-partition/1",
            PARTITION_COLUMNS,
            [line for name in chosen for line in audit.partitions(name)],
        ),
        "events": (
            "delivery-event/1",
            EVENT_COLUMNS,
            [line for name in chosen for line in audit.events(name)],
        ),
        "plans": (
            "delivery-plan/1",
            PLAN_COLUMNS,
            [line for name in chosen for line in audit.plans(name)],
        ),
        "lag": (
            "delivery-lag/1",
            LAG_COLUMNS,
            [line for name in chosen for line in audit.lags(name)],
        ),
    }
    shown = [only] if only else ["partitions", "events", "plans"]
    if options.form in ("csv", "tsv", "json"):
        # One table of one shape.
        shown = shown[:1]
    if not any(tables[name][2] for name in shown):
        reading.lacks(NO_LINES[tables[shown[0]][0]])
    first = True
    for name in shown:
        schema, columns, lines = tables[name]
        if not lines and len(shown) > 1:
            continue
        if not first and options.form == "table":
            output.line("")
        first = False
        print_lines(lines, columns, schema, options, output, reading, PRIORITIES[name])
        if output.width is not None and options.form == "table" and lines and name in LEGENDS:
            for part in wrapped(LEGENDS[name], output.width):
                output.line(part, "~")
