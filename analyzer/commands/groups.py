"""`kafkascope groups`: rebalances and their causes, members, and the timeline of a group."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from kafkascope.analyzer.commands.grid import NO_LINES, print_lines
from kafkascope.analyzer.commands.help import command, option
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.commands.unknown import refuse_unknown
from kafkascope.analyzer.reading.absent import quoted
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.groups.timeline import TICK, lane_width, timeline
from kafkascope.analyzer.statistics.model import Line, shown
from kafkascope.analyzer.statistics.zookeeper.consumers import KeptGroups
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import cut, packed, safe

LANE_WIDTH: Final = 72
"""In a pipe."""
SHORT_NS: Final = 1_500_000_000
"""Between two times of the scale."""
DELIVERY_TABLES: Final = ("partitions", "events", "plans", "lag")
STABILITY: Final = Priority(("rebalances", "causes", "longest"), ("worst_rebalance",))
CAUSE: Final = Priority(("generation", "cause", "duration"), ("text",))
MEMBERSHIP: Final = Priority(("state", "generations", "assigned"), ("text",))


@command(also="[GROUP]...")
@option(
    "--group",
    "wanted",
    multiple=True,
    metavar="NAME",
    help="Show one group, like GROUP after INPUT; repeatable",
)
@option("--timeline", "lanes", is_flag=True, help="Draw the members over time")
@option("--members", "only", flag_value="members", help="Show only the members")
@option("--rebalances", "only", flag_value="rebalances", help="Show only the rebalances")
@option(
    "--delivery",
    is_flag=True,
    section="Delivery",
    help="Show consumer lag and skipped or redelivered records",
)
@option(
    "--partitions",
    "only",
    flag_value="partitions",
    section="Delivery",
    help="Show only offsets and lag by partition",
)
@option(
    "--events",
    "only",
    flag_value="events",
    section="Delivery",
    help="Show only events: skipped, redelivered, paused",
)
@option(
    "--plans",
    "only",
    flag_value="plans",
    section="Delivery",
    help="Show only the assignments of leaders",
)
@option("--lag", "only", flag_value="lag", section="Delivery", help="Show lag over time")
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
        from kafkascope.analyzer.commands.delivery import print_delivery

        return print_delivery(options, wanted, only)
    with Reading(options) as reading:
        found, keeper = Groups(), ZooKeeper()
        count(reading, found, keeper)
        kept = KeptGroups(keeper.stories())
        refuse_unknown("group", wanted, [*found.names(), *kept.all_names()], reading)
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
                columns = shown(Groups.COLUMNS, "worst_rebalance")
                print_lines(lines, columns, "group/1", options, output, reading, STABILITY)
            else:
                rebalances = [line for name in chosen for line in found.rebalances(name)]
                members = [line for name in chosen for line in found.members(name, names)]
                rebalances += [line for name in old for line in kept.rebalances(name)]
                members += [line for name in old for line in kept.members(name)]
                several = len({*chosen, *old}) > 1
                of = f" of {', '.join(map(quoted, wanted))}" if wanted else ""
                _print_details(rebalances, members, only, options, output, reading, several, of)
        return reading.finish()


def split_names(inputs: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Inputs, and the words behind the first one that name no file."""
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
        terminal = output.width
        width = LANE_WIDTH if terminal is None else lane_width(story, terminal)
        short = (story.last_ns - story.first_ns) * TICK < SHORT_NS * width
        title, *lanes = timeline(story, width, _clock(times, short=short), terminal)
        if terminal is not None:
            title, *lanes = _fitting(title, lanes, terminal)
        for line in (title, *lanes):
            output.line(line)


def _fitting(title: str, lanes: list[str], width: int) -> list[str]:
    """Return lines that a terminal does not break."""
    parts = [f"{part}  " for part in title.split("   ")]  # `packed` puts a third blank between
    head = [line.rstrip() for line in packed(parts, width + 2, hanging="  ")]
    return [cut(line, width) for line in (*head, *lanes)]


def _clock(times: Times, *, short: bool) -> Callable[[int], str]:
    """Writes times of a scale, with milliseconds where seconds would not do."""

    def clock(time_ns: int) -> str:
        text = times.text(time_ns)
        return text[:-4] if not short and text[-4:-3] == "." and ":" in text else text

    return clock


def _print_details(
    rebalances: list[Line],
    members: list[Line],
    only: str | None,
    options: ReadOptions,
    output: Output,
    reading: Reading,
    several: bool,
    of: str,
) -> None:
    tables = (
        ("rebalances", "rebalance/1", Groups.REBALANCE_COLUMNS, rebalances, CAUSE),
        ("members", "group-member/1", Groups.MEMBER_COLUMNS, members, MEMBERSHIP),
    )
    both = only is None
    if both and options.form in ("csv", "tsv", "json"):
        # One table of one shape: the rebalances, unless the members are asked for.
        both, only = False, "rebalances"
    for what, schema, columns, lines, priority in tables:
        if only not in (None, what):
            continue
        if several:
            columns = shown(columns, "group")
        if both and what == "members" and options.form == "table" and lines:
            output.line("")
        print_lines(lines, columns, schema, options, output, reading, priority, of)
