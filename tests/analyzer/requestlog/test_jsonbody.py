"""Bodies in Kafka's JSON: for every message and version what was printed is read again."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.requestlog.jsonbody import WHOLE, body_of, paths_of_bytes
from kafkascope.analyzer.requestlog.printing import printed
from kafkascope.dissectors.codec.jsonform import body_from_json
from kafkascope.dissectors.errors import DissectError, Malformed, TooLarge
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import APIS, layout_of, variants_of
from tests.strategies import bodies

LAYOUTS = [
    layout
    for api in APIS.values()
    for side in ("Request", "Response")
    for version in range(api.versions.low, api.versions.high + 1)
    for layout in (
        layout_of(f"{api.name}{side}", version),
        *variants_of(f"{api.name}{side}", version),
    )
]


def without_records(layout: Layout, body: Any) -> Any:
    def walk(value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {
                name: None if path + name in paths else walk(field, f"{path}{name}.")
                for name, field in value.items()
                if name != "_tagged_fields"
            }
        return [walk(element, path) for element in value] if isinstance(value, list) else value

    paths = set(paths_of_bytes(layout, records=True))
    return walk(body, "")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_printed_body_is_read_again(data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from(LAYOUTS))
    body = data.draw(bodies(layout))
    found = body_from_json(layout, printed(layout, body), WHOLE)
    assert without_records(layout, found) == without_records(layout, body)
    assert list(found) == [name for name in body if name != "_tagged_fields"]


@pytest.mark.parametrize("layout", LAYOUTS, ids=repr)
def test_every_layout_refuses_other_fields(layout: Layout) -> None:
    with pytest.raises(Malformed):
        body_from_json(layout, {"noSuchField": 1}, WHOLE)


def test_a_layout_that_only_some_releases_had_is_chosen() -> None:
    (variant, *_) = variants_of("ConsumerGroupHeartbeatRequest", 0)
    body: dict[str, Any] = {
        slot.name: None if slot.name.endswith("s") else "" for slot in variant.body.slots
    }
    document = printed(variant, body) | {"memberEpoch": 3, "rebalanceTimeoutMs": 5}
    found, layout, _ = body_of(layout_of("ConsumerGroupHeartbeatRequest", 0), document)
    assert layout is variant
    assert found["member_epoch"] == 3


def test_a_missing_field_has_its_default_and_an_extra_one_is_refused() -> None:
    layout = layout_of("HeartbeatRequest", 3)
    document = {"groupId": "g", "generationId": 4, "memberId": "m"}
    body, _, missing = body_of(layout, document)
    assert (body["group_instance_id"], missing) == (None, ("group_instance_id",))
    with pytest.raises(Malformed, match="no such field"):
        body_of(layout, document | {"later": 1})


@pytest.mark.parametrize(
    "value", [None, [], "", 7, {"groupId": 1}, {"groupId": "g", "generationId": 1 << 31}]
)
def test_values_of_other_types_are_refused(value: Any) -> None:
    with pytest.raises(DissectError):
        body_of(layout_of("HeartbeatRequest", 3), value)


def test_elements_of_three_characters_do_not_take_all_memory() -> None:
    layout = layout_of("FetchResponse", 17)
    partitions: list[dict[str, int]] = [{} for _ in range(1 << 20)]
    topics = [{"topicId": "A" * 22, "partitions": partitions}]
    document = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": topics}
    with pytest.raises(TooLarge):
        body_of(layout, document)
