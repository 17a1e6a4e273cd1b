"""Schemas, and values that are decoded with them, are values: with redaction no word of either
leaves. Schemas come over HTTP and in a registry's own topic, words stand in names, docs, defaults
and values."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.model import Endpoint
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.analyzer.unique_words import START, Filler, leaks, leaks_of_capture, redacted_outputs
from tests.kit import run
from tests.kit.run import objects, output
from tests.kit.schemas import SAMPLES, capture
from tests.kit.wire import request, response

BROKER, REGISTRY = Endpoint("192.0.2.77", 9092), Endpoint("192.0.2.78", 8081)


def avro(filler: Filler, **defaults: Any) -> str:
    """A schema full of words."""
    field = {"name": filler.word(), "type": "string", "doc": filler.word(), **defaults}
    record = {"type": "record", "name": filler.word(), "doc": filler.word(), "fields": [field]}
    return orjson.dumps(record).decode()


def encoded(number: int, word: str) -> bytes:
    return struct.pack(">bi", 0, number) + bytes([2 * len(word)]) + word.encode()


def http(first: str, body: dict[str, Any]) -> bytes:
    data = orjson.dumps(body)
    kind = "application/vnd.schemaregistry.v1+json"
    head = f"{first}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def produced(topic: str, batches: list[list[Record]], codec: int) -> tuple[bytes, bytes]:
    """A Produce with a batch for each of the first partitions, and its answer."""
    records = [encode_batch(rows, codec=codec) for rows in batches]
    partitions = [{"index": index, "records": data} for index, data in enumerate(records)]
    answers = [{"index": index} for index in range(len(batches))]
    asked = [{"name": topic, "partition_data": partitions}]
    answer = response("Produce", 7, 1, responses=[{"name": topic, "partition_responses": answers}])
    return request("Produce", 7, 1, acks=-1, topic_data=asked), answer


@pytest.fixture(scope="module", params=[0, 4])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("schemas") / "qz999998k.pcapng", codec=request.param)


class Made:
    """A capture, and the words of its values."""

    def __init__(self, path: Path, *, codec: int) -> None:
        self.path, self.codec = path, codec
        filler = Filler()
        subject, topic = f"{filler.word()}-value", filler.word()
        over_http = avro(filler, default=filler.word())
        in_topic = avro(filler, default=filler.word())
        before = filler.count
        said = {"subject": subject, "version": 1, "id": 8, "schema": in_topic, "deleted": False}
        known = Record(
            0,
            1000,
            orjson.dumps({"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}),
            orjson.dumps(said),
            (),
        )
        in_header = struct.pack(">q", 7)
        word = filler.word()
        rows = [
            Record(0, 1000, encoded(7, filler.word()), encoded(8, filler.word()), ()),
            Record(
                1,
                1001,
                None,
                bytes([2 * len(word)]) + word.encode(),
                (("apicurio.value.globalId", in_header), ("other", filler.word().encode())),
            ),
        ]
        self.key = f"qz{before + 2:06}k".encode()
        self.values = [f"qz{n:06}k".encode() for n in (before + 1, before + 3, before + 4)]
        asked = http(f"POST /subjects/{subject}/versions HTTP/1.1", {"schema": over_http})
        talks = [
            (REGISTRY, asked, http("HTTP/1.1 200 OK", {"id": 7})),
            (BROKER, *produced("_schemas", [[known]], codec)),
            (BROKER, *produced(topic, [[each] for each in rows], codec)),
        ]
        time_ns = START
        with path.open("wb") as file:
            writer = PcapngWriter(file)
            writer.interface("")
            for number, (end, ask, answer) in enumerate(talks):
                composer = Composer(Endpoint("93.184.216.34", 40_000 + number), end)
                for packet in [*composer.open(), *composer.send(0, ask), *composer.send(1, answer)]:
                    time_ns += 1_000_000
                    writer.packet(packet, time_ns)


def test_the_capture_has_its_own_schemas_and_values(made: Made) -> None:
    lines = run.objects("records", made.path, "--json")
    decoded = [orjson.dumps(line.get("value_decoded")) for line in lines]
    assert leaks(b"".join(decoded))
    assert any(line.get("key_decoded") for line in lines)
    sources = {line["value_schema"]["source"] for line in lines if "value_schema" in line}
    assert sources == {"capture"}


def test_no_word_is_left_in_any_output(made: Made, tmp_path: Path) -> None:
    found = {name: leaks(data) for name, data in redacted_outputs(made.path, tmp_path)}
    assert not any(found.values())
    target = tmp_path / "cut.pcapng"
    assert leaks_of_capture(target) == []
    shown = run.output("show", target, "-Y", "api == Produce", "--all")
    shown += run.output("records", target, "--json")
    assert "records" in shown
    assert leaks(shown.encode()) == []


@pytest.mark.parametrize("level", ["values", "keys"])
def test_no_word_that_has_to_go_is_left_in_fixtures(made: Made, tmp_path: Path, level: str) -> None:
    folder, lines = tmp_path / "made", tmp_path / "made.jsonl"
    for target in (folder, lines):
        run.output("fixture", made.path, "--redact", level, "-o", target)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 2
    for path in (*files, lines):
        found = leaks(path.read_bytes())
        assert not set(made.values) & set(found)
        assert level == "values" or made.key not in found


def test_fixtures_that_are_not_redacted_have_the_words(made: Made, tmp_path: Path) -> None:
    target = tmp_path / "made.jsonl"
    run.output("fixture", made.path, "--redact", "none", "-o", target)
    found = set(leaks(target.read_bytes()))
    assert found
    # Only where they can be read without being decompressed.
    assert made.codec or {*made.values, made.key} <= found


# --- decoded keys and values ----------------------------------------------------------------------


NAMES = [
    *("avro-registry", "protobuf-json-schemas-topic"),
    *("apicurio-serdes", "avro-protobuf-apicurio-ccompat"),
]
LEAST = 5
"""Characters of a word that does not stand anywhere by chance."""


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


def words_of(path: Path, schemas: str) -> set[str]:
    """The texts of all decoded keys and values, with their encodings."""
    found: set[str] = set()
    for record in objects("records", path, "--schemas", schemas, "--json"):
        for side in ("key", "value"):
            if f"{side}_decoded" in record:
                found.update(texts(record[f"{side}_decoded"]))
                raw = record[side]
                found.add(raw if isinstance(raw, str) else raw["base64"])
    return {word for word in found if sum(map(str.isalnum, word)) >= LEAST}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_decoded_values_leaves(name: str, tmp_path: Path) -> None:
    path, schemas = capture(name), str(SAMPLES / "schemas" / name)
    words = words_of(path, schemas)
    plain = path.read_bytes()
    assert sum(word.encode() in plain for word in words) > 5
    outputs = dict(redacted_outputs(path, tmp_path))
    # Anybody may decode what is kept: with schemas that are given, and those of the capture.
    given = ["--schemas", schemas]
    cut, report = tmp_path / "cut.pcapng", tmp_path / "with-schemas.html"
    said = output("records", cut, *given, "--json", "-q")
    assert said
    assert '_decoded"' not in said
    every = output("ls", cut, "--columns", "no", "-q").split()
    shown = output("show", cut, *given, "--hex", "-q", *(n for n in every if n.isdecimal()))
    output("report", path, *given, "-o", report, "--redact", "all", "-q")
    for part in (said.encode(), shown.encode(), report.read_bytes(), *outputs.values()):
        assert not [word for word in words if word.encode() in part]
