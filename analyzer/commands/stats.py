"""`kafkascope stats`: one table of numbers each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from kafkascope.analyzer.commands.cluster import zookeeper
from kafkascope.analyzer.commands.grid import CommandTable, print_lines
from kafkascope.analyzer.commands.help import (
    CommandGroup,
    command,
    complete_from,
    refusing,
    setting,
)
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.log_files import RecordsAtRest, kafka_files
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.connections import Connections, connection_columns
from kafkascope.analyzer.statistics.errors import Errors
from kafkascope.analyzer.statistics.model import Column, Line
from kafkascope.analyzer.statistics.producers.producers import Producers
from kafkascope.analyzer.statistics.rates import Rates
from kafkascope.analyzer.statistics.simple import Breakdown, part_named
from kafkascope.analyzer.statistics.topics import StoredTopics, Topics
from kafkascope.analyzer.statistics.traffic import Latency, SizesOf, Throughput, latency_columns
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import plural
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import Closed, Opened
from kafkascope.times import SECOND

if TYPE_CHECKING:
    from kafkascope.analyzer.logdir.opening import AtRest

FILES: Final = ("pcap", "cap", "log", "gz", "zst", "xz", "bz")
"""Beginnings of file suffixes; topics have dots, too."""
_STORED: Final = ("partition", "records", "bytes", "lost_batches", "first", "last")
_MOVED: Final = ("produced_records", "fetched_records", "failed")
PRIORITIES: Final = {
    "apis": ("requests", "failed", "per_second", "lost", "throttled"),
    "latency": (
        *("requests", "excess_p95", "excess_max", "server_p95", "request_transfer_p95"),
        *("response_transfer_p95", "rtt_p50", "p95", "slowest"),
    ),
    "errors": ("count",),
    "topics": (*_MOVED, "writers"),
    "partitions": ("partition", *_MOVED, "share"),
    "stored-topics": _STORED[1:],
    "stored-partitions": _STORED,
    "connections": ("client_id", "broker_address", "state", "end", "requests", "failed"),
    "producer": ("clients", "transactional_id", "repeats", "missing", "failed"),
    "producer-partition": ("topic", "partition", "repeats", "missing", "failed"),
    "client-connections": ("connections", "per_minute", "life", "requests", "resets"),
    "sizes": ("count", "p95", "max", "total"),
    "rates": ("requests", "failed", "unanswered"),
    "journeys": ("topic", "group", "records", "produce_p50", "deliver_p50", "deliver_p95"),
}
"""The columns that answer the question of a table, by its name."""
TRANSACTIONS: Final = Priority(("time", "duration", "outcome"), ("text",))
Lines: TypeAlias = Callable[[TopicNames | None], list[Line]]
"""Returns the lines of a table, with the names of topics that are known."""
Remarks: TypeAlias = "Callable[[list[Line], Reading], Iterable[str]]"


@click.group(cls=CommandGroup)
def stats() -> None:
    """Print any statistics table: apis, sizes, rates, and more.

    topics, latency, errors, and connections are also commands of their own.

    \b
      kafkascope stats apis prod.pcapng --by api,client
      kafkascope stats latency prod.pcapng --by api,client --sort excess_p95 -n 10
      kafkascope stats rates prod.pcapng --every 10s -Y 'api == Metadata'
    """


def by_option(statistic: type[Breakdown[Any]]) -> Callable[[Any], Any]:
    """`--by`: the parts of the key that lines are for."""

    def read(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
        parts = tuple(part_named(part.strip()) for part in value.split(",") if part.strip())
        wrong = [part for part in parts if part not in statistic.choices()]
        if wrong or not parts:
            raise click.BadParameter(f'"{wrong[0] if wrong else ""}": choose from {known}')
        return tuple(dict.fromkeys(parts))

    known, usual = ", ".join(statistic.choices()), ",".join(statistic.USUAL)
    return setting(
        "--by",
        "A,B",
        f"Group by one or more of {known}",
        default=usual,
        callback=read,
        shell_complete=complete_from(statistic.choices),
    )


def _broken_down(
    options: ReadOptions,
    statistic: Breakdown[Any],
    by: tuple[str, ...],
    lines: Lines | None = None,
    *,
    remarks: Remarks = lambda lines, reading: (),
    for_people: Callable[[list[Line], tuple[Column, ...]], tuple[Column, ...]] | None = None,
    whole: Any = None,
) -> int:
    """Print a statistic `by` parts of its key: what lines are for comes first. `lines`: in place
    of its rows; the others are those of `shown`."""
    columns = statistic.columns(by)
    # A code says no more than the name of its error, an address no more than most client ids.
    parts = [column.name for column in columns if column not in statistic.COLUMNS]
    leading = (part for part in parts if part not in ("code", "client_address"))
    return shown(
        options,
        statistic,
        statistic.NAME,
        columns,
        lines or (lambda names: statistic.rows(names, by)),
        priority=Priority((*leading, *PRIORITIES[statistic.NAME])),
        remarks=remarks,
        for_people=for_people and (lambda found: for_people(found, columns)),
        whole=whole,
    )


def shown(
    options: ReadOptions,
    statistic: Any,
    name: str,
    columns: tuple[Column, ...],
    lines: Lines,
    *,
    remarks: Remarks = lambda lines, reading: (),
    watcher: Callable[[Opened | Closed], None] | None = None,
    begin: Callable[[Reading], None] = lambda reading: None,
    for_people: Callable[[list[Line]], tuple[Column, ...]] | None = None,
    priority: Priority | None = None,
    whole: Any = None,
    as_json: Callable[[Line], Line] | None = None,
) -> int:
    """Count, print the lines, say what there is to remark on them, and end as reading ended.
    `begin`: called before anything is read. `for_people`: the columns of the table, where they
    depend on what was found. `whole`: a statistic of all exchanges, see `count`. `as_json`: as in
    `CommandTable`."""
    with Reading(options) as reading:
        begin(reading)
        if watcher is not None and reading.stored is None:
            reading.capture.watch = watcher
        watch = hasattr(statistic, "saw") and not options.filter_text
        count(reading, statistic, watch=watch, whole=whole)
        with Output(options) as output:
            found = lines(reading.capture.context.names)
            if for_people is not None and options.form == "table" and not options.columns:
                columns = for_people(found)
            priority = priority or Priority(PRIORITIES[name])
            table = CommandTable(name, f"{name}/1", columns, priority, found, as_json=as_json)
            print_lines(table, output, reading)
        code = reading.finish()
        for remark in remarks(found, reading) if not options.quiet else ():
            say(remark)
        return code


@stats.command()
@by_option(Throughput)
@input_options
def apis(options: ReadOptions, by: tuple[str, ...]) -> int:
    """Count requests, bytes, records, errors, and throttling."""
    return _broken_down(options, Throughput(), by)


@stats.command()
@by_option(Latency)
@input_options
def latency(options: ReadOptions, by: tuple[str, ...]) -> int:
    """Measure latency by API, long-poll waits excluded.

    Excess is latency minus the wait that the client requested (long polls, groups that form).
    Request and Response are transfer times, Server is the broker's time without that wait, RTT is
    the round trip to the broker (docs/latency.md).

    \b
      kafkascope latency prod.pcapng
      kafkascope latency prod.pcapng --by api,client --sort excess_p95 -n 10
    """
    found = Latency()

    def remarks(lines: list[Line], reading: Reading) -> Iterable[str]:
        return found.remarks()

    return _broken_down(options, found, by, remarks=remarks, for_people=latency_columns)


@stats.command()
@by_option(Errors)
@input_options
def errors(options: ReadOptions, by: tuple[str, ...]) -> int:
    """Count unexpected errors by API, client, and topic.

    Errors that the protocol produces in every healthy cluster are left out, unless a finding is
    about them. `--by expected,code` lists both (docs/filter.md).

    \b
      kafkascope errors prod.pcapng
      kafkascope errors prod.pcapng --json | jq 'select(.retriable|not)'
    """
    # Some commands need the detectors and the filter's language, which take a while to load.
    from kafkascope.analyzer.findings import Findings
    from kafkascope.analyzer.findings.evidence import errors_in_words, settled

    found, findings = Errors(), Findings()

    def lines(names: TopicNames | None) -> list[Line]:
        return settled(found, findings.reported(names)).rows(names, by)

    def remarks(lines: list[Line], reading: Reading) -> list[str]:
        words, logs = errors_in_words(found), reading.capture.logs
        if logs is not None and logs.without_responses:
            words += "; request logs of brokers before 1.0 have no responses, and so no errors"
        return [words]

    return _broken_down(options, found, by, lines, remarks=remarks, whole=findings)


@stats.command()
@input_options
def topics(options: ReadOptions) -> int:
    """Show traffic by topic, with producers and consumers.

    INPUT may also be log segments, partition folders, or log directories of a broker: their
    contents are counted. With --schemas, --schema, --registry, or --columns topic,schemas the
    schemas of keys and values are listed, too.

    \b
      kafkascope topics prod.pcapng
      kafkascope topics prod.pcapng --sort produced_bytes -n 10
    """
    for word in options.inputs[1:]:
        suffix = word.rpartition(".")[2] if "." in word else ""
        if not (word == "-" or os.sep in word or suffix.startswith(FILES) or Path(word).exists()):
            raise click.UsageError(
                f'"{word}" is not a file; to select a topic, use -Y \'topic == "{word}"\''
            )
    if files := kafka_files(options.inputs, whole=True):
        return _stored(options, files, "stored-topics", StoredTopics.COLUMNS, StoredTopics.rows)
    return _by_topic(options, "topics", Topics.COLUMNS, Topics.rows)


@stats.command()
@input_options
def partitions(options: ReadOptions) -> int:
    """Show traffic by partition, with offsets."""
    if files := kafka_files(options.inputs, whole=True):
        columns = StoredTopics.PARTITION_COLUMNS
        return _stored(options, files, "stored-partitions", columns, StoredTopics.partitions)
    return _by_topic(options, "partitions", Topics.PARTITION_COLUMNS, Topics.partitions)


def _stored(
    options: ReadOptions,
    files: list[AtRest],
    name: str,
    columns: tuple[Column, ...],
    rows: Callable[[StoredTopics], list[Line]],
) -> int:
    read = RecordsAtRest(options, files)
    found = StoredTopics()
    for file, batch, _ in read.batches():
        found.add(batch, file.place)
    with Output(options) as output:
        priority = Priority(PRIORITIES[name])
        print_lines(CommandTable(name, f"{name}/1", columns, priority, rows(found)), output)
    return read.finish()


def _by_topic(
    options: ReadOptions,
    name: str,
    columns: tuple[Column, ...],
    rows: Callable[[Topics, TopicNames | None], list[Line]],
) -> int:
    """Count topics; also their schemas where the user gave options of schemas."""
    given = options.schemas
    wanted = bool(given.folders or given.assigned or given.registry) or "schemas" in options.columns
    statistic = Topics()
    if wanted and not given.off:
        columns = tuple(
            each._replace(wide=each.wide and each.name != "schemas") for each in columns
        )

    def begin(reading: Reading) -> None:
        statistic.payloads = reading.payloads if wanted else None

    return shown(options, statistic, name, columns, partial(rows, statistic), begin=begin)


@stats.command()
@setting(
    "--by",
    "NAME",
    "Group by connection or client",
    type=click.Choice(["connection", "client"]),
    default="connection",
)
@input_options
def connections(options: ReadOptions, by: str) -> int:
    """List TCP connections: lifetime, TLS, retransmissions.

    Connection attempts that were refused or not answered have a line, too. A filter of conn,
    client.ip, client.port, broker, broker.ip, broker.port, ip, and port selects connections. Any
    other filter selects exchanges; connections without one are left out.

    \b
      kafkascope connections prod.pcapng
      kafkascope connections prod.pcapng --by client
      kafkascope connections tls.pcapng --keylog keys.log
    """
    from kafkascope.analyzer.filter.backends.exchange import (
        CHOSEN_BY,
        is_about_connections,
        selected,
    )
    from kafkascope.analyzer.filter.language import bind

    bound = bind(options.filter_text)
    parts = options.begin or options.end or options.count
    if bound is not None and is_about_connections(bound) and not parts:
        options = replace(options, filter_text="")
    else:
        bound = None
    found, left = Connections(), Counter[str]()

    def saw(event: Opened | Closed) -> None:
        # Connects that came to no connection, and so to no exchange that a filter could judge.
        left["connects"] += (
            isinstance(event, Closed) and not event.used and event.connection.handshake
        )

    def remarks(lines: list[Line], reading: Reading) -> list[str]:
        count = left["connects"]
        return [f"{plural(count, 'connect')} left out: {CHOSEN_BY}"] if count else []

    def lines(names: TopicNames | None) -> list[Line]:
        chosen = selected(found.rows(names), bound)
        return found.by_client(names, chosen) if by == "client" else chosen

    alone = by == "connection"
    return shown(
        options,
        found,
        "connections" if alone else "client-connections",
        Connections.COLUMNS if alone else Connections.CLIENT_COLUMNS,
        lines,
        remarks=remarks,
        watcher=saw if options.filter_text else None,
        for_people=connection_columns if alone else None,
    )


@stats.command()
@by_option(SizesOf)
@input_options
def sizes(options: ReadOptions, by: tuple[str, ...]) -> int:
    """Measure sizes of requests, responses, and record batches."""
    return _broken_down(options, SizesOf(), by)


# A millisecond.
LEAST_WIDTH: Final = 1_000_000


def _every(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    from kafkascope.analyzer.filter.values import duration

    with refusing(ValueError):
        found = duration(value)
    if found < LEAST_WIDTH:
        raise click.BadParameter("1ms is the minimum")
    return found


@stats.command()
@setting("--every", "TIME", "Interval of each line", default="1s", callback=_every)
@input_options
def rates(options: ReadOptions, every: int = SECOND) -> int:
    """Show throughput over time."""
    statistic = Rates(every)
    return shown(options, statistic, "rates", Rates.COLUMNS, statistic.rows)


stats.add_command(zookeeper)


@stats.command()
@input_options
def journeys(options: ReadOptions) -> int:
    """Measure how long records take from producers to groups.

    Produce is from the first byte of the Produce request to the last of its response, Deliver from
    the first byte of that request to the first Fetch response of the group that held the record,
    Commit from that response to the first commit beyond the record. Lag counts the records that a
    group has not committed (or fetched, where it never commits) at the end of the capture, Lag time
    the age of the oldest of them.

    \b
      kafkascope stats journeys prod.pcapng
      kafkascope stats journeys prod.pcapng --sort deliver_p95 -n 5
    """
    from kafkascope.analyzer.statistics.journeys.journeys import Journeys
    from kafkascope.analyzer.statistics.journeys.printed import journeys_json

    found = Journeys()
    return shown(
        options,
        found,
        "journeys",
        Journeys.COLUMNS,
        found.rows,
        remarks=lambda lines, reading: found.remarks(lines),
        as_json=journeys_json,
    )


@command()
@setting("--partitions what", "", "Show sequences by partition", flag_value="lanes")
@setting("--transactions what", "", "Show transactions by time", flag_value="transactions")
@input_options
def producers(options: ReadOptions, what: str | None) -> int:
    """Show producer sequences, duplicates, and transactions.

    Lists idempotent and transactional producers: batches sent, resent, or missing, and how their
    transactions ended.

    \b
      kafkascope producers prod.pcapng
      kafkascope producers prod.pcapng --transactions -Y 'txn == "orders-1"'
      kafkascope producers prod.pcapng --partitions --sort missing -n 5
    """
    found = Producers()
    if what == "lanes":
        return shown(options, found, "producer-partition", Producers.LANE_COLUMNS, found.lanes)
    if what == "transactions":
        columns, priority = Producers.TRANSACTION_COLUMNS, TRANSACTIONS
        return shown(options, found, "transaction", columns, found.transactions, priority=priority)
    return shown(options, found, "producer", Producers.COLUMNS, found.rows)
