"""Captures as DataFrames: `spark.read.format("kafkascope")`, in batches and as a stream."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kafkascope as ks
from kafkascope.analyzer.spark.package import write_zip
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.kit.samples import SAMPLES

ONE = SAMPLES / "kafka-python.pcap"
TWO = SAMPLES / "transactions.pcap"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in (ONE, TWO):
        shutil.copy(path, tmp_path / path.name)
    return tmp_path


def test_a_folder_is_read_file_by_file(spark: Any, folder: Path) -> None:
    rows = spark.read.format("kafkascope").load(str(folder))
    assert rows.rdd.getNumPartitions() == 2
    found = {row["exchange_id"]: row for row in rows.collect()}
    for path in (ONE, TWO):
        for exchange in ks.open(path):
            row = found.pop(exchange.id)
            assert (row["number"], row["api"], row["latency_ns"], row["topics"]) == (
                exchange.number,
                exchange.api,
                exchange.latency_ns,
                list(exchange.topics),
            )
    assert found == {}


def test_log_directories_are_read_segment_by_segment(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "orders-3"
    folder.mkdir(parents=True)
    for begin in (0, 4):
        rows = [Record(begin + i, 1_700_000_000_000, b"k", b"v%d" % i, ()) for i in range(4)]
        segment = encode_batch(rows, leader_epoch=0, codec=1)
        (folder / f"{begin:020d}.log").write_bytes(segment)
    read = spark.read.format("kafkascope")
    records = read.option("table", "records").load(str(tmp_path / "data"))
    assert records.rdd.getNumPartitions() == 2
    told = sorted((r["topic"], r["partition"], r["offset"], r["value"]) for r in records.collect())
    assert told == [("orders", 3, i, f'"v{i % 4}"') for i in range(8)]
    chosen = read.option("filter", "record.offset > 5 and topic == orders")
    assert chosen.load(str(folder)).count() == 2
    batches = spark.read.format("kafkascope").option("table", "record_batches").load(str(folder))
    assert sorted(row["base_offset"] for row in batches.collect()) == [0, 4]
    with pytest.raises(Exception, match="which have the tables records, record_batches"):
        spark.read.format("kafkascope").load(str(folder)).count()


def test_tables_columns_and_filters_are_options(spark: Any) -> None:
    read = spark.read.format("kafkascope")
    records = read.option("table", "records").option("columns", "topic,offset,value").load(str(ONE))
    assert records.columns == ["topic", "offset", "value"]
    told = sorted((row["topic"], row["offset"] or -1) for row in records.collect())
    listed = ks.open(ONE).records()
    assert told == sorted((each.topic, each.offset or -1) for each in listed)
    chosen = spark.read.format("kafkascope").option("filter", "api == Fetch").load(str(ONE))
    assert chosen.count() == sum(1 for _ in ks.open(ONE, filter="api == Fetch"))
    batches = spark.read.format("kafkascope").option("table", "record_batches").load(str(ONE))
    assert batches.count() > 0
    queried = spark.sql("select 1")  # the session is still of use
    assert queried.count() == 1


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("table", "exchangez", "unknown table 'exchangez'"),
        ("columns", "api,apy", "has no column 'apy'"),
        ("tabel", "records", "has no option 'tabel'"),
        ("full", "yes", "true or false"),
        ("filter", "apy == 1", "unknown field"),
        ("filter", "finding == unanswered", "not known to tasks"),
    ],
)
def test_what_makes_no_sense_is_said(spark: Any, option: str, value: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        spark.read.format("kafkascope").option(option, value).load(str(ONE)).count()


@contextmanager
def pushing(spark: Any) -> Iterator[None]:
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, "true")
    try:
        yield
    finally:
        spark.conf.unset(name)


CONDITIONS = (
    "api = 'Produce'",
    "api != 'Produce'",
    "api in ('Fetch', 'Metadata') and api_version > 3",
    "api not in ('Fetch', 'Metadata')",
    "acks is null",
    "acks is not null and acks >= 1",
    "acks != 1",
    "not (acks in (0, 1))",
    "acks not in (0, cast(null as int))",
    "acks <=> 1",
    "client_id like 'kafka%'",
    "not (client_id like '%python%')",
    "client_id like '%thon%' or api = 'Fetch'",
    "latency_ns between 1000 and 100000000",
)


def test_filters_that_are_pushed_down_leave_what_spark_would_leave(
    spark: Any, folder: Path
) -> None:
    def ids(condition: str, pushdown: str) -> set[str]:
        read = spark.read.format("kafkascope").option("pushdown", pushdown)
        return {row["exchange_id"] for row in read.load(str(folder)).filter(condition).collect()}

    every = spark.read.format("kafkascope").load(str(folder)).cache()
    with pushing(spark):
        for condition in CONDITIONS:
            wanted = {row["exchange_id"] for row in every.filter(condition).collect()}
            assert ids(condition, "true") == wanted, condition
    every.unpersist()


def test_a_stream_reads_each_file_once_when_it_is_whole(
    spark: Any, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("stream")
    for path in folder.iterdir():
        os.utime(path, (time.time() - 60, time.time() - 60))
    growing = folder / "growing.pcap"
    growing.write_bytes(ONE.read_bytes()[:2000])  # somebody still writes it

    def go_on() -> int:
        rows = spark.readStream.format("kafkascope").option("settle", "30").load(str(folder))
        query = (
            rows.writeStream.format("parquet")
            .option("path", str(place / "out"))
            .option("checkpointLocation", str(place / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(300)
        return int(spark.read.parquet(str(place / "out")).count())

    first = sum(1 for path in (ONE, TWO) for _ in ks.open(path))
    assert go_on() == first
    assert go_on() == first
    growing.write_bytes((SAMPLES / "librdkafka.pcap").read_bytes())
    os.utime(growing, (time.time() - 40, time.time() - 40))
    assert go_on() == first + sum(1 for _ in ks.open(growing))


def test_workers_find_it_in_the_zip_of_py_files(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "kafkascope-spark.zip")
    code = (
        f"import sys; sys.path.insert(0, {str(path)!r})\n"
        "from kafkascope.bridges.spark import source\n"
        "print(source.__file__, source.KafkascopeSource({'table': 'records'}).schema().names[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.startswith(str(path))


def test_damage_costs_what_is_damaged(spark: Any, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(ONE.read_bytes()[:-30])
    read = spark.read.format("kafkascope")
    assert read.load(str(cut)).count() == sum(1 for _ in ks.open(cut))
    (status,) = read.option("table", "captures").load(str(cut)).select("status").collect()
    assert status["status"] == "damaged"
