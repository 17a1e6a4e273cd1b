"""Writes what clients with wrong settings write, with Confluent's serializers:
`python with_mistakes.py BROKER REGISTRY`.

Runs in an environment of its own and imports nothing of the project. Each topic is named after
what `check` has to say of it; of topics whose names begin with `fine` it has to say nothing.
"""

import json
import sys

from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import (
    IntegerSerializer,
    MessageField,
    SerializationContext,
    StringSerializer,
)
from google.protobuf import timestamp_pb2

KEY = {"type": "record", "name": "Id", "fields": [{"name": "number", "type": "long"}]}
OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
AMOUNT = {"name": "amount", "type": "long"}
NEW = OLD | {"fields": [*OLD["fields"], AMOUNT]}
FINE = OLD | {"fields": [*OLD["fields"], AMOUNT | {"default": 0}]}
ITEM = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Item",
    "type": "object",
    "properties": {"count": {"type": "integer"}},
}
ORDERS = [{"id": f"order {number}"} for number in range(20)]
AMOUNTS = [order | {"amount": number} for number, order in enumerate(ORDERS)]


class Client:
    """A producer with a name, and its registry."""

    def __init__(self, broker: str, name: str, registry: SchemaRegistryClient) -> None:
        self.producer = Producer({"bootstrap.servers": broker, "client.id": name})
        self.registry = registry

    def avro(
        self, topic: str, schema: dict, values: list, keys: list | None = None, **conf
    ) -> None:
        """Write values, perhaps with keys."""
        text = Schema(json.dumps(schema), "AVRO")
        write = AvroSerializer(
            self.registry, text, conf={k.replace("_", "."): conf[k] for k in conf}
        )
        key = AvroSerializer(self.registry, Schema(json.dumps(KEY), "AVRO"))
        for place, value in enumerate(values):
            encoded = None
            if keys is not None:
                encoded = key(keys[place], SerializationContext(topic, MessageField.KEY))
            self.write(topic, write, value, encoded)

    def write(self, topic: str, write, value, key: bytes | None = None) -> None:
        """Write one value; None is a tombstone."""
        data = None if value is None else write(value, SerializationContext(topic, "value"))
        self.producer.produce(topic, data, key)

    def end(self) -> None:
        """Wait until all is written."""
        assert not self.producer.flush(60)


def main(broker: str, url: str) -> None:
    own = SchemaRegistryClient({"url": url})
    # Another environment: its ids are far from those of the first one.
    staging = SchemaRegistryClient.new_client({"url": "mock://staging"})
    for number in range(600):
        enum = {"type": "enum", "name": f"E{number}", "symbols": ["A"]}
        staging.register_schema(f"filler-{number}", Schema(json.dumps(enum), "AVRO"))

    def client(name: str, registry: SchemaRegistryClient = own) -> Client:
        return Client(broker, name, registry)

    def of_keys(context: SerializationContext, _: str) -> str:
        return f"{context.topic}-key"

    keys = [{"number": number} for number in range(20)]
    text, number = StringSerializer(), IntegerSerializer()
    stories = {
        "shop-1": lambda one: (
            one.avro("schema-breaks", OLD, ORDERS),
            one.avro("schema-unknown", OLD, ORDERS),
            one.avro("schema-mixed", OLD, ORDERS),
            one.avro("fine-evolution", OLD, ORDERS, keys),
            one.avro("fine-deleted", OLD, [*ORDERS, None], [*keys, keys[0]]),
            one.avro("fine-primitive", {"type": "string"}, ["a", "", "\0\0\0\0\1"]),
            [one.write("fine-texts", text, f"text {at}") for at in range(20)],
            [one.write("fine-numbers", number, at) for at in range(20)],
        ),
        "shop-2": lambda one: (
            one.avro("schema-breaks", NEW, AMOUNTS),
            one.avro("fine-evolution", FINE, AMOUNTS, keys),
        ),
        "wrong-subject": lambda one: one.avro(
            "schema-of-key", KEY, keys, keys, subject_name_strategy=of_keys
        ),
        "script": lambda one: one.write("schema-mixed", text, "poison"),
        "javascript": lambda one: one.write(
            "schema-mixed", JSONSerializer(json.dumps(ITEM), own), {"count": 3}
        ),
        "protobuf": lambda one: [
            one.write(
                "fine-stamps",
                ProtobufSerializer(timestamp_pb2.Timestamp, own, {"use.deprecated.format": False}),
                timestamp_pb2.Timestamp(seconds=at),
            )
            for at in range(20)
        ],
    }
    for name, story in stories.items():
        made = client(name)
        story(made)
        made.end()
    other = client("of-staging", staging)
    other.avro("schema-unknown", OLD, ORDERS[:3])
    other.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
