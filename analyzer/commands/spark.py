"""`kafkascope spark`: captures of any size to Parquet tables."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Final

import click

from analyzer.commands.options import ports_of

if TYPE_CHECKING:
    from analyzer.pipeline.runner import Result

PARTIAL: Final = 4
AUTO_BYTES: Final = 400 << 20
"""From here on Spark wins on a machine with few cores; see benchmarks/spark.py."""


@click.command()
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="DIR", required=True, help="Folder of the tables.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "plain", "spark"]),
    default="auto",
    help="One process, or Spark; auto takes Spark for large inputs.",
)
@click.option("-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="As in ls.")
@click.option("--full", is_flag=True, help="With the bodies of requests and responses as JSON.")
@click.option("--records", is_flag=True, help="With a table of all records.")
@click.option("--legs", type=click.Choice(["client", "both"]), default="client", hidden=True)
@click.option("--split-size", metavar="SIZE", default="64MB", help="What one task reads.")
@click.option("--strict", is_flag=True, help="Damaged input is an error (exit code 1).")
@click.option("-q", "--quiet", is_flag=True, help="No remarks on stderr.")
def spark(
    inputs: tuple[str, ...],
    output: str,
    engine: str,
    decode_as: tuple[str, ...],
    full: bool,
    records: bool,
    legs: str,
    split_size: str,
    strict: bool,
    quiet: bool,
) -> int:
    """Turn captures into Parquet tables and states of statistics.

    INPUT is a file, a folder, a glob, or a URI (s3://, gs://, hdfs://). The tables in DIR are
    read by Spark, DuckDB, pandas...; `kafkascope stats`, `clients`, `groups` and the like take
    DIR in place of captures and never read these again.

    \b
      kafkascope spark /captures/*.pcap.gz -o tables
      kafkascope spark s3://traces/2026-11-21 -o tables --engine spark
      kafkascope stats latency tables --by api,client
      duckdb -c "select api, count(*) from 'tables/exchanges/*/*.parquet' group by 1"
    """
    from analyzer.pipeline.collect import Options

    ports = tuple(sorted({port for text in decode_as for port in ports_of(text)}))
    options = Options(ports, legs == "both", full, records)
    result = _run(inputs, output, options, engine, _bytes(split_size), quiet)
    return _told(result, output, strict, quiet)


def _run(
    inputs: tuple[str, ...], output: str, options: Any, engine: str, split: int, quiet: bool
) -> Result:
    from analyzer.pipeline import runner

    return runner.run(inputs, output, options, engine=runner.PLAIN, split_bytes=split)


def _told(result: Result, output: str, strict: bool, quiet: bool) -> int:
    for damage in result.damage:
        click.echo(f"kafkascope: {damage}", err=True)
    if not quiet:
        manifest = result.manifest
        click.echo(
            f"kafkascope: {manifest['exchanges']} exchanges of {manifest['packets']} packets in "
            f"{len(manifest['files'])} files written to {output} (batch {manifest['batch_id']})",
            err=True,
        )
    if result.damage:
        return 1 if strict else PARTIAL
    return 0


def _bytes(text: str) -> int:
    from analyzer.filter_values import size

    try:
        found = size(text)
    except ValueError as error:
        raise click.BadParameter(f'"{text}": {error}', param_hint="--split-size") from None
    if found < 1:
        raise click.BadParameter("a byte is the least", param_hint="--split-size")
    return int(found)


def has_spark() -> bool:
    """Whether PySpark is installed."""
    return importlib.util.find_spec("pyspark") is not None
