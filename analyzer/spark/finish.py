"""The last step on Spark: ranks, names and sums, written to the tables' folders."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafkascope.analyzer.pipeline.finish import SUMS, fixed_tables, statistics_rows
from kafkascope.analyzer.pipeline.plain import Parts, Writers, with_ranks
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.naming import named
from kafkascope.analyzer.pipeline.tables.numbers import CONNECTION, EXCHANGE, OFFSET_BITS, places_in
from kafkascope.analyzer.pipeline.tables.schemas import (
    CARRY,
    COLLECTED,
    CONNECTIONS,
    EXCHANGES,
    LATENCY,
    SEGMENTS,
    UNWANTED,
    Table,
)
from kafkascope.analyzer.spark.stages import Batches, read, segment_table, spark_schema
from kafkascope.analyzer.topics import TopicNames

if TYPE_CHECKING:
    from pathlib import Path

    from kafkascope.analyzer.pipeline.job import Job
    from kafkascope.analyzer.pipeline.tables.facts import Facts

FILE_BYTES: Final = 64 << 20
"""Bytes of captures per file of a table."""


def finish(session: Any, job: Job, facts: Facts, raw: Parts, made: Path, tasks: int) -> None:
    """Write all tables to `made`."""
    topics = dict(facts.topics)
    files = max(1, min(tasks, job.size // FILE_BYTES))
    ranks = _connections(session, job, raw)
    writers = Writers(made)
    every: Any = None
    """All exchanges with their numbers, where a filter leaves some out of the table."""
    for table in COLLECTED.values():
        if not facts.rows[table.name]:
            writers.write(table.name, table.schema.empty_table())
            continue
        rows = read(session, raw, table)
        if table is EXCHANGES:
            bounds = _bounds(job, tasks)
            rows = _numbered(rows, ranks, table)
            if job.options.filter:
                others = _placed(read(session, raw, UNWANTED))
                rows = rows.unionByName(others, allowMissingColumns=True)
            rows = _ranked(rows, bounds, tasks, job.before.exchanges)
            if job.options.filter:
                every = rows
                rows = rows.where("exchange_id is not null")
        elif table is CONNECTIONS:
            rows = _numbered(rows, ranks, table)
        rows = rows.mapInArrow(_namer(topics, table.schema), spark_schema(table.schema))
        if table is LATENCY:
            rows = _summed(rows)
        rows.coalesce(files).write.mode("overwrite").parquet((made / table.name).resolve().as_uri())
    if job.options.segments:
        found = segment_table(session, job)
        found.coalesce(files).write.mode("overwrite").parquet(
            (made / SEGMENTS.name).resolve().as_uri()
        )
    else:
        writers.write(SEGMENTS.name, SEGMENTS.schema.empty_table())
    for junk in (*made.glob("*/.*.crc"), *made.glob("*/_SUCCESS"), *made.glob("*/._SUCCESS.crc")):
        junk.unlink(missing_ok=True)
    if job.keep is not None:
        _carry(session, job, raw, ranks, writers)
    if every is None:
        every = read_made(session, made, EXCHANGES)
    places = _places(session, facts, ranks, every)
    for name, small in fixed_tables(job, facts).items():
        writers.write(name, small)
    for batch in statistics_rows(facts, lambda place: places.get(place, place)):
        writers.write("statistics", batch)
    writers.close()


def _connections(session: Any, job: Job, raw: Parts) -> Any:
    """Return the numbers of connections by place: those of this batch follow all earlier ones."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    found = read(session, raw, CONNECTIONS).select("connection")
    if job.keep is not None:
        left = read(session, raw, CARRY)
        found = found.union(left.select(F.explode("places").alias("connection"))).distinct()
    known = sorted(job.before.ranks.items())
    old = None
    if known:
        old = session.createDataFrame(known, "connection bigint, rank bigint")
        found = found.join(F.broadcast(old), "connection", "left_anti")
    order = Window.orderBy("connection")
    rank = (F.row_number().over(order) - 1 + job.before.connections).cast("bigint")
    ranks = found.select("connection", rank.alias("rank"))
    return ranks if old is None else ranks.union(old)


def _carry(session: Any, job: Job, raw: Parts, ranks: Any, writers: Writers) -> None:
    """Write the connections that continue in the next batch, with their numbers."""
    from pyspark.sql import functions as F

    left = read(session, raw, CARRY)
    places = left.select(F.explode("places").alias("connection")).distinct()
    known = {row["connection"]: row["rank"] for row in ranks.join(places, "connection").collect()}
    rows: list[tuple[Any, ...]] = [
        (row["flow_id"], row["places"], [], bytes(row["carried"])) for row in left.toLocalIterator()
    ]
    batch = record_batch(rows, CARRY.schema)
    writers.write(CARRY.name, with_ranks(batch, known.__getitem__))


