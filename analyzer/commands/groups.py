"""`kafkascope groups`: rebalances and their causes, members, and the timeline of a group."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from kafkascope.analyzer.commands.grid import NO_LINES, CommandTable, print_lines, print_tables
from kafkascope.analyzer.commands.help import command, flags, setting
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.absent import listed, quoted
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.render.times import Times
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
from kafkascope.analyzer.statistics.groups.timeline import printed_timeline
from kafkascope.analyzer.statistics.model import shown
from kafkascope.analyzer.statistics.zookeeper.consumers import KeptGroups
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import safe
from kafkascope.errors import USAGE

DELIVERY_TABLES: Final = {
    "partitions": "Show only offsets and lag by partition",
    "events": "Show only events: skipped, redelivered, paused",
    "plans": "Show only the assignments of leaders",
    "lag": "Show lag over time",
}
STABILITY: Final = CommandTable(
    *("groups", "group/1", shown(Groups.COLUMNS, "worst_rebalance")),
    Priority(("rebalances", "causes", "longest"), ("worst_rebalance",)),
)
DETAILS: Final = (
    CommandTable(
        *("rebalances", "rebalance/1", Groups.REBALANCE_COLUMNS),
        Priority(("generation", "cause", "duration"), ("text",)),
    ),
    CommandTable(
        *("members", "group-member/1", Groups.MEMBER_COLUMNS),
        Priority(("state", "generations", "assigned"), ("text",)),
    ),
)
DELIVERY: Final = (
    CommandTable(
        *("partitions", "delivery-partition/1", PARTITION_COLUMNS),
        Priority(
            ("topic", "partition", "committed_offset", "end_offset", "lag", "beyond", "again"),
            ("remarks",),
        ),
        legend="Beyond: records that a commit skipped. Again: records fetched again. "
        "Back: records by which commits went back.",
    ),
    CommandTable(
        *("events", "delivery-event/1", EVENT_COLUMNS),
        Priority(("time", "kind", "count", "duration"), ("text",)),
    ),
    CommandTable(
        *("plans", "delivery-plan/1", PLAN_COLUMNS),
        Priority(("time", "generation", "members", "spread", "moved", "needless")),
        legend="Spread: most minus fewest partitions of a member. "
        "Needless: partitions that moved without need for balance.",
    ),
    CommandTable(
        *("lag", "delivery-lag/1", LAG_COLUMNS), Priority(("time", "topic", "partition", "lag"))
    ),
)


@command(also="[GROUP]...")
@setting("--group wanted", "NAME", "Show one group, like GROUP after INPUT", multiple=True)
@setting("--timeline lanes", "", "Draw the members over time")
@flags("only", {"members": "Show only the members", "rebalances": "Show only the rebalances"})
@setting(
    "--delivery", "", "Show consumer lag and skipped or redelivered records", section="Delivery"
)
@flags("only", DELIVERY_TABLES, section="Delivery")
@input_options
def groups(
    options: ReadOptions, wanted: tuple[str, ...], lanes: bool, only: str | None, delivery: bool
) -> int:
    """Show consumer groups, rebalances, and their causes.

    Without GROUP there is one line for each group. Name groups after INPUT (or with --group) to see
    their rebalances and members. Consumers before Kafka 0.9 keep their groups in ZooKeeper; these
    are reconstructed from its traffic.

    \b
      kafkascope groups prod.pcapng
      kafkascope groups prod.pcapng orders-app
      kafkascope groups prod.pcapng orders-app --timeline
      kafkascope groups prod.pcapng orders-app --delivery
      kafkascope groups prod.pcapng orders-app --lag --format csv
    """
    inputs, named = split_names(options.inputs)
    options, wanted = replace(options, inputs=inputs), (*wanted, *named)
    if delivery or only in DELIVERY_TABLES:
        if lanes or only in ("members", "rebalances"):
            raise click.UsageError(
                "--delivery cannot be combined with --timeline, --members, or --rebalances"
            )
        return _print_delivery(options, wanted, only)
    with Reading(options) as reading:
        found, keeper = Groups(), ZooKeeper()
        count(reading, found, keeper)
        kept = KeptGroups(keeper.stories())
        _refuse_unknown(wanted, [*found.names(), *kept.all_names()], reading)
        old = [each for name in wanted for each in kept.called(name)] if wanted else kept.names()
        chosen = [name for name in wanted if name in found.names()] or (
            [] if wanted else found.names()
        )
        short = [name for name in chosen if found.dropped(name)]
        if short:
            say(
                f"{sum(map(found.dropped, short))} older events of {len(short)} groups are left out"
                f" ({', '.join(map(safe, short[:3]))}{', ...' if len(short) > 3 else ''})"
            )
        names = reading.capture.context.names
        with Output(options) as output:
            if lanes:
                _print_lanes(found, chosen, reading.times(), output, options)
                if not chosen:
                    reading.lacks(NO_LINES["group/1"])
            elif not wanted and only is None:
                lines = [*found.rows(names), *kept.lines()]
                print_lines(STABILITY._replace(lines=lines), output, reading)
            else:
                rebalances = [line for name in chosen for line in found.rebalances(name)]
                members = [line for name in chosen for line in found.members(name, names)]
                rebalances += [line for name in old for line in kept.rebalances(name)]
                members += [line for name in old for line in kept.members(name)]
                of = f" of {', '.join(map(quoted, wanted))}" if wanted else ""
                tables = [
                    table._replace(lines=lines, of=of)
                    for table, lines in zip(DETAILS, (rebalances, members), strict=True)
                ]
                if len({*chosen, *old}) > 1:
                    tables = [
                        table._replace(columns=shown(table.columns, "group")) for table in tables
                    ]
                if only is None and options.form in ("csv", "tsv", "json"):
                    only = "rebalances"  # one table of one shape
                for table in tables if only is None else ():
                    if not table.lines:
                        reading.lacks(NO_LINES[table.schema] + of)
                print_tables(tables, only, output, reading, begun=False)
        return reading.finish()


class NotInCapture(click.ClickException):
    """A name that the user gave is not in the capture."""

    exit_code = USAGE


def _refuse_unknown(wanted: Iterable[str], known: Sequence[str], reading: Reading) -> None:
    for name in wanted:
        if name not in known:
            # Why nothing was read, or what was damaged, explains why a name is missing.
            reading.finish()
            where = "the matching exchanges" if reading.options.selects else "this capture"
            there = f"; groups: {listed(name, known)}" if known else ", which has no groups"
            raise NotInCapture(f"there is no group {quoted(name)} in {where}{there}")


def split_names(inputs: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Inputs, and the words after the first one that name no file."""
    files = [inputs[0]]
    names: list[str] = []
    for word in inputs[1:]:
        (files if word == "-" or Path(word).exists() or os.sep in word else names).append(word)
    return tuple(files), tuple(names)


