"""Lines of the JSON form that no sample has."""

from typing import Any

import pytest

from kafkascope.analyzer.requestlog.fields import NotUnderstood
from kafkascope.analyzer.requestlog.jsonline import document_of, parse_json
from kafkascope.analyzer.requestlog.model import NOT_LOGGED, Completed
from kafkascope.dissectors.codec import jsonform
from kafkascope.dissectors.registry import layout_of
from tests.analyzer.requestlog.kafka_json import line as printed_line

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
