"""After `resolve` nothing about versions is left to decide."""

import pytest

from kafkascope.dissectors import layout as wires
from kafkascope.dissectors import schema
from kafkascope.dissectors.errors import SchemaError, UnknownVersion
from kafkascope.dissectors.layout import NumberWire, StringWire, default_of, minimum_size, resolve
from kafkascope.dissectors.schema import (
    UNSET,
    Array,
    Bool,
    Float64,
    Int32,
    String,
    Struct,
    Uuid,
    Versions,
    data,
    request,
    response,
)

MESSAGE = data("Sample", versions="0-3", flexible="2+").of(
    String("old", "0"),
    String("name", "0+", nullable="1+", default=None),
    Array("ids", "1+").of(Int32),
    Struct("state", "2+", tag=1).of(Int32("epoch", "2+", default=-1), Uuid("id", "2+")),
    Bool("late", "3+", tag=0, default=True),
    Float64("ratio", "3+"),
)


def test_slots_are_those_of_the_version() -> None:
    names = [[slot.name for slot in resolve(MESSAGE, v).body.slots] for v in range(4)]
    assert names == [["old", "name"], ["name", "ids"], ["name", "ids"], ["name", "ids", "ratio"]]


def test_tags_are_sorted_and_apart() -> None:
    assert [(s.tag, s.name) for s in resolve(MESSAGE, 3).body.tags] == [(0, "late"), (1, "state")]
    assert resolve(MESSAGE, 1).body.tags == ()


def test_flexible_versions_are_compact() -> None:
    assert resolve(MESSAGE, 1).body.slots[0].wire == StringWire(compact=False, nullable=True)
    assert resolve(MESSAGE, 2).body.slots[0].wire == StringWire(compact=True, nullable=True)
    assert resolve(MESSAGE, 0).body.slots[1].wire == StringWire(compact=False, nullable=False)
    assert resolve(MESSAGE, 2).flexible
    assert not resolve(MESSAGE, 1).flexible


def test_a_version_is_resolved_once() -> None:
    assert resolve(MESSAGE, 2) is resolve(MESSAGE, 2)


@pytest.mark.parametrize("version", [-1, 4])
def test_a_version_that_is_not_declared_is_refused(version: int) -> None:
    with pytest.raises(UnknownVersion, match=rf"0-3, not {version}"):
        resolve(MESSAGE, version)


def test_defaults_are_fresh_copies() -> None:
    state = resolve(MESSAGE, 2).body.tags[0]
    assert default_of(state) == {"epoch": -1, "id": bytes(16)}
    default_of(state)["epoch"] = 5
    assert default_of(state)["epoch"] == -1


def test_a_declaration_that_contradicts_itself_is_our_mistake() -> None:
    twice = data("Twice", versions="0").of(Int32("a", "0+"), Int32("a", "0+"))
    with pytest.raises(SchemaError, match="one name"):
        resolve(twice, 0)
    tagged = data("Tagged", versions="0").of(Int32("a", "0+", tag=0))
    with pytest.raises(SchemaError, match="not flexible"):
        resolve(tagged, 0)


def test_minimum_sizes() -> None:
    assert minimum_size(NumberWire("int64", "q", 8)) == 8
    assert minimum_size(StringWire(compact=False, nullable=True)) == 2
    assert minimum_size(wires.ArrayWire(NumberWire("int8", "b", 1), True, False)) == 1
    # A name of two bytes and a count of four; flexible: one, one, and the tags.
    assert minimum_size(resolve(MESSAGE, 1).body) == 6
    assert minimum_size(resolve(MESSAGE, 2).body) == 3
    assert minimum_size(wires.StructWire((), (), flexible=True, nullable=True)) == 1


def test_layouts_and_messages_are_printed_in_a_line() -> None:
    assert repr(resolve(MESSAGE, 2)) == f"<Layout {MESSAGE.name} v2>"
    assert repr(MESSAGE) == f"<Message {MESSAGE.name} {MESSAGE.versions}>"


# --- the notation ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("0+", [0, 1, 32767], [-1]),
        ("3-5", [3, 4, 5], [2, 6]),
        ("4", [4], [3, 5]),
        ("none", [], [0, 1]),
    ],
)
def test_versions_are_spelled_as_kafka_spells_them(
    text: str, inside: list[int], outside: list[int]
) -> None:
    versions = Versions.parse(text)
    assert [v for v in inside if v not in versions] == []
    assert [v for v in outside if v in versions] == []
    assert str(versions) == text


@pytest.mark.parametrize("text", ["", "x", "-", "+", "1..2"])
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Versions.parse(text)


def test_a_tag_holds_in_all_versions_of_its_field_unless_told() -> None:
    assert str(String("a", "3+", tag=0).tagged) == "3+"
    assert str(String("a", "3+", tag=0, tagged="5+").tagged) == "5+"
    assert str(String("a", "3+").tagged) == "none"


def test_a_field_is_frozen_and_says_what_was_not_declared() -> None:
    field = Int32("a", "0+")
    assert field.default is UNSET
    assert repr(UNSET) == "UNSET"
    with pytest.raises(AttributeError):
        field.name = "b"  # type: ignore[misc]


def test_children_are_fields_or_one_type() -> None:
    assert Array("ids", "0+").of(Int32).element is Int32
    assert [f.name for f in Array("ids", "0+").of(Int32("a", "0+")).children] == ["a"]


def test_a_message_is_named_after_its_api_and_hands_its_name_to_variants() -> None:
    first = request("Fetch").of(Int32("a", "0+"))
    assert (first.name, first.kind, first.key) == ("FetchRequest", "request", 1)
    old = schema.variant(2, releases="1.0.0-1.1.0", flexible=False).of(Int32("b", "0+"))
    message = response("Fetch").but(old)
    (kept,) = message.variants
    assert (kept.name, kept.kind, kept.releases) == ("FetchResponse", "response", "1.0.0-1.1.0")
