"""`kafkascope cluster`: nodes, leaders and coordinators as they were told to the clients."""

from __future__ import annotations

from typing import Final

import click

from kafkascope.analyzer.commands.grid import print_lines
from kafkascope.analyzer.commands.help import command, option
from kafkascope.analyzer.commands.hosts import hosts_option
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.model import shown
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from kafkascope.analyzer.text import safe
from kafkascope.captures.model import Resolved

PRIORITIES: Final = {
    "nodes": Priority(("address", "contacted", "clients"), ("remarks",)),
    "coordinators": Priority(("key", "node", "address", "changes", "failed")),
    "leaders": Priority(("partition", "leader", "in_sync", "offline", "failed", "changes")),
    "elections": Priority(("controller", "ended", "end")),
    "topics": Priority(("created", "deleted", "client_address")),
}
"""Of the tables, by name."""


@command()
@option(
    "--only",
    type=click.Choice(list(PRIORITIES)),
    metavar="TABLE",
    help=f"Print one table: {', '.join(PRIORITIES)}",
)
@hosts_option
@input_options
def cluster(options: ReadOptions, only: str | None, hosts: tuple[Resolved, ...]) -> int:
    """Show brokers, leaders, coordinators as advertised.

    Each broker has its advertised addresses, and whether clients reached them. From ZooKeeper
    traffic come registrations, controller elections, and created or deleted topics.

    \b
      kafkascope cluster prod.pcapng
      kafkascope cluster prod.pcapng --only nodes --sort contacted
      kafkascope cluster prod.pcapng --hosts names.txt
      kafkascope cluster prod.pcapng --only leaders --sort errors -n 10
    """
    if options.form in ("csv", "tsv", "json") or options.columns or options.sort:
        # One table of one shape.
        only = only or "nodes"
    with Reading(options) as reading:
        found = Cluster()
        keeper = ZooKeeper()
        count(reading, found, keeper, watch=not options.filter_text, hosts=hosts)
        several = len(keeper.stories()) > 1
        names = reading.capture.context.names
        tables = (
            ("nodes", "node/1", Cluster.COLUMNS, found.rows(names)),
            ("coordinators", "coordinator/1", Cluster.COORDINATOR_COLUMNS, found.coordinators()),
            ("leaders", "leader/1", Cluster.LEADER_COLUMNS, found.leaders(names)),
            ("elections", "zk-election/1", ZooKeeper.ELECTION_COLUMNS, keeper.elections()),
            ("topics", "zk-topic/1", ZooKeeper.TOPIC_COLUMNS, keeper.topics()),
        )
        if only is None and not any(table[3] for table in tables):
            reading.lacks("advertised brokers")
        with Output(options) as output:
            if options.form == "table" and only is None:
                _print_whole(found, output)
            blank = only is None and options.form == "table"
            for what, schema, columns, lines in tables:
                if several:
                    columns = shown(columns, "ensemble")
                if only == what or (only is None and lines):
                    if blank:
                        output.line("")
                    priority = PRIORITIES[what]
                    print_lines(lines, columns, schema, options, output, reading, priority)
        return reading.finish()


def _print_whole(found: Cluster, output: Output) -> None:
    ids, controller = list(found.whole.ids), found.whole.controller
    words = [f"cluster {safe(', '.join(ids))}"] if ids else ["cluster ID unknown"]
    if controller is not None:
        words.append(f"controller {controller[1]} (last advertised)")
    output.line("   ".join(words))
