"""What stands below bytes fields and Kafka's own records, called by its names and never secret."""

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, groupby
from typing import Any

import orjson
import pytest

from kafkascope.analyzer.bodies.nodes import NodeAddresses
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.records import RecordField
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.model import Exchange, Logged, Stages
from kafkascope.analyzer.render import values
from kafkascope.analyzer.render.exchange import exchange_lines
from kafkascope.analyzer.render.records import lines_inside
from kafkascope.analyzer.render.stages import BAR, SIGNS, stage_bar, stage_lines, stage_list
from kafkascope.analyzer.render.values import Labels, ValueLines, embedded_lines
from kafkascope.analyzer.requestlog.model import BrokerTimes
from kafkascope.dissectors.codec.tree import Node
from kafkascope.dissectors.embedded import Around, Embedded, decode
from kafkascope.dissectors.embedded.internal import decode as decode_internal
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch, encode_message_set
from kafkascope.dissectors.registry import encode_body, layout_of
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from kafkascope.schemas.model import Schema, SchemaKey
from tests.kit.samples import CAPTURES
from tests.kit.schemas import capture, folder, record
from tests.kit.wire import MS, Wire, framed, full_body, message, request, response, told


def lines(exchange: Exchange, *, show_hex: bool = False) -> str:
    context = Context()
    row = row_of(exchange, context.names)
    return "\n".join(exchange_lines(row, exchange, context.names, context.nodes, show_hex=show_hex))


def nested(api_key: int, name: str, version: int, **fields: Any) -> bytes:
    header = {"request_api_key": api_key, "request_api_version": version, "correlation_id": 5}
    raw = encode_body("RequestHeader", 2, header | {"client_id": "admin"})
    return raw + message(name, version, fields)


def test_values_have_the_labels_of_their_fields() -> None:
    layout = layout_of("MetadataResponse", 12)
    partition = {"error_code": 5, "leader_id": 2, "leader_epoch": 1, "replica_nodes": [2, 3]}
    topics = [{"name": "t", "partitions": [partition]}]
    topic = full_body("MetadataResponse", 12, {"topics": topics})
    nodes = NodeAddresses()
    nodes.learn(2, "b2", 9092)
    shown = list(ValueLines(Labels(None, nodes)).of("body", topic, layout.body))
    for line in ("error_code: 5 LEADER_NOT_AVAILABLE", "leader_id: 2 b2:9092"):
        assert any(each.strip() == line for each in shown), line
    assert any(each.strip() == "replica_nodes: [2 b2:9092, 3]" for each in shown)


def test_long_lists_are_cut_and_counted() -> None:
    many = [{"n": n} for n in range(values.LIST_SHOWN + 7)]
    assert list(ValueLines().of("all", many))[-1] == "  ... 7 more"


def test_a_request_inside_an_envelope_is_named_throughout() -> None:
    raw = nested(43, "ElectLeadersRequest", 2, election_type=1)
    found = decode("EnvelopeRequest", "request_data", raw, Around())
    shown = [line.strip() for line in embedded_lines(found)]
    assert {"request_api_key: 43 ElectLeaders", "election_type: 1 UNCLEAN"} <= set(shown)


def test_a_remark_stands_behind_the_kind() -> None:
    assert list(embedded_lines(Embedded("x", {"bytes": 1}, "cut"))) == ["x (cut)", "  bytes: 1"]


def test_members_of_a_group_say_in_the_log_what_they_read() -> None:
    key = struct.pack(">h", 2) + encode_body("GroupMetadataKey", 0, {"group": "g"})
    raw = b"\0\0" + message("ConsumerProtocolSubscription", 0, {"topics": ["orders"]})
    member = {"member_id": "m", "client_host": "/10.0.0.1", "subscription": raw}
    body = {"protocol_type": "consumer", "protocol": "range", "members": [member]}
    body |= {"current_state_timestamp": 1_700_000_000_000}
    value = struct.pack(">h", 3) + message("GroupMetadataValue", 3, body)
    found = decode_internal("__consumer_offsets", key, value)
    shown = [line.strip() for line in values.internal_lines(found)]
    assert {'topics: ["orders"]', "ConsumerProtocolSubscription"} <= set(shown)
    assert "current_state_timestamp: 1700000000000 2023-11-14T22:13:20.000Z" in shown


CONFIGS = [
    {"name": "ssl.keystore.password", "config_operation": 0, "value": "hunter2"},
    {"name": "retention.ms", "config_operation": 0, "value": "86400000"},
]


def alter(**fields: Any) -> bytes:
    resource = {"resource_type": 4, "resource_name": "1", "configs": CONFIGS}
    return request("IncrementalAlterConfigs", 1, 1, resources=[resource], **fields)


@pytest.mark.parametrize("show_hex", [False, True])
def test_passwords_of_configs_are_masked_in_text_and_bytes(show_hex: bool) -> None:
    (one,) = told(Wire().client(alter()).broker(response("IncrementalAlterConfigs", 1, 1)).events)
    text = lines(one, show_hex=show_hex)
    assert 'value: "*******"' in text
    assert 'value: "86400000"' in text
    assert "hunter2" not in text
    assert b"hunter2".hex(" ") not in text


