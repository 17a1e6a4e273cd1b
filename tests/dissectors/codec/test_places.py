"""Places in bodies: their text, what a version has there, bodies with other values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.dissectors.codec import places as body_places
from kafkascope.dissectors.codec.places import changed_at, fitting, place_of, text_of, value_of
from kafkascope.dissectors.codec.walk import leaves
from kafkascope.dissectors.errors import Malformed
from kafkascope.dissectors.layout import ArrayWire, NumberWire, StructWire
from kafkascope.dissectors.registry import APIS, layout_of, write_layout
from tests.strategies import bodies

LAYOUTS = [
    layout_of(f"{api.name}{kind}", version)
    for api in APIS.values()
    for kind in ("Request", "Response")
    for version in {api.versions.low, api.versions.high}
]


@given(st.data())
def test_each_value_has_a_place_and_only_that_one_changes(data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from(LAYOUTS))
    body = data.draw(bodies(layout))
    found = list(leaves(layout, body))
    # Null in place of an array or a struct takes no value of another kind.
    parts = ArrayWire, StructWire
    free = [each for each in found if each.value is not None or type(each.slot.wire) not in parts]
    if not free:
        return
    leaf = data.draw(st.sampled_from(free))
    steps = [int(step) if step.isdecimal() else step for step in leaf.path.split(".")]
    place = tuple(steps)
    assert place_of(text_of(place)) == place
    assert body_places.wire_at(layout, place) is not None
    same, count = changed_at(layout, body, place, lambda _, value: value)
    assert (same, count) == (body, 1)
    mark = object()
    other, _ = changed_at(layout, body, place, lambda _, value: mark)
    differ = [
        (one.path, two.path)
        for one, two in zip(found, leaves(layout, other), strict=False)
        if two.value is mark
    ]
    assert differ == [(leaf.path, leaf.path)]
    assert write_layout(layout, body) == write_layout(layout, same)


def test_all_elements_and_chosen_ones() -> None:
    layout = layout_of("FetchRequest", 12)
    parts: list[dict[str, Any]] = [
        {"partition": number, "fetch_offset": 0, "current_leader_epoch": -1} for number in range(4)
    ]
    body = {"topics": [{"topic": name, "partitions": parts} for name in ("orders", "payments")]}

    def offsets(text: str) -> list[list[int]]:
        new, _ = changed_at(layout, body, place_of(text), lambda _, value: value + 7)
        return [[each["fetch_offset"] for each in topic["partitions"]] for topic in new["topics"]]

    zeros, end = [0] * 4, "fetch_offset"
    assert offsets(f"topics[*].partitions[*].{end}") == [[7] * 4] * 2
    assert offsets(f"topics[0].partitions[-1].{end}") == [[0, 0, 0, 7], zeros]
    assert offsets(f"topics[topic == payments].partitions[partition >= 2].{end}") == [
        zeros,
        [0, 0, 7, 7],
    ]
    assert offsets(f"topics[topic != 'orders'].partitions[partition == 3].{end}")[1] == [0, 0, 0, 7]
    assert offsets(f"topics[9].partitions[*].{end}") == [zeros] * 2
    assert offsets(f"topics[partition == 3].partitions[*].{end}") == [zeros] * 2
    assert body["topics"][0]["partitions"][0]["fetch_offset"] == 0


@pytest.mark.parametrize(
    "text",
    ["", "topics[", "topics[x]", "[0]", "topics[0", "a b", "topics[a = 3]", "topics..name", "5"],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"names no field|is no element"):
        place_of(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("null", None),
        ("true", True),
        ("orders", "orders"),
        ('"7"', "7"),
        ("'a b'", "a b"),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert value_of(text) == value
    assert value_of(body_places.spelled(value)) == value


@given(st.text() | st.integers() | st.none() | st.booleans())
def test_values_are_read_as_they_are_spelled(value: Any) -> None:
    if isinstance(value, str) and any(0xD800 <= ord(each) < 0xE000 for each in value):
        return
    assert value_of(body_places.spelled(value)) == value


def test_conditions_are_written_as_they_are_read() -> None:
    for text in ("a[*].b[-2].c", "a[b == 3].c", 'a[b != "x y"]', "a[b <= 7][*]"):
        assert text_of(place_of(text)) == text
        assert place_of(text_of(place_of(text))) == place_of(text)
    assert body_places.Elements("a", "<", 3).has({"a": "x"}) is False


def test_numbers_that_do_not_fit_are_refused() -> None:
    wire = NumberWire("int8", "b", 1)
    assert fitting(wire, 127) == 127
    for value in (128, "x", None, 1.5, True):
        with pytest.raises(Malformed):
            fitting(wire, value)
