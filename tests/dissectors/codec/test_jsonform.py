"""Bodies as JSON: what JSON cannot say goes there and back all the same, and errors say where."""

import json
import math
from typing import Any

import pytest

from kafkascope.dissectors import registry
from kafkascope.dissectors.codec import jsonform
from kafkascope.dissectors.errors import Malformed
from kafkascope.dissectors.values import Uuid, finite


def there_and_back(name: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
    layout = registry.layout_of(name, version)
    return jsonform.body_from_json(layout, json.loads(jsonform.dumps(body)))


def test_bytes_are_base64_and_uuids_are_kafkas() -> None:
    text = jsonform.dumps({"id": Uuid(bytes(15) + b"\1"), "data": b"\0\xff", "no": None})
    assert text == b'{"id":"AAAAAAAAAAAAAAAAAAAAAQ","data":"AP8=","no":null}'


@pytest.mark.parametrize(
    ("value", "text"),
    [(math.nan, '"NaN"'), (math.inf, '"Infinity"'), (-math.inf, '"-Infinity"'), (0.5, "0.5")],
)
def test_doubles_that_json_lacks_are_text(value: float, text: str) -> None:
    body = registry.example("DescribeClientQuotasResponse", 1)
    entry = {"entity": [], "values": [{"key": "k", "value": value}]}
    data = registry.encode_body("DescribeClientQuotasResponse", 1, body | {"entries": [entry]})
    read, _ = registry.decode_body("DescribeClientQuotasResponse", 1, data)

    written = jsonform.dumps(read)
    assert f'"value":{text}'.encode() in written
    again = there_and_back("DescribeClientQuotasResponse", 1, read)
    assert registry.encode_body("DescribeClientQuotasResponse", 1, again) == data


def test_strings_that_are_not_utf_8_are_kept() -> None:
    data = bytes.fromhex("0003 61ff62 00000001 0000")
    body, _ = registry.decode_body("HeartbeatRequest", 0, data)
    text = jsonform.dumps(body)
    assert b'"a\\udcffb"' in text
    again = there_and_back("HeartbeatRequest", 0, body)
    assert registry.encode_body("HeartbeatRequest", 0, again) == data


def test_doubles_that_json_lacks_are_text_beside_text_that_is_not_utf_8() -> None:
    body = {"entries": [{"key": "\udcff", "value": finite(math.inf)}, {"value": finite(math.nan)}]}
    for text in (jsonform.dumps(body), jsonform.dumps_indented(body)):
        assert json.loads(text, parse_constant=pytest.fail) == {
            "entries": [{"key": "\udcff", "value": "Infinity"}, {"value": "NaN"}]
        }


def test_unknown_tagged_fields_keep_their_order_and_bytes() -> None:
    body = registry.example("HeartbeatRequest", 4)
    body["_tagged_fields"] = [{"tag": 3, "data": b"x"}, {"tag": 200, "data": b""}]
    assert there_and_back("HeartbeatRequest", 4, body) == body
    assert b'"_tagged_fields":[{"tag":3,"data":"eA=="}' in jsonform.dumps(body)


def test_fields_that_are_missing_get_their_defaults() -> None:
    layout = registry.layout_of("FetchRequest", 17)
    body = jsonform.body_from_json(layout, {"topics": [{"partitions": [{"fetch_offset": 5}]}]})
    assert body["max_bytes"] == 0x7FFFFFFF
    assert body["replica_state"] == {"replica_id": -1, "replica_epoch": -1}
    partition = body["topics"][0]["partitions"][0]
    assert partition["fetch_offset"] == 5
    assert partition["replica_directory_id"] == Uuid(16)
    assert isinstance(partition["replica_directory_id"], Uuid)


def test_defaults_are_fresh_each_time() -> None:
    layout = registry.layout_of("FetchRequest", 17)
    jsonform.body_from_json(layout, {})["topics"].append(1)
    assert jsonform.body_from_json(layout, {})["topics"] == []


@pytest.mark.parametrize(
    ("name", "version", "body", "path"),
    [
        *(
            ("LeaveGroupRequest", 4, body, path)
            for body, path in (
                ([], ""),
                ({"grop_id": "g"}, "grop_id"),
                ({"members": {}}, "members"),
                ({"members": [{}, {"member": "x"}]}, "members[1].member"),
                ({"members": [{}, {"member_id": 5}]}, "members[1].member_id"),
                ({"members": [{"member_id": None}]}, "members[0].member_id"),
                ({"group_id": ["g"]}, "group_id"),
                ({"_tagged_fields": {}}, "_tagged_fields"),
                ({"_tagged_fields": [{"tag": True, "data": ""}]}, "_tagged_fields"),
                ({"_tagged_fields": [{"tag": 5, "data": "?"}]}, "_tagged_fields"),
                ({"_tagged_fields": [5]}, "_tagged_fields"),
            )
        ),
        ("MetadataRequest", 10, {"topics": [{"topic_id": "short"}]}, "topics[0].topic_id"),
        ("MetadataRequest", 10, {"topics": [{"topic_id": 5}]}, "topics[0].topic_id"),
        ("MetadataRequest", 4, {"allow_auto_topic_creation": 1}, "allow_auto_topic_creation"),
        ("StopReplicaResponse", 0, {"error_code": True}, "error_code"),
        ("StopReplicaResponse", 0, {"error_code": 1.0}, "error_code"),
        ("SaslAuthenticateRequest", 0, {"auth_bytes": "not base64!"}, "auth_bytes"),
        ("HeartbeatRequest", 3, {"_tagged_fields": [{"tag": 1, "data": ""}]}, "_tagged_fields"),
        *(
            ("AlterClientQuotasRequest", 0, {"entries": [{"ops": [{"value": value}]}]},
             "entries[0].ops[0].value")
            for value in ("many", True)
        ),
        ("StopReplicaRequest", 0, {"ungrouped_partitions": [[]]}, "ungrouped_partitions[0]"),
        ("FetchRequest", 7, {"forgotten_topics_data": [{"partitions": [1, "2"]}]},
         "forgotten_topics_data[0].partitions[1]"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_by_its_path(
    name: str, version: int, body: Any, path: str
) -> None:
    with pytest.raises(Malformed) as caught:
        jsonform.body_from_json(registry.layout_of(name, version), body)
    assert caught.value.path == path


def test_what_has_no_json_form_is_our_mistake() -> None:
    with pytest.raises(TypeError):
        jsonform.plain(object())
