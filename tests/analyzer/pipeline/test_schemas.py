"""Tables have the keys and values that `records` decodes, by either engine."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.seen_schemas import seen_in
from kafkascope.analyzer.pipeline.job import job_of
from kafkascope.analyzer.pipeline.tables.collect import TableOptions
from kafkascope.captures.build import Composer
from kafkascope.schemas.known import Assigned, KnownSchemas
from kafkascope.schemas.model import Schema, SchemaKey
from tests.analyzer.pipeline.decoded import records, run, table
from tests.analyzer.pipeline.kit import Apart, rows_of
from tests.kit import wire
from tests.kit.batches import batch
from tests.kit.captures import START_NS, A, B, Tape
from tests.kit.schemas import SAMPLES, capture, folder
from tests.kit.traffic import TOPIC_ID
from tests.matrix import pairs

TEXT = '{"type": "record", "name": "Order", "fields": [{"name": "n", "type": "long"}]}'
ENGINES = [None, Apart()]


def way(value: Any) -> str:
    """Return how the id of a test names an engine, or another parameter."""
    if isinstance(value, str):
        return value
    return "plain" if value is None else "apart"


def composed(path: Path, frames: Iterable[tuple[int, bytes]]) -> Path:
    """A capture of one connection."""
    tape, composer = Tape(), Composer(A, B)
    packets = composer.open()
    for direction, data in frames:
        packets += composer.send(direction, data)
    tape.frames = [(START_NS + 1_000_000 * at, each) for at, each in enumerate(packets)]
    path.write_bytes(tape.pcap())
    return path


def by_id(folder_: Path, *, named: bool = True) -> Path:
    """Two records of a topic that requests name by its id; its name comes at the end."""
    data = batch([(None, b"\0\0\0\0\1\x02"), (None, b"\x04")])
    topics = [{"topic_id": TOPIC_ID, "partition_data": [{"index": 0, "records": data}]}]
    frames = [
        (0, wire.request("Produce", 13, 1, acks=-1, topic_data=topics)),
        (1, wire.response("Produce", 13, 1, responses=[])),
        (0, wire.request("Metadata", 12, 2)),
    ]
    topic = [{"name": "orders", "topic_id": TOPIC_ID}] if named else []
    frames.append((1, wire.response("Metadata", 12, 2, topics=topic)))
    return composed(folder_ / "by-id.pcap", frames)


@pytest.mark.parametrize(
    ("name", "engine"),
    pairs(sorted(path.name for path in (SAMPLES / "schemas").iterdir()), ENGINES),
    ids=way,
)
def test_schemas_of_a_folder(name: str, engine: Any, tmp_path: Path) -> None:
    path = capture(name)
    run(path, tmp_path / "out", KnownSchemas(folder(name)), engine)
    found = table(tmp_path / "out")
    assert found == records(path, KnownSchemas(folder(name)))
    assert any(row[5] or row[8] for row in found)


@pytest.mark.parametrize(
    ("name", "engine"), pairs(["apicurio-serdes", "protobuf-json-schemas-topic"], ENGINES), ids=way
)
def test_schemas_of_the_capture_itself(name: str, engine: Any, tmp_path: Path) -> None:
    path = capture(name)

    def known() -> KnownSchemas:
        return KnownSchemas(complete=lambda: seen_in([path]).schemas())

    run(path, tmp_path / "out", known(), engine)
    found = table(tmp_path / "out")
    assert found == records(path, known())
    assert any(row[8] for row in found)


def test_a_registry_is_asked_once_for_each_id_and_by_the_driver_only(tmp_path: Path) -> None:
    path, schemas = capture("bad-schemas"), folder("bad-schemas")
    asked = []

    def registry(key: SchemaKey) -> Schema | None:
        asked.append(key)
        return next((each for each in schemas if key in each.keys), None)

    run(path, tmp_path / "out", KnownSchemas(registry=registry), Apart())
    assert SchemaKey("id", 100_002) in asked
    assert len(asked) == len(set(asked))
    assert any(row[8] for row in table(tmp_path / "out"))


@pytest.mark.parametrize("engine", ENGINES, ids=way)
def test_a_late_name_decides_between_subjects(engine: Any, tmp_path: Path) -> None:
    subjects = (("other-value", 1), ("orders-value", 1))
    known = KnownSchemas([Schema("avro", TEXT, (SchemaKey("id", 1),), subjects)])
    run(by_id(tmp_path), tmp_path / "out", known, engine)
    found = [row for row in table(tmp_path / "out") if row[7]]
    assert [(row[1], row[7]["subject"]) for row in found] == [("orders", "orders-value")]
    run(by_id(tmp_path, named=False), tmp_path / "nameless", known, engine)
    found = [row for row in table(tmp_path / "nameless") if row[7]]
    assert [row[7]["subject"] for row in found] == ["other-value"]


@pytest.mark.parametrize("engine", ENGINES, ids=way)
def test_a_schema_of_a_topic_whose_name_comes_late(engine: Any, tmp_path: Path) -> None:
    assigned: Any = {("orders", "value"): Assigned(Schema("avro", TEXT, origin="/a/b.avsc"))}
    run(by_id(tmp_path), tmp_path / "out", KnownSchemas(assigned=assigned), engine)
    assert {"n": 2} in [row[8] for row in table(tmp_path / "out")]


def test_without_schemas_nothing_is_decoded(tmp_path: Path) -> None:
    run(capture("avro-registry"), tmp_path / "out", None)
    assert not any(any(row[4:]) for row in table(tmp_path / "out"))


def test_schemas_change_a_batch_and_carry_no_path(tmp_path: Path) -> None:
    path = capture("bad-schemas")
    ids = set()
    for place in ("/one/17.avsc", "/two/17.avsc"):
        known = KnownSchemas([Schema("avro", TEXT, (SchemaKey("id", 17),), origin=place)])
        job = job_of([str(path)], TableOptions(records=True), schemas=known)
        ids.add(repr(job.identity()))
    assert len(ids) == 1
    assert repr(job_of([str(path)], TableOptions(records=True)).identity()) not in ids


def test_findings_of_tables_know_schemas(tmp_path: Path) -> None:
    path, known = capture("bad-schemas"), KnownSchemas(folder("bad-schemas"))
    run(path, tmp_path / "plain", known)
    run(path, tmp_path / "apart", known, Apart())
    states = [
        [
            row["state"]
            for row in rows_of(tmp_path / way, "statistics")
            if row["statistic"] == "findings"
        ]
        for way in ("plain", "apart")
    ]
    assert states[0] == states[1]
    assert '"misfit"' in states[0][0]
