"""Records of an exchange as record/1 lines, and exports of them."""

import base64
import csv
import io
import json
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.records import Problem, record_lines
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.export import FORMATS, ExportOptions, format_of, open_writer
from kafkascope.analyzer.model import Exchange
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import encode_body
from kafkascope.dissectors.values import Uuid
from tests.kit.batches import Pair, batch
from tests.kit.wire import Wire, partition, produce, produced, request, response, told

ID = Uuid(range(16))


def lines(exchange: Exchange, context: Context | None = None) -> list[dict[str, Any]]:
    problems: list[Problem] = []
    text = b"".join(record_lines(exchange, (context or Context()).names, problems))
    assert problems == []
    return [json.loads(line) for line in text.splitlines()]


def exchange(wire: Wire, context: Context | None = None) -> Exchange:
    (one,) = told(wire.events, context)
    return one


def share(records: bytes, topic_id: bytes = ID) -> Wire:
    topics = [{"topic_id": topic_id, "partitions": [partition(2, records)]}]
    wire = Wire().client(request("Fetch", 13, 1))
    return wire.broker(response("Fetch", 13, 1, responses=topics))


def test_a_produced_record() -> None:
    data = batch([(b"k", b"v"), (None, b"\xff")], producer=(7, 1, 40), headers=[("h", None)])
    one = exchange(Wire().client(produce(1, records=data)).broker(produced()))
    first, second = lines(one)
    assert first == {
        "schema": "record/1",
        "exchange": 1,
        "source": "produce",
        "topic": "t",
        "topic_id": None,
        "partition": 3,
        "offset": 88123,
        "time": "2023-11-14T22:13:20.123Z",
        "key": "k",
        "value": "v",
        "headers": [["h", None]],
        "codec": "none",
        "magic": 2,
        "producer_id": 7,
        "producer_epoch": 1,
        "sequence": 40,
        "transactional": False,
        "control": False,
    }
    assert (second["offset"], second["sequence"], second["key"]) == (88124, 41, None)
    assert second["value"] == {"base64": base64.b64encode(b"\xff").decode()}


def test_without_a_good_answer_a_produced_record_has_no_offset() -> None:
    data = batch([(b"k", b"v")])
    for wire in (
        Wire().client(produce(1, acks=0, records=data)),
        Wire().client(produce(1, records=data)).broker(produced(error_code=6)),
    ):
        assert lines(exchange(wire))[0]["offset"] is None


def test_a_fetched_record_has_its_own_offset_and_the_topics_name() -> None:
    context = Context()
    context.names.learn(ID, "orders")
    (record,) = lines(exchange(share(batch([(None, b"v")], base_offset=500))), context)
    assert (record["source"], record["offset"]) == ("fetch", 500)
    assert (record["topic"], record["topic_id"], record["partition"]) == ("orders", str(ID), 2)


def test_sequence_numbers_have_the_holes_of_the_offsets_and_wrap() -> None:
    records = [Record(offset, 1, None, b"v", ()) for offset in (10, 11, 14)]
    data = encode_batch(records, producer_id=7, producer_epoch=0, base_sequence=2**31 - 2)
    assert [r["sequence"] for r in lines(exchange(share(data)))] == [2**31 - 2, 2**31 - 1, 2]


def test_control_and_transactional_batches_say_so() -> None:
    (record,) = lines(exchange(share(batch([(b"\0\0\0\1", b"x")], attributes=0x30))))
    assert (record["transactional"], record["control"]) == (True, True)


def test_damage_is_told_and_the_rest_still_read() -> None:
    damaged = bytearray(batch([(b"k", b"value")]))
    damaged[-3] ^= 1
    problems: list[Problem] = []
    one = exchange(share(bytes(damaged) + batch([(b"k", b"w")]) + b"\0" * 16 + b"\x09"))
    text = b"".join(record_lines(one, Context().names, problems))
    assert len(text.splitlines()) == 2
    end = len(damaged) + len(batch([(b"k", b"w")]))
    said = ["a batch has a checksum mismatch", f"there is no magic 9 at byte {end + 16}"]
    assert [str(each).split(": ", 2)[2] for each in problems] == said


VALUES = st.one_of(st.none(), st.binary(max_size=20), st.text(max_size=20).map(str.encode))


@given(
    st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=5),
    st.integers(-(2**62), 2**62),
    st.lists(st.tuples(st.text(max_size=5), VALUES), max_size=2),
)
def test_every_record_is_a_line_of_json(
    pairs: list[Pair], time_ms: int, headers: list[tuple[str, bytes | None]]
) -> None:
    found = lines(exchange(share(batch(pairs, time_ms=time_ms, headers=headers))))
    assert [(_bytes(r["key"]), _bytes(r["value"])) for r in found] == pairs
    for record in found:
        assert [(name, _bytes(v)) for name, v in record["headers"]] == headers


