"""Schemas that are many, large, or said in many places, and HTTP that never comes to its end."""

import gzip
import json
import struct
from collections.abc import Callable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any

from kafkascope.captures.build import Composer
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Endpoint
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.explosion.turns import Turn, fetch, produce, uvarint, write_packets

REGISTRY = 8081


def write_http(path: Path, conversations: Iterator[list[Turn]]) -> None:
    """A pcapng with connections to registries, each with one of its own; those that begin with an
    empty turn go to a broker."""
    write_packets(path, chain.from_iterable(map(_packets, count(), conversations)))


def _packets(number: int, turns: list[Turn]) -> Iterator[bytes]:
    server = f"10.{64 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
    port = 9092 if turns[0] == (0, b"") else REGISTRY
    client = Endpoint("10.0.0.1", 1024 + number % 60_000)
    composer = Composer(client, Endpoint(server, port), mss=LIMITS.mss_bytes)
    yield from composer.open()
    for direction, said in turns:
        yield from composer.send(direction, said) if said else ()


# --- records


def journal(schemas: Iterator[dict[str, Any]]) -> list[Turn]:
    """A registry's own topic, as it is fetched."""
    records = []
    for about in schemas:
        key = {"keytype": "SCHEMA", "subject": about["subject"], "version": about["version"]}
        value = about | {"deleted": False}
        records.append(Record(len(records), 1, _json(key | {"magic": 1}), _json(value), ()))
    turns: list[Turn] = []
    for at in range(0, len(records), 20_000):
        turns += fetch(1, encode_batch(records[at : at + 20_000], codec=4), topic="_schemas")
    return turns


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def schema(number: int, text: object, **more: object) -> dict[str, Any]:
    """What a journal says of a schema."""
    spelled = text if isinstance(text, str) else json.dumps(text)
    return {"subject": f"s{number}", "version": 1, "id": number, "schema": spelled} | more


def value(number: int, data: bytes) -> bytes:
    """A value in Confluent's framing."""
    return b"\0" + struct.pack(">i", number) + data


def written(number: int, data: bytes, count: int) -> list[Turn]:
    """Records with one value."""
    return produce(2, encode_batch([Record(0, 1, None, value(number, data), ())] * count, codec=4))


def each_written(numbers: range, data: bytes, again: int = 1, topic: str = "t") -> list[Turn]:
    """A record of each schema with a value."""
    records = [Record(each, 1, None, value(each, data), ()) for each in numbers] * again
    return produce(2, encode_batch(records, codec=4), topic=topic)


def one(text: object, **more: object) -> list[Turn]:
    """A journal with one schema."""
    return journal(iter([schema(1, text, **more)]))


def record_of(name: str, *fields: object) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, type_: object) -> dict[str, Any]:
    return {"name": name, "type": type_}


def subjects(n: int) -> list[Turn]:
    """Very many schemas, and a value of each."""

    def text(each: int) -> str:
        return json.dumps(record_of(f"R{each}", field("a", "int")))

    return _subjects(n, "AVRO", text, b"\2")


def json_subjects(n: int) -> list[Turn]:
    """Very many JSON Schemas, and a value of each."""
    return _subjects(n, "JSON", lambda each: json.dumps({"title": f"S{each}"}), b"1")


def proto_subjects(n: int) -> list[Turn]:
    """Very many Protobuf files, and a value of each."""

    def text(each: int) -> str:
        return f'syntax = "proto3"; message M{each} {{ int32 a = 1; }}'

    return _subjects(n, "PROTOBUF", text, b"\0\x08\1")


def _subjects(n: int, kind: str, text: Callable[[int], str], data: bytes) -> list[Turn]:
    made = journal(schema(each, text(each), schemaType=kind) for each in range(n))
    return made + each_written(range(n), data)


def texts_of_one_id(n: int) -> list[Turn]:
    """Schemas that have one id, and values of none of them."""
    made = journal(
        schema(1, record_of(f"R{each}", field("a", "int")), subject=f"s{each}") for each in range(n)
    )
    return made + written(1, b"", n)


def subjects_of_one_schema(n: int) -> list[Turn]:
    """One schema under very many subjects."""
    return journal(schema(1, '"int"', subject=f"s{each}") for each in range(n)) + written(
        1, b"\2", n
    )


