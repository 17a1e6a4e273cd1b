"""One table for all versions of a message, and law 6: whatever is read fits it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec.columns import (
    Column,
    ListOf,
    Scalar,
    StructOf,
    columns,
    ddl,
    misfits,
)
from kafkascope.dissectors.codec.reader import Body, reader
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.errors import SchemaError
from kafkascope.dissectors.layout import Layout, resolve
from kafkascope.dissectors.schema import Array, Int8, Int32, String, Struct, Uint16, Uuid, request
from tests.matrix import each_nth
from tests.strategies import bodies

SAMPLE = request("Sample", key=1, versions="0-3", flexible="2+").of(
    String("topic", "0-1"),
    Uuid("topic_id", "2+"),
    Int8("number", "0-1"),
    Int32("number", "2+"),
    Uint16("port", "0+"),
    Array("ids", "0+", nullable="3+").of(Int32),
    Struct("state", "0+").of(Int32("epoch", "1+"), String("name", "0+")),
)


def test_versions_are_merged() -> None:
    found = {column.name: column for column in columns(SAMPLE).columns}
    assert list(found) == ["topic", "number", "port", "ids", "state", "topic_id", "_tagged_fields"]
    assert found["topic"] == Column("topic", Scalar("string"), True)
    assert found["number"] == Column("number", Scalar("int32"), False)
    assert found["port"] == Column("port", Scalar("int32"), False)
    assert found["ids"] == Column("ids", ListOf(Scalar("int32")), True)
    state = found["state"].type
    assert isinstance(state, StructOf)
    assert [(column.name, column.nullable) for column in state.columns] == [
        ("name", False),
        ("epoch", True),
        ("_tagged_fields", True),
    ]


def test_types_are_spelled_as_sql_does() -> None:
    text = ddl(columns(request("S", key=1, versions="0").of(*SAMPLE.fields)))
    assert text == (
        "STRUCT<topic: STRING, number: TINYINT, port: INT, ids: ARRAY<INT>, state: STRUCT<name: "
        "STRING>>"
    )


def test_versions_that_cannot_share_a_column_are_our_mistake() -> None:
    mixed = request("Mixed", key=1, versions="0-1").of(Int32("a", "0"), String("a", "1+"))
    with pytest.raises(SchemaError, match=r"MixedRequest\.a"):
        columns(mixed)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"topic": 5}, ".topic"),
        ({"number": 2**31}, ".number"),
        ({"number": True}, ".number"),
        ({"number": None}, ".number"),
        ({"ids": [1, "2"]}, ".ids[1]"),
        ({"ids": 1}, ".ids"),
        ({"state": []}, ".state"),
        ({"state": {"name": "a", "other": 1}}, ".state.other"),
        ({"topic_id": b"short"}, ".topic_id"),
    ],
)
def test_misfits_are_named(value: Body, path: str) -> None:
    whole: Body = {"number": 1, "port": 2, "state": {"name": "n"}, **value}
    (told,) = misfits(columns(SAMPLE), whole)
    assert told.startswith(f"{path}: ")


def layouts() -> dict[str, list[Layout]]:
    found = {}
    for name in registry.message_names():
        message = registry.message(name)
        versions = range(message.versions.low, message.versions.high + 1)
        found[name] = [resolve(message, version) for version in versions]
        found[name] += [resolve(each, each.versions.low) for each in message.variants]
    return found


LAYOUTS = layouts()


@pytest.mark.parametrize("name", each_nth(list(registry.message_names()), 3))
def test_whatever_is_read_fits_the_columns(name: str) -> None:
    table = columns(registry.message(name))

    @settings(
        max_examples=5,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def law(data: st.DataObject) -> None:
        layout = data.draw(st.sampled_from(LAYOUTS[name]))
        body, _ = reader(layout)(writer(layout)(data.draw(bodies(layout))), 0)
        assert list(misfits(table, body)) == []

    law()
