"""Kafka's own files in every form: the same records from `records`, `export`, and the tables of
Spark; numbers of `stats`; filters, and what they refuse."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkascope.analyzer.pipeline.tables.logs import chosen_by, log_rows, logs_in
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.kit.run import run

TIME = 1_700_000_000_000
CODECS = range(5)


def batch(offset: int, count: int = 3, **options: int) -> bytes:
    values = (b"text %d", b"\xff\xfe%d", b'{"n": %d}')
    rows = [
        Record(
            offset + i,
            TIME + offset + i,
            None if i == 1 else b"k%d" % (offset + i),
            values[i % 3] % (offset + i),
            (("h", b"\x80"), ("none", None)) if i == 2 else (),
        )
        for i in range(count)
    ]
    return encode_batch(rows, leader_epoch=0, **options)


def fill(folder: Path, first: int = 0) -> Path:
    """Two segments with a batch of each codec."""
    folder.mkdir(parents=True)
    for begin in (first, first + 15):
        parts = (batch(begin + 3 * codec, codec=codec) for codec in CODECS)
        (folder / f"{begin:020d}.log").write_bytes(b"".join(parts))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log directory of a broker."""
    folder = tmp_path / "data"
    fill(folder / "orders-0")
    fill(folder / "orders-1", 7)
    more = fill(folder / "a.b-2")
    segment = more / f"{15:020d}.log"
    segment.write_bytes(segment.read_bytes() + batch(30, 2, producer_id=5, base_sequence=8))
    (folder / "meta.properties").write_text("version=0\n")
    return folder


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def as_row(record: dict[str, Any]) -> dict[str, Any]:
    """A record/1 as it stands in the table `records`."""

    def text(value: Any) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    key = record["key"]
    names = ("schema", "exchange", "key_schema_id", "value_schema_id")
    rest = {name: value for name, value in record.items() if name not in names}
    return rest | {
        "exchange_id": None,
        "key": key if isinstance(key, str) else text(key),
        "value": text(record["value"]),
        "headers": text(record["headers"]),
        **{f"{side}_{what}": None for side in ("key", "value") for what in SCHEMA_COLUMNS},
    }


SCHEMA_COLUMNS = ("schema", "decoded", "error")


@pytest.mark.parametrize("part", ["", "orders-0", "a.b-2/00000000000000000015.log"])
def test_records_are_the_same_wherever_they_are_read(data: Path, tmp_path: Path, part: str) -> None:
    source = data / part
    records = objects(run("records", source, "--json", "-q").stdout)
    assert len(records) in (15 * 6 + 2, 30, 17)

    for form in ("jsonl", "csv", "parquet"):
        assert run("export", source, "-o", tmp_path / f"out.{form}", "-q").exit_code == 0
    assert objects((tmp_path / "out.jsonl").read_text()) == records

    with (tmp_path / "out.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert [(c["topic"], c["partition"], c["offset"], c["codec"]) for c in cells] == [
        (r["topic"], str(r["partition"]), str(r["offset"]), r["codec"]) for r in records
    ]

    rows = [as_row(each) for each in records]
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == rows

    done = run("spark", source, "-o", tmp_path / "tables", "-q")
    assert done.exit_code == 0, done.stderr
    written = pq.read_table(next((tmp_path / "tables" / "records").glob("batch_id=*")))
    assert written.to_pylist() == rows

    # What a task of Spark does with each segment.
    found = logs_in([str(source)])
    segments = sorted((str(path) for file in found for path in file.files), key=_turn(found))
    tasks = [b for s in segments for f in logs_in([s]) for _, b in log_rows(f, {"records"}, ALL)]
    assert pa.Table.from_batches(tasks).to_pylist() == rows


ALL = chosen_by("")


def _turn(found: list[Any]) -> Any:
    order = [str(path) for file in found for path in file.files]
    return order.index


def test_filters_choose_records_and_batches(data: Path, tmp_path: Path) -> None:
    text = "topic == orders and record.offset >= 20 and codec == gzip"
    records = objects(run("records", data, "--json", "-q", "-Y", text).stdout)
    assert {(r["topic"], r["codec"]) for r in records} == {("orders", "gzip")}
    assert 0 < len(records) < 12
    assert run("export", data, "-o", tmp_path / "o.jsonl", "-q", "-Y", text).exit_code == 0
    assert objects((tmp_path / "o.jsonl").read_text()) == records
    run("spark", data, "-o", tmp_path / "tables", "-q", "-Y", text)
    written = pq.read_table(next((tmp_path / "tables" / "records").glob("batch_id=*")))
    assert written.to_pylist() == [as_row(each) for each in records]
    batches = pq.read_table(next((tmp_path / "tables" / "record_batches").glob("batch_id=*")))
    assert set(batches.column("codec").to_pylist()) == {"gzip"}


