"""Differences of bodies, by meaning."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.transform.diff import differences
from kafkascope.dissectors.codec.walk import changed, leaves
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import APIS, example, layout_of
from tests.kit.wire import full_body
from tests.matrix import each_nth
from tests.strategies import bodies

LAYOUT = layout_of("MetadataResponse", 12)


def metadata() -> dict:
    partitions = [{"partition_index": index, "leader_id": 1} for index in range(2)]
    topics = [{"name": name, "partitions": partitions} for name in ("orders", "payments")]
    return copy.deepcopy(full_body("MetadataResponse", 12, {"topics": topics}))


def test_elements_are_matched_by_what_they_are_called():
    left, right = metadata(), metadata()
    right["topics"].reverse()
    right["topics"][0]["partitions"].reverse()
    assert differences(LAYOUT, left, LAYOUT, right, strict=True) == []
    right["topics"][1]["partitions"][1]["leader_id"] = 3
    (found,) = differences(LAYOUT, left, LAYOUT, right)
    assert found.path.startswith("topics[orders].partitions[1].leader_id")
    assert (found.kind, found.left, found.right) == ("changed", 1, 3)
    assert found.left_place == ("topics", 0, "partitions", 1, "leader_id")
    assert found.right_place == ("topics", 1, "partitions", 1, "leader_id")


def test_what_one_side_lacks():
    left, right = metadata(), metadata()
    del left["topics"][0]
    (found,) = differences(LAYOUT, left, LAYOUT, right)
    assert (found.path, found.kind, found.left) == ("topics[orders]", "right only", None)


def test_volatile_values_count_with_strict_only():
    left, right = metadata(), metadata()
    right["throttle_time_ms"] = 7
    assert differences(LAYOUT, left, LAYOUT, right) == []
    (found,) = differences(LAYOUT, left, LAYOUT, right, strict=True)
    assert found.path == "throttle_time_ms"


def test_versions_differ_in_fields_that_hold_more_than_their_default():
    old, new = layout_of("FetchRequest", 4), layout_of("FetchRequest", 12)
    left, right = example("FetchRequest", 4), example("FetchRequest", 12)
    right["rack_id"] = "east"
    (found,) = differences(old, left, new, right)
    assert (found.path, found.kind, found.right) == ("rack_id", "right only", "east")


def produce(data: bytes) -> dict:
    body = example("ProduceRequest", 9)
    part = {"index": 0, "records": data}
    body["topic_data"] = [{"name": "orders", "partition_data": [part]}]
    return body


def record(value: bytes, offset: int = 0, timestamp: int = 5) -> Record:
    return Record(offset, timestamp, b"k", value, ())


def test_records_are_compared_by_content_whatever_the_codec():
    layout = layout_of("ProduceRequest", 9)
    rows = [record(b"a"), record(b"b", 1)]
    plain = produce(encode_batch(rows))
    packed = produce(encode_batch(rows[:1]) + encode_batch(rows[1:], codec=1))
    assert differences(layout, plain, layout, packed, strict=True) == []
    other = produce(encode_batch([rows[0], record(b"c", 1, 6)]))
    (found,) = differences(layout, plain, layout, other)
    assert found.path.endswith("records[1].value")
    assert (found.left, found.right) == (b"b", b"c")
    assert len(differences(layout, plain, layout, other, strict=True)) == 2


@pytest.mark.parametrize("key", each_nth(sorted(APIS), 4))
@settings(max_examples=3)
@given(data=st.data())
def test_a_body_does_not_differ_from_itself_and_a_changed_leaf_is_found(key, data):
    api = APIS[key]
    name = data.draw(st.sampled_from([f"{api.name}Request", f"{api.name}Response"]))
    layout = layout_of(name, data.draw(st.integers(api.versions.low, api.versions.high)))
    body = data.draw(bodies(layout))
    assert differences(layout, body, layout, copy.deepcopy(body), strict=True) == []
    assert changed(layout, body, lambda slot, value, around: value) == body
    places = [leaf for leaf in leaves(layout, body) if isinstance(leaf.value, int)]
    for leaf in places[:1]:
        path = leaf.path.split(".")
        other = copy.deepcopy(body)
        target = other
        for part in path[:-1]:
            target = target[int(part)] if part.isdigit() else target[part]
        last = int(path[-1]) if path[-1].isdigit() else path[-1]
        target[last] = not leaf.value if isinstance(leaf.value, bool) else 1 - leaf.value % 2
        if target[last] != leaf.value:
            assert differences(layout, body, layout, other, strict=True)
