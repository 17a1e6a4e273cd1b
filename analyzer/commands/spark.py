"""`kafkascope spark`: captures of any size to Parquet tables."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from kafkascope.analyzer.commands.help import command, refusing, setting
from kafkascope.analyzer.commands.options import (
    decode_as_option,
    key_logs,
    keylog_option,
    legs_option,
    ports_of,
    schema_options,
    spare_pandas,
    spelled,
)
from kafkascope.analyzer.heap import large_apart
from kafkascope.analyzer.reading.log_files import kafka_files
from kafkascope.analyzer.reading.options import ReadOptions, SchemaOptions
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.times import zone_named
from kafkascope.extras import require

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.offline import Legs
    from kafkascope.analyzer.logdir.opening import AtRest
    from kafkascope.analyzer.payloads.known import KnownSchemas
    from kafkascope.analyzer.payloads.model import Schema
    from kafkascope.analyzer.pipeline.follow import ClosedRule
    from kafkascope.analyzer.pipeline.runner import Result, Used
    from kafkascope.analyzer.pipeline.tables.collect import TableOptions

PARTIAL: Final = 4
INTERRUPTED: Final = 130
SHUFFLED: Final = 1.2
"""Bytes on the disk of the shuffle for one of the captures."""


LEAN_POOL: Final = "jemalloc" if sys.platform == "linux" else "system"
"""The allocator of Arrow that returns most memory: a tenth to a fifth less at the most."""


_input_option, _tables_option, _spark_option, _follow_option = (
    functools.partial(setting, section=name) for name in ("Input", "Tables", "Spark", "Follow")
)


@command()
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@_tables_option("-o --output", "DIR", "Folder of the tables", required=True)
@_spark_option(
    "--engine",
    "ENGINE",
    "plain: one process; spark; auto: Spark for large inputs",
    type=click.Choice(["auto", "plain", "spark"]),
    default="auto",
)
@_input_option("-Y filter_text", "FILTER", "Display filter of exchanges to convert", default="")
@decode_as_option(section="Input")
@keylog_option(section="Input")
@_input_option("--time-zone zone", "ZONE", "Time zone of request logs", default="")
@_tables_option("--append used", "", "Add to the tables in DIR", flag_value="append")
@_tables_option("--replace used", "", "Replace the tables in DIR", flag_value="replace")
@_tables_option("--full", "", "Include request and response bodies as JSON")
@_tables_option("--records", "", "Include a table of records")
@_tables_option(
    "--tables more",
    "NAMES",
    "Include more tables: frames, segments, records; separated by commas",
    default="",
)
@legs_option
@_spark_option("--split-size", "SIZE", "Bytes that one task reads", default="64MB")
@_spark_option("--master", "URL", "Spark cluster (default: all cores of this machine)")
@_spark_option("--remote", "URL", "Spark Connect server: sc://host:15002")
@_spark_option(
    "--tasks", "N", "Number of tasks that connections are divided among", type=click.IntRange(min=1)
)
@_spark_option(
    "--temp-dir temporary", "DIR", "Folder for the shuffle; needs about the size of the captures"
)
@_spark_option("--conf settings", "NAME=VALUE", "Spark setting", multiple=True)
@_spark_option("--spark-ui ui", "", "Enable the Spark web UI")
@_spark_option("--debug", "", "Print Spark errors in full")
@_follow_option("--follow", "", "Convert files as they are completed, until ctrl+c")
@_follow_option("--available-now", "", "Convert files that are complete by now, then exit")
@_follow_option("--last-file-complete", "", "Convert all present files, also the newest, then exit")
@_follow_option(
    "--settle", "TIME", "Treat a file as complete after this long without writes", default="30s"
)
@schema_options
@setting("--strict", "", "Exit with 1, not 4, if input is damaged")
@setting("-q --quiet", "", "Suppress diagnostic messages")
def spark(
    inputs: tuple[str, ...],
    output: str,
    engine: str,
    filter_text: str,
    decode_as: tuple[str, ...],
    keylog: tuple[str, ...],
    zone: str,
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
    from kafkascope.analyzer.pipeline.follow import ClosedRule
    from kafkascope.analyzer.pipeline.places import absolute
    from kafkascope.analyzer.pipeline.tables.collect import TableOptions

    plan = _Plan(
        output, _bytes(split_size), key_logs(keylog), schemas, used or "refuse", strict, quiet
    )
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
        return _of_logs(files, spelled(filter_text), plan)
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
        zone=zone,
    )
    if zone:
        with refusing(ValueError, option="--time-zone"):
            zone_named(zone)
    if used is not None and follow:
        raise click.UsageError("--follow always appends: leave out --append and --replace")
    if spark_options["remote"] or spark_options["master"]:
        engine = "spark" if engine == "auto" else engine
        # Workers may have another current folder.
        inputs = tuple(map(absolute, inputs))
    if (available_now or last_file_complete) and not follow:
        raise click.UsageError("--available-now and --last-file-complete need --follow")
    run = _conversion(
        plan,
        inputs,
        options,
        ClosedRule(_seconds(settle), last_file_complete) if follow else None,
        once=available_now or last_file_complete,
    )
    if engine == "auto":
        from kafkascope.analyzer.spark.worth import engine_for

        engine, why = "plain", "batches of closed files are small"
        if not follow:
            engine, why = engine_for(inputs, ports)
        if not quiet:
            say(f"engine {engine}: {why}")
    if engine == "plain":
        spare_pandas()
        return run(None)
    # A batch of --follow is small.
    return _on_spark(run, () if follow else inputs, quiet=quiet, **spark_options)


def _of_logs(files: list[AtRest], text: str, plan: _Plan) -> int:
    from kafkascope.analyzer.pipeline.runner import run_logs
    from kafkascope.analyzer.pipeline.tables.collect import TableOptions
    from kafkascope.analyzer.pipeline.tables.logs import chosen_by
    from kafkascope.analyzer.reading.at_rest import known_at_rest, payloads_at_rest

    payloads = payloads_at_rest(ReadOptions((), schemas=plan.schemas, quiet=plan.quiet), files)
    options = TableOptions(records=True, filter=text.strip())
    wanted = chosen_by(text, known_at_rest(payloads))
    result = run_logs(files, plan.output, options, wanted, payloads, plan.used)
    for damage in result.damage:
        say(damage)
    if not plan.quiet:
        rows, count = result.manifest["rows"], len(result.manifest["files"])
        say(
            f"{rows['records']} records in {rows['record_batches']} batches of {count} "
            f"segment{'s' * (count != 1)} written to {plan.output} "
            f"(batch {result.manifest['batch_id']})"
        )
    return _code(result, plan.strict)


class _Plan(NamedTuple):
    """How inputs are converted, and where to."""

    output: str
    split_bytes: int
    logs: tuple[str, ...]
    schemas: SchemaOptions
    used: Used
    strict: bool
    quiet: bool


def _conversion(
    plan: _Plan,
    inputs: tuple[str, ...],
    options: TableOptions,
    rule: ClosedRule | None,
    *,
    once: bool,
) -> Callable[[Any], int]:
    """Return what converts on an engine (None: the plain one), and returns the exit code. Without
    the `rule` of --follow what is wrong with output and key logs is said before Spark starts."""
    from kafkascope.analyzer.pipeline import runner
    from kafkascope.analyzer.pipeline.follow import catch_up, follow
    from kafkascope.analyzer.pipeline.store import Store
    from kafkascope.captures.inputs.keylogs import read_key_logs

    finish = functools.partial(_finish, plan)

    def how(engine: Any) -> dict[str, Any]:
        return {
            "engine": engine or runner.PLAIN,
            "split_bytes": plan.split_bytes,
            "schemas": _schemas(plan, inputs, options),
        }

    def run(engine: Any) -> int:
        given = how(engine)
        return finish(runner.run(inputs, plan.output, options, keys=keys, used=plan.used, **given))

    def run_on(engine: Any) -> int:
        assert rule is not None

        def catch() -> Iterator[Result]:
            # Read again for each look: what was opened since has lines that are new.
            logs = read_key_logs(plan.logs)
            return catch_up(inputs, plan.output, options, rule, keys=logs, **how(engine))

        if once:
            return max(map(finish, catch()), default=0)
        try:
            follow(catch, finish)
        except KeyboardInterrupt:
            # What is complete counts; the next run goes on from there.
            return INTERRUPTED
        return 0

    if rule is not None:
        return run_on
    runner.check_use(plan.output, Store(plan.output).manifests(), plan.used)
    keys = read_key_logs(plan.logs)
    return run


def _schemas(plan: _Plan, inputs: tuple[str, ...], options: TableOptions) -> KnownSchemas | None:
    """Return what keys and values are decoded with; None where no table shows them, or the user
    wants none of it."""
    wanted, quiet = plan.schemas, plan.quiet
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
        return schemas_in(files, keylog=plan.logs, decode_as=options.decode_as, legs=legs)

    return known_of(wanted, complete=seen, quiet=quiet)


def _on_spark(
    run: Callable[[Any], int],
    inputs: tuple[str, ...],
    *,
    tasks: int | None,
    settings: tuple[str, ...],
    debug: bool,
    quiet: bool,
    **cluster: Any,
) -> int:
    from kafkascope.analyzer.pipeline.places import listed, size_of
    from kafkascope.analyzer.spark.engine import Spark
    from kafkascope.analyzer.spark.progress import shown
    from kafkascope.analyzer.spark.session import session, spoken

    pairs = dict(_setting(text) for text in settings)
    size = sum(map(size_of, listed(inputs))) if inputs else 0
    shuffled = int(SHUFFLED * size)
    with session(shuffle_bytes=shuffled, settings=pairs, **cluster) as spark_session:
        try:
            with shown(spark_session, size, quiet=quiet):
                return run(Spark(spark_session, tasks))
        except Exception as error:
            told = None if debug else spoken(error)
            if told is None:
                raise
            raise told from None


def _tables(text: str, *, records: bool) -> set[str]:
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
    from kafkascope.analyzer.filter.bind import IN_TASKS, demand
    from kafkascope.analyzer.filter.language import bind

    why = "{} is not known yet while tables are made"
    demand(bind(text), text, IN_TASKS, why, "make tables of all, then kafkascope ls DIR -Y ...")
    return text.strip()


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise click.BadParameter(f'"{text}": write NAME=VALUE', param_hint="--conf")
    return name.strip(), value.strip()


def _finish(plan: _Plan, result: Result) -> int:
    """Print what was written and what is damaged; return the exit code."""
    for damage in result.damage:
        say(damage)
    if not plan.quiet:
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
            f"{files} file{'s' * (files != 1)} written to {plan.output} "
            f"(batch {manifest['batch_id']})"
        )
    return _code(result, plan.strict)


def _code(result: Result, strict: bool) -> int:
    return (1 if strict else PARTIAL) if result.damage else 0


def _bytes(text: str) -> int:
    from kafkascope.analyzer.filter.values import size

    with refusing(ValueError, option="--split-size", text=text):
        found = size(text)
    if found < 1:
        raise click.BadParameter("1B is the minimum", param_hint="--split-size")
    return int(found)


def _seconds(text: str) -> float:
    from kafkascope.analyzer.filter.values import duration

    with refusing(ValueError, option="--settle", text=text):
        return duration(text) / 1e9