@pytest.mark.parametrize(
    "words",
    [
        ("records", "-Y", "latency > 1s"),
        ("export", "-o", "OUT/x.jsonl", "-Y", "latency > 1s"),
        ("stats", "topics", "-Y", "latency > 1s"),
        ("spark", "-o", "OUT/tables", "-Y", "latency > 1s"),
    ],
)
def test_fields_of_exchanges_are_refused(
    data: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = run(*(word.replace("OUT", str(tmp_path)) for word in words), data)
    assert done.exit_code != 0
    assert "latency is a field of exchanges; Kafka's own files have none" in done.stderr + str(
        done.exception
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "-o", "OUT/x.jsonl", "--table", "exchanges"), "hold records, not exchanges"),
        (("export", "-o", "OUT/x.jsonl", "--full"), "hold records, not exchanges"),
        (("export", "-o", "OUT/x.jsonl", "--columns", "nonsense"), "no column"),
        (("spark", "-o", "OUT/t", "--follow"), "--follow is for captures"),
        (("spark", "-o", "OUT/t", "--tables", "frames"), "--tables is for captures"),
        (("spark", "-o", "OUT/t", "--engine", "spark"), "--engine spark is for captures"),
    ],
)
def test_what_only_captures_have_is_refused(
    data: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = run(*(word.replace("OUT", str(tmp_path)) for word in words), data)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize("command", ["ls", "show"])
def test_a_log_directory_is_named_where_one_partition_is_wanted(data: Path, command: str) -> None:
    done = run(command, data, *(["1"] if command == "show" else []))
    assert done.exit_code == 2
    said = " ".join(done.stderr.split())
    assert "is a broker's log directory: give one of its folders (a.b-2)" in said
    (data / "x.pcap.gz").write_bytes(b"")
    assert "log directory" not in run(command, data).stderr
    (data / "x.pcap.gz").unlink()


def test_columns_and_a_count_of_records(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    run("export", data, "-o", out, "-q", "--columns", "topic,offset", "-c", "4")
    assert objects(out.read_text()) == [{"topic": "a.b", "offset": i} for i in range(4)]
    table = tmp_path / "o.parquet"
    run("export", data, "-o", table, "-q", "--columns", "offset,exchange")
    assert pq.read_table(table).column_names == ["offset", "exchange"]


def test_stats_tell_topics_and_partitions(data: Path) -> None:
    topics = objects(run("stats", "topics", data, "--json", "-q").stdout)
    assert [(t["topic"], t["partitions"], t["records"], t["batches"]) for t in topics] == [
        ("orders", 2, 60, 20),
        ("a.b", 1, 32, 11),
    ]
    assert topics[0]["codecs"] == ["gzip", "lz4", "none", "snappy", "zstd"]
    assert topics[1]["producers"] == 1
    parts = objects(run("stats", "partitions", data, "--json", "-q").stdout)
    assert [(p["topic"], p["partition"], p["first_offset"], p["last_offset"]) for p in parts] == [
        ("orders", 0, 0, 29),
        ("orders", 1, 7, 36),
        ("a.b", 2, 0, 31),
    ]
    assert sum(p["share"] for p in parts[:2]) == pytest.approx(1)
    one = objects(run("stats", "topics", data, "--json", "-q", "-Y", "topic == a.b").stdout)
    assert [t["topic"] for t in one] == ["a.b"]


def test_tables_are_added_to_and_told_apart(data: Path, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    assert run("spark", data / "orders-0", "-o", tables, "-q").exit_code == 0
    assert run("spark", data / "orders-1", "-o", tables, "-q").exit_code != 0
    done = run("spark", data / "orders-1", "-o", tables, "--append")
    assert done.exit_code == 0, done.stderr
    assert "30 records in 10 batches of 2 segments" in done.stderr
    found = [pq.read_table(path) for path in (tables / "records").glob("batch_id=*")]
    assert sum(each.num_rows for each in found) == 60


def test_damage_is_told_with_its_partition_and_ends_nothing(data: Path, tmp_path: Path) -> None:
    rng = random.Random(3)
    for path in sorted(data.rglob("*.log")):
        content = bytearray(path.read_bytes())
        for _ in range(20):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(bytes(content))
    for words in (
        ("records", "--json"),
        ("export", "-o", tmp_path / "o.csv"),
        ("export", "-o", tmp_path / "o.parquet"),
        ("stats", "topics"),
        ("spark", "-o", tmp_path / "tables"),
    ):
        done = run(*words, data)
        assert done.exit_code == 4, (words, done.exception, done.stderr[-500:])
        assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "orders-0/00000000000000000000.log" in run("records", data).stderr
