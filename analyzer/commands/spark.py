"""`kafkascope spark`: captures of any size to Parquet tables."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.help import command, complete_files, refusing, setting
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
from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.analyzer.terminal import say
from kafkascope.extras import require
from kafkascope.times import zone_named

if TYPE_CHECKING:
    from kafkascope.analyzer.pipeline.runner import Used

LEAN_POOL: Final = "jemalloc" if sys.platform == "linux" else "system"
"""Arrow's allocator that returns most memory: the peak is a tenth to a fifth lower."""


def _split_bytes(ctx: click.Context, parameter: click.Parameter, text: str) -> int:
    from kafkascope.analyzer.filter.values import size

    with refusing(ValueError, option="--split-size", text=text):
        found = size(text)
    if found < 1:
        raise click.BadParameter("1B is the minimum", param_hint="--split-size")
    return int(found)


_input_option, _tables_option, _spark_option, _follow_option = (
    functools.partial(setting, section=name) for name in ("Input", "Tables", "Spark", "Follow")
)


@command()
@click.argument(
    "inputs", metavar="INPUT...", nargs=-1, required=True, shell_complete=complete_files
)
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
@_spark_option(
    "--split-size", "SIZE", "Bytes that one task reads", default="64MB", callback=_split_bytes
)
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
    split_size: int,
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

    INPUT is a file, a folder, a glob, or a URI (s3://, gs://, hdfs://) of captures or of request
    logs. Log segments, partition folders, and log directories of a broker give tables of records
    and batches. Spark, DuckDB, and pandas read the tables; `kafkascope stats`, `clients`, and
    `groups` take DIR as INPUT.

    \b
      kafkascope spark /captures/*.pcap.gz -o tables
      kafkascope spark s3://traces/2026-11-21 -o tables --engine spark
      kafkascope spark /captures -o orders -Y 'topic == orders'
      kafkascope latency tables --by api,client
      duckdb -c "select count(*) from 'tables/exchanges/*/*.parquet'"
    """
    require("kafkascope spark")
    # Arrow reads this when it is loaded. Its default keeps the peak memory of each of many steps.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", LEAN_POOL)
    large_apart()
    from kafkascope.analyzer.pipeline.follow import ClosedRule
    from kafkascope.analyzer.pipeline.places import absolute
    from kafkascope.analyzer.pipeline.tables.collect import TableOptions
    from kafkascope.analyzer.spark.conversion import Conversion, bound_in_tasks, on_spark

    text, clusters = spelled(filter_text), spark_options["remote"] or spark_options["master"]
    how: dict[str, Any] = {"keylog": key_logs(keylog), "schemas": schemas}
    how |= {"used": used or "refuse", "strict": strict, "quiet": quiet}
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
        options = TableOptions(records=True, filter=text.strip())
        return Conversion(inputs, output, options, **how).of_logs(files, text)
    ports = tuple(sorted({port for each in decode_as for port in ports_of(each)}))
    wanted = _tables(more, records=records)
    options = TableOptions(
        ports,
        legs == "both",
        full,
        records="records" in wanted,
        frames="frames" in wanted,
        segments="segments" in wanted,
        filter=bound_in_tasks(text),
        zone=zone,
    )
    if zone:
        with refusing(ValueError, option="--time-zone"):
            zone_named(zone)
    if used is not None and follow:
        raise click.UsageError("--follow always appends: leave out --append and --replace")
    if clusters:
        engine = "spark" if engine == "auto" else engine
        # Workers may have another current folder.
        inputs = tuple(map(absolute, inputs))
    once = available_now or last_file_complete
    if once and not follow:
        raise click.UsageError("--available-now and --last-file-complete need --follow")
    rule = ClosedRule(_seconds(settle), last_file_complete) if follow else None
    how |= {"split_bytes": split_size, "rule": rule, "once": once}
    conversion = Conversion(inputs, output, options, **how)
    conversion.check()
    if engine == "auto":
        from kafkascope.analyzer.spark.worth import engine_for

        engine, why = "plain", "batches of closed files are small"
        if not follow:
            engine, why = engine_for(inputs, ports)
        if not quiet:
            say(f"engine {engine}: {why}")
    if engine == "plain":
        spare_pandas()
        return conversion.run()
    spark_options["settings"] = dict(map(_setting, spark_options["settings"]))
    return on_spark(conversion, **spark_options)


def _tables(text: str, *, records: bool) -> set[str]:
    from kafkascope.analyzer.pipeline.tables.schemas import ON_REQUEST

    names = {each.strip() for each in text.split(",") if each.strip()}
    if unknown := names - set(ON_REQUEST):
        raise click.BadParameter(
            f'"{min(unknown)}": choose from {", ".join(sorted(ON_REQUEST))}', param_hint="--tables"
        )
    return names | ({"records"} if records else set())


def _seconds(text: str) -> float:
    from kafkascope.analyzer.filter.values import duration

    with refusing(ValueError, option="--settle", text=text):
        return duration(text) / 1e9


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise click.BadParameter(f'"{text}": write NAME=VALUE', param_hint="--conf")
    return name.strip(), value.strip()
