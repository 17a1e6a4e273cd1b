"""The notation says what it looks like it says."""

import pytest

from kafkascope.dissectors import schema
from kafkascope.dissectors.schema import UNSET, Array, Int32, String, Versions, request, response


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
