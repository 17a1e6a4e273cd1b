"""Writes what Confluent's serializers make of values: `python with_serializers.py BROKER REGISTRY`.

Runs in an environment of its own and imports nothing of the project. Prints one line of JSON for
each record: topic, the schema's id, and the value.
"""

import json
import sys

from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import timestamp_pb2

ADDRESS = {
    "type": "record",
    "name": "Address",
    "namespace": "people",
    "fields": [{"name": "street", "type": "string"}],
}
PERSON = {
    "type": "record",
    "name": "Person",
    "namespace": "people",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "home", "type": ["null", "people.Address"]},
        {"name": "ages", "type": {"type": "map", "values": "long"}},
    ],
}
PEOPLE = [
    {"name": "Ada", "home": {"street": "1 rue"}, "ages": {"first": 2**62}},
    {"name": "\u00fc\u4e2d", "home": None, "ages": {}},
]
ITEM = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Item",
    "type": "object",
    "properties": {"count": {"type": "integer"}},
}


def main(broker: str, url: str) -> None:
    registry = SchemaRegistryClient({"url": url})
    producer = Producer({"bootstrap.servers": broker})
    registry.register_schema("people-address", Schema(json.dumps(ADDRESS), "AVRO"))
    reference = SchemaReference("people.Address", "people-address", 1)
    person = Schema(json.dumps(PERSON), "AVRO", [reference])
    avro = AvroSerializer(registry, person)
    fits = JSONSerializer(json.dumps(ITEM), registry)
    proto = ProtobufSerializer(timestamp_pb2.Timestamp, registry, {"use.deprecated.format": False})
    stamp = timestamp_pb2.Timestamp(seconds=86_400, nanos=500_000_000)
    stories = [("avro", avro, value, value) for value in PEOPLE]
    stories += [("json", fits, value, value) for value in ({"count": 3}, {})]
    stories.append(("proto", proto, stamp, "1970-01-02T00:00:00.500Z"))
    for topic, serializer, value, shown in stories:
        data = serializer(value, SerializationContext(topic, MessageField.VALUE))
        producer.produce(topic, data)
        number = int.from_bytes(data[1:5], "big")
        print(json.dumps({"topic": topic, "id": number, "value": shown}))
    producer.flush(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
