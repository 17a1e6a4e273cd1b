"""Keys and values by their schemas in the tree of an exchange, with their bytes."""

import struct
import threading
import zlib
from typing import Any

import orjson
import pytest

from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.tree import record_nodes
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from kafkascope.schemas.model import Schema, SchemaKey
from kafkascope.tui.app import ScopeApp
from kafkascope.tui.data.store import Store
from kafkascope.tui.document.document import Document
from kafkascope.tui.document.payloads import PayloadLines, headers_of
from kafkascope.tui.document.tree import Item, Space, Tree
from kafkascope.tui.screens.topics import RecordKeys
from tests.kit.schemas import capture, folder
from tests.tui.pilots import run, store_of, text_of

CITY = orjson.dumps(
    {"type": "record", "name": "geo.City", "fields": [{"name": "name", "type": "string"}]}
).decode()
GUID = "00112233-4455-6677-8899-aabbccddeeff"


@pytest.fixture(scope="module")
def store() -> Store:
    return store_of(capture("avro-registry"))


def payloads(name: str = "avro-registry") -> Payloads:
    return Payloads(KnownSchemas(folder(name)))


def tree_of(store: Store, number: int, with_: Payloads | None) -> Tree:
    exchange = store.exchange(number)
    return Document(exchange, store.session.context.names, payloads=lambda: with_).tree("Request")


def below(item: Item) -> list[Item]:
    return [item, *(each for child in item.children for each in below(child))]


def test_fields_stand_below_their_value_with_their_bytes(store: Store) -> None:
    tree = tree_of(store, 5, payloads())
    tree.set_all(True)
    record = next(line for line in tree.lines if line.label == "record[0]")
    key, value = (
        next(item for item in record.children if item.label == name) for name in ("key", "value")
    )
    assert key.value.startswith("(avro shop.OrderKey, schema 1) ")
    assert [item.label for item in key.children] == ["region", "number"]
    fields = {item.label: item for item in value.children}
    data = tree.spaces[0].data
    name = fields["id"]
    assert name.value == '"63234d15-819a-52cc-aee1-87049dc48755"'
    assert data[name.start : name.end] == b"\x48" + name.value.strip('"').encode()
    assert data[fields["gift"].start : fields["gift"].end] == b"\1"
    # A byte of the hex pane leads to its field.
    assert tree.find(0, name.start + 3) is name


def test_no_schemas_no_fields(store: Store) -> None:
    tree = tree_of(store, 5, None)
    tree.set_all(True)
    assert not any("shop.Order" in line.value for line in tree.lines)


def test_a_schema_that_somebody_has_to_be_asked_for_is_looked_up_in_the_thread(
    store: Store,
) -> None:
    asked: list[tuple[SchemaKey, str]] = []
    known = {key: each for each in folder("avro-registry") for key in each.keys}

    def registry(key: SchemaKey) -> Schema | None:
        asked.append((key, threading.current_thread().name))
        return known.get(key)

    async def steps(app: ScopeApp, pilot: Any) -> None:
        row = app.workspace.session.index_of(5)
        app.list.move_to(row)
        await pilot.settle()
        app.inspector.show_tab("Request")
        await pilot.settle()
        app.detail.focus()
        assert not asked
        await pilot.do("Z")
        lines = app.detail.tree_.lines
        item = next(line for line in lines if line.label == "region")
        app.detail.select(item)
        app.inspector.light_bytes()
        await pilot.pause()
        assert 'region "US"' in text_of(app)
        assert app.hex.span == (item.start, item.end)

    run(store, steps, payloads=Payloads(KnownSchemas((), registry=registry)))
    assert asked
    assert threading.main_thread().name not in {thread for _, thread in asked}


def test_a_record_waits_closed_while_its_schema_is_not_there(store: Store) -> None:
    tree = tree_of(store, 5, Payloads(KnownSchemas((), registry=lambda key: None)))
    assert tree.any_heavy()
    tree.set_all(True)
    record = next(line for line in tree.lines if line.label == "record[0]")
    error = next(line for line in below(record) if line.kind == "error")
    assert error.value == "! unknown-schema: no schema with id 1"
    assert not tree_of(store, 6, payloads("bad-schemas")).roots[0].heavy


def test_what_was_compressed_in_a_value_has_bytes_of_its_own() -> None:
    plain = b"\x08Bern"
    value = bytes((3, 5)) + bytes.fromhex(GUID.replace("-", "")) + zlib.compress(plain)
    item, spaces = described(value, Schema("avro", CITY, (SchemaKey("guid", GUID),)))
    (name,) = item.children
    assert (name.label, name.value) == ("name", '"Bern"')
    assert spaces[name.space].data[name.start : name.end] == plain


def test_the_keys_of_a_topic_say_by_which_schemas_they_are_written(store: Store) -> None:
    keys = RecordKeys(store, "orders", 'topic == "orders"', payloads())
    while not keys.over:
        keys.advance(0.05)
    said = ["".join(text for text, _ in line) for line in keys.lines()]
    named = [" ".join(line.split()) for line in said if "schema" in line]
    assert "keys by avro schema 1 38 orders-key" in named
    # Two of the values are null.
    assert sum(keys.schemas.values()) == 2 * keys.records - 2
    # Nobody is asked for what only counts.
    asked: list[SchemaKey] = []
    strange = Payloads(KnownSchemas((), registry=lambda key: asked.append(key)))  # type: ignore
    other = RecordKeys(store, "orders", 'topic == "orders"', strange)
    while not other.over:
        other.advance(0.05)
    assert other.schemas == keys.schemas
    assert not asked
    assert any("keys by    schema 1 " in "".join(t for t, _ in line) for line in other.lines())


def described(
    value: bytes, schema: Schema, *headers: tuple[str, bytes | None]
) -> tuple[Item, list[Space]]:
    """The tree of a value, and the bytes that it is about."""
    data = encode_batch([Record(0, 1, None, value, headers)])
    (batch,) = record_nodes(data, 0, len(data))
    record = batch.children[-1].children[0]
    node = next(child for child in record.children if child.name == "value")
    item, spaces = Item("value", "", node.start, node.end), [Space("Wire", data)]
    lines = PayloadLines(Payloads(KnownSchemas([schema])), "t", spaces)
    lines.describe(item, node, headers_of(record))
    return item, spaces


def test_a_long_array_is_folded_and_a_longer_one_left_to_the_records() -> None:
    schema = Schema("json", '{"type": "array"}', (SchemaKey("id", 7),))
    frame = struct.pack(">bi", 0, 7)
    item, _ = described(frame + orjson.dumps(list(range(350))), schema)
    sizes = []
    while item.children:
        sizes.append(len(item.children))
        item = item.children[-1]
    assert sizes == [101, 101, 101, 50]
    assert item.value == "349"
    (note,) = described(frame + orjson.dumps([0] * 100_000), schema)[0].children
    assert note.kind == "note"
    assert "more than 128 KB" in note.value


def test_a_schema_in_a_header_is_found() -> None:
    header = ("__value_schema_id", b"\0" + struct.pack(">i", 9))
    schema = Schema("avro", CITY, (SchemaKey("id", 9),))
    item, (space,) = described(b"\x08Bern", schema, header)
    (name,) = item.children
    assert (name.label, name.value) == ("name", '"Bern"')
    assert space.data[name.start : name.end] == b"\x08Bern"
