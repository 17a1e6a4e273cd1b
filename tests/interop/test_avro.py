"""Our Avro against Apache's: both forms of a value, canonical forms, what readers can read."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkascope.schemas.avro.changes import breaking_changes
from kafkascope.schemas.avro.text import canonical, fingerprint
from tests.interop.asked import Asked
from tests.interop.maven import Artifact, jars
from tests.interop.maven import compiled as compiled_java
from tests.schemas.avro.schemas import cases, compiled, schemas

pytestmark = pytest.mark.interop

# 1.12.0 turns doubles of arrays into floats.
AVRO = (Artifact("org.apache.avro:avro:1.11.4"), Artifact("org.slf4j:slf4j-nop:2.0.13"))
MANY = settings(
    max_examples=500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def witness(java: None) -> Iterator[Asked]:
    with Asked("Avro", compiled_java(jars("avro", AVRO), ["Avro"]).path) as witness:
        yield witness


@MANY
@given(case=cases())
def test_java_reads_what_we_write_and_we_what_it_writes(witness: Asked, case: Any) -> None:
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
def test_java_breaks_where_we_say(witness: Asked, old: Any, data: Any) -> None:
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
