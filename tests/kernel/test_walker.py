"""The walker reads what the generated readers read, of every version of every API: it takes the
same bytes, and finds in them what a plain walk over decoded bodies finds."""

import struct
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from librt.strings import BytesWriter

from kafkascope.analyzer.bodies.facts import BodyFacts, facts_of_bodies
from kafkascope.analyzer.bodies.trees import GENERATIONS, PARTITION_LISTS, PARTITION_NAMES, node_of
from kafkascope.analyzer.conversation.ordinary import facts_of
from kafkascope.analyzer.export.pair_lines import UnwrittenField, json_field_of
from kafkascope.dissectors import layout as wires
from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.codec.reader import REFUSALS, Body, reader
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import ArrayWire, Layout, NumberWire, Slot, StructWire, UuidWire
from kafkascope.dissectors.registry import APIS, layout_of
from kafkascope.dissectors.values import read_uvarint, write_uvarint
from kafkascope.kernel.groups import schema_at
from kafkascope.kernel.json_bodies import JsonBodies, JsonTexts
from kafkascope.kernel.pairs import Pair, Plan
from kafkascope.kernel.walker import Facts, Refused, Texts, walk_request, walk_response
from tests.kernel.frames import reader_of_a_test
from tests.matrix import mostly_slow
from tests.strategies import bodies

TEXTS = Texts()
BROKEN = 4
"""Variants of each body: cut, or with another byte."""
UNORDERED = frozenset({"StreamsGroupHeartbeatRequest"})
"""Messages with a topic in two fields: the plain walk takes one before the other."""
HOMES = {
    "topicName": "topics",
    "groupId": "groups",
    "producerId": "producer_ids",
    "transactionalId": "transactional_ids",
}
"""Facts of fields, by their entity."""
SIDES = [
    (api.name + side, version)
    for api in APIS.values()
    for version in range(api.versions.low, api.versions.high + 1)
    for side in ("Request", "Response")
]


def walked(layout: Layout, data: bytes) -> BodyFacts | None:
    """What the walker finds; None where the bytes do not fit."""
    node, facts = node_of(layout), Facts(TEXTS)
    walk = walk_request if layout.message.kind == "request" else walk_response
    if not walk(node, data, 0, len(data), facts):
        return None
    pair = Pair(reader_of_a_test(), Plan("", 0, 0, node, node), facts)
    pair.sends, pair.data, pair.response = layout.message.kind == "request", data, data
    return facts_of(pair)


def noted(layout: Layout, data: bytes) -> BodyFacts:
    """What the walker finds in a body that is decoded."""
    found, none = (layout, reader(layout)(data, 0)[0]), (None, None)
    if layout.message.kind == "request":
        return facts_of_bodies(found, none)
    return facts_of_bodies(none, found)


def without_records(facts: BodyFacts | None) -> BodyFacts:
    return facts._replace(blobs=None)


class Scope(NamedTuple):
    """What structs around a field say of it."""

    topic: str | None = None
    topic_id: bytes | None = None
    partition: int | None = None
    group: str | None = None


class Collected:
    """A plain walk over a decoded body: fields by their names and entities."""

    def __init__(self, layout: Layout, body: Body) -> None:
        self.message = layout.message
        self.sets: dict[str, dict[Any, None]] = {}
        self.plain: dict[str, Any] = {}
        self.errors: list[tuple[Any, ...]] = []
        self.blobs: list[bytes] | None = None
        self.struct(layout.body, body, Scope(), False, True)
        if self.message.name == "FindCoordinatorRequest":
            homes = {0: "groups", 1: "transactional_ids"}
            for key in body["coordinator_keys"] if "coordinator_keys" in body else [body["key"]]:
                self.put(homes.get(body.get("key_type", 0), "none"), key)

    def put(self, home: str, value: Any) -> None:
        self.sets.setdefault(home, {})[value] = None

    def struct(
        self, wire: StructWire, body: Body, scope: Scope, in_topic: bool, top: bool = False
    ) -> None:
        slots = (*wire.slots, *wire.tags)
        for slot in slots:
            own = slot.field.entity == "topicName" and not slot.name.startswith("owner")
            plain = not isinstance(slot.wire, ArrayWire)
            named = isinstance(slot.wire, UuidWire) and "topic_id" in slot.name
            in_topic = in_topic or (plain and (own or named))
            scope = self.scalar(slot, body[slot.name], scope, in_topic)
        codes = [each.name for each in slots if each.name.endswith("error_code")]
        for name in codes if self.message.kind == "response" else ():
            if body[name]:
                text = body.get(name.removesuffix("code") + "message")
                self.errors.append((body[name], top, *scope, text))
        for slot in slots:
            inner, value = slot.wire, body[slot.name]
            if isinstance(inner, ArrayWire) and isinstance(inner.element, StructWire):
                for each in value or ():
                    self.struct(inner.element, each, scope, in_topic)
            elif isinstance(inner, StructWire) and value is not None:
                self.struct(inner, value, scope, in_topic)

    def scalar(self, slot: Slot, value: Any, scope: Scope, in_topic: bool) -> Scope:
        name, wire, home = slot.name, slot.wire, HOMES.get(slot.field.entity)
        if isinstance(wire, ArrayWire):
            if not isinstance(wire.element, StructWire | ArrayWire):
                if home is None and isinstance(wire.element, UuidWire) and "topic_id" in name:
                    home = "topic_ids"
                if home is None and name in PARTITION_LISTS and in_topic:
                    home = "partitions"
                for each in value or () if home else ():
                    self.put(str(home), each)
        elif isinstance(wire, wires.BytesWire):
            if wire.records and not name.startswith("unaligned"):
                self.blobs = self.blobs or []
                if value:
                    self.blobs.append(value)
                elif value is None and self.message.name == "FetchResponse":
                    self.blobs.append(b"")
        elif isinstance(wire, UuidWire) and "topic_id" in name:
            if any(value):
                self.put("topic_ids", value)
            return scope._replace(topic_id=value)
        elif home is not None and not name.startswith("owner"):
            if value >= 0 if isinstance(wire, NumberWire) else value:
                self.put(home, value)
            if home in ("topics", "groups"):
                return scope._replace(**{home[:-1]: value})
        elif isinstance(wire, NumberWire):
            if name in PARTITION_NAMES or (name == "index" and in_topic):
                self.put("partitions", value)
                return scope._replace(partition=value)
            if name in GENERATIONS:
                self.put("generations", value)
            elif name == "producer_epoch" and value >= 0:
                self.put("producer_epochs", value)
            elif name in ("throttle_time_ms", "acks"):
                self.plain["acks" if name == "acks" else "throttle_ms"] = value
            elif name == "base_offset":
                self.plain.setdefault("offset", value)
        elif name == "member_id" and value:
            self.put("members", value)
        return scope

    def facts(self) -> BodyFacts:
        self.sets.pop("none", None)
        found = {name: tuple(values) for name, values in self.sets.items()}
        return BodyFacts(errors=tuple(self.errors), blobs=self.blobs, **found, **self.plain)


