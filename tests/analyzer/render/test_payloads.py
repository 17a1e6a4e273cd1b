"""Keys and values by their schemas in the text of an exchange: fields, bytes of fields, reasons."""

import re
import struct
import zlib
from collections.abc import Callable, Iterator

import orjson
import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.records import RecordField
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.render.exchange import exchange_lines
from kafkascope.analyzer.render.records import lines_inside
from kafkascope.dissectors.codec.tree import Node
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch, encode_message_set
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from kafkascope.schemas.model import Schema, SchemaKey
from tests.kit.schemas import capture, folder, record

PLACE = re.compile(r"^ *(\w+): (.*) \(bytes (\d+)-(\d+)\)$")
CITY = record("geo.City", name="string", people="long")
FRAME = struct.pack(">bi", 0, 7)


def payloads_for(*schemas: Schema) -> Payloads:
    return Payloads(KnownSchemas(schemas))


def avro(declared: object) -> Schema:
    return Schema("avro", orjson.dumps(declared).decode(), (SchemaKey("id", 7),))


def shown(name: str, wanted: Callable[[Exchange], bool]) -> list[str]:
    """The lines of the chosen exchanges of a capture."""
    payloads, lines = payloads_for(*folder(name)), []
    with open_capture([capture(name)]) as read:
        names = read.context.names
        for each in filter(wanted, read.exchanges()):
            lines += exchange_lines(
                row_of(each, names), each, names, show_hex=False, payloads=payloads
            )
    return lines


def inside(data: bytes, payloads: Payloads, *, show_bytes: bool = False) -> list[str]:
    field = RecordField("fetch", "cities", None, 0, data, None)
    node = Node("records", 1000, 1000 + len(data), data)
    return list(lines_inside(node, field, payloads, show_bytes=show_bytes))


def city(name: bytes, people: int) -> bytes:
    assert len(name) < 64
    assert 0 <= people < 64
    return FRAME + bytes([2 * len(name)]) + name + bytes([2 * people])


def test_a_short_value_stands_on_the_line_and_a_long_one_below() -> None:
    lines = shown("avro-registry", lambda each: each.number == 5)
    at = next(n for n, line in enumerate(lines) if line.lstrip().startswith("0: 2026"))
    head, below = lines[at].strip(), [line.strip() for line in lines[at + 1 : at + 4]]
    key = 'key (avro shop.OrderKey, schema 1) {"region":"US","number":1099511627776}'
    assert head.endswith(f"{key} value (avro shop.Order, schema 2) 110 bytes")
    assert below == ["value", 'id: "63234d15-819a-52cc-aee1-87049dc48755"', 'amount: "-50.00"']


def test_what_does_not_fit_says_why_and_keeps_its_bytes() -> None:
    text = "\n".join(shown("bad-schemas", lambda each: each.api == "Produce"))
    assert "! value unknown-schema: no schema with id 999999" in text
    assert "! value does-not-fit at weight: a float of 4 bytes, 1 are left" in text
    assert "! value surplus: 2 bytes after the value" in text
    assert r'key "zero-text" value "\x00hello, this is text"' in text
    assert 'key "truncated" value (avro shop.Order, schema 100002) 0x48' in text


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_bytes_of_fields_are_those_of_the_batch(magic: int) -> None:
    rows = [Record(n, 1 if magic else None, b"k", city(b"Zuerich%d" % n, n), ()) for n in range(3)]
    data = encode_batch(rows) if magic == 2 else encode_message_set(magic, rows)
    found = [
        match for line in inside(data, payloads_for(avro(CITY)), show_bytes=True)
        if (match := PLACE.match(line))
    ]  # fmt: skip
    names = [match for match in found if match[1] == "name"]
    assert [match[2] for match in names] == ['"Zuerich0"', '"Zuerich1"', '"Zuerich2"']
    for match, row in zip(names, rows, strict=True):
        begin, end = int(match[3]) - 1000, int(match[4]) - 1000 + 1
        assert data[begin:end] == row.value[5:14]
    people = [match for match in found if match[1] == "people"]
    assert [data[int(match[3]) - 1000] for match in people] == [0, 2, 4]


def test_a_compressed_batch_has_fields_and_no_places() -> None:
    rows = [Record(0, 1, None, city(b"Bern", 3), ())]
    lines = inside(encode_batch(rows, codec=4), payloads_for(avro(CITY)), show_bytes=True)
    assert lines[1].endswith('value (avro geo.City, schema 7) {"name":"Bern","people":3}')
    assert len(lines) == 2


def test_names_and_texts_of_a_hostile_schema_stay_on_their_lines() -> None:
    text = orjson.dumps({"title": "A\n\x1b[2J", "type": "object"}).decode()
    schema = Schema("json", text, (SchemaKey("id", 7),))
    value = FRAME + orjson.dumps({"a\n\x1b[1mb": ["x" * 90, {"\r": 1}]})
    rows = [Record(0, 1, None, value, ())]
    for show_bytes in (False, True):
        lines = inside(encode_batch(rows), payloads_for(schema), show_bytes=show_bytes)
        assert len(lines) > 3
        assert all(line.isprintable() for line in lines)


def test_a_control_record_is_never_taken_for_a_value() -> None:
    rows = [Record(0, 1, struct.pack(">hh", 0, 1), city(b"Bern", 3), ())]
    data = encode_batch(rows, attributes=0x20)
    assert not any("avro" in line for line in inside(data, payloads_for(avro(CITY))))


def test_a_payload_that_unfolds_is_told_by_its_size() -> None:
    guid = "00112233-4455-6677-8899-aabbccddeeff"
    schema = Schema("json", "{}", (SchemaKey("guid", guid),))
    plain = orjson.dumps(["x" * (2 << 20)])
    value = bytes((3, 5)) + bytes.fromhex(guid.replace("-", "")) + zlib.compress(plain)
    lines = inside(encode_batch([Record(0, 1, None, value, ())]), payloads_for(schema))
    assert sum(map(len, lines)) < 1000
    assert f"{len(plain):,} bytes, not shown" in lines[1]


def test_without_schemas_the_framing_is_still_told() -> None:
    rows = [Record(0, 1, None, city(b"Bern", 3), ())]
    field = RecordField("fetch", "cities", None, 0, data := encode_batch(rows), None)
    lines: Iterator[str] = lines_inside(Node("records", 0, len(data), data), field)
    assert list(lines)[1].endswith(r'value (schema 7) "\x08Bern\x06"')