def _bytes(value: Any) -> bytes | None:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return None if value is None else value.encode()


def exported(form: str, wires: list[Wire], **options: Any) -> str:
    context = Context()
    out = io.BytesIO()
    writer = open_writer(form, out, context.names, ExportOptions(**options))
    for one in told([event for wire in wires for event in wire.events], context):
        writer.add(one, row_of(one, context.names))
    writer.finish()
    return out.getvalue().decode()


def named(number: int) -> Wire:
    """A Metadata answer on another connection that tells the topic's name."""
    wire = Wire(number=number).client(request("Metadata", 12, 1))
    return wire.broker(response("Metadata", 12, 1, topics=[{"name": "orders", "topic_id": ID}]))


def late() -> list[Wire]:
    return [share(batch([(b"k", b'"topic":"AAECAwQF?"')])), named(1)]


def test_formats_are_known_by_suffix() -> None:
    assert {format_of(f"x.{name}") for name in FORMATS} == set(FORMATS)
    assert format_of("x.pcap") is None


def test_a_name_that_came_late_is_in_the_lines_written_before() -> None:
    text = exported("jsonl", late())
    assert [json.loads(line)["topics"] for line in text.splitlines()] == [["orders"], ["orders"]]
    (record,) = map(json.loads, exported("jsonl", late(), table="records").splitlines())
    assert (record["topic"], record["value"]) == ("orders", '"topic":"AAECAwQF?"')
    (row, _) = csv.DictReader(io.StringIO(exported("csv", late())))
    assert (row["topics"], row["result"]) == ("orders", "ok orders-2 1 record")


def test_full_lines_spell_out_the_records() -> None:
    data = batch([(b"k", b"v")])
    wire = Wire().client(produce(1, records=data)).broker(produced())
    (line,) = map(json.loads, exported("jsonl", [wire], full=True).splitlines())
    records = line["request"]["topic_data"][0]["partition_data"][0]["records"]
    assert base64.b64decode(records["base64"]) == data
    assert records["batches"][0]["crc_ok"] is True
    assert records["batches"][0]["records"][0]["value"] == "v"
    assert line["response"]["responses"][0]["partition_responses"][0]["base_offset"] == 88123


def test_secrets_are_masked() -> None:
    wire = Wire().client(request("SaslAuthenticate", 1, 1, auth_bytes=b"\0bob\0pw"))
    (line,) = map(json.loads, exported("jsonl", [wire], full=True).splitlines())
    assert base64.b64decode(line["request"]["auth_bytes"]) == b"*" * 7
    (inside,) = line["embedded"]
    assert (inside["side"], inside["path"]) == ("request", "auth_bytes")
    assert inside["value"] == {"authzid": "", "username": "bob", "password": "***"}


def test_ids_of_schemas_stand_beside_framed_values() -> None:
    data = batch([(b"k", b'\0\0\0\0\x2a{"a":1}'), (struct.pack(">q", 1), b"\0\0\0\0\7\2\xff")])
    wire = Wire().client(produce(1, records=data)).broker(produced())
    text = exported("jsonl", [wire], table="records")
    first, second = map(json.loads, text.splitlines())
    assert (first["value_schema_id"], first["value"]) == (42, '\0\0\0\0*{"a":1}')
    assert second["value_schema_id"] == 7
    assert "key_schema_id" not in first | second
    assert "decoded" not in first


def config(name: str, value: str) -> Pair:
    """A record of the metadata log: frame version, type, version, message."""
    body = {"resource_type": 4, "resource_name": "1", "name": name, "value": value}
    return None, b"\1\4\0" + encode_body("ConfigRecord", 0, body)


def test_passwords_in_the_metadata_log_are_masked_and_nothing_else() -> None:
    data = batch([config("ssl.key.password", "s"), config("segment.ms", "s")])
    topic = {"topic": "__cluster_metadata", "partitions": [partition(0, data)]}
    wire = Wire().client(request("Fetch", 0, 1)).broker(response("Fetch", 0, 1, responses=[topic]))
    (line,) = map(json.loads, exported("jsonl", [wire], full=True).splitlines())
    records = line["response"]["responses"][0]["partitions"][0]["records"]
    shown = base64.b64decode(records["base64"])
    assert shown == data.replace(b"\x11ssl.key.password\2s", b"\x11ssl.key.password\2*")
    bodies = [each["decoded"]["value"]["body"] for each in records["batches"][0]["records"]]
    assert [body["value"] for body in bodies] == ["*", "s"]


def test_csv_of_records() -> None:
    data = batch([(b"k", b"two\nlines"), (None, b"\xff")])
    wire = Wire().client(produce(1, records=data)).broker(produced())
    first, second = csv.DictReader(io.StringIO(exported("csv", [wire], table="records")))
    assert (first["offset"], first["value"]) == ("88123", "two\\nlines")
    assert (second["key"], second["value"]) == ("", "base64:/w==")
