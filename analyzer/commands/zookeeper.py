"""`kafkascope stats zookeeper`: sessions, elections of controllers, nodes and their history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from kafkascope.analyzer.commands.grid import print_lines
from kafkascope.analyzer.commands.help import command, option
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.model import shown
from kafkascope.analyzer.statistics.zookeeper.story import TreeStory
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from kafkascope.analyzer.text import plural, safe

PRIORITIES: Final = {
    "sessions": Priority(("client_address", "who", "state", "ended", "lost_nodes")),
    "elections": Priority(("controller", "ended", "end")),
    "nodes": Priority(("what", "state", "changes", "changed")),
    "history": Priority(("path", "change", "client_address", "data")),
    "slow": Priority(("latency", "api", "path", "client_address")),
}
"""Of the tables, by name."""
MOST_SLOW: Final = 10
"""Of the slowest requests, where everything is shown."""


@command()
@option(
    "--only",
    type=click.Choice(list(PRIORITIES)),
    metavar="TABLE",
    help=f"Print one table: {', '.join(PRIORITIES)}",
)
@option("--under", metavar="PATH", default="", help="Show only nodes at or below PATH")
@input_options
def zookeeper(options: ReadOptions, only: str | None, under: str) -> int:
    """Show ZooKeeper sessions, controller elections, and nodes.

    Also lists the slowest requests, and with --only history each change of a node.

    \b
      kafkascope stats zookeeper prod.pcapng
      kafkascope stats zookeeper prod.pcapng --only sessions --json
      kafkascope stats zookeeper prod.pcapng --only history --under /controller
    """
    if options.form in ("csv", "tsv", "json") or options.columns or options.sort:
        # One table of one shape.
        only = only or "sessions"
    with Reading(options) as reading:
        found = ZooKeeper()
        count(reading, found)
        stories = found.stories()
        several = len(stories) > 1
        tables = (
            ("sessions", "zk-session/1", ZooKeeper.SESSION_COLUMNS, found.session_lines),
            ("elections", "zk-election/1", ZooKeeper.ELECTION_COLUMNS, found.elections),
            ("nodes", "zk-node/1", ZooKeeper.COLUMNS, found.rows),
            ("history", "zk-change/1", ZooKeeper.HISTORY_COLUMNS, found.history),
            ("slow", "zk-slow/1", ZooKeeper.SLOW_COLUMNS, found.slowest),
        )
        if only is None and not any(table[3]() for table in tables):
            reading.lacks("ZooKeeper traffic")
        with Output(options) as output:
            blank = only is None and options.form == "table"
            if blank and found.whole.first_ns is not None:
                output.line(_summary(found, stories))
                for story in stories if several else ():
                    output.line(safe(_ensemble(story)))
            for what, schema, columns, make in tables:
                if only not in (None, what) or (only is None and what == "history"):
                    continue
                lines = make()
                if several:
                    columns = shown(columns, "ensemble")
                if under and what in ("nodes", "history"):
                    lines = [line for line in lines if _is_under(line["path"], under)]
                if what == "slow" and only is None:
                    lines = lines[:MOST_SLOW]
                if not lines and only is None:
                    continue
                if blank:
                    output.line("")
                of = f" at or below {safe(under)}" if under and what in ("nodes", "history") else ""
                order = PRIORITIES[what]
                print_lines(lines, columns, schema, options, output, reading, order, of)
        return reading.finish()


def _ensemble(story: TreeStory) -> str:
    doubt = " (it may be the same as another one: they share no znode)"
    nodes = plural(story.size, "node")
    return f"ensemble {story.name}: {nodes}{doubt if story.doubtful else ''}"


def _summary(found: ZooKeeper, stories: Sequence[TreeStory]) -> str:
    whole = found.whole
    words = (
        plural(whole.requests, "request"),
        plural(whole.events, "watch event"),
        plural(len(found.sessions), "session"),
        plural(sum(story.size for story in stories), "node"),
    )
    return ", ".join(words)


def _is_under(path: str, above: str) -> bool:
    above = above.rstrip("/")
    return path == above or path.startswith(above + "/")