def _print_lanes(
    found: Groups, names: list[str], times: Times, output: Output, options: ReadOptions
) -> None:
    if options.form not in ("table", "tsv"):
        raise click.UsageError(
            "--timeline prints text only: use --rebalances or --members with --format"
        )
    for index, name in enumerate(names):
        story = found.story(name)
        if story is None:
            continue
        if index:
            output.line("")
        for line in printed_timeline(story, times.text, output.width):
            output.line(line)


def _print_delivery(options: ReadOptions, wanted: tuple[str, ...], only: str | None) -> int:
    """Print the tables of the audit, or `only` one of them, for the groups that are wanted or all;
    return the exit code. What was before the capture is unknown and stays empty. Share groups have
    no offsets to audit: a remark says so."""
    if options.form in ("csv", "tsv", "json"):
        only = only or "partitions"  # one table of one shape
    with Reading(options) as reading:
        found, groups, cluster = Delivery(), Groups(), Cluster()
        count(reading, found, groups, cluster)
        known = found.groups()
        shared = sorted(name for name in groups.names() if "share" in groups.protocols(name))
        _refuse_unknown(wanted, [*known, *groups.names()], reading)
        for name in shared if not options.quiet else ():
            if name in wanted or not wanted:
                say(f"{safe(unaudited(name))}")
        chosen = [name for name in wanted if name in known] if wanted else known
        audit = Audit(found, groups, cluster, reading.capture.context.names)
        with Output(options) as output:
            if chosen or not shared:
                made = (audit.partitions, audit.events, audit.plans, audit.lags)
                tables = [
                    table._replace(lines=[line for group in chosen for line in make(group)])
                    for table, make in zip(DELIVERY, made, strict=True)
                    if table.name == only or (only is None and table.name != "lag")
                ]
                if not any(table.lines for table in tables):
                    reading.lacks(NO_LINES[tables[0].schema])
                print_tables(tables, only, output, reading, begun=False)
        return reading.finish()
