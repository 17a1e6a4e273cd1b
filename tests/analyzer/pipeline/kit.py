"""Running the pipeline in tests: both ways without Spark, and tables as values that compare."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of, to_json
from kafkascope.analyzer.exchanges.stages import COLUMNS
from kafkascope.analyzer.pipeline import plain, runner
from kafkascope.analyzer.pipeline.follow import ClosedRule, catch_up
from kafkascope.analyzer.pipeline.job import Engine, Job, Parts
from kafkascope.analyzer.pipeline.runner import Result
from kafkascope.analyzer.pipeline.tables.collect import TableOptions
from kafkascope.analyzer.pipeline.tables.facts import TableFacts
from kafkascope.analyzer.pipeline.tables.schemas import TABLES
from kafkascope.captures.inputs.keylogs import read_key_logs
from kafkascope.captures.limits import LIMITS, CaptureLimits
from kafkascope.captures.tls.keys.keylog import KeyLog
from tests.kit.captures import Tape
from tests.kit.traffic import tape

SPLIT_TABLES = {"splits"}
"""Tables that tell how the input was cut."""


class Apart(Engine):
    """The shuffled way in one process: parts, tasks by shard, sorted rows, and a file of each."""

    name = "apart"
    few = 0

    def __init__(self, tasks: int = 3, rows: int = 7) -> None:
        self.tasks, self.most = tasks, rows

    def rows(self, job: Job, earlier: TableFacts | None, folder: Path) -> Parts:
        return plain.shard_rows(job, earlier, folder, self.tasks, self.most)


def tables(out: Path) -> dict[str, list[Any]]:
    """All rows of all tables but `splits`, sorted."""
    found = {}
    for name, table in TABLES.items():
        if name in SPLIT_TABLES:
            continue
        rows = []
        for path in sorted((out / name).glob("*/*.parquet")):
            read = pq.ParquetFile(path).read()
            assert read.schema.equals(table.schema), (name, read.schema)
            rows += read.to_pylist()
        found[name] = sorted(map(repr, rows))
    return found


def made(
    inputs: list[str],
    out: Path,
    engine: Any = None,
    size: int = 64 << 20,
    keys: KeyLog | None = None,
    limits: CaptureLimits = LIMITS,
    **options: Any,
) -> tuple[dict[str, list[Any]], runner.Result]:
    result = runner.run(
        inputs,
        out,
        TableOptions(**options),
        engine=engine or runner.PLAIN,
        split_bytes=size,
        keys=keys,
        limits=limits,
        used="replace",
    )
    return tables(out), result


def made_alike(
    inputs: list[str],
    folder: Path,
    tasks: int = 3,
    *,
    keylog: Iterable[Path] = (),
    export: bool = True,
    **options: Any,
) -> dict[str, list[Any]]:
    """All rows of `folder/plain`, which the shuffled way in `folder/apart` makes as well, and which
    are those of an export."""
    options["keys"] = read_key_logs(list(keylog))
    expected, _ = made(inputs, folder / "plain", **options)
    if export:
        check_against_export(folder / "plain", inputs, keylog, options.get("decode_as", ()))
    found, _ = made(inputs, folder / "apart", Apart(tasks), **options)
    assert found == expected
    return expected


def rows_of(out: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table in the order of its files."""
    paths = sorted((out / table).glob("*/*.parquet"))
    return [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


def exchanges(out: Path) -> list[dict[str, Any]]:
    return rows_of(out, "exchanges")


def exported(
    inputs: list[str], keylog: Iterable[Path] = (), decode_as: Iterable[int] = ()
) -> dict[str, dict[str, Any]]:
    """exchange/1 objects as `kafkascope export` has them at its end, by id."""
    with open_capture(inputs, keylog=keylog, decode_as=decode_as) as capture:
        told = sorted(capture.exchanges(), key=lambda each: each.origin)
        names = capture.context.names
        rows = [to_json(row_of(exchange, names)) for exchange in told]
    for number, row in enumerate(rows, 1):
        row["number"] = number
    assert len({row["exchange_id"] for row in rows}) == len(rows)
    return {row["exchange_id"]: row for row in rows}


SAME = (
    "number connection client_address broker_address client_id software user api_key api"
    " api_version correlation_id request_bytes response_bytes latency_ns server_ns throttle_ms"
    " state reason topics implied_topics topic_ids partitions groups members generations"
    " producer_ids producer_epochs transactional_ids acks codecs records batches offset frames"
)
"""Columns that tables and JSON have alike."""


STAGES = {
    name: "server_ms" if name == "serving_ns" else name.replace("_ns", "_ms") for name in COLUMNS
}
"""Columns of stages in tables, and in JSON."""


def as_told(value: Any) -> Any:
    """As tables have it: lists, and bytes that are no UTF-8 as escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [as_told(each) for each in value] if isinstance(value, tuple | list) else value


def check_against_export(
    out: Path, inputs: list[str], keylog: Iterable[Path] = (), decode_as: Iterable[int] = ()
) -> None:
    rows = {row["exchange_id"]: row for row in exchanges(out)}
    expected = exported(inputs, keylog, decode_as)
    assert rows.keys() == expected.keys()
    for key, row in rows.items():
        other = expected[key]
        for name in SAME.split():
            mine, theirs = row[name], as_told(other[name])
            assert mine == theirs, (key, name, mine, theirs)
        for name, told in STAGES.items():
            mine = row[name] / 1e6 if name != told and row[name] is not None else row[name]
            assert mine == other[told], (key, name, mine, other[told])
        assert [e["code"] for e in row["errors"]] == [e["code"] for e in other["errors"]]
        topics = [as_told(e.get("topic")) for e in other["errors"]]
        assert [e["topic"] for e in row["errors"]] == topics
        assert [u["reason"] for u in row["undecoded"]] == [u["reason"] for u in other["undecoded"]]
        assert [n["text"] for n in row["notes"]] == [n["text"] for n in other["notes"]]


MORE = {"frames": True, "segments": True}
ALL = {"full": True, "records": True, **MORE}


PORTS = (443, 19092)
"""Where a beginning is missing, only its own bytes tell a task what a connection speaks."""


NOW = ClosedRule(settle_s=0)
LAST = ClosedRule(last=True)


def in_files(
    frames: list[tuple[int, bytes]], folder: Path, random: Random, counts: list[int]
) -> list[Path]:
    """Packets in files of some packets each."""
    paths = []
    while frames:
        part, count = Tape(), random.choice(counts)
        part.frames, frames = frames[:count], frames[count:]
        path = folder / f"{len(paths):04}.pcap"
        path.write_bytes(part.pcap())
        paths.append(path)
    return paths


def rotated(seed: int, folder: Path) -> list[Path]:
    return in_files(tape(seed).frames, folder, Random(seed), [1, 3, 10, 40])


def caught(inputs: Path, out: Path, rule: ClosedRule, **how: Any) -> list[Result]:
    return list(catch_up([str(inputs)], out, TableOptions(), rule, **how))


def in_batches(
    paths: Iterable[Path], spool: Path, out: Path, sizes: Callable[[], int], **how: Any
) -> Iterator[Result]:
    """Let batches of so many files follow each other, each read by a process of its own."""
    spool.mkdir()
    left = list(paths)
    while left:
        for path in left[: (size := sizes())]:
            shutil.copy(path, spool)
        left = left[size:]
        yield from caught(spool, out, NOW, **how)
    yield from caught(spool, out, LAST, **how)


def without(rows: list[dict[str, Any]], *names: str) -> list[Any]:
    return sorted(repr({k: v for k, v in row.items() if k not in names}) for row in rows)


def commands(*texts: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(text.split()) for text in texts)


COMMANDS = commands(
    *("stats apis", "stats latency --by api,client", "stats errors", "stats topics"),
    *("stats partitions", "stats connections", "stats sizes", "stats rates", "clients"),
    *("clients --for 4.0", "groups", "groups --rebalances", "cluster", "producers --transactions"),
    *("map", "stats journeys", "groups --delivery", "check --fail-on never"),
)
