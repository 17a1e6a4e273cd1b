"""What stands below bytes fields and Kafka's own records, called by its names and never secret."""

import struct
from typing import Any

import pytest

from kafkascope.analyzer.bodies.nodes import NodeAddresses
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.render import values
from kafkascope.analyzer.render.exchange import exchange_lines
from kafkascope.analyzer.render.values import Labels, ValueLines, embedded_lines
from kafkascope.dissectors.embedded import Around, Embedded, decode
from kafkascope.dissectors.embedded.internal import decode as decode_internal
from kafkascope.dissectors.registry import encode_body, layout_of
from tests.kit.wire import Wire, framed, full_body, message, request, response, told


def lines(exchange: Exchange, *, show_hex: bool = False) -> str:
    context = Context()
    row = row_of(exchange, context.names)
    return "\n".join(exchange_lines(row, exchange, context.names, context.nodes, show_hex=show_hex))


def nested(api_key: int, name: str, version: int, **fields: Any) -> bytes:
    header = {"request_api_key": api_key, "request_api_version": version, "correlation_id": 5}
    raw = encode_body("RequestHeader", 2, header | {"client_id": "admin"})
    return raw + message(name, version, fields)


def test_values_have_the_labels_of_their_fields() -> None:
    layout = layout_of("MetadataResponse", 12)
    partition = {"error_code": 5, "leader_id": 2, "leader_epoch": 1, "replica_nodes": [2, 3]}
    topics = [{"name": "t", "partitions": [partition]}]
    topic = full_body("MetadataResponse", 12, {"topics": topics})
    nodes = NodeAddresses()
    nodes.learn(2, "b2", 9092)
    shown = list(ValueLines(Labels(None, nodes)).of("body", topic, layout.body))
    for line in ("error_code: 5 LEADER_NOT_AVAILABLE", "leader_id: 2 b2:9092"):
        assert any(each.strip() == line for each in shown), line
    assert any(each.strip() == "replica_nodes: [2 b2:9092, 3]" for each in shown)


def test_long_lists_are_cut_and_counted() -> None:
    many = [{"n": n} for n in range(values.LIST_SHOWN + 7)]
    assert list(ValueLines().of("all", many))[-1] == "  ... 7 more"


def test_a_request_inside_an_envelope_is_named_throughout() -> None:
    raw = nested(43, "ElectLeadersRequest", 2, election_type=1)
    found = decode("EnvelopeRequest", "request_data", raw, Around())
    shown = [line.strip() for line in embedded_lines(found)]
    assert {"request_api_key: 43 ElectLeaders", "election_type: 1 UNCLEAN"} <= set(shown)


def test_a_remark_stands_behind_the_kind() -> None:
    assert list(embedded_lines(Embedded("x", {"bytes": 1}, "cut"))) == ["x (cut)", "  bytes: 1"]


def test_members_of_a_group_say_in_the_log_what_they_read() -> None:
    key = struct.pack(">h", 2) + encode_body("GroupMetadataKey", 0, {"group": "g"})
    raw = b"\0\0" + message("ConsumerProtocolSubscription", 0, {"topics": ["orders"]})
    member = {"member_id": "m", "client_host": "/10.0.0.1", "subscription": raw}
    body = {"protocol_type": "consumer", "protocol": "range", "members": [member]}
    body |= {"current_state_timestamp": 1_700_000_000_000}
    value = struct.pack(">h", 3) + message("GroupMetadataValue", 3, body)
    found = decode_internal("__consumer_offsets", key, value)
    shown = [line.strip() for line in values.internal_lines(found)]
    assert {'topics: ["orders"]', "ConsumerProtocolSubscription"} <= set(shown)
    assert "current_state_timestamp: 1700000000000 2023-11-14T22:13:20.000Z" in shown


CONFIGS = [
    {"name": "ssl.keystore.password", "config_operation": 0, "value": "hunter2"},
    {"name": "retention.ms", "config_operation": 0, "value": "86400000"},
]


def alter(**fields: Any) -> bytes:
    resource = {"resource_type": 4, "resource_name": "1", "configs": CONFIGS}
    return request("IncrementalAlterConfigs", 1, 1, resources=[resource], **fields)


@pytest.mark.parametrize("show_hex", [False, True])
def test_passwords_of_configs_are_masked_in_text_and_bytes(show_hex: bool) -> None:
    (one,) = told(Wire().client(alter()).broker(response("IncrementalAlterConfigs", 1, 1)).events)
    text = lines(one, show_hex=show_hex)
    assert 'value: "*******"' in text
    assert 'value: "86400000"' in text
    assert "hunter2" not in text
    assert b"hunter2".hex(" ") not in text


def test_bytes_that_may_hold_a_secret_are_not_shown_when_they_cannot_be_decoded() -> None:
    damaged = alter()[4:-3]
    wire = Wire().client(request("Metadata", 1, 0)).broker(response("Metadata", 1, 0))
    wire.client(framed(damaged)).broker(response("IncrementalAlterConfigs", 1, 1))
    text = lines(told(wire.events)[1], show_hex=True)
    assert "may hold a secret" in text
    assert "hunter2" not in text
    assert b"hunter2".hex(" ") not in text


@pytest.mark.parametrize("show_hex", [False, True])
def test_an_envelope_shows_what_is_inside_and_none_of_its_secrets(show_hex: bool) -> None:
    upsertion = {"name": "alice", "mechanism": 1, "iterations": 4096}
    upsertion |= {"salt": b"pepper", "salted_password": b"hunter2"}
    raw = nested(51, "AlterUserScramCredentialsRequest", 0, upsertions=[upsertion])
    asked = request("Envelope", 0, 1, request_data=raw, client_host_address=b"\x0a\0\0\7")
    (one,) = told(Wire().client(asked).events)
    text = lines(one, show_hex=show_hex)
    assert 'name: "alice"' in text
    assert "mechanism: 1 SCRAM_SHA_256" in text
    assert 'address: "10.0.0.7"' in text
    assert "hunter2" not in text
    assert b"hunter2".hex(" ") not in text


def test_a_raw_token_tells_its_user_only() -> None:
    wire = Wire().client(request("SaslHandshake", 0, 1, mechanism="PLAIN"))
    wire.broker(response("SaslHandshake", 0, 1, mechanisms=["PLAIN"]))
    wire.client(framed(b"\0alice\0hunter2")).broker(framed(b""))
    token = told(wire.events)[1]
    text = lines(token, show_hex=True)
    assert 'username: "alice"' in text
    assert "hunter2" not in text