def test_bytes_that_may_hold_a_secret_are_not_shown_when_they_cannot_be_decoded() -> None:
    damaged = alter()[4:-3]
    wire = Wire().client(request("Metadata", 1, 0)).broker(response("Metadata", 1, 0))
    wire.client(framed(damaged)).broker(response("IncrementalAlterConfigs", 1, 1))
    text = lines(told(wire.events)[1], show_hex=True)
    assert "may hold a secret" in text
    assert "hunter2" not in text
    assert b"hunter2".hex(" ") not in text


@pytest.mark.parametrize("show_hex", [False, True])
def test_an_envelope_shows_what_is_inside_and_none_of_its_secrets(show_hex: bool) -> None:
    upsertion = {"name": "alice", "mechanism": 1, "iterations": 4096}
    upsertion |= {"salt": b"pepper", "salted_password": b"hunter2"}
    raw = nested(51, "AlterUserScramCredentialsRequest", 0, upsertions=[upsertion])
    asked = request("Envelope", 0, 1, request_data=raw, client_host_address=b"\x0a\0\0\7")
    (one,) = told(Wire().client(asked).events)
    text = lines(one, show_hex=show_hex)
    assert 'name: "alice"' in text
    assert "mechanism: 1 SCRAM_SHA_256" in text
    assert 'address: "10.0.0.7"' in text
    assert "hunter2" not in text
    assert b"hunter2".hex(" ") not in text


def test_a_raw_token_tells_its_user_only() -> None:
    wire = Wire().client(request("SaslHandshake", 0, 1, mechanism="PLAIN"))
    wire.broker(response("SaslHandshake", 0, 1, mechanisms=["PLAIN"]))
    wire.client(framed(b"\0alice\0hunter2")).broker(framed(b""))
    token = told(wire.events)[1]
    text = lines(token, show_hex=True)
    assert 'username: "alice"' in text
    assert "hunter2" not in text


# --- keys and values by their schemas -------------------------------------------------------------


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


# --- bars of stages -------------------------------------------------------------------------------


@cache
def example() -> Exchange:
    """A Produce that was answered after 45 ms."""
    with open_capture([CAPTURES / "nagle.pcap.gz"]) as capture:
        return next(each for each in capture.exchanges() if each.api == "Produce")


def with_stages(*stages: object, wait_ns: int = 0) -> Exchange:
    return replace(example(), stages=Stages(*stages), wait_ns=wait_ns)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["nagle.pcap.gz", "midstream.pcap.gz", "throttled.pcap.gz"])
def test_stages_are_the_latency(name: str) -> None:
    with open_capture([CAPTURES / name]) as capture:
        exchanges = [each for each in capture.exchanges() if each.response is not None]
    assert exchanges
    for each in exchanges:
        if each.request is not None:
            assert sum(stage.took_ns for stage in stage_list(each)) >= (each.latency_ns or 0)


def test_each_stage_has_a_sign_in_a_bar_of_about_one_width() -> None:
    captured = with_stages(3 * MS, 12 * MS, 1, 5 * MS, wait_ns=2 * MS)
    times = BrokerTimes(1 * MS, 4 * MS, 9 * MS, 2 * MS, 3 * MS, None)
    facts = Logged(0, 19 * MS, times, "PLAINTEXT", False, False, {}, packets=True)
    logged = replace(captured, logged=facts)
    fetch = replace(logged, api="Fetch")
    names = [[stage.name for stage in stage_list(each)] for each in (captured, logged, fetch)]
    inside = ["request queue", "request handler", "replicas", "wait"]
    inside += ["response queue", "send", "outside of the broker"]
    assert names[0] == ["request transfer", "round trip", "server", "wait", "response transfer"]
    assert names[1] == inside
    assert names[2] == ["purgatory" if each == "replicas" else each for each in inside]
    assert {*chain(*names), "server and round trip"} == set(SIGNS)
    for exchange, signs in ((captured, ">~#.<"), (logged, ":#+.;<~"), (fetch, ":#+.;<~")):
        stages = stage_list(exchange)
        bar = "".join(signs for signs, _ in stage_bar(stages))
        assert [sign for sign, _ in groupby(bar)] == list(signs)
        assert BAR <= len(bar) <= BAR + len(SIGNS)


def test_what_is_unknown_is_one_stage() -> None:
    exchange = with_stages(0, None, 0)
    assert [stage.name for stage in stage_list(exchange)] == ["server and round trip"]
    assert list(stage_lines(with_stages())) == []


def test_remarks_stand_beside_the_bar() -> None:
    exchange = with_stages(0, 40 * MS, 0, 5 * MS, 2, 30 * MS, "network", "between")
    bar, legend = stage_lines(exchange)
    assert bar.endswith(
        "#  stalled by network, 2 retransmissions, receive window closed for 30 ms, "
        "captured between client and broker"
    )
    assert legend.startswith("~ round trip ")
