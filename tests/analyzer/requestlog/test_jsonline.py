"""Lines of the JSON form that no sample has."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.requestlog.fields import NotUnderstood
from kafkascope.analyzer.requestlog.jsonbody import WHOLE, body_of, paths_of_bytes
from kafkascope.analyzer.requestlog.jsonline import document_of, parse_json
from kafkascope.analyzer.requestlog.model import NOT_LOGGED, Completed
from kafkascope.analyzer.requestlog.printing import printed
from kafkascope.dissectors.codec import jsonform
from kafkascope.dissectors.codec.jsonform import body_from_json
from kafkascope.dissectors.errors import DissectError, Malformed, TooLarge
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import APIS, layout_of, variants_of
from tests.analyzer.requestlog.kafka_json import line as printed_line
from tests.strategies import bodies

HEARTBEAT = layout_of("HeartbeatRequest", 0)
BODY = {"group_id": "g", "generation_id": 4, "member_id": "m"}
MESSAGE = printed_line(HEARTBEAT, BODY)[32:]


def parsed(header: dict[str, Any] | None = None, **fields: Any) -> Completed:
    document = document_of(MESSAGE) | fields
    document["requestHeader"] |= header or {}
    return parse_json(b"Completed request:" + jsonform.dumps(document), 0, "DEBUG")


def test_a_newer_version_and_an_unknown_api_have_no_body() -> None:
    found = parsed({"requestApiVersion": 99}, response={"errorCode": 3})
    assert found.request.gap == found.response.gap == "unknown version 99 of Heartbeat"
    found = parsed({"requestApiKey": 9999, "requestApiKeyName": "NEW"}, response="")
    assert (found.api_key, found.api_name) == (9999, "NEW")
    assert (found.request.gap, found.response.gap) == ("unknown API 9999", NOT_LOGGED)


def test_a_field_that_the_version_lacks_is_named() -> None:
    found = parsed(request={"groupId": "g", "generationId": 4, "memberId": "m", "later": 1})
    assert found.request.gap == "later: this version has no such field"
    header = {"requestApiKey": 0, "requestApiVersion": 3, "requestApiKeyName": "PRODUCE"}
    partitions = [{"index": 0, "recordsSizeInBytes": 7}]
    topics = [{"name": "t", "partitionData": partitions}]
    request = {"transactionalId": None, "acks": 1, "timeoutMs": 1, "topicData": topics}
    assert parsed(header, request=request).record_sizes == {("t", 0): 7}
    found = parsed(header, request=request | {"later": 1})
    assert found.request.gap == "later: this version has no such field"
    assert found.record_sizes == {}


def test_deprecated_forwarded_and_conversions() -> None:
    found = parsed(
        {"requestApiVersionDeprecated": True, "clientId": None},
        isForwarded=True,
        messageConversionsTime=6.5,
        temporaryMemoryBytes=84,
        response=None,
    )
    assert (found.deprecated, found.forwarded, found.client_id) == (True, True, None)
    assert (found.conversions_ns, found.temporary_bytes) == (6_500_000, 84)
    assert found.response.gap == NOT_LOGGED


@pytest.mark.parametrize(
    "fields",
    [
        {"header": {"requestApiKey": 1 << 15}},
        {"header": {"requestApiVersion": True}},
        {"header": {"correlationId": 1 << 31}},
        {"header": {"clientId": 7}},
        {"connection": "nowhere"},
        {"connection": "10.0.0.1:99999-10.0.0.2:1"},
        {"totalTimeMs": "1"},
        {"localTimeMs": 1e20},
        {"temporaryMemoryBytes": -1},
        {"clientInformation": None},
        {"principal": None},
    ],
)
def test_what_is_no_line(fields: dict[str, Any]) -> None:
    with pytest.raises(NotUnderstood):
        parsed(**fields)


@pytest.mark.parametrize("text", [b'{"a":1', b'{"a":"x', b'{"a":}', b"{} {}", b'{"a"}'])
def test_what_is_no_document(text: bytes) -> None:
    with pytest.raises(NotUnderstood):
        parse_json(b"Completed request:" + text, 0, "")


def test_what_a_pattern_writes_behind_the_message_may_have_braces() -> None:
    assert parse_json(MESSAGE.rstrip() + b" {mdc=1} {}", 0, "").request.body == BODY


# --- bodies ---------------------------------------------------------------------------------------


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