def collected(layout: Layout, data: bytes) -> BodyFacts | None:
    """What the plain walk finds in what the generated reader reads."""
    try:
        body, end = reader(layout)(data, 0)
    except REFUSALS:
        return None
    return Collected(layout, body).facts() if end == len(data) else None


def comparable(layout: Layout, facts: BodyFacts | None) -> BodyFacts | None:
    """The facts, without the order where it differs."""
    if facts is None or layout.message.name not in UNORDERED:
        return facts
    return facts._replace(topics=tuple(sorted(facts.topics)))


def broken(data: bytes, rng: Random) -> bytes:
    """The bytes cut somewhere, or one of them changed."""
    if rng.random() < 0.5:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    changed[rng.randrange(len(data))] = rng.choice([0, 1, 127, 128, 254, 255, rng.randrange(256)])
    return bytes(changed)


def records_in(body: object) -> Iterator[bytes | None]:
    """The records fields of a body, in the order of the wire."""
    for each in body if isinstance(body, list) else ():
        yield from records_in(each)
    if isinstance(body, dict):
        for name, value in body.items():
            if name == "records":
                yield value
            else:
                yield from records_in(value)


def written(layout: Layout, data: bytes, body: Body) -> bytes | None:
    """The body as the kernel writes it; None where it does not."""
    out = BytesWriter()
    try:
        field = json_field_of(layout)
        records = list(map(dumps, records_in(body)))
        JsonBodies(JsonTexts()).write(out, field, data, 0, len(data), records)
        return out.getvalue()
    except (UnwrittenField, Refused):
        return None


@pytest.mark.parametrize(("name", "version"), mostly_slow(SIDES, SIDES[::9].__contains__))
def test_the_walker_reads_what_the_readers_read(name: str, version: int) -> None:
    layout = layout_of(name, version)
    write = writer(layout)

    @settings(max_examples=max(4, settings.default.max_examples // 20))  # type: ignore[union-attr]
    @given(bodies(layout), st.integers(0, 1 << 32))
    def law(body: Body, seed: int) -> None:
        data = write(body)
        assert collected(layout, data) is not None
        assert noted(layout, data) == without_records(walked(layout, data))
        rng = Random(seed)
        for each in (data, *(broken(data, rng) for _ in range(BROKEN if data else 0))):
            found = walked(layout, each)
            assert comparable(layout, found) == comparable(layout, collected(layout, each))
            if found is not None:
                again = reader(layout)(each, 0)[0]
                assert written(layout, each, again) in (None, dumps(again))

    law()


def test_most_messages_are_written() -> None:
    """All but those with doubles, and with records that the kernel does not list."""
    unwritten = set()
    for name, version in SIDES:
        try:
            json_field_of(layout_of(name, version))
        except UnwrittenField:
            unwritten.add(name)
    quotas = {"AlterClientQuotasRequest", "DescribeClientQuotasResponse"}
    assert unwritten == quotas | {"FetchSnapshotResponse", "ShareFetchResponse"}


# --- the schema id of a record --------------------------------------------------------------------


VARINTS = st.integers(0, (1 << 32) - 1).map(write_uvarint) | st.binary(max_size=6)


def length(value: int) -> int:
    return max(0, (value >> 1) ^ -(value & 1))


def slowly(data: bytes) -> int:
    try:
        at = read_uvarint(data, 0)[1]
        at = read_uvarint(data, at + 1)[1]
        at = read_uvarint(data, at)[1]
        key, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at + length(key))
    except DissectError:
        return 0
    if length(size) <= 5 or len(data) < at + 5 or data[at]:
        return 0
    return int(struct.unpack_from(">i", data, at + 1)[0])


@given(st.lists(VARINTS, max_size=7), st.binary(max_size=12))
def test_any_bytes_give_the_same_id(varints: list[bytes], rest: bytes) -> None:
    data = b"\0".join(varints) + rest
    assert schema_at(data, 0) == slowly(data)


@given(st.binary(max_size=200), st.integers(0, (1 << 31) - 1), st.binary(min_size=1, max_size=200))
def test_a_framed_value_gives_its_id(key: bytes, schema: int, value: bytes) -> None:
    framed = b"\0" + struct.pack(">i", schema) + value
    parts = (b"\0\0\0", write_uvarint(2 * len(key)), key, write_uvarint(2 * len(framed)), framed)
    data = write_uvarint(2 * sum(map(len, parts))) + b"".join(parts)
    assert schema_at(data, 0) == schema
