"""AsyncAPI documents, held against the JSON Schema of AsyncAPI 3.0.0.

`asyncapi-3.0.0.json.gz` is `schemas/3.0.0-without-$id.json` of the npm package @asyncapi/specs
6.11.1 (Copyright 2016-2025 AsyncAPI Initiative, Apache-2.0).
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.export.asyncapi import TopicSchema, asyncapi
from kafkascope.analyzer.statistics.journeys.model import Application, AppMap, MapEdge
from kafkascope.schemas.model import Schema, SchemaKey
from tests.analyzer.export.documents import held

AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; }'
JSON = '{"type": "object", "properties": {"id": {"type": "integer"}}}'
WRITE = MapEdge("writes", "orders", None, 3, 100, 1, 2)
READ = MapEdge("reads", "orders", "billing", 1, 50, 1, 2)
ORDERS = Application("orders", ("orders-1", "orders-2"), "", edges=(WRITE,))
BILLING = Application("billing", ("billing-1",), "", edges=(READ,))
APPLICATIONS = AppMap([ORDERS, BILLING])


def named(side: Any, number: int, schema: Schema | None, type_: str = "") -> TopicSchema:
    return TopicSchema(side, SchemaKey("id", number), schema, type_)


@pytest.mark.parametrize(("format_", "text"), [("avro", AVRO), ("protobuf", PROTO), ("json", JSON)])
def test_a_schema_is_the_payload_of_a_message(format_: Any, text: str) -> None:
    schema = Schema(format_, text, subjects=(("orders-value", 1),))
    key = named("key", 2, Schema(format_, text), "Order")
    document = held(
        asyncapi("Kafka", APPLICATIONS, {"orders": [named("value", 1, schema, "Order"), key]})
    )
    message = document["channels"]["orders"]["messages"]["Order"]
    assert message["payload"]["schema"] == (text if format_ == "protobuf" else json.loads(text))
    assert message["title"] == "value id 1 (orders-value)"
    assert message["bindings"]["kafka"]["key"]


def test_operations_are_those_of_applications() -> None:
    document = held(asyncapi("Kafka", APPLICATIONS, {}))
    send, receive = document["operations"].values()
    assert list(document["operations"]) == ["orders.send.orders", "billing.receive.orders.billing"]
    assert (send["action"], receive["action"]) == ("send", "receive")
    assert send["channel"] == {"$ref": "#/channels/orders"}
    assert receive["bindings"]["kafka"]["groupId"] == {"type": "string", "enum": ["billing"]}


def test_an_unknown_schema_and_none_are_said() -> None:
    messages = held(asyncapi("Kafka", APPLICATIONS, {"orders": [named("value", 9, None)]}))
    assert messages["channels"]["orders"]["messages"]["id_9"]["summary"] == (
        "Schema id 9 is not known."
    )
    no_json = Schema("avro", "[" * 100_000)
    held(asyncapi("Kafka", APPLICATIONS, {"orders": [named("value", 9, no_json)]}))
    assert held(asyncapi("Kafka", APPLICATIONS, {}))["channels"]["orders"]["messages"]["record"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=8), min_size=1, max_size=4, unique=True), st.text(max_size=8))
def test_hostile_names_make_documents_too(topics: list[str], name: str) -> None:
    writes = tuple(WRITE._replace(topic=topic) for topic in topics)
    reads = tuple(READ._replace(topic=topic, group=name) for topic in topics)
    application = ORDERS._replace(name=name, client_ids=(name,), edges=writes + reads)
    document = held(asyncapi(name, AppMap([application]), {}))
    assert [each["title"] for each in document["channels"].values()] == topics
    assert len(document["operations"]) == 2 * len(topics)
