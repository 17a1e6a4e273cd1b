"""The last step on Spark: ranks, names and sums, written to the tables' folders."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafkascope.analyzer.pipeline.finish import SUMS, fixed_tables, statistics_rows
from kafkascope.analyzer.pipeline.plain import Parts, Writers, with_ranks
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.naming import named
from kafkascope.analyzer.pipeline.tables.numbers import (
    CONNECTION,
    exchange_place,
    numbered,
    places_in,
    turn,
)
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
    from kafkascope.analyzer.pipeline.moments import Order
    from kafkascope.analyzer.pipeline.tables.facts import Facts

RANKS: Final = pa.schema([("place", pa.int64()), ("rank", pa.int64())])
FILE_BYTES: Final = 64 << 20
"""Bytes of captures per file of a table."""


def finish(session: Any, job: Job, facts: Facts, raw: Parts, made: Path, tasks: int) -> None:
    """Write all tables to `made`."""
    topics = dict(facts.topics)
    files = max(1, min(tasks, job.size // FILE_BYTES))
    ranks = _connections(session, job, raw)
    writers = Writers(made)
    every = read(session, raw, EXCHANGES).select(*(each.name for each in UNWANTED.columns))
    if job.options.filter:
        every = every.union(read(session, raw, UNWANTED))
    order = _Order(job, facts.order, every, tasks)
    for table in COLLECTED.values():
        if not job.options.makes(table.name):
            continue
        if not facts.rows[table.name]:
            writers.write(table.name, table.schema.empty_table())
            continue
        rows = read(session, raw, table)
        if table is EXCHANGES:
            rows = _numbered(rows, ranks, table)
            if job.options.filter:
                others = read(session, raw, UNWANTED)
                rows = rows.unionByName(others, allowMissingColumns=True)
            rows = order.ranked(rows)
            if job.options.filter:
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
    for junk in (*made.glob("*/.*.crc"), *made.glob("*/_SUCCESS"), *made.glob("*/._SUCCESS.crc")):
        junk.unlink(missing_ok=True)
    if job.keep is not None:
        _carry(session, job, raw, ranks, writers)
    known = _places(session, facts, ranks, order)

    def rank(place: int) -> int:
        return known.get(place, place)

    for name, small in fixed_tables(job, facts, rank):
        writers.write(name, small)
    for batch in statistics_rows(facts, rank):
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


def _numbered(rows: Any, ranks: Any, table: Table) -> Any:
    """Return rows with places of connections replaced by ranks."""
    joined = rows.join(ranks, "connection", "left")
    names = [each.name for each in table.columns]
    return joined.withColumn("connection", joined["rank"]).select(*names)


class _Order:
    """Ranks of exchanges: each range of turns is numbered from where the previous one ends. The
    bounds do not affect the ranks."""

    def __init__(self, job: Job, late: Order, every: Any, tasks: int) -> None:
        """`every`: turns and places of all exchanges."""
        self._late, self._every, self._tasks = late, every, tasks
        step = max(1, job.packets // tasks)
        last = job.first_packet + job.packets
        self._bounds = [turn(at, 0) for at in range(job.first_packet + step, last, step)]
        spread = self._spread(every)
        counts = {row["bucket"]: row["count"] for row in spread.groupBy("bucket").count().collect()}
        self._starts: dict[int, int] = {}
        total = job.before.exchanges
        for number in range(len(self._bounds) + 1):
            self._starts[number] = total
            total += counts.get(number, 0)

    def _spread(self, rows: Any) -> Any:
        """Return rows with turns that are in order, and with the number of their range."""
        from pyspark.sql import functions as F

        if self._late:
            rows = rows.mapInArrow(_mover(self._late), rows.schema)
        bucket = F.lit(0)
        if self._bounds:
            edges = F.array(*(F.lit(bound) for bound in self._bounds))
            bucket = F.aggregate(
                edges,
                F.lit(0),
                lambda count, edge: count + (F.col("number") >= edge).cast("int"),
            )
        return rows.withColumn("bucket", bucket)

    def _sorted(self, rows: Any) -> Any:
        spread = self._spread(rows).repartition(self._tasks, "bucket")
        return spread.sortWithinPartitions("bucket", "number")

    def ranked(self, rows: Any) -> Any:
        """Return all exchanges with ranks for turns."""
        schema = EXCHANGES.schema
        work = _numberer(self._starts, schema)
        return self._sorted(rows).mapInArrow(work, spark_schema(schema))

    def of(self, wanted: set[int]) -> dict[int, int]:
        """Return the ranks of exchanges at some places."""
        work = _finder(self._starts, frozenset(wanted))
        found = self._sorted(self._every).mapInArrow(work, "place bigint, rank bigint")
        return {row["place"]: row["rank"] for row in found.collect()}


def _mover(order: Order) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        for batch in batches:
            index = batch.schema.get_field_index("number")
            yield numbered(batch, pa.array(order.of_all(batch.column(index).to_numpy())))

    return work


def _ranks(batch: pa.RecordBatch, following: dict[int, int]) -> list[int]:
    """Return the ranks of a batch's rows; `following` has the last ones by range."""
    numbers = []
    for bucket in batch.column(batch.schema.get_field_index("bucket")).to_pylist():
        following[bucket] += 1
        numbers.append(following[bucket])
    return numbers


def _numberer(starts: dict[int, int], schema: pa.Schema) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        following = dict(starts)
        for batch in batches:
            numbers = pa.array(_ranks(batch, following), pa.int64())
            yield numbered(batch.select(schema.names), numbers)

    return work


def _finder(starts: dict[int, int], wanted: frozenset[int]) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        following = dict(starts)
        for batch in batches:
            where = (batch.column(at).to_pylist() for at in (1, 2))
            places = itertools.starmap(exchange_place, zip(*where, strict=True))
            pairs = zip(places, _ranks(batch, following), strict=True)
            yield record_batch([pair for pair in pairs if pair[0] in wanted], RANKS)

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


def _places(session: Any, facts: Facts, ranks: Any, order: _Order) -> dict[int, int]:
    """Return the ranks of the places in the states of statistics."""
    from pyspark.sql import functions as F

    wanted = {place for each in facts.statistics.values() for place in places_in(each.dump())}
    found: dict[int, int] = {}
    connections = sorted(place for place in wanted if place >= CONNECTION)
    if connections:
        asked = session.createDataFrame([(place,) for place in connections], "connection bigint")
        for row in ranks.join(F.broadcast(asked), "connection").collect():
            found[row["connection"]] = row["rank"]
    mine = {place for place in wanted if place < CONNECTION}
    return found | order.of(mine) if mine else found