def read_made(session: Any, made: Path, table: Table) -> Any:
    """Return a table that was written."""
    return session.read.schema(spark_schema(table.schema)).parquet(
        (made / table.name).resolve().as_uri()
    )


def _placed(rows: Any) -> Any:
    """Return exchanges that a filter left out with their places as the table of exchanges has
    them."""
    from pyspark.sql import functions as F

    place = F.col("number") - F.lit(EXCHANGE)
    return rows.withColumn("file_id", F.shiftright(place, OFFSET_BITS).cast("int")).withColumn(
        "record_offset", place.bitwiseAND(F.lit((1 << OFFSET_BITS) - 1))
    )


def _numbered(rows: Any, ranks: Any, table: Table) -> Any:
    """Return rows with places of connections replaced by ranks."""
    joined = rows.join(ranks, "connection", "left")
    names = [each.name for each in table.columns]
    return joined.withColumn("connection", joined["rank"]).select(*names)


def _bounds(job: Job, parts: int) -> list[int]:
    """Return times that divide the packets into about equal parts."""
    known = [
        (about.first_ns, about.last_ns, about.packets)
        for about in (file.index for file in job.files)
        if about.first_ns is not None and about.last_ns is not None
    ]
    if not known or parts < 2:
        return []
    times = np.concatenate([np.linspace(first, last, 32) for first, last, _ in known])
    weights = np.concatenate([np.full(32, packets) for *_, packets in known])
    order = np.argsort(times)
    summed = np.cumsum(weights[order])
    at = np.searchsorted(summed, summed[-1] * np.arange(1, parts) / parts)
    return sorted({int(times[order][index]) for index in at})


def _ranked(rows: Any, bounds: list[int], tasks: int, before: int) -> Any:
    """Return rows with ranks of exchanges: each range of time is numbered from where the previous
    one ends. The bounds do not affect the ranks."""
    from pyspark.sql import functions as F

    bucket = F.lit(0)
    if bounds:
        edges = F.array(*(F.lit(bound) for bound in bounds))
        bucket = F.aggregate(
            edges,
            F.lit(0),
            lambda count, edge: count + (F.col("time_ns") >= edge).cast("int"),
        )
    spread = rows.withColumn("bucket", bucket)
    counts = {row["bucket"]: row["count"] for row in spread.groupBy("bucket").count().collect()}
    starts: dict[int, int] = {}
    total = before
    for number in range(len(bounds) + 1):
        starts[number] = total
        total += counts.get(number, 0)
    sorted_ = spread.repartition(tasks, "bucket").sortWithinPartitions(
        "bucket", "time_ns", "number"
    )
    schema = EXCHANGES.schema
    return sorted_.mapInArrow(_numberer(starts, schema), spark_schema(schema))


def _numberer(starts: dict[int, int], schema: pa.Schema) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        following = dict(starts)
        for batch in batches:
            numbers = []
            for bucket in batch.column(batch.schema.get_field_index("bucket")).to_pylist():
                following[bucket] += 1
                numbers.append(following[bucket])
            batch = batch.select(schema.names)
            yield batch.set_column(0, schema.field(0), pa.array(numbers, pa.int64()))

    return work


def _namer(topics: dict[bytes, str], schema: pa.Schema) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        names = TopicNames()
        for topic_id, name in sorted(topics.items()):
            names.learn(topic_id, name)
        for batch in batches:
            yield named(batch, names)

    return work


def _summed(rows: Any) -> Any:
    from pyspark.sql import functions as F

    keys = [each.name for each in LATENCY.columns if each.name not in SUMS]
    sums = [getattr(F, how)(name).alias(name) for name, how in SUMS.items()]
    return rows.groupBy(*keys).agg(*sums).select(*(each.name for each in LATENCY.columns))


def _places(session: Any, facts: Facts, ranks: Any, exchanges: Any) -> dict[int, int]:
    """Return the ranks of the places in the states of statistics."""
    from pyspark.sql import functions as F

    wanted = {place for each in facts.statistics.values() for place in places_in(each.dump())}
    found: dict[int, int] = {}
    connections = sorted(place for place in wanted if place >= CONNECTION)
    if connections:
        asked = session.createDataFrame([(place,) for place in connections], "connection bigint")
        for row in ranks.join(F.broadcast(asked), "connection").collect():
            found[row["connection"]] = row["rank"]
    mine = sorted(place - EXCHANGE for place in wanted if place < CONNECTION)
    if mine:
        places = [(each >> OFFSET_BITS, each & (1 << OFFSET_BITS) - 1) for each in mine]
        asked = session.createDataFrame(places, "file_id int, record_offset bigint")
        told = exchanges.join(F.broadcast(asked), ["file_id", "record_offset"])
        for row in told.select("file_id", "record_offset", "number").collect():
            place = EXCHANGE + (row["file_id"] << OFFSET_BITS) + row["record_offset"]
            found[place] = row["number"]
    return found
