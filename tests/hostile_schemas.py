"""A registry and values whose every text holds what a terminal or a spreadsheet would obey."""

import json
from pathlib import Path
from urllib.parse import quote

from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.explosion.schemas import asked, broker, told, value, write_http
from tests.explosion.turns import Turn, fetch, produce, uvarint
from tests.hostile import EVIL


def write_hostile_schemas(path: Path, evil: str = EVIL, before: str = "=") -> Path:
    """Write a capture of HTTP with a registry, and of records by its schemas and by none."""
    name = f"{before}n{evil}"
    text = {"name": "a", "type": "string", "doc": name}
    enum = {"type": "enum", "name": "E", "symbols": ["X"], "doc": name}
    avro = {
        "type": "record",
        "name": "R",
        "doc": name,
        "fields": [text, {"name": "e", "type": enum}],
    }
    about = {"subject": name, "version": 1, "id": 1, "schema": json.dumps(avro)}
    about |= {"references": [{"name": name, "subject": name, "version": 1}]}
    form = {"title": name, "type": "object", "properties": {name: {"enum": [name]}}}
    form |= {"required": [name], "additionalProperties": False}
    turns: list[Turn] = [asked(f"/subjects/{quote(name, safe='')}/versions/1"), told(about)]
    for number, (kind, schema) in enumerate(
        (
            ("AVRO", json.dumps({"type": "record", "name": name, "fields": []})),
            ("AVRO", json.dumps({"type": "array", "items": name})),
            ("JSON", json.dumps(form)),
            ("PROTOBUF", f'syntax = "proto3"; message M{evil} {{}}'),
            ("PROTOBUF", f'syntax = "proto3"; import "{evil[:9]}"; message M {{ string a = 1; }}'),
        ),
        start=2,
    ):
        turns += [asked(f"/schemas/ids/{number}"), told({"schema": schema, "schemaType": kind})]
    turns += [asked("/schemas/ids/7"), told({"error_code": 40403, "message": name}, 404)]

    data = name.encode()
    string = uvarint(2 * len(data)) + data
    values = [value(1, string + b"\0"), value(1, string), value(1, string + b"\x04")]
    values += [value(number, b"\2") for number in range(2, 8)]
    values += [value(4, json.dumps(each).encode()) for each in ({name: name}, {evil: 1}, [name])]
    values += [value(4, b'{"' + data), value(6, b"\0\x0a" + uvarint(len(data)) + data), data]
    records = [Record(0, 1, each, each, [(name, data)]) for each in values]
    batch = encode_batch(records)
    write_http(path, iter([turns, broker(produce(2, batch, topic=name) + fetch(3, batch))]))
    return path
