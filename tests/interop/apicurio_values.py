"""Schemas and values that Apicurio's serializers are given, with what is shown of them."""

import base64
import json
from typing import Any

import orjson

from kafkascope.schemas.protobuf import codec as protobuf
from tests.schemas.protobuf.messages import mapped

CITY = {
    "type": "record",
    "name": "City",
    "namespace": "geo",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "people", "type": ["null", "long"]},
        {
            "name": "area",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
        },
        {
            "name": "mayor",
            "type": [
                "null",
                "string",
                {
                    "type": "record",
                    "name": "Person",
                    "fields": [
                        {"name": "names", "type": {"type": "array", "items": "string"}},
                        {"name": "heir", "type": ["null", "Person"]},
                    ],
                },
            ],
        },
        {"name": "roads", "type": {"type": "map", "values": ["null", "int", "double"]}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["TOWN", "CITY"]}},
        {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 2}},
        {"name": "since", "type": {"type": "int", "logicalType": "date"}},
        {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
# In the JSON form of Avro, then as it is shown.
CITIES = [
    (
        {
            "name": "Zürich 中 \U0001f3d9 \0",
            "people": {"long": 2**63 - 1},
            "area": "\x01",
            "mayor": {
                "geo.Person": {
                    "names": ["Ada", ""],
                    "heir": {"geo.Person": {"names": [], "heir": None}},
                }
            },
            "roads": {"A1": {"int": -(2**31)}, "": None, "ü": {"double": 1e300}},
            "kind": "CITY",
            "code": "\0\xff",
            "since": -1,
            "seen": 1_700_000_000_123_456,
        },
        {
            "name": "Zürich 中 \U0001f3d9 \0",
            "people": 2**63 - 1,
            "area": "0.0001",
            "mayor": {"names": ["Ada", ""], "heir": {"names": [], "heir": None}},
            "roads": {"A1": -(2**31), "": None, "ü": 1e300},
            "kind": "CITY",
            "code": {"base64": "AP8="},
            "since": "1969-12-31",
            "seen": "2023-11-14T22:13:20.123456Z",
        },
    ),
    (
        {
            "name": "",
            "people": None,
            "area": "\xff\x7f\xff\xff\xff\xff\xff\xff\xff",
            "mayor": {"string": "x" * 300},
            "roads": {},
            "kind": "TOWN",
            "code": "ab",
            "since": 0,
            "seen": 0,
        },
        {
            "name": "",
            "people": None,
            "area": "-922337203685477.5809",
            "mayor": "x" * 300,
            "roads": {},
            "kind": "TOWN",
            "code": {"base64": "YWI="},
            "since": "1970-01-01",
            "seen": "1970-01-01T00:00:00.000000Z",
        },
    ),
]

PROTO = """
syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto";
message First { string x = 1; }
message Order {
  message Line { string sku = 1; sint64 amount = 2; repeated Line parts = 3; }
  string id = 1; int32 i = 2; repeated Line lines = 3; Kind kind = 4;
  oneof payment { int64 card = 5; Line coupon = 6; string cash = 7; }
  map<string, Line> named = 8; map<int32, Kind> kinds = 9;
  double d = 10; float f = 11; bytes raw = 12; bool paid = 13;
  optional uint64 count = 14; fixed64 f64 = 15; repeated sfixed32 packed = 16;
  google.protobuf.Timestamp at = 17; map<string, bytes> blobs = 18;
}
enum Kind { NONE = 0; SALE = 1; BACK = 2; }
"""
ORDER = protobuf.compile(PROTO, {}, lambda _: None).codec("shop.Order")

JSON_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Item",
    "type": "object",
    "properties": {"count": {"type": ["integer", "null"]}},
}


def city(release: str, spelled: Any, shown: Any) -> tuple[Any, Any, Any]:
    """A schema and both forms of a value. The serializer of 3.1.7 knows no end of a type that has
    itself inside: it gets one without."""
    texts = [json.dumps(each) for each in (CITY, spelled, shown)]
    if release != "2.6.13.Final":
        texts[0] = texts[0].replace(', {"name": "heir", "type": ["null", "Person"]}', "")
        texts[1] = texts[1].replace(', "heir": {"geo.Person": {"names": [], "heir": null}}', "")
        texts[2] = texts[2].replace(', "heir": {"names": [], "heir": null}', "")
    schema, spelled, shown = map(json.loads, texts)
    return schema, spelled, shown


ORDERS: list[Any] = [
    {"id": "中", "i": -5, "lines": [{"sku": "A-1", "amount": -(2**63)}], "card": 2**63 - 1},
    {},
]


def order(value: Any) -> dict[str, str]:
    """What the serializer is given."""
    text = orjson.dumps(mapped(ORDER._message, value)).decode()
    files = file_set(ORDER._message.descriptor)
    return {"format": "protobuf", "files": files, "type": "Order", "value": text}


def file_set(descriptor: Any) -> str:
    """A file with all that it imports, in the order in which Java builds them, as base64."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files: dict[str, Any] = {}

    def add(file: Any) -> None:
        for each in file.dependencies:
            add(each)
        files.setdefault(file.name, file)

    add(descriptor.file)
    made = FileDescriptorSet()
    for each in files.values():
        each.CopyToProto(made.file.add())
    return base64.b64encode(made.SerializeToString()).decode()
