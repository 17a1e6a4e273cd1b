"""`kafkascope cluster` and `stats zookeeper`: the cluster as brokers and ZooKeeper describe it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kafkascope.analyzer.commands.grid import CommandTable, one_table, only_option, print_tables
from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.limits import LIMITS
from kafkascope.analyzer.commands.options import hosts_option, input_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.model import Line, shown
from kafkascope.analyzer.statistics.zookeeper.model import is_below
from kafkascope.analyzer.statistics.zookeeper.story import TreeStory
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from kafkascope.analyzer.text import plural, safe
from kafkascope.captures.model import Resolved

ELECTIONS: Final = CommandTable(
    *("elections", "zk-election/1", ZooKeeper.ELECTION_COLUMNS),
    Priority(("controller", "ended", "end")),
)
CLUSTER: Final = (
    CommandTable(
        *("nodes", "node/1", Cluster.COLUMNS),
        Priority(("address", "contacted", "clients"), ("remarks",)),
    ),
    CommandTable(
        *("coordinators", "coordinator/1", Cluster.COORDINATOR_COLUMNS),
        Priority(("key", "node", "address", "changes", "failed")),
    ),
    CommandTable(
        *("leaders", "leader/1", Cluster.LEADER_COLUMNS),
        Priority(("partition", "leader", "in_sync", "offline", "failed", "changes")),
    ),
    ELECTIONS,
    CommandTable(
        *("topics", "zk-topic/1", ZooKeeper.TOPIC_COLUMNS),
        Priority(("created", "deleted", "client_address")),
    ),
)
ZOOKEEPER: Final = (
    CommandTable(
        *("sessions", "zk-session/1", ZooKeeper.SESSION_COLUMNS),
        Priority(("client_address", "who", "state", "ended", "lost_nodes")),
    ),
    ELECTIONS,
    CommandTable(
        *("nodes", "zk-node/1", ZooKeeper.COLUMNS),
        Priority(("what", "state", "changes", "changed")),
    ),
    CommandTable(
        *("history", "zk-change/1", ZooKeeper.HISTORY_COLUMNS),
        Priority(("path", "change", "client_address", "data")),
    ),
    CommandTable(
        *("slow", "zk-slow/1", ZooKeeper.SLOW_COLUMNS),
        Priority(("latency", "api", "path", "client_address")),
    ),
)


@command()
@only_option(CLUSTER)
@hosts_option
@input_options
def cluster(options: ReadOptions, only: str | None, hosts: tuple[Resolved, ...]) -> int:
    """Show brokers, leaders, coordinators as advertised.

    Lists the advertised addresses of each broker, and whether clients reached them. ZooKeeper
    traffic adds registrations, controller elections, and created or deleted topics.

    \b
      kafkascope cluster prod.pcapng
      kafkascope cluster prod.pcapng --only nodes --sort contacted
      kafkascope cluster prod.pcapng --hosts names.txt
      kafkascope cluster prod.pcapng --only leaders --sort errors -n 10
    """
    only = one_table(only, "nodes", options)
    with Reading(options) as reading:
        brokers, zk = Cluster(), ZooKeeper()
        count(reading, brokers, zk, watch=not options.filter_text, hosts=hosts)
        names = reading.capture.context.names
        lines = (
            brokers.rows(names),
            brokers.coordinators(),
            brokers.leaders(names),
            zk.elections(),
            zk.topics(),
        )
        several = len(zk.stories()) > 1
        tables = [
            _with_ensemble(table, several)._replace(lines=table_lines)
            for table, table_lines in zip(CLUSTER, lines, strict=True)
        ]
        if only is None and not any(lines):
            reading.lacks("advertised brokers")
        with Output(options) as output:
            if options.form == "table" and only is None:
                output.line(_title(brokers))
            print_tables(tables, only, output, reading, begun=True)
        return reading.finish()


def _with_ensemble(table: CommandTable, several: bool) -> CommandTable:
    """Return the table with a column of ZooKeeper ensembles, if there are several."""
    return table._replace(columns=shown(table.columns, "ensemble")) if several else table


def _title(brokers: Cluster) -> str:
    ids, controller = list(brokers.facts.ids), brokers.facts.controller
    words = [f"cluster {safe(', '.join(ids))}"] if ids else ["cluster ID unknown"]
    if controller is not None:
        words.append(f"controller {controller[1]} (last advertised)")
    return "   ".join(words)


@command()
@only_option(ZOOKEEPER)
@setting("--under", "PATH", "Show only nodes at or below PATH", default="")
@input_options
def zookeeper(options: ReadOptions, only: str | None, under: str) -> int:
    """Show ZooKeeper sessions, controller elections, and nodes.

    Also lists the slowest requests, and with --only history each change of a node.

    \b
      kafkascope stats zookeeper prod.pcapng
      kafkascope stats zookeeper prod.pcapng --only sessions --json
      kafkascope stats zookeeper prod.pcapng --only history --under /controller
    """
    only = one_table(only, "sessions", options)
    with Reading(options) as reading:
        zk = ZooKeeper()
        count(reading, zk)
        # In the order of `ZOOKEEPER`; only the tables that are printed are computed.
        lines_of: tuple[Callable[[], list[Line]], ...] = (
            zk.session_lines,
            zk.elections,
            zk.rows,
            zk.history,
            zk.slowest,
        )
        stories, tables = zk.stories(), []
        for table, make in zip(ZOOKEEPER, lines_of, strict=True):
            name = table.name
            shows = only == name or (only is None and name != "history")
            lines: list[Line] = make() if shows else []
            of = ""
            if under and name in ("nodes", "history"):
                lines = [line for line in lines if is_below(line["path"], under)]
                of = f" at or below {safe(under)}"
            if name == "slow" and only is None:
                lines = lines[: LIMITS.slow_requests]
            tables.append(_with_ensemble(table, len(stories) > 1)._replace(lines=lines, of=of))
        if only is None and not any(table.lines for table in tables):
            reading.lacks("ZooKeeper traffic")
        with Output(options) as output:
            if only is None and options.form == "table" and zk.span.first_ns is not None:
                for line in _summary(zk, stories):
                    output.line(line)
            print_tables(tables, only, output, reading, begun=True)
        return reading.finish()


def _summary(zk: ZooKeeper, stories: list[TreeStory]) -> Iterator[str]:
    span = zk.span
    words = (
        plural(span.requests, "request"),
        plural(span.events, "watch event"),
        plural(len(zk.sessions), "session"),
        plural(sum(story.size for story in stories), "node"),
    )
    yield ", ".join(words)
    for story in stories if len(stories) > 1 else ():
        doubt = " (it may be the same as another one: they share no znode)" * story.doubtful
        yield safe(f"ensemble {story.name}: {plural(story.size, 'node')}{doubt}")
