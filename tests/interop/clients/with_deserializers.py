"""Writes a value with one of Confluent's serializers and reads it with the deserializer:
`python with_deserializers.py BROKER REGISTRY KIND TOPIC`.

Runs in an environment of its own and imports nothing of the project. Prints what it reads, as JSON.
"""

import json
import sys
import time
from decimal import Decimal

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
AVRO = {
    "type": "record",
    "name": "Person",
    "namespace": "people",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "ages", "type": {"type": "map", "values": "long"}},
        {"name": "owes", "type": ["null", MONEY]},
    ],
}
JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Person",
    "type": "object",
    "properties": {"name": {"type": "string"}, "ages": {"type": "object"}},
    "required": ["name"],
}
HEADERS = [("h", b"1" * 2000)]
"""Long enough to be compressed."""
VALUE = {"name": "Ada", "ages": {"first": 2**40}}


def person() -> type:
    """The class of a message with a text and a map, in a file that begins with another message."""
    file = descriptor_pb2.FileDescriptorProto(
        name="people.proto", package="people", syntax="proto3"
    )
    file.message_type.add(name="Other")
    message = file.message_type.add(name="Person")
    message.field.add(name="name", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    entry = message.nested_type.add(name="AgesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    entry.field.add(name="value", number=2, type="TYPE_INT64", label="LABEL_OPTIONAL")
    message.field.add(
        name="ages",
        number=2,
        type="TYPE_MESSAGE",
        label="LABEL_REPEATED",
        type_name=".people.Person.AgesEntry",
    )
    descriptor_pool.Default().Add(file)
    found = descriptor_pool.Default().FindMessageTypeByName("people.Person")
    return message_factory.GetMessageClass(found)


def of_kind(kind: str, registry: SchemaRegistryClient) -> tuple:
    """A serializer, a deserializer, a value, and what prints one."""
    if kind == "avro":
        text = json.dumps(AVRO)
        value = VALUE | {"owes": Decimal("12.50")}
        return AvroSerializer(registry, text), AvroDeserializer(registry), value, lambda v: v
    if kind == "json":
        text = json.dumps(JSON)
        both = (
            JSONSerializer(text, registry),
            JSONDeserializer(text, schema_registry_client=registry),
        )
        return *both, VALUE, lambda v: v
    message, options = person(), {"use.deprecated.format": False}
    return (
        ProtobufSerializer(message, registry, options),
        ProtobufDeserializer(message, options),
        message(**VALUE),
        json_format.MessageToDict,
    )


def main(broker: str, url: str, kind: str, topic: str) -> None:
    registry = SchemaRegistryClient({"url": url})
    write, read, value, shown = of_kind(kind, registry)
    context = SerializationContext(topic, MessageField.VALUE)
    producer = Producer({"bootstrap.servers": broker, "compression.type": "lz4"})
    producer.produce(topic, write(value, context), b"key", partition=0, headers=HEADERS)
    if producer.flush(120):
        raise SystemExit("the record was not taken")
    consumer = Consumer({"bootstrap.servers": broker, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found = consumer.poll(1.0)
        if found is not None and found.error() is None:
            assert (found.key(), found.headers()) == (b"key", HEADERS)
            print(json.dumps(shown(read(found.value(), context)), default=str))
            break
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
