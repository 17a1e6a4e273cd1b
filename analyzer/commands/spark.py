"""`kafkascope spark`: captures of any size to Parquet tables."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kafkascope.analyzer.commands.atrest import kafka_files
from kafkascope.analyzer.commands.help import command, option
from kafkascope.analyzer.commands.options import (
    key_logs,
    keylog_option,
    ports_of,
    schema_options,
    spare_pandas,
    spelled,
)
from kafkascope.analyzer.heap import large_apart
from kafkascope.analyzer.terminal import say
from kafkascope.extras import installed, require

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.offline import Legs
    from kafkascope.analyzer.logdir.opening import AtRest
    from kafkascope.analyzer.payloads.known import KnownSchemas
    from kafkascope.analyzer.payloads.model import Schema
    from kafkascope.analyzer.pipeline.runner import Result, Used
    from kafkascope.analyzer.pipeline.tables.collect import TableOptions
    from kafkascope.analyzer.reading.options import SchemaOptions
    from kafkascope.captures.tls.keys.keylog import KeyLog

PARTIAL: Final = 4
INTERRUPTED: Final = 130
MOST_EXCHANGES: Final = 5000
"""In a megabyte: more hardly fit."""
SHUFFLED: Final = 1.2
"""Bytes on the disk of the shuffle for one of the captures."""


LEAN_POOL: Final = "jemalloc" if sys.platform == "linux" else "system"
"""The allocator of Arrow that returns most memory: a tenth to a fifth less at the most."""


@command()
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@option(
    "-o", "--output", metavar="DIR", required=True, section="Tables", help="Folder of the tables"
)
@option(
    "--engine",
    type=click.Choice(["auto", "plain", "spark"]),
    metavar="ENGINE",
    default="auto",
    show_default=True,
    section="Spark",
    help="plain: one process; spark; auto: Spark for large inputs",
)
@option(
    "-Y",
    "filter_text",
    metavar="FILTER",
    default="",
    section="Input",
    help="Display filter of exchanges to convert",
)
@option(
    "-d",
    "decode_as",
    multiple=True,
    metavar="tcp.port==N,kafka",
    section="Input",
    help="Decode a port, or a range of ports (9000-9100), as Kafka; repeatable",
)
@keylog_option(section="Input")
@option("--append", "used", flag_value="append", section="Tables", help="Add to the tables in DIR")
@option(
    "--replace", "used", flag_value="replace", section="Tables", help="Replace the tables in DIR"
)
@option(
    "--full", is_flag=True, section="Tables", help="Include request and response bodies as JSON"
)
@option("--records", is_flag=True, section="Tables", help="Include a table of records")
@option(
    "--tables",
    "more",
    metavar="NAMES",
    default="",
    section="Tables",
    help="Include more tables: frames, segments, records; separated by commas",
)
@option(
    "--legs",
    type=click.Choice(["client", "both"]),
    default="client",
    hidden=True,
    help="Sides of a recorded proxy to read",
)
@option(
    "--split-size",
    metavar="SIZE",
    default="64MB",
    show_default=True,
    section="Spark",
    help="Bytes that one task reads",
)
@option(
    "--master",
    metavar="URL",
    section="Spark",
    help="Spark cluster (default: all cores of this machine)",
)
@option("--remote", metavar="URL", section="Spark", help="Spark Connect server: sc://host:15002")
@option(
    "--tasks",
    type=click.IntRange(min=1),
    metavar="N",
    section="Spark",
    help="Number of tasks that connections are divided among",
)
@option(
    "--spread",
    is_flag=True,
    section="Spark",
    help="Split elephant flows across tasks (few connections with most of the bytes)",
)
@option(
    "--temp-dir",
    metavar="DIR",
    section="Spark",
    help="Folder for the shuffle; needs about the size of the captures",
)
@option(
    "--conf",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    section="Spark",
    help="Spark setting; repeatable",
)
@option("--spark-ui", is_flag=True, section="Spark", help="Enable the Spark web UI")
@option("--debug", is_flag=True, section="Spark", help="Print Spark errors in full")
@option(
    "--follow",
    is_flag=True,
    section="Follow",
    help="Convert files as they are completed, until ctrl+c",
)
@option(
    "--available-now",
    is_flag=True,
    section="Follow",
    help="Convert files that are complete by now, then exit",
)
@option(
    "--last-file-complete",
    is_flag=True,
    section="Follow",
    help="Convert all present files, also the newest, then exit",
)
@option(
    "--settle",
    metavar="TIME",
    default="30s",
    show_default=True,
    section="Follow",
    help="Treat a file as complete after this long without writes",
)
@schema_options
@option("--strict", is_flag=True, help="Exit with 1, not 4, if input is damaged")
@option("-q", "--quiet", is_flag=True, help="Suppress diagnostic messages")
def spark(
    inputs: tuple[str, ...],
    output: str,
    engine: str,
    filter_text: str,
    decode_as: tuple[str, ...],
    keylog: tuple[str, ...],
    full: bool,
    records: bool,
    more: str,
    legs: str,
    split_size: str,
    strict: bool,
    quiet: bool,
    follow: bool,
    available_now: bool,
    last_file_complete: bool,
    settle: str,
    used: Used | None,
    schemas: SchemaOptions,
    **spark_options: Any,
) -> int:
    """Convert captures to Parquet tables.

    INPUT is a file, a folder, a glob, or a URI (s3://, gs://, hdfs://). Log segments, partition
    folders, and log directories of a broker give tables of records and batches. Spark, DuckDB, and
    pandas read the tables; `kafkascope stats`, `clients`, and `groups` take DIR as INPUT.

    \b
      kafkascope spark /captures/*.pcap.gz -o tables
      kafkascope spark s3://traces/2026-11-21 -o tables --engine spark
      kafkascope spark /captures -o orders -Y 'topic == orders'
      kafkascope latency tables --by api,client
      duckdb -c "select count(*) from 'tables/exchanges/*/*.parquet'"
    """
    require("kafkascope spark")
    # Read when Arrow is loaded. Its own choice keeps what each of many steps took at most.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", LEAN_POOL)
    large_apart()
    from kafkascope.analyzer.pipeline.places import absolute
    from kafkascope.analyzer.pipeline.runner import check_use
    from kafkascope.analyzer.pipeline.store import Store
    from kafkascope.analyzer.pipeline.tables.collect import TableOptions
    from kafkascope.captures.inputs.keylogs import read_key_logs

    if files := kafka_files(inputs, whole=True):
        refused = {
            "--engine spark": engine == "spark" or spark_options["master"],
            "--remote": spark_options["remote"],
            "--follow": follow,
            "--full": full,
            "--tables": set(more.split(",")) - {"", "records"},
            "--keylog": keylog,
            "-d": decode_as,
        }
        if found := [name for name, given in refused.items() if given]:
            raise click.UsageError(
                f"{found[0]} is for captures, not for log segments: leave it out (on Spark: "
                'spark.read.format("kafkascope").option("table", "records"))'
            )
        return _of_logs(files, output, spelled(filter_text), schemas, used, strict, quiet)
    ports = tuple(sorted({port for text in decode_as for port in ports_of(text)}))
    wanted = _tables(more, records=records)
    options = TableOptions(
        ports,
        legs == "both",
        full,
        records="records" in wanted,
        frames="frames" in wanted,
        segments="segments" in wanted,
        filter=_filter(spelled(filter_text)),
    )
    if used is not None and follow:
        raise click.UsageError("--follow always appends: leave out --append and --replace")
    if spark_options["remote"] or spark_options["master"]:
        engine = "spark" if engine == "auto" else engine
        # Workers may have another current folder.
        inputs = tuple(map(absolute, inputs))
    if (available_now or last_file_complete) and not follow:
        raise click.UsageError("--available-now and --last-file-complete need --follow")
    if spark_options["spread"] and follow:
        raise click.UsageError(
            "--spread does not work with --follow, whose batches are small: leave it out"
        )
    if spark_options["spread"] and options.filter:
        # Tasks that only decode do not know what became of the connections they are told of.
        raise click.UsageError("--spread converts all exchanges: leave out -Y")
    split_bytes = _bytes(split_size)
    logs = key_logs(keylog)
    known = functools.partial(_schemas, inputs, schemas, options, logs, quiet=quiet)
    told = functools.partial(_told, output=output, strict=strict, quiet=quiet)
    run: Callable[[Any], int]
    if follow:
        how = _How(_seconds(settle), available_now, last_file_complete)
        run = functools.partial(
            _follow, inputs, output, options, split_bytes, logs, known, how, told
        )
    else:
        # Said before Spark starts.
        check_use(output, Store(output).manifests(), used or "refuse")
        keys = read_key_logs(logs)
        run = functools.partial(
            _run, inputs, output, options, split_bytes, keys, known, used or "refuse", told
        )
    chosen, why = _chosen(engine, inputs, ports, follow)
    if engine == "auto" and not quiet:
        say(f"engine {chosen}: {why}")
    if chosen == "plain":
        spare_pandas()
        return run(None)
    # A batch of --follow is small.
    return _on_spark(run, () if follow else inputs, quiet=quiet, **spark_options)


def _of_logs(
    files: list[AtRest],
    output: str,
    text: str,
    schemas: SchemaOptions,
    used: Used | None,
    strict: bool,
    quiet: bool,
) -> int:
    """Make tables of Kafka's own files."""
    from kafkascope.analyzer.filter.decoded.reading import Decoding
    from kafkascope.analyzer.filter.known import Known
    from kafkascope.analyzer.pipeline.runner import run_logs
    from kafkascope.analyzer.pipeline.tables.collect import TableOptions
    from kafkascope.analyzer.pipeline.tables.logs import chosen_by
    from kafkascope.analyzer.reading.at_rest import payloads_at_rest
    from kafkascope.analyzer.reading.options import ReadOptions
    from kafkascope.analyzer.topics import TopicNames

    for file in files:
        if not file.holds_batches:
            raise click.UsageError(f'"{file.path}" holds no records; list it with `kafkascope ls`')
    payloads = payloads_at_rest(ReadOptions((), schemas=schemas, quiet=quiet), files)
    decoding = None if payloads is None else Decoding(lambda: payloads, TopicNames)
    options = TableOptions(records=True, filter=text.strip())
    wanted = chosen_by(text, Known(decoding=decoding))
    result = run_logs(files, output, options, wanted, payloads, used or "refuse")
    for damage in result.damage:
        say(damage)
    if not quiet:
        rows, count = result.manifest["rows"], len(result.manifest["files"])
        say(
            f"{rows['records']} records in {rows['record_batches']} batches of {count} "
            f"segment{'s' * (count != 1)} written to {output} "
            f"(batch {result.manifest['batch_id']})"
        )
    if result.damage:
        return 1 if strict else PARTIAL
    return 0


class _How(NamedTuple):
    """Of --follow."""

    settle_s: float
    now: bool
    last: bool


def _follow(
    inputs: tuple[str, ...],
    output: str,
    options: Any,
    split_bytes: int,
    logs: tuple[str, ...],
    known: Callable[[], KnownSchemas | None],
    how: _How,
    told: Callable[[Result], int],
    engine: Any,
) -> int:
    from kafkascope.analyzer.pipeline import runner
    from kafkascope.analyzer.pipeline.follow import ClosedRule, catch_up
    from kafkascope.analyzer.pipeline.follow import follow as go_on
    from kafkascope.captures.inputs.keylogs import read_key_logs

    def catch() -> Iterator[Result]:
        return catch_up(
            inputs,
            output,
            options,
            ClosedRule(how.settle_s, how.last),
            engine=engine or runner.PLAIN,
            split_bytes=split_bytes,
            # Read again for each look: what was opened since has lines that are new.
            keys=read_key_logs(logs),
            schemas=known(),
        )

    code = 0
    if how.now or how.last:
        for result in catch():
            code = max(code, told(result))
        return code
    try:
        go_on(catch, told)
    except KeyboardInterrupt:
        # What is complete counts; the next run goes on from there.
        return INTERRUPTED
    return code


def _run(
    inputs: tuple[str, ...],
    output: str,
    options: Any,
    split_bytes: int,
    keys: KeyLog | None,
    known: Callable[[], KnownSchemas | None],
    used: Used,
    told: Callable[[Result], int],
    engine: Any,
) -> int:
    from kafkascope.analyzer.pipeline import runner

    engine = engine or runner.PLAIN
    return told(
        runner.run(
            inputs,
            output,
            options,
            engine=engine,
            split_bytes=split_bytes,
            keys=keys,
            schemas=known(),
            used=used,
        )
    )


def _schemas(
    inputs: tuple[str, ...],
    wanted: SchemaOptions,
    options: TableOptions,
    logs: tuple[str, ...],
    *,
    quiet: bool,
) -> KnownSchemas | None:
    """Return what keys and values are decoded with; None where no table shows them, or the user
    wants none of it."""
    given = wanted.folders or wanted.assigned or wanted.registry
    if wanted.off or not (options.records or options.full or given):
        return None
    from kafkascope.analyzer.pipeline.places import is_remote, listed
    from kafkascope.analyzer.reading.schemas import known_of

    def seen() -> list[Schema]:
        from kafkascope.analyzer.exchanges.seen_schemas import schemas_in

        files = listed(inputs)
        if any(map(is_remote, files)):
            if not quiet:
                say("schemas inside the captures are read of local files only: give --schemas")
            return []
        legs: Legs = "both" if options.both_legs else "client"
        return schemas_in(files, keylog=logs, decode_as=options.decode_as, legs=legs)

    return known_of(wanted, complete=seen, quiet=quiet)


def _chosen(
    engine: str, inputs: tuple[str, ...], ports: tuple[int, ...], follow: bool
) -> tuple[str, str]:
    """The engine, and why it was taken."""
    if follow and engine == "auto":
        return "plain", "batches of closed files are small"
    if engine != "auto":
        return engine, ""
    from kafkascope.analyzer.pipeline.places import listed, size_of

    files = listed(inputs)
    size = sum(map(size_of, files))
    told = f"{size / 1e6:.0f} MB"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    from kafkascope.analyzer.spark.worth import exchanges_per_megabyte, worth_spark

    dense = worth_spark(cores or 1, MOST_EXCHANGES)
    if dense is not None and size < dense:
        # Whatever it holds.
        return "plain", f"{told} are read faster than Spark starts"
    held = exchanges_per_megabyte(files, ports)
    from_ = worth_spark(cores or 1, held)
    told += f" with about {held:.0f} exchanges in each"
    if from_ is None:
        return "plain", f"{told}: on {cores} core{'s' * (cores != 1)} one process is faster"
    if size < from_:
        return "plain", f"{told} are read faster than Spark starts"
    if not installed("spark"):
        return "plain", f"{told}, but the extra 'spark' is not installed"
    from kafkascope.analyzer.spark.session import NoSpark, check

    try:
        check()
    except NoSpark as error:
        return "plain", str(error)
    return "spark", f"{told} are worth its start"


def _on_spark(
    run: Callable[[Any], int],
    inputs: tuple[str, ...],
    *,
    master: str | None,
    remote: str | None,
    tasks: int | None,
    spread: bool,
    temp_dir: str | None,
    settings: tuple[str, ...],
    spark_ui: bool,
    debug: bool,
    quiet: bool,
) -> int:
    from kafkascope.analyzer.pipeline.places import listed, size_of
    from kafkascope.analyzer.spark.engine import Spark
    from kafkascope.analyzer.spark.progress import shown
    from kafkascope.analyzer.spark.session import session, spoken

    pairs = dict(_setting(text) for text in settings)
    size = sum(map(size_of, listed(inputs))) if inputs else 0
    with session(
        master=master,
        remote=remote,
        temporary=temp_dir,
        shuffle_bytes=int(SHUFFLED * size),
        ui=spark_ui,
        settings=pairs,
    ) as spark_session:
        try:
            with shown(spark_session, size, quiet=quiet):
                return run(Spark(spark_session, tasks, spread))
        except Exception as error:
            told = None if debug else spoken(error)
            if told is None:
                raise
            raise told from None


def _tables(text: str, *, records: bool) -> set[str]:
    """Names of tables that are made on request."""
    from kafkascope.analyzer.pipeline.tables.schemas import ON_REQUEST

    names = {each.strip() for each in text.split(",") if each.strip()}
    if unknown := names - set(ON_REQUEST):
        raise click.BadParameter(
            f'"{min(unknown)}": choose from {", ".join(sorted(ON_REQUEST))}', param_hint="--tables"
        )
    return names | ({"records"} if records else set())


def _filter(text: str) -> str:
    """A filter that tasks can judge; `FilterError`."""
    if not text.strip():
        return ""
    from kafkascope.analyzer.filter.language import bind
    from kafkascope.analyzer.filter.places import IN_TASKS, demand

    why = "{} is not known yet while tables are made"
    demand(bind(text), text, IN_TASKS, why, "make tables of all, then kafkascope ls DIR -Y ...")
    return text.strip()


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise click.BadParameter(f'"{text}": write NAME=VALUE', param_hint="--conf")
    return name.strip(), value.strip()


def _told(result: Result, *, output: str, strict: bool, quiet: bool) -> int:
    for damage in result.damage:
        say(f"{damage}")
    if not quiet:
        manifest = result.manifest
        if result.order is not None:
            from kafkascope.analyzer.reading.remarks import copies

            for line in copies(result.order, [file["path"] for file in manifest["files"]]):
                say(line)
        for line in manifest.get("left_out", ()):  # older batches have none
            say(line)
        files = len(manifest["files"])
        wanted = manifest["rows"]["exchanges"]
        chosen = f"{wanted} of " if manifest["options"].get("filter") else ""
        say(
            f"{chosen}{manifest['exchanges']} exchanges of {manifest['packets']} packets in "
            f"{files} file{'s' * (files != 1)} written to {output} (batch {manifest['batch_id']})"
        )
    if result.damage:
        return 1 if strict else PARTIAL
    return 0


def _bytes(text: str) -> int:
    from kafkascope.analyzer.filter.values import size

    try:
        found = size(text)
    except ValueError as error:
        raise click.BadParameter(f'"{text}": {error}', param_hint="--split-size") from None
    if found < 1:
        raise click.BadParameter("1B is the minimum", param_hint="--split-size")
    return int(found)


def _seconds(text: str) -> float:
    from kafkascope.analyzer.filter.values import duration

    try:
        return duration(text) / 1e9
    except ValueError as error:
        raise click.BadParameter(f'"{text}": {error}', param_hint="--settle") from None
