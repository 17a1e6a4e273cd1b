"""Our Avro against Apache's: both forms of a value, canonical forms, what readers can read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.payloads.avro.canonical import canonical, fingerprint
from kafkascope.analyzer.payloads.avro.changes import breaking_changes
from tests.analyzer.payloads.avro.schemas import cases, compiled, schemas
from tests.interop.maven import Artifact, jars
from tests.interop.maven import compiled as compiled_java

pytestmark = pytest.mark.interop

# 1.12.0 turns doubles of arrays into floats.
AVRO = (Artifact("org.apache.avro:avro:1.11.4"), Artifact("org.slf4j:slf4j-nop:2.0.13"))
MANY = settings(
    max_examples=500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


class Witness:
    """java/Avro.java: one child process that answers line by line."""

    def __init__(self) -> None:
        classes = compiled_java(jars("avro", AVRO), ["Avro"])
        self.process = subprocess.Popen(
            ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", classes.path, "Avro"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def ask(self, **question: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def witness(java: None) -> Iterator[Witness]:
    witness = Witness()
    yield witness
    witness.close()


@MANY
@given(case=cases())
def test_java_reads_what_we_write_and_we_what_it_writes(witness: Witness, case: Any) -> None:
    schema, value = case
    if any(word in str(value) for word in ("NaN", "Infinity")):
        return  # it writes these as text in JSON, and does not read them
    text = orjson.dumps(schema).decode()
    codec = compiled(schema).codec("avro")
    form = compiled(schema).json_codec()
    data, spelled = codec.encode(value), form.encode(value)
    answer = witness.ask(schema=text, hex=data.hex(), json=spelled.decode())
    assert answer["ok"], answer
    assert answer["left"] == 0
    if '"fields":[]' not in text:  # their braces are not always there
        assert form.decode(answer["json"].encode()) == value
    assert codec.decode(bytes.fromhex(answer["hex"])) == value
    assert answer["canonical"] == canonical(text)
    assert int(answer["crc"]) == fingerprint(text)


@MANY
@given(old=schemas(), data=st.data())
def test_java_breaks_where_we_say(witness: Witness, old: Any, data: Any) -> None:
    new = data.draw(st.just(changed(data, old)) | schemas())
    before, after = orjson.dumps(old).decode(), orjson.dumps(new).decode()
    answer = witness.ask(old=before, new=after)
    if not answer["ok"]:
        return  # a change that is no schema
    said = breaking_changes(before, after)
    # Of scales only we speak: Java reads other numbers without a word.
    broken = [each for each in said if "cannot be read as decimal" not in each]
    assert answer["reads"] == (not broken), said


def changed(data: Any, schema: Any) -> Any:
    """A schema of the same names with something else in it."""
    match schema:
        case str():
            if schema in ("int", "long", "float", "double", "string", "bytes"):
                return data.draw(st.sampled_from([schema, "long", "double", "bytes"]))
            return schema
        case list():
            kept = [changed(data, each) for each in schema if data.draw(st.integers(0, 4))]
            return kept if data.draw(st.booleans()) else kept[::-1]
        case {"type": "enum"}:
            symbols = data.draw(st.sampled_from([["A"], ["B", "A"], ["C", "A", "B"]]))
            more = {"default": "A"} if data.draw(st.booleans()) else {}
            return {**schema, "symbols": symbols, **more}
        case {"type": "fixed"}:
            return {**schema, "size": schema["size"] + data.draw(st.sampled_from([0, 0, 1]))}
        case {"type": "array"}:
            return {**schema, "items": changed(data, schema["items"])}
        case {"type": "map"}:
            return {**schema, "values": changed(data, schema["values"])}
        case {"type": "record"}:
            fields = [
                {**field, "type": changed(data, field["type"])}
                for field in schema["fields"]
                if data.draw(st.integers(0, 4))
            ]
            if data.draw(st.booleans()):
                more = {"default": 1} if data.draw(st.booleans()) else {}
                fields.append({"name": "new", "type": "int", **more})
            return {**schema, "fields": fields}
        case _:
            return schema