def joined_ids(n: int) -> list[Turn]:
    """Schemas that were two until a record says that they are one, each with all before it."""
    about = []
    for each in range(1, n):
        about.append(schema(each, '"int"', subject=f"s{each}"))
        about.append(schema(each, '"int"', subject="s0", version=1))
    return journal(iter(about)) + written(1, b"\2", n)


def refused_schemas(n: int) -> list[Turn]:
    """Schemas that cannot be used, and values of each in turn."""
    bad = record_of("R", *(field(f"f{each}", "int") for each in range(200)), field("a", "other"))
    made = journal(schema(each, bad | {"name": f"R{each}"}) for each in range(n))
    return made + each_written(range(n), b"\2", again=5)


def many_fields(n: int) -> list[Turn]:
    """A record of records with very many fields in all."""
    inner = record_of("I", *(field(f"f{each}", "int") for each in range(100)))
    fields = [field("g0", inner), *(field(f"g{each}", "I") for each in range(1, n // 100))]
    return one(record_of("R", *fields)) + written(1, b"\2" * n, 1)


def items(n: int) -> list[Turn]:
    """An array of very many items."""
    said = one({"type": "array", "items": "int"})
    count = uvarint(2 * n)
    return said + written(1, count + b"\2" * n + b"\0", 1)


def records_of_items(n: int) -> list[Turn]:
    """An array of very many records with a field that takes no byte."""
    item = record_of("I", field("a", "int"), field("b", "null"))
    return one({"type": "array", "items": item}) + written(1, uvarint(2 * n) + b"\2" * n + b"\0", 1)


def large_union(n: int) -> list[Turn]:
    """A union of very many records."""
    branches = [record_of(f"R{each}", field("a", "int")) for each in range(n)]
    return one(record_of("U", field("u", branches))) + written(1, uvarint(2 * (n - 1)) + b"\2", n)


def versions(n: int) -> list[Turn]:
    """Versions of one subject, each unlike the one before it."""
    made = journal(
        schema(each, record_of("R", field(f"f{each}", "int")), subject="s-value", version=each)
        for each in range(1, n)
    )
    return made + each_written(range(1, n), b"\2", topic="s")


def references(n: int) -> list[Turn]:
    """Schemas that all refer to one that is large."""
    large = record_of("L", *(field(f"f{each}", "int") for each in range(5_000)))
    refers = [{"name": "L", "subject": "large", "version": 1}]
    about = [schema(n + 1, large, subject="large")]
    about += [
        schema(each, record_of(f"R{each}", field("a", ["null", "L"])), references=refers)
        for each in range(n)
    ]
    return journal(iter(about)) + each_written(range(n), b"\0")


def proto_fields(n: int) -> list[Turn]:
    """A Protobuf message with very many items, and as many that nobody knows."""
    text = 'syntax = "proto3"; message M { repeated int32 a = 1; repeated M m = 2; }'
    return one(text, schemaType="PROTOBUF") + written(1, b"\0" + b"\x12\0" * n + b"\x18\1" * n, 1)


def proto_messages(n: int) -> list[Turn]:
    """A Protobuf file with very many messages."""
    body = "".join(f"message M{each} {{ optional int32 a = 1; }}\n" for each in range(n))
    return one(f'syntax = "proto2";\n{body}', schemaType="PROTOBUF") + written(1, b"\0\x08\1", n)


def json_values(n: int) -> list[Turn]:
    """A JSON value of very many items, by a schema."""
    text = {"type": "array", "items": {"type": "integer"}}
    return one(text, schemaType="JSON") + written(1, b"[" + b"1," * n + b"1]", 1)


def json_schemas(n: int) -> list[Turn]:
    """A JSON Schema with very many properties, and values with each."""
    text = {"type": "object", "properties": {f"p{each}": {"type": "string"} for each in range(n)}}
    return one(text, schemaType="JSON") + written(1, _json({f"p{each}": 1 for each in range(n)}), 2)


# --- HTTP


def asked(path: str) -> Turn:
    """A request."""
    return 0, b"GET %s HTTP/1.1\r\nHost: r\r\n\r\n" % path.encode()


def told(body: object, status: int = 200) -> Turn:
    """An answer in JSON."""
    return _told(_json(body), status=status)


def _told(body: bytes, headers: bytes = b"", status: int = 200) -> Turn:
    head = b"HTTP/1.1 %d OK\r\n%bContent-Length: %d\r\n\r\n" % (status, headers, len(body))
    return 1, head + body


def broker(turns: list[Turn]) -> list[Turn]:
    """Turns that go to a broker, see `write_http`."""
    return [(0, b""), *turns]


def http_schemas(n: int) -> Iterator[list[Turn]]:
    """A registry that is asked for very many schemas."""
    turns: list[Turn] = []
    for each in range(n):
        turns.append(asked(f"/schemas/ids/{each}"))
        turns.append(_told(_json({"schema": json.dumps(record_of(f"R{each}"))})))
    yield turns
    yield broker(written(1, b"", 10))


def registries(n: int) -> Iterator[list[Turn]]:
    """As many registries, each with another schema under one id."""
    for each in range(n):
        told = _told(_json({"schema": json.dumps(record_of(f"R{each}", field("a", "int")))}))
        yield [asked("/schemas/ids/1"), told]
    yield broker(written(1, b"", n))


def http_missing(n: int) -> Iterator[list[Turn]]:
    """A registry that has none of very many schemas."""
    body = _json({"error_code": 40403, "message": "Schema not found"})
    told = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    yield [turn for each in range(n) for turn in (asked(f"/schemas/ids/{each}"), (1, told))]


def http_list(n: int) -> Iterator[list[Turn]]:
    """An answer of very many empty lists, packed."""
    body = gzip.compress(b"[" + b"[]," * n + b"[]]")
    yield [asked("/subjects/s/versions/1"), _told(body, b"Content-Encoding: gzip\r\n")] * 3
    yield broker(written(1, b"", 10))


def http_bombs(n: int) -> Iterator[list[Turn]]:
    """Answers that unfold to 16 MB each."""
    body = gzip.compress(bytes(16 << 20))
    yield [asked("/schemas/ids/1"), _told(body, b"Content-Encoding: gzip\r\n")] * n


def http_large(n: int) -> Iterator[list[Turn]]:
    """Schemas of 4 MB, packed, under one id; and small ones, told from them."""
    large = json.dumps(record_of("L", *(field(f"f{each}", "int") for each in range(9_000))))
    turns: list[Turn] = []
    for each in range(n):
        text = large.replace('"L"', f'"L{each % 20}"') if each < 20 else json.dumps(f"S{each}")
        packed = gzip.compress(_json({"schema": text}))
        turns += [asked("/schemas/ids/1"), _told(packed, b"Content-Encoding: gzip\r\n")]
    yield turns
    yield broker(written(1, b"", 10))


def http_headers(n: int) -> Iterator[list[Turn]]:
    """Headers without end."""
    yield [asked("/schemas/ids/1"), (1, b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * n)]


def http_one_header(n: int) -> Iterator[list[Turn]]:
    """Heads in which one header comes again and again."""
    head = b"HTTP/1.1 200 OK\r\n" + b"a:b\r\n" * 12_000 + b"Content-Length: 0\r\n\r\n"
    yield [turn for _ in range(n) for turn in (asked("/schemas/ids/1"), (1, head))]


def http_chunks(n: int) -> Iterator[list[Turn]]:
    """A body in chunks of one byte, without end."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield [asked("/schemas/ids/1"), (1, head + b"1\r\n1\r\n" * n)]


def http_body(n: int) -> Iterator[list[Turn]]:
    """A body without a size and without an end."""
    yield [asked("/schemas/ids/1"), (1, b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * n)]


def http_lines(n: int) -> Iterator[list[Turn]]:
    """Empty lines, where a message would begin."""
    yield [asked("/schemas/ids/1"), (0, b"\r\n" * n), _told(b"{}")]


def http_small(n: int) -> Iterator[list[Turn]]:
    """Requests that are sent one behind the other, and their answers."""
    yield [(0, asked("/schemas/ids/1")[1] * n), (1, _told(b"1")[1] * n)]


def http_connections(n: int) -> Iterator[list[Turn]]:
    """Connections that are left in the middle of a body that is wanted."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n"
    for _ in range(n):
        yield [asked("/schemas/ids/1"), (1, head + b"x" * 50_000)]
