"""Held frames with another body: records as objects, checksums, secrets that nobody typed."""

import base64
from typing import Any

import pytest

from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Batch, Record, batches, crc_ok, open_batch
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import decode_request
from kafkascope.proxy.relay.edits import RecordsEditor, edited, shown
from kafkascope.proxy.relay.pairing import PendingRequest
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from kafkascope.schemas.model import Schema, SchemaKey
from tests.analyzer.metadata_logs import SECRETS, answer, log
from tests.kit.proxy import PRODUCE, Bench, opened, request

RECORDS = [
    Record(0, 1_000, b"k", b"value", (("h", b"1"), ("nil", None))),
    Record(1, 1_001, None, b"\xff\xfe", ()),
]


RECORD = {"offset": 0, "time_ms": 1, "key": None, "value": "v", "headers": []}


def message(key: int, version: int, body: dict[str, Any]) -> InterceptedFrame:
    whole = request(key, version, body)
    return InterceptedFrame(
        Bench().context, CLIENT, PendingRequest(key, version, 1, 0), len(whole) - 4, 0, whole
    )


def produced(data: bytes | None) -> InterceptedFrame:
    partition = {"index": 0, "records": data}
    return message(PRODUCE, 9, {"topic_data": [{"name": "t", "partition_data": [partition]}]})


def view(frame: InterceptedFrame) -> dict[str, Any]:
    decoded = frame.decoded
    return shown(decoded)


def records(body: dict[str, Any]) -> Any:
    return body["topic_data"][0]["partition_data"][0]["records"]


def sent(frame: InterceptedFrame, body: dict[str, Any]) -> bytes:
    return records(decode_request(edited(frame, body)).body)


@pytest.mark.parametrize("codec", range(5))
def test_records_are_spelled_out_and_an_untouched_body_is_the_same_bytes(codec: int) -> None:
    frame = produced(encode_batch(RECORDS, codec=codec, producer_id=7, base_sequence=3))
    body = view(frame)
    (batch,) = records(body)["batches"]
    assert batch["records"][0] == {
        "offset": 0,
        "time_ms": 1_000,
        "key": "k",
        "value": "value",
        "headers": [["h", "1"], ["nil", None]],
    }
    assert batch["records"][1]["value"] == {"base64": "//4="}
    assert edited(frame, body) == frame.payload


@pytest.mark.parametrize("codec", range(5))
def test_an_edited_record_arrives_in_its_batch_with_a_right_checksum(codec: int) -> None:
    before = encode_batch(RECORDS, codec=codec, producer_id=7, producer_epoch=2, base_sequence=3)
    frame = produced(before * 2)
    body = view(frame)
    batch = records(body)["batches"][0]
    batch["records"][0]["value"] = "another, longer value"
    batch["records"].append({**batch["records"][1], "offset": 2, "key": "new"})
    data = sent(frame, body)
    first, second = (each for each in batches(data) if isinstance(each, Batch))
    assert crc_ok(data, first)
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (7, 2, 3)
    assert (first.attributes & 7, first.record_count, first.last_offset) == (codec, 3, 2)
    assert open_batch(data, first).records[0].value == b"another, longer value"
    assert data[second.at :] == before


def test_edited_base64_gets_a_right_checksum() -> None:
    frame = produced(encode_batch(RECORDS))
    body = view(frame)
    raw = bytearray(encode_batch(RECORDS))
    raw[-1] ^= 1
    body["topic_data"][0]["partition_data"][0]["records"] = base64.b64encode(raw).decode()
    data = sent(frame, body)
    (batch,) = batches(data)
    assert isinstance(batch, Batch)
    assert crc_ok(data, batch)


@pytest.mark.parametrize(
    "data",
    [None, b"", b"not a batch", encode_batch(RECORDS)[:-3], bytes(300), encode_batch(RECORDS) * 2],
)
def test_what_cannot_be_opened_stays_as_it_is(data: bytes | None) -> None:
    frame = produced(data)
    assert edited(frame, view(frame)) == frame.payload


@pytest.mark.parametrize(
    "wrong",
    [
        {"batches": [{"records": [{}], "codec": "none"}]},
        {"batches": [{"records": [], "codec": "brotli"}]},
        {"batches": [{"records": [RECORD | {"time_ms": 10**30}], "codec": "none"}]},
        {"batches": [{"records": [RECORD | {"offset": float("inf")}], "codec": "none"}]},
        {"batches": 5},
        7,
    ],
)
def test_records_that_do_not_fit_are_refused(wrong: Any) -> None:
    frame = produced(encode_batch(RECORDS))
    body = view(frame)
    body["topic_data"][0]["partition_data"][0]["records"] = wrong
    with pytest.raises(DissectError):
        edited(frame, body)


def test_secrets_that_were_not_touched_stay_what_they_are() -> None:
    configs = [
        {"name": "ssl.key.password", "config_operation": 0, "value": "hidden-1"},
        {"name": "retention.ms", "config_operation": 0, "value": "5"},
        {"name": "sasl.jaas.config", "config_operation": 0, "value": "hidden-2"},
    ]
    resource = {"resource_type": 4, "resource_name": "1", "configs": configs}
    frame = message(44, 1, {"resources": [resource]})
    body = view(frame)
    assert "hidden" not in str(body)
    inside = body["resources"][0]["configs"]
    inside[1]["value"] = "6"
    inside[2]["value"] = "typed"
    told = decode_request(edited(frame, body)).body["resources"][0]["configs"]
    assert [each["value"] for each in told] == ["hidden-1", "6", "typed"]
    del inside[1]
    told = decode_request(edited(frame, body)).body["resources"][0]["configs"]
    assert [each["value"] for each in told] == ["hidden-1", "typed"]


POINT = """{"type": "record", "name": "Point", "fields": [
    {"name": "x", "type": "int"},
    {"name": "cost",
     "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}
]}"""
ENCODED = Record(0, 1_000, b"k", b"\0\0\0\0\7\2\2\x64", ())


def by_schema() -> Payloads:
    return Payloads(KnownSchemas([Schema("avro", POINT, (SchemaKey("id", 7),))]))


@pytest.mark.parametrize("codec", range(5))
def test_a_decoded_value_is_edited_and_encoded_again_with_its_schema(codec: int) -> None:
    frame = produced(encode_batch([ENCODED, *RECORDS[1:]], codec=codec))
    body = shown(frame.decoded, RecordsEditor(by_schema(), "t"))
    (batch,) = records(body)["batches"]
    assert batch["records"][0]["value_decoded"] == {"x": 1, "cost": "1.00"}
    assert "value_decoded" not in batch["records"][1]
    batch["records"][0]["value_decoded"] = {"x": -2, "cost": "12.34"}
    data = records(decode_request(edited(frame, body, RecordsEditor(by_schema(), "t"))).body)
    _, (first, second) = opened(data)
    assert first.value == b"\0\0\0\0\7\3\4" + (1234).to_bytes(2, "big")
    assert second == RECORDS[1]


def test_a_decoded_value_that_nobody_touched_changes_nothing() -> None:
    data = encode_batch([ENCODED])
    frame = produced(data)
    body = shown(frame.decoded, RecordsEditor(by_schema(), "t"))
    assert (
        records(decode_request(edited(frame, body, RecordsEditor(by_schema(), "t"))).body) == data
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"value_decoded": {"x": "text", "cost": "1.00"}}, "does not match its schema at x"),
        ({"value_decoded": {"x": 1}}, "does not match its schema"),
        ({"value_decoded": {"x": 2, "cost": "1.00"}, "value": "v"}, "both changed"),
    ],
)
def test_a_decoded_value_that_does_not_fit_is_refused(
    change: dict[str, Any], sentence: str
) -> None:
    frame = produced(encode_batch([ENCODED]))
    body = shown(frame.decoded, RecordsEditor(by_schema(), "t"))
    records(body)["batches"][0]["records"][0].update(change)
    with pytest.raises(DissectError, match=sentence):
        edited(frame, body, RecordsEditor(by_schema(), "t"))


def fetched_log() -> InterceptedFrame:
    whole = answer(12, log(0))
    pending = PendingRequest(1, 12, 1, 0)
    return InterceptedFrame(Bench().context, BROKER, pending, len(whole) - 4, 0, whole)


def test_secrets_of_the_metadata_log_are_hidden_and_pass_on_untouched() -> None:
    frame = fetched_log()
    body = view(frame)
    text = dumps(body)
    shown_records = body["responses"][0]["partitions"][0]["records"]["batches"][0]["records"]
    assert not [secret for secret in SECRETS if secret in text]
    assert not [each for each in shown_records if isinstance(each["value"], dict)]
    assert answer(12, log(0))[4:] == edited(frame, body)
    assert all(secret in edited(frame, body | {"throttle_time_ms": 7}) for secret in SECRETS)
    shown_records[2]["value"] = "other"
    with pytest.raises(DissectError, match="secrets are hidden"):
        edited(frame, body)
